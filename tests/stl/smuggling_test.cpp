// What no allocator sees: moves that the language or the library makes by placement new. The scan must find each of them; the copy beside it must pass.
#include <optional>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using stl::test::long_text;
using stl::test::Ours;
using stl::test::Part;

namespace {

struct TwoHeaps {
    MemoryCore core;
    MemoryCore other;
    stl::test::Maker make{};
    bool smuggled() {
        const heap::ForeignPointerScan scan(core);
        return scan.find(HeapOffset{0}, core.engine().extent()).has_value();
    }
    taiyen::string text(int n) { return make.string<taiyen::string>(n); }
};

struct Holder {
    std::optional<taiyen::string> note;
    std::variant<int, taiyen::string> content;
    taiyen::string name;
};

/// Takes its text by value and moves it into a member.
struct Taker {
    taiyen::string name;
    explicit Taker(taiyen::string given) : name(std::move(given)) {}
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(smuggling, TwoHeaps)

BOOST_AUTO_TEST_CASE(an_optional_that_takes_over_a_moved_string_is_found) {
    auto* const holder = stl::make<Holder>(core);
    BOOST_TEST(!smuggled());
    const taiyen::string copy = text(1);
    holder->note = copy;
    BOOST_TEST(!smuggled());
    holder->note.reset();
    holder->note = text(2);
    BOOST_TEST(smuggled());
    holder->note = copy;
    BOOST_TEST(smuggled());  // assignment between strings keeps a buffer that is large enough
    holder->note.emplace(copy);
    BOOST_TEST(!smuggled());
    stl::destroy_object(core, holder);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_variant_that_changes_its_alternative_by_assignment_is_found) {
    auto* const holder = stl::make<Holder>(core);
    holder->content = text(1);
    BOOST_TEST(smuggled());
    const taiyen::string copy = text(2);
    holder->content = 1;
    BOOST_TEST(!smuggled());
    holder->content.emplace<taiyen::string>(copy);
    BOOST_TEST(!smuggled());
    holder->content = text(3);  // the same alternative: the strings' own assignment
    BOOST_TEST(!smuggled());
    stl::destroy_object(core, holder);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_by_value_parameter_moved_into_a_member_is_found) {
    auto* const takers = stl::make<taiyen::vector<Taker>>(core);
    takers->emplace_back(text(1));
    BOOST_TEST(smuggled());
    takers->clear();
    takers->shrink_to_fit();
    BOOST_TEST(!smuggled());
    takers->push_back(Taker(text(2)));  // made outside, then copied in
    BOOST_TEST(!smuggled());
    stl::destroy_object(core, takers);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_node_put_into_a_map_of_another_home_is_found) {
    auto* const map = stl::make<taiyen::map<int, int>>(core);
    taiyen::map<int, int> outside(core);
    outside[1] = 1;
    map->insert(outside.extract(1));
    BOOST_TEST(smuggled());
    map->erase(1);
    auto* const elsewhere = stl::make<taiyen::map<int, int>>(other);
    (*elsewhere)[2] = 2;
    map->merge(*elsewhere);
    BOOST_TEST(smuggled());
    map->clear();
    BOOST_TEST(!smuggled());
    stl::destroy_object(core, map);
    stl::destroy_object(other, elsewhere);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
    BOOST_TEST(other.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_pointer_into_another_heap_is_found) {
    auto* const pointers = stl::make<taiyen::vector<int*>>(core);
    int* const elsewhere = stl::make<int>(other, 5);
    pointers->push_back(stl::make<int>(core, 6));
    BOOST_TEST(!smuggled());
    pointers->push_back(elsewhere);
    BOOST_TEST(smuggled());
    stl::destroy_object(core, pointers->front());
    stl::destroy_object(core, pointers);
    stl::destroy_object(other, elsewhere);
}

BOOST_AUTO_TEST_CASE(structs_are_copied_wherever_a_container_moves_them_in) {
    auto* const parts = stl::make<taiyen::vector<Part<Ours>>>(core);
    auto* const map = stl::make<taiyen::map<taiyen::string, Part<Ours>>>(core);
    auto* const optionals = stl::make<taiyen::list<std::optional<taiyen::string>>>(core);
    for (int n = 0; n < 20; ++n) {
        parts->push_back(make.part<Ours>(n));
        parts->emplace_back(text(n), make.container<taiyen::vector<taiyen::string>>(), 1.0, 2.0);
        parts->insert(parts->begin(), make.part<Ours>(n));
        map->try_emplace(text(n), make.part<Ours>(n));
        map->emplace(text(n + 100), make.part<Ours>(n));
        (*map)[text(n)] = make.part<Ours>(n + 1);
        optionals->emplace_back(text(n));
        optionals->push_back(text(n));
        BOOST_TEST(!smuggled());
    }
    stl::destroy_object(core, parts);
    stl::destroy_object(core, map);
    stl::destroy_object(core, optionals);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
