// Room: heaps that are full, disks that are full, large values between others.
#include <array>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/planted.hpp"
#include "logheap/log_fixture.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(log_heap_room)

using namespace taiyen;
using logheap::ObjectLog;
using namespace logheap::test;
using taiyen::test::throws;

BOOST_AUTO_TEST_CASE(a_large_value_finds_room_however_the_others_lie) {
    const Place at;
    LogHeapOptions options = small(64);
    options.background = taiyen::test::seed_of_run() % 2 == 0;
    LogHeap heap(create_only, at.path, options);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::map<std::uint64_t, std::size_t> sizes;
    const auto put = [&](std::uint64_t id, std::size_t length) {
        heap.put_as(LogId{id}, bytes_of(length, id));
        sizes[id] = length;
    };
    std::uint64_t id = 1;
    while (heap.stats().live_bytes < 38 * 64_KiB) put(id++, random() % 3000);
    for (std::uint64_t i = 0; i < 8000; ++i) put(1 + random() % (id - 1), random() % 3000);
    for (std::uint64_t run = 0; run < 5; ++run) {
        put((std::uint64_t{1} << 40U) + run, 150'000);
        for (std::uint64_t i = 0; i < 200; ++i) put(1 + random() % (id - 1), random() % 3000);
    }
    for (const auto& [known, length] : sizes) BOOST_TEST_REQUIRE(holds(heap, LogId{known}, bytes_of(length, known)));
}

BOOST_AUTO_TEST_CASE(a_batch_of_small_and_large_values_has_room_for_all_or_happens_not_at_all) {
    const Place at;
    LogHeap heap(create_only, at.path, small(40));
    std::uint64_t refused = 0;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::map<std::uint64_t, std::size_t> sizes;
    for (int round = 0; round < 60 || (refused == 0 && round < 600); ++round) {
        LogBatch batch;
        std::map<std::uint64_t, std::size_t> after = sizes;
        for (std::uint64_t i = 0; i < 12; ++i) {
            const std::size_t length = i == 0 ? 70'000 + random() % 400'000 : random() % 12'000;
            const std::uint64_t id = 1 + random() % 60;
            batch.put(LogId{id}, bytes_of(length, id));
            after[id] = length;
        }
        try {
            heap.commit(batch);
            sizes = after;
        } catch (const HeapFull&) {
            ++refused;
            for (int i = 0; i < 10 && !sizes.empty(); ++i) {
                BOOST_REQUIRE(heap.remove(LogId{sizes.begin()->first}));
                sizes.erase(sizes.begin());
            }
        }
        BOOST_REQUIRE(heap.size() == sizes.size());
        for (const auto& [id, length] : sizes) BOOST_REQUIRE(holds(heap, LogId{id}, bytes_of(length, id)));
    }
    BOOST_TEST(refused > 0U);
}

BOOST_AUTO_TEST_CASE(a_full_heap_goes_on_when_values_are_removed) {
    const Place at;
    LogHeapOptions options = small(20);
    options.utilisation = 0.8;
    LogHeap heap(create_only, at.path, options);
    std::vector<LogHandle> handles;
    const auto fill = [&](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        try {
            for (;;) handles.push_back(heap.put(bytes_of(random() % 3000, handles.size())));
        } catch (const HeapFull& full) {
            BOOST_TEST((full.cause() == HeapFull::Cause::values));
        }
    };
    fill(1);
    const std::uint64_t at_first = heap.size();
    BOOST_TEST(at_first > 400U);
    // An update that finds no room leaves the old value.
    const LogHandle one = handles[7];
    const std::string before = text_of(heap.get(one));
    BOOST_CHECK_THROW(heap.update(one, bytes_of(30'000)), HeapFull);
    BOOST_TEST(text_of(heap.get(one)) == before);
    // What becomes smaller always has room.
    for (int i = 0; i < 300; ++i) BOOST_TEST(heap.update(handles[static_cast<std::size_t>(i)], bytes_of(0)));
    for (std::uint64_t round = 0; round < 6; ++round) {
        for (std::size_t i = 0; i < handles.size(); i += 2) BOOST_TEST(heap.remove(handles[i]));
        std::vector<LogHandle> kept;
        for (std::size_t i = 1; i < handles.size(); i += 2) kept.push_back(handles[i]);
        handles = kept;
        fill(round + 2);
        BOOST_TEST(heap.size() * 10 > at_first * 7);
    }
    for (const LogHandle& handle : handles) BOOST_TEST(heap.remove(handle));
    BOOST_TEST(heap.empty());
    BOOST_TEST(heap.stats().live_bytes == 0U);
    BOOST_TEST(heap.stats().cleaned_segments > 0U);
}

BOOST_AUTO_TEST_CASE(a_full_disk_refuses_and_loses_nothing) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    auto log = ObjectLog::open(disk, "/disk/x.tyl", small(), ObjectLog::Opening::create);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    logheap::test::Values values;
    for (int i = 0; i < 60; ++i) logheap::test::operate(*log, values, random, {});
    disk.set_space(disk.used_bytes() + 300'000);
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
        try {
            const Bytes bytes = bytes_of(3000, random());
            const LogHandle handle = log->put(bytes);
            values[static_cast<std::uint64_t>(handle.id)] = bytes;
        } catch (const HeapFull& full) {
            ++refused;
            BOOST_TEST((full.cause() == HeapFull::Cause::disk));
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::no_space));
            ++refused;
        }
    }
    BOOST_TEST(refused > 0);
    logheap::test::require_equal(logheap::test::values_of(*log), values, "on a full disk");
    disk.set_space(~ByteCount{0});
    log->put_as(LogId{9}, bytes_of(100));
    values[9] = bytes_of(100);
    log = reopened(disk, std::move(log));
    logheap::test::require_equal(logheap::test::values_of(*log), values, "afterwards");
    log->close();
}

BOOST_AUTO_TEST_CASE(a_sparse_heap_on_a_full_disk_goes_on_with_the_room_that_it_has) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    LogHeapOptions options = small(200);
    options.background = false;
    auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (std::uint64_t id = 1; id <= 400; ++id) log->put_as(LogId{id}, bytes_of(3000, id));
    disk.set_space(disk.used_bytes());
    for (int life = 0; life < 4; ++life) {
        for (int i = 0; i < 1500; ++i) {
            const std::uint64_t id = 1 + random() % 400;
            const bool must = i % 3 == 0;
            try {
                if (must)
                    log->remove(LogId{id});
                else
                    log->put_as(LogId{id}, bytes_of(random() % 3000, id));
            } catch (const HeapFull& full) {
                BOOST_TEST_REQUIRE(!must);
                BOOST_TEST((full.cause() == HeapFull::Cause::disk));
            }
        }
        for (std::uint64_t id = 1; id <= 60; ++id) log->put_as(LogId{id}, bytes_of(3000, id));  // so much is free by now
        log->check_sums();
        BOOST_TEST(log->verify().damaged.empty());
        if (life % 2 == 0) {
            log->close();
            log.reset();
            disk.disconnect();
            log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::open);
        } else {
            log->abandon();
            log.reset();
            disk.disconnect();
            log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::open);
        }
    }
    log->close();
}

BOOST_AUTO_TEST_CASE(random_lives_on_a_full_disk_refuse_no_removal) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (std::uint64_t life = 0; life < 6; ++life) {
        std::mt19937_64 random(seed + life);
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        LogHeapOptions options = small(20 + random() % 100);
        options.background = false;
        logheap::test::Mix mix;
        mix.large_one_in = life % 2 == 0 ? 20 : 0;
        auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
        logheap::test::Values values;
        for (int part = 0; part < 12; ++part) {
            const std::string when = "life " + std::to_string(life) + ", part " + std::to_string(part);
            disk.set_space(part % 4 == 3 ? ~ByteCount{0} : disk.used_bytes() + random() % 100'000);
            for (int i = 0; i < 120; ++i) logheap::test::operate(*log, values, random, mix);
            log->check_sums();
            logheap::test::require_equal(logheap::test::values_of(*log), values, when);
            if (random() % 3 == 0) log->close();
            log->abandon();
            log.reset();
            disk.disconnect();
            log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::open);
            logheap::test::require_equal(logheap::test::values_of(*log), values, when + ", opened again");
        }
        log->close();
    }
}

/// Two values fill a segment, and of the first 24 segments each second one is free.
template <class Heap>
void fill_each_second_segment(Heap& heap) {
    for (std::uint64_t id = 1; id <= 50; ++id) heap.put_as(LogId{id}, bytes_of(30'000, id));
    for (std::uint64_t id = 3; id <= 48; ++id)
        if ((id + 1) / 2 % 2 == 0) heap.remove(LogId{id});
    heap.checkpoint();
}

BOOST_AUTO_TEST_CASE(a_large_value_finds_room_beside_a_damaged_one) {
    const Place at;
    LogHeapOptions options = small();
    options.background = false;
    std::uint64_t offset = 0;
    {
        LogHeap heap(create_only, at.path, options);
        fill_each_second_segment(heap);
        offset = heap.segments()[0].offset + 1000;
    }
    damage(at.path, offset);
    LogHeap heap(open_only, at.path, options);
    heap.put_as(LogId{100}, bytes_of(600'000));
    BOOST_TEST(holds(heap, LogId{100}, bytes_of(600'000)));
    BOOST_TEST(throws(errc::corrupt, [&] { static_cast<void>(heap.get(LogId{1})); }));
    BOOST_TEST(holds(heap, LogId{2}, bytes_of(30'000, 2)));
}

BOOST_AUTO_TEST_CASE(a_large_value_finds_room_on_a_full_disk) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    LogHeapOptions options = small(64);
    options.background = false;
    const auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
    fill_each_second_segment(*log);
    disk.set_space(disk.used_bytes());
    log->put_as(LogId{100}, bytes_of(500'000));
    BOOST_TEST((log->get(LogId{100}).bytes().size() == 500'000U));
    BOOST_CHECK_THROW(log->put_as(LogId{101}, bytes_of(500'000)), HeapFull);
    disk.set_space(~ByteCount{0});  // it has room again, and nobody opened the heap anew
    log->put_as(LogId{101}, bytes_of(500'000));
    log->check_sums();
    log->close();
}

BOOST_AUTO_TEST_CASE(batches_that_replace_a_value_by_many_keep_room_for_the_index) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    LogHeapOptions options = small(64);
    options.background = false;
    const auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
    for (std::uint64_t id = 1; id <= 40; ++id) log->put_as(LogId{id}, bytes_of(60'000, id));
    log->checkpoint();
    disk.set_space(disk.used_bytes());
    std::uint64_t next = 1000;
    for (std::uint64_t id = 1; id <= 40; ++id) {
        LogBatch batch;
        batch.remove(LogId{id});
        for (int i = 0; i < 1000; ++i) batch.put(LogId{next + static_cast<std::uint64_t>(i)}, bytes_of(8));
        try {
            log->commit(batch);
            next += 1000;
        } catch (const HeapFull&) {}
    }
    log->checkpoint();  // has its blocks, on a full disk
    for (std::uint64_t id = 1; id <= 40; ++id) log->remove(LogId{id});
    for (std::uint64_t id = 1000; id < next; ++id) log->remove(LogId{id});
    BOOST_TEST(log->size() == 0U);
    log->close();
}

BOOST_AUTO_TEST_CASE(counts_are_of_what_operations_wrote) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    auto log = ObjectLog::open(disk, "/disk/x.tyl", small(), ObjectLog::Opening::create);
    log->put_as(LogId{1}, bytes_of(1000));
    BOOST_TEST(log->stats().put_bytes == 1032U);
    log->put_as(LogId{2}, bytes_of(100'000));
    BOOST_TEST(log->stats().put_bytes == 1032U + 100'032U);
    log = reopened(disk, std::move(log));
    BOOST_TEST(log->restoration().from_ring == 2U);
    BOOST_TEST(log->stats().put_bytes == 0U);
    log->close();
}

/// How many mappings of the file read their pages alone, and how many don't (VmFlags of smaps, proc_pid_smaps(5)).
std::array<int, 2> mappings_alone_and_others(const std::filesystem::path& path) {
    std::array<int, 2> found{};
    std::ifstream smaps("/proc/thread-self/smaps");
    bool within = false;
    for (std::string line; std::getline(smaps, line);) {
        const std::size_t dash = line.find('-');
        if (dash != std::string::npos && dash == line.find_first_not_of("0123456789abcdef"))
            within = line.ends_with("/" + path.filename().string());
        else if (within && line.starts_with("VmFlags:"))
            ++found[line.find(" rr") != std::string::npos ? 0 : 1];
    }
    return found;
}

BOOST_AUTO_TEST_CASE(pages_come_in_alone_once_the_heap_takes_half_of_the_memory) {
    const Place at;
    LogHeapOptions options = small(64);
    options.background = false;
    ObjectLog::open(io::posix_storage(), at.path, options, ObjectLog::Opening::create)->close();  // of a file that had no name smaps tells none
    {
        const auto log = ObjectLog::open(io::posix_storage(), at.path, options, ObjectLog::Opening::open, 2_MiB);
        BOOST_TEST(mappings_alone_and_others(at.path)[0] == 0);
        BOOST_TEST(mappings_alone_and_others(at.path)[1] > 0);
        for (std::uint64_t id = 1; id <= 24; ++id) log->put_as(LogId{id}, bytes_of(60'000, id));
        log->put_as(LogId{100}, bytes_of(200'000));
        log->clean(1_MiB);
        BOOST_TEST(mappings_alone_and_others(at.path)[0] > 0);
        BOOST_TEST(mappings_alone_and_others(at.path)[1] == 0);
        log->close();
    }
    {
        const auto log = ObjectLog::open(io::posix_storage(), at.path, options, ObjectLog::Opening::read_only, 2_MiB);
        BOOST_TEST(mappings_alone_and_others(at.path)[0] > 0);
        BOOST_TEST(mappings_alone_and_others(at.path)[1] == 0);
        BOOST_TEST((log->get(LogId{7}).bytes().size() == 60'000U));
    }
    const auto log = ObjectLog::open(io::posix_storage(), at.path, options, ObjectLog::Opening::open, 64_MiB);
    BOOST_TEST(mappings_alone_and_others(at.path)[0] == 0);
    log->close();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
