// Volatile heaps that travel again and again, with blocks of every size that have a name in somebody's list only; then threads that take over what came from elsewhere.

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "containers/declared_document.hpp"
#include "containers/offset_family.hpp"
#include "seed.hpp"
#include "threads.hpp"
#include "transfer/transfer_fixture.hpp"
#include "vm/address_space.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::transfer::test {
namespace {

VolatileOptions travelling_heap(std::size_t capacity = std::size_t{64} << 20U) {
    VolatileOptions options;
    options.capacity = capacity;
    options.tell_memory_tools = false;
    return options;
}

VolatileExpandOptions arriving() {
    VolatileExpandOptions options;
    options.heap.tell_memory_tools = false;
    return options;
}

void expect_no_damage(const VolatileHeap& heap) {
    for (const heap::Damage& damage : heap::VolatileCore::core_of(heap)->check()) BOOST_ERROR(damage.what << " at " << damage.where.value);
}

struct Filling {
    unsigned char* at;
    std::size_t bytes;
    unsigned char value;
};

bool is_intact(const Filling& block) {
    return std::all_of(block.at, block.at + block.bytes, [&](unsigned char byte) { return byte == block.value; });
}

std::size_t some_size(std::mt19937_64& random) {
    switch (random() % 16) {
        case 0: return random() % 3;
        case 1: return 2040 + random() % 20;
        case 2: return 4080 + random() % 40;
        case 3: return 65'520 + random() % 40;
        case 4: return 1 + random() % 200'000;
        case 5: return 4096 * (1 + random() % 5);
        case 6: return 2049 + random() % 30'000;
        default: return 1 + random() % 400;
    }
}
std::size_t some_alignment(std::mt19937_64& random) {
    static constexpr std::array<std::size_t, 8> alignments{16, 16, 8, 64, 256, 4096, 65'536, std::size_t{2} << 20U};
    return alignments[random() % 40 == 0 ? random() % 8 : random() % 5];
}

/// Blocks of one heap at a time, whichever that is.
class Luggage {
public:
    explicit Luggage(std::uint64_t seed) : random_(seed) {}

    template <class Heap>
    void pack(Heap& heap, int steps) {
        for (int i = 0; i < steps; ++i) {
            const auto choice = random_() % 20;
            if (choice < 11 || blocks_.empty())
                add(heap);
            else if (choice < 17)
                remove(heap, random_() % blocks_.size());
            else
                resize(heap, blocks_[random_() % blocks_.size()]);
            while (blocks_.size() > 700) remove(heap, random_() % blocks_.size());
        }
    }
    template <class Heap>
    void expect(const Heap& heap) const {
        for (const Filling& block : blocks_) {
            BOOST_TEST_REQUIRE(heap.usable_size(block.at) >= block.bytes);
            BOOST_TEST_REQUIRE(is_intact(block));
        }
    }
    void visit(const Relocation& relocation) {
        for (Filling& block : blocks_) relocation.visit(block.at);
    }
    std::vector<Filling>& blocks() { return blocks_; }

private:
    template <class Heap>
    void add(Heap& heap) {
        Filling block{nullptr, some_size(random_), static_cast<unsigned char>(1 + random_() % 250)};
        try {
            block.at = static_cast<unsigned char*>(heap.allocate(block.bytes, some_alignment(random_)));
        } catch (const HeapFull&) {
            return;
        }
        std::memset(block.at, block.value, block.bytes);
        blocks_.push_back(block);
    }
    template <class Heap>
    void remove(Heap& heap, std::size_t at) {
        BOOST_TEST_REQUIRE(is_intact(blocks_[at]));
        heap.deallocate(blocks_[at].at);
        blocks_[at] = blocks_.back();
        blocks_.pop_back();
    }
    template <class Heap>
    void resize(Heap& heap, Filling& block) {
        const std::size_t bytes = random_() % 3 == 0 ? block.bytes * 2 : some_size(random_);
        try {
            block.at = static_cast<unsigned char*>(heap.resize(block.at, bytes));
        } catch (const HeapFull&) {
            return;
        }
        BOOST_TEST_REQUIRE(std::all_of(block.at, block.at + std::min(bytes, block.bytes), [&](unsigned char byte) { return byte == block.value; }));
        block.bytes = bytes;
        std::memset(block.at, block.value, bytes);
    }

    std::mt19937_64 random_;
    std::vector<Filling> blocks_;
};

struct TravelFixture {
    ScratchDirectory directory;
    std::mt19937_64 random{taiyen::test::seed_of_run()};
    const std::filesystem::path path = directory / "heap.tyn";
};

BOOST_FIXTURE_TEST_SUITE(travelling_heaps, TravelFixture)

BOOST_AUTO_TEST_CASE(keep_every_block_through_ten_journeys_there_and_back) {
    Luggage luggage(random());
    std::optional<VolatileHeap> heap(travelling_heap());
    for (int journey = 0; journey < 10; ++journey) {
        luggage.pack(*heap, 1500);
        std::thread([&] { luggage.pack(*heap, 1500); }).join();  // its magazines and segments stay behind it
        luggage.pack(*heap, 300);                                // and some of its blocks are freed from afar
        luggage.expect(*heap);
        expect_no_damage(*heap);
        const LiveBlocks live = heap->live_blocks(0);
        BOOST_TEST_REQUIRE(live.count == luggage.blocks().size());
        std::filesystem::remove(path);
        if (journey % 3 == 0) {
            const auto stream = compress(*heap);
            heap.reset();
            ExpandedVolatile made = expand_volatile(std::span(stream), arriving());
            heap.emplace(std::move(made.heap));
        } else if (journey % 3 == 1) {
            convert(*heap, path);
            heap.reset();
            {
                ArchiveHeap file(open_only, path);
                BOOST_TEST(file.stats().live_blocks == live.count);
                BOOST_TEST(file.stats().live_bytes == live.bytes);
                luggage.expect(file);
                luggage.pack(file, 1000);
                luggage.expect(file);
                BOOST_TEST(file.verify().ok());
                file.snapshot();
                file.close();
            }
            VolatileConvertOptions options;
            options.heap.tell_memory_tools = false;
            ExpandedVolatile made = convert_to_volatile(path, options);
            heap.emplace(std::move(made.heap));
        } else {
            VolatileExpandOptions options = arriving();
            options.address = anywhere;
            options.pointers.conservative = true;
            ExpandedVolatile made = convert_to_volatile(*heap, options);
            luggage.expect(*heap);
            luggage.visit(made.move.relocation());
            heap.emplace(std::move(made.heap));
        }
        luggage.expect(*heap);
        expect_no_damage(*heap);
        BOOST_TEST_REQUIRE(heap->live_blocks(0).count == luggage.blocks().size());
    }
    for (const Filling& block : luggage.blocks()) heap->deallocate(block.at);
    BOOST_TEST(heap->live_blocks(0).count == 0U);
    expect_no_damage(*heap);
}

BOOST_AUTO_TEST_CASE(with_blocks_of_the_largest_size_there_is_come_through) {
    VolatileHeap heap(travelling_heap(std::size_t{8} << 20U));
    std::size_t bytes = std::size_t{8} << 20U;
    unsigned char* block = nullptr;
    for (; block == nullptr; bytes -= 4096) block = static_cast<unsigned char*>(heap.try_allocate(bytes));
    bytes += 4096;
    std::memset(block, 0x5A, bytes);
    auto* const none = heap.allocate(0);
    const auto stream = compress(heap);
    heap.close();
    ExpandedVolatile made = expand_volatile(std::span(stream), arriving());
    BOOST_TEST(made.heap.usable_size(block) >= bytes);
    BOOST_TEST(is_intact({block, bytes, 0x5A}));
    BOOST_TEST(made.heap.usable_size(none) == 16U);
    BOOST_TEST(made.heap.try_allocate(bytes) == nullptr);
    made.heap.deallocate(block);
    BOOST_TEST(made.heap.try_allocate(bytes) == block);
    made.heap.deallocate(none);
    expect_no_damage(made.heap);
}

BOOST_AUTO_TEST_CASE(may_come_to_lie_partly_where_they_lay) {
    Document<InMemory> model;
    std::vector<std::byte> stream;
    {
        SnapshotHeap file(create_only, path, small_heap());
        edit_and_save(file, model, 1, 4);
        stream = compress(file);
        file.close();
    }
    VolatileConvertOptions options;
    options.heap.tell_memory_tools = false;
    options.address = read_parameters(path).address + (std::uintptr_t{4} << 30U);
    for (const bool by_types : {false, true}) {
        if (by_types) options.pointers.types.add<Document<InHeap>>();
        options.pointers.conservative = !by_types;
        for (const bool from_stream : {false, true}) {
            const ExpandedVolatile made = from_stream ? expand_volatile(std::span(stream), options) : convert_to_volatile(path, options);
            const auto* const document = made.heap.find<Document<InHeap>>("document");
            BOOST_TEST_REQUIRE(document != nullptr);
            BOOST_TEST(taiyen::test::describe(*document) == describe(model));
            expect_no_damage(made.heap);
        }
    }
}

BOOST_AUTO_TEST_CASE(have_a_place_that_touches_the_old_one_while_they_are_made) {
    const ByteCount bytes = round_up(small_heap().capacity, heap::slot_bytes);
    const vm::Zone zone = vm::default_zone();
    const auto room = vm::find_free(3 * bytes, heap::slot_bytes, vm::Placement::high, zone.first, zone.last);
    BOOST_TEST_REQUIRE(room.has_value());
    Document<InMemory> model;
    {
        PersistentOptions options = small_heap();
        options.address = *room + bytes;
        SnapshotHeap file(create_only, path, options);
        edit_and_save(file, model, 1, 2);
        file.close();
    }
    for (const std::uintptr_t place : {*room, *room + 2 * bytes}) {
        VolatileConvertOptions options;
        options.heap.tell_memory_tools = false;
        options.heap.capacity = small_heap().capacity;
        options.address = place;
        options.pointers.conservative = true;
        std::atomic<unsigned> looks = 0;
        std::atomic<unsigned> free = 0;
        options.progress = [&](std::uint64_t, std::uint64_t) {
            ++looks;
            try {
                const vm::Reservation other(place, bytes);
                ++free;
            } catch (const Error& error) {
                if (error.code() != errc::address_in_use) throw;
            }
        };
        const ExpandedVolatile made = convert_to_volatile(path, options);
        BOOST_TEST(looks != 0U);
        BOOST_TEST(free == 0U);
        BOOST_TEST(made.move.new_address == place);
        const auto* const document = made.heap.find<Document<InHeap>>("document");
        BOOST_TEST_REQUIRE(document != nullptr);
        BOOST_TEST(taiyen::test::describe(*document) == describe(model));
    }
}

BOOST_AUTO_TEST_CASE(whose_blocks_keep_distances_are_searched_for_leaks_by_distances) {
    using Texts = offset::map<int, offset::string>;
    {
        PersistentOptions files = small_heap();
        files.position_independent = true;
        ArchiveHeap file(create_only, path, files);
        auto& texts = file.construct<Texts>("texts");
        for (int i = 0; i < 100; ++i) texts.emplace(i, std::string(static_cast<std::size_t>(i), 'x').c_str());
        file.snapshot();
        file.close();
    }
    VolatileConvertOptions options;
    options.heap.tell_memory_tools = false;
    ExpandedVolatile made = convert_to_volatile(path, options);
    BOOST_TEST(made.heap.leaked_blocks().count == 0U);
    auto* const lost = made.heap.make<Texts>();
    lost->emplace(1, "a text that is longer than a small buffer");
    const LiveBlocks leaked = made.heap.leaked_blocks();
    BOOST_TEST(leaked.count == 3U);
    BOOST_TEST(leaked.listed.size() == 1U);  // they lead to each other
}

BOOST_AUTO_TEST_CASE(that_are_full_to_the_last_page_travel_with_all_their_names) {
    Luggage luggage(random());
    std::vector<std::byte> stream;
    constexpr int names = 700;
    const auto name = [](int i) { return "name number " + std::to_string(i); };
    {
        VolatileHeap heap(travelling_heap(std::size_t{1} << 20U));
        for (int i = 0; i < names; ++i) heap.construct<int>(name(i), i);
        heap.destroy<int>(name(1));
        luggage.pack(heap, 600);
        for (std::size_t bytes = 4096; bytes != 0; bytes /= 2)
            while (auto* const block = static_cast<unsigned char*>(heap.try_allocate(bytes))) luggage.blocks().push_back({block, 0, 1});
        stream = compress(heap);
        convert(heap, path);
    }
    const auto expect_names = [&](auto& heap) {
        for (int i = 0; i < names; i += 2)
            BOOST_TEST_REQUIRE((heap.template find<int>(name(i)) != nullptr && *heap.template find<int>(name(i)) == i));
        BOOST_TEST(heap.template find<int>(name(1)) == nullptr);
    };
    {
        ExpandedVolatile made = expand_volatile(std::span(stream), arriving());
        expect_names(made.heap);
        luggage.expect(made.heap);
        expect_no_damage(made.heap);
        luggage.pack(made.heap, 2000);
        luggage.expect(made.heap);
        const auto again = compress(made.heap);
        made.heap.close();
        ExpandedVolatile twice = expand_volatile(std::span(again), arriving());
        luggage.expect(twice.heap);
        expect_names(twice.heap);
        expect_no_damage(twice.heap);
    }
    ArchiveHeap heap(open_only, path);
    expect_names(heap);
    BOOST_TEST(heap.verify().ok());
    heap.close();
}

BOOST_AUTO_TEST_CASE(are_made_with_every_kind_of_memory) {
    Luggage luggage(random());
    std::vector<std::byte> stream;
    {
        VolatileOptions options = travelling_heap();
        options.pages = PageSize::huge;
        VolatileHeap heap(options);
        luggage.pack(heap, 3000);
        stream = compress(heap);
    }
    for (const PageSize pages : {PageSize::base, PageSize::huge}) {
        for (const int node : {-1, 0}) {
            VolatileExpandOptions options = arriving();
            options.heap.pages = pages;
            options.heap.numa_node = node;
            options.heap.guarded = true;  // it is not, whatever is said
            ExpandedVolatile made = expand_volatile(std::span(stream), options);
            luggage.expect(made.heap);
            Luggage more(random());
            more.pack(made.heap, 3000);
            luggage.expect(made.heap);
            more.expect(made.heap);
            expect_no_damage(made.heap);
            for (const Filling& block : more.blocks()) made.heap.deallocate(block.at);
            made.heap.trim();
            luggage.expect(made.heap);
        }
    }
}

BOOST_AUTO_TEST_CASE(tell_how_far_they_are_and_leave_nothing_if_the_listener_throws) {
    Luggage luggage(random());
    VolatileHeap heap(travelling_heap());
    luggage.pack(heap, 3000);
    const auto stream = compress(heap);
    struct Enough {};
    unsigned told = 0;
    std::uint64_t before = 0;
    const Progress listen = [&](std::uint64_t done, std::uint64_t total) {
        BOOST_TEST(done >= before);
        BOOST_TEST(done <= total);
        before = done;
        ++told;
    };
    const Progress refuse = [](std::uint64_t, std::uint64_t) { throw Enough(); };
    const auto try_both = [&](auto&& action) {
        told = 0;
        before = 0;
        action(listen);
        BOOST_TEST(told > 0U);
        std::filesystem::remove(path);
        const auto count = std::distance(std::filesystem::directory_iterator(directory.path()), std::filesystem::directory_iterator());
        BOOST_CHECK_THROW(action(refuse), Enough);
        BOOST_TEST(std::distance(std::filesystem::directory_iterator(directory.path()), std::filesystem::directory_iterator()) == count);
    };
    for (const unsigned threads : {1U, 2U}) {
        try_both([&](const Progress& progress) {
            CompressOptions options;
            options.threads = threads;
            options.progress = progress;
            compress(heap, path, options);
        });
        for (const bool elsewhere : {false, true}) {
            try_both([&](const Progress& progress) {
                ExpandOptions options;
                options.threads = threads;
                options.progress = progress;
                options.pointers.conservative = elsewhere;
                if (elsewhere) options.address = anywhere;
                expand(std::span(stream), path, options);
            });
            try_both([&](const Progress& progress) {
                ExpandOptions options;
                options.progress = progress;
                options.pointers.conservative = elsewhere;
                if (elsewhere) options.address = anywhere;
                convert(heap, path, options);
            });
        }
        try_both([&](const Progress& progress) {
            VolatileExpandOptions options = arriving();
            options.threads = threads;
            options.address = anywhere;
            options.pointers.conservative = true;
            options.progress = progress;
            expand_volatile(std::span(stream), options);
        });
        try_both([&](const Progress& progress) {
            VolatileExpandOptions options = arriving();
            options.pointers.conservative = true;
            options.progress = progress;
            convert_to_volatile(heap, options);
        });
    }
    luggage.expect(heap);
    expect_no_damage(heap);
}

std::atomic<unsigned> bad_frees{0};

BOOST_AUTO_TEST_CASE(are_told_of_bad_frees_of_what_came_along) {
    std::vector<unsigned char*> blocks;
    std::vector<std::byte> stream;
    {
        ArchiveHeap file(create_only, path, small_heap());
        for (std::size_t bytes = 8; bytes < 10'000; bytes += bytes < 300 ? 8 : 500)
            blocks.push_back(static_cast<unsigned char*>(file.allocate(bytes, 8)));
        file.snapshot();
        stream = compress(file);
        file.close();
    }
    ExpandedVolatile made = expand_volatile(std::span(stream), arriving());
    bad_frees = 0;
    const ReportHandler before = set_report_handler([](const Incident&) noexcept { ++bad_frees; });
    unsigned expected = 0;
    for (unsigned char* const block : blocks) {
        made.heap.deallocate(block + 8);  // interior, or between two
        ++expected;
        BOOST_TEST(made.heap.usable_size(block) != 0U);
    }
    // What lies 8 bytes behind a block's beginning may be another's.
    expected -= static_cast<unsigned>(std::count_if(
        blocks.begin(), blocks.end(), [&](unsigned char* block) { return std::find(blocks.begin(), blocks.end(), block + 8) != blocks.end(); }));
    BOOST_TEST(bad_frees == expected);
    for (unsigned char* const block : blocks) {
        made.heap.deallocate(block);
        BOOST_TEST(made.heap.usable_size(block) == 0U);
        made.heap.deallocate(block);
        ++expected;
    }
    BOOST_TEST(bad_frees == expected);
    set_report_handler(before);
    BOOST_TEST(made.heap.live_blocks(0).count == 0U);
    expect_no_damage(made.heap);
}

/// Blocks on their way from one thread to another.
struct Box {
    std::mutex mutex;
    std::vector<Filling> blocks;
};

BOOST_AUTO_TEST_CASE(are_shared_by_threads_that_free_and_resize_what_came_along, *boost::unit_test::label("threads")) {
    Luggage luggage(random());
    std::vector<std::byte> stream;
    CompressOptions leaving;
    leaving.threads = watched_threads;
    VolatileExpandOptions arrival = arriving();
    arrival.threads = watched_threads;
    {
        ArchiveHeap file(create_only, path, small_heap());  // with packed blocks
        Luggage packed(random());
        for (int i = 0; i < 3000; ++i) {
            const std::size_t bytes = 1 + random() % 130;
            auto* const at = static_cast<unsigned char*>(file.allocate(bytes, 8));
            const auto value = static_cast<unsigned char>(1 + random() % 250);
            std::memset(at, value, bytes);
            luggage.blocks().push_back({at, bytes, value});
        }
        luggage.pack(file, 200);
        file.snapshot();
        stream = compress(file, leaving);
        file.close();
    }
    ExpandedVolatile made = expand_volatile(std::span(stream), arrival);
    VolatileHeap& heap = made.heap;
    constexpr unsigned count = 4;
    constexpr int steps = watched_threads == 1 ? 15'000 : 60'000;  // the sanitizer takes ten times the time
    std::array<Box, count> boxes;
    for (std::size_t i = 0; i < luggage.blocks().size(); ++i) boxes[i % count].blocks.push_back(luggage.blocks()[i]);
    const std::uint64_t seed = random();
    taiyen::test::at_once(count, [&](unsigned number) {
        std::mt19937_64 own(seed + number);
        std::vector<Filling> mine;
        for (int step = 0; step < steps; ++step) {
            if (step % 16 == 0) {
                Box& box = boxes[number];
                const std::lock_guard lock(box.mutex);
                for (int i = 0; i < 20 && !box.blocks.empty(); ++i) {
                    mine.push_back(box.blocks.back());
                    box.blocks.pop_back();
                }
            }
            const auto choice = own() % 16;
            if (choice < 6 || mine.empty()) {
                const std::size_t bytes = own() % 20 == 0 ? own() % 40'000 : own() % 300;
                auto* const at = static_cast<unsigned char*>(heap.try_allocate(bytes, own() % 8 == 0 ? 64 : 16));
                if (at == nullptr) continue;
                const auto value = static_cast<unsigned char>(1 + own() % 250);
                std::memset(at, value, bytes);
                mine.push_back({at, bytes, value});
                continue;
            }
            std::swap(mine[own() % mine.size()], mine.back());
            Filling block = mine.back();
            mine.pop_back();
            taiyen::test::require(is_intact(block), "a block was overwritten");
            taiyen::test::require(heap.usable_size(block.at) >= block.bytes, "a block has become shorter");
            if (choice < 11) {
                heap.deallocate(block.at);
            } else if (choice < 13) {
                const std::size_t bytes = own() % 8 == 0 ? own() % 30'000 : own() % 300;
                block.at = static_cast<unsigned char*>(heap.resize(block.at, bytes));
                block.bytes = bytes;
                std::memset(block.at, block.value, bytes);
                mine.push_back(block);
            } else {
                Box& box = boxes[own() % count];
                const std::lock_guard lock(box.mutex);
                box.blocks.push_back(block);
            }
        }
        Box& box = boxes[number];
        const std::lock_guard lock(box.mutex);
        box.blocks.insert(box.blocks.end(), mine.begin(), mine.end());
    });
    std::uint64_t left = 0;
    for (const Box& box : boxes) left += box.blocks.size();
    BOOST_TEST(heap.live_blocks(0).count == left);
    expect_no_damage(heap);
    // And once more on the way, with the threads gone.
    const auto again = compress(heap, leaving);
    heap.close();
    ExpandedVolatile twice = expand_volatile(std::span(again), arrival);
    for (const Box& box : boxes) {
        for (const Filling& block : box.blocks) {
            BOOST_TEST_REQUIRE(is_intact(block));
            twice.heap.deallocate(block.at);
        }
    }
    BOOST_TEST(twice.heap.live_blocks(0).count == 0U);
    expect_no_damage(twice.heap);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
