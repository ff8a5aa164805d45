// Sets of ids in instrumented code: what the hooks saw is what changed, byte for byte, whatever form the ids of a chunk have and whichever node is split, joined or moved.
#include <taiyen/taiyen.hpp>

#include <random>

#include "instrumented/captured_scopes.hpp"
#include "object/interval_model.hpp"
#include "seed.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::object::test;
using change::test::Stage;
using Ids = object_id_set<>;

BOOST_AUTO_TEST_SUITE(instrumented_object_ids)

BOOST_AUTO_TEST_CASE(every_store_into_a_set_of_ids_is_seen_and_can_be_taken_back) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int program = 0; program < 3; ++program) {
        Stage stage(ByteCount{4} << 20U);
        Ids* const ids = stl::make<Ids>(stage.core());
        Ids* const other = stl::make<Ids>(stage.core());
        Pair<Ids> pair{*ids, *other, {}, {}};
        for (const Step& step : random_program(random(), 100, static_cast<Spread>(program))) {
            const std::string title = "step of kind " + std::to_string(step.kind);
            if (step.more % 5 == 0) {
                const Pair<Ids> before = pair;
                stage.taken_back(title, [&] { pair.run(step); });
                pair.model = before.model;
                pair.other_model = before.other_model;
            } else {
                stage.scope(title, [&] { pair.run(step); });
            }
            BOOST_REQUIRE(!stage.failed());
        }
        check_equal(*ids, pair.model);
        check_equal(*other, pair.other_model);
        stage.scope("destroying", [&] { stl::destroy_object(stage.core(), ids); });
    }
}

BOOST_AUTO_TEST_CASE(nodes_that_split_and_merge_are_seen) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Stage stage(ByteCount{4} << 20U);
    Ids* const ids = stl::make<Ids>(stage.core());
    std::vector<Id> some(6000);
    for (Id& id : some) id = static_cast<Id>(random());
    for (std::size_t i = 0; i < some.size(); i += 600) {
        stage.scope("inserting", [&] {
            for (std::size_t k = i; k < i + 600; ++k) ids->insert(some[k]);
        });
    }
    BOOST_TEST(ids->is_sound());
    for (std::size_t i = 0; i < some.size(); i += 600) {
        const auto erase = [&] {
            for (std::size_t k = i; k < i + 600; ++k) ids->erase(some[k]);
        };
        stage.taken_back("erasing", erase);
        BOOST_TEST(ids->contains(some[i]));
        stage.scope("erasing", erase);
    }
    BOOST_TEST(ids->empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
