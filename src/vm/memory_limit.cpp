#include "vm/memory_limit.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"

namespace taiyen::vm {
namespace {

/// Empty: there is none, or it can't be read.
std::string text_of(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text;
    std::array<char, 4096> part;
    while (file.is_open()) {
        const ssize_t got = ::read(file.get(), part.data(), part.size());
        if (got > 0)
            text.append(part.data(), static_cast<std::size_t>(got));
        else if (got == 0 || errno != EINTR)
            break;
    }
    return text;
}

/// Whether the list, separated by commas, has it.
bool has(std::string_view list, std::string_view wanted) {
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        if (list.substr(0, comma) == wanted) return true;
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return false;
}

/// A path of mountinfo: spaces and their like are written as \040.
std::string unescaped(std::string_view text) {
    std::string path;
    for (std::size_t at = 0; at < text.size(); ++at) {
        unsigned character = 0;
        const bool escaped = text[at] == '\\' && at + 3 < text.size() &&
                             std::from_chars(text.data() + at + 1, text.data() + at + 4, character, 8).ptr == text.data() + at + 4;
        path.push_back(escaped ? static_cast<char>(character) : text[at]);
        at += escaped ? 3 : 0;
    }
    return path;
}

/// Where a hierarchy of groups with the memory controller is mounted.
struct Mount {
    std::string root;   ///< the group that the mount shows
    std::string point;  ///< where it shows it
    bool version2;
};

std::vector<Mount> mounts(const std::string& proc) {
    std::vector<Mount> found;
    std::istringstream lines(text_of(proc + "/mountinfo"));
    for (std::string line; std::getline(lines, line);) {
        // "36 35 98:0 root point options optional… - type source super-options"
        std::istringstream words(line);
        std::string skipped;
        std::string root;
        std::string point;
        std::string type;
        std::string options;
        words >> skipped >> skipped >> skipped >> root >> point;
        while (words >> skipped && skipped != "-") {}
        words >> type >> skipped >> options;
        if (type == "cgroup2" || (type == "cgroup" && has(options, "memory")))
            found.push_back({unescaped(root), unescaped(point), type == "cgroup2"});
    }
    return found;
}

/// The process's group in the hierarchy, a path from its root; nothing: it is in none.
std::optional<std::string> group_in(const std::string& proc, bool version2) {
    std::istringstream lines(text_of(proc + "/cgroup"));
    for (std::string line; std::getline(lines, line);) {
        // "hierarchy:controllers:path"
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (version2 ? line.starts_with("0::") : has(controllers, "memory")) return line.substr(second + 1);
    }
    return std::nullopt;
}

/// The part of the group's path that lies below what is mounted, "/a/b"; nothing of it where the group lies elsewhere, or is what is mounted.
std::string below_mount(const std::string& group, const std::string& root) {
    const std::string above = root == "/" ? "" : root;
    if (!group.starts_with(above) || (group + "/").find("/../") != std::string::npos) return {};
    const std::string below = group.substr(above.size());
    return below.size() > 1 && below.front() == '/' ? below : std::string();
}

}  // namespace

// By strings: the standard library's paths (libstdc++ 12) free memory twice where it runs out in the midst of their operations, and a save that looks at the limit must live through that.
std::optional<ByteCount> group_memory_limit(const std::string& proc, const std::string& root) {
    std::optional<ByteCount> least;
    for (const Mount& mount : mounts(proc)) {
        const auto group = group_in(proc, mount.version2);
        if (!group) continue;
        std::string below = below_mount(*group, mount.root);
        for (;;) {
            const std::string text = text_of(root + mount.point + below + (mount.version2 ? "/memory.max" : "/memory.limit_in_bytes"));
            ByteCount bytes = 0;
            if (std::from_chars(text.data(), text.data() + text.size(), bytes).ec == std::errc{})  // else "max", or no such file
                least = std::min(bytes, least.value_or(bytes));
            if (below.empty()) break;
            below.resize(below.rfind('/'));
        }
    }
    return least;
}

ByteCount usable_memory() {
    const auto memory = static_cast<ByteCount>(::sysconf(_SC_PHYS_PAGES)) * static_cast<ByteCount>(::sysconf(_SC_PAGESIZE));
    return std::min(memory, group_memory_limit().value_or(memory));
}

}  // namespace taiyen::vm
