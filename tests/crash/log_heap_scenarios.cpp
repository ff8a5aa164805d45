// Log heaps: after any crash each id has the value that it had after one and the same operation, whole batches only, and the log goes on.

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include <taiyen/base/check.hpp>

#include "base/planted.hpp"
#include "crash/fault_world.hpp"
#include "crash/scenario.hpp"
#include "logheap/log_model.hpp"

namespace taiyen::crash {
namespace {

using logheap::ObjectLog;
using logheap::test::Mix;
using logheap::test::require_equal;
using logheap::test::Values;
using logheap::test::values_of;

const std::filesystem::path log_heap_path = "/disk/values.tyl";

LogHeapOptions log_heap_options() {
    LogHeapOptions options;
    options.segment_bytes = 64_KiB;
    options.capacity = 20 * 64_KiB;
    options.log_capacity = 256_KiB;
    options.utilisation = 0.75;
    options.background = false;  // its works are done in parts, between operations
    return options;
}

/// By serial; entry 0 is the empty heap.
using LogStates = std::vector<Values>;

/// Operates on an open log; each operation that happens is one serial more. `waits`: each is durable when it returns.
void operate_recorded(ObjectLog& log, io::RecordingStorage* recorder, LogStates& states, std::mt19937_64& random, const Mix& mix, int steps,
                      bool waits = true) {
    for (int step = 0; step < steps; ++step) {
        if (mix.ahead != 0 && random() % mix.ahead == 0) {
            Mix between = mix;
            between.ahead = 0;
            const auto some = [&](const Mix& of) { operate_recorded(log, recorder, states, random, of, 1 + static_cast<int>(random() % 3), waits); };
            const Mix simple{.put_as = 4, .remove = 2, .batch = 0, .clean = 0, .checkpoint = 0, .bytes_max = mix.bytes_max};
            logheap::test::work_ahead(
                log, random, [&] { some(between); },
                [&] {
                    if (waits) return;
                    if (random() % 2 == 0) log.wait_durable(log.stats().appended);
                    some(simple);  // small values, in a heap that has room
                });
            continue;
        }
        Values values = states.back();
        if (recorder != nullptr) recorder->issue(states.size());
        if (!logheap::test::operate(log, values, random, mix)) continue;
        states.push_back(std::move(values));
        if (log.stats().appended.value != states.size() - 1) throw std::runtime_error("an operation was not one serial");
        if (recorder != nullptr) recorder->acknowledge(waits ? states.size() - 1 : log.last_durable().value);
    }
}

class LogHeapSubject final : public Subject {
public:
    LogHeapSubject(LogStates states, Mix mix) : states_(std::move(states)), mix_(mix) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) override {
        if (!disk.find(log_heap_path)) {
            // Nothing has its name yet: it can be made, whatever else lies there.
            ObjectLog::open(disk, log_heap_path, log_heap_options(), ObjectLog::Opening::create)->close();
            return 0;
        }
        std::uint64_t serial = 0;
        if (state % 4 == 0) {
            const auto reader = ObjectLog::open(disk, log_heap_path, log_heap_options(), ObjectLog::Opening::read_only);
            serial = look(*reader, "a reader");
            reader->abandon();
        }
        {
            const auto log = ObjectLog::open(disk, log_heap_path, log_heap_options(), ObjectLog::Opening::open);
            const std::uint64_t found = look(*log, "recovery");
            if (state % 4 == 0 && found != serial)
                throw std::runtime_error("a reader saw operation " + std::to_string(serial) + ", recovery " + std::to_string(found));
            serial = found;
            if (state % 16 == 1) {  // it goes on
                std::mt19937_64 random(state);
                Values values = states_[serial];
                for (int i = 0; i < 30; ++i) logheap::test::operate(*log, values, random, mix_);
                log->check_sums();
                require_equal(values_of(*log), values, "after more operations");
                if (!log->verify().damaged.empty()) throw std::runtime_error("values are damaged");
                log->close();
                return serial;
            }
            log->abandon();
        }
        if (state % 8 == 2) {
            const auto log = ObjectLog::open(disk, log_heap_path, log_heap_options(), ObjectLog::Opening::open);
            if (look(*log, "the second recovery") != serial) throw std::runtime_error("the second recovery found another operation");
            log->close();
        }
        return serial;
    }

    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t state) override {
        if (!disk.find(log_heap_path)) return nullptr;
        const auto log = ObjectLog::open(disk, log_heap_path, log_heap_options(), ObjectLog::Opening::open);
        LogStates states(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(save) + 1);
        std::mt19937_64 random(state);
        operate_recorded(*log, &disk, states, random, mix_, 5);
        log->abandon();
        return std::make_unique<LogHeapSubject>(std::move(states), mix_);
    }

private:
    std::uint64_t look(const ObjectLog& log, const std::string& who) const {
        const std::uint64_t serial = log.stats().appended.value;
        if (serial >= states_.size()) throw std::runtime_error(who + " found operation " + std::to_string(serial) + ", which was never begun");
        log.check_sums();
        require_equal(values_of(log), states_[serial], who + ", operation " + std::to_string(serial));
        return serial;
    }

    LogStates states_;
    Mix mix_;
};

struct LogHeapPiece {
    const char* name;
    Mix mix;
    int steps_before;  ///< unrecorded; below 0: there is no heap yet
    bool closes_before;
    int steps;
    bool closes;                     ///< and opens again and goes on
    ByteCount checkpoint_bytes = 0;  ///< as the option
    bool waits = true;               ///< each operation is durable when it returns
    std::uint64_t states_per_cut = 600;
};

Recording record_log_heap(const LogHeapPiece& piece, std::uint64_t seed, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    std::mt19937_64 random(seed);
    LogStates states{Values{}};
    LogHeapOptions options = log_heap_options();
    options.checkpoint_bytes = piece.checkpoint_bytes;
    if (!piece.waits) {
        options.durability = Durability::async;
        options.loss_window = std::chrono::hours(1);  // nothing is written by the clock
    }
    const bool creates = piece.steps_before < 0;
    if (!creates) {
        const auto log = ObjectLog::open(disk, log_heap_path, options, ObjectLog::Opening::create);
        operate_recorded(*log, nullptr, states, random, piece.mix, piece.steps_before, piece.waits);
        log->wait_durable({states.size() - 1});
        if (piece.closes_before) log->close();
        log->abandon();
        disk.disconnect();
    }
    recording.base = image_of(disk);
    recording.acknowledged = states.size() - 1;
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    auto log = ObjectLog::open(recorder, log_heap_path, options, creates ? ObjectLog::Opening::create : ObjectLog::Opening::open);
    operate_recorded(*log, &recorder, states, random, piece.mix, piece.steps, piece.waits);
    if (piece.closes) {
        log->close();
        log.reset();
        disk.disconnect();
        log = ObjectLog::open(recorder, log_heap_path, options, ObjectLog::Opening::open);
        operate_recorded(*log, &recorder, states, random, piece.mix, piece.steps, piece.waits);
    }
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<LogHeapSubject>(std::move(states), piece.mix);
    log->abandon();
    log.reset();
    disk.disconnect();
    return recording;
}

/// What a life under a misfortune does, decided before: the model's own allocations don't fail.
struct Deed {
    enum class What { put_as, update, remove, batch, clean, checkpoint, ahead, reopen };
    What what;
    std::uint64_t id = 0;
    logheap::test::Bytes bytes{};
    LogBatch batch{};
    Values batch_puts{};
    std::uint64_t batch_removes = 0;

    void change(Values& values) const {
        if (what == What::put_as || (what == What::update && values.contains(id))) values[id] = bytes;
        if (what == What::remove) values.erase(id);
        if (what != What::batch) return;
        values.erase(batch_removes);
        for (const auto& [of, put] : batch_puts) values[of] = put;
    }
};

std::vector<Deed> some_deeds(const Values& values, std::mt19937_64& random, int count) {
    using enum Deed::What;
    constexpr Deed::What often[] = {put_as, put_as, put_as, update, update, update, update, remove, remove, batch, clean, checkpoint, ahead, reopen};
    std::vector<Deed> deeds;
    const auto some_id = [&] {
        return random() % 3 == 0 || values.empty() ? (std::uint64_t{1} << 40U) + random() % 12 : logheap::test::known_in(values, random);
    };
    for (int i = 0; i < count; ++i) {
        Deed deed{often[random() % std::size(often)], some_id()};
        const auto some = [&] { return logheap::test::some_bytes(random, random() % 10 == 0 ? 70'000 + random() % 50'000 : random() % 4000); };
        if (deed.what == put_as || deed.what == update) deed.bytes = some();
        if (deed.what == batch) {
            deed.batch_removes = deed.id;
            deed.batch.remove(LogId{deed.id});
            for (int k = 0; k < 3; ++k) {
                const std::uint64_t id = (std::uint64_t{1} << 41U) + random() % 12;
                deed.batch_puts[id] = some();
                deed.batch.put(LogId{id}, deed.batch_puts[id]);
            }
        }
        deeds.push_back(std::move(deed));
    }
    return deeds;
}

/// Goes on whatever fails, as far as there is an open log.
class LogLife {
public:
    LogLife(io::Storage& disk, LogStates states, const FaultKind& kind) : disk_(disk), states_(std::move(states)), kind_(kind) {
        acknowledged_ = states_.size() - 1;
        states_.reserve(states_.size() + 1000);
    }

    void open(ObjectLog::Opening how) { log_ = ObjectLog::open(disk_, log_heap_path, options_, how); }
    void live(const std::vector<Deed>& deeds) {
        std::mt19937_64 random(deeds.size());
        for (next_ = 0; next_ < deeds.size() && log_;) run(deeds, random, true);
    }
    void close() {
        if (log_) log_->close();
    }
    /// The log in memory is what the model says, also when it can't write any more.
    void look() {
        if (!log_) return;
        log_->check_sums();
        Values found = values_of(*log_);
        Values wanted = states_.back();
        if (unsure_ != nullptr) {  // it failed behind its record: whether it happened is known when the heap is opened again
            for (Values* const values : {&found, &wanted}) {
                values->erase(unsure_->id);
                for (const auto& [id, bytes] : unsure_->batch_puts) values->erase(id);
            }
        }
        require_equal(found, wanted, "after the misfortune");
        if (!log_->verify().damaged.empty()) throw std::runtime_error("values are damaged after the misfortune");
    }
    void abandon() {
        if (log_) log_->abandon();
        log_.reset();
    }
    std::uint64_t acknowledged() const { return acknowledged_; }
    std::uint64_t issued() const { return states_.size() - 1; }
    bool has_failed() const { return has_failed_; }
    const LogStates& states() const { return states_; }

private:
    void run(const std::vector<Deed>& deeds, std::mt19937_64& random, bool may_nest) {
        const Deed& deed = deeds[next_++];
        if (!may_nest && (deed.what == Deed::What::ahead || deed.what == Deed::What::reopen || deed.what == Deed::What::clean ||
                          deed.what == Deed::What::checkpoint))
            return;
        bool went_through = false;
        try {
            act(deed, deeds, random);
            went_through = true;
        } catch (const HeapFull& full) {
            has_failed_ = has_failed_ || full.cause() == HeapFull::Cause::disk;
            if (deed.what == Deed::What::remove && kind_.what == FaultKind::What::space)
                throw std::runtime_error(std::string("a removal was refused: ") + full.what());
        } catch (const Error&) {
            has_failed_ = true;
        } catch (const std::bad_alloc&) {
            has_failed_ = true;
        }
        if (deed.what == Deed::What::ahead || !log_) return;
        if (deed.what == Deed::What::reopen) {
            // What failed before may be there or not.
            const PlentyOfMemory plenty;
            const std::uint64_t found = log_->stats().appended.value;
            compare_bounds(found, acknowledged_, issued());
            states_.resize(found + 1);
            acknowledged_ = found;
            unsure_ = nullptr;
            return;
        }
        const PlentyOfMemory plenty;
        const std::uint64_t appended = log_->stats().appended.value;
        if (appended == states_.size()) {
            states_.push_back(states_.back());
            deed.change(states_.back());
            if (went_through) acknowledged_ = appended;
            unsure_ = went_through ? nullptr : &deed;
        } else if (appended != states_.size() - 1) {
            throw std::runtime_error("deed " + std::to_string(next_) + " of kind " + std::to_string(static_cast<int>(deed.what)) + " made serial " +
                                     std::to_string(appended) + ", not " + std::to_string(states_.size()));
        } else if (went_through && deed.what == Deed::What::checkpoint) {
            acknowledged_ = appended;
        }
    }

    void act(const Deed& deed, const std::vector<Deed>& deeds, std::mt19937_64& random) {
        switch (deed.what) {
            case Deed::What::put_as: log_->put_as(LogId{deed.id}, deed.bytes); break;
            case Deed::What::update: log_->update(LogId{deed.id}, {}, deed.bytes); break;
            case Deed::What::remove: log_->remove(LogId{deed.id}); break;
            case Deed::What::batch: log_->commit(deed.batch); break;
            case Deed::What::clean: log_->clean(2 * 64_KiB); break;
            case Deed::What::checkpoint: log_->checkpoint(); break;
            case Deed::What::ahead:
                logheap::test::work_ahead(*log_, random, [&] {
                    if (next_ < deeds.size()) run(deeds, random, false);
                });
                break;
            case Deed::What::reopen:
                std::unique_ptr<ObjectLog>(std::move(log_))->close();
                open(ObjectLog::Opening::open);
        }
    }

    io::Storage& disk_;
    LogHeapOptions options_ = log_heap_options();
    LogStates states_;
    const FaultKind& kind_;
    std::unique_ptr<ObjectLog> log_;
    std::size_t next_ = 0;
    std::uint64_t acknowledged_ = 0;
    const Deed* unsure_ = nullptr;
    bool has_failed_ = false;
};

enum class Before { nothing, closed, crashed };

bool live_with(const Image& base, const LogStates& before, Before how, const std::vector<Deed>& deeds, const Misfortune& misfortune, Bug bug) {
    World world(base, misfortune);
    planted_bug = bug;
    LogLife life(world.faulty, before, *misfortune.kind);
    world.begin();
    const bool went_through = world.lives([&] {
        life.open(how == Before::nothing ? ObjectLog::Opening::create : ObjectLog::Opening::open);
        life.live(deeds);
    });
    const bool struck = world.struck(went_through && !life.has_failed());
    if (misfortune.variant % 2 == 0) {
        world.lives([&] { life.close(); });
    } else {
        world.end();
        life.look();
    }
    world.end();
    end_the_world(world.disk, misfortune);
    life.abandon();
    planted_bug = Bug::none;
    LogHeapSubject subject(life.states(), {.bytes_max = 3000});
    compare_bounds(subject.check(world.disk, misfortune.variant), life.acknowledged(), life.issued());
    return struck;
}

}  // namespace

std::vector<FaultScenario> log_heap_fault_scenarios() {
    std::vector<FaultScenario> all;
    for (const auto& [name, how] :
         {std::pair("log-heap-made", Before::nothing), {"log-heap-closed", Before::closed}, {"log-heap-dropped", Before::crashed}}) {
        all.push_back({.name = name, .variants = 2, .prepare = [how](std::uint64_t seed) -> std::function<bool(const Misfortune&, Bug)> {
                           io::SimulatedStorage disk;
                           disk.add_directory("/disk");
                           std::mt19937_64 random(seed);
                           LogStates states{Values{}};
                           if (how != Before::nothing) {
                               const auto log = ObjectLog::open(disk, log_heap_path, log_heap_options(), ObjectLog::Opening::create);
                               operate_recorded(*log, nullptr, states, random, {.bytes_max = 4000, .large_one_in = 20}, 200);
                               if (how == Before::closed) log->close();
                               log->abandon();
                           }
                           disk.disconnect();
                           return [how, states, base = image_of(disk), deeds = some_deeds(states.back(), random, 40)](
                                      const Misfortune& misfortune, Bug bug) { return live_with(base, states, how, deeds, misfortune, bug); };
                       }});
    }
    return all;
}

std::vector<CrashScenario> log_heap_crash_scenarios() {
    static const std::vector<LogHeapPiece> pieces{
        {"log-heap-creation", {.clean = 0, .checkpoint = 0}, -1, false, 6, true},
        {"log-heap-operations", {.bytes_max = 9000}, 120, true, 40, false},
        {"log-heap-crashed", {.bytes_max = 9000}, 120, false, 30, false},
        {"log-heap-small-values", {.bytes_max = 60}, 300, true, 60, false},
        {"log-heap-cleaning",
         {.put = 1, .put_as = 1, .update = 12, .remove = 4, .batch = 1, .clean = 5, .checkpoint = 0, .bytes_max = 4000},
         150,
         true,
         40,
         false,
         1_MiB},
        {"log-heap-churn",
         {.put = 1, .put_as = 12, .update = 10, .remove = 3, .clean = 0, .checkpoint = 0, .bytes_max = 20'000},
         30,
         true,
         50,
         false,
         1_MiB},
        {"log-heap-full",
         {.put = 12, .put_as = 2, .update = 12, .remove = 4, .batch = 1, .clean = 0, .checkpoint = 0, .bytes_max = 7000},
         1200,
         true,
         40,
         false,
         1_MiB,
         true,
         120},
        {"log-heap-ahead",
         {.put = 2, .put_as = 4, .update = 8, .remove = 4, .batch = 1, .clean = 0, .checkpoint = 0, .ahead = 3, .bytes_max = 9000},
         150,
         true,
         40,
         false},
        {"log-heap-ahead-large",
         {.put = 2, .put_as = 4, .update = 8, .remove = 4, .batch = 1, .clean = 1, .checkpoint = 0, .ahead = 3, .bytes_max = 4000, .large_one_in = 8},
         80,
         true,
         25,
         false},
        {"log-heap-ahead-unwaited",
         {.put = 2, .put_as = 4, .update = 8, .remove = 4, .batch = 1, .clean = 1, .checkpoint = 0, .ahead = 3, .bytes_max = 200},
         100,
         true,
         150,
         false,
         16_MiB,
         false},
        {"log-heap-checkpoints", {.clean = 2, .checkpoint = 8, .bytes_max = 5000}, 100, true, 40, false},
        {"log-heap-large-values", {.bytes_max = 2000, .large_one_in = 4}, 60, true, 25, false},
        {"log-heap-batches", {.put = 1, .put_as = 1, .update = 1, .remove = 1, .batch = 10, .bytes_max = 6000}, 60, true, 30, false},
        {"log-heap-closing", {.bytes_max = 5000}, 60, true, 8, true},
    };
    std::vector<CrashScenario> all;
    for (const LogHeapPiece& piece : pieces) {
        all.push_back({.name = piece.name,
                       .about = "log heaps",
                       .states_per_cut = piece.states_per_cut,
                       .nested_one_in = 150,
                       .nested_states_per_cut = 8,
                       .record = [&piece](std::uint64_t seed, Bug bug) { return record_log_heap(piece, seed, bug); }});
    }
    return all;
}

}  // namespace taiyen::crash
