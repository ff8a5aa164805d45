/// Which live blocks count as leaked: those that no root region and no named object leads to, through other blocks or not.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <taiyen/base/report.hpp>
#include <taiyen/taiyen.hpp>

BOOST_AUTO_TEST_SUITE(leaked_blocks)

namespace {

using namespace taiyen;

struct Node {
    Node* next = nullptr;
    Node* other = nullptr;
    std::uint64_t room[4]{};
};

Node* make(VolatileHeap& heap, Node* next = nullptr) {
    auto* const node = new (heap.allocate(sizeof(Node))) Node;
    node->next = next;
    return node;
}

std::vector<const void*> addresses(const LiveBlocks& blocks) {
    std::vector<const void*> all;
    for (const LiveBlock& block : blocks.listed) all.push_back(block.address);
    return all;
}

std::vector<std::string> told;
void hear(const Incident& incident) noexcept { told.emplace_back(incident.text); }
struct Listening {
    Listening() { told.clear(); }
    ~Listening() { set_report_handler(before); }
    ReportHandler before = set_report_handler(&hear);
};

VolatileOptions options(bool guards) { return {.capacity = 64_MiB, .guarded = guards, .record_places = guards}; }

BOOST_AUTO_TEST_CASE(what_a_root_region_leads_to_is_no_leak) {
    for (const bool guards : {false, true}) {
        VolatileHeap heap(options(guards));
        Node* roots[3] = {};
        heap.add_leak_root(roots, sizeof roots);
        roots[1] = make(heap, make(heap, make(heap)));
        BOOST_TEST(heap.leaked_blocks().count == 0U);
        BOOST_TEST(heap.live_blocks().count == 3U);
        Node* const second = roots[1]->next;
        roots[1]->next = nullptr;
        const LiveBlocks leaked = heap.leaked_blocks();
        BOOST_TEST(leaked.count == 2U);
        BOOST_TEST((addresses(leaked) == std::vector<const void*>{second}));
        BOOST_TEST(leaked.listed[0].held_blocks == 1U);
        BOOST_TEST(leaked.listed[0].held_bytes == heap.usable_size(second->next));
        BOOST_TEST(leaked.listed[0].place.empty() == !guards);
        BOOST_TEST(leaked.text().find("leads to 1 more of ") != std::string::npos);
        heap.remove_leak_root(roots);
        BOOST_TEST(heap.leaked_blocks().count == 3U);
    }
}

BOOST_AUTO_TEST_CASE(a_pointer_into_a_block_or_at_its_last_byte_refers_to_it_and_one_behind_it_does_not) {
    VolatileHeap heap(options(false));
    auto* const block = static_cast<std::byte*>(heap.allocate(10'000));
    const std::byte* root = nullptr;
    heap.add_leak_root(&root, sizeof root);
    const std::size_t usable = heap.usable_size(block);
    std::memset(block, 0, usable);
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, usable - 1}) {
        root = block + at;
        BOOST_TEST(heap.leaked_blocks().count == 0U);
    }
    root = block + usable;
    BOOST_TEST(heap.leaked_blocks().count == 1U);
    root = block - 1;
    BOOST_TEST(heap.leaked_blocks().count == 1U);
}

BOOST_AUTO_TEST_CASE(of_a_lost_structure_its_head_is_told_and_of_a_ring_its_lowest_block) {
    VolatileHeap heap(options(false));
    Node* tree = make(heap, make(heap));
    tree->other = make(heap);
    const Node* const head = tree;
    Node* ring = make(heap);
    Node* const first = ring;
    for (unsigned i = 0; i < 4; ++i) ring = ring->next = make(heap);
    ring->next = first;
    Node* const itself = make(heap);
    itself->next = itself;
    const Node* lowest = first;
    for (const Node* at = first->next; at != first; at = at->next) lowest = std::min(lowest, at);
    const LiveBlocks leaked = heap.leaked_blocks();
    BOOST_TEST(leaked.count == 9U);
    std::vector<const void*> expected{head, lowest, itself};
    std::sort(expected.begin(), expected.end());
    BOOST_TEST((addresses(leaked) == expected));
    std::uint64_t held = 0;
    for (const LiveBlock& block : leaked.listed) held += block.held_blocks;
    BOOST_TEST(held == 6U);
    BOOST_TEST(heap.leaked_blocks(1).listed.size() == 1U);
}

BOOST_AUTO_TEST_CASE(named_objects_and_what_they_lead_to_are_no_leaks) {
    VolatileHeap heap(options(false));
    auto& words = heap.construct<taiyen::vector<taiyen::string>>("words", heap.allocator<taiyen::string>());
    for (unsigned i = 0; i < 100; ++i) words.emplace_back(std::string(100, 'x').c_str());
    BOOST_TEST(heap.live_blocks().count > 100U);
    BOOST_TEST(heap.leaked_blocks().count == 0U);
    const void* const lost = make(heap);
    BOOST_TEST((addresses(heap.leaked_blocks()) == std::vector<const void*>{lost}));
}

BOOST_AUTO_TEST_CASE(blocks_of_all_sizes_are_searched_and_found) {
    for (const bool guards : {false, true}) {
        VolatileHeap heap(options(guards));
        void* root = nullptr;
        heap.add_leak_root(&root, sizeof root);
        // A chain through blocks of very different sizes, each holding the next one's address in its last word.
        std::vector<std::byte*> chain;
        for (const std::size_t bytes : {16UL, 48UL, 2048UL, 3000UL, 4096UL, 30'000UL, 1'000'000UL, 5'000'000UL, 24UL}) {
            auto* const block = static_cast<std::byte*>(heap.allocate(bytes));
            std::memset(block, 0, bytes);
            if (!chain.empty()) {
                void* const next = chain.back();
                std::memcpy(block + bytes / 8 * 8 - 8, &next, sizeof next);
            }
            chain.push_back(block);
        }
        root = chain.back();
        BOOST_TEST(heap.leaked_blocks().count == 0U);
        root = nullptr;
        const LiveBlocks leaked = heap.leaked_blocks();
        BOOST_TEST(leaked.count == chain.size());
        BOOST_TEST((addresses(leaked) == std::vector<const void*>{chain.back()}));
    }
}

BOOST_AUTO_TEST_CASE(at_close_only_what_no_root_leads_to_is_told) {
    const Listening listening;
    for (const bool guards : {false, true}) {
        told.clear();
        Node* root = nullptr;
        {
            VolatileOptions wanted = options(guards);
            wanted.report_leaks = true;
            VolatileHeap heap(wanted);
            heap.add_leak_root(&root, sizeof root);
            root = make(heap, make(heap));
            make(heap, make(heap, make(heap)));
        }
        BOOST_TEST_REQUIRE(told.size() == 2U);
        BOOST_TEST(told[0].find("5 live blocks") != std::string::npos);
        BOOST_TEST(told[0].find("no root leads to 3 of them") != std::string::npos);
        BOOST_TEST(told[1].find("leads to 2 more") != std::string::npos);
        told.clear();
        {
            VolatileOptions wanted = options(guards);
            wanted.report_leaks = true;
            VolatileHeap heap(wanted);
            heap.add_leak_root(&root, sizeof root);
            root = make(heap, make(heap));
        }
        BOOST_TEST(told.empty());
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
