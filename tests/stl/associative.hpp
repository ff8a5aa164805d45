#pragma once
/// Operations of map, set and their relatives for the matrix: keys are text, mapped values anything.

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "stl/matrix.hpp"

namespace taiyen::stl::test {

/// `Of` is the container; V is void for sets. B-trees have no nodes to extract.
template <class W, class V, class Of, bool HasNodes = true>
struct Associative {
    using Container = Of;
    using C = Of;
    using Op = Operation<W, C>;
    using K = typename W::string;
    static constexpr bool has_nodes = HasNodes;
    static constexpr bool is_map = !std::is_void_v<V>;
    static constexpr bool is_unordered = requires { typename C::hasher; };

    static K key(const Maker& make, int n) { return make.template string<K>(n); }
    static auto value(const Maker& make, int n) {
        if constexpr (is_map)
            return make.template value<W, V>(n);
        else
            return 0;
    }
    static auto element(const Maker& make, int n) {
        if constexpr (is_map)
            return std::pair<K, V>(key(make, n), value(make, n));
        else
            return key(make, n);
    }
    static void fill(C& c, const Maker& make, int first, int count) {
        for (int n = first; n < first + count; ++n) c.insert(element(make, n));
    }
    static constexpr bool is_unique = requires(C& c) { c.insert(*c.begin()).second; };

    static std::vector<Op> operations() {
        std::vector<Op> all;
        add_common<W, C>(all);
        all.push_back({"insert of a copy", [](C& c, C&, const Maker& make) {
                           const typename C::value_type v = element(make, 10);
                           c.insert(v);
                           return text_of(v);
                       }});
        all.push_back({"insert of a moved value", [](C& c, C&, const Maker& make) {
                           c.insert(element(make, 11));
                           return std::string();
                       }});
        all.push_back({"insert of what is there", [](C& c, C&, const Maker& make) {
                           c.insert(element(make, 2));
                           c.insert(*c.begin());
                           return std::string();
                       }});
        all.push_back({"insert with hint", [](C& c, C&, const Maker& make) {
                           c.insert(c.end(), element(make, 12));
                           return std::string();
                       }});
        all.push_back({"insert range of the other",
                       [](C& c, C& o, const Maker&) {
                           c.insert(o.begin(), o.end());
                           return text_of(o);
                       },
                       true});
        all.push_back({"insert moved range of the other",
                       [](C& c, C& o, const Maker&) {
                           c.insert(std::make_move_iterator(o.begin()), std::make_move_iterator(o.end()));
                           return std::string();
                       },
                       true});
        all.push_back({"insert list", [](C& c, C&, const Maker& make) {
                           c.insert({typename C::value_type(element(make, 13)), typename C::value_type(element(make, 14))});
                           return std::string();
                       }});
        all.push_back({"assign list", [](C& c, C&, const Maker& make) {
                           c = {typename C::value_type(element(make, 15)), typename C::value_type(element(make, 16))};
                           return std::string();
                       }});
        all.push_back({"emplace of an element", [](C& c, C&, const Maker& make) {
                           c.emplace(element(make, 17));
                           return std::string();
                       }});
        all.push_back({"emplace of the other's moved elements",
                       [](C& c, C& o, const Maker&) {
                           for (auto&& e : o) c.emplace(std::move(e));
                           return std::string();
                       },
                       true});
        all.push_back({"emplace_hint", [](C& c, C&, const Maker& make) {
                           c.emplace_hint(c.begin(), element(make, 18));
                           return std::string();
                       }});
        all.push_back({"many inserts", [](C& c, C&, const Maker& make) {
                           for (int n = 0; n < 60; ++n) c.insert(element(make, 200 + n));
                           return std::string();
                       }});
        all.push_back({"erase by key", [](C& c, C&, const Maker& make) {
                           c.erase(key(make, 2));
                           return std::string();
                       }});
        all.push_back({"erase by iterator found by a view", [](C& c, C&, const Maker&) {
                           c.erase(c.find(std::string_view(long_text(3))));
                           return std::string();
                       }});
        all.push_back({"erase range", [](C& c, C&, const Maker&) {
                           c.erase(c.begin(), c.end());
                           return std::string();
                       }});
        all.push_back({"std::erase_if", [](C& c, C&, const Maker&) {
                           using std::erase_if;
                           erase_if(c, [](const auto& e) { return text_of(e).find("1002") != std::string::npos; });
                           return std::string();
                       }});
        all.push_back({"looked up by views and literals", [](C& c, C&, const Maker&) {
                           const C& constant = c;
                           return std::to_string(constant.count(std::string_view(long_text(1)))) +
                                  std::to_string(constant.count(long_text(2).c_str())) +
                                  std::to_string(constant.contains("nothing of that name, and longer than what a string keeps inside itself"));
                       }});
        if constexpr (has_nodes) with_nodes(all);
        all.push_back({"merge",
                       [](C& c, C& o, const Maker& make) {
                           o.insert(element(make, 2));
                           c.merge(o);
                           return text_of(o);
                       },
                       true, true});
        all.push_back({"constructed from a range",
                       [](C& c, C& o, const Maker&) {
                           C made(c.get_allocator());
                           made.insert(o.begin(), o.end());
                           return text_of(made);
                       },
                       true});
        if constexpr (is_unordered) with_buckets(all);
        if constexpr (is_map) with_values(all);
        return all;
    }

    static void with_nodes(std::vector<Op>& all) {
        all.push_back({"a node extracted and inserted again", [](C& c, C&, const Maker&) {
                           c.insert(c.extract(c.find(std::string_view(long_text(1)))));
                           return std::string();
                       }});
        all.push_back({"a node extracted and dropped", [](C& c, C&, const Maker&) {
                           c.extract(c.find(std::string_view(long_text(1))));
                           return std::string();
                       }});
        all.push_back({"a node given another key", [](C& c, C&, const Maker& make) {
                           auto node = c.extract(c.find(std::string_view(long_text(1))));
                           if constexpr (is_map)
                               node.key() = key(make, 90);
                           else
                               node.value() = key(make, 90);
                           c.insert(std::move(node));
                           return std::string();
                       }});
        all.push_back({"nodes of the other",
                       [](C& c, C& o, const Maker&) {
                           c.insert(o.extract(o.begin()));
                           return std::string();
                       },
                       true, true});
    }

    static void with_buckets(std::vector<Op>& all) {
        all.push_back({"rehash", [](C& c, C&, const Maker& make) {
                           c.rehash(1000);
                           c.insert(element(make, 20));
                           return std::string();
                       }});
        all.push_back({"reserve", [](C& c, C&, const Maker& make) {
                           c.reserve(500);
                           c.insert(element(make, 21));
                           return std::string();
                       }});
        all.push_back({"rehash down", [](C& c, C&, const Maker&) {
                           c.rehash(1000);
                           c.rehash(0);
                           return std::string();
                       }});
        all.push_back({"load factor", [](C& c, C&, const Maker& make) {
                           c.max_load_factor(some_load_factor);
                           for (int n = 0; n < 30; ++n) c.insert(element(make, 300 + n));
                           return std::string();
                       }});
        all.push_back({"down to its own bucket and out", [](C& c, C&, const Maker& make) {
                           c.clear();
                           c.rehash(0);
                           C out(std::move(c));
                           c.clear();
                           c.insert(element(make, 22));
                           return text_of(out);
                       }});
    }

    static void with_values(std::vector<Op>& all) {
        all.push_back({"emplace piecewise", [](C& c, C&, const Maker& make) {
                           c.emplace(std::piecewise_construct, std::forward_as_tuple(key(make, 30)), std::forward_as_tuple(value(make, 31)));
                           return std::string();
                       }});
        all.push_back({"emplace of key and value", [](C& c, C&, const Maker& make) {
                           c.emplace(key(make, 32), value(make, 33));
                           return std::string();
                       }});
        all.push_back({"emplace of copies", [](C& c, C&, const Maker& make) {
                           const K k = key(make, 34);
                           const V v = value(make, 35);
                           c.emplace(k, v);
                           return text_of(v);
                       }});
        all.push_back({"a mapped value moved out", [](C& c, C&, const Maker&) {
                           V out(std::move(c.begin()->second));
                           c.erase(c.begin());
                           return is_unordered ? std::string() : text_of(out);
                       }});
        all.push_back({"mapped values swapped", [](C& c, C&, const Maker&) {
                           if (!is_unordered) std::swap(c.begin()->second, std::next(c.begin())->second);
                           return std::string();
                       }});
        if constexpr (requires(C& c, K k, V v) { c.insert_or_assign(std::move(k), std::move(v)); }) {
            all.push_back({"try_emplace", [](C& c, C&, const Maker& make) {
                               const K k = key(make, 36);
                               c.try_emplace(k, value(make, 37));
                               c.try_emplace(key(make, 38), value(make, 39));
                               c.try_emplace(key(make, 2), value(make, 40));
                               return std::string();
                           }});
            all.push_back({"insert_or_assign", [](C& c, C&, const Maker& make) {
                               c.insert_or_assign(key(make, 41), value(make, 42));
                               const V v = value(make, 43);
                               const K k = key(make, 44);
                               c.insert_or_assign(k, v);
                               return std::string();
                           }});
            // Assignment of a struct with a variant may move a temporary in (smuggling_test.cpp).
            if constexpr (!std::is_same_v<V, Rich<W>>) {
                all.push_back({"insert_or_assign over what is there", [](C& c, C&, const Maker& make) {
                                   c.insert_or_assign(key(make, 2), value(make, 45));
                                   return std::string();
                               }});
                all.push_back({"operator[]", [](C& c, C&, const Maker& make) {
                                   c[key(make, 46)] = value(make, 47);
                                   const V v = value(make, 48);
                                   c[key(make, 1)] = v;
                                   return std::string();
                               }});
            }
            all.push_back({"operator[] reads", [](C& c, C&, const Maker& make) { return text_of(c[key(make, 3)]) + text_of(c.at(key(make, 4))); }});
        }
    }
};

}  // namespace taiyen::stl::test
