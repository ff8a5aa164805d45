#pragma once
/// A heap full of nested containers with its model, and streams of it.

#include <taiyen/taiyen.hpp>

#include <string>
#include <vector>

#include "base/sanitizers.hpp"
#include "containers/document.hpp"
#include "scratch_directory.hpp"

namespace taiyen::transfer::test {

using taiyen::test::Document;
using taiyen::test::InHeap;
using taiyen::test::InMemory;

/// The threads that compress and expand in tests with the label "threads": oneTBB as it is installed is not instrumented, so the thread sanitizer can't see how it
/// hands work from thread to thread, and would call each handing a race. What it is to look at in those tests is the heap beside its users.
#if defined(TAIYEN_THREAD_SANITIZER)
constexpr unsigned watched_threads = 1;
#else
constexpr unsigned watched_threads = 0;
#endif

inline PersistentOptions small_heap() {
    PersistentOptions options;
    options.capacity = std::size_t{64} << 20U;
    options.log_capacity = std::size_t{1} << 20U;
    return options;
}

/// Changes the document `rounds` times, and its model the same way.
template <class Heap>
void edit(Heap& heap, Document<InMemory>& model, unsigned from, unsigned rounds) {
    auto& document = heap.template find_or_construct<Document<InHeap>>("document");
    const CurrentHeap current(heap);
    for (unsigned seed = from; seed < from + rounds; ++seed) {
        taiyen::test::change(document, seed);
        taiyen::test::change(model, seed);
    }
}

/// Edits a heap of any kind and saves.
inline void edit_and_save(ArchiveHeap& heap, Document<InMemory>& model, unsigned from, unsigned rounds) {
    edit(heap, model, from, rounds);
    heap.snapshot();
}
inline void edit_and_save(TransactionalHeap& heap, Document<InMemory>& model, unsigned from, unsigned rounds) {
    Transaction transaction(heap);
    edit(heap, model, from, rounds);
    transaction.commit();
}

inline std::string content_of(const ArchiveHeap& heap) {
    const auto* const document = heap.find<Document<InHeap>>("document");
    return document == nullptr ? "(none)" : taiyen::test::describe(*document);
}

inline auto has_code(errc code) {
    return [code](const Error& error) {
        if (error.code() != code) BOOST_TEST_MESSAGE("unexpected: " << error.what());
        return error.code() == code;
    };
}

}  // namespace taiyen::transfer::test
