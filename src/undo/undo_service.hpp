#pragma once
/// UndoService: scopes and history of one open heap. It owns the recorder, takes part in saves, and outlives the heap as long as a scope holds it.
///
/// (I1) Everything that was captured since the last cut belongs to the innermost open scope; without one, to the implicit step to come.
/// (I2) `cancel` allocates nothing and calls nobody's code: what it needs was reserved when the scope, or an inner one, began.
/// (I3) A step that is applied is applied whole, or nothing is changed.
/// (I4) The history's cursor and the heap's bytes are saved in one record: what the cursor says is always true of the bytes beside it.
/// Thread rule: as the heap; the scopes of a heap that are open at one time belong to one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/undo/history.hpp>

#include "change/lent_blocks.hpp"
#include "change/procedure_calls.hpp"
#include "change/recorder.hpp"
#include "store/heap_file.hpp"
#include "undo/history.hpp"

namespace taiyen::undo {

class UndoService final : public store::SnapshotParticipant, public heap::WriteObserver, public std::enable_shared_from_this<UndoService> {
public:
    /// Null: the heap has none.
    static std::shared_ptr<UndoService> find(const store::HeapFile& file) noexcept;
    /// What makes recorders; tests put their own in its place.
    using RecorderMaker = std::unique_ptr<change::Recorder> (*)(Capture, heap::HeapCore&, ByteCount mapped, Audit);
    static RecorderMaker make_recorder;
    /// Joins one if the heap has none: capture starts. Throws: Error{read_only | not_instrumented | …}, std::bad_alloc, HeapFull.
    static std::shared_ptr<UndoService> of(store::HeapFile& file);

    // Scopes.
    void begin(std::string_view name);
    /// Ends the innermost scope. Throws: the scope is still open.
    void commit();
    void cancel() noexcept;
    std::size_t depth() const noexcept { return levels_.size(); }
    /// Whether a procedure is at work.
    bool in_call() const noexcept { return calls_.running(); }
    void touch(const void* address, ByteCount bytes);
    void call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments);
    /// Null: the heap is gone.
    store::HeapFile* file() const noexcept { return file_; }

    // History.
    void attach(const UndoOptions& options);
    bool live() const noexcept { return history_.has_value(); }
    void end_history();
    bool move(change::Direction direction);
    bool can_move(change::Direction direction);
    std::string name_of_next(change::Direction direction);
    std::vector<UndoStep> steps();
    void squash(std::size_t count, std::string_view name);
    void squash_since(UndoMark mark, std::string_view name);
    UndoMark mark();
    bool go_to(UndoMark mark);

    std::optional<Error> last_error() const { return last_error_; }
    void remember(const Error& error) noexcept;
    const change::Recorder& recorder() const { return *recorder_; }

    // store::SnapshotParticipant
    heap::WriteObserver* observer() override { return this; }
    void before_save() override;
    void saved() noexcept override;
    void extended(ByteCount from, ByteCount to) override { recorder_->extended(from, to); }
    void about_to_repair(PageNumber page) override;
    void before_close() override;
    void left() noexcept override;
    bool free_lent(void* block, std::uint32_t scope) noexcept override;
    bool lent_came_back(std::uint32_t scope) const noexcept override;

    // heap::WriteObserver: the engine's writes, on their way to the recorder
    void about_to_write(HeapOffset offset, ByteCount length) override;

private:
    /// A change set that is used again keeps no more memory than this.
    static constexpr ByteCount kept_bytes = ByteCount{1} << 20U;

    explicit UndoService(store::HeapFile& file);

    /// What an open scope has done, cut where an inner one began or a procedure was called.
    struct Segment {
        change::ChangeSet changes;
        change::ChangeSet call;  ///< not empty: what the step remembers instead of the changes
    };
    struct Level {
        std::size_t first_segment;
        std::uint32_t serial;
    };
    store::HeapFile& open_file() const;
    void require_idle(const char* what) const;
    /// Runs `action` on the history; bytes that contradict themselves end it.
    template <class F>
    auto on_history(F&& action);
    void end(errc code, const std::string& text) noexcept;
    void collect_implicit();
    void drop_uncaptured();
    void cut_segment();
    void apply_queued_frees();
    void keep_step();
    void keep(const NewStep& step) noexcept;
    void leave_level() noexcept;
    void between_scopes() noexcept;

    void apply_step(const StepView& step, change::Direction direction);
    void ensure_mapped(const change::ChangeSetView& changes);
    change::StoredCall call_in(const change::ChangeSetView& segment) const;
    [[noreturn]] void throw_conflict(std::uint64_t offset, const std::string& what) const;

    store::HeapFile* file_;  ///< null: the heap is gone
    std::unique_ptr<change::Recorder> recorder_;
    std::optional<UndoHistory> history_;
    std::optional<Error> last_error_;
    const std::uint64_t life_;  ///< random number of this opening

    std::vector<Level> levels_;
    std::vector<Segment> segments_;
    std::string name_;
    std::thread::id owner_;
    change::ChangeSet cut_;  ///< its memory is used again
    bool repaired_ = false;
    UndoHistory::Cursor cursor_{};        ///< for a planted bug only
    UndoHistory::Cursor saved_cursor_{};

    change::LentBlocks lent_;
    change::ProcedureCalls calls_;
    std::uint32_t implicit_serial_ = 0;  ///< of the time between scopes; 0: no history
};

}  // namespace taiyen::undo
