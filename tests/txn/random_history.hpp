#pragma once
/// A random program of scopes and transactions on a transactional heap with a history: undo, redo, squash, marks, rollbacks, snapshots, crashes and reopening, held against a model.
///
/// The model is a list of texts, the content after each step, their names, and where the cursor stands. Failures are thrown with seed and step.

#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "containers/document.hpp"
#include "store/heap_access.hpp"

namespace taiyen::txn::test {

struct RandomHistoryOptions {
    PersistentOptions heap;
    UndoOptions history;
    std::uint32_t seed = 1;
    unsigned large_bytes = 200'000;
    /// Called in each scope before anything is changed, with what declares a range.
    std::function<void(TransactionalHeap&, const std::function<void(void*, std::size_t)>&)> prepare = [](TransactionalHeap&, const auto&) {};
};

class RandomHistory {
public:
    using Document = taiyen::test::Document<taiyen::test::InHeap>;

    RandomHistory(std::filesystem::path directory, RandomHistoryOptions options)
        : directory_(std::move(directory)), path_(directory_ / "heap.tyn"), options_(std::move(options)), random_(options_.seed),
          heap_(std::in_place, create_only, path_, options_.heap) {
        {
            Transaction transaction(*heap_);
            prepare(transaction);
            heap_->construct<Document>("document");
            transaction.commit();
        }
        heap_->attach_undo(options_.history);
        begin_anew();
    }

    /// Returns how often the content was compared.
    std::uint64_t run(int steps) {
        for (step_ = 0; step_ < steps; ++step_) turn();
        while (at_ > 0) step_back();
        check(!heap_->undo(), "undo goes on before the first step");
        while (at_ + 1 < states_.size()) step_forward();
        check(!heap_->redo(), "redo goes on behind the last step");
        check(heap_->verify().ok(), "verify() finds damage");
        reopen();
        check(heap_->verify().ok(), "verify() finds damage after reopening");
        return compared_;
    }

private:
    struct Thrown {};
    struct State {
        std::string content;
        std::string name;  ///< of the step that led here
        UndoMark mark;
    };

    void check(bool right, const std::string& what) const {
        if (!right) throw std::logic_error("seed " + std::to_string(options_.seed) + ", step " + std::to_string(step_) + ": " + what);
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
    template <class Scope>
    void prepare(Scope& scope) {
        options_.prepare(*heap_, [&](void* address, std::size_t bytes) { scope.touch(address, bytes); });
    }
    Document& document() { return *heap_->find<Document>("document"); }
    std::string now() {
        std::string text = taiyen::test::describe(document());
        if (const auto* const extra = heap_->find<taiyen::vector<char>>("extra"))
            text += "extra: " + std::to_string(extra->size()) + (extra->empty() ? ' ' : extra->front()) + '\n';
        return text;
    }
    void expect(const std::string& content, const char* after) {
        ++compared_;
        check(now() == content, std::string("the content differs after ") + after);
        check(heap_->can_undo() == (at_ > 0) && heap_->can_redo() == (at_ + 1 < states_.size()),
              std::string("the history stands elsewhere after ") + after);
        check(heap_->undo_name() == (at_ > 0 ? states_[at_].name : ""), std::string("undo has another name after ") + after);
        check(heap_->redo_name() == (at_ + 1 < states_.size() ? states_[at_ + 1].name : ""), std::string("redo has another name after ") + after);
        check(heap_->undo_mark() == states_[at_].mark, std::string("another mark after ") + after);
    }

    void edit() {
        Document& d = document();
        d.numbers.push_back(++unique_);  // something changes for certain
        if (d.numbers.size() > 40) d.numbers.resize(20);
        if (below(30) == 0) {
            if (auto* const extra = heap_->find<taiyen::vector<char>>("extra"); extra == nullptr) {
                heap_->construct<taiyen::vector<char>>("extra").assign(below(8) == 0 ? options_.large_bytes : below(3000),
                                                                       static_cast<char>('a' + below(26)));
            } else {
                heap_->destroy<taiyen::vector<char>>("extra");
            }
            return;
        }
        taiyen::test::change_once(d, random_);
        taiyen::test::keep_small(d, random_);
    }
    void edits(unsigned depth) {
        for (unsigned i = 1 + below(3); i-- > 0;) {
            edit();
            if (depth > 2 || below(5) != 0) continue;
            if (below(2) == 0) {
                UndoScope scope(*heap_, "inner");
                edits(depth + 1);
                if (below(2) == 0) scope.commit();
            } else if (below(2) == 0) {
                const std::string before = now();
                {
                    UndoScope scope(*heap_, "inner");
                    edits(depth + 1);
                    scope.cancel();
                }
                check(now() == before, "the content differs after an inner cancel");
            } else {
                Transaction transaction(*heap_);
                edits(depth + 1);
                transaction.commit();
            }
        }
    }

    void begin_anew() {
        states_ = {{now(), "", heap_->undo_mark()}};
        at_ = 0;
    }
    void keep(std::string content, std::string name, const char* after) {
        states_.resize(at_ + 1);
        states_.push_back({std::move(content), std::move(name), heap_->undo_mark()});
        ++at_;
        expect(states_[at_].content, after);
    }
    void step_back() {
        check(heap_->undo(), "there is nothing to undo, but there was a step");
        --at_;
        expect(states_[at_].content, "undo");
    }
    void step_forward() {
        check(heap_->redo(), "there is nothing to redo, but there was a step");
        ++at_;
        expect(states_[at_].content, "redo");
    }
    /// Another room for the history, often one in which the oldest steps have none.
    void resize() {
        const std::size_t bytes = below(3) == 0 ? std::size_t{1} << 30U : std::size_t{16 + 4 * below(40)} << 10U;
        try {
            heap_->resize_undo(bytes);
        } catch (const Error& error) {
            check(error.code() == errc::history_full && at_ + 1 < states_.size(), std::string("resize_undo is refused: ") + error.what());
        }
        const auto dropped = static_cast<std::ptrdiff_t>(states_.size() - 1 - heap_->undo_steps().size());
        const std::string content = states_[at_].content;
        states_.erase(states_.begin(), states_.begin() + dropped);
        at_ -= static_cast<std::size_t>(dropped);
        expect(content, "another room for the history");
        heap_->resize_undo(std::size_t{1} << 30U);
    }
    void reattach(const char* after) {
        check(now() == states_[at_].content, std::string("the content differs after ") + after);
        if (below(3) == 0 && options_.history.persistent) {  // nothing was committed in between: the history waits
            heap_.reset();
            heap_.emplace(open_only, path_, options_.heap);
        }
        heap_->attach_undo(options_.history);
        if (!options_.history.persistent) {
            check(heap_->undo_steps().empty(), "a history in memory has outlived its process");
            begin_anew();
        }
        expect(states_[at_].content, after);
    }
    void reopen() {
        heap_.reset();
        heap_.emplace(open_only, path_, options_.heap);
        check(heap_->restoration().clean, "a heap that was closed is not clean");
        reattach("reopening");
    }
    void crash() {
        const std::filesystem::path left = directory_ / ("crash " + std::to_string(step_));
        std::filesystem::create_directory(left);
        {
            ReadLock lock(*heap_);
            heap_->wait_durable(lock.serial());
        }
        auto saves = std::optional(HeapAccess::file(*heap_).files().hold_saves());  // files of one moment
        for (const auto& file : std::filesystem::directory_iterator(path_.parent_path()))
            if (file.is_regular_file()) std::filesystem::copy_file(file.path(), left / file.path().filename());
        saves.reset();
        heap_.reset();
        const std::filesystem::path before = std::exchange(path_, left / "heap.tyn");
        for (const char* const suffix : {"", ".log", ".data"}) std::filesystem::remove(before.string() + suffix);
        if (!options_.heap.data_file.empty()) options_.heap.data_file = left / options_.heap.data_file.filename();
        if (below(4) == 0) {
            // A reader sees the same, and writes nothing.
            TransactionalHeap reader(open_read_only, path_, options_.heap);
            check(taiyen::test::describe(*reader.find<Document>("document")) ==
                      states_[at_].content.substr(0, taiyen::test::describe(*reader.find<Document>("document")).size()),
                  "a reader sees something else");
            check(reader.verify().ok(), "verify() finds damage for a reader");
        }
        if (options_.history.persistent && below(4) == 0) {  // another kind of heap takes both over, and gives them back
            SnapshotHeap other(open_only, path_, options_.heap);
            other.attach_undo();
            check(other.undo_name() == (at_ > 0 ? states_[at_].name : ""), "as a SnapshotHeap the heap has another history");
            other.close();
        }
        heap_.emplace(open_only, path_, options_.heap);
        reattach("a crash");
    }

    void turn() {
        const std::string before = states_[at_].content;
        switch (const unsigned what = below(100); what) {
            case 0:
            case 1:
                heap_->snapshot();
                expect(before, "a snapshot");
                break;
            case 2: reopen(); break;
            case 3:
            case 4: crash(); break;
            case 5:
                if (below(2) == 0) {
                    resize();
                    break;
                }
                heap_->rebuild();
                expect(before, "rebuilding");
                break;
            case 6:
            case 7:
            case 8: {
                const std::size_t target = below(static_cast<unsigned>(states_.size()));
                check(heap_->go_to(states_[target].mark), "a mark leads nowhere");
                at_ = target;
                expect(states_[at_].content, "going to a mark");
                break;
            }
            case 9:
            case 10:
            case 11: {
                const std::size_t count = 2 + below(3);
                if (at_ < count || at_ + 1 != states_.size()) break;
                if (below(2) == 0)
                    heap_->squash_undo(count, "squashed");
                else
                    heap_->squash_undo(states_[at_ - count].mark, "squashed");
                states_[at_ - count + 1] = {before, "squashed", states_[at_].mark};
                at_ = at_ - count + 1;
                states_.resize(at_ + 1);
                expect(before, "squashing");
                break;
            }
            default:
                if (what < 20) {
                    UndoScope scope(*heap_, "cancelled");
                    prepare(scope);
                    edits(1);
                    scope.cancel();
                    expect(before, "cancel");
                } else if (what < 25) {
                    try {
                        UndoScope scope(*heap_, "thrown");
                        prepare(scope);
                        edits(1);
                        throw Thrown();
                    } catch (const Thrown&) {
                        expect(before, "an exception");
                    }
                } else if (what < 30) {
                    const std::string name = "partly cancelled";
                    std::string content = cancel_partly(name);
                    keep(std::move(content), name, "a scope whose inner ones were cancelled");
                } else if (what < 40) {
                    Transaction transaction(*heap_);
                    prepare(transaction);
                    edits(1);
                    if (below(4) == 0) {
                        transaction.rollback();
                        expect(before, "a rollback");
                        break;
                    }
                    std::string content = now();
                    // The first named scope names the step.
                    const bool named = below(2) == 0;
                    if (named) UndoScope scope(*heap_, "named within");
                    transaction.commit();
                    states_.resize(at_ + 1);
                    states_.push_back({std::move(content), heap_->undo_name(), heap_->undo_mark()});
                    check(!named || !states_.back().name.empty(), "a scope within a transaction does not name its step");
                    ++at_;
                    expect(states_[at_].content, "a transaction");
                } else if (what < 70) {
                    const std::string name = "step " + std::to_string(step_);
                    std::string content;
                    {
                        UndoScope scope(*heap_, name);
                        prepare(scope);
                        if (below(10) != 0) edits(1);
                        content = now();
                        if (below(2) == 0) scope.commit();
                    }
                    keep(std::move(content), name, "the end of a scope");
                } else if (what < 86) {
                    for (unsigned i = 1 + below(6); i-- > 0 && at_ > 0;) step_back();
                } else {
                    for (unsigned i = 1 + below(6); i-- > 0 && at_ + 1 < states_.size();) step_forward();
                }
        }
    }
    std::string cancel_partly(const std::string& name) {
        UndoScope scope(*heap_, name);
        prepare(scope);
        if (below(4) != 0) edits(1);
        const std::string content = now();
        if (below(2) == 0) {
            UndoScope inner(*heap_, "cancelled");
            edits(2);
            inner.cancel();
        } else {
            Transaction inner(*heap_);
            edits(2);
        }
        check(now() == content, "the content differs after an inner rollback");
        if (below(2) == 0) scope.commit();
        return content;
    }

    std::filesystem::path directory_;
    std::filesystem::path path_;
    RandomHistoryOptions options_;
    std::mt19937 random_;
    std::optional<TransactionalHeap> heap_;
    std::vector<State> states_;  ///< [0]: before the first step
    std::size_t at_ = 0;
    int step_ = 0;
    int unique_ = 10'000;
    std::uint64_t compared_ = 0;
};

}  // namespace taiyen::txn::test
