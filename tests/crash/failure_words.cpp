#include "crash/failure_words.hpp"

#include <algorithm>
#include <filesystem>

namespace taiyen::crash {
namespace {

const char* name_of(io::Operation::Kind kind) {
    switch (kind) {
        case io::Operation::Kind::opened: return "opening";
        case io::Operation::Kind::created: return "creating";
        case io::Operation::Kind::created_unnamed: return "creating unnamed";
        case io::Operation::Kind::published: return "naming";
        case io::Operation::Kind::renamed: return "renaming";
        case io::Operation::Kind::removed: return "removing";
        case io::Operation::Kind::directory_synced: return "sync of the directory";
        case io::Operation::Kind::written: return "write to";
        case io::Operation::Kind::durably_written: return "durable write to";
        case io::Operation::Kind::synced: return "sync of";
        case io::Operation::Kind::allocated: return "allocating in";
        case io::Operation::Kind::punched: return "punching";
        case io::Operation::Kind::resized: return "resizing";
        case io::Operation::Kind::issued: return "begin of save";
        case io::Operation::Kind::acknowledged: return "end of save";
    }
    return "?";
}

std::string words_of(const io::Operation& operation, const io::Trace& trace, std::size_t number) {
    std::string words = std::string(name_of(operation.kind)) + " ";
    if (operation.kind == io::Operation::Kind::issued || operation.kind == io::Operation::Kind::acknowledged)
        return words + std::to_string(operation.number);
    std::filesystem::path path = operation.path;
    for (std::size_t i = std::min(number + 1, trace.size()); i-- > 0 && path.empty();)
        if (trace[i].file == operation.file) path = trace[i].path;
    words += path.filename().string();
    if (!operation.bytes.empty())
        words += " at " + std::to_string(operation.offset) + ", " + std::to_string(operation.bytes.size()) + " bytes";
    else if (operation.length != 0)
        words += " (" + std::to_string(operation.offset) + ", " + std::to_string(operation.length) + ")";
    return words;
}

}  // namespace

std::string words_of(const Replay& replay, const Replay::Selection& selection, const io::Trace& trace, std::size_t cut, bool names_surviving) {
    std::string words = cut < trace.size() ? "during the " + words_of(trace[cut], trace, cut) : std::string("after the last operation");
    words += names_surviving ? "; reached the disk:" : "; missing:";
    bool any = false;
    for (const Replay::Pending& pending : replay.pending()) {
        std::size_t count = 0;
        std::size_t zeroed = 0;
        std::size_t first = pending.units;
        for (std::size_t u = 0; u < pending.units; ++u) {
            const std::uint8_t unit = selection[pending.first_unit + u];
            zeroed += unit == 2 ? 1 : 0;
            if ((unit == 1) == names_surviving) {
                first = std::min(first, u);
                ++count;
            }
        }
        if (count != 0) {
            words += std::string(any ? "; " : " ") + std::to_string(count) + " of " + std::to_string(pending.units) +
                     (pending.units == 1 ? " unit" : " units") + " of the " + words_of(trace[pending.number], trace, pending.number) +
                     (count < pending.units ? " from unit " + std::to_string(first) : "") + (zeroed != 0 ? ", zeroed" : "");
            any = true;
        }
    }
    words += any ? "" : " nothing";
    return words;
}

}  // namespace taiyen::crash
