#include "store/geometry.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "campaign_factor.hpp"
#include "seed.hpp"
#include "store/page_file.hpp"
#include "store/page_table.hpp"

namespace {
using namespace taiyen;
using namespace taiyen::store;

/// Every chunk of the extents, by where it lies in the file: {begin, end}. Fails if two overlap or anything lies in the headers.
std::map<std::uint64_t, std::uint64_t> chunks_in_file(const FileLayout& layout, const Extents& extents) {
    std::map<std::uint64_t, std::uint64_t> chunks;
    for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
        for (std::size_t k = 0; k < chunks_for(extents.of(sequence)); ++k) {
            const std::uint64_t at = layout.table_of(sequence, k);
            BOOST_TEST_REQUIRE(chunks.emplace(at, at + chunk_shapes[k].file_bytes()).second);
        }
    }
    std::uint64_t end = chunks_offset;
    for (const auto& [begin, chunk_end] : chunks) {
        BOOST_TEST_REQUIRE(begin >= end);
        end = chunk_end;
    }
    return chunks;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(geometry)

BOOST_AUTO_TEST_CASE(without_annex_chunks_follow_each_other_without_gap_or_overlap) {
    const FileLayout layout;
    std::uint64_t file_end = chunks_offset;
    std::uint64_t span_end = 0;
    std::uint64_t tables = 0;
    for (std::size_t k = 0; k < chunks_max; ++k) {
        const ChunkShape& chunk = chunk_shapes[k];
        BOOST_TEST(layout.table_of(Sequence::span, k) == file_end);
        BOOST_TEST(chunk.first == span_end);
        BOOST_TEST(chunk.first_table_page == tables);
        BOOST_TEST(chunk.table_pages * entries_per_table_page >= chunk.bytes / page_bytes);
        for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
            BOOST_TEST(chunk_of({start_of(sequence).value + chunk.first}) == k);
            BOOST_TEST(chunk_of({start_of(sequence).value + chunk.first + chunk.bytes - 1}) == k);
        }
        file_end += chunk.table_pages * page_bytes + chunk.bytes;
        span_end += chunk.bytes;
        tables += chunk.table_pages;
    }
}

BOOST_AUTO_TEST_CASE(each_page_has_one_entry_that_its_table_page_covers) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int i = 0; i < 20000; ++i) {
        const PageNumber first = random() % 2 == 0 ? PageNumber{0} : annex_first_page;
        const PageNumber page{first.value + (random() >> (33 + random() % 30))};
        const TablePlace place = place_of(page);
        const TableCover cover = cover_of(place.table_page);
        BOOST_TEST_REQUIRE(cover.first.value + place.entry == page.value);
        BOOST_TEST_REQUIRE(place.entry < cover.count);
        BOOST_TEST_REQUIRE((sequence_of_table(place.table_page) == sequence_of(page)));
    }
}

BOOST_AUTO_TEST_CASE(a_file_grows_with_use_and_not_with_capacity) {
    const FileLayout layout;
    BOOST_TEST(layout.file_bytes_for({64_KiB, 0}) == chunks_offset + page_bytes + 64_KiB);
    for (ByteCount extent = 1_MiB; extent < 1_TiB; extent *= 3) {
        const ByteCount whole = round_down(extent, page_bytes);
        BOOST_TEST(layout.file_bytes_for({whole, 0}) >= whole);
        BOOST_TEST(layout.file_bytes_for({whole, 0}) <= whole + whole / 128 + 64_KiB);
    }
}

BOOST_AUTO_TEST_CASE(span_and_annex_grow_in_any_order_without_moving_anything) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int life = 0; life < taiyen::test::rounds(15); ++life) {
        FileLayout layout;
        Extents extents{64_KiB, 0};
        std::map<std::uint64_t, std::uint64_t> before;
        while (extents.span < 1_TiB && extents.annex < 1_TiB) {
            const ByteCount more = (1 + random() % 256) * page_bytes << random() % 14;
            if (random() % 2 == 0) {
                extents.span += more;
            } else {
                extents.annex += more;
                layout = layout.with_annex(extents.annex, extents.span);
            }
            BOOST_TEST_REQUIRE(are_places(layout.places(), extents));
            const auto now = chunks_in_file(layout, extents);
            for (const auto& [begin, end] : before) BOOST_TEST_REQUIRE((now.contains(begin) && now.at(begin) == end));
            if (!before.empty())  // growth lies behind all that was there
                for (const auto& [begin, end] : now) BOOST_TEST_REQUIRE((before.contains(begin) || begin >= before.rbegin()->second));
            before = now;
            // Each sequence ascends; the file ends with the last page of either.
            std::uint64_t last_end = 0;
            for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
                std::uint64_t end = 0;
                for_each_piece(start_of(sequence), extents.of(sequence), [&](HeapOffset offset, ByteCount length) {
                    BOOST_TEST_REQUIRE(layout.file_offset(offset) >= end);
                    BOOST_TEST_REQUIRE(layout.file_offset({offset.value + length - page_bytes}) == layout.file_offset(offset) + length - page_bytes);
                    end = layout.file_offset(offset) + length;
                });
                last_end = std::max(last_end, end);
            }
            BOOST_TEST_REQUIRE(layout.file_bytes_for(extents) == last_end);
            // What is stored of it brings it back.
            BOOST_TEST_REQUIRE((FileLayout(layout.places_for(extents.annex)).places() == layout.places()));
        }
    }
}

BOOST_AUTO_TEST_CASE(places_that_no_growth_leaves_are_refused) {
    const Extents extents{3_MiB, 3_MiB};  // three chunks each
    BOOST_TEST(are_places({1, 2, 2}, extents));
    BOOST_TEST(are_places({3, 3, 3}, extents));
    BOOST_TEST(!are_places({2, 1, 2}, extents));
    BOOST_TEST(!are_places({1, 2}, extents));
    BOOST_TEST(!are_places({1, 2, 4}, extents));
    BOOST_TEST(!are_places({1, 2, 2, 2}, extents));
    BOOST_TEST(!are_places({1}, {1_MiB, 0}));
    BOOST_TEST(are_places({}, {1_MiB, 0}));
}

BOOST_AUTO_TEST_CASE(what_can_not_be_an_annex_is_none_and_one_grows_only_where_it_lies) {
    const auto annex = [](ByteCount extent, ByteCount used, const AnnexPlaces& places) {
        AnnexHead head{};
        head.extent = extent;
        head.used = used;
        head.places = places;
        return head;
    };
    BOOST_TEST(is_annex(annex(0, 0, {}), 1_MiB));
    BOOST_TEST(is_annex(annex(8192, 8192, {1}), 1_MiB));
    BOOST_TEST(!is_annex(annex(8000, 4096, {1}), 1_MiB));
    BOOST_TEST(!is_annex(annex(8192, 4000, {1}), 1_MiB));
    BOOST_TEST(!is_annex(annex(8192, 12288, {1}), 1_MiB));
    BOOST_TEST(!is_annex(annex(~ByteCount{4095}, 4096, {1}), 1_MiB));
    BOOST_TEST(!is_annex(annex(8192, 4096, {2}), 1_MiB));
    BOOST_TEST(!is_annex(annex(8192, 4096, {}), 1_MiB));

    const AnnexHead small = annex(8192, 8192, {1});
    BOOST_TEST(grows_from(small, small));
    BOOST_TEST(grows_from(annex(0, 0, {}), small));
    BOOST_TEST(grows_from(small, annex(3_MiB, 8192, {1, 2, 2})));
    BOOST_TEST(!grows_from(annex(3_MiB, 8192, {1, 2, 2}), small));
    BOOST_TEST(!grows_from(annex(3_MiB, 8192, {1, 2, 2}), annex(4_MiB, 8192, {1, 2, 3})));
    BOOST_TEST(!grows_from(small, annex(3_MiB, 8192, {2, 2, 2})));
}

BOOST_AUTO_TEST_CASE(pages_of_the_annex_are_named_by_their_place_in_it) {
    BOOST_TEST(text_of({3}) == "page 3");
    BOOST_TEST(text_of({annex_first_page.value + 3}) == "page 3 of the annex");
}

BOOST_AUTO_TEST_CASE(only_table_pages_that_were_asked_for_are_loaded) {
    std::vector<std::uint64_t> asked;
    PageTable table({}, [&](std::uint64_t index, TablePage&) { asked.push_back(index); }, 0);
    BOOST_TEST(table.page(3).checksum == 0U);
    BOOST_TEST(table.is_loaded(3));
    BOOST_TEST(!table.is_loaded(2));
    BOOST_TEST(!table.is_loaded(1000));
    BOOST_TEST(!table.is_loaded(annex_first_table_page + 3));
    BOOST_TEST((asked == std::vector<std::uint64_t>{3}));
}

BOOST_AUTO_TEST_SUITE_END()
