#pragma once
/// TransactionUndo: scopes and history of a heap with transactions.
///
/// A scope is a transaction, and each transaction that changes something, or was a scope, is a step. Undo, redo, squash, attaching and ending a history are transactions of their own.
///
/// (I1) The history changes at a commit only, under the writer lock, and a transaction that can't be committed leaves it as it was.
/// (I2) A persistent history lies in the heap's annex, and what a transaction changes there stands in the log beside what it changes in the span: after a crash both are of the same transaction.
/// (I3) To apply a step is to write: the bytes that it changes are captured and logged like the program's own, and rolled back if one of its parts can't be applied.
/// Thread rule: safe, as the heap's transactions; looking at the history takes a reader's lock.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "change/edits.hpp"
#include "undo/logged_memory.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::undo {

class TransactionUndo final : public UndoService, public change::StepKeeper, public std::enable_shared_from_this<TransactionUndo> {
public:
    static std::shared_ptr<TransactionUndo> of(store::HeapFile& file, change::Edits& edits);

    // UndoService
    void begin(std::string_view name) override;
    void commit() override { edits_->commit(change::Edits::Wait::durable); }
    bool failed_commit_ends() const noexcept override { return true; }
    void cancel() noexcept override { edits_->rollback(); }
    void commit_or_cancel() noexcept override;
    std::size_t depth() const noexcept override { return edits_->depth(); }
    bool in_call() const noexcept override { return edits_->depth() != 0 && edits_->in_call(); }
    void touch(const void* address, ByteCount bytes) override { edits_->touch(address, bytes); }
    void call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) override {
        edits_->call(name, signature, arguments);
    }
    store::HeapFile* file() const noexcept override { return file_.load(std::memory_order_acquire); }
    void attach(const UndoOptions& options) override;
    bool live() const noexcept override { return live_.load(std::memory_order_acquire); }
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
    std::optional<Error> last_error() const override;
    const change::Recorder& recorder() const override { return edits_->recorder(); }

    // change::StepKeeper
    void keep(std::uint32_t first, std::uint32_t last, std::span<const change::ChangeSetView> parts, change::ChangeSet& annex) override;
    void inner_ended(std::size_t depth, bool kept) noexcept override;
    void ended(bool kept) noexcept override;
    bool has_annex() const noexcept override { return history_.has_value() && persistent_; }
    void left() noexcept override;

private:
    TransactionUndo(store::HeapFile& file, std::shared_ptr<change::Edits> edits) : file_(&file), edits_(std::move(edits)) {}

    store::HeapFile& open_file() const;
    /// Runs `action` in a transaction that makes no step.
    template <class F>
    auto manage(const char* what, F&& action);
    /// Runs `action` while nobody changes the heap.
    template <class F>
    auto look(F&& action) const;
    std::unique_ptr<HistoryMemory> make_memory(const UndoOptions& options);
    /// The stored history, or a new one; an error: what is stored can't be believed, and is given up.
    std::optional<Error> begin_history(const UndoOptions& options);
    void give_up(std::optional<Error> reason);
    void keep_step(std::uint32_t first, std::uint32_t last, std::span<const change::ChangeSetView> parts);
    void apply_step(const StepView& step, change::Direction direction);
    void write(const change::ChangeSetView& changes, change::Direction direction);
    void remember(const std::exception& error) noexcept;
    void squash_now(std::size_t count, std::string_view name);

    std::atomic<store::HeapFile*> file_;  ///< null: the heap is gone
    const std::shared_ptr<change::Edits> edits_;
    std::atomic<bool> live_{false};
    bool persistent_ = false;

    // Of the open transaction:
    std::size_t scope_depth_ = 0;  ///< of the outermost transaction that is a scope, or had one within it; 0: there is none
    std::size_t name_depth_ = 0;   ///< the same of the one that `name_` comes from
    bool manages_ = false;         ///< it makes no step
    bool begun_ = false;           ///< its history is new
    bool adds_step_ = false;
    std::string name_;
    std::optional<UndoHistory> ending_;        ///< the history, if the transaction ends it
    std::unique_ptr<HistoryMemory> given_up_;  ///< what held something that is no history
    std::optional<Error> why_ended_;
    struct Moved {
        std::uint32_t first;
        std::uint32_t last;
        change::Direction direction;
    };
    std::optional<Moved> moved_;  ///< loans of the step that was undone or redone

    mutable std::mutex error_mutex_;
    std::optional<Error> last_error_;
};

}  // namespace taiyen::undo
