// Where compact() would move blocks, and which it leaves: over spans of random blocks, held against what the engine says of them.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "heap/core.hpp"
#include "heap/test_span.hpp"
#include "seed.hpp"
#include "transfer/compaction_plan.hpp"

namespace taiyen::transfer {
namespace {

constexpr ByteCount span_bytes = ByteCount{4} << 20U;

struct PlanFixture {
    heap::test::SpanMemory memory{span_bytes};
    heap::test::TestHost host;
    std::unique_ptr<heap::Engine> engine;
    std::filesystem::path path = "plan.tyn";
    std::mt19937_64 random{taiyen::test::seed_of_run()};
    std::map<std::uint64_t, std::vector<std::byte>> blocks;  ///< what lies where

    PlanFixture() { begin(); }
    void begin() {
        std::memset(memory.base(), 0, span_bytes);
        host = {};
        heap::Engine::format(memory.base(), span_bytes, host);
        engine = std::make_unique<heap::Engine>(memory.base(), span_bytes, host);
        blocks.clear();
    }
    HeapView view() const { return {*engine, memory.base(), reinterpret_cast<std::uintptr_t>(memory.base()), span_bytes, path}; }
    std::uint64_t allocate(ByteCount bytes, ByteCount alignment = 16) {
        auto* const block = static_cast<std::byte*>(engine->allocate(bytes, alignment));
        const auto offset = static_cast<std::uint64_t>(block - memory.base());
        std::vector<std::byte>& content = blocks[offset];
        content.resize(engine->usable_size(block));
        for (std::byte& byte : content) byte = static_cast<std::byte>(random());
        std::memcpy(block, content.data(), content.size());
        return offset;
    }
    void free(std::uint64_t offset) {
        BOOST_REQUIRE(engine->deallocate(memory.base() + offset) == heap::FreeResult::freed);
        blocks.erase(offset);
    }
    ByteCount some_bytes() {
        switch (random() % 16) {
            case 0: return 2000 + random() % 20'000;
            case 1: return (1 + random() % 4) * page_bytes;
            case 2: return 300 + random() % 1700;
            case 3:
            case 4:
            case 5: return 24 + random() % 7 * 16;
            default: return 1 + random() % 300;
        }
    }
    /// Blocks of all kinds, of which so many of a hundred are left.
    void churn(int count, unsigned left) {
        for (int i = 0; i < count; ++i) allocate(some_bytes(), random() % 3 == 0 ? 8 : random() % 20 == 0 ? 256 : 16);
        std::vector<std::uint64_t> gone;
        for (const auto& [offset, content] : blocks)
            if (random() % 100 >= left) gone.push_back(offset);
        for (const std::uint64_t offset : gone) free(offset);
        if (random() % 2 == 0) engine->release_free_pages(page_bytes);
    }
    void check_blocks() const {
        BOOST_TEST(heap::test::damage_text(*engine) == "");
        std::size_t count = 0;
        engine->for_each_block([&](const heap::Block& block) {
            const auto known = blocks.find(block.offset.value);
            BOOST_REQUIRE_MESSAGE(known != blocks.end(), block.offset.value);
            BOOST_REQUIRE(known->second.size() == block.usable_bytes);
            BOOST_REQUIRE(std::memcmp(known->second.data(), memory.base() + block.offset.value, block.usable_bytes) == 0);
            ++count;
            return true;
        });
        BOOST_TEST(count == blocks.size());
    }

    static std::uint64_t alignment_of(std::uint64_t offset, std::uint64_t bytes) {
        std::uint64_t alignment = 1;
        while (alignment < page_bytes && (offset | bytes) % (alignment * 2) == 0) alignment *= 2;
        return alignment;
    }
    static std::uint64_t lines_of(std::uint64_t offset, std::uint64_t bytes) { return (offset + bytes - 1) / 64 - offset / 64; }

    /// Whatever a plan may promise.
    void check_plan(const CompactionPlan& plan, const std::set<std::uint64_t>& pinned, ByteCount longest) const {
        std::vector<bool> taken(span_bytes / 8, false);
        std::set<std::uint64_t> gone;
        std::size_t next = 0;
        for (const CompactionPlan::Group& group : plan.groups()) {
            BOOST_REQUIRE(group.first == next);
            BOOST_REQUIRE(group.first < group.end);
            next = group.end;
            std::uint64_t bytes = 0;
            for (std::size_t i = group.first; i < group.end; ++i) {
                const CompactionPlan::Move& move = plan.moves()[i];
                const auto block = blocks.find(move.from);
                BOOST_REQUIRE(block != blocks.end());
                BOOST_REQUIRE(block->second.size() == move.bytes);
                BOOST_REQUIRE(gone.insert(move.from).second);
                BOOST_REQUIRE(!pinned.contains(move.from));
                BOOST_REQUIRE((move.bytes <= longest || move.bytes < page_bytes));
                BOOST_REQUIRE(move.to % alignment_of(move.from, move.bytes) == 0);
                if (move.bytes % 16 == 0 && move.bytes < page_bytes) BOOST_REQUIRE(lines_of(move.to, move.bytes) <= lines_of(move.from, move.bytes));
                BOOST_REQUIRE(move.to + move.bytes <= engine->extent());
                for (std::uint64_t at = move.to; at < move.to + move.bytes; at += 8) {
                    BOOST_REQUIRE(!engine->find_block(memory.base() + at));
                    BOOST_REQUIRE(!taken[at / 8]);
                    taken[at / 8] = true;
                }
                bytes += move.bytes;
            }
            BOOST_REQUIRE(bytes == group.bytes);
            BOOST_REQUIRE(group.freed != 0U);
            BOOST_REQUIRE((group.taken == 0 || group.to < group.from));
            // Nobody is left in the pages that become free, and nobody has come.
            const std::uint64_t first = std::uint64_t{group.from} * page_bytes;
            const std::uint64_t end = first + std::uint64_t{group.freed} * page_bytes;
            for (auto block = blocks.lower_bound(first); block != blocks.end() && block->first < end; ++block)
                BOOST_REQUIRE(gone.contains(block->first));
        }
        BOOST_REQUIRE(next == plan.moves().size());
        for (const CompactionPlan::Group& group : plan.groups())
            for (std::uint64_t at = std::uint64_t{group.from} * page_bytes; at < (std::uint64_t{group.from} + group.freed) * page_bytes; at += 8)
                BOOST_REQUIRE(!taken[at / 8]);
    }
    /// Moves the first groups, and frees what they leave behind.
    void carry_out(const CompactionPlan& plan, std::size_t groups) {
        std::vector<CompactionPlan::Move> moves;
        std::uint64_t pages = plan.pages_in_use();
        std::uint64_t tails = 0;
        for (std::size_t g = 0; g < groups; ++g) {
            const CompactionPlan::Group& group = plan.groups()[g];
            for (std::size_t i = group.first; i < group.end; ++i) moves.push_back(plan.moves()[i]);
            pages = pages + group.taken - group.freed;
            if (plan.moves()[group.first].bytes > page_bytes && plan.moves()[group.first].bytes % page_bytes != 0) ++tails;
        }
        std::shuffle(moves.begin(), moves.end(), random);
        for (const CompactionPlan::Move& move : moves) {
            BOOST_REQUIRE(engine->allocate_at(memory.base() + move.to, move.bytes, move.bytes % 16 == 0 ? 16 : 8));
            std::memcpy(memory.base() + move.to, memory.base() + move.from, move.bytes);
        }
        for (const CompactionPlan::Move& move : moves) {
            BOOST_REQUIRE(engine->deallocate(memory.base() + move.from) == heap::FreeResult::freed);
            auto block = blocks.extract(move.from);
            block.key() = move.to;
            BOOST_REQUIRE(blocks.insert(std::move(block)).inserted);
        }
        check_blocks();
        const HeapView at = view();
        const CompactionPlan after(at, {}, ~ByteCount{0});
        BOOST_TEST(after.pages_in_use() <= pages);
        BOOST_TEST(after.pages_in_use() + tails >=
                   pages);  // a page in which there was only the tail of a block becomes free, too, and is not counted
    }
    /// Pages that hold blocks, and those that it would take if there were no holes in them.
    std::pair<std::uint64_t, std::uint64_t> pages_of_blocks() const {
        std::set<std::uint64_t> pages;
        std::uint64_t bytes = 0;
        for (const auto& [offset, content] : blocks) {
            bytes += content.size();
            for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + content.size(); ++page) pages.insert(page);
        }
        return {pages.size(), (bytes + page_bytes - 1) / page_bytes};
    }
};

BOOST_FIXTURE_TEST_SUITE(compaction_plans, PlanFixture)

BOOST_AUTO_TEST_CASE(lead_to_free_places_group_by_group_and_come_to_an_end) {
    for (int round = 0; round < 8; ++round) {
        begin();
        churn(1500, 10 + static_cast<unsigned>(random() % 50));
        const std::uint64_t before = pages_of_blocks().first;
        int steps = 0;
        for (;; ++steps) {
            BOOST_REQUIRE(steps < 200);
            const HeapView at = view();
            const CompactionPlan plan(at, {}, ~ByteCount{0});
            BOOST_TEST(plan.large_blocks() == 0U);
            if (plan.groups().empty()) break;
            check_plan(plan, {}, ~ByteCount{0});
            carry_out(plan, random() % 4 == 0 ? 1 + random() % plan.groups().size() : plan.groups().size());
        }
        const auto [pages, needed] = pages_of_blocks();
        BOOST_TEST(steps > 0);
        BOOST_TEST(pages < before);
        BOOST_TEST(pages <= needed + needed / 5 + 10);
        // What is in use lies in front, but for what no hole is long enough for.
        std::uint64_t last = 0;
        for (const auto& [offset, content] : blocks) last = std::max(last, offset + content.size());
        BOOST_TEST(last / page_bytes <= pages + pages / 4 + 40);
    }
}

BOOST_AUTO_TEST_CASE(leave_what_is_pinned_and_what_is_too_long) {
    for (int round = 0; round < 8; ++round) {
        begin();
        churn(1500, 20);
        std::set<std::uint64_t> pinned;
        for (const auto& [offset, content] : blocks)
            if (random() % (content.size() < page_bytes ? 40 : 4) == 0) pinned.insert(offset);
        const ByteCount longest = 2 * page_bytes;
        for (int steps = 0;; ++steps) {
            BOOST_REQUIRE(steps < 200);
            const HeapView at = view();
            const CompactionPlan plan(at, {pinned.begin(), pinned.end()}, longest);
            if (plan.groups().empty()) break;
            check_plan(plan, pinned, longest);
            carry_out(plan, plan.groups().size());
        }
        for (const std::uint64_t offset : pinned) BOOST_TEST(blocks.contains(offset));
    }
}

BOOST_AUTO_TEST_CASE(bring_no_block_into_a_packed_page_that_others_have_just_left) {
    std::map<std::uint64_t, std::vector<std::uint64_t>> pages;
    while (pages.size() < 4) {
        const std::uint64_t offset = allocate(24, 8);
        pages[offset / page_bytes].push_back(offset);
    }
    // The first page finds room in the second one. What is left of that is too little for the third; it and the first page would do.
    const std::array<std::size_t, 4> left{20, 100, 110, 0};
    auto count = left.begin();
    for (const auto& [page, offsets] : pages)
        for (std::size_t i = *count++; i < offsets.size(); ++i) free(offsets[i]);
    const HeapView at = view();
    const CompactionPlan plan(at, {}, ~ByteCount{0});
    check_plan(plan, {}, ~ByteCount{0});
    BOOST_TEST(plan.moves().size() == left[0]);
    carry_out(plan, plan.groups().size());
}

BOOST_AUTO_TEST_CASE(take_a_block_of_just_the_longest_size_and_count_one_that_is_longer) {
    const std::uint64_t gone = allocate(16 * page_bytes);
    const std::uint64_t below = allocate(3 * page_bytes);
    const std::uint64_t stays = allocate(4 * page_bytes);
    BOOST_REQUIRE((gone < below && below < stays));
    free(gone);
    const HeapView at = view();
    const CompactionPlan all(at, {}, 4 * page_bytes);
    BOOST_TEST(all.large_blocks() == 0U);
    BOOST_TEST(all.moves().size() == 2U);
    const CompactionPlan one(at, {}, 4 * page_bytes - 1);
    BOOST_TEST(one.large_blocks() == 1U);
    BOOST_TEST_REQUIRE(one.moves().size() == 1U);
    BOOST_TEST(one.moves()[0].from == below);
    const CompactionPlan none(at, {below, stays}, ~ByteCount{0});
    BOOST_TEST(none.moves().empty());
    BOOST_TEST(none.large_blocks() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer
