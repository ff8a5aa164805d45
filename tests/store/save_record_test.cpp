// A save as a record: what is decoded obeys its bounds, and each field that can't be refuses the whole save.

#include "store/save_record.hpp"

#include <cstring>
#include <functional>

#include <boost/test/unit_test.hpp>

namespace {

using namespace taiyen;
using namespace taiyen::store;

constexpr ByteCount capacity = 1_MiB;
constexpr std::uint64_t annex_first = std::uint64_t{1} << 40U;

struct Parts {
    SaveHead head{.generation = 5,
                  .serial = 0,
                  .extent = 8 * page_bytes,
                  .page_count = 3,
                  .image_count = 2,
                  .flags = save_has_annex,
                  .stage_offset = 0,
                  .stage_digest = 0,
                  .reserved = 0};
    AnnexHead annex{.extent = 2 * page_bytes, .used = page_bytes, .places = {1}};
    std::vector<SavedPage> pages{{1, 11}, {7, 0}, {annex_first, 12}};
    std::uint64_t number = 5;
    std::uint32_t kind = record_images;
    std::size_t missing = 0;  ///< bytes at the end
};

std::optional<SaveRecord> decoded(const Parts& parts) {
    log::Record record;
    record.kind = parts.kind;
    record.number = parts.number;
    const auto add = [&](const void* from, std::size_t bytes) {
        const auto* const at = static_cast<const std::byte*>(from);
        record.payload.insert(record.payload.end(), at, at + bytes);
    };
    add(&parts.head, sizeof parts.head);
    if ((parts.head.flags & save_has_annex) != 0) add(&parts.annex, sizeof parts.annex);
    add(parts.pages.data(), parts.pages.size() * sizeof(SavedPage));
    record.payload.resize(record.payload.size() + 2 * page_bytes - parts.missing);
    return decode_save(record, capacity);
}

BOOST_AUTO_TEST_SUITE(save_record)

BOOST_AUTO_TEST_CASE(a_save_is_decoded_as_it_was_written) {
    const auto save = decoded({});
    BOOST_REQUIRE(save);
    BOOST_TEST((save->pages.size() == 3 && save->images.size() == 2 * page_bytes && !save->staged() && !save->punches()));
    BOOST_TEST((save->annex.used == page_bytes && save->extents().span == 8 * page_bytes));
}

BOOST_AUTO_TEST_CASE(a_field_that_can_not_be_refuses_the_save) {
    const std::function<void(Parts&)> faults[] = {
        [](Parts& p) { p.kind = 2; },
        [](Parts& p) { p.number = 6; },
        [](Parts& p) { p.missing = 1; },
        [](Parts& p) { p.head.extent = capacity + page_bytes; },
        [](Parts& p) { p.head.extent += 8; },
        [](Parts& p) { p.head.page_count = 11; },
        [](Parts& p) { p.head.image_count = 4; },
        [](Parts& p) { p.head.image_count = 1, p.missing = page_bytes; },
        [](Parts& p) { p.head.reserved = 1; },
        [](Parts& p) { p.number = p.head.generation = count_end; },
        [](Parts& p) { p.head.serial = count_end; },
        [](Parts& p) { p.head.stage_offset = 8192; },
        [](Parts& p) { p.head.flags = 0; },
        [](Parts& p) { p.annex.extent = sequence_bytes_max + page_bytes; },
        [](Parts& p) { p.annex.extent += 8; },
        [](Parts& p) { p.annex.used = 3 * page_bytes; },
        [](Parts& p) { p.annex.used = 100; },
        [](Parts& p) { p.annex.places = {}; },
        [](Parts& p) { p.annex.places = {2}; },
        [](Parts& p) { p.pages[1].page = 1; },
        [](Parts& p) { p.pages[1].page = 8; },
        [](Parts& p) { p.pages[2].page = annex_first + 2; },
        [](Parts& p) { p.pages[1].checksum = 1; },
    };
    for (std::size_t i = 0; i < std::size(faults); ++i) {
        Parts parts;
        faults[i](parts);
        BOOST_TEST(!decoded(parts).has_value(), "fault " << i);
    }
    log::Record short_one;
    short_one.kind = record_images;
    short_one.payload.resize(sizeof(SaveHead) - 1);
    BOOST_TEST(!decode_save(short_one, capacity).has_value());
    const Parts parts;
    short_one.payload.resize(sizeof(SaveHead) + 8);
    std::memcpy(short_one.payload.data(), &parts.head, sizeof parts.head);
    BOOST_TEST(!decode_save(short_one, capacity).has_value());
}

BOOST_AUTO_TEST_CASE(a_staged_save_lies_behind_a_ring_and_on_a_page) {
    const Parts parts;
    StagedSave staged{parts.head, parts.annex, {}};
    for (const std::uint64_t offset : {0ULL, 4096ULL, 8193ULL}) {
        staged.head.stage_offset = offset;
        BOOST_TEST(!decode_staged(staged, capacity).has_value(), offset);
    }
    staged.head.stage_offset = 8192 + 65536;
    const auto save = decode_staged(staged, capacity);
    BOOST_REQUIRE(save);
    BOOST_TEST(save->staged());
    BOOST_TEST(!decode_staged(staged, 4 * page_bytes).has_value());
    staged.head.serial = count_end - 1;
    BOOST_TEST(decode_staged(staged, capacity).has_value());
    staged.head.serial = count_end;
    BOOST_TEST(!decode_staged(staged, capacity).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
