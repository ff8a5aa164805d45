// Two files of one heap, on two machines, that both want the place of the one that appends, call by call of the target in every order: exactly one has it afterwards, and whatever either was told to be there is there.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "campaign_factor.hpp"
#include "io/disks/simulated_storage.hpp"
#include "replicate/following.hpp"
#include "replicate/replicated_heap.hpp"
#include "replicate/restorer.hpp"
#include "replicate/shipper.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"

using namespace taiyen;
using namespace taiyen::replicate;
using namespace taiyen::replicate::test;

namespace two_owners {

/// What was committed, in order, by whom.
struct Words {
    static constexpr std::uint64_t room = 64;
    std::uint64_t count;
    std::uint64_t of[room];
};

}  // namespace two_owners

namespace {

using two_owners::Words;

const std::filesystem::path owned_path = "/disk/heap.tyn";

/// Two threads of which one runs at a time; at each call of the target the schedule says which one goes on.
class Turns {
public:
    explicit Turns(std::uint64_t schedule) : random_(schedule) { next_ = static_cast<unsigned>(random_() % 2); }
    void begin(unsigned who) { wait(who); }
    void call(unsigned who) {
        if (ended_[1 - who]) return;
        give(static_cast<unsigned>(random_() % 2));
        wait(who);
    }
    void end(unsigned who) {
        ended_[who] = true;
        give(1 - who);
    }

private:
    void give(unsigned who) {
        next_ = who;
        next_.notify_all();
    }
    void wait(unsigned who) {
        while (next_ != who) next_.wait(1 - who);
    }

    std::mt19937_64 random_;
    std::atomic<unsigned> next_;
    std::array<std::atomic<bool>, 2> ended_{};
};

/// The target as one of them has it.
class SteppedTarget final : public ReplicationTarget {
public:
    SteppedTarget(PretendedTarget& shared, unsigned who) : shared_(shared), who_(who) {}
    Turns* turns = nullptr;  ///< null: calls go on at once

    std::string name() const override { return "shared"; }
    Range range() override { return step().range(); }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override { return step().append(number, frame); }
    std::vector<std::byte> read(std::uint64_t number) override { return step().read(number); }
    void trim(std::uint64_t first) override { step().trim(first); }

private:
    PretendedTarget& step() {
        if (turns != nullptr) turns->call(who_);
        return shared_;
    }
    PretendedTarget& shared_;
    const unsigned who_;
};

/// A file of the heap on a machine of its own.
class Owner {
public:
    Owner(PretendedTarget& shared, unsigned who) : target_(shared, who), who_(who) { disk_.add_directory("/disk"); }

    io::SimulatedStorage& disk() { return disk_; }
    SteppedTarget& target() { return target_; }
    const std::vector<std::uint64_t>& told() const { return told_; }

    void open(store::OpenMode mode, bool follows = false) {
        PersistentOptions options;
        options.capacity = 1_MiB;
        options.log_capacity = 64_KiB;
        options.position_independent = true;
        if (follows) options.capture = Capture::declared;
        options.snapshot_log_fill = 1;
        options.snapshot_interval = {};
        store::Tuning tuning;
        if (follows) tuning.role = store::RoleWanted::follower;
        tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
        file_ = store::HeapFile::open(disk_, owned_path, mode, HeapKind::transactional, options, tuning);
        heap_.emplace(HeapAccess::make<TransactionalHeap>(file_));
    }
    void attach() {
        shipper_.emplace(*file_, *txn::TransactionService::of(*file_), target_, 1);
        shipper_->attach();
        is_attached_ = true;
    }
    /// Commits another word; told when the target has it.
    void transact() {
        Transaction transaction(*heap_);
        auto& words = heap_->find_or_construct<Words>("words");
        const std::uint64_t word = std::uint64_t{who_ + 1} << 32U | ++made_;
        words.of[words.count % Words::room] = word;
        ++words.count;
        const Serial serial = transaction.commit();
        shipper_->ship();
        if (shipper_->shipped() >= serial) told_.push_back(word);
    }
    void promote() {
        Following following(*file_, *txn::TransactionService::of(*file_), target_);
        while (following.step()) {}
        following.take_over();
    }
    const Words* words() const { return heap_->find<Words>("words"); }
    bool is_attached() const { return is_attached_; }
    void close() {
        shipper_.reset();
        if (heap_) heap_->close();
        heap_.reset();
        file_.reset();
    }
    /// It is what it was when the disk was marked.
    void forget() {
        shipper_.reset();
        disk_.rollback();
        try {
            heap_.reset();
            file_.reset();
        } catch (const std::exception&) {  // its disk is another one now
        }
        told_.clear();
        made_ = 0;
        is_attached_ = false;
    }

private:
    io::SimulatedStorage disk_;
    SteppedTarget target_;
    const unsigned who_;
    std::shared_ptr<store::HeapFile> file_;
    std::optional<TransactionalHeap> heap_;
    std::optional<Shipper> shipper_;
    std::vector<std::uint64_t> told_;
    std::uint64_t made_ = 0;
    bool is_attached_ = false;
};

bool is_refusal(const Error& error) { return error.code() == errc::fenced || error.code() == errc::diverged || error.code() == errc::follower; }

/// Whether it got through.
template <class F>
bool unless_refused(F&& does) {
    try {
        does();
        return true;
    } catch (const Error& error) {
        if (!is_refusal(error)) throw;
        return false;
    }
}

void copy_file(io::Storage& from, io::Storage& to, const std::filesystem::path& path) {
    const auto source = from.open(path, io::Access::read_only);
    std::vector<std::byte> bytes(source->info().size_bytes);
    (void)source->read(bytes, 0);
    to.create(path)->write(bytes, 0);
}

/// What one of them is before: the file of the primary, or a follower that takes over.
enum class Part { file, follower };

/// What the two were before each schedule, and one schedule after the other.
class Pair {
public:
    Pair(Part one, Part other) : parts_{one, other} {
        Owner primary(shared_, 2);
        primary.open(store::OpenMode::create_only);
        primary.attach();
        primary.transact();
        primary.close();
        told_before_ = primary.told();
        frames_ = shared_.frames();
        for (const unsigned who : {0U, 1U}) {
            io::SimulatedStorage& disk = owners_[who].disk();
            if (parts_[who] == Part::follower)
                Restorer(disk, shared_, owned_path, {}).run_for_follower();
            else
                for (const std::string& name : primary.disk().list("/disk")) copy_file(primary.disk(), disk, owned_path.parent_path() / name);
            disk.mark();
        }
    }

    /// Throws: what isn't as it must be.
    void run(std::uint64_t schedule) {
        Turns turns(schedule);
        std::array<std::exception_ptr, 2> failures;
        const auto live = [&](unsigned who) {
            turns.begin(who);
            owners_[who].target().turns = &turns;
            try {
                (void)unless_refused([&] { life(owners_[who], parts_[who]); });
            } catch (...) {
                failures[who] = std::current_exception();
            }
            owners_[who].target().turns = nullptr;
            turns.end(who);
        };
        {
            const std::jthread other(live, 1);
            live(0);
        }
        for (const std::exception_ptr& failure : failures)
            if (failure) std::rethrow_exception(failure);
        unsigned going_on = 0;
        for (Owner& owner : owners_) going_on += owner.is_attached() && unless_refused([&] { owner.transact(); }) ? 1 : 0;
        if (going_on != 1) throw std::runtime_error(std::to_string(going_on) + " of them go on");
        for (Owner& owner : owners_) owner.close();
        (void)replica_info(shared_, true);
        const std::vector<std::uint64_t> words = restored();
        for (const auto& told : {told_before_, owners_[0].told(), owners_[1].told()}) {
            auto at = words.begin();
            for (const std::uint64_t word : told) {
                at = std::find(at, words.end(), word);
                if (at == words.end()) throw std::runtime_error("a transaction that was there is gone");
            }
        }
    }
    void reset() {
        for (Owner& owner : owners_) owner.forget();
        shared_.replace(frames_);
    }

private:
    static void life(Owner& owner, Part part) {
        if (part == Part::follower) {
            owner.open(store::OpenMode::open_only, true);
            owner.promote();
            owner.close();
        }
        owner.open(store::OpenMode::open_only);
        owner.attach();
        for (int i = 0; i < 2; ++i) owner.transact();
    }
    std::vector<std::uint64_t> restored() {
        Owner reader(shared_, 2);
        Restorer(reader.disk(), shared_, owned_path, {}).run();
        reader.open(store::OpenMode::open_only);
        const Words& words = *reader.words();
        std::vector<std::uint64_t> all(words.of, words.of + words.count);
        reader.close();
        return all;
    }

    const std::array<Part, 2> parts_;
    PretendedTarget shared_;
    std::array<Owner, 2> owners_{Owner{shared_, 0}, Owner{shared_, 1}};
    std::map<std::uint64_t, std::vector<std::byte>> frames_;
    std::vector<std::uint64_t> told_before_;
};

/// The first schedule from `first` on that goes wrong; nothing: none of so many does.
std::optional<std::string> first_wrong(Part one, Part other, std::uint64_t first, int schedules) {
    Pair pair(one, other);
    for (std::uint64_t schedule = first; schedule < first + static_cast<std::uint64_t>(schedules); ++schedule) {
        pair.reset();
        try {
            pair.run(schedule);
        } catch (const std::exception& error) {
            return "schedule " + std::to_string(schedule) + ": " + error.what();
        }
    }
    return std::nullopt;
}

struct Case {
    const char* name;
    Part one;
    Part other;
};
constexpr std::array<Case, 3> cases{{{"two copies of a file", Part::file, Part::file},
                                     {"a file and a follower", Part::file, Part::follower},
                                     {"two followers", Part::follower, Part::follower}}};

}  // namespace

BOOST_AUTO_TEST_SUITE(two_owners_at_once)

BOOST_AUTO_TEST_CASE(exactly_one_has_the_place_in_every_order_of_their_calls) {
    const Quiet quiet;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const Case& which : cases) {
        const auto wrong = first_wrong(which.one, which.other, seed, taiyen::test::rounds(400));
        BOOST_TEST(!wrong.has_value(), which.name << ": " << wrong.value_or(""));
    }
}

BOOST_AUTO_TEST_CASE(owners_that_did_not_look_would_be_seen) {
    const Quiet quiet;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const Bug bug : {Bug::refused_appended_anyway, Bug::promoted_before_end}) {
        const Planted planted(bug);
        bool is_seen = false;
        for (const Case& which : cases) is_seen = is_seen || first_wrong(which.one, which.other, seed, 400).has_value();
        BOOST_TEST(is_seen);
    }
}

BOOST_AUTO_TEST_SUITE_END()
