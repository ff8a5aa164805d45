// A heap whose own file is lost, emptied, zeroed or cut short: a whole data file brings it back, byte for byte, through every opening; nothing else is written over.

#include <map>
#include <string>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "io/disks/simulated_node.hpp"
#include "store/header.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(lost_backing)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

const std::filesystem::path path = "/disk/a.tyn";
const std::filesystem::path data_path = "/disk/a.tyn.data";
constexpr ByteCount head_bytes = 2 * page_bytes;  ///< both header slots

PersistentOptions options_of(HeapKind kind) {
    PersistentOptions options = small_heap();
    if (kind == HeapKind::transactional) {
        options.data_file = data_path;
        options.log_capacity = ByteCount{256} << 10U;
    }
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

/// A heap with two saves, closed or not.
struct Doubled {
    io::SimulatedStorage disk{{.power_cuts = true}};
    HeapKind kind;
    std::string whole;  ///< its own file as it was

    Doubled(HeapKind of, bool closed) : kind(of) {
        disk.add_directory("/disk");
        const Silence silence;
        auto heap = open(OpenMode::create_only, kind);
        put(heap, "text", std::string(9000, 'x'));
        heap.snapshot();
        put(heap, "more", "of it");
        heap.snapshot();
        if (closed)
            heap.close();
        else
            disk.power_cut();
        whole = bytes_of(path);
    }
    ArchiveHeap open(OpenMode mode, HeapKind as) { return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, mode, as, options_of(as))); }
    std::string bytes_of(const std::filesystem::path& file) {
        const auto node = disk.node(file);
        return {reinterpret_cast<const char*>(node->data()), node->size_bytes()};
    }
    std::map<std::filesystem::path, std::string> bytes() {
        std::map<std::filesystem::path, std::string> all;
        for (const auto& [name, node] : disk.files()) all[name] = bytes_of(name);
        return all;
    }
    void zero(ByteCount count) { disk.node(path)->write(std::vector<std::byte>(count, std::byte{0}), 0); }
    void expect_content(const ArchiveHeap& heap) {
        BOOST_TEST(get(heap, "text") == std::string(9000, 'x'));
        BOOST_TEST(get(heap, "more") == "of it");
    }
    void expect_restored(OpenMode mode) {
        {
            auto heap = open(mode, kind);
            expect_content(heap);
            BOOST_TEST(heap.restoration().backing_rebuilt);
            BOOST_TEST(heap.heal() == 0U);
            heap.close();
        }
        BOOST_TEST(bytes_of(path).substr(head_bytes) == whole.substr(head_bytes));
        auto again = open(OpenMode::open_only, kind);
        expect_content(again);
        BOOST_TEST(again.restoration().clean);
        BOOST_TEST(!again.restoration().backing_rebuilt);
        put(again, "new", "text");
        again.snapshot();
        again.close();
    }
};

const std::map<std::string, std::function<void(Doubled&)>>& losses() {
    static const std::map<std::string, std::function<void(Doubled&)>> all{
        {"missing", [](Doubled& heap) { heap.disk.take_away(path); }},
        {"empty", [](Doubled& heap) { heap.disk.node(path)->resize(0); }},
        {"zeroed header", [](Doubled& heap) { heap.zero(head_bytes); }},
        {"zeroed", [](Doubled& heap) { heap.zero(heap.disk.node(path)->size_bytes()); }},
        {"cut within its first word", [](Doubled& heap) { heap.disk.node(path)->resize(5); }},
        {"cut within its header", [](Doubled& heap) { heap.disk.node(path)->resize(1000); }},
        {"cut between its headers", [](Doubled& heap) { heap.disk.node(path)->resize(page_bytes); }},
        {"cut behind its header", [](Doubled& heap) { heap.disk.node(path)->resize(head_bytes); }},
        {"cut within its pages", [](Doubled& heap) { heap.disk.node(path)->resize(heap.disk.node(path)->size_bytes() / 2 + 100); }},
        {"a byte short", [](Doubled& heap) { heap.disk.node(path)->resize(heap.disk.node(path)->size_bytes() - 1); }},
    };
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_whole_data_file_brings_it_back_byte_for_byte) {
    for (const HeapKind kind : {HeapKind::snapshot, HeapKind::transactional}) {
        for (const OpenMode mode : {OpenMode::open_only, OpenMode::open_or_create}) {
            for (const auto& [name, lose] : losses()) {
                BOOST_TEST_CONTEXT(name << (kind == HeapKind::snapshot ? ", snapshot" : ", transactional")) {
                    Doubled heap(kind, true);
                    lose(heap);
                    heap.expect_restored(mode);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(with_what_the_ring_has_after_a_crash) {
    for (const HeapKind kind : {HeapKind::snapshot, HeapKind::transactional}) {
        for (const auto& [name, lose] : losses()) {
            BOOST_TEST_CONTEXT(name) {
                Doubled heap(kind, false);
                lose(heap);
                auto restored = heap.open(OpenMode::open_only, kind);
                heap.expect_content(restored);
                BOOST_TEST(restored.restoration().backing_rebuilt);
                BOOST_TEST(restored.heal() == 0U);
                restored.close();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_reader_sees_it_and_writes_nothing) {
    for (const bool closed : {true, false}) {
        for (const auto& [name, lose] : losses()) {
            BOOST_TEST_CONTEXT(name) {
                Doubled heap(HeapKind::snapshot, closed);
                lose(heap);
                const auto before = heap.bytes();
                {
                    const auto reader = heap.open(OpenMode::read_only, HeapKind::archive);
                    heap.expect_content(reader);
                }
                BOOST_TEST((heap.bytes() == before));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_lower_kind_brings_it_back_and_keeps_both_files) {
    Doubled heap(HeapKind::snapshot, true);
    heap.disk.take_away(path);
    heap.open(OpenMode::open_only, HeapKind::archive).close();
    BOOST_TEST(heap.bytes_of(path).substr(head_bytes) == heap.whole.substr(head_bytes));
    auto again = heap.open(OpenMode::open_only, HeapKind::snapshot);
    BOOST_TEST(again.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_new_heap_is_not_made_over_the_only_copy) {
    Doubled heap(HeapKind::snapshot, true);
    heap.disk.take_away(path);
    const auto before = heap.bytes();
    BOOST_CHECK_EXCEPTION(heap.open(OpenMode::create_only, HeapKind::snapshot), Error, [](const Error& error) {
        return error.code() == errc::mismatch && error.path() == data_path && std::string(error.what()).find("open_only") != std::string::npos;
    });
    BOOST_TEST((heap.bytes() == before));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_something_else_is_left_alone) {
    Doubled heap(HeapKind::snapshot, true);
    heap.zero(head_bytes);
    heap.disk.node(path)->write(std::vector<std::byte>(5, std::byte{'n'}), 100);
    const auto before = heap.bytes();
    BOOST_TEST((code_of([&] { heap.open(OpenMode::open_only, HeapKind::snapshot); }) == errc::not_a_heap));
    BOOST_TEST((code_of([&] { heap.open(OpenMode::open_or_create, HeapKind::snapshot); }) == errc::not_a_heap));
    BOOST_TEST((heap.bytes() == before));
}

BOOST_AUTO_TEST_CASE(a_data_file_that_is_damaged_or_short_too_brings_nothing_back) {
    for (const bool cut : {true, false}) {
        Doubled heap(HeapKind::snapshot, true);
        heap.disk.take_away(path);
        const auto data = heap.disk.node(data_path);
        if (cut) {
            data->resize(data->size_bytes() / 2);
        } else {
            data->write(std::vector<std::byte>(page_bytes, std::byte{0x5a}),
                        3 * page_bytes);  // the first page of its checksum table, or of its content
        }
        BOOST_TEST((code_of([&] { heap.open(OpenMode::open_only, HeapKind::snapshot); }) == (cut ? errc::truncated : errc::corrupt)));
        BOOST_TEST(heap.disk.node(path) == nullptr);
    }
}

/// The heap's own name may be misspelt, or its disk be missing.
BOOST_AUTO_TEST_CASE(a_data_file_of_another_name_brings_it_back_into_an_empty_file_only) {
    Doubled heap(HeapKind::snapshot, true);
    const auto data = heap.disk.node(data_path);
    const auto own = heap.disk.node(path);
    heap.disk.take_away(path);
    heap.disk.take_away(data_path);
    heap.disk.put("/disk/second", data);
    PersistentOptions options = small_heap();
    options.data_file = "/disk/second";
    const auto open = [&](OpenMode mode) {
        return HeapAccess::make<ArchiveHeap>(HeapFile::open(heap.disk, path, mode, HeapKind::snapshot, options));
    };
    const auto before = heap.bytes();
    BOOST_TEST((code_of([&] { open(OpenMode::open_or_create); }) == errc::mismatch));
    BOOST_CHECK_EXCEPTION(open(OpenMode::open_only), Error, [](const Error& error) {
        return error.code() == errc::not_found && error.path() == path && std::string(error.what()).find("empty file") != std::string::npos;
    });
    BOOST_TEST((heap.bytes() == before));
    own->resize(0);
    heap.disk.put(path, own);
    heap.expect_content(open(OpenMode::open_only));
}

BOOST_AUTO_TEST_CASE(a_file_that_only_begins_with_zeros_is_left_alone) {
    Doubled heap(HeapKind::snapshot, true);
    heap.zero(heap.disk.node(path)->size_bytes());
    heap.disk.node(path)->write(std::vector<std::byte>(5, std::byte{'n'}), 32768);
    const auto before = heap.bytes();
    BOOST_TEST((code_of([&] { heap.open(OpenMode::open_only, HeapKind::snapshot); }) == errc::not_a_heap));
    BOOST_TEST((heap.bytes() == before));
}

BOOST_AUTO_TEST_CASE(a_data_file_that_only_begins_with_zeros_is_left_alone) {
    for (const bool closed : {true, false}) {
        Doubled heap(HeapKind::snapshot, closed);
        const auto data = heap.disk.node(data_path);
        data->write(std::vector<std::byte>(data->size_bytes(), std::byte{0}), 0);
        data->write(std::vector<std::byte>(5, std::byte{'n'}), 32768);
        const auto before = heap.bytes();
        BOOST_TEST((code_of([&] { heap.open(OpenMode::open_only, HeapKind::snapshot); }) == errc::mismatch));
        BOOST_TEST((heap.bytes() == before));
    }
}

/// One that a killed opening was attaching is as old as that.
BOOST_AUTO_TEST_CASE(a_data_file_that_the_heap_never_named_brings_nothing_back) {
    Doubled heap(HeapKind::snapshot, true);
    const auto data = heap.disk.node(data_path);
    const store::Slots slots = store::read_slots(*heap.disk.open(data_path, io::Access::read_only));
    store::Header header = *slots.newest();
    header.is_new = true;
    const auto file = heap.disk.open(data_path, io::Access::read_write);
    store::write_header(*file, header);
    for (const auto& [name, lose] : losses()) {
        if (name == "missing" || name.starts_with("cut b") || name.starts_with("cut within its p") || name.starts_with("a byte")) continue;
        BOOST_TEST_CONTEXT(name) {
            lose(heap);
            const auto before = heap.bytes();
            BOOST_TEST((code_of([&] { heap.open(OpenMode::open_only, HeapKind::snapshot); }).has_value()));
            BOOST_TEST((heap.bytes() == before));
        }
    }
    heap.disk.take_away(path);
    BOOST_TEST((code_of([&] { heap.open(OpenMode::open_only, HeapKind::snapshot); }) == errc::not_found));
}

BOOST_AUTO_TEST_CASE(spoiled_headers_stay_spoiled) {
    for (const bool torn : {false, true}) {
        Doubled heap(HeapKind::snapshot, true);
        const auto file = heap.disk.open(path, io::Access::read_write);
        const auto node = heap.disk.node(path);
        std::vector<std::byte> second(page_bytes);
        node->read(second, page_bytes);
        store::spoil_headers(*file);
        BOOST_TEST(store::read_slots(*file).newest() == nullptr);
        if (torn) {
            node->write(second, page_bytes);
            BOOST_TEST(store::read_slots(*file).newest() != nullptr);
        }
        store::spoil_headers(*file);
        const store::Slots slots = store::read_slots(*file);
        BOOST_TEST(slots.newest() == nullptr);
        BOOST_TEST((slots.verdict().code == errc::corrupt));
    }
}

BOOST_AUTO_TEST_CASE(without_a_data_file_a_missing_heap_is_missing) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    BOOST_TEST((code_of([&] { HeapFile::open(disk, path, OpenMode::open_only, HeapKind::snapshot, small_heap()); }) == errc::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
