/// Series are what a std::map makes of the same points, also behind a closed file, and a transaction that fails leaves nothing.

#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "series.hpp"

BOOST_AUTO_TEST_SUITE(stores)

namespace {

using Model = std::map<std::string, std::map<series::Time, double>>;

void check(const series::SeriesStore& store, const Model& model, std::mt19937_64& random) {
    std::vector<std::string> names;
    for (const auto& [name, points] : model) {
        names.push_back(name);
        const auto from = static_cast<series::Time>(random() % 5000);
        const auto to = from + static_cast<series::Time>(random() % 3000);
        const series::Time step = 1 + static_cast<series::Time>(random() % 200);
        std::vector<series::Point> expected;
        std::map<series::Time, series::Bucket> buckets;
        for (auto at = points.lower_bound(from); at != points.lower_bound(to); ++at) {
            const auto [time, value] = *at;
            expected.push_back({time, value});
            const series::Time begin = from + (time - from) / step * step;
            series::Bucket& bucket = buckets.try_emplace(begin, series::Bucket{begin, 0, value, value, 0}).first->second;
            bucket = {begin, bucket.points + 1, std::min(bucket.least, value), std::max(bucket.greatest, value), bucket.sum + value};
        }
        BOOST_REQUIRE((store.range(name, from, to) == expected));
        BOOST_REQUIRE(store.count(name, from, to) == expected.size());
        std::vector<series::Bucket> in_steps;
        for (const auto& [begin, bucket] : buckets) in_steps.push_back(bucket);
        BOOST_REQUIRE((store.downsample(name, from, to, step) == in_steps));
    }
    BOOST_REQUIRE((store.names() == names));
}

}  // namespace

BOOST_AUTO_TEST_CASE(points_are_found_in_ranges_and_steps_before_and_after_the_file_is_closed) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    taiyen::PersistentOptions options;
    options.log_capacity = std::size_t{1} << 20U;
    Model model;
    for (int life = 0; life < 4; ++life) {
        series::SeriesStore store(directory / "series.tyn", options);
        check(store, model, random);
        for (int step = 0; step < 25; ++step) {
            const std::string name = "sensor " + std::to_string(random() % 5);
            std::vector<series::Point> points;
            for (std::uint64_t i = random() % 200, time = random() % 5000; i != 0; --i, time += random() % 5) {
                points.push_back({static_cast<series::Time>(time), static_cast<double>(random() % 1000)});
                model[name][points.back().time] = points.back().value;
            }
            model[name];
            store.append(name, points);
            if (random() % 4 == 0) {
                const auto before = static_cast<series::Time>(random() % 2000);
                auto& of_model = model[name];
                const auto gone = static_cast<std::size_t>(std::distance(of_model.begin(), of_model.lower_bound(before)));
                of_model.erase(of_model.begin(), of_model.lower_bound(before));
                BOOST_REQUIRE(store.forget(name, before) == gone);
            }
        }
        check(store, model, random);
    }
}

BOOST_AUTO_TEST_CASE(an_append_that_has_no_room_changes_nothing) {
    const ScratchDirectory directory;
    taiyen::PersistentOptions options;
    options.capacity = std::size_t{1} << 20U;
    options.log_capacity = std::size_t{4} << 20U;
    series::SeriesStore store(directory / "series.tyn", options);
    const std::vector<series::Point> few{{1, 1}, {2, 4}};
    store.append("squares", few);
    std::vector<series::Point> many;
    for (series::Time i = 0; i < 200'000; ++i) many.push_back({i, static_cast<double>(i)});
    BOOST_CHECK_THROW(store.append("squares", many), taiyen::HeapFull);
    BOOST_TEST((store.range("squares") == few));
    BOOST_TEST((store.range("nothing of that name").empty()));
}

BOOST_AUTO_TEST_SUITE_END()
