// Which blocks compact() leaves where they are: one reason at a time, at the edges of what declared types know.

#include <boost/test/unit_test.hpp>

#include <cstring>

#include "heap/core.hpp"
#include "heap/test_span.hpp"
#include "transfer/pinned_blocks.hpp"

namespace taiyen::transfer {
namespace {

constexpr ByteCount pinned_span_bytes = ByteCount{4} << 20U;
constexpr std::uintptr_t pinned_base = 0x4700'0000'0000;

struct PinnedFixture {
    heap::test::SpanMemory memory{pinned_span_bytes};
    heap::test::TestHost host;
    std::unique_ptr<heap::Engine> engine;
    std::filesystem::path path = "pinned.tyn";
    std::optional<PointerWalk::State::Coverage> known;
    CompactReport report;

    PinnedFixture() {
        heap::Engine::format(memory.base(), pinned_span_bytes, host);
        engine = std::make_unique<heap::Engine>(memory.base(), pinned_span_bytes, host);
        known.emplace(pinned_span_bytes);
    }
    /// A block of zeros whose neighbours are free.
    std::uint64_t apart(ByteCount bytes) {
        auto* const before = static_cast<std::byte*>(engine->allocate(bytes));
        const std::uint64_t offset = whole(bytes);
        auto* const behind = static_cast<std::byte*>(engine->allocate(bytes));
        engine->deallocate(before);
        holes.push_back(behind);
        return offset;
    }
    std::uint64_t whole(ByteCount bytes) {
        auto* const block = static_cast<std::byte*>(engine->allocate(bytes));
        std::memset(block, 0, engine->usable_size(block));
        return static_cast<std::uint64_t>(block - memory.base());
    }
    void put(std::uint64_t place, std::uint64_t value) { std::memcpy(memory.base() + place, &value, sizeof value); }
    void know(std::uint64_t block) { known->whole.set(block); }
    std::vector<std::uint64_t> pinned(const std::vector<HeapOffset>& held = {}) {
        for (std::byte* const hole : holes) engine->deallocate(hole);
        holes.clear();
        report = {};
        const HeapView view{*engine, memory.base(), pinned_base, pinned_span_bytes, path};
        return PinnedBlocks(view, *known, held, report).offsets();
    }
    std::vector<std::byte*> holes;
};

using Offsets = std::vector<std::uint64_t>;

BOOST_FIXTURE_TEST_SUITE(pinned_blocks, PinnedFixture)

BOOST_AUTO_TEST_CASE(what_no_type_covers_stays_and_the_rest_is_free_to_go) {
    const std::uint64_t first = whole(64);
    const std::uint64_t second = whole(64);
    const std::uint64_t third = whole(64);
    BOOST_REQUIRE((second == first + 64 && third == second + 64));
    know(first);
    know(third);
    BOOST_TEST(pinned() == Offsets{second}, boost::test_tools::per_element());
    BOOST_TEST(report.undeclared_blocks == 1U);
    BOOST_TEST(report.live_blocks == 3U);
    BOOST_TEST(report.live_bytes == 192U);
    BOOST_TEST(report.pinned_bytes == 64U);
    // Known in a part only, which begins where the block before ends.
    known->parts.push_back({second, second + 8});
    BOOST_TEST(pinned().empty());
    know(second);
    BOOST_TEST(pinned().empty());
    BOOST_TEST(report.undeclared_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(what_unknown_bytes_lead_to_stays_at_whatever_place_they_do) {
    const std::uint64_t holder = apart(64);
    const std::uint64_t target = apart(48);
    const std::uint64_t other = apart(80);
    know(target);
    know(other);
    known->parts.push_back({holder + 24, holder + 40});
    const auto clear = [&] { std::memset(memory.base() + holder, 0, 64); };
    const auto expect = [&](std::uint64_t at, std::uint64_t place, bool stays) {
        clear();
        put(holder + at, pinned_base + place);
        BOOST_TEST_CONTEXT("a word at " << at << " for the place " << place) {
            BOOST_TEST((pinned() == (stays ? Offsets{target} : Offsets{})));
            BOOST_TEST(report.suspected_blocks == (stays ? 1U : 0U));
        }
    };
    for (std::uint64_t at = 0; at + 8 <= 64; ++at) expect(at, target, at < 24 || at + 8 > 40);
    for (std::uint64_t place = target - 1; place <= target + 49; ++place) expect(3, place, place >= target && place <= target + 48);
    // Parts in any order, and one in the middle of another, cover no less.
    clear();
    put(holder + 24, pinned_base + target);
    known->parts = {{holder + 40, holder + 64}, {holder + 8, holder + 60}, {holder + 16, holder + 20}};
    BOOST_TEST(pinned().empty());
    clear();
    put(holder, pinned_base + target);
    BOOST_TEST(pinned() == Offsets{target}, boost::test_tools::per_element());
    BOOST_TEST(report.pinned_bytes == 48U);
    // Where all is known nothing is suspected.
    know(holder);
    BOOST_TEST(pinned().empty());
}

BOOST_AUTO_TEST_CASE(an_end_that_is_the_beginning_of_the_next_keeps_both) {
    const std::uint64_t first = whole(64);
    const std::uint64_t second = whole(64);
    const std::uint64_t holder = whole(64);
    BOOST_REQUIRE(second == first + 64);
    know(first);
    know(second);
    known->parts.push_back({holder, holder + 8});
    put(holder + 8, pinned_base + second);
    BOOST_TEST(pinned() == (Offsets{first, second}), boost::test_tools::per_element());
    BOOST_TEST(report.suspected_blocks == 2U);
}

BOOST_AUTO_TEST_CASE(a_block_that_ends_with_what_is_in_use_stays_for_its_end) {
    const std::uint64_t holder = whole(64);
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t run = whole(3 * page_bytes);
        know(run);
        if (run + 3 * page_bytes != engine->extent()) continue;
        known->parts.push_back({holder, holder + 8});
        put(holder + 8, pinned_base + engine->extent());
        BOOST_TEST(pinned() == Offsets{run}, boost::test_tools::per_element());
        put(holder + 8, pinned_base + engine->extent() + 1);
        BOOST_TEST(pinned().empty());
        return;
    }
    BOOST_ERROR("no block ends with the extent");
}

BOOST_AUTO_TEST_CASE(what_is_held_or_found_by_its_address_stays_and_counts_once) {
    const std::uint64_t held = apart(64);
    const std::uint64_t keyed = apart(64);
    const std::uint64_t both = apart(64);
    for (const std::uint64_t block : {held, keyed, both}) know(block);
    known->keys = {keyed + 16, both, both + 8, pinned_span_bytes * 2};
    BOOST_TEST(pinned({{held}, {both}}) == (Offsets{held, keyed, both}), boost::test_tools::per_element());
    BOOST_TEST(report.held_blocks == 2U);
    BOOST_TEST(report.keyed_blocks == 1U);
    BOOST_TEST(report.pinned_bytes == 192U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer
