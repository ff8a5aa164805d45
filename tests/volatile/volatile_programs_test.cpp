/// Random programs of operations in several threads, one operation after the other, against a model; what fails is shrunk to a few operations and told as a list.
///
/// The threads take turns, so a program does the same each time it runs: TAIYEN_SEED repeats it. What threads do at the same moment is the matter of volatile_model_test.cpp, and of the last case here.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include <taiyen/base/report.hpp>

#include "seed.hpp"
#include "shrink.hpp"
#include "threads.hpp"
#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(volatile_programs)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;
using taiyen::test::shrink;

std::atomic<unsigned> incidents{0};
void count_incident(const Incident&) noexcept { incidents.fetch_add(1); }
struct Quiet {
    ~Quiet() { set_report_handler(before); }
    ReportHandler before = set_report_handler(&count_incident);
};

constexpr unsigned threads_max = 3;
constexpr unsigned slots = 24;
constexpr ByteCount capacity = 4_MiB;

enum class Kind { allocate, free, resize, free_twice, free_inside, trim, fill_up, end_thread };
constexpr std::array<const char*, 8> kind_names{"allocate", "free", "resize", "free_twice", "free_inside", "trim", "fill_up", "end_thread"};

/// What needs a block, or a free slot, and finds none does nothing: so any operation can be left out.
struct Operation {
    Kind kind = Kind::allocate;
    unsigned thread = 0;
    unsigned slot = 0;
    ByteCount bytes = 0;
    ByteCount alignment = 16;
};

std::string text_of(const std::vector<Operation>& program) {
    std::ostringstream text;
    for (const Operation& operation : program) {
        text << "  thread " << operation.thread << ": " << kind_names[static_cast<std::size_t>(operation.kind)];
        switch (operation.kind) {
            case Kind::allocate:
                text << " slot " << operation.slot << ", " << operation.bytes << " bytes at a multiple of " << operation.alignment;
                break;
            case Kind::resize: text << " slot " << operation.slot << " to " << operation.bytes << " bytes"; break;
            case Kind::free:
            case Kind::free_twice:
            case Kind::free_inside: text << " slot " << operation.slot; break;
            case Kind::fill_up: text << " with blocks of " << operation.bytes << " bytes, and free them"; break;
            case Kind::trim:
            case Kind::end_thread: break;
        }
        text << '\n';
    }
    return text.str();
}

ByteCount some_size(std::mt19937_64& random) {
    const auto below = [&](std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random); };
    switch (below(12)) {
        case 0: return below(3);
        case 1: return 1900 + below(2300);
        case 2: return below(100'000);
        case 3: return 4096 * (1 + below(10));
        case 4: return below(1'000'000);
        case 5:
        case 6: return 1 + below(2048);
        default: return 1 + below(300);
    }
}

std::vector<Operation> random_program(std::uint64_t seed, unsigned length) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random); };
    std::vector<Operation> program(length);
    unsigned thread = 0;
    for (Operation& operation : program) {
        if (below(4) == 0) thread = static_cast<unsigned>(below(threads_max));
        operation.thread = thread;
        operation.slot = static_cast<unsigned>(below(slots));
        operation.bytes = some_size(random);
        operation.alignment = below(4) == 0 ? ByteCount{1} << below(14) : 16;
        const std::uint64_t choice = below(1000);
        operation.kind = choice < 480   ? Kind::allocate
                         : choice < 780 ? Kind::free
                         : choice < 920 ? Kind::resize
                         : choice < 945 ? Kind::free_twice
                         : choice < 965 ? Kind::free_inside
                         : choice < 980 ? Kind::trim
                         : choice < 984 ? Kind::fill_up
                                        : Kind::end_thread;
        if (operation.kind == Kind::fill_up) operation.bytes = std::max<ByteCount>(operation.bytes, 700);
    }
    return program;
}

std::vector<Operation> simpler(const Operation& operation) {
    std::vector<Operation> all;
    const auto propose = [&](auto change) {
        Operation other = operation;
        change(other);
        all.push_back(other);
    };
    if (operation.thread != 0) propose([](Operation& other) { other.thread = 0; });
    if (operation.alignment != 16) propose([](Operation& other) { other.alignment = 16; });
    if (operation.bytes > 16) {
        propose([](Operation& other) { other.bytes = 16; });
        for (const ByteCount part : {2U, 8U, 64U})
            if (operation.bytes >= 2 * part) propose([part](Operation& other) { other.bytes -= other.bytes / part; });
        propose([](Operation& other) { --other.bytes; });
    }
    return all;
}

/// A thread that does what it is told, and waits.
class Lane {
public:
    Lane() : thread_([this] { run(); }) {}
    ~Lane() {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    void call(const std::function<void()>& action) {
        std::unique_lock lock(mutex_);
        action_ = &action;
        changed_.notify_all();
        changed_.wait(lock, [this] { return action_ == nullptr; });
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return ended_ || action_ != nullptr; });
            if (action_ == nullptr) return;
            (*action_)();
            action_ = nullptr;
            changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* action_ = nullptr;
    bool ended_ = false;
    std::thread thread_;
};

/// Runs a program in a heap of its own.
class Machine {
public:
    /// What was wrong; nothing: nothing was. `sabotage` is called after each operation with its block, which it may damage.
    using Sabotage = std::function<void(const Operation&, std::byte*)>;
    static std::optional<std::string> run(const std::vector<Operation>& program, const Sabotage& sabotage = {}) {
        Machine machine(sabotage);
        try {
            for (std::size_t at = 0; at < program.size();) at += machine.turn(program.data() + at, program.size() - at);
            machine.finish();
        } catch (const std::exception& error) {
            return error.what();
        }
        return std::nullopt;
    }

private:
    struct Held {
        std::byte* block = nullptr;
        ByteCount bytes = 0;
        unsigned char pattern = 0;
    };

    explicit Machine(const Sabotage& sabotage) : sabotage_(sabotage) {
        for (auto& lane : lanes_) lane = std::make_unique<Lane>();
    }

    /// Does what follows in one thread, and returns how many operations that was.
    std::size_t turn(const Operation* operations, std::size_t count) {
        const unsigned thread = operations->thread;
        if (operations->kind == Kind::end_thread) {
            lanes_[thread] = std::make_unique<Lane>();
            return 1;
        }
        std::size_t done = 0;
        std::exception_ptr failure;
        lanes_[thread]->call([&] {
            try {
                for (; done < count && operations[done].thread == thread && operations[done].kind != Kind::end_thread; ++done, ++steps_) {
                    act(operations[done]);
                    std::byte* const block = held_[operations[done].slot].block;
                    if (sabotage_ && block != nullptr) sabotage_(operations[done], block);
                }
            } catch (...) {
                failure = std::current_exception();
            }
        });
        if (failure) std::rethrow_exception(failure);
        return done;
    }

    void act(const Operation& operation) {
        Held& held = held_[operation.slot];
        switch (operation.kind) {
            case Kind::allocate:
                if (held.block == nullptr) keep(held, heap_.try_allocate(operation.bytes, operation.alignment), operation.bytes, operation.alignment);
                break;
            case Kind::free: release(held); break;
            case Kind::resize: resize(held, operation.bytes); break;
            case Kind::free_twice:
                if (held.block != nullptr) {
                    std::byte* const block = held.block;
                    release(held);
                    refuse(block, "a second free was not refused");
                }
                break;
            case Kind::free_inside:
                if (held.block != nullptr && held.bytes > 16) refuse(held.block + 16, "a free inside a block was not refused");
                break;
            case Kind::trim: heap_.trim(); break;
            case Kind::fill_up: fill_up(operation.bytes); break;
            case Kind::end_thread: break;
        }
    }

    void keep(Held& held, void* block, ByteCount bytes, ByteCount alignment) {
        if (block == nullptr) return;
        require(reinterpret_cast<std::uintptr_t>(block) % std::max<ByteCount>(alignment, 16) == 0, "a block is not aligned");
        require(heap_.usable_size(block) >= std::max<ByteCount>(bytes, 1), "a block is smaller than was asked for");
        held = {static_cast<std::byte*>(block), bytes, static_cast<unsigned char>(steps_ % 251 + 1)};
        std::memset(block, held.pattern, bytes);
    }
    static void check(const Held& held, ByteCount bytes, const char* what) {
        require(std::all_of(held.block, held.block + bytes, [&](std::byte byte) { return byte == std::byte{held.pattern}; }), what);
    }
    void release(Held& held) {
        if (held.block == nullptr) return;
        check(held, held.bytes, "a block's content was overwritten");
        const unsigned before = incidents;
        heap_.deallocate(held.block);
        require(incidents == before, "the free of a live block was refused");
        held = {};
    }
    void refuse(std::byte* block, const char* what) {
        const unsigned before = incidents;
        heap_.deallocate(block);
        require(incidents == before + 1, what);
    }
    void resize(Held& held, ByteCount bytes) {
        if (held.block == nullptr) return;
        void* moved = nullptr;
        try {
            moved = heap_.resize(held.block, bytes);
        } catch (const HeapFull&) {
            check(held, held.bytes, "a block that could not be resized was changed");
            return;
        }
        held.block = static_cast<std::byte*>(moved);
        check(held, std::min(bytes, held.bytes), "a resized block lost content");
        keep(held, moved, bytes, 16);
    }
    /// Takes all that there is, and gives it back: then as much must be had again.
    void fill_up(ByteCount bytes) {
        std::size_t first = 0;
        for (unsigned round = 0; round < 2; ++round) {
            std::vector<void*> blocks;
            while (void* const block = heap_.try_allocate(bytes)) {
                std::memset(block, 0, bytes);
                blocks.push_back(block);
            }
            for (void* const block : blocks) heap_.deallocate(block);
            if (round == 0) first = blocks.size();
            require(blocks.size() + blocks.size() / 4 + 4 >= first, "a heap that was full holds much less afterwards");
        }
    }
    void finish() {
        for (auto& lane : lanes_) lane.reset();
        for (const Held& held : held_)
            if (held.block != nullptr) check(held, held.bytes, "a block's content was overwritten");
        heap_.trim();
        sound();
        std::map<const std::byte*, ByteCount> live;
        for (const Held& held : held_)
            if (held.block != nullptr) live.emplace(held.block, held.bytes);
        std::size_t seen = 0;
        core().for_each_block([&](const std::byte* block, ByteCount usable) {
            const auto found = live.find(block);
            require(found != live.end() && found->second <= usable, "the heap has a block that nobody holds");
            ++seen;
        });
        require(seen == live.size(), "the heap lacks a block that somebody holds");
        for (Held& held : held_) release(held);
        heap_.trim();
        sound();
        require(heap_.stats().live_blocks == 0, "blocks are left when all were freed");
    }
    void sound() {
        for (const Damage& damage : core().check()) throw std::runtime_error("at offset " + std::to_string(damage.where.value) + ": " + damage.what);
    }
    VolatileCore& core() { return *static_cast<VolatileCore*>(heap_.core()); }

    const Sabotage& sabotage_;
    VolatileHeap heap_{{.capacity = capacity, .tell_memory_tools = false}};
    std::array<std::unique_ptr<Lane>, threads_max> lanes_;
    std::array<Held, slots> held_{};
    std::uint64_t steps_ = 0;
};

BOOST_AUTO_TEST_CASE(random_programs_of_threads_that_take_turns_agree_with_the_model, *boost::unit_test::label("threads")) {
    const Quiet quiet;
    const std::uint64_t seed = seed_of_run();
    for (unsigned round = 0; round < 8; ++round) {
        const std::vector<Operation> program = random_program(seed + round, 1'500);
        const auto wrong = Machine::run(program);
        if (!wrong) continue;
        const auto fails = [](const std::vector<Operation>& shorter) { return Machine::run(shorter).has_value(); };
        const std::vector<Operation> least = shrink(program, fails, simpler);
        BOOST_ERROR("TAIYEN_SEED=" << seed << ", program " << round << ": " << *wrong << "; the least that fails ("
                                   << Machine::run(least).value_or("not again") << "):\n"
                                   << text_of(least));
        break;
    }
}

BOOST_AUTO_TEST_CASE(a_failure_is_shrunk_to_the_operations_that_it_needs) {
    const Quiet quiet;
    const std::vector<Operation> program = random_program(1, 200);
    // As if a resize to more than 5,000 bytes wrote into the block's content.
    const Machine::Sabotage sabotage = [](const Operation& operation, std::byte* block) {
        if (operation.kind == Kind::resize && operation.bytes > 5'000) block[0] = std::byte{0};
    };
    const auto fails = [&](const std::vector<Operation>& shorter) { return Machine::run(shorter, sabotage).has_value(); };
    BOOST_REQUIRE(fails(program));
    BOOST_REQUIRE(!Machine::run(program));
    const std::vector<Operation> least = shrink(program, fails, simpler);
    BOOST_TEST_MESSAGE(text_of(least));
    BOOST_TEST_REQUIRE(least.size() == 2U);
    BOOST_TEST((least[0].kind == Kind::allocate && least[0].bytes <= 16 && least[0].thread == 0));
    BOOST_TEST((least[1].kind == Kind::resize && least[1].bytes == 5'001U && least[1].slot == least[0].slot));
}

BOOST_AUTO_TEST_CASE(two_million_operations_of_threads_at_once_keep_all_blocks_apart, *boost::unit_test::label("threads")) {
    const Quiet quiet;
    const unsigned before = incidents;
    const std::uint64_t seed = seed_of_run();
    constexpr unsigned threads = 4;
    constexpr unsigned operations = 500'000;
    constexpr std::size_t places = 512;
    VolatileHeap heap({.capacity = 1_GiB, .tell_memory_tools = false});
    // Each place is exchanged, so that half of what a thread frees was another one's.
    std::vector<std::atomic<std::uint64_t*>> shared(places);
    at_once(threads, [&](unsigned number) {
        std::mt19937_64 random(seed * 100 + number);
        for (unsigned i = 0; i < operations; ++i) {
            const std::uint64_t chance = random();
            const std::size_t words = 2 + (chance >> 20U) % (chance % 64 == 0 ? 1000 : 30);
            auto* const block = static_cast<std::uint64_t*>(heap.allocate(words * sizeof(std::uint64_t)));
            block[0] = words;
            block[words - 1] = ~words;
            std::uint64_t* const other = shared[(chance >> 40U) % places].exchange(block);
            if (other == nullptr) continue;
            require(other[0] >= 2 && other[0] <= 1002 && other[other[0] - 1] == ~other[0], "a block's content was overwritten");
            heap.deallocate(other);
        }
    });
    for (auto& place : shared) heap.deallocate(place.load());
    heap.trim();
    BOOST_TEST(incidents == before);
    BOOST_TEST(static_cast<VolatileCore*>(heap.core())->check().empty());
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
