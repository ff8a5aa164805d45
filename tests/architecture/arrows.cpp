#include "architecture/arrows.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <stdexcept>

namespace taiyen::architecture {
namespace {

namespace fs = std::filesystem;

struct Room {
    int level = 0;
    std::vector<std::string> never;  ///< words
};
using Rooms = std::map<std::string, Room, std::less<>>;

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
    if (!stream) throw std::runtime_error(file.string() + ": can't be read");
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Include> parse(const fs::path& file) {
    static const std::regex directive(R"(^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*)");
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error(file.string() + ": can't be read");
    std::vector<Include> found;
    std::string text;
    for (std::size_t line = 1; std::getline(stream, text); ++line) {
        std::smatch match;
        if (std::regex_match(text, match, directive)) found.push_back({line, match[1] == "\"", match[2]});
    }
    return found;
}

std::vector<std::string> in_backticks(const std::string& cell) {
    static const std::regex word("`([^`]+)`");
    std::vector<std::string> found;
    for (std::sregex_iterator match(cell.begin(), cell.end(), word), end; match != end; ++match) found.push_back((*match)[1]);
    return found;
}

/// The table of src/README.md: `| level | rooms | owns | never |`.
Rooms rooms_of(const fs::path& tree) {
    static const std::regex row(R"(\| *(\d+) *\|([^|]*)\|[^|]*\|([^|]*)\|)");
    std::ifstream stream(tree / "src/README.md");
    Rooms rooms;
    for (std::string line; std::getline(stream, line);) {
        std::smatch match;
        if (!std::regex_match(line, match, row)) continue;
        for (const std::string& room : in_backticks(match[2])) rooms[room] = {std::stoi(match[1]), in_backticks(match[3])};
    }
    if (rooms.empty()) throw std::runtime_error((tree / "src/README.md").string() + ": there is no table of rooms");
    return rooms;
}

/// The same text with blanks for comments and for what stands in quotes.
std::string only_code(std::string text) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + 1;
        const bool number = at != 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0;
        if (text.compare(at, 2, "//") == 0) {
            end = std::min(text.find('\n', at), text.size());
        } else if (text.compare(at, 2, "/*") == 0) {
            end = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
        } else if (text[at] == '"' || (text[at] == '\'' && !number)) {
            while (end < text.size() && text[end] != text[at] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
            end = std::min(end + 1, text.size());
        } else {
            ++at;
            continue;
        }
        for (; at < end; ++at)
            if (text[at] != '\n') text[at] = ' ';
    }
    return text;
}

bool is_source(const fs::path& file) {
    const auto extension = file.extension();
    return extension == ".hpp" || extension == ".cpp" || extension == ".h" || extension == ".inl" || extension == ".ipp";
}

std::vector<fs::path> sources_below(const fs::path& folder) {
    std::vector<fs::path> files;
    if (fs::exists(folder)) {
        for (const auto& entry : fs::recursive_directory_iterator(folder))
            if (entry.is_regular_file() && is_source(entry.path())) files.push_back(entry.path());
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
std::optional<std::string> wrong_arrow(const Rooms& rooms, const Place& place, const std::string& room) {
    const auto target = rooms.find(room);
    if (target == rooms.end()) return "there is no room " + room;
    if (place.room.empty() || place.room == room) return std::nullopt;
    const int own = rooms.at(place.room).level;
    if (target->second.level < own) return std::nullopt;
    return "room " + place.room + " (level " + std::to_string(own) + ") must not include room " + room + " (level " +
           std::to_string(target->second.level) + ")";
}

bool is_umbrella(std::string_view header) { return header == "taiyen/taiyen.hpp" || header == "taiyen/heap.hpp"; }

std::optional<std::string> wrong_public(const Rooms& rooms, const Place& place, const Include& include) {
    if (include.quoted) return "write <" + include.target + ">: public headers take angle brackets";
    if (is_umbrella(include.target)) {
        const bool may = place.top == Place::Top::tests || (place.top == Place::Top::include && place.room.empty());
        return may ? std::nullopt : std::optional<std::string>("the umbrella headers are for programs");
    }
    return wrong_arrow(rooms, place, first_folder(include.target.substr(7)));
}

std::optional<std::string> wrong_private(const Rooms& rooms, const fs::path& tree, const fs::path& file, const Place& place, const Include& include) {
    if (place.top == Place::Top::include) return "a public header must not include the private \"" + include.target + "\"";
    const std::string room = first_folder(include.target);
    if (rooms.contains(room)) {
        const bool in_src = fs::exists(tree / "src" / include.target);
        if (!in_src && place.top == Place::Top::src) return "there is no src/" + include.target;
        // The shared library hides what its rooms keep to themselves, and the tool is a program like others.
        const bool compiled = fs::exists((tree / "src" / include.target).replace_extension(".cpp"));
        if (place.top == Place::Top::src && place.room == "tool" && room != "tool" && compiled)
            return "the tool must not include the compiled \"" + include.target + "\": a shared library doesn't show what it declares";
        return wrong_arrow(rooms, place, room);
    }
    const bool in_tests =
        place.top == Place::Top::tests && (fs::exists(tree / "tests" / include.target) || fs::exists(file.parent_path() / include.target));
    return in_tests ? std::nullopt : std::optional<std::string>("write \"room/file.hpp\" instead of \"" + include.target + "\"");
}

std::optional<std::string> wrong_library(const fs::path& file, const Place& place, const Include& include) {
    if (place.top != Place::Top::include || place.room == "other_containers" || include.target.find_first_of("/.") == std::string::npos)
        return std::nullopt;
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

/// Words that the room never uses, each at its first place.
void check_words(const Rooms& rooms, const fs::path& tree, const fs::path& file, const Place& place, std::vector<std::string>& found) {
    if (place.top == Place::Top::tests || place.room.empty()) return;
    const std::vector<std::string>& never = rooms.at(place.room).never;
    if (never.empty()) return;
    const std::string code = only_code(read(file));
    for (const std::string& word : never) {
        std::smatch match;
        if (std::regex_search(code, match, std::regex("\\b" + word + "\\b"))) {
            const auto line = 1 + std::count(code.begin(), match[0].first, '\n');
            found.push_back(fs::relative(file, tree).string() + ":" + std::to_string(line) + ": room " + place.room + " must not use the word " +
                            word);
        }
    }
}

void check_file(const Rooms& rooms, const fs::path& tree, const fs::path& file, const Place& place, std::vector<std::string>& found) {
    if (file.extension() == ".hpp" && !is_guarded(file)) found.push_back(fs::relative(file, tree).string() + ":1: a header begins with #pragma once");
    for (const Include& include : parse(file)) {
        const auto reason = include.target.starts_with("taiyen/") ? wrong_public(rooms, place, include)
                            : include.quoted                      ? wrong_private(rooms, tree, file, place, include)
                                                                  : wrong_library(file, place, include);
        if (reason) found.push_back(fs::relative(file, tree).string() + ":" + std::to_string(include.line) + ": " + *reason);
    }
    check_words(rooms, tree, file, place, found);
}

}  // namespace

std::vector<std::string> violations(const fs::path& tree) {
    const Rooms rooms = rooms_of(tree);
    std::vector<std::string> found;
    const std::pair<fs::path, Place::Top> tops[] = {
        {tree / "include/taiyen", Place::Top::include}, {tree / "src", Place::Top::src}, {tree / "tests", Place::Top::tests}};
    for (const auto& [folder, top] : tops) {
        for (const auto& file : sources_below(folder)) {
            const std::string relative = fs::relative(file, folder).string();
            Place place{top, first_folder(relative)};
            if (!rooms.contains(place.room)) {
                const bool umbrella = top == Place::Top::include && is_umbrella("taiyen/" + relative);
                if (top != Place::Top::tests && !umbrella) found.push_back(fs::relative(file, tree).string() + ":1: lies in no room");
                place.room.clear();
            }
            check_file(rooms, tree, file, place, found);
        }
    }
    return found;
}

std::vector<std::string> public_headers(const fs::path& tree) {
    std::vector<std::string> headers;
    for (const auto& file : sources_below(tree / "include")) headers.push_back(fs::relative(file, tree / "include").string());
    std::erase_if(headers, is_umbrella);
    return headers;
}

std::set<std::string> standard_headers_of(const fs::path& tree, const std::string& header) {
    std::set<std::string> found;
    std::set<std::string> seen{header};
    for (std::vector<std::string> todo{header}; !todo.empty();) {
        const std::string next = std::move(todo.back());
        todo.pop_back();
        for (std::string& target : includes_of(tree / "include" / next))
            if (!target.starts_with("taiyen/"))
                found.insert(std::move(target));
            else if (seen.insert(target).second)
                todo.push_back(std::move(target));
    }
    return found;
}

std::vector<std::string> includes_of(const fs::path& file) {
    std::vector<std::string> targets;
    for (auto& include : parse(file)) targets.push_back(std::move(include.target));
    return targets;
}

}  // namespace taiyen::architecture
