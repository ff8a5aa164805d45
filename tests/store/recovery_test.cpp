#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "heap/geometry.hpp"
#include "heap_probe.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_node.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/header.hpp"
#include "store/page_file.hpp"
#include "store/recovery_table.hpp"
#include "store/save_record.hpp"

// States of the files that no test of a plain crash makes: lost sizes, copies of different ages, two faults at once, hostile headers.

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

/// A snapshot heap whose large save was interrupted after the data file's commit point: the backing file is one save behind, in every page.
struct InterruptedLargeSave {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "c.tyn";
    std::filesystem::path data = dir / "c.tyn.data";
    std::filesystem::path newer = dir / "newer";  ///< the backing file as the finished save leaves it

    InterruptedLargeSave() {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        char* block = put(heap, "big", std::string(2U << 20U, 'a'));
        heap.snapshot();
        std::filesystem::copy_file(dir / "a.tyn", path);
        std::memset(block, 'b', 2U << 20U);
        heap.snapshot();
        std::filesystem::copy_file(dir / "a.tyn", newer);
        std::filesystem::copy_file(dir / "a.tyn.data", data);
        std::filesystem::copy_file(dir / "a.tyn.journal", dir / "c.tyn.journal");
    }
    /// The code of opening; the files must stay as they are.
    std::optional<errc> refused() const {
        const auto before = bytes_of(path);
        const auto data_before = bytes_of(data);
        const auto reading = code_of([&] { ArchiveHeap heap(open_read_only, path); });
        const auto code = code_of([&] { ArchiveHeap heap(open_only, path); });
        if (code) {
            BOOST_TEST((reading == code));
            BOOST_TEST((bytes_of(path) == before));
            BOOST_TEST((bytes_of(data) == data_before));
        }
        return code;
    }
};

void damage_headers(const std::filesystem::path& path) {
    flip_bit(path, 60);
    flip_bit(path, store::header_slot_bytes + 60);
}

template <class Edit>
void edit_header(const std::filesystem::path& path, Edit&& edit) {
    const auto file = io::posix_storage().open(path, io::Access::read_write);
    store::Header header = *store::read_slots(*file).newest();
    edit(header);
    store::write_first_headers(*file, header);
}
}  // namespace

BOOST_AUTO_TEST_SUITE(unusual_recoveries)

BOOST_AUTO_TEST_CASE(a_reader_sees_saved_pages_behind_the_end_of_a_file_whose_growth_was_lost) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        io::SimulatedStorage disk({~ByteCount{0}, true});
        disk.add_directory("/disk");
        const std::string text(300'000, 'x');
        {
            auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", OpenMode::create_only, kind, small_heap()));
            put(heap, "text", text);
            heap.snapshot();
            disk.power_cut();
        }
        {
            const auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", OpenMode::read_only, kind, {}));
            BOOST_TEST((get(heap, "text") == text));
        }
        auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", OpenMode::open_only, kind, {}));
        BOOST_TEST((get(heap, "text") == text));
    }
}

BOOST_AUTO_TEST_CASE(an_annex_that_begins_and_ends_before_the_first_checkpoint_leaves_no_file_short_whatever_is_lost) {
    constexpr io::Call changes = io::Call::write | io::Call::write_durable | io::Call::sync | io::Call::allocate | io::Call::punch | io::Call::resize;
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});  // of the closes that fail
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        bool fired = true;
        // Each step fails in two lives: one loses everything that isn't durable, the other some of it.
        for (std::uint64_t life = 2; fired; ++life) {
            BOOST_TEST_CONTEXT("kind " << static_cast<int>(kind) << ", life " << life) {
                io::SimulatedStorage disk({~ByteCount{0}, true});
                disk.add_directory("/disk");
                io::FaultyStorage failing(disk);
                const auto cut = [&] { life % 2 == 0 ? disk.power_cut() : disk.power_cut(life); };
                {
                    const auto file = HeapFile::open(failing, "/disk/a.tyn", OpenMode::create_only, kind, small_heap());
                    auto heap = HeapAccess::make<ArchiveHeap>(file);
                    put(heap, "text", "kept");
                    heap.snapshot();
                    failing.arm({.at = life / 2, .sticky = true, .calls = changes});
                    try {
                        std::byte* const annex = file->open_annex(1_MiB);
                        file->extend_annex(256_KiB);  // of which one page is ever written
                        annex[0] = std::byte{1};
                        heap.snapshot();
                        annex[0] = std::byte{0};
                        heap.snapshot();
                        heap.close();
                    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the step that fails
                    }
                    fired = failing.fired() != 0;
                    cut();
                }
                for (int again = 0; again < 2; ++again) {  // what one opening leaves is judged by the next
                    auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", OpenMode::open_only, kind, {}));
                    BOOST_TEST((get(heap, "text") == "kept"));
                    cut();
                }
            }
        }
    }
    set_report_handler(handler);
}

BOOST_AUTO_TEST_CASE(a_small_save_that_grew_the_heap_into_a_new_chunk_is_recovered_without_harm_to_the_old_ones) {
    // The table page of the new chunk was never written: recovery must not take it for the first one.
    ScratchDirectory dir;
    char* last = nullptr;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "first", std::string(300'000, 'a'));
        heap.snapshot();
        const std::string zeros(2'000'000, '\0');
        last = put(heap, "second", zeros) + zeros.size() - 10;
        BOOST_TEST_REQUIRE(reinterpret_cast<std::uintptr_t>(last) >= heap.core()->ranges().durable + store::first_chunk_bytes);
        *last = 'z';
        heap.snapshot();
        crash_copy(dir / "a.tyn", dir / "c.tyn");
    }
    ArchiveHeap heap(open_only, dir / "c.tyn");
    BOOST_TEST(heap.restoration().snapshots_replayed > 0U);
    BOOST_TEST(get(heap, "first") == std::string(300'000, 'a'));
    BOOST_TEST(*last == 'z');
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_table_page_that_an_interrupted_checkpoint_tore_is_written_again_although_no_entry_changes) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const auto copy = dir / "b.tyn";
    {
        ArchiveHeap heap(create_only, path, small_heap());
        char* const text = put(heap, "text", std::string(5 * page_bytes, 'a'));
        heap.snapshot();
        HeapAccess::file(heap).saves().checkpoint();
        text[2 * page_bytes] = 'b';
        heap.snapshot();
        crash_copy(path, copy);
        HeapAccess::file(heap).saves().checkpoint();
        const auto offset = static_cast<std::uint64_t>(text + 2 * page_bytes - reinterpret_cast<char*>(heap.core()->ranges().durable));
        const std::uint64_t at = store::FileLayout().table_offset(store::place_of({offset / page_bytes}).table_page);
        std::vector<std::byte> written(page_bytes);
        const auto files = std::pair{io::posix_storage().open(path, io::Access::read_only), io::posix_storage().open(copy, io::Access::read_write)};
        files.first->read(written, at);
        files.second->write(written, at);
        flip_bit(copy, at + offsetof(store::TablePage, checksum));
    }
    {
        ArchiveHeap heap(open_only, copy);
        BOOST_TEST(heap.restoration().snapshots_replayed == 1U);
        BOOST_TEST(heap.heal() == 0U);
    }
    ArchiveHeap again(open_only, copy);
    BOOST_TEST(find(again, "text")[2 * page_bytes] == 'b');
    BOOST_TEST(again.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_data_file_that_is_one_save_behind_gets_its_pages_from_the_backing_file) {
    ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        char* const text = put(heap, "text", std::string(5 * page_bytes, 'a'));
        heap.snapshot();
        HeapAccess::file(heap).saves().checkpoint();
        crash_copy(dir / "a.tyn", dir / "older.tyn");
        text[2 * page_bytes] = 'b';
        heap.snapshot();
        HeapAccess::file(heap).saves().checkpoint();
        crash_copy(dir / "a.tyn", dir / "b.tyn");
        std::filesystem::rename(dir / "older.tyn.data", dir / "b.tyn.data");
    }
    const std::uint64_t taken = store::rows_taken(store::Row::backing_to_data);
    SnapshotHeap heap(open_only, dir / "b.tyn", unverified());
    BOOST_TEST(store::rows_taken(store::Row::backing_to_data) == taken + 1);
    BOOST_TEST(find(heap, "text")[2 * page_bytes] == 'b');
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_backing_file_without_a_header_is_not_rebuilt_from_a_data_file_that_is_not_whole) {
    for (const bool is_filling : {true, false}) {
        ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        {
            SnapshotHeap heap(create_only, path, small_heap());
            put(heap, "text", "1");
            heap.snapshot();
        }
        for (const std::uint64_t slot : {0U, 1U}) flip_bit(path, slot * store::header_slot_bytes + 100);
        {
            const auto data = io::posix_storage().open(path.string() + ".data", io::Access::read_write);
            store::Header header = *store::read_slots(*data).newest();
            if (is_filling) {
                header.state = store::FileState::filling;
                header.filling_generation = {header.generation.value + 1};
            } else {  // of a creation that did not get to its end
                header.generation = {};
                header.is_new = true;
            }
            store::write_header(*data, header);
        }
        const auto before = std::pair{bytes_of(path), bytes_of(path.string() + ".data")};
        for (const bool reads : {true, false}) {
            const auto open = [&] { reads ? SnapshotHeap(open_read_only, path) : SnapshotHeap(open_only, path); };
            BOOST_TEST((code_of(open) == errc::corrupt));
            BOOST_TEST((std::pair{bytes_of(path), bytes_of(path.string() + ".data")} == before));
        }
    }
}

BOOST_AUTO_TEST_CASE(an_interrupted_large_save_is_finished_from_the_data_file) {
    const InterruptedLargeSave heap;
    BOOST_TEST(get(ArchiveHeap(open_read_only, heap.path), "big")[0] == 'b');
    ArchiveHeap opened(open_only, heap.path);
    BOOST_TEST((get(opened, "big") == std::string(2U << 20U, 'b')));
    BOOST_TEST(opened.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_damaged_page_is_not_copied_from_one_file_to_the_other) {
    // In the newer data file, and in the backing file of which a lost data file is made again.
    for (const bool from_data : {true, false}) {
        const InterruptedLargeSave heap;
        std::uint64_t page = 0;
        {
            const ArchiveHeap reader(open_read_only, heap.path);
            const auto place = reinterpret_cast<std::uintptr_t>(find(reader, "big")) + (1U << 20U) - reader.core()->ranges().durable;
            page = store::FileLayout().file_offset({place / page_bytes * page_bytes});
        }
        if (!from_data) {
            ArchiveHeap(open_only, heap.path).close();
            damage_headers(heap.data);
            flip_bit(heap.data, page + 100);  // else it is left as it is
        }
        const std::filesystem::path& source = from_data ? heap.data : heap.path;
        for (const std::uint64_t at : {std::uint64_t{0}, page_bytes - 1}) {
            flip_bit(source, page + at);
            BOOST_TEST((code_of([&] { ArchiveHeap opened(open_only, heap.path); }) == errc::corrupt));
            flip_bit(source, page + at);
        }
        ArchiveHeap opened(open_only, heap.path);
        BOOST_TEST((get(opened, "big") == std::string(2U << 20U, 'b')));
        BOOST_TEST(opened.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(every_page_of_a_staged_save_is_proven_before_anything_is_written) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    io::FaultyStorage failing(disk);
    const std::string text(300'000, 'b');
    {
        auto heap = HeapAccess::make<ArchiveHeap>(
            HeapFile::open(failing, "/disk/a.tyn", OpenMode::create_only, HeapKind::archive, small_heap(), store::Tuning{64_KiB}));
        char* const gone = put(heap, "gone", std::string(8 * page_bytes, 'a'));
        heap.snapshot();
        HeapAccess::file(heap).saves().checkpoint();
        std::memset(gone, 0, 4 * page_bytes);  // pages without an image, and one more behind them that doesn't change
        put(heap, "text", text);
        failing.arm({.at = 2, .sticky = true, .calls = io::Call::sync});  // the one behind the commit point
        BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::io_error));
    }
    const auto edit = [&](std::uint64_t at, unsigned mask) {
        const auto file = disk.open("/disk/a.tyn.journal", io::Access::read_write);
        std::byte byte{};
        BOOST_TEST_REQUIRE(file->read({&byte, 1}, at) == 1U);
        byte ^= static_cast<std::byte>(mask);
        file->write({&byte, 1}, at);
    };
    const store::Header header = *store::read_slots(*disk.open("/disk/a.tyn", io::Access::read_only)).newest();
    BOOST_TEST_REQUIRE((header.state == store::FileState::staged));
    const store::SaveHead& head = header.staged.head;
    BOOST_TEST_REQUIRE(head.image_count > 70U);
    const auto open = [&](OpenMode mode) {
        return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", mode, HeapKind::archive, {}, store::Tuning{64_KiB}));
    };
    std::vector<std::pair<std::uint64_t, unsigned>> edits{{head.stage_offset, 16},
                                                          {head.stage_offset + head.page_count * sizeof(store::SavedPage) - 1, 16}};
    const std::uint64_t images = head.stage_offset + store::stage_entries_bytes(head.page_count);
    for (const std::uint64_t image : {std::uint64_t{0}, head.image_count / 2, head.image_count - 1})
        for (const std::uint64_t at : {std::uint64_t{0}, page_bytes - 1}) edits.emplace_back(images + image * page_bytes + at, 1);
    // The last zero page becomes the one behind it: nothing but the digest of the entries tells.
    std::vector<store::SavedPage> entries(head.page_count);
    disk.open("/disk/a.tyn.journal", io::Access::read_only)->read(std::as_writable_bytes(std::span(entries)), head.stage_offset);
    const auto zero = std::find_if(entries.rbegin(), entries.rend(), [](const store::SavedPage& page) { return page.checksum == 0; });
    BOOST_TEST_REQUIRE((zero != entries.rend() && zero != entries.rbegin() && std::prev(zero)->page > zero->page + 1));
    edits.emplace_back(head.stage_offset + static_cast<std::uint64_t>(entries.rend() - zero - 1) * sizeof(store::SavedPage),
                       static_cast<unsigned>((zero->page ^ (zero->page + 1)) & 0xffU));
    const auto backing_bytes = [&] {
        const auto node = disk.node("/disk/a.tyn");
        return std::vector<std::byte>(node->data(), node->data() + node->size_bytes());
    };
    const auto before = backing_bytes();
    for (const auto& [place, mask] : edits) {
        edit(place, mask);
        for (const OpenMode mode : {OpenMode::read_only, OpenMode::open_only}) BOOST_TEST((code_of([&] { open(mode); }) == errc::corrupt), place);
        BOOST_TEST((backing_bytes() == before));
        edit(place, mask);
    }
    ArchiveHeap heap = open(OpenMode::open_only);
    BOOST_TEST((get(heap, "text") == text));
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(every_page_of_a_save_in_the_journal_is_proven_before_anything_is_written) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    {
        io::FaultyStorage crashing(disk);
        auto heap = HeapFile::open(crashing, "/disk/a.tyn", OpenMode::create_only, HeapKind::archive, small_heap());
        std::strcpy(static_cast<char*>(heap->engine().allocate(20)), "saved");
        heap->save();
        crashing.arm({.sticky = true});
        const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});  // of the close that fails
        heap.reset();
        set_report_handler(handler);
    }
    // The record again, right by the ring, with another byte in its last page.
    const store::Header header = *store::read_slots(*disk.open("/disk/a.tyn", io::Access::read_only)).newest();
    const std::shared_ptr<io::File> journal = disk.open("/disk/a.tyn.journal", io::Access::read_write);
    std::vector<log::Record> records;
    log::Ring::scan(*journal, header.ring_identity(), header.ring_start, [&](const log::Record& record) {
        records.push_back(record);
        return true;
    });
    BOOST_TEST_REQUIRE(records.size() == 1U);
    log::Record& record = records.front();
    const auto append_forged = [&](std::byte mask) {
        record.payload.back() ^= mask;
        log::Ring ring(journal, header.ring_identity(), header.ring_start, header.ring_start.position);
        const std::span<const std::byte> payload(record.payload);
        ring.append(record.kind, record.number, {&payload, 1});
    };
    const auto bytes = [&] {
        const auto node = disk.node("/disk/a.tyn");
        return std::vector<std::byte>(node->data(), node->data() + node->size_bytes());
    };
    const auto open = [&](OpenMode mode) { HeapFile::open(disk, "/disk/a.tyn", mode, HeapKind::archive, {}); };
    const auto before = bytes();
    append_forged(std::byte{1});
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::open_only}) BOOST_TEST((code_of([&] { open(mode); }) == errc::corrupt));
    BOOST_TEST((bytes() == before));
    append_forged(std::byte{1});
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::open_only}) open(mode);
}

BOOST_AUTO_TEST_CASE(a_newer_data_file_that_ends_early_does_not_bring_the_older_save_back) {
    const InterruptedLargeSave heap;
    std::filesystem::resize_file(heap.data, std::filesystem::file_size(heap.data) - page_bytes);
    BOOST_TEST((heap.refused() == errc::truncated));
}

BOOST_AUTO_TEST_CASE(a_half_written_backing_file_is_not_trusted_when_the_data_file_lost_its_headers) {
    const InterruptedLargeSave heap;
    {
        // The power failed while the backing file was being brought up to date: its table is new, some pages too, its header old.
        const auto file = io::posix_storage().open(heap.path, io::Access::read_write);
        const std::vector<char> newer = bytes_of(heap.newer);
        const std::vector<char> older = bytes_of(heap.path);
        const auto bring_up_to_date = [&](std::uint64_t offset) { file->write(std::as_bytes(std::span(newer).subspan(offset, page_bytes)), offset); };
        for (std::uint64_t index = 0; store::FileLayout().table_offset(index) < newer.size(); ++index)
            bring_up_to_date(store::FileLayout().table_offset(index));
        std::uint64_t differing = newer.size() - page_bytes;
        while (std::equal(newer.begin() + static_cast<std::ptrdiff_t>(differing), newer.begin() + static_cast<std::ptrdiff_t>(differing + page_bytes),
                          older.begin() + static_cast<std::ptrdiff_t>(differing))) {
            differing -= page_bytes;
        }
        bring_up_to_date(differing);
        file->sync();
    }
    damage_headers(heap.data);
    BOOST_TEST((heap.refused() == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(a_backing_file_restored_from_an_old_copy_is_not_overwritten_by_the_data_file) {
    ScratchDirectory dir;
    const auto save = [&](const std::string& name) {
        SnapshotHeap heap(open_only, dir / "a.tyn");
        put(heap, name, "1");
        heap.snapshot();
    };
    { SnapshotHeap heap(create_only, dir / "a.tyn", small_heap()); }
    save("first");
    std::filesystem::copy_file(dir / "a.tyn", dir / "backup");
    save("second");
    std::filesystem::copy_file(dir / "backup", dir / "a.tyn", std::filesystem::copy_options::overwrite_existing);
    BOOST_TEST((code_of([&] { SnapshotHeap heap(open_only, dir / "a.tyn"); }) == errc::mismatch));
    BOOST_TEST((bytes_of(dir / "a.tyn") == bytes_of(dir / "backup")));
}

BOOST_AUTO_TEST_CASE(hostile_headers_with_right_checksums_are_refused_and_crash_nothing) {
    ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "1");
        heap.snapshot();
    }
    const auto original = bytes_of(dir / "a.tyn");
    const auto original_data = bytes_of(dir / "a.tyn.data");
    const auto opening = [&](auto&& edit, auto&& edit_data) {
        edit_header(dir / "a.tyn", edit);
        edit_header(dir / "a.tyn.data", edit_data);
        const auto reading = code_of([&] {
            const ArchiveHeap heap(open_read_only, dir / "a.tyn");
            get(heap, "x");
        });
        const auto writing = code_of([&] {
            ArchiveHeap heap(open_only, dir / "a.tyn");
            put(heap, "y", "2");
            heap.snapshot();
        });
        BOOST_TEST((reading == writing));
        for (const auto& [name, bytes] : {std::pair{"a.tyn", &original}, std::pair{"a.tyn.data", &original_data}})
            std::ofstream(dir / name, std::ios::binary | std::ios::trunc).write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
        return writing;
    };
    const auto both = [&](auto&& edit) { return opening(edit, edit); };
    const auto keep = [](store::Header&) {};
    BOOST_TEST(!both(keep).has_value());
    BOOST_TEST((both([](store::Header& h) { h.extent = 0; }) == errc::corrupt));
    BOOST_TEST((both([](store::Header& h) { h.extent = page_bytes; }) == errc::corrupt));
    BOOST_TEST((both([](store::Header& h) { h.generation = {~std::uint64_t{0}}; }) == errc::corrupt));
    BOOST_TEST((both([](store::Header& h) { h.sequence = ~std::uint64_t{0} - 3; }) == errc::corrupt));
    BOOST_TEST((both([](store::Header& h) { h.base = (std::uint64_t{1} << 47U) - h.capacity; }).has_value()));
    BOOST_TEST((opening(keep, [](store::Header& h) {
                    h.capacity = 256 << 10U;
                    h.extent = 256 << 10U;
                    h.clean = false;
                    ++h.generation.value;
                }) == errc::mismatch));
    BOOST_TEST((opening(keep, [](store::Header& h) { h.base += std::uint64_t{1} << 32U; }) == errc::mismatch));
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_in_the_super_block_is_an_error_and_no_signal) {
    ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "1");
        heap.snapshot();
    }
    const std::uint64_t super = store::FileLayout().file_offset({0});
    for (std::uint64_t byte = 0; byte < 64; ++byte) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            const auto flip = [&] {
                const auto file = io::posix_storage().open(dir / "a.tyn", io::Access::read_write);
                std::byte value{};
                file->read({&value, 1}, super + byte);
                value ^= std::byte{1} << bit;
                file->write({&value, 1}, super + byte);
            };
            flip();
            try {
                ArchiveHeap heap(open_read_only, dir / "a.tyn");
                get(heap, "x");
                heap.core();
                HeapAccess::file(heap).engine().check();
            } catch (const Error&) {}
            flip();
        }
    }
    ArchiveHeap heap(open_only, dir / "a.tyn");
    BOOST_TEST(get(heap, "x") == "1");
}

BOOST_AUTO_TEST_CASE(a_damaged_page_under_a_page_that_was_just_saved_is_healed_too) {
    for (const bool changed_again : {false, true}) {
        ScratchDirectory dir;
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        char* block = put(heap, "x", std::string(3 * page_bytes, 'x'));
        heap.snapshot();
        const std::uint64_t page = round_up(reinterpret_cast<std::uint64_t>(block), page_bytes) - heap.core()->ranges().durable;
        BOOST_TEST(heap.heal() == 0U);  // the save is in the files now
        char& changed = *reinterpret_cast<char*>(heap.core()->ranges().durable + page + 50);
        if (changed_again) changed = 'y';
        flip_bit(dir / "a.tyn", store::FileLayout().file_offset({page + 7}));
        BOOST_TEST(heap.heal() == 1U);
        flip_bit(dir / "a.tyn.data", store::FileLayout().file_offset({page + 7}));
        BOOST_TEST(heap.heal() == 1U);
        BOOST_TEST(heap.heal() == 0U);
        BOOST_TEST(changed == (changed_again ? 'y' : 'x'));
    }
}

BOOST_AUTO_TEST_CASE(a_damaged_data_file_is_healed_also_where_the_program_has_unsaved_changes) {
    ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", std::string(3 * page_bytes, 'x'));
        heap.snapshot();
    }
    SnapshotHeap heap(open_only, dir / "a.tyn");
    char* block = find(heap, "x");
    const std::uint64_t page = round_up(reinterpret_cast<std::uint64_t>(block), page_bytes) - heap.core()->ranges().durable;
    reinterpret_cast<char*>(heap.core()->ranges().durable + page)[50] = 'y';
    flip_bit(dir / "a.tyn.data", store::FileLayout().file_offset({page + 7}));
    BOOST_TEST(heap.heal() == 1U);
    BOOST_TEST(heap.heal() == 0U);
}

namespace {
/// A closed heap whose block "x" has a page that is zero in the backing file although `one_byte` of it, or all of it, was saved with something else; and where that page begins.
std::uint64_t make_page_that_became_zero(const std::filesystem::path& path, bool one_byte) {
    SnapshotHeap heap(create_only, path, small_heap());
    char* block = static_cast<char*>(heap.allocate(2 * page_bytes));
    std::memset(block, 0, 2 * page_bytes);
    heap::add_named(*heap.core(), "x", {block, 2 * page_bytes, 1, "bytes"});
    const std::uint64_t at = round_up(reinterpret_cast<std::uint64_t>(block), page_bytes) - heap.core()->ranges().durable;
    auto* const page = reinterpret_cast<char*>(heap.core()->ranges().durable + at);
    one_byte ? void(page[100] = 16) : void(std::memset(page, 16, page_bytes));
    heap.snapshot();
    heap.close();
    const auto file = io::posix_storage().open(path, io::Access::read_write);
    file->write(std::vector<std::byte>(page_bytes), store::FileLayout().file_offset({at}));
    file->sync();
    return at;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_page_that_became_zero_by_rot_is_not_saved_as_zero) {
    for (const bool one_byte : {true, false}) {
        ScratchDirectory dir;
        const std::uint64_t at = make_page_that_became_zero(dir / "a.tyn", one_byte);
        {
            SnapshotHeap heap(open_only, dir / "a.tyn");
            reinterpret_cast<char*>(heap.core()->ranges().durable + at)[200] = 5;
            heap.snapshot();
        }
        SnapshotHeap heap(open_only, dir / "a.tyn");
        BOOST_TEST(reinterpret_cast<char*>(heap.core()->ranges().durable + at)[100] == 16);
        BOOST_TEST(reinterpret_cast<char*>(heap.core()->ranges().durable + at)[200] == 5);
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(zeros_stored_in_a_page_that_became_zero_by_rot_give_neither_the_old_bytes_nor_zeros_but_an_error) {
    for (const bool large : {false, true}) {
        for (const std::size_t stored : {std::size_t{1}, page_bytes}) {
            ScratchDirectory dir;
            const std::uint64_t at = make_page_that_became_zero(dir / "a.tyn", stored == 1);
            {
                SnapshotHeap heap(open_only, dir / "a.tyn", unverified());
                std::memset(reinterpret_cast<char*>(heap.core()->ranges().durable + at) + (stored == 1 ? 200 : 0), 0, stored);
                if (large) put(heap, "large", std::string(2'000'000, 'x'));
                BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::corrupt));
                BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::poisoned));
            }
            SnapshotHeap heap(open_only, dir / "a.tyn");
            BOOST_TEST(heap.heal() == 0U);  // the refused save has restored it
            BOOST_TEST(reinterpret_cast<char*>(heap.core()->ranges().durable + at)[100] == 16);
            BOOST_TEST((find(heap, "large") == nullptr));
        }
    }
}

BOOST_AUTO_TEST_CASE(damaged_metadata_does_not_make_closing_punch_live_pages) {
    ScratchDirectory dir;
    const std::string text(1U << 20U, 't');
    std::uint64_t at = 0;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        char* block = put(heap, "text", text);
        put(heap, "other", "1");
        at = round_up(reinterpret_cast<std::uint64_t>(block), page_bytes) - heap.core()->ranges().durable;
        heap.snapshot();
    }
    // The state words that cover the block's pages: all "available".
    const std::uint64_t page = at / page_bytes;
    const heap::Geometry geometry(8U << 20U);
    const heap::Region& region = geometry.region(heap::Geometry::region_of(static_cast<heap::Page>(page)));
    const std::uint64_t word = region.states + (page - region.first + 15) / 16 * 8;
    {
        const auto file = io::posix_storage().open(dir / "a.tyn", io::Access::read_write);
        const std::vector<std::byte> available(16, std::byte{0x88});
        file->write(available, store::FileLayout().file_offset({word}));
        file->sync();
    }
    try {
        SnapshotHeap heap(open_only, dir / "a.tyn");
        std::strcpy(find(heap, "other"), "2");
        heap.snapshot();
        heap.close();
    } catch (const Error& error) {
        BOOST_TEST_MESSAGE(error.what());
    }
    SnapshotHeap heap(open_only, dir / "a.tyn");
    heap.heal();
    heap.close();
    SnapshotHeap again(open_only, dir / "a.tyn");
    BOOST_TEST((get(again, "text") == text));
}

BOOST_AUTO_TEST_SUITE_END()
