// What compress and expand promise beside the bytes: names, cancelling, progress, full disks, damage on the way, memory, and a heap that is being changed.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <fstream>
#include <thread>

#include "heap/geometry.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/heap_probe.hpp"
#include "transfer/transfer.hpp"
#include "transfer/transfer_fixture.hpp"

namespace taiyen::transfer::test {
namespace {

std::size_t files_in(const ScratchDirectory& directory) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory.path()), std::filesystem::directory_iterator()));
}

struct Fixture {
    ScratchDirectory directory;
    Document<InMemory> model;
    std::optional<ArchiveHeap> heap{std::in_place, create_only, directory / "a.tyn", small_heap()};
    Fixture() { edit_and_save(*heap, model, 1, 3); }
};

BOOST_AUTO_TEST_SUITE(transfer)

BOOST_FIXTURE_TEST_CASE(a_compressed_heap_is_replaced_and_anything_else_is_left_alone, Fixture) {
    compress(*heap, directory / "a.tyz");
    const std::string before = content_of(*heap);
    edit_and_save(*heap, model, 20, 1);
    compress(*heap, directory / "a.tyz");
    BOOST_CHECK_EXCEPTION(compress(*heap, directory / "a.tyn"), Error, has_code(errc::already_exists));
    std::filesystem::create_directory(directory / "folder");
    BOOST_CHECK_EXCEPTION(compress(*heap, directory / "folder"), Error, has_code(errc::not_a_regular_file));
    BOOST_CHECK_EXCEPTION(compress(*heap, directory / "nowhere/a.tyz"), Error, has_code(errc::not_found));
    heap->close();
    heap.reset();
    BOOST_TEST(files_in(directory) == 3U);  // heap, compressed heap, folder
    expand_file(directory / "a.tyz", directory / "b.tyn");
    ArchiveHeap again(open_only, directory / "b.tyn");
    BOOST_TEST(content_of(again) == describe(model));
    again.close();
}

BOOST_FIXTURE_TEST_CASE(expanding_never_replaces, Fixture) {
    const auto stream = compress(*heap);
    BOOST_CHECK_EXCEPTION(expand(std::span(stream), directory / "a.tyn"), Error, has_code(errc::already_exists));
    std::ofstream(directory / "b.tyn.log") << "mine";
    BOOST_CHECK_EXCEPTION(expand(std::span(stream), directory / "b.tyn"), Error, has_code(errc::already_exists));
    BOOST_TEST(!std::filesystem::exists(directory / "b.tyn"));
    // An archive needs no place in memory, so it can be made beside the heap that it came from; other kinds are opened once.
    expand(std::span(stream), directory / "c.tyn");
    ExpandOptions snapshot;
    snapshot.kind = HeapKind::snapshot;
    BOOST_CHECK_EXCEPTION(expand(std::span(stream), directory / "d.tyn", snapshot), Error, has_code(errc::address_in_use));
    BOOST_TEST(!std::filesystem::exists(directory / "d.tyn"));
}

BOOST_AUTO_TEST_CASE(a_chunk_is_a_mebibyte_and_a_quarter_of_one_by_lz4) {
    constexpr ByteCount bytes = 4U << 20U;
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn");
    auto* const block = static_cast<unsigned char*>(heap.allocate(bytes));
    for (ByteCount i = 0; i < bytes; ++i) block[i] = static_cast<unsigned char>(i * i >> 8U);
    heap.snapshot();
    const auto chunks = [&](Codec codec) {
        CompressOptions how;
        how.codec = codec;
        return compress(heap, [](std::span<const std::byte>) {}, how).chunks;
    };
    // The metadata begins the first chunk, and shifts the others.
    BOOST_TEST(chunks(Codec::lz4) == 17U);
    BOOST_TEST(chunks(Codec::zstd) == 5U);
    BOOST_TEST(chunks(Codec::none) == 5U);
    heap.deallocate(block);
    heap.close();
}

BOOST_FIXTURE_TEST_CASE(cancelling_ends_both_ways_with_nothing_left, Fixture) {
    std::stop_source stop;
    CompressOptions how;
    how.cancel = stop.get_token();
    std::size_t pieces = 0;
    BOOST_CHECK_EXCEPTION(compress(
                              *heap,
                              [&](std::span<const std::byte>) {
                                  if (++pieces == 1) stop.request_stop();
                              },
                              how),
                          Error, has_code(errc::cancelled));
    BOOST_CHECK_EXCEPTION(compress(*heap, directory / "a.tyz", how), Error, has_code(errc::cancelled));
    BOOST_TEST(!std::filesystem::exists(directory / "a.tyz"));
    const auto stream = compress(*heap);
    ExpandOptions as;
    std::stop_source later;
    as.cancel = later.get_token();
    as.progress = [&](std::uint64_t, std::uint64_t) { later.request_stop(); };
    BOOST_CHECK_EXCEPTION(expand(std::span(stream), directory / "b.tyn", as), Error, has_code(errc::cancelled));
    BOOST_TEST(!std::filesystem::exists(directory / "b.tyn"));
    heap->close();
}

BOOST_FIXTURE_TEST_CASE(progress_grows_and_ends_at_the_heaps_size, Fixture) {
    std::uint64_t last = 0;
    std::uint64_t of = 0;
    const auto progress = [&](std::uint64_t done, std::uint64_t total) {
        BOOST_TEST(done >= last);
        BOOST_TEST(done <= total);
        last = done;
        of = total;
    };
    CompressOptions how;
    how.progress = progress;
    const auto stream = compress(*heap, how);
    BOOST_TEST(last > of / 2);
    last = 0;
    ExpandOptions as;
    as.progress = progress;
    expand(std::span(stream), directory / "b.tyn", as);
    BOOST_TEST(last > of / 2);
}

BOOST_FIXTURE_TEST_CASE(what_the_sink_or_the_source_throws_comes_through, Fixture) {
    struct Mine {};
    BOOST_CHECK_THROW(compress(*heap, [](std::span<const std::byte>) { throw Mine(); }), Mine);
    int calls = 0;
    const auto stream = compress(*heap);
    BOOST_CHECK_THROW(expand(
                          [&](std::span<std::byte> bytes) -> std::size_t {
                              if (++calls == 3) throw Mine();
                              std::copy_n(stream.begin(), bytes.size(), bytes.begin());
                              return bytes.size();
                          },
                          directory / "b.tyn"),
                      std::exception);
    BOOST_TEST(!std::filesystem::exists(directory / "b.tyn"));
    // And the heap goes on.
    edit_and_save(*heap, model, 30, 1);
    BOOST_TEST(content_of(*heap) == describe(model));
}

BOOST_FIXTURE_TEST_CASE(levels_that_a_codec_does_not_have_are_refused, Fixture) {
    for (const auto& [codec, level] : std::vector<std::pair<Codec, int>>{{Codec::zstd, 20}, {Codec::zstd, -1}, {Codec::lz4, 13}, {Codec::none, 1}}) {
        CompressOptions how;
        how.codec = codec;
        how.level = level;
        BOOST_CHECK_EXCEPTION(compress(*heap, how), Error, has_code(errc::invalid_argument));
    }
    for (const auto& [codec, level] : std::vector<std::pair<Codec, int>>{{Codec::zstd, 19}, {Codec::lz4, 1}, {Codec::lz4, 9}, {Codec::lz4, 12}}) {
        CompressOptions how;
        how.codec = codec;
        how.level = level;
        const std::filesystem::path path = directory / ("l" + std::to_string(level) + ".tyn");
        std::filesystem::remove(path);
        expand(std::span<const std::byte>(compress(*heap, how)), path);
        std::filesystem::remove(path);
    }
}

BOOST_FIXTURE_TEST_CASE(damage_is_not_passed_on, Fixture) {
    heap->close();
    heap.reset();
    // Every page in turn: refused, unless it is free or a hole.
    const auto size = std::filesystem::file_size(directory / "a.tyn");
    std::size_t refused = 0;
    const auto whole = probe::bytes_of(directory / "a.tyn");
    std::uint64_t equal = 0;
    std::vector<std::byte> good;
    compress_file(directory / "a.tyn", [&](std::span<const std::byte> bytes) { good.insert(good.end(), bytes.begin(), bytes.end()); });
    for (std::uint64_t at = 3 * page_bytes; at < size; at += 7 * page_bytes) {
        probe::flip_bit(directory / "a.tyn", at + 100);
        std::vector<std::byte> stream;
        const auto code = probe::code_of([&] {
            compress_file(directory / "a.tyn", [&](std::span<const std::byte> bytes) { stream.insert(stream.end(), bytes.begin(), bytes.end()); });
        });
        refused += code.has_value() ? 1 : 0;
        if (!code) {
            BOOST_TEST((stream == good));
            ++equal;
        }
        probe::flip_bit(directory / "a.tyn", at + 100);
    }
    BOOST_TEST(refused > 2U * equal);
    BOOST_TEST((whole == probe::bytes_of(directory / "a.tyn")));
}

BOOST_AUTO_TEST_CASE(damage_below_what_a_crashed_heaps_log_changes_is_not_passed_on) {
    ScratchDirectory directory;
    std::filesystem::create_directory(directory / "left");
    constexpr std::size_t changed = 50'000;
    std::uint64_t place = 0;
    {
        TransactionalHeap heap(create_only, directory / "a.tyn", small_heap());
        taiyen::vector<int>* numbers = nullptr;
        transact(heap, [&] { numbers = &heap.construct<taiyen::vector<int>>("numbers", 100'000U, 2); });
        heap.snapshot();
        transact(heap, [&] { (*numbers)[changed] = 7; });
        place = reinterpret_cast<std::uintptr_t>(&(*numbers)[changed]) - read_parameters(directory / "a.tyn").address;
        for (const char* const file : {"a.tyn", "a.tyn.log"}) std::filesystem::copy_file(directory / file, directory / "left" / file);
    }
    const std::filesystem::path left = directory / "left" / "a.tyn";
    const std::uint64_t page = store::FileLayout().file_offset({place / page_bytes * page_bytes});
    const auto compress_left = [&] { compress_file(left, [](std::span<const std::byte>) {}); };
    compress_left();
    for (const std::uint64_t at : {std::uint64_t{0}, place % page_bytes == 0 ? 8 : place % page_bytes - 1, page_bytes - 1}) {
        probe::flip_bit(left, page + at);
        BOOST_CHECK_EXCEPTION(compress_left(), Error, has_code(errc::corrupt));
        probe::flip_bit(left, page + at);
    }
    compress_left();
}

BOOST_AUTO_TEST_CASE(a_page_that_the_second_copy_has_whole_comes_from_there) {
    ScratchDirectory directory;
    Document<InMemory> model;
    {
        SnapshotHeap heap(create_only, directory / "a.tyn", small_heap());
        edit_and_save(heap, model, 1, 3);
        heap.close();
    }
    const auto size = std::filesystem::file_size(directory / "a.tyn");
    std::vector<std::uint64_t> places;
    for (std::uint64_t at = 40 * page_bytes; at < size; at += 11 * page_bytes) places.push_back(at + 99);
    for (const std::uint64_t at : places) probe::flip_bit(directory / "a.tyn", at);
    compress_file(directory / "a.tyn", directory / "a.tyz");
    expand_file(directory / "a.tyz", directory / "b.tyn");
    ArchiveHeap heap(open_read_only, directory / "b.tyn");
    BOOST_TEST(content_of(heap) == describe(model));
}

/// Makes each bit of a page of the file another one, and of the same page again what it was.
void flip_page(const std::filesystem::path& path, std::uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::vector<char> bytes(page_bytes);
    file.seekg(static_cast<std::streamoff>(at));
    file.read(bytes.data(), page_bytes);
    for (char& byte : bytes) byte = static_cast<char>(~byte);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(bytes.data(), page_bytes);
    BOOST_TEST_REQUIRE(file.good());
}

std::vector<std::uint64_t> places_of_metadata(ByteCount extent) {
    const heap::Geometry geometry(small_heap().capacity);
    std::vector<std::uint64_t> places;
    for (unsigned index = 0; index < geometry.count() && geometry.region(index).first * page_bytes < extent; ++index)
        for (heap::Page page = geometry.region(index).first; page < geometry.region(index).first_user; ++page)
            places.push_back(store::FileLayout().file_offset({page * page_bytes}));
    return places;
}

BOOST_AUTO_TEST_CASE(metadata_that_rotted_below_an_open_heap_come_from_the_second_copy_or_end_it_as_corrupt) {
    ScratchDirectory directory;
    Document<InMemory> model;
    const std::filesystem::path path = directory / "a.tyn";
    const auto with_each_page_rotted = [&](const ArchiveHeap& heap, const auto& action) {
        const std::vector<std::uint64_t> places = places_of_metadata(heap.stats().extent_bytes);
        BOOST_TEST(places.size() > 1U);
        for (const std::uint64_t at : places) {
            BOOST_TEST_CONTEXT("at byte " << at) {
                flip_page(path, at);
                action();
                flip_page(path, at);
            }
        }
    };
    {
        SnapshotHeap heap(create_only, path, small_heap());
        edit_and_save(heap, model, 1, 3);
        const std::vector<std::byte> good = compress(heap);
        with_each_page_rotted(heap, [&] { BOOST_TEST((compress(heap) == good)); });
        heap.close();
    }
    std::filesystem::remove(path);
    std::filesystem::remove(path.string() + ".data");
    ArchiveHeap heap(create_only, path, small_heap());
    edit_and_save(heap, model, 4, 3);
    const std::vector<std::byte> good = compress(heap);
    with_each_page_rotted(heap, [&] { BOOST_CHECK_EXCEPTION(compress(heap), Error, has_code(errc::corrupt)); });
    BOOST_TEST((compress(heap) == good));
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_no_space_and_leaves_nothing) {
    std::vector<std::byte> stream;
    {
        ScratchDirectory directory;
        Document<InMemory> model;
        ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
        edit_and_save(heap, model, 1, 1);
        CompressOptions how;
        how.codec = Codec::none;
        stream = compress(heap, how);
        heap.close();
    }
    std::size_t refused = 0;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        for (ByteCount space = 0;; space += 96 * 1024) {
            io::SimulatedStorage disk({.space_bytes = space});
            disk.add_directory("/disk");
            const auto source = [rest = std::span<const std::byte>(stream)](std::span<std::byte> bytes) mutable {
                const std::size_t count = std::min(bytes.size(), rest.size());
                std::copy_n(rest.begin(), count, bytes.begin());
                rest = rest.subspan(count);
                return count;
            };
            ExpandOptions options;
            options.kind = kind;
            options.log_capacity = 64 * 1024;
            const auto code = probe::code_of([&] { expand_to(disk, source, {}, true, "/disk/b.tyn", options); });
            if (!code) {
                BOOST_TEST(disk.find("/disk/b.tyn").has_value());
                break;
            }
            BOOST_CHECK(*code == errc::no_space);
            BOOST_TEST(disk.files().empty());
            BOOST_TEST(disk.used_bytes() == 0U);
            ++refused;
        }
    }
    BOOST_TEST(refused > 9U);
}

BOOST_AUTO_TEST_CASE(a_heap_that_transactions_change_meanwhile_gives_the_state_of_one_serial, *boost::unit_test::label("threads")) {
    ScratchDirectory directory;
    std::vector<std::vector<std::byte>> streams;
    std::vector<Compressed> done;
    {
        TransactionalHeap heap(create_only, directory / "a.tyn", small_heap());
        {
            Transaction transaction(heap);
            heap.construct<taiyen::vector<std::uint64_t>>("numbers", 4000U);
            transaction.commit();
        }
        std::atomic<bool> stop = false;
        std::atomic<std::uint64_t> committed = 0;
        std::thread writer([&] {
            for (std::uint64_t round = 2; !stop; ++round) {
                Transaction transaction(heap);
                auto& numbers = *heap.find<taiyen::vector<std::uint64_t>>("numbers");
                for (std::uint64_t i = round % 7; i < numbers.size(); i += 7) numbers[i] = round;
                numbers[0] = round;
                numbers.push_back(round);
                transaction.commit();
                committed = round;
            }
        });
        CompressOptions options;
        options.threads = watched_threads;
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t before = committed;
            while (committed < before + 2) std::this_thread::yield();
            auto& stream = streams.emplace_back();
            done.push_back(
                compress(heap, [&](std::span<const std::byte> bytes) { stream.insert(stream.end(), bytes.begin(), bytes.end()); }, options));
            BOOST_TEST(done.back().serial.value >= before);
        }
        stop = true;
        writer.join();
        heap.close();
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
        const std::filesystem::path path = directory / ("b" + std::to_string(i) + ".tyn");
        ExpandOptions as;
        as.kind = HeapKind::archive;
        as.threads = watched_threads;
        const CompressedHeap said = expand(std::span<const std::byte>(streams[i]), path, as);
        BOOST_CHECK(said.serial == done[i].serial);
        ArchiveHeap heap(open_read_only, path);
        const auto& numbers = *heap.find<taiyen::vector<std::uint64_t>>("numbers");
        std::vector<std::uint64_t> model(4000);
        for (std::uint64_t round = 2; round <= said.serial.value; ++round) {
            for (std::uint64_t at = round % 7; at < model.size(); at += 7) model[at] = round;
            model[0] = round;
            model.push_back(round);
        }
        BOOST_TEST((std::vector<std::uint64_t>(numbers.begin(), numbers.end()) == model));
    }
}

BOOST_FIXTURE_TEST_CASE(a_heap_that_can_not_be_asked_says_so, Fixture) {
    heap->close();
    BOOST_CHECK_EXCEPTION(compress(*heap), Error, has_code(errc::closed));
    BOOST_CHECK_EXCEPTION(compress_file(directory / "none.tyn", directory / "a.tyz"), Error, has_code(errc::not_found));
    BOOST_CHECK_EXCEPTION(expand_file(directory / "none.tyz", directory / "b.tyn"), Error, has_code(errc::not_found));
    BOOST_CHECK_EXCEPTION(expand_file(directory / "a.tyn", directory / "b.tyn"), Error, has_code(errc::not_a_heap));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
