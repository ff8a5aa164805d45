// Group commit: after any crash a scan finds whole groups, all of what anybody was told is durable, and nothing that was never appended; and a failed write is durable to nobody.

#include <algorithm>
#include <memory>
#include <random>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/explorer.hpp"
#include "io/faulty_storage.hpp"
#include "log/forwarding_file.hpp"
#include "log/group_log.hpp"

namespace taiyen::crash {
namespace {

using log::GroupLog;
using log::Ring;

const std::filesystem::path log_path = "/disk/heap.tyn.log";

log::RingIdentity identity_of_test(ByteCount capacity) {
    log::RingIdentity identity;
    identity.ring.bytes.fill(0x33);
    identity.heap.bytes.fill(0x44);
    identity.capacity_bytes = capacity;
    identity.is_new = false;
    return identity;
}

std::vector<std::byte> bytes_of(std::uint64_t serial) {
    std::mt19937_64 random(serial);
    std::vector<std::byte> bytes(random() % 10 == 0 ? random() % 6000 : random() % 400);
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(random());
    }
    return bytes;
}

void append(GroupLog& log, std::uint64_t serial) {
    const auto bytes = bytes_of(serial);
    const std::span<const std::byte> piece(bytes);
    log.append({serial}, {&piece, 1});
}

struct Found {
    std::uint64_t last;
    log::RingStart next;
};

/// The serials behind `before`, each with its content; whole groups only. Throws if anything is wrong.
Found scan(const io::File& file, const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t before) {
    std::uint64_t last = before;
    const auto result = Ring::scan(file, identity, start, [&](const log::Record& group) {
        const bool sound = log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> bytes) {
            if (serial.value != last + 1) throw std::runtime_error("serial " + std::to_string(serial.value) + " follows serial " + std::to_string(last));
            const auto expected = bytes_of(serial.value);
            if (!std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end())) throw std::runtime_error("serial " + std::to_string(serial.value) + " has another content");
            last = serial.value;
        });
        if (!sound) throw std::runtime_error("a record is no group");
        return true;
    });
    if (result.how == log::ScanEnd::corrupt) throw std::runtime_error("a crash is taken for corruption");
    return {last, result.next};
}

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
log::RingStart live(io::RecordingStorage& disk, const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t& serial, std::uint64_t limit) {
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
    GroupLogSubject(const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t before) : identity_(identity), start_(start), before_(before) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override { return scan(*disk.open(log_path, io::Access::read_only), identity_, start_, before_).last; }

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

/// Goes round the ring several times; what is no longer needed is released between traces, by a header write that the test stands in for.
std::pair<Tally, std::optional<Failure>> explore_log(ByteCount capacity, std::uint64_t serials, std::uint64_t seed) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const log::RingIdentity identity = identity_of_test(capacity);
    Ring::format(*disk.create(log_path), identity);
    log::RingStart start{Epoch{seed}, 0, 1, seed + 7};
    Tally tally;
    for (std::uint64_t serial = 0; serial < serials;) {
        const Image base = image_of(disk);
        io::RecordingStorage recorder(disk);
        GroupLogSubject subject(identity, start, serial);
        const std::uint64_t before = serial;
        start = live(recorder, identity, start, serial, serials);
        Explorer explorer("group-log", {.states_per_cut = 200, .nested_one_in = 100, .nested_states_per_cut = 40, .seed = seed});
        const auto failure = explorer.explore(base, recorder.take_trace(), subject, before);
        tally.add(explorer.tally());
        if (failure) return {tally, failure};
    }
    return {tally, std::nullopt};
}

/// What a failed write leaves: one write after the other fails, whole or in part, then power fails. Returns what was wrong, or nothing.
std::string fail_each_write(ByteCount capacity, std::uint64_t seed, std::uint64_t& failures) {
    for (std::uint64_t at = 1;; ++at) {
        io::SimulatedStorage disk({.power_cuts = true});
        disk.add_directory("/disk");
        const log::RingIdentity identity = identity_of_test(capacity);
        Ring::format(*disk.create(log_path), identity);
        disk.sync_directory("/disk");
        io::FaultyStorage faulty(disk);
        log::RingStart start{Epoch{seed}, 0, 1, seed + 7};
        std::uint64_t acknowledged = 0;
        std::uint64_t before = 0;  // what the log's start lies behind
        std::mt19937_64 random(seed + at);
        {
            GroupLog log(std::make_unique<Ring>(std::shared_ptr<io::File>(faulty.open(log_path, io::Access::read_write)), identity, start, start.position), Serial{0}, {});
            bool told = false;
            log.on_failure = [&] { told = true; };
            faulty.arm({.at = at, .calls = io::Call::write_durable, .short_bytes = random() % 3 * 512});
            try {
                for (std::uint64_t serial = 1; serial <= 120; ++serial) {
                    append(log, serial);
                    if (random() % 3 == 0) {
                        log.wait_durable({serial});
                        acknowledged = serial;
                    }
                    if (log.used() > capacity / 3) {
                        log.wait_durable({serial});
                        acknowledged = before = serial;
                        start = log.durable_point().next;
                        log.release(start.position);
                    }
                }
                log.wait_durable({120});
                acknowledged = 120;
            } catch (const Error& error) {
                if (error.code() != errc::poisoned) throw;
            }
            if (faulty.fired() == 0) return {};
            ++failures;
            if (!told) return "write " + std::to_string(at) + " failed, and on_failure was not called";
            if (!log.poisoned()) return "write " + std::to_string(at) + " failed, and the log goes on";
            if (log.durable().value > acknowledged) acknowledged = log.durable().value;  // anybody may have been told
        }
        disk.power_cut();
        try {
            const Found found = scan(*disk.open(log_path, io::Access::read_only), identity, start, before);
            if (found.last < acknowledged) return "write " + std::to_string(at) + " failed: " + std::to_string(found.last) + " of " + std::to_string(acknowledged) + " durable records are there";
        } catch (const std::exception& error) {
            return "write " + std::to_string(at) + " failed: " + error.what();
        }
    }
}

BOOST_AUTO_TEST_SUITE(the_group_log)

BOOST_AUTO_TEST_CASE(keeps_what_anybody_was_told_is_durable_through_every_crash_state) {
    const std::uint64_t seed = seed_of_this_run();
    const auto serials = static_cast<std::uint64_t>(200 * std::max(budget(), 0.1));
    const auto [tally, failure] = explore_log(64_KiB, serials, seed);
    BOOST_TEST_MESSAGE("group log: " << tally.distinct << " distinct states of " << tally.states << ", nested " << tally.nested_distinct << " of " << tally.nested_states);
    if (failure) BOOST_ERROR(failure->id << ": " << failure->what);
    BOOST_TEST(tally.distinct > 3 * serials);
    BOOST_TEST(tally.nested_distinct > 3 * serials);
}

BOOST_AUTO_TEST_CASE(tells_nobody_that_a_failed_write_is_durable) {
    std::uint64_t failures = 0;
    BOOST_TEST(fail_each_write(64_KiB, seed_of_this_run(), failures) == "");
    BOOST_TEST(failures > 20U);
}

BOOST_AUTO_TEST_CASE(is_caught_when_a_safeguard_is_missing) {
    for (const auto& [bug, name] : {std::pair{Bug::group_before_write, "group_before_write"}, std::pair{Bug::acknowledge_before_write, "acknowledge_before_write"},
                                    std::pair{Bug::skip_stamp_check, "skip_stamp_check"}}) {
        planted_bug = bug;
        const auto [tally, failure] = explore_log(64_KiB, 200, seed_of_this_run());
        planted_bug = Bug::none;
        BOOST_TEST_MESSAGE(name << ": " << (failure ? failure->id + ": " + failure->what : "not caught"));
        BOOST_TEST(failure.has_value());
    }
    planted_bug = Bug::wake_before_poison;
    std::uint64_t failures = 0;
    const std::string failure = fail_each_write(64_KiB, seed_of_this_run(), failures);
    planted_bug = Bug::none;
    BOOST_TEST_MESSAGE("wake_before_poison: " << failure);
    BOOST_TEST(failure != "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
