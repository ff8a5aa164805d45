// Every interleaving of a few readers and a writer on a simulated machine that delays stores as x86 does (total store order): what no stress test meets reliably.
//
// The template under test is the one that BiasedLock is made of. Each atomic operation is a step; a store lies in its thread's buffer until some later step takes it to memory. A thread has no stack of its own:
// each of its steps runs its program from the beginning, with the results of the steps before, up to the first operation that has no result yet. So a state is a value, and each is looked at once.

#include "txn/bias.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "campaign_factor.hpp"

namespace {

using Word = std::uint64_t;

/// A vector without memory of its own: states are copied by the hundred thousand.
template <class T, std::size_t Max>
class Few {
public:
    Few() = default;
    Few(const Few& other) : count_(other.count_) { std::copy(other.begin(), other.end(), items_.data()); }
    Few& operator=(const Few& other) {
        count_ = other.count_;
        std::copy(other.begin(), other.end(), items_.data());
        return *this;
    }
    ~Few() = default;

    const T* begin() const { return items_.data(); }
    const T* end() const { return items_.data() + count_; }
    std::size_t size() const { return count_; }
    const T& operator[](std::size_t index) const { return items_[index]; }
    void push_back(const T& item) {
        if (count_ == Max) throw std::length_error("the scenario is longer than its state has room");
        items_[count_++] = item;
    }
    void pop_front() { std::copy(begin() + 1, end(), items_.data()), --count_; }
    void clear() { count_ = 0; }

private:
    std::array<T, Max> items_;
    std::size_t count_ = 0;
};

struct Stored {
    Word cell;
    Word value;
};

struct SimulatedThread {
    Few<Stored, 8> buffer;  ///< stores on their way, oldest first
    Few<Word, 64> results;  ///< of the operations so far
    bool finished = false;
    Word asleep_on = 0;  ///< 1 + cell; 0: awake
    Word fences = 0;     ///< that it had executed everywhere
};

struct State {
    std::array<Word, 8> memory{};
    std::vector<SimulatedThread> threads;
    Word readers = 0;  ///< that are reading now
    Word shared = 0;   ///< that hold the lock the other way
    bool writer = false;
    bool writes = false;

    /// Two states with the same one are taken for the same.
    std::array<Word, 2> key() const {
        Word one = 0x9e37'79b9'7f4a'7c15U;
        Word other = 0xc2b2'ae3d'27d4'eb4fU;
        const auto add = [&](Word word) {
            one = (one ^ word) * 0xff51'afd7'ed55'8ccdU;
            one ^= one >> 29U;
            other = (other + word) * 0xc4ce'b9fe'1a85'ec53U;
            other ^= other >> 32U;
        };
        for (const Word word : memory) add(word);
        add(readers << 32U | shared << 2U | (writer ? 2U : 0U) | (writes ? 1U : 0U));
        for (const SimulatedThread& thread : threads) {
            add(thread.buffer.size() << 32U | thread.results.size() << 1U | (thread.finished ? 1U : 0U));
            add(thread.asleep_on);
            for (const auto& [cell, value] : thread.buffer) {
                add(cell);
                add(value);
            }
            for (const Word result : thread.results) add(result);
        }
        return {one, other};
    }
};

struct FirstWord {
    std::size_t operator()(const std::array<Word, 2>& key) const { return key[0]; }
};

/// The next operation is another step's.
struct Stop {};
/// The operation can't be done now.
struct Blocked {};

/// What the simulated machine leaves out.
struct Flaws {
    bool first_fence = false;   ///< of those that a writer has executed everywhere
    bool later_fences = false;  ///< all others
};

class Simulation {
public:
    using Program = std::function<void()>;

    Simulation() { now_ = this; }
    ~Simulation() { now_ = nullptr; }
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;
    static Simulation& now() { return *now_; }

    std::size_t add_cell(Word value) {
        initial_.push_back(value);
        if (initial_.size() > State().memory.size()) throw std::length_error("the scenario has more cells than its state");
        return initial_.size() - 1;
    }
    void add(Program program) { programs_.push_back(std::move(program)); }

    /// Walks through all states; returns the first thing that is wrong, or "".
    std::string explore(Flaws flaws = {}) {
        flaws_ = flaws;
        State first;
        std::ranges::copy(initial_, first.memory.begin());
        first.threads.resize(programs_.size());
        std::vector<State> left{first};
        std::unordered_set<std::array<Word, 2>, FirstWord> known{first.key()};
        while (!left.empty() && wrong_.empty()) {
            const State from = std::move(left.back());
            left.pop_back();
            bool moves = false;
            const auto reach = [&](State&& to) {
                moves = true;
                if (known.insert(to.key()).second) left.push_back(std::move(to));
            };
            for (std::size_t thread = 0; thread < programs_.size() && wrong_.empty(); ++thread) {
                const SimulatedThread& here = from.threads[thread];
                if (!here.finished && here.asleep_on == 0) {
                    if (State to = from; step(to, thread)) reach(std::move(to));
                }
                if (here.buffer.size() != 0) {
                    State to = from;
                    drain_one(to, thread);
                    reach(std::move(to));
                }
            }
            if (!wrong_.empty() || moves) continue;
            for (const SimulatedThread& thread : from.threads)
                if (!thread.finished) wrong_ = "somebody waits for ever";
        }
        states_ = known.size();
        return wrong_;
    }
    std::size_t states() const { return states_; }
    /// How often somebody slept, and a fence was executed everywhere.
    std::size_t sleeps() const { return sleeps_; }
    std::size_t fences() const { return fences_; }

    /// One operation of the running thread: `act(State&, SimulatedThread&)` returns its result.
    template <class Act>
    Word operation(Act&& act) {
        SimulatedThread& thread = state_->threads[self_];
        if (at_ < thread.results.size()) return thread.results[at_++];
        if (fresh_) throw Stop();
        const Word result = act(*state_, thread);
        fresh_ = true;
        ++at_;
        state_->threads[self_].results.push_back(result);
        return result;
    }
    static void drain(State& state, SimulatedThread& thread) {
        for (const auto& [cell, value] : thread.buffer) state.memory[cell] = value;
        thread.buffer.clear();
    }
    void complain(const char* what) { wrong_ = what; }
    void count_sleep() { ++sleeps_; }
    /// Whether the thread's next fence is executed.
    bool fence_works(SimulatedThread& thread) {
        ++fences_;
        return ++thread.fences == 1 ? !flaws_.first_fence : !flaws_.later_fences;
    }

private:
    /// Requires: the thread has not finished, and is awake. Whether it could do an operation.
    bool step(State& state, std::size_t thread) {
        state_ = &state;
        self_ = thread;
        at_ = 0;
        fresh_ = false;
        try {
            programs_[thread]();
            state.threads[thread].finished = true;
        } catch (const Stop&) {
        } catch (const Blocked&) {
            return false;
        }
        return true;
    }
    /// Requires: a store is on its way.
    static void drain_one(State& state, std::size_t thread) {
        auto& buffer = state.threads[thread].buffer;
        state.memory[buffer[0].cell] = buffer[0].value;
        buffer.pop_front();
    }

    static inline Simulation* now_ = nullptr;
    std::vector<Word> initial_;
    std::vector<Program> programs_;
    Flaws flaws_;
    std::string wrong_;
    std::size_t states_ = 0;
    std::size_t sleeps_ = 0;
    std::size_t fences_ = 0;
    State* state_ = nullptr;
    std::size_t self_ = 0;
    std::size_t at_ = 0;
    bool fresh_ = false;
};

struct SimulatedMachine {
    template <class T>
    class Atomic {
    public:
        Atomic(T value) : cell_(Simulation::now().add_cell(value)) {}  // NOLINT: as std::atomic
        T load(std::memory_order) const {
            return static_cast<T>(Simulation::now().operation([this](State& state, SimulatedThread& thread) {
                Word value = state.memory[cell_];
                for (const auto& [cell, stored] : thread.buffer)
                    if (cell == cell_) value = stored;
                return value;
            }));
        }
        void store(T value, std::memory_order order) {
            Simulation::now().operation([&](State& state, SimulatedThread& thread) {
                thread.buffer.push_back({cell_, static_cast<Word>(value)});
                if (order == std::memory_order_seq_cst) Simulation::drain(state, thread);
                return Word{0};
            });
        }
        T fetch_add(T more, std::memory_order) {
            return static_cast<T>(Simulation::now().operation([&](State& state, SimulatedThread& thread) {
                Simulation::drain(state, thread);
                return std::exchange(state.memory[cell_], static_cast<T>(state.memory[cell_] + more));
            }));
        }
        T fetch_sub(T less, std::memory_order order) { return fetch_add(static_cast<T>(0 - less), order); }
        std::size_t cell() const { return cell_; }

    private:
        std::size_t cell_;
    };
    static constexpr std::memory_order reader_store = std::memory_order_release;
    static constexpr std::memory_order reader_load = std::memory_order_acquire;
    static void fence_of_compiler() {}
    static void fence_everywhere() {
        Simulation::now().operation([](State& state, SimulatedThread& caller) {
            if (Simulation::now().fence_works(caller))
                for (SimulatedThread& thread : state.threads) Simulation::drain(state, thread);
            return Word{0};
        });
    }
    static constexpr int moment = 1;
    static inline int near = 1;
    static void spin(int) {}
    static void sleep_while(const Atomic<std::uint32_t>& number, std::uint32_t value) {
        Simulation::now().operation([&](State& state, SimulatedThread& thread) {
            Simulation::drain(state, thread);
            if (state.memory[number.cell()] == value) {
                thread.asleep_on = 1 + number.cell();
                Simulation::now().count_sleep();
            }
            return Word{0};
        });
    }
    static void wake_all(Atomic<std::uint32_t>& number) {
        Simulation::now().operation([&](State& state, SimulatedThread& thread) {
            Simulation::drain(state, thread);
            for (SimulatedThread& other : state.threads)
                if (other.asleep_on == 1 + number.cell()) other.asleep_on = 0;
            return Word{0};
        });
    }
};

using Bias = taiyen::txn::Bias<SimulatedMachine>;

/// A lock that is biased towards its members, and what they and its writers do: the lock beneath is a simple one that never delays.
class Lock {
public:
    static constexpr std::uint32_t number = 7;

    /// The period that goes on, or the first one is to come.
    explicit Lock(bool biased) : bias_(biased ? 2 : 0), next_period_(2) {}

    Bias::Slot member() const { return Bias::Slot(Bias::out(number, 2)); }
    /// That became one in an earlier period, and stayed out since.
    Bias::Slot sleeper() const { return Bias::Slot(Bias::out(number, 1)); }
    Bias::Slot stranger() const { return Bias::Slot(0); }

    /// Reads so often: as a member, or the other way, where it sets the bias up and joins.
    void read(Bias::Slot& slot, int times) {
        for (int i = 0; i < times; ++i) {
            if (is_out(slot) && Bias::enter(slot, bias_, sleepers_)) {
                begin_reading();
                end_reading();
                Bias::leave(slot, sleepers_);
                continue;
            }
            change([](State& state) {
                if (state.writer) throw Blocked();
                ++state.shared;
            });
            const std::uint32_t period = next_period_.load(std::memory_order_relaxed);
            if (bias_.load(std::memory_order_relaxed) == 0) bias_.store(period, std::memory_order_release);
            slot.store(Bias::out(number, period), std::memory_order_release);
            begin_reading();
            end_reading();
            change([](State& state) { --state.shared; });
        }
    }

    /// What a member does before it writes.
    static void withdraw(Bias::Slot& slot) {
        if (is_out(slot)) Bias::withdraw(slot);
    }

    void write(std::vector<Bias::Slot*> slots, int times) {
        for (int i = 0; i < times; ++i) {
            change([](State& state) {
                if (state.writer || state.shared != 0) throw Blocked();
                state.writer = true;
            });
            if (bias_.load(std::memory_order_relaxed) != 0) {
                next_period_.store(Bias::after(next_period_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
                Bias::end(bias_, number, sleepers_, [&](auto&& visit) {
                    for (Bias::Slot* const slot : slots) visit(*slot);
                });
            }
            change([](State& state) {
                if (state.readers != 0) Simulation::now().complain("a writer writes while a reader reads");
                state.writes = true;
            });
            change([](State& state) {
                state.writes = false;
                state.writer = false;
            });
        }
    }

private:
    /// As a locked instruction would.
    template <class F>
    static void change(F&& act) {
        Simulation::now().operation([&](State& state, SimulatedThread& thread) {
            act(state);
            Simulation::drain(state, thread);
            return Word{0};
        });
    }
    // What a reader reads isn't delayed by its own stores: the buffer stays as it is.
    static void begin_reading() {
        Simulation::now().operation([](State& state, SimulatedThread&) {
            if (state.writes) Simulation::now().complain("a reader reads while a writer writes");
            ++state.readers;
            return Word{0};
        });
    }
    static void end_reading() {
        Simulation::now().operation([](State& state, SimulatedThread&) {
            --state.readers;
            return Word{0};
        });
    }

    static bool is_out(const Bias::Slot& slot) {
        const Word value = slot.load(std::memory_order_relaxed);
        return Bias::lock_of(value) == number && !Bias::is_reading(value);
    }

    SimulatedMachine::Atomic<std::uint32_t> bias_;
    SimulatedMachine::Atomic<std::uint32_t> next_period_;
    Bias::Sleepers sleepers_;
};

struct Outcome {
    std::string wrong;
    std::size_t states;
    std::size_t sleeps;
    std::size_t fences;
};

/// One member and one writer, so often each.
Outcome one_reader(int reads, int writes, Flaws flaws = {}, bool biased = true) {
    Simulation simulation;
    Lock lock(biased);
    Bias::Slot slot = biased ? lock.member() : lock.stranger();
    simulation.add([&] { lock.read(slot, reads); });
    simulation.add([&] { lock.write({&slot}, writes); });
    const std::string wrong = simulation.explore(flaws);
    return {wrong, simulation.states(), simulation.sleeps(), simulation.fences()};
}

Outcome two_readers(Flaws flaws = {}) {
    Simulation simulation;
    SimulatedMachine::near = 0;  // a tenth of the states
    Lock lock(true);
    std::array<Bias::Slot, 2> slots{lock.member(), lock.member()};
    simulation.add([&] { lock.read(slots[0], 1); });
    simulation.add([&] { lock.read(slots[1], 1); });
    simulation.add([&] { lock.write({&slots[0], &slots[1]}, 1); });
    const std::string wrong = simulation.explore(flaws);
    SimulatedMachine::near = 1;
    return {wrong, simulation.states(), simulation.sleeps(), simulation.fences()};
}

/// A member that reads and then writes, and one that only reads.
Outcome reader_that_writes(Flaws flaws = {}) {
    Simulation simulation;
    Lock lock(true);
    std::array<Bias::Slot, 2> slots{lock.member(), lock.member()};
    simulation.add([&] {
        lock.read(slots[0], 1);
        Lock::withdraw(slots[0]);
        lock.write({&slots[0], &slots[1]}, 1);
    });
    simulation.add([&] { lock.read(slots[1], 2); });
    const std::string wrong = simulation.explore(flaws);
    return {wrong, simulation.states(), simulation.sleeps(), simulation.fences()};
}

/// Who slept through the begin of the period reads when it likes, beside a writer.
Outcome sleeper_that_wakes(Flaws flaws = {}) {
    Simulation simulation;
    Lock lock(true);
    Bias::Slot slot = lock.sleeper();
    simulation.add([&] { lock.read(slot, 2); });
    simulation.add([&] { lock.write({&slot}, 2); });
    const std::string wrong = simulation.explore(flaws);
    return {wrong, simulation.states(), simulation.sleeps(), simulation.fences()};
}

/// A thread that isn't there any more, or not yet again, beside a writer.
Outcome sleeper_beside_writers() {
    Simulation simulation;
    Lock lock(true);
    Bias::Slot slot = lock.sleeper();
    simulation.add([&] { lock.write({&slot}, 2); });
    const std::string wrong = simulation.explore();
    return {wrong, simulation.states(), simulation.sleeps(), simulation.fences()};
}

void check_right(const Outcome& outcome) {
    BOOST_TEST(outcome.wrong == "");
    BOOST_TEST_MESSAGE(outcome.states << " states, " << outcome.sleeps << " sleeps, " << outcome.fences << " fences");
    BOOST_TEST(outcome.states > 100U);
    // Not because the interesting ways were never gone.
    BOOST_TEST(outcome.sleeps > 0U);
    BOOST_TEST(outcome.fences > 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bias)

BOOST_AUTO_TEST_CASE(no_delay_of_stores_lets_a_member_and_a_writer_in_together) {
    check_right(one_reader(2, 1));
    check_right(one_reader(1, 2));
    check_right(one_reader(2, 2));
}

BOOST_AUTO_TEST_CASE(members_that_join_while_writers_come_are_seen) { check_right(one_reader(3, 2, {}, false)); }

BOOST_AUTO_TEST_CASE(two_members_are_waited_for) {
    if (taiyen::test::under_sanitizer) {
        BOOST_TEST_MESSAGE("skipped: half a minute under a sanitizer, of code that the other searches take it through");
        return;
    }
    check_right(two_readers());
}

BOOST_AUTO_TEST_CASE(a_member_may_write_itself) { check_right(reader_that_writes()); }

BOOST_AUTO_TEST_CASE(a_thread_that_slept_through_a_period_comes_back) { check_right(sleeper_that_wakes()); }

BOOST_AUTO_TEST_CASE(a_thread_that_sleeps_costs_later_writers_no_fence) {
    BOOST_TEST(sleeper_beside_writers().wrong == "");
    BOOST_TEST(sleeper_beside_writers().fences == 0U);
}

BOOST_AUTO_TEST_CASE(the_number_behind_the_last_period_is_the_first) {
    BOOST_TEST(Bias::after(1) == 2U);
    BOOST_TEST(Bias::after(0x7fff'ffff) == 1U);
    BOOST_TEST(Bias::period_of(Bias::reads(0xffff'ffff, 0x7fff'ffff)) == 0x7fff'ffffU);
    BOOST_TEST(Bias::lock_of(Bias::reads(0xffff'ffff, 0x7fff'ffff)) == 0xffff'ffffU);
}

BOOST_AUTO_TEST_CASE(without_the_fence_a_member_reads_while_a_writer_writes) {
    BOOST_TEST(one_reader(1, 1, {.first_fence = true}).wrong == "a reader reads while a writer writes");
    BOOST_TEST(one_reader(2, 1, {.first_fence = true}).wrong != "");
    BOOST_TEST(two_readers({.first_fence = true, .later_fences = true}).wrong != "");
}

BOOST_AUTO_TEST_CASE(without_the_fence_before_it_sleeps_a_writer_sleeps_for_ever) {
    BOOST_TEST(one_reader(1, 1, {.later_fences = true}).wrong == "somebody waits for ever");
}

BOOST_AUTO_TEST_SUITE_END()
