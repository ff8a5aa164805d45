#include "tool/moving.hpp"

#include <taiyen/store/parameters.hpp>

#include <algorithm>

#include "base/json.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {

std::uintptr_t place_of(std::string_view text) {
    if (text == "auto") return anywhere;
    std::string digits(text);
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    std::uintptr_t address = 0;
    const bool prefixed = digits.size() > 2 && digits.size() <= 18 && digits.starts_with("0x");
    bool good = prefixed;
    for (std::size_t i = 2; good && i < digits.size(); ++i) {
        const char c = digits[i];
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        good = digit >= 0;
        address = address * 16 + static_cast<std::uintptr_t>(digit);
    }
    if (!good || address == anywhere)
        throw Error(errc::invalid_argument, "--address takes one such as 0x2300_0000_0000, or auto, not '" + std::string(text) + "'");
    return address;
}

void take_options(const Given& given, ExpandOptions& options) {
    options.threads = static_cast<unsigned>(std::min<std::size_t>(given.number("threads", 0), 1024));
    options.capacity = given.bytes("capacity", 0);
    const auto kind = chosen<HeapKind>(given, "kind",
                                       {{"archive", HeapKind::archive}, {"snapshot", HeapKind::snapshot}, {"transactional", HeapKind::transactional}},
                                       HeapKind::volatile_heap);
    if (given.has("kind")) options.kind = kind;
    if (const auto where = given.value("address")) options.address = place_of(*where);
    options.defragment =
        chosen<Defragment>(given, "defragment", {{"address", Defragment::by_address}, {"reach", Defragment::by_reachability}}, Defragment::no);
    options.pointers.conservative = given.has("conservative");
    options.pointers.listed_max = given.number("list", 20);
    options.pointers.refuse_ambiguous = given.has("refuse-ambiguous");
    options.pointers.accept_hashed_by_address = given.has("accept-hashed-by-address");
}

void print_guessed(const RebaseReport& report) {
    if (report.guessed_words == 0) return;
    print(counted(report.guessed_words, "word is guessed", "words are guessed") + ": " + (report.guessed_words == 1 ? "it looks" : "they look") +
          " like a pointer, and nothing proves it; a number that looks like one changes, too:\n");
    for (const GuessedWord& word : report.guessed) {
        print("  at " + address_text(word.offset) + ", in " +
              (word.name.empty() ? "the block at " + address_text(word.block) : "'" + visible(word.name) + "'") + ": " +
              address_text(word.old_value) + " becomes " + address_text(word.new_value) + "\n");
    }
    print_left_out(report.guessed.size(), report.guessed_words);
}

void add_guessed(JsonWriter& json, const RebaseReport& report) {
    json.member("guessed_words", report.guessed_words).key("guessed").begin_array();
    for (const GuessedWord& word : report.guessed) {
        json.begin_object()
            .member("offset", word.offset)
            .member("block", word.block)
            .member("name", word.name)
            .member("old_value", std::uint64_t{word.old_value})
            .member("new_value", std::uint64_t{word.new_value})
            .end_object();
    }
    json.end_array();
}

void print_made(const Given& given, const std::string& target, const ExpandOptions& options, const Expanded& made) {
    const RebaseReport& move = made.move;
    const std::string_view kind = name_of(options.kind.value_or(made.kind));
    const std::size_t in_use = read_parameters(target).extent_bytes;
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("made", target)
            .member("kind", kind)
            .member("from_uuid", made.uuid)
            .member("names", made.names)
            .member("extent_bytes", std::uint64_t{in_use})
            .member("serial", made.serial.value)
            .member("old_address", std::uint64_t{move.old_address})
            .member("new_address", std::uint64_t{move.new_address})
            .member("moved", move.moved)
            .member("pointers", move.pointers)
            .member("unreached_blocks", move.unreached_blocks)
            .member("ambiguous_words", move.ambiguous_words);
        add_guessed(json, move);
        json.end_object();
        print(json);
        return;
    }
    print(visible(target) + ": " + std::string(kind) + " heap, " + counted(made.names, "named object") + ", " + bytes_text(in_use) + " in use\n");
    if (!move.moved) return;
    print("moved from " + address_text(move.old_address) + " to " + address_text(move.new_address) + ": " + counted(move.pointers, "pointer") +
          " rewritten\n");
    print_guessed(move);
    if (move.unreached_blocks != 0 && !given.has("conservative"))
        print(counted(move.unreached_blocks, "block") + " that no name leads to " +
              (move.unreached_blocks == 1 ? "stays as it is" : "stay as they are") + "; 'taiyen leaks' tells of them\n");
    if (move.ambiguous_words != 0)
        print(count_text(move.ambiguous_words) + " ambiguous words stay as they are; 'taiyen rebase --dry-run' lists those of a heap\n");
}

}  // namespace taiyen::tool
