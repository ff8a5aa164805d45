// Transactional heaps of format version 1, clean and crashed, are opened and hold what they held (golden/README.md).

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include <boost/test/unit_test.hpp>

#include <taiyen/change/procedure.hpp>

#include "io/storage.hpp"
#include "log/group.hpp"
#include "store/header.hpp"
#include "txn/record_layout.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

using StoredInts = taiyen::vector<std::int32_t>;
using StoredNames = taiyen::map<taiyen::string, std::int32_t>;

constexpr std::size_t capacity = 512 * 1024;
constexpr std::size_t log_capacity = 64 * 1024;
constexpr std::size_t backing_bytes = 8192 + 4096 + capacity;  // at most; what the header speaks of may be less

void change(TransactionalHeap& heap, int transaction) {
    switch (transaction) {
        case 1: heap.construct<StoredInts>("ints", 100U, 7); break;
        case 2: heap.construct<StoredNames>("names").emplace("one", 1); break;
        case 3: heap.find<StoredNames>("names")->emplace("a name that does not fit into the string itself", 2); break;
        case 4: heap.find<StoredInts>("ints")->assign(9000, 5); break;  // the heap grows
        case 5: std::memset(heap.find<StoredInts>("ints")->data() + 1000, 0, 4000 * sizeof(std::int32_t)); break;
        case 6:
            heap.find<StoredNames>("names")->erase("one");
            (*heap.find<StoredInts>("ints"))[8999] = 6;
            break;
        default: break;
    }
}

void register_once() {
    static const bool done = [] {
        const auto add = [](ProcedureHeap&, StoredInts* ints, std::int32_t summand) {
            for (std::int32_t& value : *ints) value += summand;
        };
        register_procedure("golden add", add, [add](ProcedureHeap& heap, StoredInts* ints, std::int32_t summand) { add(heap, ints, -summand); });
        return true;
    }();
    (void)done;
}

void check_content(const TransactionalHeap& heap, int transactions) {
    const StoredInts* const ints = heap.find<StoredInts>("ints");
    const StoredNames* const names = heap.find<StoredNames>("names");
    BOOST_REQUIRE((ints != nullptr && names != nullptr));
    if (transactions == 2) {
        BOOST_TEST((std::vector<std::int32_t>(ints->begin(), ints->end()) == std::vector<std::int32_t>(100, 7)));
        BOOST_TEST(names->size() == 1U);
        BOOST_TEST(names->at("one") == 1);
        return;
    }
    std::vector<std::int32_t> expected(9000, 5);
    std::fill_n(expected.begin() + 1000, 4000, 0);
    expected[8999] = 6;
    for (std::int32_t& value : expected) value += 3;
    BOOST_TEST((std::vector<std::int32_t>(ints->begin(), ints->end()) == expected));
    BOOST_TEST(names->size() == 1U);
    BOOST_TEST((names->begin()->first == "a name that does not fit into the string itself"));
    BOOST_TEST(names->begin()->second == 2);
}

PersistentOptions golden_options() {
    PersistentOptions options;
    options.capacity = capacity;
    options.log_capacity = log_capacity;
    options.address = 0x2b20'0000'0000;
    return options;
}

std::filesystem::path stored(const char* name) { return std::filesystem::path(TAIYEN_TESTS_DIR) / "txn" / "golden" / name; }

/// Into `folder`, without the zeros at their ends.
void write_golden(const std::filesystem::path& folder) {
    const auto keep = [&](const std::filesystem::path& from, const char* name) {
        std::ifstream file(from, std::ios::binary);
        std::string bytes{std::istreambuf_iterator<char>(file), {}};
        bytes.erase(bytes.find_last_not_of('\0') + 1);
        std::ofstream(folder / name, std::ios::binary) << bytes;
    };
    const ScratchDirectory directory;
    const std::filesystem::path path = directory / "heap.tyn";
    TransactionalHeap heap(create_only, path, golden_options());
    for (int i = 1; i <= 2; ++i) transact(heap, [&] { change(heap, i); });
    heap.close();
    keep(path, "clean-v1.tyn");
    heap = TransactionalHeap(open_only, path, golden_options());
    {
        const auto saves = HeapAccess::file(heap).files().hold_saves();
        for (int i = 3; i <= 6; ++i) transact(heap, [&] { change(heap, i); });
        Transaction transaction(heap);
        transaction.call("golden add", heap.find<StoredInts>("ints"), std::int32_t{3});
        transaction.commit();
        keep(path, "crashed-v1.tyn");
        keep(path.string() + ".log", "crashed-v1.tyn.log");
    }
    heap.close();
}

struct GoldenFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";

    GoldenFixture() { register_once(); }
    void copy(const char* name, const std::filesystem::path& to, std::size_t bytes) {
        std::filesystem::copy_file(stored(name), to);
        std::filesystem::permissions(to, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
        std::filesystem::resize_file(to, bytes);
    }
    void copy_crashed() {
        copy("crashed-v1.tyn", path, backing_bytes);
        copy("crashed-v1.tyn.log", path.string() + ".log", log::Ring::header_bytes + log_capacity);
    }
};

BOOST_FIXTURE_TEST_SUITE(golden, GoldenFixture)

BOOST_AUTO_TEST_CASE(golden_heaps_are_written_when_somebody_asks_for_them) {
    if (const char* const folder = std::getenv("TAIYEN_WRITE_TXN_GOLDEN"); folder != nullptr) write_golden(folder);
    BOOST_TEST(std::filesystem::exists(stored("crashed-v1.tyn.log")));
}

BOOST_AUTO_TEST_CASE(a_clean_heap_of_version_1_is_opened_and_changed) {
    copy("clean-v1.tyn", path, backing_bytes);
    {
        const TransactionalHeap reader(open_read_only, path);
        BOOST_TEST(reader.restoration().clean);
        check_content(reader, 2);
    }
    TransactionalHeap heap(open_only, path, golden_options());
    BOOST_TEST(heap.last_durable().value == 2U);
    check_content(heap, 2);
    Transaction transaction(heap);
    change(heap, 3);
    BOOST_TEST(transaction.commit().value == 3U);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_crashed_heap_of_version_1_is_replayed) {
    copy_crashed();
    {
        const TransactionalHeap reader(open_read_only, path);
        BOOST_TEST(!reader.restoration().clean);
        BOOST_TEST(reader.restoration().transactions_replayed == 5U);
        check_content(reader, 7);
    }
    {
        TransactionalHeap heap(open_only, path, golden_options());
        BOOST_TEST(heap.restoration().transactions_replayed == 5U);
        BOOST_TEST(heap.last_durable().value == 7U);
        check_content(heap, 7);
        BOOST_TEST(heap.verify().ok());
    }
    const ArchiveHeap lower(open_read_only, path);
    BOOST_TEST(lower.find<StoredInts>("ints")->size() == 9000U);
}

BOOST_AUTO_TEST_CASE(the_log_of_version_1_has_its_transactions_where_the_format_says) {
    copy_crashed();
    const store::Slots slots = store::read_slots(*io::posix_storage().open(path, io::Access::read_only));
    const store::Header* const header = slots.newest();
    BOOST_REQUIRE(header != nullptr);
    BOOST_TEST(header->serial.value == 2U);
    const auto file = io::posix_storage().open(path.string() + ".log", io::Access::read_only);
    const log::RingIdentity identity = log::Ring::read_identity(*file);
    BOOST_TEST((identity.ring == header->ring));
    std::vector<std::uint64_t> serials;
    std::uint32_t calls = 0;
    const log::ScanResult result = log::Ring::scan(*file, identity, header->ring_start, [&](const log::Record& group) {
        BOOST_TEST(group.kind == 3U);
        std::uint32_t records[2];
        std::memcpy(records, group.payload.data(), sizeof records);
        BOOST_TEST(records[0] == 1U);  // one thread waited for each
        std::uint32_t first[2];
        std::memcpy(first, group.payload.data() + 8, sizeof first);
        txn::layout::RecordHead head{};
        std::memcpy(&head, group.payload.data() + 16, sizeof head);
        BOOST_TEST(head.redo_bytes + sizeof head == first[0]);
        BOOST_TEST(head.serial == group.number);
        BOOST_TEST(head.extent % 4096 == 0U);
        calls += head.flags & txn::layout::record_needs_heap;
        serials.push_back(head.serial);
        return true;
    });
    BOOST_TEST((result.how == log::ScanEnd::end));
    BOOST_TEST((serials == std::vector<std::uint64_t>{3, 4, 5, 6, 7}));
    BOOST_TEST(calls == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
