// Planted leaks are all found, and nothing that is held is called one: over random containers of all kinds.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/leaks.hpp>
#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <random>
#include <set>

#include "heap/core.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"

namespace leaks_test {
using namespace taiyen;

struct Node {
    taiyen::string name;
    taiyen::vector<taiyen::map<int, taiyen::string>> tables;
    taiyen::unordered_map<taiyen::string, taiyen::list<taiyen::string>> groups;
    taiyen::deque<taiyen::set<int>> queues;
    taiyen::forward_list<taiyen::vector<double>> rows;
    taiyen::string note;
};

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 64U << 20U;
    return options;
}

taiyen::string text(std::mt19937_64& random) { return taiyen::string(std::string(random() % 60, static_cast<char>('a' + random() % 26)).c_str()); }

void edit(Node& node, std::mt19937_64& random) {
    switch (random() % 8) {
        case 0: node.name = text(random); break;
        case 1: node.tables.emplace_back(); break;
        case 2:
            if (!node.tables.empty()) node.tables[random() % node.tables.size()][static_cast<int>(random() % 40)] = text(random);
            break;
        case 3: node.groups[text(random)].push_back(text(random)); break;
        case 4:
            // Nothing is taken from its front: what was there stays in the deque's memory and looks like a pointer.
            node.queues.emplace_back().insert(static_cast<int>(random() % 100));
            break;
        case 5: node.rows.emplace_front(random() % 300, 1.5); break;
        case 6:
            if (!node.groups.empty() && random() % 3 == 0) node.groups.erase(node.groups.begin());
            if (!node.tables.empty() && random() % 3 == 0) node.tables.pop_back();
            break;
        default: node.note = text(random);
    }
}

/// Objects of all kinds of containers under several names, after so many random edits.
void fill(ArchiveHeap& heap, std::mt19937_64& random, int edits) {
    auto& nodes = heap.find_or_construct<taiyen::vector<Node>>("nodes");
    auto& tree = heap.find_or_construct<taiyen::map<taiyen::string, Node>>("tree");
    auto& ids = heap.find_or_construct<taiyen::object_id_set<>>("ids");
    for (int i = 0; i < edits; ++i) {
        if (nodes.size() < 5 || random() % 50 == 0) nodes.emplace_back();
        edit(nodes[random() % nodes.size()], random);
        if (random() % 5 == 0) edit(tree[text(random)], random);
        ids.insert(static_cast<std::int64_t>(random() % 100'000));
    }
}
}  // namespace leaks_test
using namespace leaks_test;

BOOST_AUTO_TEST_SUITE(leaks)

BOOST_AUTO_TEST_CASE(an_empty_heap_has_none) {
    const ScratchDirectory dir;
    const ArchiveHeap heap(create_only, dir / "a.tyn", small());
    const LeakReport report = find_leaks(heap);
    BOOST_TEST(report.live_blocks == 0U);
    BOOST_TEST(report.leaked_blocks == 0U);
    BOOST_TEST(report.holdings.empty());
}

BOOST_AUTO_TEST_CASE(none_is_invented_where_everything_is_held) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    for (int round = 0; round < 6; ++round) {
        ArchiveHeap heap(create_only, dir / ("a" + std::to_string(round) + ".tyn"), small());
        for (int part = 0; part < 5; ++part) {
            fill(heap, random, 400);
            const LeakReport report = find_leaks(heap);
            BOOST_TEST_REQUIRE(report.leaked_blocks == 0U);
            BOOST_TEST_REQUIRE(report.doubtful_blocks == 0U);
            std::uint64_t held = 0;
            for (const Holding& holding : report.holdings) held += holding.blocks;
            BOOST_TEST_REQUIRE(held == report.live_blocks);
            BOOST_TEST_REQUIRE(report.live_blocks == heap.stats().live_blocks);
        }
    }
}

BOOST_AUTO_TEST_CASE(planted_ones_are_all_found_with_size_and_first_bytes) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    // Containers that only grow by nodes: nothing is freed, so no block holds bytes of an earlier one.
    auto& tree = heap.construct<taiyen::map<int, taiyen::list<taiyen::map<int, taiyen::list<double>>>>>("tree");
    std::multiset<std::pair<std::size_t, std::uint64_t>> planted;
    for (std::uint64_t i = 0; i < 300; ++i) {
        auto& lists = tree[static_cast<int>(random() % 20)];
        if (lists.size() < 3) lists.emplace_back();
        lists.back()[static_cast<int>(random() % 20)].push_back(1.5);
        if (i % 3 != 0) continue;
        auto* const block = static_cast<std::uint64_t*>(heap.allocate(16 + random() % (i % 5 == 0 ? 20'000 : 300), 8));
        block[0] = 0xfeed'0000U + i;
        planted.emplace(heap.usable_size(block), block[0]);
    }
    LeakOptions options;
    options.listed_max = 1000;
    const LeakReport report = find_leaks(heap, options);
    std::multiset<std::pair<std::size_t, std::uint64_t>> found;
    for (const LeakedBlock& leak : report.leaks) {
        std::uint64_t first = 0;
        std::memcpy(&first, leak.beginning.data(), sizeof first);
        found.emplace(leak.bytes, first);
    }
    BOOST_TEST((found == planted), "found " << found.size() << " of " << planted.size());
    BOOST_TEST(report.leaked_blocks + report.doubtful_blocks == planted.size());
}

BOOST_AUTO_TEST_CASE(a_planted_one_that_is_not_found_has_its_address_in_a_live_block) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    std::size_t hidden = 0;
    for (int round = 0; round < 6; ++round) {
        ArchiveHeap heap(create_only, dir / ("a" + std::to_string(round) + ".tyn"), small());
        std::set<std::uint64_t> planted;
        for (unsigned part = 0; part < 20; ++part) {
            fill(heap, random, 60);
            auto* const block = static_cast<std::uint64_t*>(heap.allocate(8 + random() % 300, 8));
            *block = 0;
            planted.insert(reinterpret_cast<std::uintptr_t>(block));
        }
        LeakOptions options;
        options.listed_max = 1000;
        const std::uint64_t base = heap.core()->ranges().durable;
        for (const LeakedBlock& leak : find_leaks(heap, options).leaks) BOOST_TEST(planted.erase(base + leak.offset) == 1U, "invented");
        for (const std::uint64_t missing : planted) {
            bool seen = false;
            heap.core()->engine().for_each_block([&](const heap::Block& block) {
                const auto* const words = reinterpret_cast<const std::uint64_t*>(base + block.offset.value);
                seen = seen || std::find(words, words + block.usable_bytes / 8, missing) != words + block.usable_bytes / 8;
                return !seen;
            });
            BOOST_TEST(seen);
            ++hidden;
        }
    }
    BOOST_TEST(hidden < 20U);
}

BOOST_AUTO_TEST_CASE(a_container_whose_only_pointer_is_lost_is_one_direct_leak_and_what_it_held_goes_with_it) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    auto& kept = heap.construct<taiyen::vector<taiyen::map<int, taiyen::string>*>>("kept");
    for (int i = 0; i < 3; ++i) {
        auto* const made = heap.make<taiyen::map<int, taiyen::string>>();
        for (int k = 0; k < 10; ++k) (*made)[k] = std::string(100, 'x').c_str();
        kept.push_back(made);
    }
    BOOST_TEST(find_leaks(heap).leaked_blocks == 0U);
    kept[1] = nullptr;
    const LeakReport report = find_leaks(heap);
    BOOST_TEST(report.leaked_blocks == 21U);
    BOOST_TEST(report.direct_blocks == 1U);
    BOOST_TEST_REQUIRE(report.leaks.size() == 21U);
    BOOST_TEST((report.leaks[0].kind == LeakKind::direct));
    BOOST_TEST((report.leaks[1].kind == LeakKind::indirect));
}

BOOST_AUTO_TEST_CASE(a_pointer_to_freed_memory_dangles_and_names_its_holder) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    auto& holder = heap.construct<taiyen::vector<void*>>("holder");
    holder.reserve(1);
    holder.push_back(heap.allocate(500));
    BOOST_TEST(find_leaks(heap).dangling_pointers == 0U);
    heap.deallocate(holder[0]);
    const LeakReport report = find_leaks(heap);
    BOOST_TEST_REQUIRE(report.dangling_pointers == 1U);
    BOOST_TEST(report.dangling[0].holder == "holder");
    BOOST_TEST(report.leaked_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(what_two_objects_reach_counts_once_for_the_first_by_name) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    void* const shared = heap.allocate(10'000);
    heap.construct<taiyen::vector<void*>>("second").push_back(shared);
    heap.construct<taiyen::vector<void*>>("first").push_back(shared);
    const LeakReport report = find_leaks(heap);
    BOOST_TEST_REQUIRE(report.holdings.size() == 2U);
    BOOST_TEST(report.holdings[0].name == "first");
    BOOST_TEST(report.holdings[0].bytes > 10'000U);
    BOOST_TEST(report.holdings[1].bytes < 1000U);
    BOOST_TEST(report.holdings[1].shared_words == 1U);
}

BOOST_AUTO_TEST_CASE(a_number_in_a_pointer_free_block_holds_nothing) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    void* const lost = heap.allocate(100);
    const auto address = reinterpret_cast<std::int64_t>(lost);
    heap.construct<taiyen::vector<std::int64_t>>("numbers", 10'000U, address);
    heap.construct<std::pair<int, std::int64_t>>("pair", 1, address);
    BOOST_TEST(find_leaks(heap).leaked_blocks == 1U);
    heap.construct<taiyen::vector<void*>>("pointers", 1U, lost);
    BOOST_TEST(find_leaks(heap).leaked_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_full_vector_does_not_hold_the_block_behind_it) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    auto& numbers = heap.construct<taiyen::vector<double>>("numbers");
    numbers.resize(2);
    auto* const behind = static_cast<double*>(heap.allocate(16, 16));
    std::memset(behind, 0, 16);
    // Wherever the engine puts them: only neighbours make the case.
    const LeakReport report = find_leaks(heap);
    const bool neighbours = numbers.data() + 2 == behind;
    BOOST_TEST_MESSAGE((neighbours ? "neighbours" : "no neighbours"));
    BOOST_TEST(report.doubtful_blocks == (neighbours ? 1U : 0U));
    BOOST_TEST(report.leaked_blocks == (neighbours ? 0U : 1U));
}

BOOST_AUTO_TEST_CASE(a_list_of_a_million_nodes_needs_no_deep_stack_and_leaks_are_found_behind_it) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    auto& nodes = heap.construct<taiyen::forward_list<int>>("nodes");
    for (int i = 0; i < 1'000'000; ++i) nodes.push_front(i);
    auto& wide = heap.construct<taiyen::vector<void*>>("wide");
    wide.reserve(600'000);
    for (int i = 0; i < 600'000; ++i) wide.push_back(heap.allocate(16));
    heap.allocate(77);
    std::uint64_t told = 0;
    LeakOptions options;
    options.progress = [&](std::uint64_t done, std::uint64_t total) { told += done <= total ? 1 : 0; };
    const LeakReport report = find_leaks(heap, options);
    BOOST_TEST(report.leaked_blocks == 1U);
    BOOST_TEST(report.live_blocks >= 1'600'003U);
    BOOST_TEST(told > 10U);
}

BOOST_AUTO_TEST_CASE(a_saved_heap_tells_the_save_of_a_leak) {
    const ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small());
        heap.construct<int>("one");
        heap.snapshot();
        heap.allocate(100);
        heap.snapshot();
        heap.close();
    }
    const ArchiveHeap heap(open_read_only, dir / "a.tyn");
    const LeakReport report = find_leaks(heap);
    BOOST_TEST_REQUIRE(report.leaks.size() == 1U);
    BOOST_TEST(report.leaks[0].generation >= 2U);
    BOOST_TEST(report.leaks[0].generation <= heap.stats().generation);
}

BOOST_AUTO_TEST_SUITE_END()
