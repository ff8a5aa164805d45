#pragma once
/// DeclaredTypes: which words of a heap are pointers, as the types of its named objects say.
///
/// A heap that is moved by declared types is walked from its named objects, by the type that each has: containers know their links (taiyen/stl/declared.hpp), structs say what they hold
/// (`pointers_of`), and a pointer leads on to what it points to. Exactly the words that are met are rewritten: a number with the value of an address stays what it is.
///
///     taiyen::DeclaredTypes types;
///     types.add<Drawing, taiyen::map<int, taiyen::string>>();
///     options.types = types;
///
/// Thread rule: values; PointerWalk: one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/detail/access.hpp>

namespace taiyen {

/// Takes down what a walk meets. Only descriptions of types talk to it.
class TAIYEN_EXPORT PointerWalk {
public:
    struct State;
    /// Walks one object of a type.
    class Step {
    public:
        using Function = void (*)(void* object, PointerWalk& walk);
        /// One function for many types, which it tells apart by what `type` leads to.
        using SharedFunction = void (*)(void* object, PointerWalk& walk, const void* type);

        Step() = default;
        template <class F>
            requires std::is_convertible_v<F, Function>
        Step(F function)  // NOLINT(google-explicit-constructor): a step is its function
            : walk_(&call), type_(reinterpret_cast<const void*>(static_cast<Function>(function))) {}
        Step(SharedFunction function, const void* type) noexcept : walk_(function), type_(type) {}

        void operator()(void* object, PointerWalk& walk) const { walk_(object, walk, type_); }
        bool operator<(const Step& other) const noexcept {
            const auto number = reinterpret_cast<std::uintptr_t>(walk_);
            const auto others = reinterpret_cast<std::uintptr_t>(other.walk_);
            return number != others ? number < others : std::less<>()(type_, other.type_);
        }

    private:
        static void call(void* object, PointerWalk& walk, const void* function) {
            reinterpret_cast<Function>(const_cast<void*>(function))(object, walk);
        }

        SharedFunction walk_ = nullptr;
        const void* type_ = nullptr;
    };

    explicit PointerWalk(State& state) noexcept : state_(state) {}

    /// So many more values are looked at, of types that a heap itself tells. Throws: Error{type_mismatch}: there are more than a sound heap has room for.
    void count_values(std::uint64_t more);
    /// The word there points to an object, or a place in one. Returns whether it does: null, and addresses of no live block, are left as they are.
    /// Throws: Error{type_mismatch}: it is a pointer into the heap that doesn't lie there itself, so that a change would be lost.
    bool pointer(const void* word);
    /// The same of one that may as well be the end of what lies before, which nobody tells: what it may lead to stays where it is if blocks move against one another.
    bool plain_pointer(const void* word);
    /// Whether what lies there belongs to the heap: a description may name variables of its own, too.
    bool lies_in_heap(const void* place) const noexcept;
    /// The word there ends what begins at `first`: its value may be the end of a block, where another one begins.
    void end(const void* word, const void* first);
    /// The block of that address is met now, and all of it is known: blocks can be laid in this order.
    void reach(const void* address);
    /// The same of this many elements of a container. Throws: Error{type_mismatch}: there is no live block with room for them.
    void reach_elements(const void* first, std::size_t count, std::size_t bytes_each, std::size_t alignment, std::string_view container);
    /// The block of that address is met now, and only this many bytes from there on are known; what else lies in it, no type says.
    void part(const void* address, std::size_t bytes);
    /// `object` has this many bytes, and is walked when what is walked now is done, once, however many lead there.
    void later(const void* object, std::size_t bytes, Step step);
    /// The same of an array. Throws: Error{type_mismatch}: there is no live block with room for it.
    void later(const void* first, std::size_t bytes_each, std::size_t alignment, Step step, std::size_t count);
    /// A container finds its elements by their address: by its hash, or by its order.
    void keyed_by_address(bool hashed) noexcept;
    /// What pointers lead to between `true` and `false` are the keys of such a container. Returns whether to walk them for that: only for a move of some blocks and not others.
    bool within_key(bool within) noexcept;
    /// Throws: Error{type_mismatch}: a container is not laid out as this build's library lays them out.
    [[noreturn]] void throw_unknown_layout(std::string_view container) const;

    /// One more object within objects. What is nested deeper than the stack may grow is walked later.
    class Deeper {
    public:
        explicit Deeper(PointerWalk& walk) noexcept : walk_(walk) { ++walk_.depth_; }
        ~Deeper() { --walk_.depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;

    private:
        PointerWalk& walk_;
    };
    bool is_deep() const noexcept { return depth_ >= depth_max; }

private:
    static constexpr unsigned depth_max = 200;
    State& state_;
    unsigned depth_ = 0;
};

/// Types by whose descriptions a heap is walked.
class TAIYEN_EXPORT DeclaredTypes {
public:
    /// How an object of a type is walked.
    struct Entry {
        PointerWalk::Step step;
        std::size_t bytes = 0;
    };

    /// Named objects of these types are walked. Defined in taiyen/stl/declared.hpp.
    template <class... T>
    DeclaredTypes& add();
    void add(std::string fingerprint, Entry entry) { by_fingerprint_[std::move(fingerprint)] = entry; }

    /// Null: nothing is known of that type.
    const Entry* find(const std::string& fingerprint) const {
        if (const auto found = by_fingerprint_.find(fingerprint); found != by_fingerprint_.end()) return &found->second;
        for (const auto& [declared, entry] : by_fingerprint_)
            if (heap::match_types(fingerprint, declared) == heap::TypeMatch::unsaid) return &entry;
        return nullptr;
    }
    /// Nothing is declared: shapes tell pointers, or guesses if they are asked for.
    bool empty() const noexcept { return by_fingerprint_.empty(); }

private:
    std::map<std::string, Entry> by_fingerprint_;
};

}  // namespace taiyen
