// What a log heap promises: operations, handles, views, durability, room, errors.
#include <taiyen/logheap/log_heap.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/planted.hpp"
#include "io/disks/simulated_node.hpp"
#include "io/disks/simulated_storage.hpp"
#include "logheap/log_fixture.hpp"
#include "logheap/log_model.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(log_heap)

using namespace taiyen;
using logheap::ObjectLog;
using namespace logheap::test;
using taiyen::test::throws;

BOOST_AUTO_TEST_CASE(values_are_put_read_updated_and_removed) {
    const Place at;
    LogHandle first;
    LogHandle empty;
    {
        LogHeap heap(create_only, at.path, small());
        BOOST_TEST(heap.empty());
        first = heap.put(text("one"));
        empty = heap.put(text(""));
        BOOST_TEST(heap.size() == 2U);
        BOOST_TEST(text_of(heap.get(first)) == "one");
        BOOST_TEST(static_cast<bool>(heap.get(empty)));
        BOOST_TEST(heap.get(empty).bytes().empty());
        BOOST_TEST(heap.update(first, text("another one")));
        BOOST_TEST(text_of(heap.get(first)) == "another one");
        BOOST_TEST((heap.get(first).handle() == first));
        const LogHandle gone = heap.put(text("gone"));
        BOOST_TEST(heap.remove(gone));
        BOOST_TEST(!heap.remove(gone));
        BOOST_TEST(!heap.update(gone, text("back")));
        BOOST_TEST(!heap.get(gone));
        BOOST_TEST(!heap.contains(gone));
    }
    const LogHeap heap(open_only, at.path);
    BOOST_TEST(heap.restoration().was_clean);
    BOOST_TEST(heap.size() == 2U);
    BOOST_TEST(text_of(heap.get(first)) == "another one");
    BOOST_TEST(static_cast<bool>(heap.get(empty)));
}

BOOST_AUTO_TEST_CASE(a_handle_means_the_value_that_it_was_given_for) {
    const Place at;
    LogHeap heap(create_only, at.path, small());
    const LogHandle old = heap.put_as(LogId{7}, text("old"));
    BOOST_TEST((heap.put_as(LogId{7}, text("replaced")) == old));
    BOOST_TEST(text_of(heap.get(old)) == "replaced");
    BOOST_TEST(heap.remove(LogId{7}));
    const LogHandle young = heap.put_as(LogId{7}, text("young"));
    BOOST_TEST((young != old));
    BOOST_TEST(!heap.get(old));
    BOOST_TEST(!heap.update(old, text("mixed up")));
    BOOST_TEST(!heap.remove(old));
    BOOST_TEST(text_of(heap.get(young)) == "young");
    BOOST_TEST(text_of(heap.get(LogId{7})) == "young");
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap.put_as(LogId::none, text("")); }));
    BOOST_TEST(!heap.get(LogId::none));
    // Ids that the heap gives pass by those that the program chose.
    for (int i = 0; i < 20; ++i) BOOST_TEST((heap.put(text("x")).id != LogId{7}));
    BOOST_TEST(text_of(heap.get(young)) == "young");
}

BOOST_AUTO_TEST_CASE(replace_compares_versions) {
    const Place at;
    LogHeap heap(create_only, at.path, small());
    const LogHandle handle = heap.put(text("a"));
    const Serial version = heap.get(handle).version();
    BOOST_TEST(heap.replace(handle, version, text("b")));
    BOOST_TEST(!heap.replace(handle, version, text("c")));
    BOOST_TEST(text_of(heap.get(handle)) == "b");
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap.replace(handle, {}, text("d")); }));
}

BOOST_AUTO_TEST_CASE(objects_are_read_in_place) {
    const Place at;
    struct Point {
        double x;
        double y;
    };
    LogHeap heap(create_only, at.path, small());
    const LogHandle handle = heap.put(Point{1, 2});
    heap.update(handle, Point{3, 4});
    BOOST_TEST(heap.get(handle).as<Point>().y == 4);
    using Numbers = std::array<int, 3>;
    const LogHandle numbers = heap.put(Numbers{1, 2, 3});
    BOOST_TEST(heap.get(numbers).as<Numbers>()[2] == 3);
    const LogHandle words = heap.put("seven words");
    BOOST_TEST(heap.get(words).text() == "seven words");
    // What only leads to a value is none: it would be kept, and not what it leads to.
    static_assert(!LogValue<std::span<const char>> && !LogValue<std::string_view> && !LogValue<const char*> && !LogValue<std::string>);
    BOOST_TEST(throws(errc::type_mismatch, [&] { static_cast<void>(heap.get(handle).as<int>()); }));
}

BOOST_AUTO_TEST_CASE(a_view_shows_what_it_showed) {
    const Place at;
    LogHeap heap(create_only, at.path, small());
    const Bytes bytes = bytes_of(20'000);
    const LogHandle handle = heap.put(bytes);
    LogView view = heap.get(handle);
    // Everything is written anew several times over, and the value is gone.
    for (std::uint64_t i = 0; i < 400; ++i) heap.put_as(LogId{i % 4 + 1000}, bytes_of(20'000, i));
    heap.remove(handle);
    heap.clean(1_MiB);
    for (std::uint64_t i = 0; i < 400; ++i) heap.put_as(LogId{i % 4 + 1000}, bytes_of(20'000, i + 1000));
    BOOST_TEST(std::equal(bytes.begin(), bytes.end(), view.bytes().begin(), view.bytes().end()));
    BOOST_TEST(heap.stats().views == 1U);
    BOOST_TEST(heap.stats().pinned_segments == 1U);
    BOOST_TEST(throws(errc::still_in_use, [&] { heap.close(); }));
    LogView moved = std::move(view);
    BOOST_TEST(!view);
    BOOST_TEST(heap.stats().views == 1U);
    moved = {};
    BOOST_TEST(heap.stats().views == 0U);
    heap.close();
    BOOST_TEST(!heap.is_open());
    BOOST_TEST(throws(errc::closed, [&] { heap.put(bytes); }));
}

BOOST_AUTO_TEST_CASE(a_view_of_a_run_keeps_all_of_it) {
    const Place at;
    LogHeap heap(create_only, at.path, small(40));
    const Bytes bytes = bytes_of(200'000);
    const LogHandle handle = heap.put(bytes);
    LogView view = heap.get(handle);
    heap.remove(handle);
    heap.checkpoint();
    const std::uint64_t free = heap.stats().free_segments;
    for (std::uint64_t i = 0; i < 100; ++i) heap.put_as(LogId{i % 3 + 1000}, bytes_of(i % 2 == 0 ? 130'000 : 30'000, i));
    BOOST_TEST(std::equal(bytes.begin(), bytes.end(), view.bytes().begin(), view.bytes().end()));
    for (std::uint64_t i = 0; i < 3; ++i) heap.remove(LogId{i + 1000});
    view = {};
    heap.clean(1_MiB);
    for (std::uint64_t i = 0; i < 200; ++i) heap.put_as(LogId{1}, bytes_of(30'000, i));
    heap.remove(LogId{1});
    heap.checkpoint();
    heap.clean(1_MiB);
    BOOST_TEST(heap.stats().free_segments + 2 > free);
}

BOOST_AUTO_TEST_CASE(a_batch_may_bring_many_new_ids) {
    const Place at;
    LogHeapOptions options = small(64);
    options.log_capacity = 1_MiB;
    LogHeap heap(create_only, at.path, options);
    LogBatch batch;
    for (std::uint64_t i = 1; i <= 3000; ++i) batch.put(LogId{i}, text("x"));
    heap.commit(batch);
    BOOST_TEST(heap.size() == 3000U);
    for (std::uint64_t i = 1; i <= 3000; ++i) BOOST_REQUIRE(heap.contains(LogId{i}));
    BOOST_TEST(!heap.contains(LogId{3001}));
}

BOOST_AUTO_TEST_CASE(either_header_may_be_lost) {
    for (const std::uint64_t slot : {0U, 1U}) {
        const Place at;
        {
            LogHeap heap(create_only, at.path, small());
            heap.put_as(LogId{1}, text("one"));
        }
        {
            LogHeap heap(open_only, at.path);
            heap.put_as(LogId{2}, text("two"));
            std::filesystem::copy(at.path, at.directory.path() / "crashed.tyl");
            std::filesystem::copy(at.path.string() + ".log", at.directory.path() / "crashed.tyl.log");
        }
        const std::filesystem::path crashed = at.directory.path() / "crashed.tyl";
        {
            std::fstream file(crashed, std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(static_cast<std::streamoff>(slot * 32_KiB + 100));
            file.put('\x55');
        }
        const LogHeap heap(open_only, crashed);
        BOOST_TEST(!heap.restoration().was_clean);
        BOOST_TEST(text_of(heap.get(LogId{1})) == "one");
        BOOST_TEST(text_of(heap.get(LogId{2})) == "two");
    }
}

BOOST_AUTO_TEST_CASE(values_have_any_size) {
    const Place at;
    const std::size_t segment = 64_KiB - 64 - 32;
    const std::vector<std::size_t> sizes{0, 1, 7, 8, 4040, 4041, segment - 1, segment, segment + 1, 2 * segment, 512_KiB, 1_MiB};
    std::vector<LogHandle> handles;
    {
        LogHeap heap(create_only, at.path, small(96));
        for (std::size_t i = 0; i < sizes.size(); ++i) handles.push_back(heap.put(bytes_of(sizes[i], i)));
        for (std::size_t i = 0; i < sizes.size(); ++i) BOOST_TEST(holds(heap, handles[i], bytes_of(sizes[i], i)));
        BOOST_CHECK_THROW(heap.put(bytes_of(7_MiB)), HeapFull);
        BOOST_TEST(heap.size() == sizes.size());
    }
    {
        LogHeap heap(open_only, at.path);
        for (std::size_t i = 0; i < sizes.size(); ++i) BOOST_TEST(holds(heap, handles[i], bytes_of(sizes[i], i)));
        for (std::size_t i = 0; i < sizes.size(); ++i) BOOST_TEST(heap.update(handles[i], bytes_of(sizes[sizes.size() - 1 - i], i + 50)));
        for (std::size_t i = 0; i < sizes.size(); ++i) BOOST_TEST(holds(heap, handles[i], bytes_of(sizes[sizes.size() - 1 - i], i + 50)));
        BOOST_TEST(heap.verify().values == sizes.size());
        for (const LogHandle& handle : handles) BOOST_TEST(heap.remove(handle));
        BOOST_TEST(heap.empty());
        BOOST_TEST(heap.stats().live_bytes == 0U);
    }
    LogHeap heap(open_only, at.path);
    BOOST_TEST(heap.empty());
    heap.checkpoint();
    BOOST_TEST(heap.stats().free_segments >= 94U);
}

BOOST_AUTO_TEST_CASE(a_batch_is_one_operation) {
    const Place at;
    LogHeap heap(create_only, at.path, small());
    heap.put_as(LogId{1}, text("one"));
    LogBatch batch;
    BOOST_TEST(batch.empty());
    batch.put(LogId{2}, text("two"));
    batch.remove(LogId{1});
    batch.put(LogId{3}, text("three"));
    batch.put(LogId{3}, text("drei"));
    batch.put(LogId{4}, text("four"));
    batch.remove(LogId{4});
    batch.remove(LogId{99});
    const Serial serial = heap.commit(batch);
    BOOST_TEST(heap.size() == 2U);
    BOOST_TEST(text_of(heap.get(LogId{2})) == "two");
    BOOST_TEST(text_of(heap.get(LogId{3})) == "drei");
    BOOST_TEST((heap.get(LogId{3}).version() == serial));
    BOOST_TEST((heap.last_durable() == serial));
    batch.clear();
    BOOST_TEST((heap.commit(batch) == serial));
    BOOST_TEST(throws(errc::invalid_argument, [&] { batch.put(LogId::none, text("")); }));
    // One that doesn't fit changes nothing.
    for (std::uint64_t i = 0; i < 200; ++i) batch.put(LogId{100 + i}, bytes_of(1000, i));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap.commit(batch); }));
    BOOST_TEST(heap.size() == 2U);
    // One that takes several segments.
    batch.clear();
    for (std::uint64_t i = 0; i < 100; ++i) batch.put(LogId{100 + i}, bytes_of(1000, i));
    heap.commit(batch);
    for (std::uint64_t i = 0; i < 100; ++i) BOOST_TEST(holds(heap, LogId{100 + i}, bytes_of(1000, i)));
}

BOOST_AUTO_TEST_CASE(what_was_put_asynchronously_is_durable_when_it_says_so) {
    const Place at;
    LogHeapOptions options = small();
    options.durability = Durability::async;
    LogHeap heap(create_only, at.path, options);
    for (std::uint64_t i = 0; i < 3000; ++i) heap.put_as(LogId{i % 50 + 1}, bytes_of(500, i));
    const Serial last = heap.get(LogId{3000 % 50}).version();
    static_cast<void>(last);
    heap.wait_durable(heap.stats().appended);
    BOOST_TEST((heap.last_durable() == heap.stats().appended));
    BOOST_TEST(heap.stats().appended.value == 3000U);
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap.wait_durable({4000}); }));
}

BOOST_AUTO_TEST_CASE(readers_open_beside_readers_and_write_nothing) {
    const Place at;
    {
        LogHeap heap(create_only, at.path, small());
        for (std::uint64_t i = 1; i <= 100; ++i) heap.put_as(LogId{i}, bytes_of(i * 30, i));
        BOOST_TEST(throws(errc::busy, [&] { const LogHeap second(open_only, at.path); }));
        BOOST_TEST(throws(errc::busy, [&] { const LogHeap second(open_read_only, at.path); }));
    }
    LogHeap first(open_read_only, at.path);
    const LogHeap second(open_read_only, at.path);
    BOOST_TEST(holds(second, LogId{77}, bytes_of(77 * 30, 77)));
    BOOST_TEST(throws(errc::read_only, [&] { first.put(text("x")); }));
    BOOST_TEST(throws(errc::read_only, [&] { first.remove(LogId{1}); }));
    BOOST_TEST(throws(errc::busy, [&] { const LogHeap writer(open_only, at.path); }));
    BOOST_TEST((first.last_durable() == Serial{100}));
}

BOOST_AUTO_TEST_CASE(options_and_files_that_can_not_be_are_refused) {
    const Place at;
    const auto refuses = [&](auto&& change) {
        LogHeapOptions options = small();
        change(options);
        return throws(errc::invalid_argument, [&] { const LogHeap heap(create_only, at.path, options); }) && !std::filesystem::exists(at.path);
    };
    BOOST_TEST(refuses([](LogHeapOptions& o) { o.segment_bytes = 100'000; }));
    BOOST_TEST(refuses([](LogHeapOptions& o) { o.segment_bytes = 4_MiB; }));
    BOOST_TEST(refuses([](LogHeapOptions& o) { o.capacity = 15 * 64_KiB; }));
    BOOST_TEST(refuses([](LogHeapOptions& o) { o.log_capacity = 128_KiB; }));
    BOOST_TEST(refuses([](LogHeapOptions& o) { o.utilisation = 0.96; }));
    BOOST_TEST(refuses([](LogHeapOptions& o) { o.utilisation = 0; }));
    BOOST_TEST(throws(errc::not_found, [&] { const LogHeap heap(open_only, at.path); }));
    const auto write = [&](std::string_view content) { std::ofstream(at.path) << content; };
    write("");
    BOOST_TEST(throws(errc::not_a_heap, [&] { const LogHeap heap(open_only, at.path); }));
    write(std::string(100'000, 'x'));
    BOOST_TEST(throws(errc::not_a_heap, [&] { const LogHeap heap(open_only, at.path); }));
    BOOST_TEST(throws(errc::already_exists, [&] { const LogHeap heap(create_only, at.path, small()); }));
    std::filesystem::remove(at.path);
    { LogHeap heap(create_only, at.path, small()); }
    std::filesystem::path ring = at.path;
    ring += ".log";
    std::filesystem::rename(ring, at.directory.path() / "elsewhere");
    BOOST_TEST(throws(errc::log_missing, [&] { const LogHeap heap(open_only, at.path); }));
    LogHeapOptions named;
    named.log_file = at.directory.path() / "elsewhere";
    { const LogHeap heap(open_only, at.path, named); }
    { LogHeap heap(create_only, at.directory.path() / "other.tyl", small()); }
    std::filesystem::copy(at.directory.path() / "other.tyl.log", ring);
    BOOST_TEST(throws(errc::mismatch, [&] { const LogHeap heap(open_only, at.path); }));
    std::filesystem::remove(ring);
    std::filesystem::rename(at.directory.path() / "elsewhere", ring);
    std::filesystem::resize_file(at.path, 3_MiB);
    BOOST_TEST(throws(errc::truncated, [&] { const LogHeap heap(open_only, at.path); }));
}

BOOST_AUTO_TEST_CASE(a_ring_without_its_heap_is_removed_only_if_no_heap_can_need_it) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    { const auto log = ObjectLog::open(disk, "/disk/x.tyl", small(), ObjectLog::Opening::create); }
    disk.disconnect();
    disk.take_away("/disk/x.tyl");
    BOOST_TEST(throws(errc::already_exists, [&] { ObjectLog::open(disk, "/disk/x.tyl", small(), ObjectLog::Opening::create); }));
}

/// After a crash of the process: the disk has all that was written, and nothing was closed.
BOOST_AUTO_TEST_CASE(removed_values_stay_removed_after_crashes) {
    for (int variant = 0; variant < 6; ++variant) {
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        auto log = ObjectLog::open(disk, "/disk/x.tyl", small(), ObjectLog::Opening::create);
        for (std::uint64_t i = 1; i <= 60; ++i) log->put_as(LogId{i}, bytes_of(2000, i));
        log->update(LogId{5}, {}, bytes_of(100));
        if (variant == 1) log->checkpoint();
        if (variant == 2) log->clean(1_MiB);
        log->remove(LogId{5});
        if (variant == 3) log->checkpoint();
        if (variant == 4) log->clean(1_MiB);
        if (variant == 5) {
            for (std::uint64_t i = 1; i <= 60; ++i) log->remove(LogId{i});
            log->clean(1_MiB);
        }
        log = reopened(disk, std::move(log));
        BOOST_TEST(!log->restoration().was_clean);
        BOOST_TEST(!log->get(LogId{5}));
        BOOST_TEST(log->size() == (variant == 5 ? 0U : 59U));
        log->clean(1_MiB);
        for (std::uint64_t i = 100; i <= 160; ++i) log->put_as(LogId{i}, bytes_of(2000, i));
        log = reopened(disk, std::move(log));
        BOOST_TEST(!log->get(LogId{5}));
        log->check_sums();
        log->close();
    }
}

BOOST_AUTO_TEST_CASE(it_opens_after_any_number_of_crashes) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    LogHeapOptions options = small(20);
    options.utilisation = 0.75;
    auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    logheap::test::Values values;
    for (int i = 0; i < 1500; ++i)
        logheap::test::operate(*log, values, random, {.put = 12, .update = 12, .remove = 2, .clean = 0, .checkpoint = 0, .bytes_max = 7000});
    for (int i = 0; i < 5; ++i) {  // as full as it may be, but for these
        const std::uint64_t id = logheap::test::known_in(values, random);
        log->remove(LogId{id});
        values.erase(id);
    }
    for (int crash = 0; crash < 60; ++crash) {
        log->put_as(LogId{5'000'000}, bytes_of(static_cast<std::size_t>(crash)));
        values[5'000'000] = bytes_of(static_cast<std::size_t>(crash));
        if (crash % 3 == 0) {
            const std::uint64_t id = logheap::test::known_in(values, random);
            log->remove(LogId{id});
            values.erase(id);
        }
        log = reopened(disk, std::move(log), options);
        log->check_sums();
        logheap::test::require_equal(logheap::test::values_of(*log), values, "after crash " + std::to_string(crash));
    }
    log->close();
}

BOOST_AUTO_TEST_CASE(ids_are_not_given_twice) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    LogHeapOptions options = small();
    auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
    std::uint64_t last = 0;
    for (int life = 0; life < 4; ++life) {
        for (int i = 0; i < 10; ++i) {
            const LogHandle handle = log->put(text("x"));
            BOOST_TEST(static_cast<std::uint64_t>(handle.id) > last);
            last = static_cast<std::uint64_t>(handle.id);
            log->remove(handle);
        }
        if (life % 2 == 0) {
            log = reopened(disk, std::move(log), options);
        } else {
            log->close();
            log.reset();
            disk.disconnect();
            log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::open);
            BOOST_TEST(log->restoration().was_clean);
        }
    }
    log->close();
}

BOOST_AUTO_TEST_CASE(a_reader_finds_what_a_crash_left_and_changes_nothing) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    auto log = ObjectLog::open(disk, "/disk/x.tyl", small(), ObjectLog::Opening::create);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    logheap::test::Values values;
    for (int i = 0; i < 150; ++i) logheap::test::operate(*log, values, random, {.large_one_in = 10});
    log->abandon();
    log.reset();
    disk.disconnect();
    const auto bytes_of_disk = [&] {
        std::vector<std::vector<std::byte>> all;
        for (const auto& [path, node] : disk.files()) all.emplace_back(node->data(), node->data() + node->size_bytes());
        return all;
    };
    const auto before = bytes_of_disk();
    {
        const auto reader = ObjectLog::open(disk, "/disk/x.tyl", {}, ObjectLog::Opening::read_only);
        logheap::test::require_equal(logheap::test::values_of(*reader), values, "read only");
        reader->check_sums();
    }
    BOOST_TEST((bytes_of_disk() == before));
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_told_and_nothing_else_is_lost) {
    const Place at;
    std::vector<LogHandle> handles;
    {
        LogHeap heap(create_only, at.path, small());
        for (std::uint64_t i = 0; i < 100; ++i) handles.push_back(heap.put(bytes_of(3000, i)));
    }
    std::uint64_t offset = 0;
    {
        const LogHeap heap(open_only, at.path);
        const LogView view = heap.get(handles[50]);
        std::fstream file(at.path, std::ios::in | std::ios::out | std::ios::binary);
        // Where it lies: its bytes are found in the file.
        std::string all((std::istreambuf_iterator<char>(file)), {});
        offset = all.find(text_of(view));
        BOOST_TEST_REQUIRE(offset != std::string::npos);
    }
    {
        std::fstream file(at.path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(offset + 1000));
        const char was = static_cast<char>(file.get());
        file.seekp(static_cast<std::streamoff>(offset + 1000));
        file.put(static_cast<char>(was ^ 4));
    }
    LogHeap heap(open_only, at.path);
    BOOST_TEST(throws(errc::corrupt, [&] { static_cast<void>(heap.get(handles[50])); }));
    BOOST_TEST(heap.stats().views == 0U);
    const LogVerification found = heap.verify();
    BOOST_TEST_REQUIRE(found.damaged.size() == 1U);
    BOOST_TEST((found.damaged[0].id == handles[50].id));
    BOOST_TEST(found.damaged[0].offset == offset - 32);
    BOOST_TEST(found.values == 99U);
    heap.clean(1_MiB);
    for (std::uint64_t i = 0; i < 100; ++i)
        if (i != 50) BOOST_TEST(holds(heap, handles[i], bytes_of(3000, i)));
    BOOST_TEST(throws(errc::corrupt, [&] { heap.replace(handles[50], handles[50].born, text("x")); }));
    // Cleaning moves what lies beside it, also behind it: once it ends, the whole segment is free.
    for (std::uint64_t i = 0; i < 100; ++i)
        if (i % 2 == 0 && i != 50) BOOST_TEST(heap.remove(handles[i]));
    heap.checkpoint();
    heap.clean(4_MiB);
    const std::uint64_t free = heap.stats().free_segments;
    BOOST_TEST(heap.update(handles[50], text("x")));
    heap.checkpoint();
    BOOST_TEST(heap.stats().free_segments > free);
    for (std::uint64_t i = 1; i < 100; i += 2) BOOST_TEST(holds(heap, handles[i], bytes_of(3000, i)));
    BOOST_TEST(heap.remove(handles[50]));
    BOOST_TEST(heap.verify().damaged.empty());
}

/// Header of the file that counts.
BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_heap_to_its_parent) {
    const Place at;
    LogHeap heap(create_only, at.path, small());
    const LogHandle handle = heap.put("text");
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(30);
        const bool refused = throws(errc::forked, [&] { static_cast<void>(heap.get(handle)); }) && throws(errc::forked, [&] { heap.put("more"); });
        { const LogHeap gone(std::move(heap)); }
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    BOOST_TEST(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    heap.put("more");
    heap.close();
    const LogHeap again(open_only, at.path);
    BOOST_TEST(again.restoration().was_clean);
    BOOST_TEST(again.size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_a_flush_ahead_names_takes_no_room_again) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    LogHeapOptions options = small(16);
    options.log_capacity = 4_MiB;
    options.durability = Durability::async;
    options.loss_window = std::chrono::hours(1);
    options.background = false;
    auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
    logheap::test::Values values;
    for (std::uint64_t id = 1; id <= 12; ++id) {  // a segment each
        const Bytes bytes = bytes_of(40'000, id);
        log->put_as(LogId{id}, bytes);
        values[id] = bytes;
        if (id == 6) log->wait_durable({6});
    }
    BOOST_TEST(log->last_durable().value < 12U);
    log->do_ahead(ObjectLog::Task::flush, [] {}, [] {});
    log->abandon();
    log = reopened(disk, std::move(log), options);
    logheap::test::require_equal(logheap::test::values_of(*log), values, "after a flush ahead");
    BOOST_TEST(log->restoration().from_ring == 0U);
    log->check_sums();
    log->close();
}

BOOST_AUTO_TEST_CASE(random_lives_hold_what_their_model_holds) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (std::uint64_t life = 0; life < 6; ++life) {
        std::mt19937_64 random(seed + life);
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        LogHeapOptions options = small(16 + random() % 32);
        options.background = false;
        options.utilisation = 0.5 + static_cast<double>(random() % 40) / 100;
        options.checkpoint_bytes = random() % 2 == 0 ? 0 : 64_KiB + random() % 1_MiB;
        logheap::test::Mix mix;
        mix.bytes_max = 1 + random() % 12'000;
        mix.large_one_in = random() % 2 == 0 ? 0 : 15;
        logheap::test::Values values;
        auto log = ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::create);
        for (int step = 0; step < 800; ++step) {
            logheap::test::operate(*log, values, random, mix);
            if (random() % 20 == 0) {
                logheap::test::work_ahead(*log, random, [&] {
                    for (std::uint64_t i = random() % 6; i != 0; --i) logheap::test::operate(*log, values, random, mix);
                });
            }
            if (random() % 100 != 0) continue;
            log->check_sums();
            logheap::test::require_equal(logheap::test::values_of(*log), values, "life " + std::to_string(life) + ", step " + std::to_string(step));
            if (random() % 2 == 0) log->close();
            log = reopened(disk, std::move(log), options);
            log->check_sums();
            logheap::test::require_equal(logheap::test::values_of(*log), values,
                                         "reopened in life " + std::to_string(life) + ", step " + std::to_string(step));
        }
        BOOST_TEST(log->verify().damaged.empty());
        log->close();
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
