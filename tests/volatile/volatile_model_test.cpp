/// Random programs of several threads against a model: every live block has an owner in the model and bytes that only its owner wrote.
///
/// A thread takes turns of its own blocks, hands some to other threads' boxes, and frees what lies in its own box. TAIYEN_SEED replays the choices of each thread.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include <taiyen/base/report.hpp>

#include "seed.hpp"
#include "threads.hpp"
#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(volatile_model)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;

std::atomic<unsigned> incidents{0};
void count_incident(const Incident&) noexcept { incidents.fetch_add(1); }

/// Counts reports instead of printing them.
struct Quiet {
    Quiet() { incidents = 0; }
    ~Quiet() { set_report_handler(before); }
    ReportHandler before = set_report_handler(&count_incident);
};

struct Held {
    std::byte* block;
    ByteCount bytes;
    unsigned char pattern;
};

class Program {
public:
    Program(VolatileHeap& heap, std::uint64_t seed) : heap_(heap), random_(seed) {}

    std::uint64_t below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_); }

    void step(const std::function<void(Held)>& give) {
        const std::uint64_t choice = below(100);
        if (choice < 45 || held_.empty())
            allocate();
        else if (choice < 75)
            release(take());
        else if (choice < 85)
            resize();
        else if (choice < 99)
            give(take());
        else
            for (std::uint64_t count = below(held_.size()) + 1; count != 0; --count) release(take());
    }
    void release(const Held& held) {
        require(intact(held, held.bytes), "a block's content was overwritten");
        heap_.deallocate(held.block);
    }
    void release_all() {
        while (!held_.empty()) release(take());
    }
    const std::vector<Held>& held() const { return held_; }
    std::uint64_t full = 0;

private:
    ByteCount some_size() {
        switch (below(16)) {
            case 0: return below(3);
            case 1: return 2000 + below(3000);
            case 2: return below(100'000);
            case 3: return below(20) == 0 ? below(1'000'000) : 4096 * (1 + below(4));
            case 4:
            case 5: return 1 + below(2048);
            default: return 1 + below(300);
        }
    }
    static bool intact(const Held& held, ByteCount bytes) {
        return std::all_of(held.block, held.block + bytes, [&](std::byte byte) { return byte == std::byte{held.pattern}; });
    }
    Held take() {
        const std::uint64_t at = below(held_.size());
        const Held held = held_[at];
        held_[at] = held_.back();
        held_.pop_back();
        return held;
    }
    void keep(void* block, ByteCount bytes) {
        const ByteCount usable = heap_.usable_size(block);
        require(usable >= std::max<ByteCount>(bytes, 1), "a block is smaller than was asked for");
        const Held held{static_cast<std::byte*>(block), bytes, static_cast<unsigned char>(random_())};
        std::memset(block, held.pattern, bytes);
        held_.push_back(held);
    }
    void allocate() {
        const ByteCount bytes = some_size();
        const ByteCount alignment = below(4) == 0 ? ByteCount{1} << below(14) : 16;
        void* const block = heap_.try_allocate(bytes, alignment);
        if (block == nullptr) {
            ++full;
            return;
        }
        require(reinterpret_cast<std::uintptr_t>(block) % std::max<ByteCount>(alignment, 16) == 0, "a block is not aligned");
        keep(block, bytes);
    }
    void resize() {
        const Held held = take();
        const ByteCount bytes = below(3) == 0 ? some_size() : held.bytes + below(held.bytes + 16);
        void* moved = nullptr;
        try {
            moved = heap_.resize(held.block, bytes);
        } catch (const HeapFull&) {
            ++full;
            held_.push_back(held);
            return;
        }
        require(intact({static_cast<std::byte*>(moved), held.bytes, held.pattern}, std::min(bytes, held.bytes)), "a resized block lost content");
        keep(moved, bytes);
    }

    VolatileHeap& heap_;
    std::mt19937_64 random_;
    std::vector<Held> held_;
};

void require_sound(VolatileHeap& heap) {
    for (const Damage& damage : static_cast<VolatileCore*>(heap.core())->check())
        BOOST_ERROR("at offset " << damage.where.value << ": " << damage.what);
}

/// What the heap says is live is what the model holds.
void require_equal(VolatileHeap& heap, const std::vector<const Program*>& programs) {
    std::map<const std::byte*, ByteCount> live;
    for (const Program* program : programs)
        for (const Held& held : program->held()) live.emplace(held.block, held.bytes);
    std::size_t seen = 0;
    static_cast<VolatileCore*>(heap.core())->for_each_block([&](const std::byte* block, ByteCount usable) {
        const auto found = live.find(block);
        if (found == live.end() || found->second > usable) {
            BOOST_ERROR("the heap has a block of " << usable << " bytes that nobody holds");
            return;
        }
        ++seen;
    });
    BOOST_TEST(seen == live.size());
    BOOST_TEST(heap.stats().live_blocks == live.size());
}

void run_threads(VolatileHeap& heap, std::uint64_t seed, unsigned threads, unsigned steps) {
    struct Box {
        std::mutex mutex;
        std::vector<Held> held;
    };
    std::vector<Box> boxes(threads);
    std::vector<std::unique_ptr<Program>> programs;
    for (unsigned number = 0; number < threads; ++number) programs.push_back(std::make_unique<Program>(heap, seed * 1000 + number));
    at_once(threads, [&](unsigned number) {
        Program& program = *programs[number];
        for (unsigned step = 0; step < steps; ++step) {
            program.step([&](Held held) {
                Box& box = boxes[program.below(threads)];
                const std::lock_guard lock(box.mutex);
                box.held.push_back(held);
            });
            if (step % 8 != 0) continue;
            std::vector<Held> mine;
            {
                const std::lock_guard lock(boxes[number].mutex);
                mine.swap(boxes[number].held);
            }
            for (const Held& held : mine) program.release(held);
        }
    });
    for (Box& box : boxes)
        for (const Held& held : box.held) programs[0]->release(held);
    // What was freed for others waits until they look: their records have no thread any more, so the heap looks itself.
    heap.trim();
    require_sound(heap);
    std::vector<const Program*> all;
    for (const auto& program : programs) all.push_back(program.get());
    require_equal(heap, all);
    for (const auto& program : programs) program->release_all();
    heap.trim();
    require_sound(heap);
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(one_thread_agrees_with_the_model) {
    const Quiet quiet;
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 1_GiB});
    for (unsigned round = 0; round < 4; ++round) run_threads(heap, seed + round, 1, 20'000);
    BOOST_TEST(incidents == 0U);
}

BOOST_AUTO_TEST_CASE(threads_agree_with_the_model, *boost::unit_test::label("threads")) {
    const Quiet quiet;
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 1_GiB});
    for (unsigned round = 0; round < 4; ++round) run_threads(heap, seed + round, 4, 8'000);
    BOOST_TEST(incidents == 0U);
}

BOOST_AUTO_TEST_CASE(a_small_heap_that_is_full_again_and_again_agrees_with_the_model, *boost::unit_test::label("threads")) {
    const Quiet quiet;
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 768_KiB});
    std::uint64_t full = 0;
    for (unsigned round = 0; round < 6; ++round) {
        Program program(heap, seed + round);
        for (unsigned step = 0; step < 6'000; ++step) program.step([&](const Held& held) { program.release(held); });
        full += program.full;
        program.release_all();
        heap.trim();
        require_sound(heap);
        run_threads(heap, seed + round, 3, 2'000);
    }
    BOOST_TEST(full > 0U);
    BOOST_TEST(incidents == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
