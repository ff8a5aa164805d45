// A heap whose data file is lost: refused by default, opened without it when told so, durably.

#include <map>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "io/disks/simulated_node.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(detaching)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

const std::filesystem::path path = "/disk/a.tyn";
const std::filesystem::path data_path = "/disk/a.tyn.data";

PersistentOptions without_data() {
    PersistentOptions options = small_heap();
    options.detach_data_file = true;
    return options;
}

/// Nobody hears what a heap complains of that dies with its disk.
struct Silence {
    ReportHandler before = set_report_handler([](const Incident&) noexcept {});
    Silence() = default;
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence() { set_report_handler(before); }
};

/// A snapshot heap, closed, or with a save in its ring; its data file is gone.
struct LostData {
    io::SimulatedStorage disk{{.power_cuts = true}};
    std::shared_ptr<io::SimulatedStorage::Node> data;

    explicit LostData(bool closed) {
        disk.add_directory("/disk");
        const Silence silence;
        auto heap = open(OpenMode::create_only, HeapKind::snapshot, small_heap());
        put(heap, "text", std::string(9000, 'x'));
        heap.snapshot();
        put(heap, "more", "of it");
        heap.snapshot();
        if (closed)
            heap.close();
        else
            disk.power_cut();
        data = disk.node(data_path);
        disk.take_away(data_path);
    }
    ArchiveHeap open(OpenMode mode, HeapKind kind, const PersistentOptions& options) {
        return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, mode, kind, options));
    }
    void expect_content(const ArchiveHeap& heap) {
        BOOST_TEST(get(heap, "text") == std::string(9000, 'x'));
        BOOST_TEST(get(heap, "more") == "of it");
    }
    std::map<std::filesystem::path, std::string> bytes() const {
        std::map<std::filesystem::path, std::string> all;
        for (const auto& [name, node] : disk.files()) all[name].assign(reinterpret_cast<const char*>(node->data()), node->size_bytes());
        return all;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(without_being_told_a_lost_data_file_of_a_heap_that_was_not_closed_is_an_error_that_names_the_way_on) {
    LostData lost(false);
    const auto before = lost.bytes();
    for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only}) {
        BOOST_CHECK_EXCEPTION(lost.open(mode, HeapKind::archive, small_heap()), Error, [](const Error& error) {
            return error.code() == errc::mismatch && error.path() == data_path &&
                   std::string(error.what()).find("detach_data_file") != std::string::npos;
        });
    }
    BOOST_TEST((lost.bytes() == before));
}

/// Elsewhere a disk may be missing that comes back.
BOOST_AUTO_TEST_CASE(so_it_is_where_the_data_file_lies_elsewhere) {
    LostData lost(true);
    PersistentOptions options = small_heap();
    options.data_file = "/disk/second";
    const auto before = lost.bytes();
    BOOST_TEST((code_of([&] { lost.open(OpenMode::open_only, HeapKind::snapshot, options); }) == errc::mismatch));
    BOOST_TEST((lost.bytes() == before));
}

BOOST_AUTO_TEST_CASE(a_closed_heap_gets_another_one_byte_for_byte) {
    constexpr ByteCount head_bytes = 2 * page_bytes;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        LostData lost(true);
        const std::string old(reinterpret_cast<const char*>(lost.data->data()), lost.data->size_bytes());
        {
            auto heap = lost.open(OpenMode::open_only, kind, small_heap());
            lost.expect_content(heap);
            BOOST_TEST(heap.restoration().data_rebuilt);
            BOOST_TEST(!heap.restoration().data_detached);
            BOOST_TEST(heap.heal() == 0U);
            heap.close();
        }
        BOOST_REQUIRE(lost.disk.node(data_path) != nullptr);
        BOOST_TEST(lost.bytes()[data_path].substr(head_bytes) == old.substr(head_bytes));
        // The old one, should it come back, is nobody's.
        lost.disk.put(data_path, lost.data);
        BOOST_TEST((code_of([&] { lost.open(OpenMode::open_only, HeapKind::snapshot, small_heap()); }) == errc::mismatch));
    }
}

/// Who only looks is to learn that there is one copy less.
BOOST_AUTO_TEST_CASE(a_reader_of_a_closed_heap_is_told) {
    LostData lost(true);
    const auto before = lost.bytes();
    BOOST_TEST((code_of([&] { lost.open(OpenMode::read_only, HeapKind::archive, small_heap()); }) == errc::mismatch));
    BOOST_TEST((lost.bytes() == before));
}

BOOST_AUTO_TEST_CASE(told_so_the_heap_opens_with_all_that_was_saved_and_needs_no_telling_again) {
    for (const bool closed : {true, false}) {
        LostData lost(closed);
        {
            const Silence silence;
            const auto heap = lost.open(OpenMode::open_only, HeapKind::archive, without_data());
            lost.expect_content(heap);
            BOOST_TEST(heap.restoration().data_detached);
            BOOST_TEST(heap.restoration().clean == closed);
            lost.disk.power_cut();  // right after opening
        }
        {
            auto again = lost.open(OpenMode::open_only, HeapKind::archive, small_heap());
            lost.expect_content(again);
            BOOST_TEST(!again.restoration().data_detached);
            put(again, "new", "text");
            again.snapshot();
            again.close();
        }
        const auto heap = lost.open(OpenMode::open_only, HeapKind::archive, small_heap());
        lost.expect_content(heap);
        BOOST_TEST(get(heap, "new") == "text");
    }
}

BOOST_AUTO_TEST_CASE(a_lost_data_file_that_comes_back_is_nobodys) {
    LostData lost(true);
    lost.open(OpenMode::open_only, HeapKind::archive, without_data()).close();
    lost.disk.put(data_path, lost.data);
    const std::string before = lost.bytes()[data_path];
    {
        auto heap = lost.open(OpenMode::open_only, HeapKind::archive, small_heap());
        put(heap, "new", "text");
        heap.snapshot();
    }
    BOOST_TEST((code_of([&] { lost.open(OpenMode::open_only, HeapKind::snapshot, small_heap()); }) == errc::mismatch));
    BOOST_TEST((lost.bytes()[data_path] == before));
    const auto heap = lost.open(OpenMode::open_only, HeapKind::archive, small_heap());
    BOOST_TEST(get(heap, "new") == "text");
}

BOOST_AUTO_TEST_CASE(a_snapshot_heap_makes_a_new_data_file) {
    LostData lost(false);
    lost.open(OpenMode::open_only, HeapKind::snapshot, without_data()).close();
    BOOST_REQUIRE(lost.disk.node(data_path) != nullptr);
    auto heap = lost.open(OpenMode::open_only, HeapKind::snapshot, small_heap());
    lost.expect_content(heap);
    BOOST_TEST(heap.restoration().clean);
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_reader_looks_without_the_data_file_and_writes_nothing) {
    for (const bool closed : {true, false}) {
        LostData lost(closed);
        const auto before = lost.bytes();
        {
            const auto heap = lost.open(OpenMode::read_only, HeapKind::archive, without_data());
            lost.expect_content(heap);
        }
        BOOST_TEST((lost.bytes() == before));
    }
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_not_whole_without_its_data_file_keeps_it) {
    LostData lost(true);
    const auto backing = lost.disk.node(path);
    std::byte byte{};
    const std::uint64_t at = backing->size_bytes() / 2 / page_bytes * page_bytes + 17;
    backing->read({&byte, 1}, at);
    byte ^= std::byte{1};
    backing->write({&byte, 1}, at);
    const auto before = lost.bytes();
    for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only})
        BOOST_TEST((code_of([&] { lost.open(mode, HeapKind::archive, without_data()); }) == errc::corrupt));
    BOOST_TEST((lost.bytes() == before));
    // The file is found again: nothing is lost.
    lost.disk.put(data_path, lost.data);
    auto heap = lost.open(OpenMode::open_only, HeapKind::snapshot, unverified());
    lost.expect_content(heap);
    BOOST_TEST(heap.heal() == 1U);
}

BOOST_AUTO_TEST_CASE(a_data_file_that_is_there_can_not_be_detached) {
    LostData lost(true);
    lost.disk.put(data_path, lost.data);
    for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only})
        BOOST_TEST((code_of([&] { lost.open(mode, HeapKind::archive, without_data()); }) == errc::already_exists));
    lost.expect_content(lost.open(OpenMode::open_only, HeapKind::archive, small_heap()));
}

BOOST_AUTO_TEST_SUITE_END()
