#pragma once
/// ChangeStep: a change that the library makes to an open heap: a transaction or a scope of its own, or a part of the one that this thread has open. Taken back unless it was committed.
/// On a heap with neither, the change counts with the next save.

#include <exception>
#include <memory>
#include <string_view>

#include "store/heap_file.hpp"
#include "txn/transaction_service.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::transfer {

class ChangeStep {
public:
    /// `name`: of the step in a history; a literal.
    ChangeStep(store::HeapFile& file, std::string_view name) : name_(name), undo_(undo::UndoService::find(file)) {
        if (file.kind() == HeapKind::transactional) edits_ = txn::TransactionService::of(file);
        is_part_ = (edits_ != nullptr ? edits_->depth() : undo_ ? undo_->depth() : 0) != 0;
        if (!is_part_) begin();
    }
    ChangeStep(const ChangeStep&) = delete;
    ChangeStep& operator=(const ChangeStep&) = delete;
    ~ChangeStep() {
        if (!is_open_) return;
        if (by_undo_) {
            undo_->cancel();
        } else if (has_changed_) {
            edits_->rollback();
        } else {  // a rollback takes relaxed loading back, too
            try {
                edits_->commit();
            } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nothing was to be kept
            }
        }
    }

    /// Whether this thread has a transaction or a scope open already.
    bool is_part() const noexcept { return is_part_; }
    /// From here on the heap changes. Before, what this thread has open goes on as if nothing had happened.
    void change() {
        has_changed_ = true;
        if (is_part_) begin();
    }
    /// Nothing was moved, after all: what this thread has open goes on.
    void leave() {
        if (is_part_) commit();
    }
    void commit() {
        if (!is_open_) return;
        if (by_undo_) {
            try {
                undo_->commit();
            } catch (...) {
                is_open_ = !undo_->failed_commit_ends();
                throw;
            }
            is_open_ = false;
        } else {
            is_open_ = false;  // whatever comes of it
            edits_->commit();
        }
    }

private:
    void begin() {
        by_undo_ = undo_ && (edits_ == nullptr || !is_part_);
        if (by_undo_)
            undo_->begin(name_);
        else if (edits_ != nullptr)
            edits_->begin();
        is_open_ = by_undo_ || edits_ != nullptr;
    }

    const std::string_view name_;
    std::shared_ptr<undo::UndoService> undo_;
    txn::TransactionService* edits_ = nullptr;
    bool is_part_ = false;
    bool by_undo_ = false;
    bool is_open_ = false;
    bool has_changed_ = false;
};

}  // namespace taiyen::transfer
