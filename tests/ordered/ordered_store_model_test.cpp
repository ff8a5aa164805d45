// Random programs on an ordered store and on a std::map of strings: the same answers, the same content in both directions, a sound tree, and no memory left over.
#include <taiyen/base/error.hpp>
#include <taiyen/ordered/ordered_store.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "ordered/store_keys.hpp"
#include "seed.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(ordered_store_model)

using taiyen::HeapFull;
using taiyen::OrderedStore;
using taiyen::VolatileHeap;
using taiyen::test::StoreKeys;

using Model = std::map<std::string, std::string>;
using Elements = std::vector<OrderedStore::Element>;

/// The store's content is the model's, whichever way it is read.
void require_same(const OrderedStore& store, const Model& model) {
    BOOST_REQUIRE(store.is_sound());
    BOOST_REQUIRE(store.size() == model.size());
    const Elements all(model.begin(), model.end());
    BOOST_REQUIRE(store.scan({}, all.size() + 1) == all);
    BOOST_REQUIRE(store.scan_reverse(std::nullopt, all.size() + 1) == Elements(model.rbegin(), model.rend()));
    BOOST_REQUIRE(store.count() == model.size());
}

/// One call of each, with the same key.
class Program {
public:
    Program(OrderedStore& store, std::uint64_t seed) : store_(store), keys_(seed) {}

    void step() {
        const std::string key = keys_.number(3) == 0 || model_.empty() ? keys_.key() : known();
        const auto found = model_.find(key);
        const auto known_value = found == model_.end() ? std::nullopt : std::optional(found->second);
        switch (keys_.number(is_shrinking ? 24 : 16)) {
            case 0:
            case 1:
            case 2: read(key, known_value); break;
            case 3: range(key); break;
            case 4: {
                const std::string value = keys_.value();
                BOOST_REQUIRE(store_.insert(key, value) == !known_value);
                model_.emplace(key, value);
                break;
            }
            case 5: {
                const auto expected = keys_.number(3) == 0 ? std::optional(keys_.value()) : known_value;
                const auto desired = keys_.number(3) == 0 ? std::nullopt : std::optional(keys_.value());
                BOOST_REQUIRE(store_.compare_exchange(key, expected, desired) == (expected == known_value));
                if (expected == known_value) put(key, desired);
                break;
            }
            case 6: add(key, known_value); break;
            case 7: batch(); break;
            case 8: walk(key); break;
            default:
                if (is_shrinking ? keys_.number(8) != 0 : keys_.number(4) == 0) {
                    BOOST_REQUIRE(store_.erase(key) == known_value.has_value());
                    model_.erase(key);
                } else {
                    const std::string value = keys_.value();
                    BOOST_REQUIRE(store_.set(key, value) == !known_value);
                    model_[key] = value;
                }
        }
    }
    const Model& model() const { return model_; }
    bool is_shrinking = false;

private:
    std::string known() {
        const auto at = model_.lower_bound(keys_.key());
        return at == model_.end() ? model_.begin()->first : at->first;
    }
    void put(const std::string& key, const std::optional<std::string>& value) {
        if (value)
            model_[key] = *value;
        else
            model_.erase(key);
    }
    void read(const std::string& key, const std::optional<std::string>& value) {
        BOOST_REQUIRE(store_.get(key) == value);
        BOOST_REQUIRE(store_.contains(key) == value.has_value());
        const OrderedStore::View view = store_.view(key);
        BOOST_REQUIRE(static_cast<bool>(view) == value.has_value());
        if (value) BOOST_REQUIRE(view.value() == *value);
        std::string buffer(keys_.number(200), '?');
        const auto length = store_.get(key, buffer);
        BOOST_REQUIRE(length == (value ? std::optional(value->size()) : std::nullopt));
        if (value) BOOST_REQUIRE(value->starts_with(buffer.substr(0, value->size())));
    }
    void range(const std::string& from) {
        const std::string to = keys_.key();
        const auto begin = model_.lower_bound(from);
        BOOST_REQUIRE(store_.count(from, to) == (from < to ? static_cast<std::uint64_t>(std::distance(begin, model_.lower_bound(to))) : 0));
        const std::string prefix = from.substr(0, keys_.number(from.size() + 1));
        Elements expected;
        for (auto at = model_.lower_bound(prefix); at != model_.end() && at->first.starts_with(prefix) && expected.size() != 50; ++at)
            expected.emplace_back(*at);
        Elements seen;
        store_.prefix(prefix, [&](std::string_view key, std::string_view value) {
            seen.emplace_back(key, value);
            return seen.size() != 50;
        });
        BOOST_REQUIRE(seen == expected);
    }
    void add(const std::string& key, const std::optional<std::string>& value) {
        if (value && value->size() != 8) {
            BOOST_REQUIRE_THROW(store_.fetch_add(key, 1), taiyen::Error);
            return;
        }
        std::int64_t before = 0;
        if (value) std::memcpy(&before, value->data(), sizeof before);
        BOOST_REQUIRE(store_.fetch_add(key, 7) == before);
        before += 7;
        model_[key] = std::string(reinterpret_cast<const char*>(&before), sizeof before);
    }
    void batch() {
        OrderedStore::Batch batch;
        for (std::uint64_t i = keys_.number(20); i != 0; --i) {
            const std::string key = keys_.number(2) == 0 || model_.empty() ? keys_.key() : known();
            const auto value = keys_.number(2) == 0 ? std::nullopt : std::optional(keys_.value());
            if (value)
                batch.set(key, *value);
            else
                batch.erase(key);
            put(key, value);
        }
        store_.apply(batch);
    }
    /// A cursor that turns round at random.
    void walk(const std::string& from) {
        OrderedStore::Cursor cursor = store_.cursor();
        auto at = model_.lower_bound(from);
        bool is_there = cursor.seek(from);
        if (keys_.number(2) == 0) {
            is_there = cursor.seek_at_most(from);
            at = model_.upper_bound(from);
            at = at == model_.begin() ? model_.end() : std::prev(at);
        }
        for (int i = 0; i != 60; ++i) {
            BOOST_REQUIRE(is_there == (at != model_.end()) && is_there == static_cast<bool>(cursor));
            if (!is_there) return;
            BOOST_REQUIRE(cursor.key() == at->first && cursor.value() == at->second);
            if (keys_.number(3) != 0) {
                is_there = cursor.next();
                ++at;
            } else {
                is_there = cursor.previous();
                at = at == model_.begin() ? model_.end() : std::prev(at);
            }
        }
    }

    OrderedStore& store_;
    StoreKeys keys_;
    Model model_;
};

BOOST_AUTO_TEST_CASE(a_store_answers_as_a_map_does) {
    VolatileHeap heap({.capacity = std::size_t{1} << 30U});
    const std::uint64_t before = heap.stats().live_blocks;
    {
        OrderedStore store(heap);
        Program program(store, taiyen::test::seed_of_run());
        for (int i = 0; i != 8'000; ++i) {
            program.is_shrinking = i / 2'000 % 2 == 1;
            program.step();
            if (i % 500 == 0) require_same(store, program.model());
        }
        require_same(store, program.model());
        for (const auto& [key, value] : program.model()) BOOST_REQUIRE(store.erase(key));
        require_same(store, {});
        store.trim();
        BOOST_TEST(store.stats().retired == 0U);
    }
    BOOST_TEST(heap.stats().live_blocks == before);
}

// A heap that is full again and again, at any of the allocations of a call.
BOOST_AUTO_TEST_CASE(a_call_without_memory_changes_nothing) {
    VolatileHeap heap({.capacity = std::size_t{768} << 10U});
    OrderedStore store(heap);
    Model model;
    StoreKeys keys(taiyen::test::seed_of_run());
    int full = 0;
    for (int i = 0; i != 6'000; ++i) {
        const std::string key = keys.key();
        if (i % 1'000 > 900) {
            BOOST_REQUIRE(store.erase(key) == (model.erase(key) != 0));
            continue;
        }
        const std::string value = keys.value();
        try {
            store.set(key, value);
            model[key] = value;
        } catch (const HeapFull&) {
            ++full;
            const auto at = model.find(key);
            BOOST_REQUIRE(store.get(key) == (at == model.end() ? std::nullopt : std::optional(at->second)));
            if (full % 50 == 0) require_same(store, model);
            if (keys.number(8) == 0 && !model.empty()) {
                const std::string gone = model.begin()->first;
                BOOST_REQUIRE(store.erase(gone) && model.erase(gone) == 1);
            }
        }
    }
    require_same(store, model);
    BOOST_TEST(full > 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
