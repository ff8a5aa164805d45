#include <taiyen/store/restoration.hpp>

#include <array>

namespace taiyen {
namespace {

struct CauseText {
    std::string_view name;
    const char* sentence;
};

constexpr std::array<CauseText, 9> cause_texts{{
    {"created", "the heap was made"},
    {"closed", "its last user closed it"},
    {"damaged_header", "a header of it was damaged"},
    {"crash", "its last user, or the system, ended without closing it"},
    {"interrupted_save", "its last user, or the system, ended while a save was on its way into the files"},
    {"damaged_file", "one of its files was cut short, older than the other, or had no whole header"},
    {"lost_file", "one of its files was gone"},
    {"last_resort", "its journal or log was given up on request"},
    {"unknown", "a newer library noted something that this one doesn't know"},
}};

const CauseText& text_of(OpeningCause cause) noexcept {
    const auto index = static_cast<std::size_t>(cause);
    return index < cause_texts.size() ? cause_texts[index] : cause_texts.back();
}

}  // namespace

std::string_view name_of(OpeningCause cause) noexcept { return text_of(cause).name; }

bool Restoration::needed() const noexcept {
    return (cause != OpeningCause::created && cause != OpeningCause::closed) || pages_healed != 0 || headers_repaired != 0;
}

std::vector<std::string> Restoration::done() const {
    std::vector<std::string> lines;
    const auto add = [&](std::uint64_t count, const char* thing, const std::string& what) {
        if (count != 0) lines.push_back(std::to_string(count) + " " + thing + (count == 1 ? " " : "s ") + what);
    };
    const std::string brought = read_only ? "shown, not brought into the files" : "brought into the files";
    add(snapshots_replayed, "save", "of the journal " + brought);
    add(transactions_replayed, "transaction", "of the log " + brought);
    add(records_cut, "torn record",
        std::string(read_only ? "left out" : "cut off") + (bytes_cut != 0 ? " (" + std::to_string(bytes_cut) + " bytes)" : "") +
            ", which nobody was told of");
    add(headers_repaired, "header", "written again from the other one");
    if (copies_levelled)
        lines.emplace_back(read_only ? "the newer of the two files shown" : "what one of the two files lacked copied from the other");
    if (backing_rebuilt)
        lines.emplace_back(read_only ? "the second copy shown for the heap's file" : "the heap's file built again from its second copy");
    if (data_rebuilt) lines.emplace_back("the second copy filled again from the heap's file");
    if (data_detached) lines.emplace_back("the second copy given up, as was asked for");
    add(pages_healed, "page", "restored from the copy that has it whole");
    return lines;
}

std::vector<std::string> Restoration::sentences() const {
    std::vector<std::string> lines = done();
    lines.emplace(lines.begin(), text_of(cause).sentence);
    return lines;
}

}  // namespace taiyen
