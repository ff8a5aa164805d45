#pragma once
/// A random program of transactions within transactions, to any depth, held against a model of standard containers.
///
/// At each begin the model is kept; an inner transaction that is rolled back, however it ends, must leave the heap as the model was then, with the blocks of then, and what follows must go on from there.
/// Failures are thrown with seed and step.

#include <taiyen/taiyen.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "store/heap_access.hpp"
#include "txn/txn_fixture.hpp"

namespace taiyen::txn::test {

struct RandomNestingOptions {
    PersistentOptions heap;
    std::uint32_t seed = 1;
    unsigned depth_max = 5;
    bool history = false;
    unsigned large_bytes = 700'000;
    /// Called in each outermost transaction before anything is changed.
    std::function<void(TransactionalHeap&, Transaction&)> prepare = [](TransactionalHeap&, Transaction&) {};
};

class RandomNesting {
public:
    explicit RandomNesting(RandomNestingOptions options) : options_(std::move(options)), random_(options_.seed) {
        disk_.replace(options_.heap);
        Transaction transaction(heap());
        options_.prepare(heap(), transaction);
        heap().construct<Numbers>("numbers");
        heap().construct<Texts>("texts");
        transaction.commit();
        if (options_.history) heap().attach_undo();
    }

    /// Returns how many inner transactions were rolled back.
    std::uint64_t run(int steps) {
        for (step_ = 0; step_ < steps; ++step_) turn();
        check(heap().verify().ok(), "verify() finds damage");
        return rolled_back_;
    }

private:
    using Numbers = taiyen::vector<int>;
    using Texts = taiyen::map<int, taiyen::string>;
    struct Thrown {
        unsigned to;  ///< the depth of the transaction that catches it, once it is over
    };
    struct Raw {
        std::uint64_t* words;
        std::uint64_t count;
        std::uint64_t value;
    };
    struct Model {
        std::vector<int> numbers;
        std::map<int, std::string> texts;
        std::map<std::string, std::vector<char>> named;
        std::vector<Raw> raw;
    };

    void check(bool right, const std::string& what) const {
        if (!right) throw std::logic_error("seed " + std::to_string(options_.seed) + ", step " + std::to_string(step_) + ": " + what);
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
    TransactionalHeap& heap() { return *disk_.heap; }
    Numbers& numbers() { return *heap().find<Numbers>("numbers"); }
    Texts& texts() { return *heap().find<Texts>("texts"); }
    std::uint64_t blocks() { return HeapAccess::file(heap()).engine().stats().live_blocks; }

    void compare(const std::string& after) {
        const Numbers& numbers = this->numbers();
        check(std::vector<int>(numbers.begin(), numbers.end()) == model_.numbers, "other numbers after " + after);
        const Texts& texts = this->texts();
        check(texts.size() == model_.texts.size(), "another number of texts after " + after);
        for (const auto& [key, text] : texts) {
            const auto expected = model_.texts.find(key);
            check(expected != model_.texts.end() && std::string_view(text) == expected->second, "another text after " + after);
        }
        for (int i = 0; i < names; ++i) {
            const std::string name = "named " + std::to_string(i);
            const auto* const found = heap().find<taiyen::vector<char>>(name);
            const auto expected = model_.named.find(name);
            check((found != nullptr) == (expected != model_.named.end()), "other names after " + after);
            if (found != nullptr) check(std::vector<char>(found->begin(), found->end()) == expected->second, "another named object after " + after);
        }
        for (const Raw& raw : model_.raw) {
            check(HeapAccess::file(heap()).engine().is_block(raw.words), "a block is gone after " + after);
            check(raw.words[0] == raw.value && raw.words[raw.count - 1] == raw.value, "other words after " + after);
        }
    }

    std::string some_text() { return std::string(below(120), static_cast<char>('a' + below(26))); }
    void write(Raw& raw) {
        raw.value = random_();
        raw.words[0] = raw.value;
        raw.words[raw.count - 1] = raw.value;
    }

    void edit() {
        switch (below(12)) {
            case 0:
            case 1: {
                numbers().push_back(step_);
                model_.numbers.push_back(step_);
                break;
            }
            case 2:
                if (model_.numbers.empty()) break;
                if (const std::size_t at = below(static_cast<unsigned>(model_.numbers.size())); below(4) != 0) {
                    numbers()[at] = model_.numbers[at] = static_cast<int>(random_());
                } else {
                    numbers().resize(at);
                    numbers().shrink_to_fit();
                    model_.numbers.resize(at);
                }
                break;
            case 3:
            case 4:
            case 5: {
                const int key = static_cast<int>(below(40));
                const std::string text = some_text();
                texts()[key] = text;
                model_.texts[key] = text;
                break;
            }
            case 6: {
                const int key = static_cast<int>(below(40));
                texts().erase(key);
                model_.texts.erase(key);
                break;
            }
            case 7: {  // out of the heap and into it again
                if (model_.texts.empty()) break;
                const int from = model_.texts.begin()->first;
                const int to = static_cast<int>(below(40));
                taiyen::string outside = std::move(texts()[from]);
                texts()[from] = "moved";
                texts()[to] = std::move(outside);
                std::string text = std::move(model_.texts[from]);
                model_.texts[from] = "moved";
                model_.texts[to] = std::move(text);
                break;
            }
            case 8: {
                const std::string name = "named " + std::to_string(below(names));
                if (model_.named.erase(name) != 0) {
                    heap().destroy<taiyen::vector<char>>(name);
                } else {
                    const std::size_t bytes = below(40) == 0 ? options_.large_bytes : below(5000);
                    const char value = static_cast<char>('a' + below(26));
                    heap().construct<taiyen::vector<char>>(name).assign(bytes, value);
                    model_.named[name].assign(bytes, value);
                }
                break;
            }
            case 9: {
                if (model_.raw.size() > 30) break;
                const std::uint64_t count = 1 + below(below(10) == 0 ? 4000 : 40);
                Raw made{static_cast<std::uint64_t*>(heap().allocate(count * sizeof(std::uint64_t))), count, 0};
                write(made);
                model_.raw.push_back(made);
                break;
            }
            case 10:
                if (model_.raw.empty()) break;
                write(model_.raw[below(static_cast<unsigned>(model_.raw.size()))]);
                break;
            default:
                if (model_.raw.empty()) break;
                if (const std::size_t at = below(static_cast<unsigned>(model_.raw.size())); below(2) == 0) {
                    heap().deallocate(model_.raw[at].words);
                    model_.raw.erase(model_.raw.begin() + static_cast<std::ptrdiff_t>(at));
                }
        }
    }

    void edits(unsigned depth) {
        for (unsigned i = below(5); i-- > 0;) {
            edit();
            if (depth < options_.depth_max && below(3) == 0) inner(depth + 1);
        }
    }

    /// How it ended; false: it was rolled back.
    bool run_inner(unsigned depth) {
        const unsigned end = below(5);
        const auto finish = [&](auto&& keep, auto&& take_back) {
            edits(depth);
            if (end == 0) throw Thrown{1 + below(depth - 1)};
            if (end == 1) return take_back();
            if (end == 2) return false;
            keep();
            return true;
        };
        switch (below(3)) {
            case 0: {
                Transaction transaction(heap());
                return finish([&] { transaction.commit(); },
                              [&] {
                                  transaction.rollback();
                                  return false;
                              });
            }
            case 1: {
                const bool throws = end < 3;
                transact(heap(), [&] {
                    edits(depth);
                    if (throws) throw Thrown{depth - 1};
                });
                return true;
            }
            default: {
                UndoScope scope(heap(), depth % 2 == 0 ? "inner" : "");
                const bool kept = finish([&] { scope.commit(); },
                                         [&] {
                                             scope.cancel();
                                             return false;
                                         });
                return kept || end == 2;  // its destructor keeps it
            }
        }
    }
    void inner(unsigned depth) {
        Model before = model_;
        const std::uint64_t blocks_before = blocks();
        const auto is_as_before = [&](const char* after) {
            model_ = std::move(before);
            ++rolled_back_;
            compare(after);
            check(blocks() == blocks_before, std::string("another number of blocks after ") + after);
            if (below(50) == 0) check(HeapAccess::file(heap()).engine().check(1).empty(), std::string("the engine finds damage after ") + after);
        };
        try {
            if (run_inner(depth))
                compare("an inner commit");
            else
                is_as_before("an inner rollback");
        } catch (const Thrown& thrown) {
            is_as_before("an exception");
            if (depth - 1 > thrown.to) throw;
        }
    }

    void turn() {
        Model before = model_;
        bool kept = false;
        try {
            Transaction transaction(heap());
            options_.prepare(heap(), transaction);
            numbers().push_back(-step_);
            model_.numbers.push_back(-step_);
            edits(1);
            if (model_.numbers.size() > 200) {
                numbers().clear();
                model_.numbers.clear();
            }
            if (below(5) != 0) {
                transaction.commit();
                kept = true;
            }
        } catch (const Thrown&) {
            check(false, "an exception goes on beyond its transaction");
        }
        if (!kept) model_ = before;
        Model after = model_;
        compare(kept ? "a commit" : "a rollback");
        check(HeapAccess::file(heap()).held().size() == 0, "something is held, after a commit or a rollback");
        if (kept && options_.history) {
            model_ = std::move(before);
            check(heap().undo(), "there is no step");
            compare("undo");
            model_ = std::move(after);
            check(heap().redo(), "there is no step to redo");
            compare("redo");
        }
        if (below(20) != 0) return;
        const auto places = HeapAccess::file(heap()).ranges().durable;
        disk_.crash();
        check(HeapAccess::file(heap()).ranges().durable == places, "the heap lies elsewhere");
        compare("a crash");
        if (options_.history) heap().attach_undo();
    }

    static constexpr int names = 4;
    RandomNestingOptions options_;
    std::mt19937 random_;
    TransactionFixture disk_;
    Model model_;
    int step_ = 0;
    std::uint64_t rolled_back_ = 0;
};

}  // namespace taiyen::txn::test
