// Every order in which a few committers can append and wait while the disk holds a write, lets it go, or makes it fail: after each step the log is compared with a model (G1 to G3), once every
// thread has come as far as it gets.

#include "log/group_log.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "group_log_fixture.hpp"

BOOST_AUTO_TEST_SUITE(group_log_walk)

namespace {

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;

/// A thread that does one thing after the other as it is told.
class Worker {
public:
    Worker() : thread_([this] { run(); }) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() {
        tell([] {}, true);
        thread_.join();
    }
    void tell(std::function<void()> action) { tell(std::move(action), false); }
    bool is_busy() const { return busy_; }
    /// What the kernel says of the thread; nothing: it runs, or it is about to.
    std::optional<std::string> sleeping() const {
        std::string told;
        std::ifstream status("/proc/self/task/" + std::to_string(id_) + "/status");
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("State:") && line.find('S') == line.rfind('S')) return std::nullopt;  // "State: S (sleeping)" has one more
            if (line.starts_with("State:") || line.find("ctxt_switches") != std::string::npos) told += line;
        }
        return told.empty() ? std::nullopt : std::optional(told);  // it has not begun
    }

private:
    void tell(std::function<void()> action, bool over) {
        const std::lock_guard lock(mutex_);
        action_ = std::move(action);
        busy_ = true;
        over_ = over;
        told_.notify_one();
    }
    void run() {
        std::unique_lock lock(mutex_);
        id_ = ::gettid();
        while (!over_) {
            told_.wait(lock, [this] { return busy_.load(); });
            const auto action = std::move(action_);
            lock.unlock();
            action();
            lock.lock();
            busy_ = false;
        }
    }

    std::mutex mutex_;
    std::condition_variable told_;
    std::function<void()> action_;
    std::atomic<bool> busy_{false};
    bool over_ = false;
    std::atomic<pid_t> id_{0};
    std::thread thread_;
};

/// Returns when all threads sleep and none of them has run while they were looked at: nobody but the caller can wake one.
void let_all_come_to_rest(const std::vector<std::unique_ptr<Worker>>& workers) {
    const auto look = [&] {
        std::string told;
        for (const auto& worker : workers) {
            const auto one = worker->sleeping();
            if (!one) return std::string();
            told += *one;
        }
        return told;
    };
    for (;;) {
        const std::string before = look();
        if (!before.empty() && look() == before) return;
        std::this_thread::yield();
    }
}

/// What a committer does: appends, or waits for its n-th record, n from 1.
constexpr unsigned append = 0;
using Program = std::vector<unsigned>;

enum class Outcome { none, returned, poisoned };

/// One order of steps. `choose(n)` says which of n is taken next.
class Walk {
public:
    Walk(const std::vector<Program>& programs, const std::function<std::size_t(std::size_t)>& choose) : choose_(choose) {
        for (const Program& program : programs) {
            committers_.push_back({program, {}, 0, {}, {}});
            workers_.push_back(std::make_unique<Worker>());
        }
        outcomes_ = std::vector<std::atomic<Outcome>>(programs.size());
        fixture_.file->hold();
        fixture_.log->on_failure = [this] {
            ++failures_;
            for (const auto& outcome : outcomes_) told_too_early_ = told_too_early_ || outcome == Outcome::poisoned;
        };
    }
    ~Walk() { fixture_.file->let_go(); }
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    void run() {
        while (step()) {
            BOOST_TEST_CONTEXT("order " << order_) { expect_model(); }
        }
        BOOST_TEST((poisoned_ || durable_ == appended_));
        BOOST_TEST(fixture_.groups() == groups_, boost::test_tools::per_element());
    }

private:
    struct Committer {
        Program program;
        std::vector<std::uint64_t> serials;
        std::uint64_t waits_for = 0;  ///< 0: for none
        std::size_t next{};
        Outcome outcome{};  ///< of its last step
    };

    bool step() {
        std::vector<std::size_t> able;
        for (std::size_t i = 0; i < committers_.size(); ++i)
            if (committers_[i].waits_for == 0 && committers_[i].next < committers_[i].program.size()) able.push_back(i);
        const std::size_t choices = able.size() + (writing_ != 0 ? 2 : 0);
        if (choices == 0) return false;
        const std::size_t choice = choose_(choices);
        if (choice < able.size())
            act(able[choice]);
        else
            write_ends(choice == able.size());
        let_all_come_to_rest(workers_);
        return true;
    }

    void act(std::size_t number) {
        Committer& committer = committers_[number];
        const unsigned what = committer.program[committer.next++];
        order_ += static_cast<char>((what == append ? 'A' : 'a') + number);
        std::atomic<Outcome>& outcome = outcomes_[number];
        outcome = Outcome::none;
        committer.outcome = Outcome::returned;
        if (what == append) {
            workers_[number]->tell([&] { outcome = throws(errc::poisoned, [&] { fixture_.append(100); }) ? Outcome::poisoned : Outcome::returned; });
            if (poisoned_)
                committer.outcome = Outcome::poisoned;
            else
                committer.serials.push_back(++appended_);
            return;
        }
        if (committer.serials.size() < what) return void(outcome = Outcome::returned);  // it wasn't appended
        const Serial serial{committer.serials[what - 1]};
        workers_[number]->tell([this, &outcome, serial] {
            outcome = throws(errc::poisoned, [&] { fixture_.log->wait_durable(serial); }) ? Outcome::poisoned : Outcome::returned;
        });
        if (serial.value <= durable_) return;
        committer.outcome = poisoned_ ? Outcome::poisoned : Outcome::none;
        if (poisoned_) return;
        committer.waits_for = serial.value;
        if (writing_ == 0) write_begins();
    }

    void write_begins() {
        groups_.push_back(appended_ - durable_);
        writing_ = appended_;
        ++writes_;
    }

    void write_ends(bool well) {
        order_ += well ? '+' : '-';
        if (!well) fixture_.file->fail();
        fixture_.file->let_one_go();
        if (well) {
            durable_ = writing_;
        } else {
            poisoned_ = true;
            groups_.pop_back();
        }
        writing_ = 0;
        bool somebody_waits = false;
        for (Committer& committer : committers_) {
            if (committer.waits_for == 0) continue;
            if (committer.waits_for <= durable_ || poisoned_) {
                committer.outcome = committer.waits_for <= durable_ ? Outcome::returned : Outcome::poisoned;
                committer.waits_for = 0;
            } else {
                somebody_waits = true;
            }
        }
        if (somebody_waits) write_begins();
    }

    void expect_model() {
        const GroupLog& log = *fixture_.log;
        BOOST_TEST(log.appended().value == appended_);
        BOOST_TEST(log.durable().value == durable_);
        BOOST_TEST(log.durable_point().serial.value == durable_);
        BOOST_TEST(log.poisoned() == poisoned_);
        BOOST_TEST(fixture_.file->writes() == writes_);
        BOOST_TEST(fixture_.file->holds_a_write() == (writing_ != 0));
        BOOST_TEST(failures_ == (poisoned_ ? 1U : 0U));
        BOOST_TEST(!told_too_early_);
        for (std::size_t i = 0; i < committers_.size(); ++i) {
            BOOST_TEST(workers_[i]->is_busy() == (committers_[i].waits_for != 0), "committer " << i);
            BOOST_TEST((outcomes_[i] == committers_[i].outcome), "committer " << i);
        }
    }

    const std::function<std::size_t(std::size_t)>& choose_;
    GroupLogFixture fixture_;
    std::vector<Committer> committers_;
    std::vector<std::atomic<Outcome>> outcomes_;
    std::atomic<unsigned> failures_{0};
    std::atomic<bool> told_too_early_{false};
    std::string order_;
    // The model.
    std::uint64_t appended_ = 0;
    std::uint64_t durable_ = 0;
    std::uint64_t writing_ = 0;  ///< newest serial of the group that is being written; 0: none is
    std::uint64_t writes_ = 0;
    std::vector<std::size_t> groups_;  ///< records in each, also in the one that is being written
    bool poisoned_ = false;
    std::vector<std::unique_ptr<Worker>> workers_;  ///< the first to go
};

/// Walks every order of the programs' steps and the disk's. Returns how many there are.
std::size_t walk_all(const std::vector<Program>& programs) {
    std::vector<std::size_t> taken;
    std::vector<std::size_t> of;
    for (std::size_t walks = 1;; ++walks) {
        std::size_t depth = 0;
        const std::function<std::size_t(std::size_t)> choose = [&](std::size_t choices) {
            if (depth == taken.size()) {
                taken.push_back(0);
                of.push_back(choices);
            }
            return taken[depth++];
        };
        Walk(programs, choose).run();
        while (!taken.empty() && taken.back() + 1 == of.back()) {
            taken.pop_back();
            of.pop_back();
        }
        if (taken.empty()) return walks;
        ++taken.back();
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_three_committers_nobody_returns_before_its_group_is_durable_and_whoever_waits_is_served) {
    const std::size_t walks = walk_all({{append, 1}, {append, 1}, {append, 1}});
    BOOST_TEST_MESSAGE(walks << " orders");
    BOOST_TEST(walks > 90U);
}

BOOST_AUTO_TEST_CASE(a_committer_that_waits_for_an_older_record_of_its_own_is_served_when_that_one_is_durable) {
    const std::size_t walks = walk_all({{append, append, 1, 2}, {append, 1}});
    BOOST_TEST_MESSAGE(walks << " orders");
    BOOST_TEST(walks > 15U);
}

BOOST_AUTO_TEST_SUITE_END()
