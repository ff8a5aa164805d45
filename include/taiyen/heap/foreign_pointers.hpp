#pragma once
/// What is done about words of a heap that lead out of it: nobody but this process could follow them.

namespace taiyen {

/// What becomes of a save, a commit or the making of an object when a word leads out of the heap.
enum class ForeignPointers {
    /// Error{foreign_pointer}, before anything is written; the object is not made, the transaction is rolled back. A word is none where the shape of a type tells that a number lies there in which no
    /// program keeps addresses: `double`, `std::int64_t`, two `int`s (doc/containers.md). Complexity of a save or commit that has found a word: linear in the heap's values
    refuse,
    /// The report handler is told (errc::foreign_pointer, the word's address), of sixteen words in a save at most, and it goes on. For numbers that look like addresses in opaque classes
    report
};

/// Which saves and commits are searched for pointers to the program's own memory, too: its images, malloc's memory, stacks. Objects are looked at when they are made, whatever it says.
enum class ProgramPointers {
    unsearched,
    /// The first save or commit after each opening that changes anything, for pointers to memory that leads back to where they stand: iterators of a debug mode that are alive, members of intrusive lists
    linked,
    /// Every save and commit, for all of them. For tests: bytes that were never set, of an empty `optional` or a short `variant`, often hold such an address, and count
    any
};

}  // namespace taiyen
