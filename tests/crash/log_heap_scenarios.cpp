// Log heaps: after any crash each id has the value that it had after one and the same operation, whole batches only, and the log goes on.

#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include <taiyen/base/check.hpp>

#include "base/planted.hpp"
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

}  // namespace

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
