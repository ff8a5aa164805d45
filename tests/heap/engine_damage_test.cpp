/// Hostile bytes: whatever lies in the span, calls end with a result, HeapFull or a typed error.

#include <functional>
#include <optional>
#include <vector>

#include "heap/engine_layout.hpp"
#include "heap/geometry.hpp"
#include "test_span.hpp"

BOOST_AUTO_TEST_SUITE(engine_damage)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;
using namespace taiyen::literals;

constexpr ByteCount capacity = 4_MiB;

Content some_content(std::mt19937_64& random) { return random() % 2 == 0 ? Content::any : Content::pointer_free; }

/// A heap with blocks of all sizes, holes and roots.
void populate(Engine& engine, std::mt19937_64& random) {
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 1500; ++i)
        blocks.push_back(
            engine.allocate(random() % 12 == 0 ? random() % 20'000 : random() % 400, ByteCount{8} << random() % 2, some_content(random)));
    for (unsigned i = 0; i < 40; ++i) blocks[i * 7] = engine.resize(blocks[i * 7], random() % 30'000);
    for (std::size_t i = 0; i < blocks.size(); i += 1 + random() % 4) engine.deallocate(blocks[i]);
    for (unsigned i = 0; i < 30; ++i) engine.add_root({"name " + std::to_string(i), "type", {i * 16}, 0, 1});
    engine.release_free_pages(8192);
}

/// Calls everything; only the failures that are allowed may come out.
void use(Engine& engine, std::byte* base, std::mt19937_64& random) {
    const auto tolerate = [](const std::function<void()>& call) {
        try {
            call();
        } catch (const Error&) {
        } catch (const HeapFull&) {}
    };
    for (unsigned i = 0; i < 60; ++i) {
        tolerate([&] {
            engine.allocate(random() % 12 == 0 ? random() % 100'000 : random() % 400, random() % 10 == 0 ? 8192 : ByteCount{8} << random() % 2,
                            some_content(random));
        });
        tolerate([&] { engine.deallocate(base + random() % capacity / 8 * 8); });
        tolerate([&] { engine.deallocate(base + random() % capacity / 4096 * 4096); });
        tolerate([&] { engine.allocate_at(base + random() % capacity / 8 * 8, random() % 500, ByteCount{8} << random() % 2, some_content(random)); });
        tolerate([&] { engine.allocate_at(base + random() % capacity / 4096 * 4096, random() % 20'000); });
        tolerate([&] { engine.find_block(base + random() % capacity); });
        tolerate([&] { engine.stretch_at({random() % capacity}); });
    }
    tolerate([&] {
        std::vector<Block> blocks;
        engine.for_each_block([&](const Block& block) {
            blocks.push_back(block);
            return true;
        });
        for (unsigned i = 0; i < 20 && !blocks.empty(); ++i)
            tolerate([&] { engine.resize(base + blocks[random() % blocks.size()].offset.value, random() % 50'000); });
    });
    for (unsigned i = 0; i < 30; ++i) {
        tolerate([&] { engine.find_root("name " + std::to_string(i)); });
        tolerate([&] { engine.add_root({"other " + std::to_string(i), "type", {0}, 0, 1}); });
        tolerate([&] { engine.remove_root("name " + std::to_string(i)); });
    }
    tolerate([&] { engine.roots(); });
    tolerate([&] { engine.release_free_pages(4096); });
    tolerate([&] { engine.forget({0}, capacity); });
    BOOST_TEST(engine.check(5).size() <= 5U);
    engine.stats();
}

struct Heap {
    Heap() : memory(capacity) { Engine::format(memory.base(), capacity, host); }
    SpanMemory memory;
    TestHost host;
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_corruption_of_metadata_ends_in_errors_not_in_crashes) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const Geometry geometry(capacity);
    for (unsigned round = 0; round < 150; ++round) {
        Heap heap;
        std::byte* base = heap.memory.base();
        std::optional<Engine> engine(std::in_place, base, capacity, heap.host);
        populate(*engine, random);
        const auto directory = reinterpret_cast<const layout::SuperBlock*>(base)->directory;
        for (unsigned hits = 1 + static_cast<unsigned>(random() % 6); hits != 0; --hits) {
            std::uint64_t offset = 0;
            switch (random() % 4) {
                case 0: offset = random() % sizeof(layout::SuperBlock); break;
                case 1: offset = directory + random() % 4096; break;
                default: {
                    const Region& region = geometry.region(static_cast<unsigned>(random() % 4));
                    const std::uint64_t begin = random() % 2 == 0 ? region.states : region.lines;
                    offset = begin + random() % (std::uint64_t{region.first_user} * page_bytes - begin) / 4;
                }
            }
            for (std::uint64_t i = 0; i < 8 && offset + i < heap.host.extent; ++i)
                base[offset + i] = random() % 2 == 0 ? base[offset + i] : static_cast<std::byte>(random());
        }
        if (random() % 2 == 0) {
            engine.reset();
            try {
                engine.emplace(base, capacity, heap.host);
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::corrupt || error.code() == errc::unsupported_version));
                continue;
            }
        }
        use(*engine, base, random);
    }
}

BOOST_AUTO_TEST_CASE(a_span_of_random_bytes_is_no_heap) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    SpanMemory memory(capacity);
    TestHost host;
    for (std::size_t i = 0; i < capacity; ++i) memory.base()[i] = static_cast<std::byte>(random());
    BOOST_CHECK_EXCEPTION(Engine(memory.base(), capacity, host), Error, [](const Error& error) { return error.code() == errc::corrupt; });
    Engine::format(memory.base(), capacity, host);  // a valid super block over random metadata
    reinterpret_cast<layout::SuperBlock*>(memory.base())->extent = 2_MiB;
    host.extent = 2_MiB;
    Engine engine(memory.base(), capacity, host);
    BOOST_TEST(engine.check(10).size() == 10U);
    use(engine, memory.base(), random);
}

BOOST_AUTO_TEST_CASE(a_directory_without_an_empty_slot_ends_each_search) {
    Heap heap;
    std::byte* base = heap.memory.base();
    Engine engine(base, capacity, heap.host);
    engine.add_root({"name", "type", {16}, 8, 1});
    std::byte* const directory = base + reinterpret_cast<const layout::SuperBlock*>(base)->directory;
    const std::uint32_t count = reinterpret_cast<const layout::DirectoryHead*>(directory)->slots;
    auto* slots = reinterpret_cast<layout::DirectorySlot*>(directory + sizeof(layout::DirectoryHead));
    layout::DirectorySlot taken{};
    for (std::uint32_t i = 0; i < count; ++i)
        if (slots[i].entry != 0)
            taken = slots[i];
        else
            slots[i] = {0, 1};  // a removed one: each search goes on behind it
    BOOST_REQUIRE(taken.entry != 0);
    BOOST_TEST(!engine.find_root("another").has_value());
    BOOST_TEST(engine.find_root("name").has_value());
    BOOST_TEST(engine.roots().size() == 1U);
    BOOST_TEST(!engine.check(1).empty());
    for (std::uint32_t i = 0; i < count; ++i) slots[i] = taken;  // one object, again and again
    const auto is_corrupt = [](const Error& error) { return error.code() == errc::corrupt; };
    BOOST_TEST(!engine.find_root("another").has_value());
    BOOST_CHECK_EXCEPTION(engine.add_root({"another", "type", {16}, 8, 1}), Error, is_corrupt);
    BOOST_TEST(engine.roots().size() <= count);
    BOOST_TEST(!engine.check(1).empty());
}

BOOST_AUTO_TEST_CASE(opening_refuses_what_is_not_this_format_with_its_own_code) {
    const auto opened_with = [](const std::function<void(layout::SuperBlock&)>& change) {
        Heap heap;
        change(*reinterpret_cast<layout::SuperBlock*>(heap.memory.base()));
        try {
            Engine engine(heap.memory.base(), capacity, heap.host);
            return errc{};
        } catch (const Error& error) {
            return static_cast<errc>(error.code().value());
        }
    };
    BOOST_TEST((opened_with([](layout::SuperBlock&) {}) == errc{}));
    BOOST_TEST((opened_with([](layout::SuperBlock& super) { super.magic ^= 1; }) == errc::corrupt));
    BOOST_TEST((opened_with([](layout::SuperBlock& super) { super.version = 3; }) == errc::unsupported_version));
    BOOST_TEST((opened_with([](layout::SuperBlock& super) { super.page_bytes = 8192; }) == errc::corrupt));
    BOOST_TEST((opened_with([](layout::SuperBlock& super) { super.capacity += 4096; }) == errc::corrupt));
    for (const std::uint64_t extent : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{8193}, capacity + 4096, ~std::uint64_t{0},
                                       ~std::uint64_t{4095}, std::uint64_t{256_KiB + 4096}})
        BOOST_TEST((opened_with([extent](layout::SuperBlock& super) { super.extent = extent; }) == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(check_finds_each_changed_summary_and_each_changed_count) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Heap heap;
    std::byte* base = heap.memory.base();
    Engine engine(base, capacity, heap.host);
    populate(engine, random);
    BOOST_REQUIRE(damage_text(engine) == "");
    const Geometry geometry(capacity);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{{16, sizeof(layout::SuperBlock)}};
    for (unsigned index = 0; index < geometry.count(); ++index)
        if (const Region& region = geometry.region(index); region.first_user * page_bytes < engine.extent() && region.levels != 0)
            ranges.emplace_back(region.level_offset[0], region.level_offset[0] + (region.end - region.first) / 256 * sizeof(layout::Summary));
    const auto is_longest = [](std::uint64_t offset) {
        return offset >= offsetof(layout::SuperBlock, regions) && offset % sizeof(layout::Summary) / 4 == offsetof(layout::Summary, longest) / 4;
    };
    // Upper bounds become what they bound, so that each lower number is wrong.
    for (const auto& [begin, end] : ranges)
        for (std::uint64_t offset = begin; offset < end; offset += 4) {
            if (!is_longest(offset)) continue;
            auto& summary = *reinterpret_cast<layout::Summary*>(base + offset - offsetof(layout::Summary, longest));
            std::uint32_t least = 0;
            for (std::uint32_t most = summary.longest; least < most;) {
                summary.longest = least + (most - least) / 2;
                if (engine.check(1).empty())
                    most = summary.longest;
                else
                    least = summary.longest + 1;
            }
            summary.longest = least;
            BOOST_REQUIRE(least >= std::max(summary.prefix, summary.suffix));
        }
    for (const auto& [begin, end] : ranges)
        for (std::uint64_t offset = begin; offset < end; ++offset) {
            const auto bit = static_cast<std::byte>(1U << (random() % 8));
            if (offset >= 16 && offset < 24) continue;                                                   // the capacity is compared at opening only
            if (is_longest(offset) && (base[offset] & bit) == std::byte{0} && offset % 4 < 2) continue;  // an upper bound may be too high
            base[offset] ^= bit;
            BOOST_REQUIRE_MESSAGE(!engine.check(1).empty(), "a flipped bit at " << offset << " was not found");
            base[offset] ^= bit;
        }
    BOOST_TEST(damage_text(engine) == "");
}

BOOST_AUTO_TEST_CASE(check_names_what_is_wrong_and_where) {
    Heap heap;
    std::byte* base = heap.memory.base();
    Engine engine(base, capacity, heap.host);
    const auto* block = static_cast<std::byte*>(engine.allocate(64));
    const auto page = static_cast<Page>(static_cast<ByteCount>(block - base) / page_bytes);
    const Geometry geometry(capacity);
    const Region& region = geometry.region(0);
    auto* line = reinterpret_cast<layout::Line*>(base + region.lines) + (page - region.first_user);
    line->pairs[2].occupied = 0xF0;  // a block that starts nowhere
    const auto damages = engine.check();
    BOOST_REQUIRE(damages.size() == 1U);
    BOOST_TEST(damages[0].where.value == static_cast<ByteCount>(reinterpret_cast<std::byte*>(line) - base));
    BOOST_TEST(damages[0].what == "occupied granules that no block starts");
    BOOST_TEST(engine.check(0).empty());
}

BOOST_AUTO_TEST_CASE(a_root_that_is_wrong_twice_does_not_exceed_the_limit) {
    Heap heap;
    std::byte* base = heap.memory.base();
    Engine engine(base, capacity, heap.host);
    engine.add_root({"name", "type", {16}, 8, 1});
    std::byte* const directory = base + reinterpret_cast<const layout::SuperBlock*>(base)->directory;
    auto* slots = reinterpret_cast<layout::DirectorySlot*>(directory + sizeof(layout::DirectoryHead));
    while (slots->entry == 0) ++slots;
    ++slots->hash;
    reinterpret_cast<layout::DirectoryEntry*>(directory + slots->entry)->object = capacity;
    BOOST_TEST(engine.check(2).size() == 2U);
    BOOST_TEST(engine.check(1).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
