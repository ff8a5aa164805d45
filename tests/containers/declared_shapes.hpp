#pragma once
/// Types with pointers by hand that several tests of moves by declared types use; each says in one line what makes it hard to move.

#include <cstdint>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/declared.hpp>

namespace taiyen::test {

/// Leads on, and has a number that may look like an address.
struct Chain {
    std::uint64_t number = 0;
    Chain* next = nullptr;
    taiyen::string text;
};

/// Lies at multiples of 64, and has bits beside its pointers.
struct alignas(64) Wide {
    Wide* next = nullptr;
    unsigned flag : 1 = 1;
    unsigned number : 31 = 0;
    taiyen::string text;
};

/// A stretch of an array by hand, whose end is a plain pointer.
template <class T>
struct PlainSlice {
    T* first = nullptr;
    T* last = nullptr;
};

/// The same, which says that it is the end.
template <class T>
struct RangeSlice {
    T* first = nullptr;
    T* last = nullptr;
};

}  // namespace taiyen::test

template <>
struct taiyen::pointers_of<taiyen::test::Chain> {
    template <class Visit>
    static void describe(taiyen::test::Chain& chain, Visit visit) {
        visit(chain.next, chain.text);
    }
};
template <>
struct taiyen::pointers_of<taiyen::test::Wide> {
    template <class Visit>
    static void describe(taiyen::test::Wide& wide, Visit visit) {
        visit(wide.next, wide.text);
    }
};
template <class T>
struct taiyen::pointers_of<taiyen::test::PlainSlice<T>> {
    template <class Visit>
    static void describe(taiyen::test::PlainSlice<T>& slice, Visit visit) {
        visit(slice.first, slice.last);
    }
};
template <class T>
struct taiyen::pointers_of<taiyen::test::RangeSlice<T>> {
    template <class Visit>
    static void describe(taiyen::test::RangeSlice<T>& slice, Visit visit) {
        visit(taiyen::range(slice.first, slice.last));
    }
};
