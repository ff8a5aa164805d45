// The layout of what lies inside a type: what changes it, what ends the look, and that every compiler sees the same.
#include <taiyen/stl/detail/layout.hpp>

#include <atomic>

#include <variant>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/detail/fingerprint.hpp>

using taiyen::stl::layout_of;

namespace layout_test {

namespace before {
struct Item {
    taiyen::string name;
    long price;
};
struct Shelf {
    char label[100];
    taiyen::vector<Item> items;
};
struct Shop {
    taiyen::map<int, Shelf> shelves;
};
struct Node {
    taiyen::vector<Node> children;
    Node* parent;
    taiyen::map<int, Node> named;
};
struct Target {
    int a;
};
struct Pointing {
    Target* target;
    taiyen::vector<Target*> targets;
};
}  // namespace before

namespace after {
struct Item {
    taiyen::string name;
    long price;
    long stock;
};
struct Shelf {
    char label[100];
    taiyen::vector<Item> items;
};
struct Shop {
    taiyen::map<int, Shelf> shelves;
};
struct Node {
    taiyen::vector<Node> children;
    Node* parent;
    taiyen::map<int, Node> named;
    int more;
};
struct Target {
    int a;
    int b;
};
struct Pointing {
    Target* target;
    taiyen::vector<Target*> targets;
};
}  // namespace after

struct ShortShortInt {
    short a, b;
    int c;
};
struct IntShortShort {
    int c;
    short a, b;
};
struct Real {
    short a, b;
    float c;
};

class Closed {
public:
    Closed() : items_() {}

private:
    taiyen::vector<before::Item> items_;
};
class ClosedToo {
public:
    ClosedToo() : items_() {}

private:
    taiyen::vector<after::Item> items_;
};

struct Tagged {
    int a;
    int b;
};
struct Untagged {
    int a;
    int b;
};

/// What can't be bound member by member counts as one piece; the point is that it compiles.
struct Anonymous {
    int tag;
    union {
        int number;
        float real;
    };
};
struct AnonymousStruct {
    int tag;
    union {
        struct {
            int x, y;
        } point;
        long both;
    } u;
};
struct Base {
    int b;
};
struct Derived : Base {
    int d;
};
struct NoDefault {
    explicit NoDefault(int);
};
struct HasNoDefault {
    int a;
    NoDefault b;
};
struct TakesAll {
    TakesAll() = default;
    template <class T>
    TakesAll(T&&);  // NOLINT
    int x;
};
struct HasTakesAll {
    int a;
    TakesAll b;
    int c;
};
struct Bits {
    unsigned a : 3;
    unsigned b : 5;
    long c;
};
struct Wrapped {
    std::optional<before::Item> maybe;
    std::variant<int, before::Item, taiyen::string> one;
    std::tuple<int, std::array<before::Item, 2>> both;
    std::atomic<int> count;
    const double table[3][4];
};
struct Full {
    int a[2], b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F;
};
struct TooFull {
    int a[2], b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F, G;
};

}  // namespace layout_test

template <>
inline constexpr std::uint64_t taiyen::layout_tag<layout_test::Tagged> = 2;

BOOST_AUTO_TEST_SUITE(layout)

using namespace layout_test;

BOOST_AUTO_TEST_CASE(a_struct_that_grew_changes_everything_that_holds_it) {
    BOOST_TEST(layout_of<before::Item>() != layout_of<after::Item>());
    BOOST_TEST(layout_of<before::Shop>() != layout_of<after::Shop>());
    BOOST_TEST((layout_of<taiyen::unordered_map<int, before::Shelf>>() != layout_of<taiyen::unordered_map<int, after::Shelf>>()));
    BOOST_TEST((layout_of<taiyen::map<before::Item, int>>() != layout_of<taiyen::map<after::Item, int>>()));
    BOOST_TEST((layout_of<std::pair<int, taiyen::vector<before::Shop>>>() != layout_of<std::pair<int, taiyen::vector<after::Shop>>>()));
    BOOST_TEST(layout_of<before::Node>() != layout_of<after::Node>());
    BOOST_TEST((layout_of<std::array<before::Shop, 3>>() != layout_of<before::Shop[3]>()));
    BOOST_TEST((layout_of<std::variant<int, before::Shop>>() != layout_of<std::variant<int, after::Shop>>()));
}

BOOST_AUTO_TEST_CASE(members_of_one_size_in_another_order_or_of_another_kind_change_it) {
    static_assert(sizeof(ShortShortInt) == sizeof(IntShortShort) && sizeof(ShortShortInt) == sizeof(Real));
    BOOST_TEST(layout_of<ShortShortInt>() != layout_of<IntShortShort>());
    BOOST_TEST(layout_of<ShortShortInt>() != layout_of<Real>());
}

BOOST_AUTO_TEST_CASE(what_pointers_lead_to_and_what_constructors_hide_is_not_seen) {
    BOOST_TEST(layout_of<before::Pointing>() == layout_of<after::Pointing>());
    BOOST_TEST(layout_of<Closed>() == layout_of<ClosedToo>());
    BOOST_TEST(layout_of<taiyen::vector<Closed>>() == layout_of<taiyen::vector<ClosedToo>>());
}

BOOST_AUTO_TEST_CASE(a_tag_is_part_of_it) {
    BOOST_TEST(layout_of<Tagged>() != layout_of<Untagged>());
    BOOST_TEST(layout_of<taiyen::vector<Tagged>>() != layout_of<taiyen::vector<Untagged>>());
}

BOOST_AUTO_TEST_CASE(members_are_counted_where_that_is_certain) {
    using taiyen::stl::bound_members;
    BOOST_TEST(bound_members<before::Shelf>() == 2U);
    BOOST_TEST(bound_members<before::Node>() == 3U);
    BOOST_TEST(bound_members<Bits>() == 3U);
    BOOST_TEST(bound_members<Wrapped>() == 5U);
    BOOST_TEST(bound_members<Full>() == 32U);
    BOOST_TEST(bound_members<TooFull>() == 0U);
    BOOST_TEST(bound_members<Anonymous>() == 0U);
    BOOST_TEST(bound_members<Derived>() == 0U);
    BOOST_TEST(bound_members<HasNoDefault>() == 0U);
    BOOST_TEST(bound_members<HasTakesAll>() == 0U);
}

// Stored in heaps: another compiler, another standard or another version of this library gives the same numbers.
BOOST_AUTO_TEST_CASE(every_compiler_sees_the_same_numbers) {
    BOOST_TEST(layout_of<before::Shop>() == 0x3173'7f64'1b74'06c1U);
    BOOST_TEST(layout_of<before::Node>() == 0xdabd'a3a7'2b5b'2d2bU);
    BOOST_TEST(layout_of<Wrapped>() == 0x2887'94d7'feda'f254U);
    BOOST_TEST(layout_of<Bits>() == 0xa95e'00d4'c942'30cbU);
    BOOST_TEST(layout_of<Full>() == 0x7dee'2dc7'd54c'df50U);
    BOOST_TEST(layout_of<TooFull>() == 0x8098'2fe2'651f'4b26U);
    BOOST_TEST(layout_of<Anonymous>() == 0x85c4'2749'ed8f'b232U);
    BOOST_TEST(layout_of<AnonymousStruct>() == 0xd2a7'89fe'01e8'f7b8U);
    BOOST_TEST(layout_of<Derived>() == 0x85c4'2749'ed8f'b232U);
    BOOST_TEST(layout_of<HasNoDefault>() == 0x85c4'2749'ed8f'b232U);
    BOOST_TEST(layout_of<HasTakesAll>() == 0x08c4'fa25'ebec'9801U);
    BOOST_TEST((layout_of<taiyen::unordered_map<taiyen::string, taiyen::vector<Wrapped>>>() == 0x1932'c9ae'1ba4'd7edU));
}

BOOST_AUTO_TEST_SUITE_END()
