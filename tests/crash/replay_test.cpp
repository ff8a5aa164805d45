// The harness itself: what it calls a crash state is one, and equal fingerprints mean equal disks.

#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include "base/aligned_buffer.hpp"
#include "crash/budget.hpp"
#include "crash/explorer.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

/// Random changes of two files and their names.
void scribble(io::Storage& storage, std::mt19937_64& random, int steps) {
    std::map<fs::path, std::unique_ptr<io::File>> open;
    const auto file = [&](const fs::path& path) -> io::File& {
        auto& slot = open[path];
        if (!storage.find(path))
            slot = storage.create(path);
        else if (!slot)
            slot = storage.open(path, io::Access::read_write);
        return *slot;
    };
    std::map<fs::path, bool> resized;
    for (int step = 0; step < steps; ++step) {
        const fs::path path = random() % 2 == 0 ? "/disk/a" : "/disk/b";
        const std::uint64_t page = random() % 12;
        const auto size_of = [&](const fs::path& name) { return storage.find(name) ? storage.find(name)->size_bytes : 0; };
        const ByteCount size_before = size_of(path);
        switch (random() % 12) {
            case 0:
            case 1:
            case 2:
            case 3: {
                std::vector<std::byte> bytes(1 + random() % 9000);
                std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(random() % 4));
                file(path).write(bytes, page * page_bytes + (random() % 2 == 0 ? 0 : random() % 5000));
                break;
            }
            case 4:
            case 5: {
                AlignedBuffer buffer(page_bytes);
                std::fill(buffer.span().begin(), buffer.span().end(), static_cast<std::byte>(random() % 4));
                io::File& target = file(path);
                // The seam asks for a size that is durable; other pending writes stay pending.
                if (resized[path] || (page + 1) * page_bytes > target.info().size_bytes) {
                    if ((page + 1) * page_bytes > target.info().size_bytes) target.resize((page + 1) * page_bytes);
                    target.sync();
                    resized[path] = false;
                }
                target.write_durable(buffer.span(), page * page_bytes);
                break;
            }
            case 6: file(path).sync(); break;
            case 7: file(path).punch(page * page_bytes, (1 + random() % 3) * page_bytes); break;
            case 8: file(path).resize(page * page_bytes + random() % page_bytes); break;
            case 9: file(path).allocate(page * page_bytes, page_bytes); break;
            case 10: storage.sync_directory("/disk"); break;
            default:
                if (storage.find(path)) {
                    if (random() % 2 == 0) {
                        storage.remove(path);
                        open.erase(path);
                    } else {
                        open.clear();
                        resized = {{"/disk/a", true}, {"/disk/b", true}};
                        storage.rename(path, path == "/disk/a" ? "/disk/b" : "/disk/a");
                    }
                }
        }
        resized[path] = resized[path] || size_of(path) != size_before;
    }
}

BOOST_AUTO_TEST_SUITE(the_harness)

BOOST_AUTO_TEST_CASE(everything_pending_is_the_live_disk_and_nothing_is_the_durable_one) {
    std::mt19937_64 random(seed_of_this_run());
    for (int round = 0; round < 200; ++round) {
        io::SimulatedStorage live({.power_cuts = true});
        live.add_directory("/disk");
        io::RecordingStorage recorder(live);
        scribble(recorder, random, static_cast<int>(random() % 40));
        const io::Trace trace = recorder.take_trace();

        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        Replay replay(disk, {});
        for (std::size_t number = 0; number < trace.size(); ++number) {
            replay.begin(trace[number], number);
            replay.finish(trace[number]);
        }
        replay.mount(Replay::Selection(replay.unit_count(), 1));
        BOOST_REQUIRE((image_of(disk).files == image_of(live).files));
        disk.rollback();
        replay.mount(Replay::Selection(replay.unit_count(), 0));
        live.power_cut();
        BOOST_REQUIRE((image_of(disk).files == image_of(live).files));
        disk.rollback();
    }
}

BOOST_AUTO_TEST_CASE(equal_fingerprints_are_equal_disks) {
    std::mt19937_64 random(seed_of_this_run());
    std::size_t compared = 0;
    for (int round = 0; round < 60; ++round) {
        io::SimulatedStorage live;
        live.add_directory("/disk");
        io::RecordingStorage recorder(live);
        scribble(recorder, random, static_cast<int>(random() % 25));
        const io::Trace trace = recorder.take_trace();
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        Replay replay(disk, {});
        std::map<std::uint64_t, Image> seen;
        std::map<std::map<fs::path, std::vector<std::byte>>, std::uint64_t> fingerprints;
        for (std::size_t number = 0; number < trace.size(); ++number) {
            replay.begin(trace[number], number);
            for (int sample = 0; sample < 8; ++sample) {
                Replay::Selection selection(replay.unit_count());
                for (auto& unit : selection) unit = random() % 8 < static_cast<unsigned>(sample) ? 1 : 0;
                const std::uint64_t fingerprint = replay.fingerprint(selection);
                replay.mount(selection);
                const Image image = image_of(disk);
                disk.rollback();
                if (const auto known = seen.find(fingerprint); known != seen.end()) {
                    BOOST_REQUIRE((known->second.files == image.files));
                    ++compared;
                }
                seen[fingerprint] = image;
                const auto [entry, fresh] = fingerprints.emplace(image.files, fingerprint);
                BOOST_REQUIRE(entry->second == fingerprint);
            }
            replay.finish(trace[number]);
        }
    }
    BOOST_TEST(compared > 100U);
}

/// A number in a file, kept safe by writing the other of two slots, or not kept safe.
class Counter final : public Subject {
public:
    enum class Way { two_slots, no_sync, in_place };
    static void write(io::File& file, Way way, std::uint64_t number) {
        std::vector<std::byte> slot(1024, static_cast<std::byte>(number));
        file.write(slot, way == Way::in_place ? 0 : number % 2 * 1024);
        if (way != Way::no_sync) file.sync();
    }
    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        std::vector<std::byte> slots(2048);
        (void)disk.open("/disk/counter", io::Access::read_only)->read(slots, 0);
        std::uint64_t best = 0;
        for (std::size_t slot = 0; slot < 2; ++slot) {
            const auto first = slots.begin() + static_cast<std::ptrdiff_t>(slot * 1024);
            if (std::all_of(first, first + 1024, [&](std::byte byte) { return byte == *first; }))
                best = std::max(best, std::to_integer<std::uint64_t>(*first));
        }
        return best;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }
};

/// Ten numbers written to a file, and what was recorded of that.
struct CounterTrace {
    Image base;
    io::Trace trace;
    explicit CounterTrace(Counter::Way way) {
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        {
            const auto file = disk.create("/disk/counter");
            file->resize(2048);
        }
        base = image_of(disk);
        io::RecordingStorage recorder(disk);
        const auto file = recorder.open("/disk/counter", io::Access::read_write);
        for (std::uint64_t number = 1; number <= 10; ++number) {
            recorder.issue(number);
            Counter::write(*file, way, number);
            recorder.acknowledge(number);
        }
        trace = recorder.take_trace();
    }
};

std::optional<Failure> explore_counter(Counter::Way way) {
    const CounterTrace recorded(way);
    const Image& base = recorded.base;
    const io::Trace& trace = recorded.trace;
    Counter counter;
    Explorer explorer("counter", {});
    auto failure = explorer.explore(base, trace, counter);
    if (failure) {
        Explorer again("counter", {});
        const auto replayed = again.replay(failure->id, base, trace, counter);
        BOOST_REQUIRE(replayed.has_value());
        BOOST_TEST(replayed->id == failure->id);
        BOOST_TEST(replayed->what == failure->what);
        BOOST_TEST(again.tally().states == 1U);
    }
    return failure;
}

BOOST_AUTO_TEST_CASE(a_sound_protocol_passes_and_unsound_ones_are_caught_by_a_state_that_replays) {
    BOOST_TEST(!explore_counter(Counter::Way::two_slots).has_value());
    BOOST_TEST(explore_counter(Counter::Way::no_sync).has_value());
    BOOST_TEST(explore_counter(Counter::Way::in_place).has_value());
}

BOOST_AUTO_TEST_CASE(workers_that_share_a_trace_count_its_states_and_its_cuts_once) {
    const CounterTrace recorded(Counter::Way::two_slots);
    const auto tally_of = [&](std::uint64_t shard, std::uint64_t shards) {
        Counter counter;
        Explorer explorer("counter", {.shard = shard, .shards = shards, .counts_cuts = shard == 0});
        BOOST_TEST(!explorer.explore(recorded.base, recorded.trace, counter));
        return explorer.tally();
    };
    const Tally alone = tally_of(0, 1);
    Tally shared = tally_of(0, 2);
    shared.add(tally_of(1, 2));
    BOOST_TEST(alone.cuts > 20U);
    BOOST_TEST(shared.cuts == alone.cuts);
    BOOST_TEST(shared.states == alone.states);
    BOOST_TEST(shared.distinct == alone.distinct);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
