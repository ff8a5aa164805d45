// Capture of stores with one safeguard removed at a time: the audit must notice each.
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "base/planted.hpp"
#include "change/captured_core.hpp"
#include "heap/test_span.hpp"

namespace taiyen::change {
namespace {

struct Planted {
    explicit Planted(Bug bug) { planted_bug = bug; }
    ~Planted() { planted_bug = Bug::none; }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;
};

struct Odd {
    char bytes[77];
};
constexpr std::size_t line_bytes = 64;

/// Whether the audit complained about one of many scopes.
bool audit_complains(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    test::CapturedCore core(1U << 20U);
    auto& map = *stl::make<taiyen::map<int, int>>(core);
    auto* const block = static_cast<std::byte*>(core.engine().allocate(100U << 10U));
    Recorder& recorder = core.capture(Capture::stores, Audit::scope);
    try {
        for (int scope = 0; scope < 600; ++scope) {
            recorder.begin_scope();
            if (scope % 2 == 0) {
                Odd odd;
                std::memset(odd.bytes, 1 + scope % 100, sizeof odd);
                // Now and then the last byte is alone in its line, wherever chance leads.
                std::size_t at = random() % (99U << 10U);
                if (scope % 20 == 0) at = round_down(at, line_bytes) + line_bytes - (sizeof odd - 1) % line_bytes;
                *reinterpret_cast<Odd*>(block + at) = odd;
            } else {
                map[static_cast<int>(random() % 1000)] = scope;
            }
            ChangeSet set;
            recorder.cut(set);
            recorder.end_scope();
        }
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::uncaptured_store));
        return true;
    }
    return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(planted_bugs)

BOOST_AUTO_TEST_CASE(without_a_bug_the_audit_is_content) { BOOST_TEST(!audit_complains(taiyen::test::seed_of_run())); }

BOOST_AUTO_TEST_CASE(a_hook_that_misses_a_last_byte_is_noticed) {
    const Planted bug(Bug::hook_misses_last_byte);
    BOOST_TEST(audit_complains(taiyen::test::seed_of_run()));
}

BOOST_AUTO_TEST_CASE(lines_that_are_not_kept_again_after_a_cut_are_noticed) {
    const Planted bug(Bug::lines_stay_kept);
    BOOST_TEST(audit_complains(taiyen::test::seed_of_run()));
}

BOOST_AUTO_TEST_CASE(engine_writes_that_nobody_hears_are_noticed) {
    const Planted bug(Bug::engine_writes_unheard);
    BOOST_TEST(audit_complains(taiyen::test::seed_of_run()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
