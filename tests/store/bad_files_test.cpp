#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <random>

#include <taiyen/store/parameters.hpp>

#include "heap_probe.hpp"
#include "seed.hpp"
#include "store/geometry.hpp"

namespace {
using namespace probe;

/// A heap with some content, cleanly closed.
struct ClosedHeap {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    explicit ClosedHeap(bool with_data) {
        const auto fill = [&](ArchiveHeap&& heap) {
            for (int i = 0; i < 30; ++i) put(heap, "n" + std::to_string(i), std::string(3000, static_cast<char>('a' + i)));
            heap.snapshot();
        };
        if (with_data)
            fill(SnapshotHeap(create_only, path, small_heap()));
        else
            fill(ArchiveHeap(create_only, path, small_heap()));
    }
    std::vector<std::vector<char>> all_bytes() const {
        std::vector<std::vector<char>> all;
        for (const auto& entry : std::filesystem::directory_iterator(dir.path())) all.push_back(bytes_of(entry.path()));
        return all;
    }
    /// The code of opening, after checking that nothing was touched.
    std::optional<errc> refused() const {
        const auto before = all_bytes();
        std::optional<errc> code = code_of([&] { ArchiveHeap heap(open_only, path); });
        if (code) {
            BOOST_TEST((all_bytes() == before));
            const auto reading = code_of([&] { ArchiveHeap heap(open_read_only, path); });
            BOOST_TEST((reading == code));
        }
        return code;
    }
};
/// The text under "n3" after its first byte became a Z.
std::string changed_text() {
    std::string text(3000, 'd');
    text[0] = 'Z';
    return text;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(bad_files)

BOOST_AUTO_TEST_CASE(what_is_no_heap_is_refused_by_its_own_code) {
    ScratchDirectory dir;
    const auto open = [&](const std::string& name) { return code_of([&] { ArchiveHeap heap(open_only, dir / name); }); };
    std::ofstream(dir / "empty").flush();
    BOOST_TEST((open("empty") == errc::not_a_heap));
    std::ofstream(dir / "text") << std::string(100000, 'x');
    BOOST_TEST((open("text") == errc::not_a_heap));
    std::filesystem::create_directory(dir / "directory");
    BOOST_TEST((open("directory") == errc::not_a_regular_file));
    BOOST_TEST(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
    BOOST_TEST((open("fifo") == errc::not_a_regular_file));
    { ArchiveHeap heap(create_only, dir / "real", small_heap()); }
    std::filesystem::create_symlink(dir / "real", dir / "link");
    BOOST_TEST((open("link") == errc::not_a_regular_file));
    BOOST_TEST((open("nothing") == errc::not_found));
    BOOST_TEST((code_of([&] { ArchiveHeap heap(create_only, dir / "text"); }) == errc::already_exists));
    BOOST_TEST((code_of([&] { ArchiveHeap heap(create_only, dir / "no/such/directory"); }) == errc::not_found));
    BOOST_TEST(bytes_of(dir / "text").size() == 100000U);
}

BOOST_AUTO_TEST_CASE(options_out_of_bounds_are_refused) {
    ScratchDirectory dir;
    PersistentOptions options;
    options.capacity = 1000;
    BOOST_TEST((code_of([&] { ArchiveHeap heap(create_only, dir / "a", options); }) == errc::invalid_argument));
    options = {};
    options.address = 12345;
    BOOST_TEST((code_of([&] { ArchiveHeap heap(create_only, dir / "a", options); }) == errc::invalid_argument));
    BOOST_TEST(std::filesystem::is_empty(dir.path()));
}

BOOST_AUTO_TEST_CASE(a_truncated_heap_is_refused_at_any_length) {
    const ClosedHeap heap(false);
    const auto whole = std::filesystem::file_size(heap.path);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<std::uint64_t> lengths{0, 1, 511, 512, 4095, 4096, 8191, 8192, 12288, whole - 1, whole - 512, whole - 4096};
    for (int i = 0; i < 30; ++i) lengths.push_back(random() % whole);
    const auto original = bytes_of(heap.path);
    for (const std::uint64_t length : lengths) {
        std::filesystem::resize_file(heap.path, length);
        const auto code = heap.refused();
        BOOST_TEST_CONTEXT("length " << length) {
            BOOST_TEST_REQUIRE(code.has_value());
            BOOST_TEST((*code == errc::truncated || (length < 8 && *code == errc::not_a_heap)));
        }
        std::ofstream(heap.path, std::ios::binary | std::ios::trunc).write(original.data(), static_cast<std::streamsize>(original.size()));
    }
    BOOST_TEST(!heap.refused().has_value());
}

BOOST_AUTO_TEST_CASE(a_short_data_file_is_filled_again) {
    const ClosedHeap heap(true);
    std::filesystem::resize_file(heap.path.string() + ".data", 20000);
    {
        SnapshotHeap opened(open_only, heap.path);
        BOOST_TEST(opened.restoration().data_rebuilt);
        BOOST_TEST(get(opened, "n7") == std::string(3000, 'h'));
        BOOST_TEST(opened.heal() == 0U);
    }
    flip_bit(heap.path, 60);
    flip_bit(heap.path, 4156);
    SnapshotHeap rebuilt(open_only, heap.path);
    BOOST_TEST(get(rebuilt, "n7") == std::string(3000, 'h'));
}

BOOST_AUTO_TEST_CASE(files_that_do_not_belong_together_are_a_mismatch) {
    const ClosedHeap a(true);
    const ClosedHeap b(true);
    const auto data = [](const ClosedHeap& heap) { return heap.path.string() + ".data"; };
    std::filesystem::rename(data(a), a.dir / "away");
    std::filesystem::copy_file(data(b), data(a));
    BOOST_TEST((a.refused() == errc::mismatch));
    std::filesystem::remove(data(a));
    std::filesystem::copy_file(a.path, data(a));  // the backing file in the data file's place
    BOOST_TEST((a.refused() == errc::mismatch));
    std::filesystem::remove(data(a));
    std::filesystem::rename(a.dir / "away", data(a));
    BOOST_TEST(!a.refused().has_value());
    BOOST_TEST((code_of([&] { ArchiveHeap heap(open_only, data(a)); }) == errc::mismatch));
}

BOOST_AUTO_TEST_CASE(a_missing_or_foreign_journal_is_never_replaced_silently) {
    ScratchDirectory dir;
    {
        ArchiveHeap a(create_only, dir / "a.tyn", small_heap());
        ArchiveHeap b(create_only, dir / "b.tyn", small_heap());
        put(a, "x", "1");
        a.snapshot();
        crash_copy(dir / "a.tyn", dir / "c.tyn");
        crash_copy(dir / "b.tyn", dir / "d.tyn");
    }
    std::filesystem::rename(dir / "c.tyn.journal", dir / "away");
    BOOST_TEST((code_of([&] { ArchiveHeap heap(open_only, dir / "c.tyn"); }) == errc::log_missing));
    std::filesystem::rename(dir / "d.tyn.journal", dir / "c.tyn.journal");
    BOOST_TEST((code_of([&] { ArchiveHeap heap(open_only, dir / "c.tyn"); }) == errc::mismatch));
    std::filesystem::rename(dir / "away", dir / "c.tyn.journal");
    ArchiveHeap heap(open_only, dir / "c.tyn");
    BOOST_TEST(get(heap, "x") == "1");
}

BOOST_AUTO_TEST_CASE(a_damaged_acknowledged_record_is_corrupt_and_not_skipped) {
    ScratchDirectory dir;
    {
        ArchiveHeap a(create_only, dir / "a.tyn", small_heap());
        put(a, "x", "1");
        a.snapshot();
        put(a, "y", "2");
        a.snapshot();
        crash_copy(dir / "a.tyn", dir / "c.tyn");
    }
    flip_bit(dir / "c.tyn.journal", log::Ring::header_bytes + 3000);
    const auto before = bytes_of(dir / "c.tyn");
    BOOST_TEST((code_of([&] { ArchiveHeap heap(open_only, dir / "c.tyn"); }) == errc::corrupt));
    BOOST_TEST((bytes_of(dir / "c.tyn") == before));
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_in_any_page_is_healed_from_the_other_copy) {
    const ClosedHeap closed(true);
    const HeapParameters parameters = read_parameters(closed.path);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 20; ++round) {
        const std::string victim = closed.path.string() + (round % 2 == 0 ? "" : ".data");
        const std::uint64_t offset = page_bytes + random() % (parameters.extent_bytes - page_bytes);  // the first page is healed by opening
        flip_bit(victim, store::FileLayout().file_offset({offset}));
        SnapshotHeap heap(open_only, closed.path, unverified());
        BOOST_TEST_REQUIRE(heap.heal() == 1U);
        BOOST_TEST_REQUIRE(heap.heal() == 0U);
        BOOST_TEST_REQUIRE(heap.restoration().pages_healed >= 1U);
    }
    SnapshotHeap heap(open_only, closed.path);
    for (int i = 0; i < 30; ++i) BOOST_TEST(get(heap, "n" + std::to_string(i)) == std::string(3000, static_cast<char>('a' + i)));
}

BOOST_AUTO_TEST_CASE(a_damaged_first_page_is_healed_by_opening_and_named_where_there_is_no_second_copy) {
    for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{70}, std::uint64_t{4000}}) {
        const ClosedHeap closed(true);
        flip_bit(closed.path, store::FileLayout().file_offset({at}));
        const auto before = closed.all_bytes();
        {
            const SnapshotHeap reader(open_read_only, closed.path);
            BOOST_TEST(get(reader, "n7") == std::string(3000, 'h'));
            BOOST_TEST(reader.restoration().pages_healed == 1U);
        }
        BOOST_TEST((closed.all_bytes() == before));
        {
            SnapshotHeap heap(open_only, closed.path);
            BOOST_TEST(get(heap, "n7") == std::string(3000, 'h'));
            BOOST_TEST(heap.restoration().pages_healed == 1U);
        }
        SnapshotHeap heap(open_only, closed.path);
        BOOST_TEST(heap.restoration().pages_healed == 0U);
        BOOST_TEST(heap.heal() == 0U);

        const ClosedHeap alone(false);
        flip_bit(alone.path, store::FileLayout().file_offset({at}));
        BOOST_TEST((alone.refused() == errc::corrupt));
    }
}

BOOST_AUTO_TEST_CASE(a_first_page_that_is_damaged_in_both_copies_is_corrupt_and_left_as_it_is) {
    const ClosedHeap closed(true);
    flip_bit(closed.path, store::FileLayout().file_offset({70}));
    flip_bit(closed.path.string() + ".data", store::FileLayout().file_offset({4000}));
    BOOST_TEST((closed.refused() == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(damage_in_both_copies_is_corrupt_and_names_the_page) {
    const ClosedHeap closed(true);
    const std::uint64_t at = store::FileLayout().file_offset({20 * page_bytes + 77});
    flip_bit(closed.path, at);
    flip_bit(closed.path.string() + ".data", at + 100);
    SnapshotHeap heap(open_only, closed.path);
    try {
        heap.heal();
        BOOST_TEST(false);
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        BOOST_TEST(error.offset() == round_down(at, page_bytes));
        BOOST_TEST(std::string(error.what()).find("page 20") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(rot_under_a_changed_page_is_not_laundered_by_a_save) {
    const ClosedHeap closed(true);
    std::uint64_t changed_byte = 0;
    {
        const ArchiveHeap heap(open_read_only, closed.path);
        changed_byte = static_cast<std::uint64_t>(find(heap, "n3") - reinterpret_cast<char*>(read_parameters(closed.path).address));
    }
    flip_bit(closed.path, store::FileLayout().file_offset({changed_byte + 50}));
    {
        SnapshotHeap heap(open_only, closed.path);
        find(heap, "n3")[0] = 'Z';
        heap.snapshot();
        BOOST_TEST(heap.restoration().pages_healed == 1U);
        BOOST_TEST(get(heap, "n3") == changed_text());
    }
    SnapshotHeap heap(open_only, closed.path);
    BOOST_TEST(get(heap, "n3") == changed_text());
}

BOOST_AUTO_TEST_CASE(rot_under_a_changed_page_is_not_laundered_by_a_large_save_either) {
    const ClosedHeap closed(true);
    std::uint64_t changed_byte = 0;
    {
        const ArchiveHeap heap(open_read_only, closed.path);
        changed_byte = static_cast<std::uint64_t>(find(heap, "n3") - reinterpret_cast<char*>(read_parameters(closed.path).address));
    }
    flip_bit(closed.path, store::FileLayout().file_offset({changed_byte + 50}));
    const std::string large(2U << 20U, 'l');
    {
        SnapshotHeap heap(open_only, closed.path);
        find(heap, "n3")[0] = 'Z';
        put(heap, "large", large);
        heap.snapshot();
        BOOST_TEST(heap.restoration().pages_healed == 1U);
        BOOST_TEST(get(heap, "n3") == changed_text());
    }
    SnapshotHeap heap(open_only, closed.path);
    BOOST_TEST(get(heap, "n3") == changed_text());
    BOOST_TEST((get(heap, "large") == large));
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(rot_under_a_changed_page_without_a_second_copy_poisons) {
    const ClosedHeap closed(false);
    std::uint64_t changed_byte = 0;
    {
        const ArchiveHeap heap(open_read_only, closed.path);
        changed_byte = static_cast<std::uint64_t>(find(heap, "n3") - reinterpret_cast<char*>(read_parameters(closed.path).address));
    }
    flip_bit(closed.path, store::FileLayout().file_offset({changed_byte + 50}));
    ArchiveHeap heap(open_only, closed.path);
    find(heap, "n3")[0] = 'Z';
    BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::corrupt));
    BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::poisoned));
    BOOST_TEST((code_of([&] { heap.allocate(1); }) == errc::poisoned));
}

BOOST_AUTO_TEST_CASE(rot_under_a_page_beside_one_that_was_just_saved_is_not_laundered) {
    ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "text", std::string(8 * page_bytes, 'a'));
        heap.snapshot();
    }
    ArchiveHeap heap(open_only, dir / "a.tyn", unverified());
    char* const span = reinterpret_cast<char*>(heap.core()->ranges().durable);
    const ByteCount page = round_up(static_cast<ByteCount>(find(heap, "text") - span), page_bytes) + page_bytes;
    span[page] = 'b';
    heap.snapshot();
    flip_bit(dir / "a.tyn", store::FileLayout().file_offset({page + page_bytes}) + 100);
    span[page + page_bytes] = 'b';
    BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(a_damaged_table_page_is_rebuilt) {
    const ClosedHeap closed(false);
    flip_bit(closed.path, store::FileLayout().table_offset(0) + 3);  // its own checksum
    {
        ArchiveHeap heap(open_only, closed.path);
        put(heap, "new", "entry");
        heap.snapshot();
        BOOST_TEST(heap.restoration().pages_healed == 1U);
    }
    ArchiveHeap heap(open_only, closed.path);
    BOOST_TEST(get(heap, "new") == "entry");
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(one_damaged_header_slot_is_repaired) {
    const ClosedHeap closed(true);
    flip_bit(closed.path, 100);
    {
        SnapshotHeap heap(open_only, closed.path);
        BOOST_TEST(heap.restoration().headers_repaired == 1U);
        BOOST_TEST(get(heap, "n0") == std::string(3000, 'a'));
    }
    SnapshotHeap heap(open_only, closed.path);
    BOOST_TEST(heap.restoration().headers_repaired == 0U);
}

BOOST_AUTO_TEST_CASE(both_header_slots_damaged_without_a_data_file_is_corrupt) {
    const ClosedHeap closed(false);
    flip_bit(closed.path, 100);
    flip_bit(closed.path, 4196);
    BOOST_TEST((closed.refused() == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(leftovers_of_a_killed_creation_do_not_stand_in_the_way_but_other_files_do) {
    ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "1");
        heap.snapshot();
    }
    std::filesystem::rename(dir / "a.tyn", dir / "elsewhere");
    BOOST_TEST((code_of([&] { SnapshotHeap heap(create_only, dir / "a.tyn", small_heap()); }) == errc::mismatch));
    BOOST_TEST(std::filesystem::exists(dir / "a.tyn.data"));
    std::filesystem::remove(dir / "a.tyn.data");
    std::ofstream(dir / "a.tyn.journal") << std::string(5000, 'j');
    BOOST_TEST((code_of([&] { SnapshotHeap heap(open_or_create, dir / "a.tyn", small_heap()); }) == errc::mismatch));
    BOOST_TEST(bytes_of(dir / "a.tyn.journal").size() == 5000U);
}

BOOST_AUTO_TEST_SUITE_END()
