// ObjectManager against a manager with one lock and no cleverness, by random programs of one thread that holds many check-outs at once.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <limits>
#include <list>
#include <map>
#include <random>
#include <vector>

#include <taiyen/object/object_manager.hpp>

#include "campaign_factor.hpp"
#include "object/check_outs_fixture.hpp"
#include "seed.hpp"

using taiyen::Access;
using taiyen::Checkout;
using taiyen::ObjectManager;
using namespace taiyen::object::test;

BOOST_AUTO_TEST_SUITE(object_manager_model)

namespace {

using Id = std::int64_t;

/// Who holds what: the plain truth.
class Model {
public:
    bool free(const std::vector<Id>& ids, Access access) const {
        return std::all_of(ids.begin(), ids.end(), [&](Id id) {
            const auto found = holders_.find(id);
            return found == holders_.end() || (access == Access::shared && found->second > 0);
        });
    }
    /// `ids`: each once.
    void take(const std::vector<Id>& ids, Access access) {
        BOOST_REQUIRE(free(ids, access));
        for (const Id id : ids)
            if (access == Access::exclusive)
                holders_[id] = -1;
            else
                ++holders_[id];
    }
    void give_back(const std::vector<Id>& ids) {
        for (const Id id : ids) {
            const auto found = holders_.find(id);
            BOOST_REQUIRE(found != holders_.end());
            if (found->second == -1 || --found->second == 0) holders_.erase(found);
        }
    }

private:
    std::map<Id, int> holders_;  ///< -1: a writer
};

struct Held {
    std::vector<Id> ids;
    Checkout<int> checkout;
};
struct Waiting {
    std::vector<Id> ids;
    Access access = Access::exclusive;
    bool granted = false;
    Checkout<int> checkout;
};

bool overlap(const std::vector<Id>& a, const std::vector<Id>& b) {
    return std::any_of(a.begin(), a.end(), [&](Id id) { return std::binary_search(b.begin(), b.end(), id); });
}

void run(std::uint64_t seed, int steps, std::size_t id_count) {
    std::mt19937_64 random(seed);
    constexpr Id boundaries[] = {std::numeric_limits<Id>::min(), std::numeric_limits<Id>::max(), -1, 0, Id{1} << 32, Id{1} << 56};
    std::vector<Id> known(std::begin(boundaries), std::end(boundaries));
    while (known.size() < id_count) known.push_back(static_cast<Id>(random()));
    std::vector<int> objects(known.size());
    const auto manager = make_manager<int>();
    for (std::size_t i = 0; i < known.size(); ++i) manager->add(known[i], objects[i]);
    Model model;
    std::list<Held> held;
    std::list<Waiting> waiting;
    // Whoever was granted by what just happened is a holder from now on.
    const auto settle = [&] {
        for (auto each = waiting.begin(); each != waiting.end();) {
            if (!each->granted) {
                ++each;
                continue;
            }
            model.take(each->ids, each->access);
            held.push_back({each->ids, std::move(each->checkout)});
            each = waiting.erase(each);
        }
        // The one that waits longest has no right of way before it was woken in vain often enough, but if all it wants is free it has it.
        for (const Waiting& each : waiting) {
            const bool stands_back =
                std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& other) { return &other != &each && overlap(each.ids, other.ids); });
            BOOST_REQUIRE(stands_back || !model.free(each.ids, each.access));
        }
        if (held.empty()) BOOST_REQUIRE(waiting.empty());
    };
    for (int step = 0; step < steps; ++step) {
        const Access access = random() % 2 == 0 ? Access::shared : Access::exclusive;
        std::vector<Id> asked(1 + random() % 4);
        for (Id& id : asked) id = known[random() % known.size()];
        std::vector<Id> ids = asked;
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        const auto kind = random() % 16;
        if (kind < 4) {
            Checkout<int> got = manager->try_checkout(asked, access);
            const bool somebody_waits = std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& other) { return overlap(ids, other.ids); });
            BOOST_REQUIRE(static_cast<bool>(got) ? model.free(ids, access) : !model.free(ids, access) || somebody_waits);
            if (got) {
                BOOST_REQUIRE(got.size() == ids.size());
                model.take(ids, access);
                held.push_back({ids, std::move(got)});
            }
        } else if (kind < 7 && waiting.size() < 8) {
            Waiting& mine = waiting.emplace_back();
            mine.ids = ids;
            mine.access = access;
            manager->checkout_async(asked, access, [&mine](Checkout<int> checkout, std::exception_ptr) {
                BOOST_REQUIRE(!mine.granted);
                mine.granted = true;
                mine.checkout = std::move(checkout);
            });
        } else if (kind < 15 && !held.empty()) {
            const auto which = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
            model.give_back(which->ids);
            which->checkout.release();
            held.erase(which);
        } else if (kind == 15) {
            const auto at = random() % known.size();
            if (model.free({known[at]}, Access::exclusive) && waiting.empty()) {
                BOOST_REQUIRE(manager->remove(known[at]));
                BOOST_REQUIRE(!manager->try_checkout(asked, access) ==
                              (std::count(ids.begin(), ids.end(), known[at]) != 0 || !model.free(ids, access)));
                manager->add(known[at], objects[at]);
            }
        }
        settle();
        BOOST_REQUIRE(manager->statistics().waiting == waiting.size());
    }
    while (!held.empty()) {
        model.give_back(held.front().ids);
        held.front().checkout.release();
        held.pop_front();
        settle();
    }
    BOOST_TEST(waiting.empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_programs_see_what_a_manager_with_one_lock_would_grant) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const std::size_t id_count : {6U, 8U, 20U, 400U}) run(seed + id_count, 50'000 * taiyen::test::campaign_factor(), id_count);
}

BOOST_AUTO_TEST_SUITE_END()
