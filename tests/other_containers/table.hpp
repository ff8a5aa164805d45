#pragma once
/// Containers of other libraries in heaps: what one process does with each, and the list of all of them.

#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/durable_allocator.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/txn/transactional_heap.hpp>
#include <taiyen/undo/scope.hpp>

namespace other_containers {

enum class State { never_filled, filled, emptied, cleared };
inline constexpr State states[]{State::never_filled, State::filled, State::emptied, State::cleared};

inline void expect(bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
}

/// What a process does: makes a container, or takes the one that an earlier process left in that state.
struct Step {
    taiyen::SnapshotHeap& heap;
    State state;
    int number;  ///< 0: makes; 1: takes, changes; 2: takes what was changed
};

struct Case {
    std::string name;
    /// For each state "good", or the code of the error that refuses it.
    std::string expected[4];
    void (*run)(const Step&);
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

inline constexpr int filled_count = 200, added = 1000, added_count = 50;

/// Runs a step with a container C and what A says of it: `put(c, i)`, `take(c, i)`, `has(c, i)`, `count(c)` and `clear(c)`.
/// Every change is within a scope: a step of undo, or a transaction.
template <class C, class A>
void run(const Step& step) {
    const taiyen::DurableScope durable(step.heap);
    if (step.number == 0) {
        taiyen::UndoScope scope(step.heap);
        C& c = A::make(step.heap);
        if (step.state != State::never_filled)
            for (int i = 0; i < filled_count; ++i) A::put(c, i);
        if (step.state == State::emptied)
            for (int i = filled_count; i-- > 0;) A::take(c, i);
        if (step.state == State::cleared) A::clear(c);
        scope.commit();
        return;
    }
    C* const found = step.heap.find<C>("container");
    expect(found != nullptr, "the container is there");
    C& c = *found;
    const int first_count = step.state == State::filled ? filled_count : 0;
    const auto check = [&](bool with_added) {
        expect(A::count(c) == static_cast<std::size_t>(first_count + (with_added ? added_count : 0)), "as many elements as were put in");
        for (int i = 0; i < first_count; ++i) expect(A::has(c, i), "each key is found");
        for (int i = 0; with_added && i < added_count; ++i) expect(A::has(c, added + i), "each added key is found");
        expect(!A::has(c, filled_count + 1), "no other key is found");
    };
    check(step.number == 2);
    if (step.number == 2) return;
    {
        taiyen::UndoScope scope(step.heap);
        for (int i = 0; i < added_count * 4; ++i) A::put(c, added + i);
        A::clear(c);
        A::put(c, filled_count + 1);
        scope.cancel();
    }
    check(false);
    taiyen::UndoScope scope(step.heap);
    for (int i = 0; i < added_count; ++i) A::put(c, added + i);
    scope.commit();
    check(true);
}

/// A container's own ways: of sets and maps by key, of sequences at their end. Elements are texts too long to lie in the string itself.
inline taiyen::string text(int i) { return taiyen::string("the element with the number ") + taiyen::string(std::to_string(i).c_str()); }

template <class C>
struct ByKey {
    static C& make(taiyen::SnapshotHeap& heap) { return heap.construct<C>("container"); }
    static void put(C& c, int i) {
        if constexpr (requires { typename C::mapped_type; })
            c.emplace(i, text(i));
        else
            c.insert(i);
    }
    static void take(C& c, int i) { c.erase(i); }
    static bool has(const C& c, int i) {
        const auto at = c.find(i);
        if (at == c.end()) return false;
        if constexpr (requires { typename C::mapped_type; }) return at->second == text(i);
        return true;
    }
    static std::size_t count(const C& c) { return static_cast<std::size_t>(std::distance(c.begin(), c.end())); }
    static void clear(C& c) { c.clear(); }
};

template <class C>
struct InSequence {
    static C& make(taiyen::SnapshotHeap& heap) { return heap.construct<C>("container"); }
    static void put(C& c, int i) { c.push_back(text(i)); }
    static void take(C& c, int) { c.pop_back(); }
    static bool has(const C& c, int i) {
        for (const auto& each : c)
            if (each == text(i)) return true;
        return false;
    }
    static std::size_t count(const C& c) { return static_cast<std::size_t>(std::distance(c.begin(), c.end())); }
    static void clear(C& c) { c.clear(); }
};

template <class C, class A>
void add(std::string name, std::string never, std::string filled, std::string emptied, std::string cleared) {
    cases().push_back({std::move(name), {std::move(never), std::move(filled), std::move(emptied), std::move(cleared)}, run<C, A>});
}
template <class C, class A>
void add_good(std::string name) {
    add<C, A>(std::move(name), "good", "good", "good", "good");
}

/// What the compiler refuses to store.
template <class C>
void add_refused(std::string name) {
    static_assert(!taiyen::storable<C>);
    cases().push_back({std::move(name), {"compiler", "compiler", "compiler", "compiler"}, nullptr});
}

void add_boost();
void add_linked();
void add_tables();
void add_absl();
void add_small_libraries();

}  // namespace other_containers
