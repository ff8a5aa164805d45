#include "database.hpp"

#include <array>
#include <charconv>
#include <fstream>

namespace wordnet {
namespace {

/// The blank-separated fields of a line, one after the other.
class Fields {
public:
    explicit Fields(std::string_view line) : rest_(line) {}

    std::string_view text(const char* what) {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
        const std::string_view field = rest_.substr(0, rest_.find(' '));
        if (field.empty()) throw DatabaseError(std::string("the line ends before ") + what);
        rest_.remove_prefix(field.size());
        return field;
    }

    template <class Number = std::uint32_t>
    Number number(const char* what, int base = 10) {
        const std::string_view field = text(what);
        return number_in<Number>(field, what, base);
    }

    template <class Number>
    static Number number_in(std::string_view field, const char* what, int base) {
        Number value{};
        const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, base);
        if (error != std::errc() || end != field.data() + field.size())
            throw DatabaseError(std::string(what) + " is no number: " + std::string(field));
        return value;
    }

    PartOfSpeech part(const char* what) {
        const std::string_view field = text(what);
        const auto part = field.size() == 1 ? part_from_letter(field.front()) : std::nullopt;
        if (!part) throw DatabaseError(std::string(what) + " is no part of speech: " + std::string(field));
        return *part;
    }

private:
    std::string_view rest_;
};

DataPointer parse_pointer(Fields& fields) {
    DataPointer pointer;
    const std::string_view symbol = fields.text("a pointer's symbol");
    const auto kind = relation_kind_of(symbol);
    if (!kind) throw DatabaseError("an unknown pointer symbol: " + std::string(symbol));
    pointer.kind = *kind;
    pointer.target.number = fields.number("a pointer's target");
    pointer.target.part = fields.part("a pointer's part of speech");
    const std::string_view ends = fields.text("a pointer's words");
    if (ends.size() != 4) throw DatabaseError("a pointer's words are not four digits: " + std::string(ends));
    pointer.from = Fields::number_in<MemberNumber>(ends.substr(0, 2), "a pointer's word", 16);
    pointer.to = Fields::number_in<MemberNumber>(ends.substr(2), "a pointer's word", 16);
    return pointer;
}

std::uint64_t bytes_of(const std::filesystem::path& file) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file, error);
    if (error) {
        throw DatabaseError(file.string() + ": " + error.message() +
                            "; WordNet's files come with Debian's package wordnet-base, --from names another folder");
    }
    return bytes;
}

/// Calls `take` with each line that isn't part of the licence in front, which is indented.
template <class Take>
std::uint64_t for_each_line(const std::filesystem::path& file, const Take& take) {
    std::ifstream in(file);
    if (!in) throw DatabaseError(file.string() + ": can't be opened for reading");
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;
    for (std::string line; std::getline(in, line);) {
        bytes += line.size() + 1;
        ++number;
        if (line.empty() || line.front() == ' ') continue;
        try {
            take(std::string_view(line));
        } catch (const DatabaseError& error) {
            throw DatabaseError(file.string() + ", line " + std::to_string(number) + ": " + error.what());
        }
    }
    return bytes;
}

/// Files by part of speech.
constexpr std::array<const char*, parts_of_speech> endings{"noun", "verb", "adj", "adv"};

}  // namespace

DataLine parse_data_line(std::string_view line) {
    const std::size_t bar = line.find(" | ");
    if (bar == std::string_view::npos) throw DatabaseError("there is no gloss");
    DataLine result;
    result.gloss = line.substr(bar + 3, line.find_last_not_of(" \r") - (bar + 2));
    Fields fields(line.substr(0, bar));
    result.id.number = fields.number("the synset's offset");
    fields.text("the lexicographer's file");
    result.id.part = fields.part("the synset's type");
    const auto words = fields.number("the number of words", 16);
    for (std::uint32_t i = 0; i < words; ++i) {
        const std::string_view word = fields.text("a word");
        result.words.emplace_back(word.substr(0, word.find('(')));
        fields.text("a word's number");
    }
    const auto pointers = fields.number("the number of pointers");
    for (std::uint32_t i = 0; i < pointers; ++i) {
        result.pointers.push_back(parse_pointer(fields));
        if (result.pointers.back().from > words) throw DatabaseError("a pointer comes from a word that is not there");
    }
    return result;
}

IndexLine parse_index_line(std::string_view line) {
    Fields fields(line);
    IndexLine result;
    result.lemma = fields.text("the word");
    const PartOfSpeech part = fields.part("the part of speech");
    const auto synsets = fields.number("the number of senses");
    const auto kinds = fields.number("the number of pointer symbols");
    for (std::uint32_t i = 0; i < kinds; ++i) fields.text("a pointer symbol");
    fields.text("the number of senses again");
    fields.text("the number of tagged senses");
    for (std::uint32_t i = 0; i < synsets; ++i) result.senses.push_back({part, fields.number("a sense")});
    return result;
}

Database read_database(const std::filesystem::path& folder, const ReadProgress& progress) {
    std::uint64_t all = 0;
    for (const char* const ending : endings)
        all += bytes_of(folder / (std::string("index.") + ending)) + bytes_of(folder / (std::string("data.") + ending));
    Database database;
    std::uint64_t done = 0;
    const auto read = [&](const std::string& name, const auto& take) {
        if (progress) progress(done, all, name);
        done += for_each_line(folder / name, take);
    };
    for (const char* const ending : endings) {
        read(std::string("index.") + ending, [&](std::string_view line) { database.index.push_back(parse_index_line(line)); });
        read(std::string("data.") + ending, [&](std::string_view line) { database.data.push_back(parse_data_line(line)); });
    }
    if (progress) progress(all, all, "");
    return database;
}

}  // namespace wordnet
