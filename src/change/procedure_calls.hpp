#pragma once
/// ProcedureCalls: runs registered procedures on one heap, first when the program calls them, later when a stored call is done again or taken back.
///
/// A stored call stands for the bytes that it changed, so it has to give the same bytes each time. It carries the pages that it changed and their digests before and after:
/// (I1) A call is repeated only on pages whose digest is the recorded one, and what it made of them is compared with the other digest. Otherwise Error{history_conflict}.
/// (I2) A procedure that makes the engine write (allocates, frees, resizes) is never stored as a call, and not accepted when one is repeated.
/// (I3) What `call` throws leaves the heap as it was. What `repeat` changed before it threw is in its `changes`, for the caller to take back.
/// Thread rule: as the heap. The bytes of a call: procedure_layout.hpp.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <taiyen/base/units.hpp>

#include "change/change_set.hpp"
#include "change/procedures.hpp"
#include "change/recorder.hpp"
#include "heap/core.hpp"

namespace taiyen::change {

/// A stored call, proven against its own bytes and against the registry. A view into the entry.
struct StoredCall {
    std::string_view name;
    const Procedure* procedure;
    std::span<const std::byte> arguments;  ///< what the caller passed
    std::span<const std::byte> runs;       ///< CallRun …
    std::uint64_t digest_before;
    std::uint64_t digest_after;
};

/// The call that a procedure entry stores, of a heap of that capacity; `path`: what errors name. Throws: Error{corrupt | missing_procedure (none of that name, or with other types of
/// arguments)}.
StoredCall stored_call(const Entry& entry, ByteCount capacity, const std::filesystem::path& path);

/// Whether the bytes of a procedure entry are a call in a heap of that capacity, whatever procedures this program has.
bool is_call_sound(const Entry& entry, ByteCount capacity);

class ProcedureCalls {
public:
    /// `core` outlives every call.
    explicit ProcedureCalls(heap::HeapCore& core) : core_(core) {}

    /// Whether a procedure is at work.
    bool running() const noexcept { return running_; }
    /// The engine is about to write; the owner of its observer says so.
    void engine_writes() noexcept { engine_wrote_ = true; }

    /// A call by the program. Requires: a scope of the recorder is open, and everything before the call was cut. Afterwards it is cut, too: `changes` is what it changed, with memory reserved for taking it back; `call` the entry that may be stored
    /// instead: empty if the bytes are the shorter story, or the engine wrote. [0, mapped) of the span is usable.
    /// Throws: Error{scope_open (within a procedure) | missing_procedure | type_mismatch}, and what the procedure throws.
    void call(Recorder& recorder, ByteCount mapped, std::string_view name, const std::string& signature, std::span<const std::byte> arguments,
              ChangeSet& changes, ChangeSet& call);

    StoredCall stored(const Entry& entry) const { return stored_call(entry, core_.ranges().durable_bytes, core_.path()); }
    /// Forward: once more; backward: the inverse. Requires: a scope of the recorder is open, and everything before the call was cut.
    /// Throws: Error{history_conflict}, and what the procedure throws.
    void repeat(Recorder& recorder, ByteCount mapped, const StoredCall& call, Direction direction, ChangeSet& changes);
    /// Forward, where nothing captures: a log is replayed, and whoever replays throws the memory away if this throws. Throws: as `repeat`.
    void replay(ByteCount mapped, const StoredCall& call);

private:
    class Running;
    void run(const ErasedProcedure& procedure, std::span<const std::byte> arguments);
    std::uint64_t digest(ByteCount mapped, std::span<const std::byte> runs) const;
    std::uint64_t digest_before(const ChangeSet& changes, std::span<const std::byte> runs) const;
    void require_pages(ByteCount mapped, const StoredCall& call, Direction direction) const;
    void require_result(ByteCount mapped, const StoredCall& call, Direction direction) const;
    [[noreturn]] void throw_conflict(const StoredCall& call, const char* what) const;

    heap::HeapCore& core_;
    bool running_ = false;
    bool engine_wrote_ = false;
};

}  // namespace taiyen::change
