#pragma once
/// SnapshotUndo: scopes and history of a heap that the program saves. It owns the recorder and takes part in saves.
///
/// (I1) What was captured since the last cut while no scope is open belongs to the implicit step to come; else: change::OpenScopes.
/// (I2) `cancel` allocates nothing and calls nobody's code. Where the system refuses to open pages that it needs, the heap is poisoned.
/// Thread rule: as the heap; the scopes of a heap that are open at one time belong to one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/error.hpp>

#include "base/thread_number.hpp"
#include "change/loans.hpp"
#include "change/open_scopes.hpp"
#include "store/heap_file.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::undo {

class SnapshotUndo final : public UndoService,
                           public store::SnapshotParticipant,
                           public heap::WriteObserver,
                           public std::enable_shared_from_this<SnapshotUndo> {
public:
    /// Requires: the heap has no participant. Throws: as UndoService::of.
    static std::shared_ptr<SnapshotUndo> join(store::HeapFile& file);

    // UndoService
    void begin(std::string_view name) override;
    void commit() override;
    bool failed_commit_ends() const noexcept override { return false; }
    void cancel() noexcept override;
    void commit_or_cancel() noexcept override;
    std::size_t depth() const noexcept override { return scopes_.depth(); }
    bool in_call() const noexcept override { return scopes_.in_call(); }
    void touch(const void* address, ByteCount bytes) override;
    void call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) override;
    store::HeapFile* file() const noexcept override { return file_; }
    void attach(const UndoOptions& options) override;
    bool live() const noexcept override { return history_.has_value(); }
    void end_history() override;
    bool move(change::Direction direction) override;
    bool can_move(change::Direction direction) override;
    std::string name_of_next(change::Direction direction) override;
    std::vector<UndoStep> steps() override;
    void squash(std::size_t count, std::string_view name) override;
    void squash_since(UndoMark mark, std::string_view name) override;
    void resize(std::size_t bytes) override;
    UndoMark mark() override;
    bool go_to(UndoMark mark) override;
    std::optional<Error> last_error() const override { return last_error_; }
    const change::Recorder& recorder() const override { return scopes_.recorder(); }

    // store::SnapshotParticipant
    heap::WriteObserver* observer() override { return this; }
    void before_save() override;
    void saved() noexcept override;
    void extended(ByteCount from, ByteCount to) override { scopes_.recorder().extended(from, to); }
    void about_to_restore(PageNumber page) override;
    bool keeps_open(PageNumber page) const noexcept override { return scopes_.recorder().keeps_open(page); }
    void before_close() override;
    void left() noexcept override;
    bool free_lent(void* block, std::uint32_t scope) noexcept override;
    bool lent_came_back(std::uint32_t scope) const noexcept override;

    // heap::WriteObserver: the engine's writes, on their way to the recorder
    void about_to_write(HeapOffset offset, ByteCount length) override;

private:
    /// A change set that is used again keeps no more memory than this.
    static constexpr ByteCount kept_bytes = ByteCount{1} << 20U;

    explicit SnapshotUndo(store::HeapFile& file);
    void remember(const Error& error) noexcept;

    store::HeapFile& open_file() const;
    void require_idle(const char* what) const;
    /// Runs `action` on the history; bytes that contradict themselves end it.
    template <class F>
    auto on_history(F&& action);
    void end(errc code, const std::string& text) noexcept;
    void collect_implicit();
    void drop_uncaptured();
    void write_notes_if_changed();
    void begin_inner();
    /// What a scope has touched isn't captured any more.
    void poison_if_doomed(const char* why) noexcept;
    std::uint32_t begin_loan();
    void keep_step();
    void keep(const NewStep& step) noexcept;
    void end_outermost(bool kept) noexcept;
    void between_scopes() noexcept;

    void apply_step(const StepView& step, change::Direction direction);
    change::StoredCall call_in(const change::ChangeSetView& segment) { return scopes_.calls().stored(call_entry(segment)); }

    store::HeapFile* file_;  ///< null: the heap is gone
    change::OpenScopes scopes_;
    std::optional<Error> last_error_;

    std::string name_;
    ThreadNumber owner_ = 0;
    change::ChangeSet cut_;  ///< of an implicit step; its memory is used again
#ifdef TAIYEN_PLANTED_BUGS
    UndoHistory::Cursor cursor_{};  ///< for Bug::cursor_outside_record
    UndoHistory::Cursor saved_cursor_{};
#endif

    change::Loans loans_;                ///< of scopes, and of the times between them
    std::uint32_t implicit_number_ = 0;  ///< of the time between scopes; 0: no history
};

}  // namespace taiyen::undo
