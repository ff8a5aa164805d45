// Several threads look at one heap at once: proofs, figures, content.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>

#include "store/heap_probe.hpp"
#include "threads.hpp"

using namespace probe;
using taiyen::test::at_once;
using taiyen::test::require;

BOOST_AUTO_TEST_SUITE(inspection_threads)

BOOST_AUTO_TEST_CASE(threads_verify_and_count_one_heap_at_once, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        for (int i = 0; i < 30; ++i) put(heap, "n" + std::to_string(i), std::string(2500, static_cast<char>('a' + i)));
        heap.snapshot();
    }
    const auto look = [](const ArchiveHeap& heap) {
        at_once(4, [&](unsigned number) {
            for (int round = 0; round < 6; ++round) {
                if (number % 2 == 0) require(heap.verify().ok(), "the heap is sound");
                const HeapStats stats = heap.stats();
                require(stats.live_blocks == 30, "blocks are counted");
                for (int i = 0; i < 30; ++i)
                    require(get(heap, "n" + std::to_string(i)) == std::string(2500, static_cast<char>('a' + i)), "content is read");
            }
        });
    };
    {
        const ArchiveHeap reader(open_read_only, dir / "a.tyn");
        look(reader);
    }
    SnapshotHeap writer(open_only, dir / "a.tyn");
    find(writer, "n7")[3] = 'h';  // a private copy with the old content
    writer.snapshot();
    look(writer);
}

BOOST_AUTO_TEST_SUITE_END()
