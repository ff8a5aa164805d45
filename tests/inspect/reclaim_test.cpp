// reclaim frees what was leaked and nothing else, in heaps of every kind.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/leaks.hpp>
#include <taiyen/inspect/reclaim.hpp>
#include <taiyen/taiyen.hpp>

#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>

#include "containers/document.hpp"
#include "containers/offset_family.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "store/geometry.hpp"
#include "store/heap_access.hpp"

namespace reclaim_test {
using namespace taiyen;

using Document = taiyen::test::Document<taiyen::test::InHeap>;
using FourNumbers = std::array<int, 4>;

PersistentOptions of_64_mib() {
    PersistentOptions options;
    options.capacity = 64U << 20U;
    return options;
}

bool throws(errc code, const auto& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.code() == code;
    }
    return false;
}

}  // namespace reclaim_test
using namespace reclaim_test;

BOOST_AUTO_TEST_SUITE(reclaims)

BOOST_AUTO_TEST_CASE(what_leaked_is_freed_and_the_content_goes_on) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (const bool history : {false, true}) {
        const ScratchDirectory dir;
        std::optional<TransactionalHeap> heap(std::in_place, create_only, dir / "a.tyn", of_64_mib());
        const auto content = [&] { return taiyen::test::describe(*heap->find<Document>("document")); };
        const auto reopen = [&] {
            heap->close();
            heap.emplace(open_only, dir / "a.tyn", of_64_mib());
            if (history) heap->attach_undo();
        };
        taiyen::test::Document<taiyen::test::InMemory> model;
        transact(*heap, [&] { heap->construct<Document>("document"); });
        for (int round = 0; round < 6; ++round) {
            const auto seed = static_cast<unsigned>(random());
            taiyen::test::change(model, seed);
            transact(*heap, [&] { taiyen::test::change(*heap->find<Document>("document"), seed); });
            std::size_t planted = 0;
            transact(*heap, [&] {
                void** leaked = nullptr;
                for (; planted < 20; ++planted) {  // half of them lead to the next one
                    auto** const next = static_cast<void**>(heap->allocate(8 + random() % (planted == 7 ? 9000 : 200)));
                    *next = planted % 2 == 0 ? nullptr : leaked;
                    leaked = next;
                }
            });
            reopen();
            const std::string before = content();
            BOOST_TEST_REQUIRE((before == taiyen::test::describe(model)));
            const LeakReport leaks = find_leaks(*heap);
            const ReclaimReport report = reclaim(*heap);
            BOOST_TEST(report.freed_blocks == leaks.leaked_blocks);
            BOOST_TEST(report.freed_bytes == leaks.leaked_bytes);
            BOOST_TEST(report.doubtful_blocks == leaks.doubtful_blocks);
            BOOST_TEST(report.freed_blocks + report.doubtful_blocks >= planted / 2);
            BOOST_TEST(find_leaks(*heap).leaked_blocks == 0U);
            BOOST_TEST_REQUIRE((content() == before));
            BOOST_TEST_REQUIRE(heap->verify().ok());
        }
        if (!history) continue;
        BOOST_TEST(heap->undo_steps().back().name == "reclaim");
        const std::uint64_t blocks = heap->stats().live_blocks;
        BOOST_TEST(heap->undo());
        BOOST_TEST(heap->stats().live_blocks > blocks);
        BOOST_TEST(find_leaks(*heap).leaked_blocks != 0U);
        BOOST_TEST(heap->redo());
        BOOST_TEST(heap->stats().live_blocks == blocks);
    }
}

BOOST_AUTO_TEST_CASE(where_nothing_leaks_what_is_loaded_relaxed_stays) {
    const ScratchDirectory dir;
    TransactionalHeap heap(create_only, dir / "a.tyn", of_64_mib());
    transact(heap, [&] { heap.construct<FourNumbers>("numbers").fill(1); });
    RelaxedLoading loading(heap);
    transact(heap, [&] { heap.find<FourNumbers>("numbers")->fill(2); });
    BOOST_TEST(reclaim(heap).freed_blocks == 0U);
    BOOST_TEST(heap.find<FourNumbers>("numbers")->front() == 2);
    void* lost = nullptr;
    transact(heap, [&] { lost = heap.allocate(100); });
    BOOST_TEST(lost != nullptr);
    BOOST_TEST(reclaim(heap).freed_blocks == 1U);
    loading.wait_until_strict();
    BOOST_TEST(heap.find<FourNumbers>("numbers")->front() == 2);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_block_that_words_hint_at_stays) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", of_64_mib());
    auto& words = heap.construct<std::array<const char*, 3>>("words");
    auto* const within = static_cast<char*>(heap.allocate(1000));
    auto* const tagged = static_cast<char*>(heap.allocate(1000));
    auto** const first = static_cast<const char**>(heap.allocate(1000));
    auto* const second = static_cast<char*>(heap.allocate(1000));
    std::memset(within, 0, 1000);
    std::memset(tagged, 0, 1000);
    std::memset(second, 0, 1000);
    std::memset(static_cast<void*>(first), 0, 1000);
    first[5] = second;
    words = {within + 600, tagged + 1, reinterpret_cast<const char*>(first + 10)};  // and what is only hinted at leads on
    heap.allocate(1000);
    const ReclaimReport report = reclaim(heap);
    BOOST_TEST(report.freed_blocks == 1U);
    BOOST_TEST(report.doubtful_blocks == 4U);
    BOOST_TEST(heap.stats().live_blocks == 5U);
}

BOOST_AUTO_TEST_CASE(where_a_page_is_damaged_nothing_is_freed) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    std::uint64_t place = 0;
    std::uint64_t blocks = 0;
    {
        ArchiveHeap heap(create_only, path, of_64_mib());
        auto& holder = heap.construct<std::array<taiyen::string*, 2000>>("holder");
        holder.fill(nullptr);
        holder[1000] = heap.make<taiyen::string>("a text that is longer than what a string keeps inside itself");
        heap.snapshot();
        place = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&holder[1000]) -
                                           reinterpret_cast<std::byte*>(HeapAccess::file(heap).ranges().durable));
        blocks = heap.stats().live_blocks;
        heap.close();
    }
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(store::FileLayout().file_offset({place})));
        const std::uint64_t nowhere = 0;
        file.write(reinterpret_cast<const char*>(&nowhere), sizeof nowhere);
    }
    PersistentOptions options = of_64_mib();
    options.verify = Verify::changes;
    ArchiveHeap heap(open_only, path, options);
    BOOST_TEST(find_leaks(heap).leaked_blocks == 2U);
    BOOST_TEST(throws(errc::corrupt, [&] { reclaim(heap); }));
    BOOST_TEST(heap.stats().live_blocks == blocks);
}

BOOST_AUTO_TEST_CASE(of_distances_what_leaked_is_freed_too) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", taiyen::test::position_independent_heap());
    auto& list = heap.construct<taiyen::offset::list<int>>("list");
    for (int i = 0; i < 100; ++i) list.push_back(i);
    heap.allocate(1000);
    BOOST_TEST(reclaim(heap).freed_blocks == 1U);
    BOOST_TEST(list.size() == 100U);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(readers_are_refused) {
    const ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", of_64_mib());
        heap.construct<int>("number", 1);
        heap.allocate(100);
        heap.snapshot();
    }
    ArchiveHeap heap(open_read_only, dir / "a.tyn");
    BOOST_TEST(throws(errc::read_only, [&] { reclaim(heap); }));
}

BOOST_AUTO_TEST_SUITE_END()
