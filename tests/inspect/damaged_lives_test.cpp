// Damaged heaps of every kind, closed or as a crash left them, that a program goes on working with: at the end the content is right, or somebody has said that it is not.
//
// What the program stores follows from nothing that it reads. A run takes a sample; TAIYEN_CORRUPTIONS=30000 asks for so many (`ctest -C campaign -R campaign.damaged_lives`).

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>
#include <taiyen/taiyen.hpp>

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "io/disks/simulated_node.hpp"
#include "io/disks/simulated_storage.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace {

using namespace taiyen;
using store::HeapFile;
using store::OpenMode;

using Model = std::map<std::string, std::string>;
using Files = std::map<std::string, std::vector<std::byte>>;

const std::filesystem::path place = "/disk/a.tyn";
constexpr std::array suffixes{"", ".data", ".journal", ".log"};

struct Subject {
    HeapKind kind;
    bool with_data;
    bool crashed;
    const char* name;
};
constexpr std::array subjects{
    Subject{HeapKind::archive, false, false, "archive"},
    Subject{HeapKind::archive, false, true, "archive, crashed"},
    Subject{HeapKind::snapshot, true, false, "snapshot"},
    Subject{HeapKind::snapshot, true, true, "snapshot, crashed"},
    Subject{HeapKind::transactional, false, false, "transactional"},
    Subject{HeapKind::transactional, false, true, "transactional, crashed"},
    Subject{HeapKind::transactional, true, false, "transactional with data"},
    Subject{HeapKind::transactional, true, true, "transactional with data, crashed"},
};

PersistentOptions options_of(const Subject& subject, Verify verify) {
    PersistentOptions options;
    options.capacity = 1_MiB;
    options.log_capacity = 64_KiB;
    options.verify = verify;
    options.address = 0x2b00'0000'0000;
    if (subject.with_data) options.data_file = place.string() + ".data";
    return options;
}

/// A heap that is open, and what was acknowledged of it.
class Life {
public:
    Life(io::Storage& disk, const Subject& subject, OpenMode mode, Verify verify) : subject_(subject) {
        const PersistentOptions options = options_of(subject, verify);
        file_ = HeapFile::open(disk, place, mode, subject.kind, options, store::Tuning{32768});
        if (subject.kind == HeapKind::transactional) {
            txn::TransactionService::join(*file_, options);
            transactional_.emplace(HeapAccess::make<TransactionalHeap>(file_));
        } else {
            archive_.emplace(HeapAccess::make<ArchiveHeap>(file_));
        }
    }
    ArchiveHeap& heap() { return transactional_ ? *transactional_ : *archive_; }
    HeapFile& file() { return *file_; }
    /// Grows by one with each step.
    std::uint64_t progress() const {
        return transactional_ ? txn::TransactionService::of(*file_)->last_committed().value : file_->files().point().generation.value;
    }

    /// One step of the program, acknowledged when it returns.
    void step(std::mt19937_64& random, Model& acknowledged) {
        Model next = acknowledged;
        if (transactional_) {
            Transaction transaction(*transactional_);
            edit(random, next);
            transaction.commit();
        } else {
            edit(random, next);
            archive_->snapshot();
        }
        acknowledged = std::move(next);
    }

private:
    void edit(std::mt19937_64& random, Model& model) {
        const std::uint64_t what = model.empty() ? 0 : random() % 8;
        if (what < 2) {
            const std::string name = "n" + std::to_string(random());
            const std::string bytes(1 + random() % (random() % 4 == 0 ? 6000 : 300), static_cast<char>(random() % 4 == 0 ? 0 : 'a' + random() % 26));
            auto* const block = static_cast<char*>(heap().allocate(bytes.size()));
            bytes.copy(block, bytes.size());
            heap::add_named(*heap().core(), name, {block, bytes.size(), 1, "bytes"});
            model[name] = bytes;
            return;
        }
        auto at = model.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % model.size()));
        const auto found = heap::find_named(*heap().core(), at->first);
        if (!found || found->bytes != at->second.size()) return;
        auto* const block = static_cast<char*>(found->object);
        if (what == 2) {
            heap::remove_named(*heap().core(), at->first);
            heap().deallocate(block);
            model.erase(at);
            return;
        }
        const std::size_t first = random() % at->second.size();
        const std::size_t length = 1 + random() % std::min<std::size_t>(at->second.size() - first, 700);
        const std::string bytes(length, static_cast<char>(what < 6 ? 0 : 'A' + random() % 26));
        bytes.copy(block + first, length);
        at->second.replace(first, length, bytes);
    }

    const Subject& subject_;
    std::shared_ptr<HeapFile> file_;
    std::optional<ArchiveHeap> archive_;
    std::optional<TransactionalHeap> transactional_;
};

Files taken_from(const io::SimulatedStorage& disk) {
    Files files;
    for (const char* suffix : suffixes)
        if (const auto node = disk.node(place.string() + suffix)) files[suffix].assign(node->data(), node->data() + node->size_bytes());
    return files;
}

void put_into(io::SimulatedStorage& disk, const Files& files) {
    disk.add_directory("/disk");
    for (const auto& [suffix, bytes] : files) {
        const auto file = disk.create(place.string() + suffix);
        file->write(bytes, 0);
        file->sync();
    }
    disk.sync_directory("/disk");
}

/// What lies on the disk, and what the program was told before.
struct Left {
    Files files;
    Files earlier;  ///< of a save before
    Model acknowledged;
    Model before_last;  ///< of the step before: a last record that was damaged may look like one that was never written
    std::uint64_t progress = 0;
};

Left live(const Subject& subject, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    Left left;
    std::optional<Life> life(std::in_place, disk, subject, OpenMode::create_only, Verify::changes);
    for (int i = 0; i < 40; ++i) life->step(random, left.acknowledged);
    life->heap().snapshot();
    if (subject.kind != HeapKind::transactional) life->file().saves().checkpoint();
    left.earlier = taken_from(disk);
    for (int i = 0; i < 10; ++i) life->step(random, left.acknowledged);
    life->heap().snapshot();
    if (subject.kind != HeapKind::transactional) life->file().saves().checkpoint();
    for (int i = 0; i < 4; ++i) {
        const Model before = left.acknowledged;
        life->step(random, left.acknowledged);
        if (std::exchange(left.progress, life->progress()) != life->progress()) left.before_last = before;  // else it changed nothing
    }
    if (subject.crashed) {
        left.files = taken_from(disk);
        return left;
    }
    life->heap().close();
    life.reset();
    left.files = taken_from(disk);
    return left;
}

/// Of the ring one place at most: what two of them may leave is a ring that ends earlier.
void damage(Left& left, std::mt19937_64& random) {
    bool has_ring = true;
    for (std::uint64_t places = 1 + (random() % 8 == 0 ? random() % 20 : 0); places > 0; --places) {
        auto chosen = left.files.begin();
        std::advance(chosen, static_cast<std::ptrdiff_t>(random() % left.files.size()));
        std::vector<std::byte>& bytes = chosen->second;
        const bool is_ring = chosen->first == ".journal" || chosen->first == ".log";
        if (bytes.empty() || (is_ring && !std::exchange(has_ring, false))) continue;
        const std::uint64_t at = random() % bytes.size();
        const std::uint64_t how = random() % 32;
        if (how == 0) {
            bytes.resize(at);
            continue;
        }
        const ByteCount unit = how < 8 ? 1 : how < 20 ? io::sector_bytes : page_bytes;
        const std::uint64_t first = round_down(at, unit);
        const std::uint64_t end = std::min<std::uint64_t>(first + unit, bytes.size());
        const std::vector<std::byte>& earlier = left.earlier[chosen->first];
        for (std::uint64_t i = first; i < end; ++i)
            if (how < 4)
                bytes[i] ^= static_cast<std::byte>(1U << random() % 8);
            else if (how < 8 || (how >= 14 && how < 18))
                bytes[i] = static_cast<std::byte>(random());
            else if (how < 14 || how == 20)
                bytes[i] = std::byte{0};
            else if (i < earlier.size())
                bytes[i] = earlier[i];  // a write that the device lost
    }
}

enum class Outcome { right, told, refused };

/// Whether all of the heap is what was acknowledged; nothing: somebody says that it isn't sound.
std::optional<bool> is_right(io::SimulatedStorage& disk, const Subject& subject, const Model& model) {
    Life reader(disk, subject, OpenMode::read_only, Verify::changes);
    if (!reader.heap().verify().ok()) return std::nullopt;
    std::size_t count = 0;
    for (const heap::Root& root : std::as_const(reader.file()).engine().roots()) {
        const auto expected = model.find(root.name);
        if (expected == model.end() || root.bytes != expected->second.size()) return false;
        const auto* const bytes = reinterpret_cast<const char*>(reader.file().ranges().durable + root.object.value);
        if (std::string_view(bytes, root.bytes) != expected->second) return false;
        ++count;
    }
    return count == model.size();
}

Outcome go_on(const Subject& subject, const Left& left, std::mt19937_64& random) {
    io::SimulatedStorage disk;
    put_into(disk, left.files);
    Model model = left.acknowledged;
    Outcome outcome = Outcome::right;
    try {
        constexpr std::array ways{Verify::automatic, Verify::changes, Verify::at_opening};
        Life life(disk, subject, OpenMode::open_only, ways[random() % ways.size()]);
        if (subject.crashed && life.progress() + 1 == left.progress) model = left.before_last;
        for (int i = 0; i < 6; ++i) life.step(random, model);
        if (random() % 2 == 0) {
            life.heap().heal();
            for (int i = 0; i < 3; ++i) life.step(random, model);
        }
        life.heap().close();
    } catch (const Error&) {
        outcome = Outcome::refused;
    }
    disk.disconnect();
    try {
        const std::optional<bool> right = is_right(disk, subject, model);
        if (!right) return Outcome::told;
        BOOST_TEST_REQUIRE(*right, "the heap is sound, and its content is wrong");
    } catch (const Error&) {
        return Outcome::refused;
    }
    return outcome;
}

/// Incidents are part of the outcome.
struct Silence {
    ReportHandler before = set_report_handler(+[](const Incident&) noexcept {});
    ~Silence() { set_report_handler(before); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(damaged_lives)

BOOST_AUTO_TEST_CASE(a_program_that_goes_on_has_what_was_acknowledged_or_is_told) {
    const Silence silence;
    const char* const asked = std::getenv("TAIYEN_CORRUPTIONS");
    const std::uint64_t rounds = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 1200;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    std::array<std::uint64_t, 3> outcomes{};
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const Subject& subject = subjects[round % subjects.size()];
        std::mt19937_64 random(seed + round);
        BOOST_TEST_CONTEXT(subject.name << ", round " << round) {
            Left left = live(subject, seed + round / 64);
            damage(left, random);
            ++outcomes[static_cast<std::size_t>(go_on(subject, left, random))];
        }
    }
    BOOST_TEST_MESSAGE(outcomes[0] << " right, " << outcomes[1] << " told, " << outcomes[2] << " refused");
    BOOST_TEST(outcomes[0] > rounds / 8);  // what has a second copy goes on
    BOOST_TEST(outcomes[1] + outcomes[2] > rounds / 8);
}

BOOST_AUTO_TEST_SUITE_END()
