// A follower whose disk fails, or is full, at any step: what it shows is one state between two transactions, and it goes on when the disk does.

#include <cerrno>

#include <boost/test/unit_test.hpp>

#include "crash/replicated_life.hpp"
#include "io/disks/faulty_storage.hpp"
#include "replicate/following.hpp"

using namespace taiyen;

namespace {

using Words = taiyen::vector<std::uint64_t>;
constexpr std::uint64_t transactions = 120;
constexpr std::uint64_t cells = 16;
constexpr std::uint64_t cell_words = 128;
const std::filesystem::path heap_path = "/disk/heap.tyn";
const std::filesystem::path follower_path = "/disk/follower.tyn";

struct Opened {
    std::shared_ptr<store::HeapFile> file;
    TransactionalHeap heap;
};

Opened open(io::Storage& disk, const std::filesystem::path& path, store::OpenMode mode, ByteCount log_bytes, bool follows) {
    PersistentOptions options;
    options.capacity = 8_MiB;
    if (follows) options.capture = Capture::declared;
    options.log_capacity = log_bytes;
    options.snapshot_log_fill = 1;
    options.snapshot_interval = {};
    options.address = 0x2a80'0000'0000;
    store::Tuning tuning;
    if (follows) tuning.role = store::RoleWanted::follower;
    tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
    auto file = store::HeapFile::open(disk, path, mode, HeapKind::transactional, options, tuning);
    return {file, HeapAccess::make<TransactionalHeap>(file)};
}

/// Each transaction leaves its number in one cell.
void transact(TransactionalHeap& heap, std::uint64_t number) {
    Transaction transaction(heap);
    auto& words = *heap.find<Words>("words");
    std::uint64_t* const cell = words.data() + number % cells * cell_words;
    for (std::uint64_t i = 0; i < cell_words; ++i) cell[i] = mix(number, i);
    transaction.commit();
}

/// The first transaction makes the words.
bool is_as_of(const TransactionalHeap& heap, std::uint64_t serial) {
    const Words& words = *heap.find<Words>("words");
    for (std::uint64_t cell = 0; cell < cells; ++cell) {
        std::uint64_t last = serial;
        while (last > 1 && last % cells != cell) --last;
        for (std::uint64_t i = 0; i < cell_words; ++i)
            if (words[cell * cell_words + i] != (last > 1 ? mix(last, i) : 0)) return false;
    }
    return true;
}

/// A target with all, and a follower that has the first transaction.
void prepare(io::SimulatedStorage& disk) {
    crash::add_directories(disk);
    const auto target = ReplicationAccess::directory(disk, crash::frames_path);
    Opened primary = open(disk, heap_path, store::OpenMode::create_only, 1_MiB, false);
    {
        Transaction transaction(primary.heap);
        primary.heap.construct<Words>("words").resize(cells * cell_words);
        transaction.commit();
    }
    replicate::Shipper shipper(*primary.file, *txn::TransactionService::of(*primary.file), *target, 256_KiB);
    shipper.attach();
    primary.heap.close();
    (void)replicate::Restorer(disk, *target, follower_path, {}).run_for_follower();
    primary = open(disk, heap_path, store::OpenMode::open_only, 1_MiB, false);
    replicate::Shipper onward(*primary.file, *txn::TransactionService::of(*primary.file), *target, 256_KiB);
    onward.attach();
    for (std::uint64_t number = 2; number <= transactions; ++number) transact(primary.heap, number);
    onward.ship();  // in one frame, which the follower's log has no room for
    primary.heap.close();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(follow_faults)

BOOST_AUTO_TEST_CASE(what_is_shown_is_one_state_whatever_fails) {
    struct Kind {
        const char* name;
        io::Fault fault;
        bool may_poison;
    };
    const Kind kinds[] = {{"a full disk", {.error = ENOSPC, .calls = io::Call::allocate}, false},
                          {"a full disk that stays so", {.error = ENOSPC, .sticky = true, .calls = io::Call::allocate}, false},
                          {"a call that fails", {.error = EIO}, true}};
    const ReportHandler before = set_report_handler(+[](const Incident&) noexcept {});
    for (const Kind& kind : kinds) {
        std::uint64_t struck = 0;
        for (std::uint64_t at = 1;; ++at) {
            BOOST_TEST_CONTEXT(kind.name << ", call " << at) {
                io::SimulatedStorage disk;
                prepare(disk);
                io::FaultyStorage faulty(disk);
                const auto target = ReplicationAccess::directory(disk, crash::frames_path);
                std::optional<Opened> follower(open(faulty, follower_path, store::OpenMode::open_only, 64_KiB, true));
                std::optional<replicate::Following> following(std::in_place, *follower->file, *txn::TransactionService::of(*follower->file), *target);
                io::Fault fault = kind.fault;
                fault.at = at;
                faulty.arm(fault);
                bool is_poisoned = false;
                for (int tries = 0; tries < 3; ++tries) {
                    try {
                        while (following->step()) {}
                    } catch (const Error&) {
                    } catch (const HeapFull&) {}
                    is_poisoned = follower->file->condition().is_poisoned();
                    if (is_poisoned) break;
                    const ReadLock lock(follower->heap);
                    BOOST_REQUIRE(is_as_of(follower->heap, lock.serial().value));
                }
                const bool has_struck = faulty.fired() != 0;
                faulty.disarm();
                BOOST_TEST((!is_poisoned || kind.may_poison));
                if (is_poisoned) {  // the next opening recovers
                    following.reset();
                    follower.reset();
                    follower.emplace(open(disk, follower_path, store::OpenMode::open_only, 64_KiB, true));
                    following.emplace(*follower->file, *txn::TransactionService::of(*follower->file), *target);
                }
                while (following->step()) {}
                BOOST_TEST(following->applied().value == transactions);
                BOOST_TEST(is_as_of(follower->heap, transactions));
                following.reset();
                follower->heap.close();
                if (!has_struck) break;
                ++struck;
            }
            if (struck != at) break;
        }
        BOOST_TEST(struck > 2U);
    }
    set_report_handler(before);
}

BOOST_AUTO_TEST_SUITE_END()
