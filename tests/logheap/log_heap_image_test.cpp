// The image of the index: opening what was closed, parts that are damaged.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/planted.hpp"
#include "logheap/log_fixture.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(log_heap_image)

using namespace taiyen;
using logheap::ObjectLog;
using namespace logheap::test;
using taiyen::test::throws;

BOOST_AUTO_TEST_CASE(opening_what_was_closed_reads_no_cells_and_closing_it_unchanged_writes_none) {
    const Place at;
    constexpr std::uint64_t count = 20'000;
    {
        LogHeap heap(create_only, at.path, small(64));
        LogBatch batch;
        for (std::uint64_t id = 1; id <= count; ++id) {
            batch.put(LogId{id}, text("value"));
            if (id % 500 != 0) continue;
            heap.commit(batch);
            batch.clear();
        }
    }
    {
        const LogHeap reader(open_read_only, at.path);
        BOOST_TEST(reader.size() == count);
        BOOST_TEST(reader.stats().live_bytes == count * 40);
        BOOST_TEST(reader.stats().index_bytes == 0U);
        BOOST_TEST(reader.contains(LogId{7}));
        const std::uint64_t one = reader.stats().index_bytes;
        BOOST_TEST(one > 0U);
        for (std::uint64_t id = 1; id <= count; ++id) BOOST_TEST_REQUIRE(reader.contains(LogId{id}));
        BOOST_TEST(!reader.contains(LogId{count + 1}));
        BOOST_TEST(reader.stats().index_bytes > 20 * one);
    }
    const auto before = header_of(at.path);
    {
        LogHeapOptions options = small();
        options.background = false;
        LogHeap heap(open_only, at.path, options);
        BOOST_TEST(heap.contains(LogId{1}));
        BOOST_TEST(heap.stats().index_bytes < 100'000U);
    }
    const auto unchanged = header_of(at.path);
    BOOST_TEST(unchanged.sequence > before.sequence);
    BOOST_TEST(unchanged.image_place == before.image_place);
    BOOST_TEST((unchanged.flags & logheap::layout::header_is_clean) != 0U);
    {
        LogHeap heap(open_only, at.path);
        BOOST_TEST(heap.restoration().was_clean);
        heap.remove(LogId{1});
    }
    BOOST_TEST(header_of(at.path).image_place != before.image_place);
    const LogHeap heap(open_only, at.path);
    BOOST_TEST(heap.size() == count - 1);
    BOOST_TEST(!heap.contains(LogId{1}));
}

/// Whether damaged cells of an image are told, and all others read.
bool tells_damaged_cells() {
    const Place at;
    constexpr std::uint64_t count = 2'000;
    {
        LogHeap heap(create_only, at.path, small(64));
        LogBatch batch;
        for (std::uint64_t id = 1; id <= count; ++id) batch.put(LogId{id}, text("value"));
        heap.commit(batch);
    }
    {
        const auto header = header_of(at.path);
        BOOST_TEST_REQUIRE(header.image_place == 0U);
        // The serial at which a value was made: nothing but a checksum notices.
        damage(at.path, logheap::layout::segments_begin + header.segments * header.segment_bytes + 24 * 1000 + 16);
    }
    LogHeapOptions options = small();
    options.background = false;
    LogHeap heap(open_only, at.path, options);
    std::uint64_t found = 0;
    std::uint64_t refused = 0;
    for (std::uint64_t id = 1; id <= count; ++id) {
        try {
            found += heap.contains(LogId{id}) ? 1U : 0U;
        } catch (const Error& error) {
            BOOST_TEST(error.code() == errc::corrupt);
            BOOST_TEST(error.offset() >= logheap::layout::segments_begin + 64 * 64_KiB);
            ++refused;
        }
    }
    return found + refused == count && refused > 0 && refused < count / 16;
}

BOOST_AUTO_TEST_CASE(damaged_cells_of_an_image_are_told_and_others_read) {
    BOOST_TEST(tells_damaged_cells());
    planted_bug = Bug::log_heap_cells_unproven;
    const bool tells = tells_damaged_cells();
    planted_bug = Bug::none;
    BOOST_TEST(!tells);
}

BOOST_AUTO_TEST_CASE(a_heap_with_damaged_cells_is_read_and_not_written) {
    const Place at;
    LogHeapOptions options = small();
    options.background = false;
    {
        LogHeap heap(create_only, at.path, options);
        for (std::uint64_t id = 1; id <= 400; ++id) heap.put_as(LogId{id}, bytes_of(3000, id));
        for (std::uint64_t id = 1; id <= 400; id += 2) heap.remove(LogId{id});
    }
    const auto header = header_of(at.path);
    damage(at.path,
           logheap::layout::segments_begin + header.segments * header.segment_bytes + header.image_place * logheap::layout::image_room(header) + 16);
    LogHeap heap(open_only, at.path, options);
    std::vector<LogId> known;
    for (std::uint64_t id = 2; id <= 400; id += 2) {
        try {
            BOOST_TEST(holds(heap, LogId{id}, bytes_of(3000, id)));
            known.push_back(LogId{id});
        } catch (const Error&) {}
    }
    BOOST_TEST(known.size() < 200U);
    BOOST_TEST(known.size() > 150U);
    const auto tells = [&](const LogHeap& of) {
        std::set<LogId> told;
        BOOST_TEST(throws(errc::corrupt, [&] { of.for_each([&](const LogView& view) { told.insert(view.id()); }); }));
        BOOST_TEST(told.size() == known.size());
        for (const LogId id : known) BOOST_TEST((told.contains(id) && holds(of, id, bytes_of(3000, static_cast<std::uint64_t>(id)))));
    };
    tells(heap);
    BOOST_TEST(throws(errc::corrupt, [&] { heap.update(known[0], text("x")); }));
    BOOST_TEST(throws(errc::corrupt, [&] { heap.put(text("x")); }));
    BOOST_TEST(throws(errc::corrupt, [&] { heap.remove(known[0]); }));
    heap.close();
    BOOST_TEST(throws(errc::corrupt, [&] {
        LogHeap again(open_only, at.path, options);
        BOOST_TEST(again.update(known[0], bytes_of(3000, static_cast<std::uint64_t>(known[0]))));  // before anybody looked
        again.verify();
    }));
    BOOST_TEST(throws(errc::corrupt, [&] { const LogHeap again(open_only, at.path, options); }));  // it was not closed wholly
    tells(LogHeap(open_read_only, at.path, options));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
