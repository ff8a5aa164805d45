// Files of another version, byte order or page size, and files that are no part of a heap: each of the three has its own code, whoever opens, and nothing is touched.

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <map>

#include <taiyen/base/report.hpp>

#include "heap_forgery.hpp"
#include "heap_probe.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_node.hpp"
#include "log/ring_forgery.hpp"

BOOST_AUTO_TEST_SUITE(strangers)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

const std::filesystem::path path = "/disk/a.tyn";

/// A snapshot heap as a crash leaves it, with a save in its journal, on a disk in memory.
struct CrashedHeap {
    io::SimulatedStorage disk;

    CrashedHeap() {
        disk.add_directory("/disk");
        io::FaultyStorage crashing(disk);
        auto heap = HeapFile::open(crashing, path, OpenMode::create_only, HeapKind::snapshot, small_heap(256U << 10U));
        std::strcpy(static_cast<char*>(heap->engine().allocate(20)), "saved");
        heap->save();
        crashing.arm({.sticky = true});
        const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});  // of the close that fails
        heap.reset();
        set_report_handler(handler);
    }

    std::map<std::filesystem::path, std::string> bytes() const {
        std::map<std::filesystem::path, std::string> all;
        for (const auto& [name, node] : disk.files()) all[name].assign(reinterpret_cast<const char*>(node->data()), node->size_bytes());
        return all;
    }

    /// Sets a field of `size` bytes in both slots at the beginning of a file, and makes the slots' checksums right.
    void set(const char* suffix, std::size_t offset, unsigned size, std::uint64_t value) {
        const auto node = disk.node(path.string() + suffix);
        std::vector<std::byte> slots(node->data(), node->data() + 8192);
        for (const unsigned slot : {0U, 1U}) {
            std::memcpy(slots.data() + slot * 4096 + offset, &value, size);
            if (std::string(suffix) == ".journal") {
                log::layout::IdentitySlot identity;
                const std::span<std::byte> place = std::span(slots).subspan(slot * 4096, 4096);
                std::memcpy(static_cast<void*>(&identity), place.data(), sizeof identity);
                log::test::forge_identity(place, slot, identity);
            } else {
                store::test::forge_header(slots, slot);
            }
        }
        node->write(slots, 0);
    }
    void set_magic(const char* suffix, std::uint64_t value) { set(suffix, 0, 8, value); }

    /// The code of opening, the same for reading, for writing, and as either kind; after checking that nothing was touched.
    std::optional<errc> opened() {
        const auto before = bytes();
        std::optional<errc> first;
        for (const auto mode : {OpenMode::read_only, OpenMode::open_only, OpenMode::open_or_create}) {
            for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
                const auto code = code_of([&] { HeapFile::open(disk, path, mode, kind, {}); });
                if (!code) return std::nullopt;
                BOOST_TEST((code == first.value_or(*code)));
                BOOST_TEST((bytes() == before));
                first = code;
            }
        }
        return first;
    }
};

/// One stranger: which file, which field, and what the opener is told.
struct Stranger {
    const char* what;
    const char* suffix;
    std::size_t offset;
    unsigned size;
    std::uint64_t value;
    errc code;
};
}  // namespace

BOOST_AUTO_TEST_CASE(the_heap_itself_opens) {
    CrashedHeap heap;
    BOOST_TEST(!heap.opened().has_value());
}

BOOST_AUTO_TEST_CASE(each_file_of_another_version_byte_order_or_page_size_is_refused_by_its_own_code) {
    const Stranger strangers[] = {
        {"a heap of no version", "", 8, 4, 0, errc::unsupported_version},
        {"a heap of a newer version", "", 8, 4, 2, errc::unsupported_version},
        {"a heap of the other byte order", "", 12, 4, 0x0403'0201, errc::foreign_byte_order},
        {"a heap with pages of 16 KiB", "", 16, 4, 16384, errc::unsupported_page_size},
        {"a heap with an unknown feature", "", 32, 8, 16, errc::unsupported_version},
        {"no heap", "", 0, 8, 0x1234, errc::not_a_heap},
        {"a data file of no version", ".data", 8, 4, 0, errc::unsupported_version},
        {"a data file of a newer version", ".data", 8, 4, 2, errc::unsupported_version},
        {"a data file of the other byte order", ".data", 12, 4, 0x0403'0201, errc::foreign_byte_order},
        {"a data file with pages of 16 KiB", ".data", 16, 4, 16384, errc::unsupported_page_size},
        {"a data file with an unknown feature", ".data", 32, 8, 16, errc::unsupported_version},
        {"a data file of a position-independent heap beside one that is none", ".data", 32, 8, 2, errc::mismatch},
        {"no data file", ".data", 0, 8, 0x1234, errc::mismatch},
        {"a data file of another heap", ".data", 40, 8, 0x1234, errc::mismatch},
        {"another data file of this heap", ".data", 56, 8, 0x1234, errc::mismatch},
        {"a journal of no version", ".journal", 12, 4, 0, errc::unsupported_version},
        {"a journal of a newer version", ".journal", 12, 4, 2, errc::unsupported_version},
        {"a journal of the other byte order", ".journal", 8, 4, 0x0403'0201, errc::foreign_byte_order},
        {"a journal with an unknown feature", ".journal", 16, 8, 1, errc::unsupported_version},
        {"no journal", ".journal", 0, 8, 0x1234, errc::not_a_heap},
        {"a journal of another opening", ".journal", 32, 8, 0x1234, errc::mismatch},
        {"a journal of another heap", ".journal", 48, 8, 0x1234, errc::mismatch},
    };
    for (const Stranger& stranger : strangers) {
        CrashedHeap heap;
        heap.set(stranger.suffix, stranger.offset, stranger.size, stranger.value);
        const auto code = heap.opened();
        BOOST_TEST_CONTEXT(stranger.what) {
            BOOST_TEST_REQUIRE(code.has_value());
            BOOST_TEST(make_error_code(*code).message() == make_error_code(stranger.code).message());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_damaged_version_in_one_slot_costs_that_slot_only) {
    CrashedHeap heap;
    const auto node = heap.disk.node(path);
    const std::uint32_t version = 2;
    node->write(std::as_bytes(std::span(&version, 1)), 8);
    BOOST_TEST(!heap.opened().has_value());
}

BOOST_AUTO_TEST_CASE(compatible_features_that_are_not_known_are_ignored) {
    CrashedHeap heap;
    heap.set("", 24, 8, 0xff);
    heap.set(".data", 24, 8, 0xff);
    BOOST_TEST(!heap.opened().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
