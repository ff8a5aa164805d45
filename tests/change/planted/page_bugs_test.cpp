// Each planted bug of page capture is noticed by comparing with a model, and by the audit where a write escapes.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "change/captured_core.hpp"
#include "heap/test_span.hpp"

namespace taiyen::change {
namespace {

using test::CapturedCore;

struct Planted {
    explicit Planted(Bug bug) { planted_bug = bug; }
    ~Planted() { planted_bug = Bug::none; }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;
};

/// Random scopes over a few pages, each cut, taken back and done again: "" or what went wrong.
std::string first_trouble(std::uint64_t seed, Audit audit) {
    std::mt19937_64 random(seed);
    constexpr std::uint64_t first = 512U << 10U;
    constexpr ByteCount length = 12 * page_bytes;
    CapturedCore core(1U << 20U);
    Recorder& recorder = core.capture(Capture::pages, audit);
    std::byte* const place = core.base() + first;
    for (int scope = 0; scope < 60; ++scope) {
        const std::vector<std::byte> before(place, place + length);
        recorder.begin_scope();
        for (std::uint64_t stores = random() % 6; stores > 0; --stores) {
            const std::uint64_t at = random() % length;
            std::memset(place + at, static_cast<int>(random()), std::min<ByteCount>(length - at, 1 + random() % 200));
        }
        const std::vector<std::byte> after(place, place + length);
        ChangeSet set;
        try {
            recorder.cut(set);
        } catch (const Error& error) {
            return error.code() == errc::uncaptured_store ? "audit" : "error";
        }
        recorder.end_scope();
        // A model that follows the sets alone.
        std::vector<std::byte> model = before;
        set.for_each(Direction::forward, [&](const Entry& entry) {
            if (entry.where.value < first || entry.where.value >= first + length) return;
            for (ByteCount i = 0; i < entry.length; ++i) model[entry.where.value - first + i] = entry.after.empty() ? std::byte{0} : entry.after[i];
        });
        if (model != after) return "forward";
        set.for_each(Direction::backward, [&](const Entry& entry) {
            if (entry.where.value < first || entry.where.value >= first + length) return;
            for (ByteCount i = 0; i < entry.length; ++i) model[entry.where.value - first + i] = entry.before.empty() ? std::byte{0} : entry.before[i];
        });
        if (model != before) return "backward";
    }
    return "";
}

std::string trouble(Audit audit) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (std::uint64_t i = 0; i < 10; ++i)
        if (std::string found = first_trouble(seed + i, audit); !found.empty()) return found;
    return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(page_bugs)

BOOST_AUTO_TEST_CASE(nothing_is_found_where_nothing_is_planted) {
    BOOST_TEST(trouble(Audit::off) == "");
    BOOST_TEST(trouble(Audit::scope) == "");
}

BOOST_AUTO_TEST_CASE(a_hot_page_that_is_not_compared_is_noticed) {
    const Planted bug(Bug::skip_hot_page);
    BOOST_TEST(trouble(Audit::off) == "forward");
    BOOST_TEST(trouble(Audit::scope) == "audit");
}

BOOST_AUTO_TEST_CASE(a_range_missed_at_a_pages_end_is_noticed) {
    const Planted bug(Bug::skip_page_end);
    BOOST_TEST(trouble(Audit::off) == "forward");
    BOOST_TEST(trouble(Audit::scope) == "audit");
}

BOOST_AUTO_TEST_CASE(a_twin_that_is_not_kept_up_to_date_is_noticed) {
    const Planted bug(Bug::stale_twin);
    BOOST_TEST(trouble(Audit::off) == "backward");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
