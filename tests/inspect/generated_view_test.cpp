// Two hundred structures that nobody wrote: what is shown of each is what the program prints, after every change.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <random>
#include <sstream>
#include <tuple>
#include <utility>

#include <taiyen/taiyen.hpp>

#include "base/sanitizers.hpp"
#include "inspect/printed.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"

namespace generated_view_test {
using namespace taiyen;
using view_test::Printer;

#ifdef TAIYEN_ADDRESS_SANITIZER
constexpr std::size_t structures = 30;  // their compilation is most of it
#else
constexpr std::size_t structures = 200;
#endif

template <class A>
struct Of1 {
    A first_of_all{};
};
template <class A, class B>
struct Of2 {
    A left{};
    B right{};
};
template <class A, class B, class C>
struct Of3 {
    A x{};
    B y{};
    C z{};
};
template <class A, class B, class C, class D>
struct Of4 {
    A north{};
    B east{};
    C south{};
    D west{};
};
template <class A, class B, class C, class D, class E>
struct Of5 {
    A one{};
    B two{};
    C three{};
    D four{};
    E five{};
};

enum class Kind : std::uint8_t { none, some, all };
enum Plain : std::int32_t { low = -5, high = 5 };

constexpr std::size_t mixed(std::size_t a, std::size_t b) {
    std::size_t x = a * 0x9e3779b97f4a7c15U + b * 0xc2b2ae3d27d4eb4fU + 1;
    x = (x ^ x >> 29U) * 0xbf58476d1ce4e5b9U;
    return x ^ x >> 32U;
}

template <std::size_t Seed>
struct Structure;

// Fields of structure `Seed`, by a number that is mixed from it: numbers, texts, containers of few types, so that most of them are compiled once, and structures of smaller numbers.
using Simple = std::tuple<std::int8_t, std::uint16_t, std::int32_t, std::uint64_t, float, double, bool, char, Kind, Plain, taiyen::string>;
template <std::size_t N>
using SimpleOf = std::tuple_element_t<N % std::tuple_size_v<Simple>, Simple>;

template <std::size_t Seed, std::size_t Which>
struct Field {
    static constexpr std::size_t number = mixed(Seed, Which);
    using One = SimpleOf<number / 32>;
    using Other = SimpleOf<number / 512 % 4>;
    static auto made() {
        constexpr std::size_t kind = number % 24;
        if constexpr (kind == 0)
            return std::type_identity<taiyen::vector<std::conditional_t<std::is_same_v<One, bool>, char, One>>>();
        else if constexpr (kind == 1)
            return std::type_identity<taiyen::map<int, Other>>();
        else if constexpr (kind == 2)
            return std::type_identity<taiyen::map<taiyen::string, Other>>();
        else if constexpr (kind == 3)
            return std::type_identity<std::optional<One>>();
        else if constexpr (kind == 4)
            return std::type_identity<std::variant<Other, taiyen::string>>();
        else if constexpr (kind == 5)
            return std::type_identity<std::pair<One, Other>>();
        else if constexpr (kind == 6)
            return std::type_identity<std::tuple<Other, One>>();
        else if constexpr (kind == 7)
            return std::type_identity<std::array<One, 1 + number / 64 % 3>>();
        else if constexpr (kind == 8)
            return std::type_identity<taiyen::deque<Other>>();
        else if constexpr (kind == 9)
            return std::type_identity<taiyen::list<Other>>();
        else if constexpr (kind == 10)
            return std::type_identity<taiyen::btree_map<int, Other>>();
        else if constexpr (kind == 11)
            return std::type_identity<taiyen::unordered_map<int, Other>>();
        else if constexpr (kind == 12)
            return std::type_identity<taiyen::vector<bool>>();
        else if constexpr (kind == 13)
            return std::type_identity<taiyen::flat_hash_map<int, Other>>();
        else if constexpr (kind == 14 && Seed >= 8)
            return std::type_identity<typename Structure<number / 64 % Seed>::type>();
        else if constexpr (kind == 15 && Seed >= 8)
            return std::type_identity<taiyen::vector<typename Structure<number / 64 % (Seed / 8)>::type>>();
        else if constexpr (kind == 16 && Seed >= 8)
            return std::type_identity<taiyen::map<int, typename Structure<number / 64 % (Seed / 8)>::type>>();
        else if constexpr (kind == 17 && Seed >= 8)
            return std::type_identity<std::optional<typename Structure<number / 64 % (Seed / 8)>::type>>();
        else
            return std::type_identity<One>();
    }
    using type = typename decltype(made())::type;
};

template <std::size_t Seed>
struct Structure {
    template <std::size_t Which>
    using Of = typename Field<Seed, Which>::type;
    static auto made() {
        constexpr std::size_t fields = 1 + mixed(Seed, 99) % 5;
        if constexpr (fields == 1) return std::type_identity<Of1<Of<0>>>();
        if constexpr (fields == 2) return std::type_identity<Of2<Of<0>, Of<1>>>();
        if constexpr (fields == 3) return std::type_identity<Of3<Of<0>, Of<1>, Of<2>>>();
        if constexpr (fields == 4) return std::type_identity<Of4<Of<0>, Of<1>, Of<2>, Of<3>>>();
        if constexpr (fields == 5) return std::type_identity<Of5<Of<0>, Of<1>, Of<2>, Of<3>, Of<4>>>();
    }
    using type = typename decltype(made())::type;
};

// ---- random values, made where they lie

using Random = std::mt19937_64;

template <class T>
void fill(T& value, Random& random);

template <class T>
concept Mapped = requires { typename T::mapped_type; };

template <class T>
struct Filler {
    static void fill(T& value, Random& random) {
        if constexpr (Mapped<T>) {
            if (random() % 4 == 0) value.clear();
            for (auto turns = random() % 6; turns != 0; --turns) {
                typename T::key_type key{};
                generated_view_test::fill(key, random);
                generated_view_test::fill(value[key], random);
            }
        } else {
            if (random() % 4 == 0) value.clear();
            for (auto turns = random() % 6; turns != 0; --turns) {
                value.emplace_back();
                if constexpr (std::is_same_v<T, taiyen::vector<bool>>)
                    value.back() = random() % 2 == 0;
                else
                    generated_view_test::fill(value.back(), random);
            }
        }
    }
};
template <>
struct Filler<taiyen::string> {
    static void fill(taiyen::string& value, Random& random) { value.assign(random() % 30, static_cast<char>('a' + random() % 26)); }
};
template <class T, std::size_t N>
struct Filler<std::array<T, N>> {
    static void fill(std::array<T, N>& value, Random& random) {
        for (T& element : value) generated_view_test::fill(element, random);
    }
};
template <class T>
struct Filler<std::optional<T>> {
    static void fill(std::optional<T>& value, Random& random) {
        if (random() % 3 == 0) return value.reset();
        if (!value) value.emplace();
        generated_view_test::fill(*value, random);
    }
};
template <class A, class B>
struct Filler<std::variant<A, B>> {
    static void fill(std::variant<A, B>& value, Random& random) {
        if (random() % 2 == 0)
            generated_view_test::fill(value.template emplace<0>(), random);
        else
            generated_view_test::fill(value.template emplace<1>(), random);
    }
};
template <class A, class B>
struct Filler<std::pair<A, B>> {
    static void fill(std::pair<A, B>& value, Random& random) {
        generated_view_test::fill(value.first, random);
        generated_view_test::fill(value.second, random);
    }
};
template <class A, class B>
struct Filler<std::tuple<A, B>> {
    static void fill(std::tuple<A, B>& value, Random& random) {
        generated_view_test::fill(std::get<0>(value), random);
        generated_view_test::fill(std::get<1>(value), random);
    }
};
/// One of the fields.
template <class... T>
void fill_one(Random& random, T&... fields) {
    auto which = random() % sizeof...(T);
    ((which-- == 0 ? generated_view_test::fill(fields, random) : void()), ...);
}
template <class A>
struct Filler<Of1<A>> {
    static void fill(Of1<A>& v, Random& random) { fill_one(random, v.first_of_all); }
};
template <class A, class B>
struct Filler<Of2<A, B>> {
    static void fill(Of2<A, B>& v, Random& random) { fill_one(random, v.left, v.right); }
};
template <class A, class B, class C>
struct Filler<Of3<A, B, C>> {
    static void fill(Of3<A, B, C>& v, Random& random) { fill_one(random, v.x, v.y, v.z); }
};
template <class A, class B, class C, class D>
struct Filler<Of4<A, B, C, D>> {
    static void fill(Of4<A, B, C, D>& v, Random& random) { fill_one(random, v.north, v.east, v.south, v.west); }
};
template <class A, class B, class C, class D, class E>
struct Filler<Of5<A, B, C, D, E>> {
    static void fill(Of5<A, B, C, D, E>& v, Random& random) { fill_one(random, v.one, v.two, v.three, v.four, v.five); }
};

template <class T>
void fill(T& value, Random& random) {
    if constexpr (std::is_same_v<T, bool>)
        value = random() % 2 == 0;
    else if constexpr (std::is_same_v<T, char>)
        value = static_cast<char>('a' + random() % 26);
    else if constexpr (std::is_enum_v<T>)
        value = static_cast<T>(random() % 3);
    else if constexpr (std::is_floating_point_v<T>)
        value = static_cast<T>(static_cast<std::int64_t>(random() % 100'000)) / 16 - 1000;
    else if constexpr (std::is_integral_v<T>)
        value = static_cast<T>(random());
    else
        Filler<T>::fill(value, random);
}

}  // namespace generated_view_test

namespace view_test {

template <class A>
struct Printer<generated_view_test::Of1<A>> {
    static void print(std::ostream& to, const generated_view_test::Of1<A>& v) { print_fields(to, {"first_of_all"}, v.first_of_all); }
};
template <class A, class B>
struct Printer<generated_view_test::Of2<A, B>> {
    static void print(std::ostream& to, const generated_view_test::Of2<A, B>& v) { print_fields(to, {"left", "right"}, v.left, v.right); }
};
template <class A, class B, class C>
struct Printer<generated_view_test::Of3<A, B, C>> {
    static void print(std::ostream& to, const generated_view_test::Of3<A, B, C>& v) { print_fields(to, {"x", "y", "z"}, v.x, v.y, v.z); }
};
template <class A, class B, class C, class D>
struct Printer<generated_view_test::Of4<A, B, C, D>> {
    static void print(std::ostream& to, const generated_view_test::Of4<A, B, C, D>& v) {
        print_fields(to, {"north", "east", "south", "west"}, v.north, v.east, v.south, v.west);
    }
};
template <class A, class B, class C, class D, class E>
struct Printer<generated_view_test::Of5<A, B, C, D, E>> {
    static void print(std::ostream& to, const generated_view_test::Of5<A, B, C, D, E>& v) {
        print_fields(to, {"one", "two", "three", "four", "five"}, v.one, v.two, v.three, v.four, v.five);
    }
};

}  // namespace view_test

namespace generated_view_test {

std::string name_of(std::size_t number) { return "structure " + std::to_string(number); }

std::string shown(const ArchiveHeap& heap, std::size_t number) {
    std::ostringstream to;
    write_json(to, View(heap).find(name_of(number)).value());
    return to.str();
}

void expect_shown(const ArchiveHeap& heap, std::size_t number, const std::string& printed) {
    const std::string text = shown(heap, number);
    BOOST_TEST((text == printed), name_of(number) << " is shown as\n" << text << "\nand the program prints\n" << printed);
}

/// Three changes of the structure of that number.
template <std::size_t Number>
void change(ArchiveHeap& heap, Random& random) {
    auto& value = heap.construct<typename Structure<Number>::type>(name_of(Number));
    expect_shown(heap, Number, view_test::printed(value));
    for (int turn = 0; turn != 3; ++turn) {
        fill(value, random);
        expect_shown(heap, Number, view_test::printed(value));
    }
}

template <std::size_t Number>
void look_again(const ArchiveHeap& heap) {
    expect_shown(heap, Number, view_test::printed(*heap.find<typename Structure<Number>::type>(name_of(Number))));
}

BOOST_AUTO_TEST_SUITE(generated_view)

BOOST_AUTO_TEST_CASE(every_structure_is_shown_as_the_program_prints_it_after_every_change) {
    Random random(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    PersistentOptions options;
    options.capacity = 16_MiB;
    [&]<std::size_t... Numbers>(std::index_sequence<Numbers...>) {
        {
            ArchiveHeap heap(create_only, directory / "a.tyn", options);
            (change<Numbers>(heap, random), ...);
            BOOST_TEST(type_histogram(heap).other_blocks == 0U);
            heap.snapshot();
        }
        const ArchiveHeap heap(open_read_only, directory / "a.tyn");
        (look_again<Numbers>(heap), ...);
    }(std::make_index_sequence<structures>());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace generated_view_test
