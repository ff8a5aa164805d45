// The undo history of a recorded life: its steps in the heap and in the model.

#include <stdexcept>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/undo/history.hpp>
#include <taiyen/undo/scope.hpp>

#include "crash/history_room.hpp"
#include "crash/txn_life.hpp"

namespace taiyen::crash {

void TxnLife::add_step(const std::string& name) {
    if (attached_)
        now_.steps.add(name, now_.objects);
    else
        now_.steps.end();
}

void TxnLife::resume() {
    if (!now_.steps.are_kept()) {
        attach();
        return;
    }
    const Serial before = now_.serial;
    heap_->attach_undo();
    attached_ = true;
    if (!setup_.scarce) return;
    match_steps();
    if (heap_->last_durable() == before) return;
    // It had ended, and begins anew, which is a transaction.
    now_.steps.begin(now_.objects);
    now_.serial = heap_->last_durable();
    history_.push_back(now_);
    issue(history_.size() - 1);
    acknowledge(history_.size() - 1);
}

void TxnLife::attach() {
    library_transaction([](TxnState& state) { state.steps.begin(state.objects); }, [&] { heap_->attach_undo(); });
    attached_ = true;
}

void TxnLife::step(const std::string& name, std::uint64_t seed, ByteCount size) {
    TxnState before = now_;
    const std::uint64_t number = history_.size();
    try {
        UndoScope scope(*heap_, name);
        try {
            Transaction inner(*heap_);  // declares ranges
            objects_.enter(inner);
            std::mt19937_64 random(seed);
            if (size != 0)
                objects_.set("large", size, seed);
            else
                objects_.change_something(random);
            objects_.set_number(history_.size());
            objects_.leave();
            inner.commit();
            now_.serial = {before.serial.value + 1};
            add_step(name);
            history_.push_back(now_);
        } catch (...) {
            objects_.leave();
            throw;
        }
        issue(number);
        scope.commit();
    } catch (...) {
        never_happened(number, before);
        throw;
    }
    acknowledge(number);
    note_lost_steps(number);
}

void TxnLife::note_lost_steps(std::uint64_t number) {
    if (!setup_.scarce || !attached_ || within_) return;
    match_steps();
    history_.replace(number, now_);
}

void TxnLife::require_steps(bool there) {
    if (!there) throw Error(errc::history_full, txn_path, "the history has lost these steps");
}

void TxnLife::match_steps() {
    if (!setup_.scarce || !attached_ || within_) return;
    now_.steps.lose_oldest(heap_->undo_steps(), now_.objects);
}

void TxnLife::undo() {
    match_steps();
    require_steps(!setup_.scarce || now_.steps.done() != 0);
    library_transaction([](TxnState& state) { state.objects = state.steps.undo(); },
                        [&] {
                            if (!heap_->undo()) throw std::runtime_error("there is nothing to undo");
                        });
}

void TxnLife::redo() {
    match_steps();
    require_steps(!setup_.scarce || now_.steps.undone() != 0);
    library_transaction([](TxnState& state) { state.objects = state.steps.redo(); },
                        [&] {
                            if (!heap_->redo()) throw std::runtime_error("there is nothing to redo");
                        });
}

void TxnLife::squash(std::size_t count, const std::string& name) {
    match_steps();
    require_steps(!setup_.scarce || now_.steps.done() >= count);
    library_transaction([&](TxnState& state) { state.steps.squash(count, name); }, [&] { heap_->squash_undo(count, name); });
}

void TxnLife::resize_history(ByteCount bytes) {
    match_steps();
    const std::vector<UndoStep> steps = heap_->undo_steps();
    require_steps(!setup_.scarce || !steps.empty());
    ByteCount total = page_bytes;
    for (const UndoStep& step : steps) total += step.bytes;
    std::size_t dropped = 0;
    for (; total > bytes; ++dropped) total -= steps[dropped].bytes;
    library_transaction([&](TxnState& state) { state.steps.resize(bytes, dropped); }, [&] { heap_->resize_undo(bytes); });
}

void TxnLife::prove_history(bool all) {
    heap_->attach_undo();
    attached_ = true;
    match_steps();
    now_.steps.compare(heap_->undo_steps());
    if (now_.steps.are_kept() && !setup_.scarce && history_room(*file_) != now_.steps.room())
        throw std::runtime_error("the history has room for " + std::to_string(history_room(*file_)) + " bytes");
    if (!all || !now_.steps.are_kept()) return;
    const std::vector<TxnState::Objects>& contents = now_.steps.contents();
    for (std::size_t at = now_.steps.done(); at-- > 0;) {
        if (!heap_->undo()) throw std::runtime_error("a step of the history can't be undone");
        objects_.compare(contents[at], "the undone step " + std::to_string(at));
    }
    for (std::size_t at = 1; at < contents.size(); ++at) {
        if (!heap_->redo()) throw std::runtime_error("a step of the history can't be redone");
        objects_.compare(contents[at], "the redone step " + std::to_string(at - 1));
    }
}

}  // namespace taiyen::crash
