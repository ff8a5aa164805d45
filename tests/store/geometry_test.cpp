#include "store/geometry.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace {
using namespace taiyen;
using namespace taiyen::store;
}  // namespace

BOOST_AUTO_TEST_SUITE(geometry)

BOOST_AUTO_TEST_CASE(chunks_follow_each_other_without_gap_or_overlap) {
    std::uint64_t file_end = chunks_offset;
    std::uint64_t span_end = 0;
    std::uint64_t tables = 0;
    for (std::size_t k = 0; k < 26; ++k) {
        const Chunk chunk = chunk_at(k);
        BOOST_TEST(chunk.table_file_offset == file_end);
        BOOST_TEST(chunk.span_offset == span_end);
        BOOST_TEST(chunk.first_table_page == tables);
        BOOST_TEST(chunk.table_pages * entries_per_table_page >= chunk.span_bytes / page_bytes);
        BOOST_TEST(chunk_of({chunk.span_offset}) == k);
        BOOST_TEST(chunk_of({chunk.span_offset + chunk.span_bytes - 1}) == k);
        file_end = chunk.pages_file_offset + chunk.span_bytes;
        span_end += chunk.span_bytes;
        tables += chunk.table_pages;
    }
}

BOOST_AUTO_TEST_CASE(each_page_has_one_entry_that_its_table_page_covers) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
        const PageNumber page{random() >> (24 + random() % 34)};
        const TablePlace place = place_of(page);
        const TableCover cover = cover_of(place.table_page);
        BOOST_TEST_REQUIRE(cover.first.value + place.entry == page.value);
        BOOST_TEST_REQUIRE(place.entry < cover.count);
        BOOST_TEST_REQUIRE(cover.file_offset % page_bytes == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_file_grows_with_use_and_not_with_capacity) {
    BOOST_TEST(file_bytes_for(64_KiB) == chunks_offset + page_bytes + 64_KiB);
    for (ByteCount extent = 1_MiB; extent < 1_TiB; extent *= 3) {
        const ByteCount whole = round_down(extent, page_bytes);
        BOOST_TEST(file_bytes_for(whole) >= whole);
        BOOST_TEST(file_bytes_for(whole) <= whole + whole / 128 + 64_KiB);
    }
}

BOOST_AUTO_TEST_SUITE_END()
