#include "change/procedure_calls.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "change/procedure_layout.hpp"

namespace taiyen::change {
namespace {

using layout::CallHead;
using layout::CallRun;

std::span<const std::byte> bytes_of(const auto& value) { return std::as_bytes(std::span(&value, 1)); }

/// Calls `visit(first page, count)` for each run.
template <class F>
void for_each_run(std::span<const std::byte> runs, F&& visit) {
    for (; !runs.empty(); runs = runs.subspan(sizeof(CallRun))) {
        CallRun run;
        std::memcpy(&run, runs.data(), sizeof run);
        visit(run.first, run.count);
    }
}

/// The pages of the set's entries, as ascending runs.
std::vector<CallRun> changed_pages(const ChangeSetView& changes) {
    std::vector<CallRun> runs;
    changes.for_each(Direction::forward, [&](const Entry& entry) {
        const std::uint64_t first = page_of(entry.where).value;
        const std::uint64_t end = (entry.where.value + entry.length - 1) / page_bytes + 1;
        if (!runs.empty() && first >= runs.back().first && first <= runs.back().first + runs.back().count)
            runs.back().count = std::max(runs.back().count, end - runs.back().first);
        else
            runs.push_back({first, end - first});
    });
    std::ranges::sort(runs, {}, &CallRun::first);
    std::vector<CallRun> merged;
    for (const CallRun& run : runs)
        if (!merged.empty() && run.first <= merged.back().first + merged.back().count)
            merged.back().count = std::max(merged.back().count, run.first + run.count - merged.back().first);
        else
            merged.push_back(run);
    return merged;
}

}  // namespace

/// A procedure is at work.
class ProcedureCalls::Running {
public:
    explicit Running(ProcedureCalls& calls) : calls_(calls) {
        calls.running_ = true;
        calls.engine_wrote_ = false;
    }
    ~Running() { calls_.running_ = false; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

private:
    ProcedureCalls& calls_;
};

void ProcedureCalls::run(const ErasedProcedure& procedure, std::span<const std::byte> arguments) {
    const Running running(*this);
    ProcedureHeap heap(core_);
    procedure(heap, arguments);
}

std::uint64_t ProcedureCalls::digest(ByteCount mapped, std::span<const std::byte> runs) const {
    std::uint64_t sum = layout::call_seed;
    const auto* const span = reinterpret_cast<const std::byte*>(core_.ranges().durable);
    for_each_run(runs, [&](std::uint64_t first, std::uint64_t count) {
        const std::uint64_t end = std::min(first + count, mapped / page_bytes);
        for (std::uint64_t page = first; page < end; ++page) sum = checksum({span + page * page_bytes, page_bytes}, mix(sum, page));
    });
    return sum;
}

/// The same of the bytes before the changes. Requires: the heap stands behind them.
std::uint64_t ProcedureCalls::digest_before(const ChangeSet& changes, std::span<const std::byte> runs) const {
    // Entries of one cut ascend, or nearly: each page is put together from what stands there and what stood there.
    struct Piece {
        std::uint64_t where;
        std::uint64_t length;
        std::span<const std::byte> before;
    };
    std::vector<Piece> pieces;
    changes.for_each(Direction::forward, [&](const Entry& entry) { pieces.push_back({entry.where.value, entry.length, entry.before}); });
    std::ranges::sort(pieces, {}, &Piece::where);
    std::uint64_t sum = layout::call_seed;
    std::size_t next = 0;
    const auto* const span = reinterpret_cast<const std::byte*>(core_.ranges().durable);
    std::vector<std::byte> image(page_bytes);
    for_each_run(runs, [&](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t page = first; page < first + count; ++page) {
            const std::uint64_t begin = page * page_bytes;
            std::memcpy(image.data(), span + begin, page_bytes);
            while (next < pieces.size() && pieces[next].where + pieces[next].length <= begin) ++next;
            for (std::size_t i = next; i < pieces.size() && pieces[i].where < begin + page_bytes; ++i) {
                const Piece& piece = pieces[i];
                const std::uint64_t from = std::max(piece.where, begin);
                const std::uint64_t to = std::min(piece.where + piece.length, begin + page_bytes);
                if (piece.before.empty())
                    std::memset(image.data() + (from - begin), 0, to - from);
                else
                    std::memcpy(image.data() + (from - begin), piece.before.data() + (from - piece.where), to - from);
            }
            sum = checksum(image, mix(sum, page));
        }
    });
    return sum;
}

void ProcedureCalls::call(Recorder& recorder, ByteCount mapped, std::string_view name, const std::string& signature,
                          std::span<const std::byte> arguments, ChangeSet& changes, ChangeSet& call) {
    if (running_) throw Error(errc::scope_open, core_.path(), "a procedure can't call another one through the scope; call its function");
    const Procedure* const procedure = find_procedure(name);
    if (procedure == nullptr) {
        throw Error(errc::missing_procedure, core_.path(),
                    "there is no procedure '" + std::string(name) + "'; register it first (register_procedure)");
    }
    if (procedure->signature != signature) {
        throw Error(errc::type_mismatch, core_.path(),
                    "the procedure '" + std::string(name) + "' was registered with other types of arguments than it is called with");
    }
    try {
        run(procedure->forward, arguments);
        recorder.cut(changes);
    } catch (...) {
        recorder.restore();
        throw;
    }
    try {
        recorder.reserve_for(changes);
        if (engine_wrote_) return;
        const std::vector<CallRun> runs = changed_pages(changes);
        const auto run_bytes = std::as_bytes(std::span(runs));
        const CallHead head{procedure->signature_checksum, digest_before(changes, run_bytes), runs.size()};
        std::vector<std::byte> stored;
        for (const auto part : {bytes_of(head), run_bytes, arguments}) stored.insert(stored.end(), part.begin(), part.end());
        call.add_procedure(name, stored, digest(mapped, run_bytes));
        if (call.size() >= changes.size()) call.clear();  // the bytes are the shorter story, and the surer one
    } catch (...) {
        recorder.apply(changes, Direction::backward);
        throw;
    }
}

bool is_call_sound(const Entry& entry, ByteCount capacity) {
    CallHead head{};
    if (entry.kind != EntryKind::procedure || entry.arguments.size() < sizeof head) return false;
    std::memcpy(&head, entry.arguments.data(), sizeof head);
    const auto rest = entry.arguments.subspan(sizeof head);
    if (head.runs > rest.size() / sizeof(CallRun)) return false;
    bool sound = true;
    std::uint64_t end = 0;
    for_each_run(rest.first(head.runs * sizeof(CallRun)), [&](std::uint64_t first, std::uint64_t count) {
        const std::uint64_t pages = capacity / page_bytes;
        sound = sound && first >= end && first <= pages && count != 0 && count <= pages - first;
        end = first + count;
    });
    return sound;
}

StoredCall stored_call(const Entry& entry, ByteCount capacity, const std::filesystem::path& path) {
    if (!is_call_sound(entry, capacity)) throw Error(errc::corrupt, "a procedure's call is impossible");
    CallHead head{};
    std::memcpy(&head, entry.arguments.data(), sizeof head);
    const auto rest = entry.arguments.subspan(sizeof head);
    const StoredCall call{entry.name,
                          find_procedure(entry.name),
                          rest.subspan(head.runs * sizeof(CallRun)),
                          rest.first(head.runs * sizeof(CallRun)),
                          head.digest_before,
                          entry.digest};
    if (call.procedure == nullptr) {
        throw Error(errc::missing_procedure, path,
                    "the procedure '" + std::string(call.name) +
                        "' is to be called again, and this program has not registered it (register_procedure); nothing was changed");
    }
    if (call.procedure->signature_checksum != head.signature) {
        throw Error(errc::missing_procedure, path,
                    "a procedure '" + std::string(call.name) +
                        "' with other types of arguments than the one this program has registered is to be called again; nothing was changed");
    }
    return call;
}

void ProcedureCalls::throw_conflict(const StoredCall& call, const char* what) const {
    throw Error(errc::history_conflict, core_.path(), "procedure '" + std::string(call.name) + "': " + what + "; nothing was changed");
}

void ProcedureCalls::require_pages(ByteCount mapped, const StoredCall& call, Direction direction) const {
    if (digest(mapped, call.runs) != (direction == Direction::backward ? call.digest_after : call.digest_before))
        throw_conflict(call, "the pages that it changed are not as the step left them");
}

void ProcedureCalls::require_result(ByteCount mapped, const StoredCall& call, Direction direction) const {
    if (planted(Bug::call_outcome_unchecked)) return;
    const bool back = direction == Direction::backward;
    if (engine_wrote_ || digest(mapped, call.runs) != (back ? call.digest_before : call.digest_after)) {
        throw_conflict(call, back ? "its inverse did not restore the bytes that were there before the call"
                                  : "called again it gave other bytes than the first time");
    }
}

void ProcedureCalls::repeat(Recorder& recorder, ByteCount mapped, const StoredCall& call, Direction direction, ChangeSet& changes) {
    require_pages(mapped, call, direction);
    const heap::TypeNotes::Trust trust(core_.type_notes());
    try {
        run(direction == Direction::backward ? call.procedure->inverse : call.procedure->forward, call.arguments);
        recorder.cut(changes);
    } catch (...) {
        recorder.restore();
        throw;
    }
    recorder.reserve_for(changes);
    require_result(mapped, call, direction);
    for (const CallRun& changed : changed_pages(changes)) {
        bool inside = false;
        for_each_run(call.runs, [&](std::uint64_t first, std::uint64_t count) {
            inside = inside || (changed.first >= first && changed.first + changed.count <= first + count);
        });
        if (!inside) throw_conflict(call, "it changed pages that it did not change the first time");
    }
}

void ProcedureCalls::replay(ByteCount mapped, const StoredCall& call) {
    require_pages(mapped, call, Direction::forward);
    const heap::TypeNotes::Trust trust(core_.type_notes());
    run(call.procedure->forward, call.arguments);
    require_result(mapped, call, Direction::forward);
}

}  // namespace taiyen::change
