// Group commit on a failing disk: a failed write is durable to nobody.

#include <memory>
#include <random>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/group_records.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_node.hpp"
#include "log/group_log.hpp"

namespace taiyen::crash {
namespace {

using namespace group;

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
            GroupLog log(
                std::make_unique<Ring>(std::shared_ptr<io::File>(faulty.open(log_path, io::Access::read_write)), identity, start, start.position),
                Serial{0}, {});
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
            if (found.last < acknowledged)
                return "write " + std::to_string(at) + " failed: " + std::to_string(found.last) + " of " + std::to_string(acknowledged) +
                       " durable records are there";
        } catch (const std::exception& error) {
            return "write " + std::to_string(at) + " failed: " + error.what();
        }
    }
}

BOOST_AUTO_TEST_SUITE(the_group_log)

BOOST_AUTO_TEST_CASE(tells_nobody_that_a_failed_write_is_durable) {
    std::uint64_t failures = 0;
    BOOST_TEST(fail_each_write(64_KiB, seed_of_this_run(), failures) == "");
    BOOST_TEST(failures > 20U);
}

BOOST_AUTO_TEST_CASE(that_wakes_waiters_before_it_is_poisoned_is_caught) {
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
