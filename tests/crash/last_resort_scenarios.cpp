// A last resort: after any crash the heap is as it was, and the call can be made again, or it has gone on, and its old files lie beside it.

#include <map>
#include <stdexcept>

#include "crash/heap_life.hpp"
#include "crash/piece_of_life.hpp"
#include "crash/scenario.hpp"
#include "store/last_resort.hpp"

namespace taiyen::crash {
namespace {

struct Resort {
    HeapSetup setup;
    bool is_removed = false;  ///< the ring; else its second record is damaged
    bool replays = false;     ///< the log, up to there
};
using Contents = std::map<std::filesystem::path, std::vector<std::byte>>;

store::Tuning tuning_of(const HeapSetup& setup) {
    store::Tuning tuning;
    tuning.journal_bytes = setup.journal_bytes;
    tuning.log_replay = store::test::make_byte_replay;
    return tuning;
}

std::filesystem::path ring_of(const HeapSetup& setup) {
    return setup.kind == HeapKind::transactional ? setup.log_path() : std::filesystem::path(HeapSetup::path().string() + ".journal");
}

void carry_out(io::Storage& disk, const Resort& resort) {
    const store::Tuning tuning = tuning_of(resort.setup);
    const store::RingRemains remains = store::look_at_remains(disk, HeapSetup::path(), {}, tuning);
    const std::uint64_t upto = resort.replays ? remains.intact_upto : remains.last_save;
    if (resort.replays && upto == remains.last_save) throw std::runtime_error("there is nothing to replay");
    (void)store::go_on_with_remains(disk, HeapSetup::path(), {}, remains, upto, tuning);
}

std::vector<std::byte> content_of(io::Storage& storage, const std::filesystem::path& path) {
    const auto file = storage.open(path, io::Access::read_only);
    std::vector<std::byte> bytes(file->info().size_bytes);
    if (file->read(bytes, 0) != bytes.size()) throw std::runtime_error("a file ends early");
    return bytes;
}

/// Opens, compares and closes; returns the save that was found.
std::uint64_t found_in(io::Storage& disk, const HeapSetup& setup, const History& history) {
    HeapLife life(disk, nullptr, setup, history);
    life.open();
    const std::uint64_t found = life.compare();
    life.prove();
    life.close();
    return found;
}

/// 1: it has gone on.
class ResortSubject final : public Subject {
public:
    ResortSubject(Resort resort, History history, std::uint64_t expected, Contents before)
        : resort_(std::move(resort)), history_(std::move(history)), expected_(expected), before_(std::move(before)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        const bool has_gone_on = opens(disk);
        if (!has_gone_on) carry_out(disk, resort_);
        require_kept(disk);
        if (const std::uint64_t found = found_in(disk, resort_.setup, history_); found != expected_)
            throw std::runtime_error("it goes on with save " + std::to_string(found) + ", not " + std::to_string(expected_));
        return has_gone_on ? 1 : 0;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t) override {
        disk.issue(1);
        if (save == 0)
            carry_out(disk, resort_);
        else
            (void)found_in(disk, resort_.setup, history_);
        disk.acknowledge(1);
        return std::make_unique<ResortSubject>(resort_, history_, expected_, before_);
    }

private:
    bool opens(io::SimulatedStorage& disk) const {
        try {
            HeapLife life(disk, nullptr, resort_.setup, history_);
            life.open();
            if (life.compare() != expected_) throw std::runtime_error("it opens with save " + std::to_string(life.compare()));
            life.abandon();
            return true;
        } catch (const Error&) {
            return false;
        }
    }
    void require_kept(io::SimulatedStorage& disk) const {
        for (const char* number : {"", "-2", "-3", "-4"}) {
            bool all = true;
            for (const auto& [path, bytes] : before_) {
                const std::filesystem::path kept = path.string() + ".before-repair" + number;
                all = all && disk.find(kept) && content_of(disk, kept) == bytes;
            }
            if (all) return;
        }
        throw std::runtime_error("the old files are not kept");
    }

    Resort resort_;
    History history_;
    std::uint64_t expected_;
    Contents before_;
};

void damage(io::SimulatedStorage& disk, const Resort& resort) {
    const std::filesystem::path ring = ring_of(resort.setup);
    if (resort.is_removed) return disk.take_away(ring);
    const store::Header header = *store::read_slots(*disk.open(HeapSetup::path(), io::Access::read_only)).newest();
    const auto file = disk.open(ring, io::Access::read_write);
    std::uint64_t at = 0;
    const auto found = log::Ring::scan(*file, header.ring_identity(), header.ring_start, [&, left = 1](const log::Record& record) mutable {
        at = record.file_offset;
        return left-- != 0;
    });
    if (found.records != 2) throw std::runtime_error("there are too few records to damage one");
    const std::vector<std::byte> noise(8, std::byte{0x5a});
    file->write(noise, at + 200);
    file->sync();
}

Recording record_resort(const Resort& resort, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    History history;
    {
        HeapLife life(disk, nullptr, resort.setup);
        life.create();
        life.put("a", 9000, 1);
        life.put("b", 300, 2);
        life.save();
        life.close();
        history = life.history();
    }
    {
        HeapLife life(disk, nullptr, resort.setup, history);
        life.open();
        for (std::uint64_t seed = 3; seed < 12; ++seed) {
            life.touch(seed % 2 == 0 ? "a" : "b", seed);
            life.save();
        }
        history = life.history();
        recording.base = image_of(disk);
        disk.disconnect();
        life.abandon();
    }
    io::SimulatedStorage left;
    add_directories(left);
    const Replay put_back(left, recording.base);
    damage(left, resort);
    recording.base = image_of(left);
    Contents before;
    for (const auto& [path, node] : left.files()) before[path] = content_of(left, path);
    std::uint64_t expected = 0;
    {
        io::SimulatedStorage trial;
        add_directories(trial);
        const Replay put_back_again(trial, recording.base);
        carry_out(trial, resort);
        expected = found_in(trial, resort.setup, history);
    }
    planted_bug = bug;
    io::RecordingStorage recorder(left);
    recorder.issue(1);
    carry_out(recorder, resort);
    recorder.acknowledge(1);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ResortSubject>(resort, std::move(history), expected, std::move(before));
    return recording;
}

}  // namespace

std::vector<CrashScenario> last_resort_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, const Resort& resort, unsigned states_per_cut = 40) {
        all.push_back({.name = name,
                       .about = "last resorts",
                       .states_per_cut = states_per_cut,
                       .nested_one_in = 150,
                       .nested_states_per_cut = 2,
                       .record = [resort](std::uint64_t, Bug bug) { return record_resort(resort, bug); }});
    };
    const HeapSetup log{.kind = HeapKind::transactional};
    const HeapSetup log_data{.kind = HeapKind::transactional, .data_file = true};
    add("resort-archive", {.setup = {.kind = HeapKind::archive, .journal_bytes = 512_KiB}},
        6);  // it zeroes the journal by pages, which are many cuts
    add("resort-snapshot", {.setup = {.kind = HeapKind::snapshot}, .is_removed = true});
    add("resort-log", {.setup = log, .is_removed = true});
    add("resort-replay", {.setup = log, .replays = true});
    add("resort-replay-data", {.setup = log_data, .replays = true});
    return all;
}

}  // namespace taiyen::crash
