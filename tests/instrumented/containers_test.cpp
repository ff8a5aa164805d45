// Every operation of every container alias, inside a heap, with text that never fits into a string's own space: what the hooks saw is what changed, byte for byte.
#include <memory>
#include <optional>
#include <string>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "instrumented/captured_scopes.hpp"
#include "stl/associative.hpp"
#include "stl/sequences.hpp"

namespace {

using taiyen::change::test::Stage;
using namespace taiyen::stl::test;

/// Each operation once in a scope that is kept and once in a scope that is taken back, on a container that lies in the heap; the other one lies there, too, or outside.
template <class Suite>
void every_operation() {
    using C = typename Suite::Container;
    std::size_t scopes = 0;
    Stage stage(taiyen::ByteCount{1} << 20U);
    const Maker make{&stage.core()};
    for (const auto& operation : Suite::operations()) {
        for (const bool other_inside : {true, false}) {
            if (!operation.binary && !other_inside) continue;
            if (operation.same_home_only && !other_inside) continue;
            for (const bool kept : {true, false}) {
                C* const container = taiyen::stl::make<C>(stage.core());
                C outside{typename C::allocator_type(stage.core())};
                C* const other = other_inside ? taiyen::stl::make<C>(stage.core()) : &outside;
                stage.scope(operation.name + ", filling", [&] {
                    Suite::fill(*container, make, 0, 5);
                    Suite::fill(*other, make, 100, 3);
                });
                const std::string title = operation.name + (other_inside ? "; other inside" : "; other outside");
                if (kept) {
                    stage.scope(title, [&] { operation.run(*container, *other, make); });
                } else {
                    // An object outside that a scope changed is invalid once it is taken back: these lie inside.
                    if (!other_inside) {
                        outside.clear();
                        taiyen::stl::destroy_object(stage.core(), container);
                        continue;
                    }
                    stage.taken_back(title, [&] { operation.run(*container, *other, make); });
                }
                stage.scope(title + ", then destroyed", [&] {
                    if (other_inside) taiyen::stl::destroy_object(stage.core(), other);
                    taiyen::stl::destroy_object(stage.core(), container);
                });
                ++scopes;
            }
        }
    }
    BOOST_TEST(scopes > Suite::operations().size());
}

template <class V, template <class> class Of>
void sequence() {
    every_operation<Sequence<Ours, V, Of>>();
}
template <class V, class Of>
void associative() {
    every_operation<Associative<Ours, V, Of>>();
}

using String = taiyen::string;
using Parts = Part<Ours>;
using Richs = Rich<Ours>;

}  // namespace

BOOST_AUTO_TEST_SUITE(containers)

BOOST_AUTO_TEST_CASE(vectors) {
    sequence<String, taiyen::vector>();
    sequence<Parts, taiyen::vector>();
    sequence<Richs, taiyen::vector>();
}
BOOST_AUTO_TEST_CASE(deques) {
    sequence<String, taiyen::deque>();
    sequence<Parts, taiyen::deque>();
    sequence<Richs, taiyen::deque>();
}
BOOST_AUTO_TEST_CASE(lists) {
    sequence<String, taiyen::list>();
    sequence<Parts, taiyen::list>();
    sequence<Richs, taiyen::list>();
}
BOOST_AUTO_TEST_CASE(forward_lists) {
    sequence<String, taiyen::forward_list>();
    sequence<Parts, taiyen::forward_list>();
    sequence<Richs, taiyen::forward_list>();
}
BOOST_AUTO_TEST_CASE(maps) {
    associative<String, taiyen::map<String, String>>();
    associative<Richs, taiyen::map<String, Richs>>();
}
BOOST_AUTO_TEST_CASE(multimaps) {
    associative<String, taiyen::multimap<String, String>>();
    associative<Parts, taiyen::multimap<String, Parts>>();
}
BOOST_AUTO_TEST_CASE(sets) { associative<void, taiyen::set<String>>(); }
BOOST_AUTO_TEST_CASE(multisets) { associative<void, taiyen::multiset<String>>(); }
BOOST_AUTO_TEST_CASE(unordered_maps) {
    associative<String, taiyen::unordered_map<String, String>>();
    associative<Richs, taiyen::unordered_map<String, Richs>>();
}
BOOST_AUTO_TEST_CASE(unordered_multimaps) { associative<Parts, taiyen::unordered_multimap<String, Parts>>(); }
BOOST_AUTO_TEST_CASE(unordered_sets) { associative<void, taiyen::unordered_set<String>>(); }
BOOST_AUTO_TEST_CASE(unordered_multisets) { associative<void, taiyen::unordered_multiset<String>>(); }

BOOST_AUTO_TEST_SUITE_END()
