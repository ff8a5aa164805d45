#include "architecture/arrows.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <stdexcept>

namespace taiyen::architecture {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, int, std::less<>>& levels() {
    static const std::map<std::string, int, std::less<>> table{
        {"base", 0},     {"io", 1},      {"vm", 2},      {"heap", 3},   {"log", 3},       {"store", 4}, {"change", 4},  {"undo", 5}, {"txn", 5},
        {"transfer", 6}, {"logheap", 6}, {"ordered", 6}, {"object", 6}, {"replicate", 6}, {"stl", 7},   {"inspect", 7}, {"tool", 8}, {"malloc", 8}};
    return table;
}

/// Where an including file lies.
struct Place {
    enum class Top { include, src, tests } top;
    std::string room;  ///< empty: outside the rooms, may see all
};

struct Include {
    std::size_t line;
    bool quoted;
    std::string target;
};

std::string read(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        throw std::runtime_error(file.string() + ": can't be read");
    }
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Include> parse(const fs::path& file) {
    static const std::regex directive(R"(^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*)");
    std::ifstream stream(file);
    if (!stream) {
        throw std::runtime_error(file.string() + ": can't be read");
    }
    std::vector<Include> found;
    std::string text;
    for (std::size_t line = 1; std::getline(stream, text); ++line) {
        std::smatch match;
        if (std::regex_match(text, match, directive)) {
            found.push_back({line, match[1] == "\"", match[2]});
        }
    }
    return found;
}

bool is_source(const fs::path& file) {
    const auto extension = file.extension();
    return extension == ".hpp" || extension == ".cpp" || extension == ".h" || extension == ".inl" || extension == ".ipp";
}

std::vector<fs::path> sources_below(const fs::path& folder) {
    std::vector<fs::path> files;
    if (fs::exists(folder)) {
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            if (entry.is_regular_file() && is_source(entry.path())) {
                files.push_back(entry.path());
            }
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

/// First folder of a relative path, empty if it has none.
std::string first_folder(const std::string& path) {
    const auto slash = path.find('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// The reason why `place` must not include something of `room`.
std::optional<std::string> wrong_arrow(const Place& place, const std::string& room) {
    const auto target = levels().find(room);
    if (target == levels().end()) {
        return "there is no room " + room;
    }
    if (place.room.empty() || place.room == room) {
        return std::nullopt;
    }
    const int own = levels().at(place.room);
    if (target->second < own) {
        return std::nullopt;
    }
    return "room " + place.room + " (level " + std::to_string(own) + ") must not include room " + room + " (level " + std::to_string(target->second) +
           ")";
}

bool is_umbrella(std::string_view header) { return header == "taiyen/taiyen.hpp" || header == "taiyen/heap.hpp"; }

std::optional<std::string> wrong_public(const Place& place, const Include& include) {
    if (include.quoted) {
        return "write <" + include.target + ">: public headers take angle brackets";
    }
    if (is_umbrella(include.target)) {
        const bool may = place.top == Place::Top::tests || (place.top == Place::Top::include && place.room.empty());
        return may ? std::nullopt : std::optional<std::string>("the umbrella headers are for programs");
    }
    return wrong_arrow(place, first_folder(include.target.substr(7)));
}

std::optional<std::string> wrong_private(const fs::path& tree, const fs::path& file, const Place& place, const Include& include) {
    if (place.top == Place::Top::include) {
        return "a public header must not include the private \"" + include.target + "\"";
    }
    const std::string room = first_folder(include.target);
    if (levels().contains(room)) {
        const bool in_src = fs::exists(tree / "src" / include.target);
        if (!in_src && place.top == Place::Top::src) {
            return "there is no src/" + include.target;
        }
        // The shared library hides what its rooms keep to themselves, and the tool is a program like others.
        const bool compiled = fs::exists((tree / "src" / include.target).replace_extension(".cpp"));
        if (place.top == Place::Top::src && place.room == "tool" && room != "tool" && compiled) {
            return "the tool must not include the compiled \"" + include.target + "\": a shared library doesn't show what it declares";
        }
        return wrong_arrow(place, room);
    }
    const bool in_tests =
        place.top == Place::Top::tests && (fs::exists(tree / "tests" / include.target) || fs::exists(file.parent_path() / include.target));
    return in_tests ? std::nullopt : std::optional<std::string>("write \"room/file.hpp\" instead of \"" + include.target + "\"");
}

std::optional<std::string> wrong_library(const fs::path& file, const Place& place, const Include& include) {
    if (place.top != Place::Top::include || include.target.find_first_of("/.") == std::string::npos) {
        return std::nullopt;
    }
    const bool boost = include.target.starts_with("boost/");
    const bool pfr = include.target.starts_with("boost/pfr") && read(file).find("__has_include(<boost/pfr") != std::string::npos;
    const bool version = include.target == "boost/version.hpp" && read(file).find("__has_include(<boost/version.hpp>)") != std::string::npos;
    const bool offset = boost && file.filename().string().starts_with("offset_");
    return pfr || version || offset ? std::nullopt
                                    : std::optional<std::string>("a public header needs the standard library only, not <" + include.target + ">");
}

/// Whether it may be included twice.
bool is_guarded(const fs::path& header) {
    std::ifstream stream(header);
    std::string first;
    return std::getline(stream, first) && first == "#pragma once";
}

void check_file(const fs::path& tree, const fs::path& file, const Place& place, std::vector<std::string>& found) {
    if (file.extension() == ".hpp" && !is_guarded(file)) {
        found.push_back(fs::relative(file, tree).string() + ":1: a header begins with #pragma once");
    }
    for (const Include& include : parse(file)) {
        const auto reason = include.target.starts_with("taiyen/") ? wrong_public(place, include)
                            : include.quoted                      ? wrong_private(tree, file, place, include)
                                                                  : wrong_library(file, place, include);
        if (reason) {
            found.push_back(fs::relative(file, tree).string() + ":" + std::to_string(include.line) + ": " + *reason);
        }
    }
}

}  // namespace

std::vector<std::string> violations(const fs::path& tree) {
    std::vector<std::string> found;
    const std::pair<fs::path, Place::Top> tops[] = {
        {tree / "include/taiyen", Place::Top::include}, {tree / "src", Place::Top::src}, {tree / "tests", Place::Top::tests}};
    for (const auto& [folder, top] : tops) {
        for (const auto& file : sources_below(folder)) {
            const std::string relative = fs::relative(file, folder).string();
            Place place{top, first_folder(relative)};
            if (!levels().contains(place.room)) {
                const bool umbrella = top == Place::Top::include && is_umbrella("taiyen/" + relative);
                if (top != Place::Top::tests && !umbrella) {
                    found.push_back(fs::relative(file, tree).string() + ":1: lies in no room");
                }
                place.room.clear();
            }
            check_file(tree, file, place, found);
        }
    }
    return found;
}

std::vector<std::string> public_headers(const fs::path& tree) {
    std::vector<std::string> headers;
    for (const auto& file : sources_below(tree / "include")) {
        headers.push_back(fs::relative(file, tree / "include").string());
    }
    std::erase_if(headers, is_umbrella);
    return headers;
}

std::set<std::string> standard_headers_of(const fs::path& tree, const std::string& header) {
    std::set<std::string> found;
    std::set<std::string> seen{header};
    for (std::vector<std::string> todo{header}; !todo.empty();) {
        const std::string next = std::move(todo.back());
        todo.pop_back();
        for (std::string& target : includes_of(tree / "include" / next)) {
            if (!target.starts_with("taiyen/")) {
                found.insert(std::move(target));
            } else if (seen.insert(target).second) {
                todo.push_back(std::move(target));
            }
        }
    }
    return found;
}

std::vector<std::string> includes_of(const fs::path& file) {
    std::vector<std::string> targets;
    for (auto& include : parse(file)) {
        targets.push_back(std::move(include.target));
    }
    return targets;
}

}  // namespace taiyen::architecture
