#pragma once
/// persistent_allocator: every container has a home.
///
/// Where the container object lies decides where its elements go:
/// - INSIDE: the container lies in a heap's durable memory: its elements are durable memory of that heap, always, whatever it was copied or moved from.
/// - SCRATCH: it lies elsewhere (stack, globals, malloc, scratch memory): its elements are scratch memory, which is the process's own and never saved (taiyen/heap/scratch.hpp).
/// - GIVEN: it lies elsewhere and was given a volatile heap (`taiyen::vector<int> v(volatile_heap)`), or is a copy of such a container: its elements are that heap's. Heaps that are files can't be given.
/// - LENT: it lies elsewhere but owns durable memory: it was moved out of a heap (`auto x = std::move(v.front())`), or is a temporary that the standard library
///   made from a container's allocator in order to swap it in. It remembers the UndoScope that lent it: if that was rolled back, or its step is undone, the memory belongs
///   to the container in the heap again, and what the object outside frees is ignored.
///
/// Propagation: POCCA false, POCMA false (between different homes elements move one by one), POCS true: outside each takes the other's memory along; a swap of a container in a heap with one that has another
/// home is refused (report and abort). is_always_equal false. Equal: memory of the same heap, or both scratch. Nothing of it is a heap pointer: heaps can move.
/// Thread rule: a value; memory obeys the heap's rule.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/stl/pointer_free.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen {

/// Anything that has a compiled heap behind it: `heap.core()`.
template <class H>
concept heap_like = requires(H& heap) {
    { heap.core() } -> std::same_as<heap::HeapCore*>;
};

namespace stl {

/// How a container keeps what its allocator gives it.
enum class Pointers : bool { addresses, distances };

/// The allocator's eight bytes and what they mean. The address comes first: within a heap the word is zero and the address alone decides.
class TAIYEN_EXPORT Home {
public:
    TAIYEN_STORES_HERE Home() noexcept : word_(0) {}  ///< outside: scratch memory
    TAIYEN_STORES_HERE Home(const Home& other) noexcept : word_(other.word_seen_from(reinterpret_cast<std::uintptr_t>(this))) {}
    TAIYEN_STORES_HERE Home& operator=(const Home& other) noexcept {
        word_ = other.word_seen_from(reinterpret_cast<std::uintptr_t>(this));
        return *this;
    }
    ~Home() = default;
    /// For an object outside: that heap's memory if it is volatile, else scratch memory. Null throws Error{closed}.
    TAIYEN_STORES_HERE explicit Home(heap::HeapCore* core) : word_(word_given(reinterpret_cast<std::uintptr_t>(this), core)) {}
    /// The home that the address `place` gives; outside every heap, that of `otherwise`. (Addresses of what is yet to be constructed are numbers here: compilers
    /// take a pointer for a look at what it points to.)
    TAIYEN_STORES_HERE Home(std::uintptr_t place, const Home& otherwise) noexcept
        : word_(otherwise.word_at(place, reinterpret_cast<std::uintptr_t>(this))) {}
    /// For a copy of a container: the same volatile heap, or scratch memory.
    Home for_copy() const noexcept;

    /// Throws: HeapFull, Error{closed | read_only | …}.
    /// Error{raw_pointer}: durable memory of a position-independent heap for a container that keeps addresses.
    void* allocate(std::size_t bytes, std::size_t alignment, Pointers pointers = Pointers::addresses, heap::Content content = heap::Content::any);
    /// By the block's own heap, and, for memory on loan, by what became of the scope that lent it. A bad pointer is reported and changes nothing.
    void deallocate(void* block) noexcept {
        if (kind() == lent)
            heap::deallocate_lent(block, static_cast<std::uint32_t>(word_ >> 32U));
        else
            heap::deallocate(block);
    }
    /// Whether what lies in this home's memory belongs to the heap again, and not to the object outside that had it on loan.
    bool came_back() const noexcept {
        return kind() == lent && heap::lent_came_back(static_cast<std::uint32_t>(word_ >> 16U) & 0xffffU, static_cast<std::uint32_t>(word_ >> 32U));
    }
    bool operator==(const Home& other) const noexcept;
    /// Reports and aborts if the homes differ and one of the objects lies in a heap.
    void swap(Home& other) noexcept;
    /// Whether `source`, another object, has a different home than an object at `place`: what is moved from there may carry memory that must not come along.
    static bool differs(std::uintptr_t place, const void* source) noexcept;

private:
    /// Zero: inside a heap, or scratch memory. Bits 0–1: kind; 2: on its way to an object in the heap; 16–31: first slot of the heap; 32–63: serial of the scope that lent (0: none).
    enum Kind : std::uint64_t { by_address = 0, given = 1, lent = 2 };
    static constexpr std::uint64_t on_its_way = 4;
    static std::uint64_t word(Kind kind, const heap::HeapCore& core) noexcept;
    /// Word of an object at `self` that was given a heap.
    static std::uint64_t word_given(std::uintptr_t self, heap::HeapCore* core);
    /// Word of an object at `self` for the home that `place` gives, or else this one.
    std::uint64_t word_at(std::uintptr_t place, std::uintptr_t self) const noexcept;
    Kind kind() const noexcept { return static_cast<Kind>(word_ & 3U); }
    /// First slot of the heap whose memory it is; 0: scratch memory.
    std::uint32_t slot() const noexcept;
    std::uint64_t word_seen_from(std::uintptr_t place) const noexcept;
    /// Whether it is that of an object outside with durable memory on loan.
    bool borrows() const noexcept { return (word_ & (on_its_way | 3U)) == lent; }
    /// One of them lies in a heap, the other there or outside with memory on loan: what each owns may move to the other.
    static void exchange_between(const Home& left, const Home& right) noexcept;

    std::uint64_t word_;
};

/// Whether moving an A from another home has to become a copy: its move constructor might hand over memory.
template <class A>
inline constexpr bool carries_memory =
    std::is_rvalue_reference_v<A&&> && !std::is_const_v<std::remove_reference_t<A>> && std::is_class_v<std::remove_reference_t<A>> &&
    !std::is_trivially_copyable_v<std::remove_reference_t<A>> && std::is_copy_constructible_v<std::remove_reference_t<A>>;

/// What `A&&` becomes if moving is off.
template <class A>
using copied_t = std::conditional_t<carries_memory<A>, const std::remove_reference_t<A>&, A&&>;

template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_tuple = false;
template <class... A>
inline constexpr bool is_tuple<std::tuple<A...>> = true;

/// Types that can't carry memory from home to home: constructed without a look at where anything lies.
template <class T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T>;
template <class A, class B>
inline constexpr bool is_plain<std::pair<A, B>> = is_plain<std::remove_cv_t<A>> && is_plain<std::remove_cv_t<B>>;

/// Calls `next` with the arguments that construct a T at `place`: the allocator where T takes one, pairs piece by piece, and copies where a move would smuggle.
template <class T, class Allocator, class Next, class... A>
void with_arguments(std::uintptr_t place, const Allocator& allocator, Next&& next, A&&... arguments);

template <class T, class Allocator, class Next, class... A1, class... A2>
void with_pieces(std::uintptr_t place, const Allocator& allocator, Next&& next, std::tuple<A1...>& first, std::tuple<A2...>& second) {
    std::apply(
        [&](auto&... pieces1) {
            with_arguments<typename T::first_type>(
                place, allocator,
                [&](auto&&... ready1) {
                    std::apply(
                        [&](auto&... pieces2) {
                            with_arguments<typename T::second_type>(
                                place, allocator,
                                [&](auto&&... ready2) {
                                    next(std::piecewise_construct, std::forward_as_tuple(std::forward<decltype(ready1)>(ready1)...),
                                         std::forward_as_tuple(std::forward<decltype(ready2)>(ready2)...));
                                },
                                std::forward<A2>(pieces2)...);
                        },
                        second);
                },
                std::forward<A1>(pieces1)...);
        },
        first);
}

template <class T, class Allocator, class Next, class... A>
void with_pair_arguments(std::uintptr_t place, const Allocator& allocator, Next&& next, A&&... arguments) {
    if constexpr (sizeof...(A) == 0) {
        std::tuple<> first;
        std::tuple<> second;
        with_pieces<T>(place, allocator, next, first, second);
    } else if constexpr (sizeof...(A) == 1) {
        [&]<class P>(P&& source) {
            if constexpr (is_pair<std::remove_cvref_t<P>>) {
                auto first = std::forward_as_tuple(std::get<0>(std::forward<P>(source)));
                auto second = std::forward_as_tuple(std::get<1>(std::forward<P>(source)));
                with_pieces<T>(place, allocator, next, first, second);
            } else {
                // Something that converts to the pair: made outside, then taken apart.
                T made(std::forward<P>(source));
                auto first = std::forward_as_tuple(std::forward<typename T::first_type>(made.first));
                auto second = std::forward_as_tuple(std::forward<typename T::second_type>(made.second));
                with_pieces<T>(place, allocator, next, first, second);
            }
        }(std::forward<A>(arguments)...);
    } else if constexpr (sizeof...(A) == 2) {
        [&]<class A1, class A2>(A1&& one, A2&& two) {
            auto first = std::forward_as_tuple(std::forward<A1>(one));
            auto second = std::forward_as_tuple(std::forward<A2>(two));
            with_pieces<T>(place, allocator, next, first, second);
        }(std::forward<A>(arguments)...);
    } else {
        [&](std::piecewise_construct_t, auto first, auto second) {
            with_pieces<T>(place, allocator, next, first, second);
        }(std::forward<A>(arguments)...);
    }
}

template <class T, class Allocator, class Next, class... A>
void with_arguments(std::uintptr_t place, const Allocator& allocator, Next&& next, A&&... arguments) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (is_pair<Plain>) {
        with_pair_arguments<Plain>(place, allocator, next, std::forward<A>(arguments)...);
    } else if constexpr (std::uses_allocator_v<Plain, Allocator> && !is_tuple<Plain>) {
        if constexpr (std::is_constructible_v<Plain, std::allocator_arg_t, const Allocator&, A&&...>)
            next(std::allocator_arg, allocator, std::forward<A>(arguments)...);
        else if constexpr (std::is_constructible_v<Plain, A&&..., const Allocator&>)
            next(std::forward<A>(arguments)..., allocator);
        else
            next(std::forward<A>(arguments)...);  // the caller passes an allocator already; the address wins over it
    } else {
        const auto finish = [&]<class... B>(B&&... ready) {
            if constexpr (is_tuple<Plain>)
                next(std::allocator_arg, allocator, std::forward<B>(ready)...);
            else
                next(std::forward<B>(ready)...);
        };
        if constexpr ((carries_memory<A> || ...) && std::is_constructible_v<Plain, copied_t<A>...>) {
            if (((carries_memory<A> && Home::differs(place, std::addressof(arguments))) || ...)) {
                finish(static_cast<copied_t<A>>(arguments)...);
                return;
            }
        }
        finish(std::forward<A>(arguments)...);
    }
}

/// What allocators with a home have in common, whatever their pointers look like: `Allocator<T>` derives from it and gives and takes memory.
template <template <class> class Allocator, class T>
class HomeAllocator {
public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using is_always_equal = std::false_type;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::false_type;
    using propagate_on_container_swap = std::true_type;

    HomeAllocator() noexcept = default;
    template <class U>
    HomeAllocator(const HomeAllocator<Allocator, U>& other) noexcept : home_(other.home_) {}  // NOLINT: allocators convert
    /// From a heap: `taiyen::vector<int> v(heap)`. Throws: Error{closed}.
    template <heap_like H>
    HomeAllocator(H& heap) : home_(heap.core()) {}  // NOLINT: containers take the heap itself
    explicit HomeAllocator(heap::HeapCore& core) : home_(&core) {}
    explicit HomeAllocator(const Home& home) noexcept : home_(home) {}

    /// Constructs a U whose home is where `place` lies, at every level of nesting.
    template <class U, class... A>
    void construct(U* place, A&&... arguments) {
        check_storable<U>();
        const auto address = reinterpret_cast<std::uintptr_t>(place);
        const auto build = [place]<class... B>(B&&... ready) {
            ::new (const_cast<void*>(static_cast<const volatile void*>(place))) U(std::forward<B>(ready)...);
        };
        if constexpr (is_plain<std::remove_cv_t<U>>) {
            build(std::forward<A>(arguments)...);
        } else {
            const Allocator<T> settled(Home(address, home_));
            with_arguments<U>(address, settled, build, std::forward<A>(arguments)...);
        }
    }

    /// Elements on loan whose scope was rolled back stay: they belong to the container in the heap again.
    template <class U>
    void destroy(U* object) noexcept(std::is_nothrow_destructible_v<U>) {
        if constexpr (!std::is_trivially_destructible_v<U>) {
            if (!home_.came_back()) std::destroy_at(object);
        }
    }

    Allocator<T> select_on_container_copy_construction() const noexcept { return Allocator<T>(home_.for_copy()); }

    template <class U>
    bool operator==(const HomeAllocator<Allocator, U>& other) const noexcept {
        return home_ == other.home_;
    }
    friend void swap(Allocator<T>& left, Allocator<T>& right) noexcept { left.swap_home(right); }

protected:
    /// Throws: HeapFull, std::bad_array_new_length, Error{closed | read_only | poisoned | forked | no_transaction}.
    [[nodiscard]] T* allocate_at_home(std::size_t count, Pointers pointers = Pointers::addresses) {
        if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(home_.allocate(count * sizeof(T), alignof(T), pointers, content_of<T>));
    }

    void deallocate_from_home(void* block) noexcept { home_.deallocate(block); }

private:
    template <template <class> class, class>
    friend class HomeAllocator;
    void swap_home(HomeAllocator& other) noexcept { home_.swap(other.home_); }

    Home home_;
};

}  // namespace stl

template <class T>
class persistent_allocator : public stl::HomeAllocator<persistent_allocator, T> {
    using Base = stl::HomeAllocator<taiyen::persistent_allocator, T>;

public:
    using Base::Base;

    /// Throws: HeapFull, std::bad_array_new_length, Error{closed | read_only | poisoned | forked | no_transaction}.
    [[nodiscard]] T* allocate(std::size_t count) { return Base::allocate_at_home(count); }
    /// By the block's own heap, and, for memory on loan, by what became of the scope that lent it; a bad pointer is reported and changes nothing.
    void deallocate(T* block, std::size_t) noexcept { Base::deallocate_from_home(const_cast<std::remove_cv_t<T>*>(block)); }
};

template <class T>
inline constexpr bool is_durable_allocator<persistent_allocator<T>> = true;

static_assert(sizeof(persistent_allocator<int>) == 8, "the allocator is part of every stored container");

}  // namespace taiyen
