#pragma once
/// WordNet's database files (wndb(5WN)): one line a synset in data.*, one line a word in index.*.
///
/// Thread rule: values.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lexicon.hpp"

namespace wordnet {

/// Where Debian's wordnet-base puts them.
inline constexpr const char* database_folder = "/usr/share/wordnet";

struct DataPointer {
    RelationKind kind = RelationKind::hypernym;
    SynsetId target;
    MemberNumber from = 0;
    MemberNumber to = 0;
};
struct DataLine {
    SynsetId id;
    std::vector<std::string> words;  ///< as spelt, without the marks of an adjective's position
    std::vector<DataPointer> pointers;
    std::string gloss;
};
struct IndexLine {
    std::string lemma;
    std::vector<SynsetId> senses;  ///< the most frequent first
};
struct Database {
    std::vector<IndexLine> index;
    std::vector<DataLine> data;
};

/// A line that isn't as it should be, or a file that isn't there; the text says which and where.
class DatabaseError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Throws: DatabaseError, without a place.
DataLine parse_data_line(std::string_view line);
IndexLine parse_index_line(std::string_view line);

/// `done` of `all` bytes have been read.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t all, const std::string& file)>;

/// Reads the eight files. Throws: DatabaseError naming file and line, and what to install where nothing is found.
Database read_database(const std::filesystem::path& folder, const ReadProgress& progress = {});

}  // namespace wordnet
