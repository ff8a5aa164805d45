#pragma once
/// A heap full of nested containers with its model, and streams of it.

#include <taiyen/taiyen.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

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

inline void expect_verified(const ArchiveHeap& heap) {
    for (const Finding& finding : heap.verify().findings) BOOST_ERROR(finding.path << " at " << finding.offset << ": " << finding.what);
}

/// A new heap of that kind with some edits, compressed; the model has them as well.
template <class Heap>
std::vector<std::byte> compressed(const std::filesystem::path& path, Document<InMemory>& model, unsigned seed, const CompressOptions& options) {
    Heap heap(create_only, path, small_heap());
    edit_and_save(heap, model, seed, 3);
    edit_and_save(heap, model, seed + 3, 2);
    return compress(heap, options);
}
inline std::vector<std::byte> compressed(HeapKind kind, const std::filesystem::path& path, Document<InMemory>& model, unsigned seed,
                                         const CompressOptions& options) {
    if (kind == HeapKind::archive) return compressed<ArchiveHeap>(path, model, seed, options);
    if (kind == HeapKind::snapshot) return compressed<SnapshotHeap>(path, model, seed, options);
    return compressed<TransactionalHeap>(path, model, seed, options);
}

/// The heap holds what the model holds, is sound, and lives on.
template <class Heap>
void expect_whole(const std::filesystem::path& path, Document<InMemory>& model, unsigned seed) {
    {
        Heap heap(open_only, path, small_heap());
        BOOST_TEST(content_of(heap) == describe(model));
        expect_verified(heap);
        edit_and_save(heap, model, seed + 5, 1);
        heap.close();
    }
    Heap heap(open_only, path, small_heap());
    BOOST_TEST(content_of(heap) == describe(model));
    BOOST_TEST(heap.verify().ok());
    heap.close();
}
inline void expect_whole(HeapKind kind, const std::filesystem::path& path, Document<InMemory>& model, unsigned seed) {
    if (kind == HeapKind::archive) expect_whole<ArchiveHeap>(path, model, seed);
    if (kind == HeapKind::snapshot) expect_whole<SnapshotHeap>(path, model, seed);
    if (kind == HeapKind::transactional) expect_whole<TransactionalHeap>(path, model, seed);
}

/// How much of what is free in the capacity can be used for blocks of that size.
inline double availability(const ArchiveHeap& heap, std::size_t bytes) {
    const HeapStats stats = heap.stats();
    double fitting = 0;
    for (const Availability& available : map_of(heap).availability)
        if (available.bytes == bytes) fitting = available.share * static_cast<double>(stats.free_bytes);
    const auto untouched = static_cast<double>(stats.capacity_bytes - stats.extent_bytes);
    return (fitting + untouched) / (static_cast<double>(stats.free_bytes) + untouched);
}

/// What lies where, byte for byte.
inline std::vector<std::byte> span_of(const ArchiveHeap& heap, const std::filesystem::path& path) {
    const auto* const first = reinterpret_cast<const std::byte*>(read_parameters(path).address);
    return {first, first + heap.stats().extent_bytes};
}

inline auto has_code(errc code) {
    return [code](const Error& error) {
        if (error.code() != code) BOOST_TEST_MESSAGE("unexpected: " << error.what());
        return error.code() == code;
    };
}

}  // namespace taiyen::transfer::test
