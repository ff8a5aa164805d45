// The record log on its own: after any crash a scan finds a prefix of what was appended, with every acknowledged record in it.

#include <algorithm>
#include <random>

#include "base/planted.hpp"
#include "crash/scenario.hpp"
#include "log/ring.hpp"

namespace taiyen::crash {
namespace {

const std::filesystem::path ring_path = "/disk/ring";

log::RingIdentity identity_of_ring(ByteCount capacity) {
    log::RingIdentity identity;
    identity.ring.bytes.fill(0x11);
    identity.heap.bytes.fill(0x22);
    identity.capacity_bytes = capacity;
    identity.is_new = false;
    return identity;
}

std::vector<std::byte> payload(std::uint64_t number) {
    std::mt19937_64 random(number);
    std::vector<std::byte> bytes(random() % 6000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

void append(log::Ring& ring, std::uint64_t number) {
    const auto bytes = payload(number);
    const std::span<const std::byte> piece(bytes);
    ring.append(1, number, {&piece, 1});
}

/// A ring whose starting point a header outside the disk keeps: record number n is save n.
class RingSubject final : public Subject {
public:
    RingSubject(const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t before)
        : identity_(identity), start_(start), before_(before) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        const auto file = disk.open(ring_path, io::Access::read_only);
        return scan(*file).first;
    }

    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t) override {
        const std::shared_ptr<io::File> file = disk.open(ring_path, io::Access::read_write);
        // A new life of the ring, as recovery begins one: what was found counts as absorbed.
        log::RingStart start = scan(*file).second;
        start.epoch = {start.epoch.value + 1};
        start.chain_seed += 12345;
        log::Ring ring(file, identity_, start, start.position);
        for (std::uint64_t number = save + 1; number <= save + 3; ++number) {
            disk.issue(number);
            append(ring, number);
            disk.acknowledge(number);
        }
        return std::make_unique<RingSubject>(identity_, start, save);
    }

    std::pair<std::uint64_t, log::RingStart> scan(const io::File& file) const {
        std::uint64_t last = before_;
        const auto result = log::Ring::scan(file, identity_, start_, [&](const log::Record& record) {
            if (record.number != last + 1)
                throw std::runtime_error("record " + std::to_string(record.number) + " follows record " + std::to_string(last));
            if (record.payload != payload(record.number))
                throw std::runtime_error("record " + std::to_string(record.number) + " has another content");
            last = record.number;
            return true;
        });
        if (result.how == log::ScanEnd::corrupt) throw std::runtime_error("a crash is taken for corruption");
        return {last, result.next};
    }

private:
    log::RingIdentity identity_;
    log::RingStart start_;
    std::uint64_t before_;
};

constexpr ByteCount ring_bytes = 64_KiB;
constexpr std::uint64_t ring_laps = 6;

/// Appends, going round the ring several times; the oldest records are released by a header write that the test stands in for. Each lap is a trace of its own, since what the scan starts from
/// moves with the header.
Recording record_ring_lap(std::uint64_t lap, std::uint64_t seed, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const log::RingIdentity identity = identity_of_ring(ring_bytes);
    log::Ring::format(*disk.create(ring_path), identity);
    log::RingStart start{Epoch{seed}, 0, 1, seed + 7};
    std::uint64_t number = 0;
    for (std::uint64_t i = 0; i <= lap; ++i) {
        if (i == lap) planted_bug = bug;
        recording.base = image_of(disk);
        recording.acknowledged = number;
        recording.subject = std::make_unique<RingSubject>(identity, start, number);
        io::RecordingStorage recorder(disk);
        log::Ring ring(recorder.open(ring_path, io::Access::read_write), identity, start, start.position);
        while (ring.fits(payload(number + 1).size())) {
            ++number;
            recorder.issue(number);
            append(ring, number);
            recorder.acknowledge(number);
        }
        start = ring.next();
        recording.trace = recorder.take_trace();
    }
    return recording;
}

}  // namespace

std::vector<CrashScenario> ring_crash_scenarios() {
    std::vector<CrashScenario> all;
    for (std::uint64_t lap = 0; lap < ring_laps; ++lap) {
        all.push_back({.name = "ring-" + std::to_string(lap + 1),
                       .about = "the record log alone",
                       .states_per_cut = 200,
                       .nested_one_in = 100,
                       .nested_states_per_cut = 40,
                       .seeds = 16,
                       .record = [lap](std::uint64_t seed, Bug bug) { return record_ring_lap(lap, seed, bug); }});
    }
    return all;
}

}  // namespace taiyen::crash
