// Heaps written once by format version 1 (tests/store/golden/README.md) are opened, read and used; and their bytes are looked at one by one, without the code that wrote them.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>
#include <taiyen/store/parameters.hpp>

#include <iterator>

#include "base/checksum.hpp"
#include "golden_bytes.hpp"
#include "store/golden/content.hpp"
#include "store/heap_probe.hpp"
#include "vm/address_space.hpp"

namespace {
using namespace probe;
using taiyen::test::number_at;

/// A copy of a golden heap's files in a folder of its own, with the zeros that were cut off at their ends.
struct Golden {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "heap.tyn";

    explicit Golden(const std::string& name) {
        const std::filesystem::path from = std::filesystem::path(TAIYEN_TESTS_DIR) / "store/golden" / (name + ".tyn");
        take(from, "", 86'016);
        if (std::filesystem::exists(from.string() + ".data")) {
            take(from, ".data", 86'016);
            take(from, ".journal", 49'152);
        }
    }
    std::vector<char> bytes(const char* suffix = "") const { return bytes_of(path.string() + suffix); }

private:
    void take(const std::filesystem::path& from, const std::string& suffix, std::uintmax_t size) {
        std::filesystem::copy_file(from.string() + suffix, path.string() + suffix);
        std::filesystem::permissions(path.string() + suffix, std::filesystem::perms(0600));
        std::filesystem::resize_file(path.string() + suffix, size);
    }
};

/// The thread sanitizer leaves no room at the golden heaps' addresses.
bool can_be_mapped(std::uint64_t address) {
    const vm::Zone zone = vm::default_zone();
    const bool can = address >= zone.first && address + (std::uint64_t{1} << 34U) <= zone.last;
    BOOST_TEST_MESSAGE((can ? "" : "skipped: heaps can't be mapped at the golden heap's address in this kind of build"));
    return can;
}

void check_content(const ArchiveHeap& heap, const std::vector<golden::Named>& content) {
    BOOST_TEST(HeapAccess::file(heap).engine().roots().size() == content.size());
    for (const golden::Named& named : content) {
        const auto found = heap::find_named(*heap.core(), named.name);
        BOOST_TEST_REQUIRE(found.has_value(), named.name);
        BOOST_TEST(found->bytes == named.bytes.size());
        BOOST_TEST(found->fingerprint == golden::fingerprint);
        BOOST_TEST((std::memcmp(found->object, named.bytes.data(), named.bytes.size()) == 0), named.name);
    }
}

std::span<const std::byte> part(const std::vector<char>& bytes, std::size_t offset, std::size_t size) {
    return std::as_bytes(std::span(bytes)).subspan(offset, size);
}

/// Header fields that are the same in both slots and all golden files.
void check_header(const std::vector<char>& bytes, std::size_t slot, std::uint64_t role, std::uint64_t address) {
    const std::size_t at = slot * 4096;
    BOOST_TEST(std::memcmp(bytes.data() + at, "TYYHEAP\n", 8) == 0);
    BOOST_TEST(number_at(bytes, at + 8, 4) == 1U);  // version
    BOOST_TEST(number_at(bytes, at + 12, 4) == 0x01020304U);
    BOOST_TEST(number_at(bytes, at + 16, 4) == 4096U);  // page size
    BOOST_TEST(is_zero(part(bytes, at + 20, 20)));      // reserved, features
    BOOST_TEST(!is_zero(part(bytes, at + 40, 16)));     // heap uuid
    BOOST_TEST(!is_zero(part(bytes, at + 56, 16)));     // file uuid
    BOOST_TEST(number_at(bytes, at + 104, 4) == role);
    BOOST_TEST(number_at(bytes, at + 108, 4) == 1U);                 // whole
    BOOST_TEST(number_at(bytes, at + 112, 8) % 2 == slot);           // sequence
    BOOST_TEST(number_at(bytes, at + 128, 8) == address);            // base
    BOOST_TEST(number_at(bytes, at + 136, 8) == 256U * 1024U);       // capacity
    BOOST_TEST(number_at(bytes, at + 144, 8) == 86'016U - 12'288U);  // extent
    BOOST_TEST(is_zero(part(bytes, at + 160, 16)));                  // filling generation, serial
    BOOST_TEST(is_zero(part(bytes, at + 232, 4088 - 232)));          // history, padding
    BOOST_TEST(number_at(bytes, at + 4088, 8) == checksum(part(bytes, at, 4088), mix(number_at(bytes, 0, 8), slot)));
}

/// The seed of page and table checksums: kind, heap uuid, number.
std::uint64_t seed(const std::vector<char>& bytes, char what, std::uint64_t number) {
    return mix(mix(number_at(bytes, 40, 8), number_at(bytes, 48, 8) ^ static_cast<unsigned char>(what)), number);
}

void check_table(const std::vector<char>& bytes, std::uint64_t generation) {
    BOOST_TEST(number_at(bytes, 8192, 8) == checksum(part(bytes, 8200, 4088), seed(bytes, 'T', 0)));
    BOOST_TEST(number_at(bytes, 8200, 8) == generation);
    BOOST_TEST(number_at(bytes, 8208, 8) == 0U);  // index
    const std::size_t pages = (bytes.size() - 12'288) / 4096;
    for (std::size_t page = 0; page < 509; ++page) {
        const auto content = page < pages ? part(bytes, 12'288 + page * 4096, 4096) : std::span<const std::byte>();
        const std::uint64_t expected = is_zero(content) ? 0 : checksum(content, seed(bytes, 'P', page));
        BOOST_TEST_REQUIRE(number_at(bytes, 8216 + page * 8, 8) == expected, "page " << page);
    }
    for (const std::size_t slot : {0U, 4096U}) BOOST_TEST(number_at(bytes, slot + 224, 8) == mix(0, number_at(bytes, 8192, 8)));  // table root
}
}  // namespace

BOOST_AUTO_TEST_SUITE(golden_heaps)

BOOST_AUTO_TEST_CASE(the_golden_archive_is_read_without_a_change) {
    const Golden golden("archive-v1");
    const HeapParameters parameters = read_parameters(golden.path);
    BOOST_TEST(parameters.version == 1U);
    BOOST_TEST((parameters.kind == HeapKind::archive));
    BOOST_TEST(parameters.address == golden::archive_address);
    BOOST_TEST(parameters.capacity_bytes == golden::capacity);
    BOOST_TEST(parameters.extent_bytes == 86'016U - 12'288U);
    BOOST_TEST(parameters.generation == 2U);
    BOOST_TEST(parameters.clean);
    if (!can_be_mapped(golden::archive_address)) return;
    const auto before = golden.bytes();
    {
        const ArchiveHeap heap(open_read_only, golden.path);
        check_content(heap, golden::archive_content());
        BOOST_TEST(heap.verify().ok());
        BOOST_TEST(heap.restoration().clean);
    }
    BOOST_TEST((golden.bytes() == before));
}

BOOST_AUTO_TEST_CASE(the_golden_archive_is_opened_changed_and_saved) {
    if (!can_be_mapped(golden::archive_address)) return;
    const Golden golden("archive-v1");
    {
        ArchiveHeap heap(open_only, golden.path);
        check_content(heap, golden::archive_content());
        BOOST_TEST(heap.verify().ok());
        BOOST_TEST(heap.heal() == 0U);
        put(heap, "added", "later");
        heap.deallocate(find(heap, "line"));
        BOOST_TEST(heap::remove_named(*heap.core(), "line"));
        heap.snapshot();
    }
    const ArchiveHeap heap(open_read_only, golden.path);
    BOOST_TEST(get(heap, "added") == "later");
    BOOST_TEST(find(heap, "line") == nullptr);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(the_golden_snapshot_heap_is_read_as_its_journal_says) {
    const Golden golden("snapshot-v1");
    const HeapParameters parameters = read_parameters(golden.path);
    BOOST_TEST((parameters.kind == HeapKind::snapshot));
    BOOST_TEST(parameters.generation == 1U);
    BOOST_TEST(!parameters.clean);
    if (!can_be_mapped(golden::snapshot_address)) return;
    const auto before = std::tuple(golden.bytes(), golden.bytes(".data"), golden.bytes(".journal"));
    {
        const SnapshotHeap heap(open_read_only, golden.path);
        check_content(heap, golden::snapshot_content(3));
        BOOST_TEST(heap.restoration().snapshots_replayed == 2U);
        BOOST_TEST(heap.verify().ok());
    }
    BOOST_TEST((std::tuple(golden.bytes(), golden.bytes(".data"), golden.bytes(".journal")) == before));
}

BOOST_AUTO_TEST_CASE(the_golden_snapshot_heap_is_recovered_changed_and_saved) {
    if (!can_be_mapped(golden::snapshot_address)) return;
    const Golden golden("snapshot-v1");
    {
        SnapshotHeap heap(open_only, golden.path);
        BOOST_TEST(heap.restoration().snapshots_replayed == 2U);
        BOOST_TEST(heap.restoration().records_cut == 0U);
        BOOST_TEST(heap.restoration().headers_repaired == 0U);
        check_content(heap, golden::snapshot_content(3));
        BOOST_TEST(heap.verify().ok());
        put(heap, "added", "later");
        heap.snapshot();
    }
    BOOST_TEST(read_parameters(golden.path).generation >= 4U);
    SnapshotHeap heap(open_only, golden.path);
    BOOST_TEST(heap.restoration().clean);
    BOOST_TEST(get(heap, "added") == "later");
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(the_golden_backing_file_is_rebuilt_when_its_headers_are_lost) {
    if (!can_be_mapped(golden::snapshot_address)) return;
    const Golden golden("snapshot-v1");
    flip_bit(golden.path, 60);
    flip_bit(golden.path, 4096 + 60);
    SnapshotHeap heap(open_only, golden.path);
    BOOST_TEST(heap.restoration().backing_rebuilt);
    check_content(heap, golden::snapshot_content(3));
}

BOOST_AUTO_TEST_CASE(the_bytes_of_the_golden_archive_lie_where_the_format_says) {
    const auto bytes = Golden("archive-v1").bytes();
    for (const std::size_t slot : {0U, 1U}) {
        const std::size_t at = slot * 4096;
        check_header(bytes, slot, 1, golden::archive_address);
        BOOST_TEST(is_zero(part(bytes, at + 72, 32)));    // no data file, no ring
        BOOST_TEST(number_at(bytes, at + 120, 8) == 1U);  // clean
        BOOST_TEST(number_at(bytes, at + 152, 8) == 2U);  // generation
        BOOST_TEST(is_zero(part(bytes, at + 176, 32)));   // ring
        BOOST_TEST(number_at(bytes, at + 208, 8) == 1U);  // its next sequence, were there one
        BOOST_TEST(number_at(bytes, at + 216, 8) == 0U);
    }
    check_table(bytes, 2);
    // The block engine's super block.
    const std::size_t span = 12'288;
    BOOST_TEST(std::memcmp(bytes.data() + span, "TAIYENE1", 8) == 0);
    BOOST_TEST(number_at(bytes, span + 8, 4) == 1U);
    BOOST_TEST(number_at(bytes, span + 12, 4) == 4096U);
    BOOST_TEST(number_at(bytes, span + 16, 8) == 256U * 1024U);
    BOOST_TEST(number_at(bytes, span + 24, 8) == 86'016U - 12'288U);
    // The root directory is where the super block says, with seven names.
    const std::size_t directory = span + number_at(bytes, span + 32, 8);
    BOOST_TEST(std::memcmp(bytes.data() + directory, "TAYNDIR1", 8) == 0);
    BOOST_TEST(number_at(bytes, directory + 12, 4) == 7U);
    // One page has the state of packed blocks with a free slot; its line says 40 bytes, two of them taken, and there they are.
    const std::size_t states = span + 4096;
    std::size_t packed = 0;
    for (std::size_t page = 2; page < 18; ++page)
        packed = (number_at(bytes, states + page / 16 * 8, 8) >> (page % 16 * 4) & 0xFU) == 7 ? page : packed;
    BOOST_TEST_REQUIRE(packed != 0U);
    const std::size_t line = span + 4096 + 64 + (packed - 2) * 64;
    BOOST_TEST(number_at(bytes, line, 8) == 3U);
    BOOST_TEST(is_zero(part(bytes, line + 8, 16)));
    BOOST_TEST(number_at(bytes, line + 24, 8) == 40U);
    BOOST_TEST(is_zero(part(bytes, line + 32, 32)));
    BOOST_TEST((std::memcmp(bytes.data() + span + packed * 4096, golden::pattern(40, 5).data(), 40) == 0));
    BOOST_TEST((std::memcmp(bytes.data() + span + packed * 4096 + 40, golden::pattern(40, 6).data(), 40) == 0));
}

BOOST_AUTO_TEST_CASE(the_bytes_of_the_golden_snapshot_heap_lie_where_the_format_says) {
    const Golden golden("snapshot-v1");
    const auto backing = golden.bytes();
    const auto data = golden.bytes(".data");
    const auto journal = golden.bytes(".journal");
    for (const std::size_t slot : {0U, 1U}) {
        for (const auto* file : {&backing, &data}) {
            const std::size_t at = slot * 4096;
            check_header(*file, slot, file == &backing ? 1 : 2, golden::snapshot_address);
            BOOST_TEST((part(*file, at + 40, 16)[0] == part(backing, 40, 16)[0]));  // one heap
            BOOST_TEST(number_at(*file, at + 72, 8) == number_at(data, 56, 8));     // names the data file
            BOOST_TEST(number_at(*file, at + 88, 8) == number_at(journal, 32, 8));  // and the ring
            BOOST_TEST(number_at(*file, at + 120, 8) == 0U);                        // neither clean nor new
            BOOST_TEST(number_at(*file, at + 152, 8) == 1U);                        // generation
            BOOST_TEST(number_at(*file, at + 176, 4) == 1U);                        // a journal
            BOOST_TEST(number_at(*file, at + 184, 8) == 40U * 1024U);               // its capacity
            BOOST_TEST(number_at(*file, at + 200, 8) == 20U * 1024U);               // where its records begin
            BOOST_TEST(number_at(*file, at + 208, 8) == 2U);                        // with this sequence
        }
    }
    check_table(backing, 1);
    check_table(data, 1);
    // The first record behind the files: a save, its head behind stamp and record header, then its entries.
    const std::size_t record = 8192 + 20 * 1024;
    BOOST_TEST(std::memcmp(journal.data() + record + 16, "tyRC", 4) == 0);
    BOOST_TEST(number_at(journal, record + 20, 4) == 1U);  // images in the record
    BOOST_TEST(number_at(journal, record + 40, 8) == 2U);  // generation as the record's number
    const std::size_t head = record + 16 + 96;
    BOOST_TEST(number_at(journal, head, 8) == 2U);                      // generation
    BOOST_TEST(number_at(journal, head + 16, 8) == 86'016U - 12'288U);  // extent
    const std::uint64_t pages = number_at(journal, head + 24, 8);
    BOOST_TEST(number_at(journal, head + 32, 8) == pages);  // each with its image
    BOOST_TEST(is_zero(part(journal, head + 40, 32)));      // flags, stage, history
    BOOST_TEST(number_at(journal, record + 16 + 40, 8) == 72 + pages * (16 + 4096));
    // The image of the first page, gathered from behind the stamps, has the checksum that its entry says.
    std::vector<char> payload;
    for (std::size_t at = record + 16 + 96 + 72; payload.size() < pages * 16 + 4096; ++at)
        if ((at - record) % 512 >= 16) payload.push_back(journal[at]);
    BOOST_TEST(number_at(payload, 8, 8) == checksum(part(payload, pages * 16, 4096), seed(backing, 'P', number_at(payload, 0, 8))));
}

BOOST_AUTO_TEST_SUITE_END()
