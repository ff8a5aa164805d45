#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include "heap_probe.hpp"
#include "store/header.hpp"
#include "store/heap_file.hpp"
#include "vm/address_space.hpp"

// What making and closing a heap does to files that are not its own.

namespace {
using namespace probe;

/// The working directory of this process, changed for a while.
class WorkingDirectory {
public:
    explicit WorkingDirectory(const std::filesystem::path& path) : before_(std::filesystem::current_path()) { std::filesystem::current_path(path); }
    WorkingDirectory(const WorkingDirectory&) = delete;
    WorkingDirectory& operator=(const WorkingDirectory&) = delete;
    ~WorkingDirectory() { std::filesystem::current_path(before_); }

private:
    std::filesystem::path before_;
};

/// A data file as a creation leaves it before the backing file gets its name, changed by `edit`.
template <class Edit>
void make_data_file(const std::filesystem::path& path, Edit&& edit) {
    store::Header header;
    header.heap = random_uuid();
    header.file = random_uuid();
    header.data = header.file;
    header.role = store::FileRole::data;
    header.is_new = true;
    header.base = 0x2000'0000'0000;
    header.capacity = 1U << 20U;
    header.extent = 1U << 18U;
    const auto file = io::posix_storage().create(path);
    file->resize(store::chunks_offset);
    store::write_first_headers(*file, header);
    edit(*file);
    file->sync();
}

void make_journal(const std::filesystem::path& path, bool is_new) {
    const auto file = io::posix_storage().create(path);
    log::Ring::format(*file, {random_uuid(), random_uuid(), 32768, is_new});
}

template <class Heap>
std::optional<errc> code_of_creating(const std::filesystem::path& path, const PersistentOptions& options = small_heap()) {
    return code_of([&] { Heap heap(create_only, path, options); });
}
}  // namespace

BOOST_AUTO_TEST_SUITE(creation)

BOOST_AUTO_TEST_CASE(closing_after_a_change_of_directory_leaves_the_journals_of_other_heaps_alone) {
    ScratchDirectory here;
    ScratchDirectory there;
    {
        ArchiveHeap other(create_only, there / "a.tyn", small_heap());
        put(other, "x", "acknowledged");
        other.snapshot();
        crash_copy(there / "a.tyn", there / "b.tyn");
    }
    std::filesystem::rename(there / "b.tyn", there / "c.tyn");
    std::filesystem::rename(there / "b.tyn.journal", there / "c.tyn.journal");
    {
        const WorkingDirectory first(here.path());
        ArchiveHeap heap(create_only, "c.tyn", small_heap());
        put(heap, "y", "1");
        heap.snapshot();
        const WorkingDirectory second(there.path());
        heap.close();
    }
    BOOST_TEST(!std::filesystem::exists(here / "c.tyn.journal"));
    ArchiveHeap heap(open_only, there / "c.tyn");
    BOOST_TEST(get(heap, "x") == "acknowledged");
}

BOOST_AUTO_TEST_CASE(a_journal_that_was_exchanged_meanwhile_is_not_removed_by_closing) {
    ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    std::filesystem::rename(dir / "a.tyn.journal", dir / "away");
    make_journal(dir / "a.tyn.journal", false);
    heap.close();
    BOOST_TEST(std::filesystem::exists(dir / "a.tyn.journal"));
}

BOOST_AUTO_TEST_CASE(a_file_that_can_not_be_proven_to_be_an_orphan_is_not_removed) {
    const auto spared = [](auto&& edit) {
        ScratchDirectory dir;
        make_data_file(dir / "a.tyn.data", edit);
        const auto before = bytes_of(dir / "a.tyn.data");
        BOOST_TEST((code_of_creating<SnapshotHeap>(dir / "a.tyn") == errc::mismatch));
        BOOST_TEST(!std::filesystem::exists(dir / "a.tyn"));
        return std::filesystem::exists(dir / "a.tyn.data") && bytes_of(dir / "a.tyn.data") == before;
    };
    const auto put32 = [](io::File& file, std::uint64_t offset, std::uint32_t value) {
        file.write(std::as_bytes(std::span(&value, 1)), offset);
        file.write(std::as_bytes(std::span(&value, 1)), store::header_slot_bytes + offset);
    };
    BOOST_TEST(spared([&](io::File& file) { put32(file, 8, 7); }));             // of a newer version
    BOOST_TEST(spared([&](io::File& file) { put32(file, 12, 0x0403'0201); }));  // of another byte order
    BOOST_TEST(spared([&](io::File& file) { put32(file, 60, 1); }));            // damaged
    BOOST_TEST(spared([&](io::File& file) { file.resize(100); }));
    {
        ScratchDirectory dir;
        make_journal(dir / "a.tyn.journal", true);
        flip_bit(dir / "a.tyn.journal", 50);
        flip_bit(dir / "a.tyn.journal", 4146);
        BOOST_TEST((code_of_creating<ArchiveHeap>(dir / "a.tyn") == errc::mismatch));
        BOOST_TEST(std::filesystem::exists(dir / "a.tyn.journal"));
    }
    ScratchDirectory dir;
    make_data_file(dir / "a.tyn.data", [](io::File&) {});
    make_journal(dir / "a.tyn.journal", true);
    BOOST_TEST(!code_of_creating<SnapshotHeap>(dir / "a.tyn").has_value());  // the real orphans of a killed creation
}

BOOST_AUTO_TEST_CASE(the_files_of_a_creation_under_way_are_no_orphans) {
    ScratchDirectory dir;
    make_data_file(dir / "a.tyn.data", [](io::File&) {});
    make_journal(dir / "a.tyn.journal", true);
    {
        const auto creator = io::posix_storage().open(dir / "a.tyn.data", io::Access::read_write);
        BOOST_TEST(creator->try_lock(io::Lock::exclusive));
        BOOST_TEST((code_of_creating<SnapshotHeap>(dir / "a.tyn") == errc::busy));
        BOOST_TEST(std::filesystem::exists(dir / "a.tyn.data"));
    }
    {
        const auto creator = io::posix_storage().open(dir / "a.tyn.journal", io::Access::read_write);
        BOOST_TEST(creator->try_lock(io::Lock::exclusive));
        BOOST_TEST((code_of_creating<ArchiveHeap>(dir / "a.tyn") == errc::busy));
    }
    BOOST_TEST(std::filesystem::exists(dir / "a.tyn.journal"));
    ArchiveHeap heap(create_only, dir / "b.tyn", small_heap());
    const auto other = io::posix_storage().open(dir / "b.tyn.journal", io::Access::read_only);
    BOOST_TEST(!other->try_lock(io::Lock::exclusive));  // the journal of an open heap says so itself
}

BOOST_AUTO_TEST_CASE(more_than_all_the_address_space_for_heaps_is_refused_before_a_place_is_looked_for) {
    const vm::Zone zone = vm::default_zone();
    BOOST_CHECK_EXCEPTION(store::HeapFile::find_place(0, zone.last - zone.first), Error, [](const Error& error) {
        return error.code() == errc::out_of_address_space && std::string(error.what()).find("does not fit") != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(a_data_file_that_is_the_heap_or_its_journal_is_refused) {
    ScratchDirectory dir;
    for (const char* name : {"a.tyn", "a.tyn.journal", "./x/../a.tyn"}) {
        PersistentOptions options = small_heap();
        options.data_file = dir / name;
        BOOST_TEST((code_of_creating<SnapshotHeap>(dir / "a.tyn", options) == errc::invalid_argument));
        BOOST_TEST(std::filesystem::is_empty(dir.path()));
    }
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "1");
        heap.snapshot();
    }
    const auto before = bytes_of(dir / "a.tyn");
    PersistentOptions options;
    options.data_file = dir / "a.tyn.journal";
    BOOST_TEST((code_of([&] { SnapshotHeap heap(open_only, dir / "a.tyn", options); }) == errc::invalid_argument));
    BOOST_TEST((bytes_of(dir / "a.tyn") == before));
}

BOOST_AUTO_TEST_CASE(a_data_file_may_lie_anywhere_and_belongs_to_one_heap) {
    ScratchDirectory dir;
    ScratchDirectory elsewhere;
    PersistentOptions options = small_heap();
    options.data_file = elsewhere / "copy";
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", options);
        put(heap, "x", "1");
        heap.snapshot();
        BOOST_TEST((code_of_creating<SnapshotHeap>(dir / "b.tyn", options) == errc::busy));
    }
    BOOST_TEST((code_of_creating<SnapshotHeap>(dir / "b.tyn", options) == errc::mismatch));
    BOOST_TEST((code_of([&] { SnapshotHeap heap(open_only, dir / "a.tyn"); }) == errc::mismatch));
    SnapshotHeap heap(open_only, dir / "a.tyn", options);
    BOOST_TEST(get(heap, "x") == "1");
}

BOOST_AUTO_TEST_SUITE_END()
