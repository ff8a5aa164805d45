/// Random programs against a model: a map of live blocks and the bytes that were written into them.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "campaign_factor.hpp"
#include "test_span.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;

struct Live {
    ByteCount bytes;  ///< usable
    unsigned char pattern;
    Content content;
};

class Model {
public:
    Model(ByteCount capacity, std::uint64_t seed, std::uint32_t zone_distance = Engine::zone_distance_pages)
        : capacity_(capacity), zone_distance_(zone_distance), memory_(capacity), random_(seed) {
        Engine::format(memory_.base(), capacity, host_, &observer_);
        reopen();
    }

    void run(unsigned steps) {
        for (step_ = 0; step_ < steps; ++step_) {
            one_step();
            if (step_ % 64 == 0) check();
        }
        check();
        check_blocks();
    }

    unsigned full_seen() const { return full_seen_; }
    unsigned packed_seen() const { return packed_seen_; }
    unsigned pointer_free_seen() const { return pointer_free_seen_; }

private:
    std::uint64_t below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_); }
    std::byte* base() const { return memory_.base(); }
    Content some_content() { return below(2) == 0 ? Content::any : Content::pointer_free; }

    ByteCount some_size() {
        switch (below(12)) {
            case 0: return below(4);
            case 1:
            case 2:
            case 3:
            case 4: return 1 + below(256);
            case 5: return 24 + 16 * below(7);  // what packed pages hold
            case 6:
            case 7: return 1 + below(2100);
            case 8: return 2000 + below(2200);
            case 9: return 4096 * (1 + below(8));
            case 10: return 4000 + below(60000);
            default: return below(capacity_ / 8);
        }
    }

    void fill(std::uint64_t offset, const Live& live) { std::memset(base() + offset, live.pattern, live.bytes); }
    void require_filled(std::uint64_t offset, ByteCount bytes, unsigned char pattern) {
        const auto* at = reinterpret_cast<const unsigned char*>(base() + offset);
        BOOST_REQUIRE_MESSAGE(bytes == 0 || (*at == pattern && std::memcmp(at, at + 1, bytes - 1) == 0),
                              "content of the block at " << offset << " was overwritten, step " << step_);
    }

    bool overlaps(std::uint64_t begin, std::uint64_t end) const {
        const auto after = live_.lower_bound(begin);
        if (after != live_.end() && after->first < end) return true;
        return after != live_.begin() && std::prev(after)->first + std::prev(after)->second.bytes > begin;
    }

    void adopt(void* block, ByteCount wanted, Content content) {
        const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - base());
        const ByteCount usable = engine_->usable_size(block);
        BOOST_REQUIRE(usable >= std::max<ByteCount>(wanted, 1));
        BOOST_REQUIRE(offset + usable <= host_.extent);
        BOOST_REQUIRE_MESSAGE(!overlaps(offset, offset + usable), "a block at " << offset << " overlaps another, step " << step_);
        const Live live{usable, static_cast<unsigned char>(random_()), content};
        live_[offset] = live;
        fill(offset, live);
    }

    std::map<std::uint64_t, Live>::iterator some_block() {
        auto found = live_.lower_bound(below(capacity_));
        return found == live_.end() ? live_.begin() : found;
    }

    void one_step() {
        switch (below(40)) {
            case 0: {
                ByteCount alignment = ByteCount{1} << below(15);
                allocate(some_size(), alignment);
                break;
            }
            case 1: resize(); break;
            case 2: resize(); break;
            case 3: allocate_at(); break;
            case 4: add_root(); break;
            case 5: below(2) == 0 ? remove_root() : retype_root(); break;
            case 6: bad_frees(); break;
            case 7:
                if (below(8) == 0) release();
                break;
            case 8:
                if (below(8) == 0) reopen();
                break;
            case 9: engine_->forget({below(capacity_)}, below(capacity_)); break;
            case 10:
                if (below(20) == 0) free_many();
                break;
            case 11:
                if (below(3) == 0) allocate_nodes();
                break;
            default:
                // Drifts between filling and emptying.
                if (below(100) < (step_ / 512 % 3 == 0 ? 65U : 45U))
                    allocate(some_size(), below(2) == 0 ? 8 : 16);
                else
                    free_one();
        }
    }

    void allocate(ByteCount bytes, ByteCount alignment) {
        const Content content = some_content();
        try {
            void* block = engine_->allocate(bytes, alignment, content);
            BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(block) % std::max<ByteCount>(alignment, 8) == 0);
            if (bytes >= 4096) BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(block) % 4096 == 0);
            const ByteCount usable = engine_->usable_size(block);
            if (alignment > 8) BOOST_REQUIRE(usable % 16 == 0);
            packed_seen_ += usable % 16 == 8 ? 1U : 0U;
            pointer_free_seen_ += content == Content::pointer_free ? 1U : 0U;
            adopt(block, bytes, content);
        } catch (const HeapFull& full) {
            ++full_seen_;
            BOOST_REQUIRE(full.wanted() >= bytes);
        }
    }

    /// Up to two pages full of one packed size.
    void allocate_nodes() {
        const ByteCount bytes = 24 + 16 * below(7);
        for (std::uint64_t count = below(2 * 4096 / bytes); count != 0; --count) allocate(bytes, 8);
    }

    void free_one() {
        if (live_.empty()) return;
        const auto block = some_block();
        require_filled(block->first, block->second.bytes, block->second.pattern);
        BOOST_REQUIRE((engine_->deallocate(base() + block->first) == FreeResult::freed));
        require_filled(block->first, block->second.bytes, block->second.pattern);  // the user's page is not touched
        BOOST_REQUIRE((engine_->deallocate(base() + block->first) == FreeResult::not_a_block));
        live_.erase(block);
    }

    void free_many() {
        for (std::uint64_t n = live_.size() * below(100) / 100; n != 0; --n) free_one();
    }

    void resize() {
        if (live_.empty()) return;
        const auto block = some_block();
        const Live old = block->second;
        const std::uint64_t offset = block->first;
        require_filled(offset, old.bytes, old.pattern);
        const ByteCount wanted = below(2) == 0 ? some_size() : old.bytes * (1 + below(30)) / 10;
        try {
            void* moved = engine_->resize(base() + offset, wanted);
            const std::uint64_t now = static_cast<std::uint64_t>(static_cast<std::byte*>(moved) - base());
            live_.erase(block);
            require_filled(now, std::min(old.bytes, wanted), old.pattern);
            adopt(moved, wanted, old.content);
        } catch (const HeapFull&) {
            ++full_seen_;
            BOOST_REQUIRE(engine_->usable_size(base() + offset) == old.bytes);
            require_filled(offset, old.bytes, old.pattern);
        }
    }

    void allocate_at() {
        // A freed block's place can be had again; a live one's can't.
        if (live_.empty()) return;
        const auto block = some_block();
        const auto offset = block->first;
        const Live live = block->second;
        const ByteCount alignment = live.bytes % 16 == 8 ? 8 : 16;
        BOOST_REQUIRE(!engine_->allocate_at(base() + offset, live.bytes, alignment, live.content));
        BOOST_REQUIRE((engine_->deallocate(base() + offset) == FreeResult::freed));
        BOOST_REQUIRE(engine_->allocate_at(base() + offset, live.bytes, alignment, live.content));
        BOOST_REQUIRE(engine_->usable_size(base() + offset) == live.bytes);
        fill(offset, live);
        const std::uint64_t at = below(2) == 0 ? below(capacity_ / 8) * 8 : offset + live.bytes * below(4);
        const ByteCount bytes = below(2) == 0 ? live.bytes % 256 + 8 : 8 * (1 + below(40));
        const bool free_before = !overlaps(at, at + bytes);
        try {
            const Content content = some_content();
            if (engine_->allocate_at(base() + at, bytes, ByteCount{8} << below(2), content)) {
                BOOST_REQUIRE(free_before);
                adopt(base() + at, bytes, content);
            }
        } catch (const HeapFull&) {}
    }

    void add_root() {
        Root root;
        root.name = "root " + std::to_string(below(60));
        root.fingerprint = std::string(below(200), 'f');
        root.object = {below(1000) * 16};
        root.bytes = 0;
        root.count = below(9);
        try {
            engine_->add_root(root);
            BOOST_REQUIRE(!roots_.count(root.name));
            roots_[root.name] = root;
        } catch (const Error& error) {
            BOOST_REQUIRE((error.code() == errc::name_taken));
            BOOST_REQUIRE(roots_.count(root.name) == 1);
        } catch (const HeapFull&) {}
    }

    void remove_root() {
        const std::string name = "root " + std::to_string(below(60));
        BOOST_REQUIRE(engine_->remove_root(name) == (roots_.erase(name) == 1));
    }

    void retype_root() {
        const std::string name = "root " + std::to_string(below(60));
        const std::string fingerprint(below(250), 'r');
        try {
            BOOST_REQUIRE(engine_->retype_root(name, fingerprint) == (roots_.count(name) == 1));
            if (const auto found = roots_.find(name); found != roots_.end()) found->second.fingerprint = fingerprint;
        } catch (const HeapFull&) {}
    }

    void bad_frees() {
        const std::uint64_t offset = below(capacity_);
        if (live_.count(offset) == 0) BOOST_REQUIRE((engine_->deallocate(base() + offset) == FreeResult::not_a_block));
        BOOST_REQUIRE((engine_->deallocate(base() + capacity_ + below(1U << 20U)) == FreeResult::foreign));
        if (!live_.empty()) {
            const auto block = some_block();
            if (const std::uint64_t inside = below(block->second.bytes); inside != 0)
                BOOST_REQUIRE((engine_->deallocate(base() + block->first + inside) == FreeResult::not_a_block));
            const auto found = engine_->find_block(base() + block->first + below(block->second.bytes));
            BOOST_REQUIRE(found.has_value());
            BOOST_REQUIRE(found->offset.value == block->first);
            BOOST_REQUIRE(found->usable_bytes == block->second.bytes);
            BOOST_REQUIRE((found->content == block->second.content));
        }
        const bool in_block = overlaps(offset, offset + 1);
        BOOST_REQUIRE(engine_->find_block(base() + offset).has_value() == in_block);
    }

    void release() {
        for (const FreeRun& run : engine_->release_free_pages(4096 * (1 + below(8)))) {
            BOOST_REQUIRE(!overlaps(run.offset.value, run.offset.value + run.length));
            std::memset(base() + run.offset.value, 0, run.length);
        }
    }

    void reopen() {
        engine_.reset();
        engine_.emplace(base(), capacity_, host_, &observer_, false, zone_distance_);
    }

    void check() {
        BOOST_REQUIRE_MESSAGE(damage_text(*engine_).empty(), damage_text(*engine_) << ", step " << step_);
        observer_.announced.clear();
    }

    /// Pages that are called pointer-free hold nothing else; those that hold nothing but a pointer-free block are called so.
    void check_pages_of(const Block& block) {
        const std::uint64_t end = block.offset.value + block.usable_bytes;
        for (std::uint64_t at = block.offset.value; at < end; at = round_down(at, page_bytes) + page_bytes) {
            const Engine::Stretch stretch = engine_->stretch_at({at});
            BOOST_REQUIRE(stretch.begin.value <= at && at < stretch.end.value && stretch.begin.value % page_bytes == 0);
            const bool is_tail = at != block.offset.value && round_down(at, page_bytes) + page_bytes > end;
            BOOST_REQUIRE((stretch.content == (is_tail ? Content::any : block.content)));
            if (block.usable_bytes >= page_bytes && !is_tail) BOOST_REQUIRE(stretch.begin == block.offset);
        }
    }

    void check_blocks() {
        auto expected = live_.begin();
        engine_->for_each_block([&](const Block& block) {
            BOOST_REQUIRE(expected != live_.end());
            BOOST_REQUIRE(block.offset.value == expected->first);
            BOOST_REQUIRE(block.usable_bytes == expected->second.bytes);
            BOOST_REQUIRE((block.content == expected->second.content));
            check_pages_of(block);
            require_filled(expected->first, expected->second.bytes, expected->second.pattern);
            ++expected;
            return true;
        });
        BOOST_REQUIRE(expected == live_.end());
        BOOST_REQUIRE(engine_->stats().live_blocks == live_.size());
        const auto roots = engine_->roots();
        BOOST_REQUIRE(roots.size() == roots_.size());
        for (const Root& root : roots) {
            BOOST_REQUIRE(roots_.count(root.name) == 1);
            BOOST_REQUIRE(roots_[root.name].fingerprint == root.fingerprint);
            BOOST_REQUIRE(roots_[root.name].object == root.object);
        }
    }

    ByteCount capacity_;
    std::uint32_t zone_distance_;
    SpanMemory memory_;
    TestHost host_;
    TestObserver observer_;
    std::optional<Engine> engine_;
    std::mt19937_64 random_;
    std::map<std::uint64_t, Live> live_;
    std::map<std::string, Root> roots_;
    unsigned step_ = 0;
    unsigned full_seen_ = 0;
    unsigned packed_seen_ = 0;  ///< blocks that lay in packed pages
    unsigned pointer_free_seen_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_model)

BOOST_AUTO_TEST_CASE(random_programs_agree_with_the_model_in_the_smallest_heap) {
    std::mt19937_64 seeds(taiyen::test::seed_of_run());
    for (unsigned i = 0; i < 6; ++i) {
        Model model(256 * 1024, seeds());
        model.run(4000);
        BOOST_TEST(model.full_seen() > 0U);
        BOOST_TEST(model.packed_seen() > 100U);
        BOOST_TEST(model.pointer_free_seen() > 100U);
    }
}

BOOST_AUTO_TEST_CASE(random_programs_agree_with_the_model_in_heaps_of_odd_capacity) {
    std::mt19937_64 seeds(taiyen::test::seed_of_run() + 1);
    for (const ByteCount pages : {65U, 67U, 300U, 513U, 2049U}) Model(pages * 4096, seeds()).run(4000);
}

BOOST_AUTO_TEST_CASE(random_programs_agree_with_the_model_in_a_large_capacity) {
    std::mt19937_64 seeds(taiyen::test::seed_of_run() + 2);
    for (int i = 0; i < taiyen::test::rounds(2); ++i) Model(64 * 1024 * 1024, seeds()).run(6000);
}

BOOST_AUTO_TEST_CASE(random_programs_agree_with_the_model_where_zones_are_many) {
    std::mt19937_64 seeds(taiyen::test::seed_of_run() + 3);
    for (const std::uint32_t distance : {512U, 1024U, 2048U})
        for (int i = 0; i < taiyen::test::rounds(2); ++i) Model(ByteCount{16} << 20U, seeds(), distance).run(4000);
}

BOOST_AUTO_TEST_SUITE_END()
