#pragma once
/// A random program of edits over all containers in nested scopes, undo, redo, saves and reopening, held against a model.
///
/// The model is a list of texts: the content after each step, and where the cursor stands. It knows nothing of pages, bytes or histories.
/// The program is a template over nothing but the heap's options, so that each capture mode can run it. Failures are thrown with seed and step.

#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "campaign_factor.hpp"
#include "containers/document.hpp"

namespace taiyen::undo::test {

struct RandomEditsOptions {
    PersistentOptions heap;
    UndoOptions history;
    std::uint32_t seed = 1;
    int verify_every = 500;      ///< steps between two calls of verify()
    bool outside_scopes = true;  ///< also edits without a scope
    bool reopens = true;         ///< also closes and opens the heap
    bool keeps_all = true;       ///< the history is large enough for all steps of the program
};

class RandomEdits {
public:
    using Document = taiyen::test::Document<taiyen::test::InHeap>;

    RandomEdits(std::filesystem::path path, RandomEditsOptions options)
        : path_(std::move(path)), options_(std::move(options)), random_(options_.seed), heap_(std::in_place, create_only, path_, options_.heap) {
        heap_->construct<Document>("document");
        heap_->snapshot();
        heap_->attach_undo(options_.history);
        states_ = {now()};
        heap_->snapshot();
        saved_ = {states_, at_};
    }

    /// Runs until that many steps were made, taken back or done again; returns how often the content was compared.
    std::uint64_t run(int steps) {
        for (made_ = 0; made_ < steps;) {
            turn();
            if (made_ / options_.verify_every != verified_) {
                verified_ = made_ / options_.verify_every;
                check(heap_->verify().ok(), "verify() finds damage");
            }
        }
        finish_implicit();
        while (at_ > 0 && step_back()) {}
        if (options_.keeps_all) check(at_ == 0, "undo stops before the first step");
        while (at_ + 1 < states_.size() && step_forward()) {}
        check(at_ + 1 == states_.size(), "redo stops before the last step");
        check(heap_->verify().ok(), "verify() finds damage at the end");
        return compared_;
    }
    SnapshotHeap& heap() { return *heap_; }

private:
    struct Thrown {};

    void check(bool right, const std::string& what) const {
        if (!right) throw std::logic_error("seed " + std::to_string(options_.seed) + ", step " + std::to_string(made_) + ": " + what);
    }
    void expect(const std::string& content, const char* after) {
        ++compared_;
        if (const std::string found = now(); found != content) {
            const auto at = static_cast<std::size_t>(
                std::mismatch(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), content.size())), content.begin())
                    .first -
                found.begin());
            const std::size_t from = at < 60 ? 0 : at - 60;
            check(false, std::string("the content differs after ") + after + ": …" + found.substr(from, 120) + "… instead of …" +
                             content.substr(from, 120) + "…");
        }
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

    Document& document() { return *heap_->find<Document>("document"); }
    /// The document, and the names of whatever else is in the heap.
    std::string now() {
        std::string text = taiyen::test::describe(document());
        for (int i = 0; i < 4; ++i)
            if (const auto* const extra = heap_->find<taiyen::vector<char>>("extra " + std::to_string(i)))
                text += "extra " + std::to_string(i) + ": " + std::to_string(extra->size()) + (extra->empty() ? ' ' : extra->front()) + '\n';
        return text;
    }

    void edit() {
        Document& d = document();
        if (below(40) == 0) {  // a block of its own, now and then large
            const std::string name = "extra " + std::to_string(below(4));
            if (auto* const extra = heap_->find<taiyen::vector<char>>(name); extra == nullptr) {
                heap_->construct<taiyen::vector<char>>(name).assign(below(10) == 0 ? 150'000 : below(3000), static_cast<char>('a' + below(26)));
            } else if (below(2) == 0) {
                heap_->destroy<taiyen::vector<char>>(name);
            } else {
                extra->resize(below(20'000), 'z');
                extra->shrink_to_fit();
            }
            return;
        }
        taiyen::test::change_once(d, random_);
        taiyen::test::keep_small(d, random_);
    }

    /// The body of a scope: edits, and scopes within.
    void edits(unsigned depth) {
        for (unsigned i = below(4); i-- > 0;) {
            edit();
            if (depth < 4 && below(5) == 0) inner(depth + 1);
        }
    }

    void inner(unsigned depth) {
        const std::string before = now();
        switch (below(4)) {
            case 0: {
                UndoScope scope(*heap_, "inner");
                edits(depth);
                const std::string content = now();
                scope.commit();
                expect(content, "the commit of an inner scope");
                break;
            }
            case 1: {
                UndoScope scope(*heap_);
                edits(depth);
                scope.cancel();
                expect(before, "the cancel of an inner scope");
                break;
            }
            case 2:
                try {
                    UndoScope scope(*heap_);
                    edits(depth);
                    throw Thrown();
                } catch (const Thrown&) {
                    expect(before, "an exception through an inner scope");
                }
                break;
            default: {
                const UndoScope scope(*heap_);
                edits(depth);
            }
        }
    }

    /// What was stored outside scopes is a step now.
    void finish_implicit() {
        if (!std::exchange(implicit_, false)) return;
        const bool is_step = heap_->can_undo();
        if (has_new_history()) return;
        check(is_step && heap_->undo_name().empty() && !heap_->can_redo(), "what was stored outside scopes is no step");
        keep(now());
    }
    /// A step that has no room in a small history, as a whole, ends it; another one begins.
    bool has_new_history() {
        if (heap_->has_undo()) return false;
        check(!options_.keeps_all && heap_->last_error() && heap_->last_error()->code() == errc::history_full, "the history has ended");
        heap_->attach_undo(options_.history);
        states_ = {now()};
        at_ = 0;
        return true;
    }
    void keep(std::string content) {
        states_.resize(at_ + 1);
        states_.push_back(std::move(content));
        ++at_;
        ++made_;
    }

    bool step_back() {
        if (!heap_->undo()) {
            check(!options_.keeps_all, "there is nothing to undo, but there was a step");
            states_.erase(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(at_));  // they fell off
            at_ = 0;
            return false;
        }
        ++made_;
        expect(states_[--at_], "undo");
        return true;
    }
    bool step_forward() {
        check(heap_->redo(), "there is nothing to redo, but there was a step");
        ++made_;
        expect(states_[++at_], "redo");
        return true;
    }

    void reopen(bool saved) {
        if (saved) {
            heap_->snapshot();
            saved_ = {states_, at_};
        }
        heap_.reset();
        heap_.emplace(open_only, path_, options_.heap);
        implicit_ = false;
        std::tie(states_, at_) = saved_;
        check(now() == states_[at_], "the content differs after reopening");
        heap_->attach_undo(options_.history);
    }

    void turn() {
        switch (const unsigned what = below(100); what) {
            case 0:
                finish_implicit();
                heap_->snapshot();
                saved_ = {states_, at_};
                break;
            case 1:
                if (options_.reopens && below(4) == 0) {
                    finish_implicit();
                    reopen(below(3) != 0);
                }
                break;
            case 2:
            case 3:
            case 4:
                if (options_.outside_scopes) {
                    Document& d = document();
                    edit();
                    d.numbers.push_back(++unique_);  // something changes for certain
                    implicit_ = true;
                }
                break;
            default:
                finish_implicit();
                if (what < 15) {
                    const std::string before = now();
                    UndoScope scope(*heap_, "cancelled");
                    edits(1);
                    scope.cancel();
                    expect(before, "cancel");
                    ++made_;
                } else if (what < 22) {
                    const std::string before = now();
                    try {
                        const UndoScope scope(*heap_, "thrown");
                        edits(1);
                        throw Thrown();
                    } catch (const Thrown&) {
                        expect(before, "an exception");
                        ++made_;
                    }
                } else if (what < 70) {
                    std::string content;
                    {
                        const UndoScope scope(*heap_, "kept");
                        edits(1);
                        content = now();
                    }
                    expect(content, "the end of a scope");
                    if (!has_new_history()) keep(std::move(content));
                } else if (what < 86) {
                    for (unsigned i = 1 + below(what == 70 ? 60 : 6); i-- > 0 && at_ > 0 && step_back();) {}
                } else {
                    for (unsigned i = 1 + below(what == 86 ? 60 : 6); i-- > 0 && at_ + 1 < states_.size() && step_forward();) {}
                }
        }
    }

    std::filesystem::path path_;
    RandomEditsOptions options_;
    std::mt19937 random_;
    std::optional<SnapshotHeap> heap_;
    std::vector<std::string> states_;  ///< the content after each step; [0]: before the first one that can be undone
    std::size_t at_ = 0;
    std::pair<std::vector<std::string>, std::size_t> saved_;
    bool implicit_ = false;
    int made_ = 0;
    int verified_ = 0;
    int unique_ = 10'000;
    std::uint64_t compared_ = 0;
};

}  // namespace taiyen::undo::test
