#pragma once
/// Reads every #include and every word of a source tree, and holds them to the table of rooms in its src/README.md.
///
/// (A1) A room includes itself and rooms below it. A public header is <taiyen/room/x.hpp>, a private one "room/x.hpp".
/// (A2) A public header includes no private one; beside the standard library it includes only Boost: Boost.PFR after asking `__has_include`, and whatever
///      offset_*.hpp needs. Those of the room other_containers may include any library.
/// (A3) Nothing below include/ or src/ but an umbrella header (taiyen/taiyen.hpp, taiyen/heap.hpp) includes one, and nothing there includes a file of the tests.
/// (A4) tests/<room> obeys A1 as its room does; other folders of the tests may use every room.
/// (A5) Below include/taiyen and src every source lies in a room.
/// (A6) A header begins with `#pragma once`.
/// (A7) The words in backticks in a room's last column don't occur in its code; comments and texts in quotes may hold them.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace taiyen::architecture {

/// One line `file:line: reason` for each violation below `tree`/{include,src,tests}, in order of the files' names.
/// Throws: std::runtime_error without a table.
std::vector<std::string> violations(const std::filesystem::path& tree);

/// Every public header below `tree` as it is included, `taiyen/room/x.hpp`, sorted; the umbrellas are not among them.
std::vector<std::string> public_headers(const std::filesystem::path& tree);

/// What of the standard library, or of Boost, comes with a public header, by way of other ones of this project.
std::set<std::string> standard_headers_of(const std::filesystem::path& tree, const std::string& header);

/// What `file` includes, in its order, without brackets and quotes.
std::vector<std::string> includes_of(const std::filesystem::path& file);

}  // namespace taiyen::architecture
