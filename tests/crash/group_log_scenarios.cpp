// Group commit: after any crash a scan finds whole groups, all of what anybody was told is durable, and nothing that was never appended.

#include <memory>
#include <random>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "crash/group_records.hpp"
#include "crash/scenario.hpp"
#include "log/forwarding_file.hpp"
#include "log/group_log.hpp"

namespace taiyen::crash {
namespace {

using namespace group;

/// Tells the recorder, whenever a write begins, what another thread would be told is durable at that moment.
class AskingFile final : public log::test::ForwardingFile {
public:
    AskingFile(std::shared_ptr<io::File> inner, io::RecordingStorage& disk) : ForwardingFile(std::move(inner)), disk_(disk) {}
    const GroupLog* asked = nullptr;

    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        if (asked != nullptr) disk_.acknowledge(asked->durable().value);
        ForwardingFile::write_durable(bytes, offset);
    }

private:
    io::RecordingStorage& disk_;
};

/// Appends and waits at random until the ring has no room or `limit` is reached; returns where the next life begins.
log::RingStart live(io::RecordingStorage& disk, const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t& serial,
                    std::uint64_t limit) {
    const auto file = std::make_shared<AskingFile>(disk.open(log_path, io::Access::read_write), disk);
    GroupLog log(std::make_unique<Ring>(file, identity, start, start.position), Serial{serial}, {.group_bytes_max = 8_KiB});
    file->asked = &log;
    std::mt19937_64 random(start.position ^ serial);
    while (serial < limit) {
        const auto bytes = bytes_of(serial + 1);
        const std::span<const std::byte> piece(bytes);
        disk.issue(serial + 1);
        if (!log.try_append({serial + 1}, {&piece, 1})) break;
        ++serial;
        if (random() % 3 == 0) {
            const std::uint64_t waited = serial - random() % std::min<std::uint64_t>(serial - log.durable().value + 1, 3);
            log.wait_durable({waited});
            disk.acknowledge(std::max(waited, log.durable().value));
        }
    }
    log.wait_durable({serial});
    disk.acknowledge(serial);
    return log.durable_point().next;
}

/// A log whose starting point a header outside the disk keeps: serial n is save n.
class GroupLogSubject final : public Subject {
public:
    GroupLogSubject(const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t before)
        : identity_(identity), start_(start), before_(before) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        return scan(*disk.open(log_path, io::Access::read_only), identity_, start_, before_).last;
    }

    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t) override {
        // A new life of the log, as recovery begins one: what was found counts as absorbed.
        log::RingStart start = scan(*disk.open(log_path, io::Access::read_only), identity_, start_, before_).next;
        start.epoch = {start.epoch.value + 1};
        start.chain_seed += 12345;
        std::uint64_t serial = save;
        live(disk, identity_, start, serial, save + 8);
        return std::make_unique<GroupLogSubject>(identity_, start, save);
    }

private:
    log::RingIdentity identity_;
    log::RingStart start_;
    std::uint64_t before_;
};

constexpr ByteCount capacity = 64_KiB;
constexpr std::uint64_t laps = 4;

/// Goes round the ring several times; what is no longer needed is released between traces, by a header write that the test stands in for.
Recording record_group_lap(std::uint64_t lap, std::uint64_t seed, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const log::RingIdentity identity = identity_of_test(capacity);
    Ring::format(*disk.create(log_path), identity);
    log::RingStart start{Epoch{seed}, 0, 1, seed + 7};
    std::uint64_t serial = 0;
    for (std::uint64_t i = 0; i <= lap; ++i) {
        if (i == lap) planted_bug = bug;
        recording.base = image_of(disk);
        recording.acknowledged = serial;
        recording.subject = std::make_unique<GroupLogSubject>(identity, start, serial);
        io::RecordingStorage recorder(disk);
        start = live(recorder, identity, start, serial, serial + 80);
        recording.trace = recorder.take_trace();
    }
    return recording;
}

}  // namespace

std::vector<CrashScenario> group_log_crash_scenarios() {
    std::vector<CrashScenario> all;
    for (std::uint64_t lap = 0; lap < laps; ++lap) {
        all.push_back({.name = "group-log-" + std::to_string(lap + 1),
                       .about = "group commit alone",
                       .states_per_cut = 200,
                       .nested_one_in = 100,
                       .nested_states_per_cut = 40,
                       .seeds = 16,
                       .record = [lap](std::uint64_t seed, Bug bug) { return record_group_lap(lap, seed, bug); }});
    }
    return all;
}

}  // namespace taiyen::crash
