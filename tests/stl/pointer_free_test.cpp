// Which types hold no pointer is decided by the compiler; what follows from it, by where their blocks lie.
#include <taiyen/stl/pointer_free.hpp>

#include <any>
#include <array>
#include <chrono>
#include <complex>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/durable_allocator.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/stl/offset_ptr.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"

namespace pointer_free_test {

using taiyen::is_pointer_free;

enum class Colour { red };
struct Point {
    int x, y;
};
struct Named {
    char name[32];
    Point place;
    std::optional<double> weight;
    std::pair<Colour, float> shade;
    unsigned bits : 3;
    bool is_known;
};
struct Derived : Point {
    double z;
};
struct Empty {};
struct WithTag : Empty {
    int value;
};
struct Inner {
    int number;
    void* pointer;
};
struct Outer {  // braces may be left out in between
    Inner inner;
    int number;
};
struct PointerLast {
    int numbers[5];
    const char* text;
};
struct PointerToMember {
    int Point::* member;
};
struct WithReference {
    int& number;
};
struct Union {
    union {
        int number;
        void* pointer;
    };
    int kind;
};
struct Bytes {
    int length;
    std::byte bytes[8];
};
struct Unsigned {
    unsigned char bytes[16];
};
struct alignas(8) RawMemory {
    char bytes[24];
};
struct alignas(8) NoBytes {};  // what libraries ask their allocator for, n of them
struct Large {
    char text[4096];
};
class WithConstructor {
public:
    WithConstructor() : number_(1) {}
    int number() const { return number_; }

private:
    int number_;
};
struct TakesEverything {
    int number;
    struct Any {
        Any() = default;
        template <class T>
        Any(T) : pointer(nullptr) {}  // NOLINT
        void* pointer;
    } any;
};
struct OnlyInts {         // takes no probe, so that nobody sees what follows
    OnlyInts(int = 0) {}  // NOLINT
    template <class T>
    OnlyInts(T) = delete;
};
struct Behind {
    double number;
    OnlyInts only;
    void* pointer;
};
enum class Address : std::uintptr_t {};
enum class Small : unsigned char {};
class Told {
public:
    explicit Told(long number) : number_(number) {}
    long number() const { return number_; }

private:
    long number_;
};
struct HoldsTold {
    int number;
    Told told;
};

static_assert(is_pointer_free<int> && is_pointer_free<const double> && is_pointer_free<bool> && is_pointer_free<char> && is_pointer_free<Colour>);
static_assert(is_pointer_free<char8_t> && is_pointer_free<char16_t> && is_pointer_free<wchar_t> && is_pointer_free<signed char>);
static_assert(is_pointer_free<Point> && is_pointer_free<Named> && is_pointer_free<Derived> && is_pointer_free<WithTag>);
static_assert(is_pointer_free<int[3][2]> && is_pointer_free<std::array<Point, 7>> && is_pointer_free<std::complex<float>>);
static_assert(is_pointer_free<std::pair<int, Point>> && is_pointer_free<std::tuple<int, char>> && is_pointer_free<std::variant<int, double>>);
static_assert(is_pointer_free<std::chrono::nanoseconds> && is_pointer_free<std::chrono::system_clock::time_point>);
static_assert(!is_pointer_free<int*> && !is_pointer_free<void (*)()> && !is_pointer_free<std::nullptr_t> && !is_pointer_free<int Point::*>);
static_assert(!is_pointer_free<std::uintptr_t> && !is_pointer_free<unsigned long long> && !is_pointer_free<std::pair<int, std::size_t>>);
static_assert(!is_pointer_free<Behind> && !is_pointer_free<Address> && is_pointer_free<Small>);
static_assert(!is_pointer_free<unsigned char> && !is_pointer_free<std::byte> && !is_pointer_free<Unsigned> && !is_pointer_free<Bytes>);
static_assert(!is_pointer_free<Inner> && !is_pointer_free<Outer> && !is_pointer_free<PointerLast> && !is_pointer_free<PointerToMember>);
static_assert(!is_pointer_free<WithReference> && !is_pointer_free<Union> && !is_pointer_free<TakesEverything> && !is_pointer_free<std::max_align_t>);
static_assert(!is_pointer_free<RawMemory> && !is_pointer_free<NoBytes> && !is_pointer_free<Empty> && !is_pointer_free<Large>);
static_assert(!is_pointer_free<std::pair<int, int*>> && !is_pointer_free<std::optional<std::string_view>> && !is_pointer_free<std::array<void*, 2>>);
static_assert(!is_pointer_free<WithConstructor> && !is_pointer_free<std::unique_ptr<int>> && !is_pointer_free<std::any>);
static_assert(!is_pointer_free<taiyen::string> && !is_pointer_free<taiyen::vector<int>> && !is_pointer_free<taiyen::offset_ptr<int>>);

}  // namespace pointer_free_test

template <>
inline constexpr bool taiyen::is_pointer_free<pointer_free_test::Told> = true;
static_assert(taiyen::is_pointer_free<pointer_free_test::HoldsTold>, "a member that is said to be free of pointers counts as such");

using namespace taiyen;
using heap::Content;
using heap::test::MemoryCore;
using pointer_free_test::Point;

BOOST_AUTO_TEST_SUITE(pointer_free)

BOOST_AUTO_TEST_CASE(elements_without_pointers_have_pages_of_their_own) {
    MemoryCore core;
    const auto content_at = [&](const void* element) { return core.engine().find_block(element)->content; };
    for (const std::size_t count : {2U, 3U, 40U, 900U, 100'000U}) {
        BOOST_TEST_CONTEXT(count << " elements") {
            auto* const points = stl::make<taiyen::vector<Point>>(core);
            points->resize(count);
            BOOST_TEST((content_at(points->data()) == Content::pointer_free));
            auto* const pointers = stl::make<taiyen::vector<void*>>(core);
            pointers->resize(count);
            BOOST_TEST((content_at(pointers->data()) == Content::any));
            auto* const bytes = stl::make<taiyen::vector<unsigned char>>(core);
            bytes->resize(count * 8);
            BOOST_TEST((content_at(bytes->data()) == Content::any));
            auto* const text = stl::make<taiyen::string>(core);
            text->resize(count + 20, 't');
            BOOST_TEST((content_at(text->data()) == Content::pointer_free));
            auto* const apart = stl::make<offset::vector<double>>(core);
            apart->resize(count);
            BOOST_TEST((content_at(apart->data()) == Content::pointer_free));
        }
    }
    BOOST_TEST((content_at(stl::make<Point>(core)) == Content::pointer_free));
    BOOST_TEST((content_at(stl::make<taiyen::string>(core)) == Content::any));
    auto* const map = stl::make<taiyen::map<int, int>>(core);
    (*map)[1] = 1;
    BOOST_TEST((content_at(&map->begin()->second) == Content::any));
    BOOST_TEST(core.engine().check().empty());
}

BOOST_AUTO_TEST_CASE(no_number_is_taken_for_a_pointer_to_another_heap) {
    MemoryCore core;
    MemoryCore other;
    const auto address = reinterpret_cast<std::int64_t>(stl::make<int>(other, 5));
    auto* const numbers = stl::make<taiyen::vector<std::int64_t>>(core);
    auto* const pointers = stl::make<taiyen::vector<void*>>(core);
    const auto refuses = [&] {
        heap::ForeignPointerScan scan(core);
        try {
            scan.examine(HeapOffset{0}, core.engine().extent());
            scan.finish();
        } catch (const Error& error) {
            return error.code() == errc::foreign_pointer;
        }
        return false;
    };
    // Two and three words lie in pages of small and packed blocks; more in whole pages, and the last ones in the page behind them, which others share.
    for (const std::size_t count : {2U, 3U, 100U, 1024U, 1100U, 200'000U}) {
        BOOST_TEST_CONTEXT(count << " words") {
            numbers->assign(count, address);
            numbers->shrink_to_fit();
            BOOST_TEST(!refuses());
            BOOST_TEST(!heap::ForeignPointerScan(core).find(HeapOffset{0}, core.engine().extent()).has_value());
            pointers->assign(count, nullptr);
            pointers->shrink_to_fit();
            pointers->back() = reinterpret_cast<void*>(address);
            BOOST_TEST(refuses());
            pointers->back() = nullptr;
            BOOST_TEST(!refuses());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_block_keeps_its_content_when_it_is_resized) {
    MemoryCore core;
    heap::Engine& engine = core.engine();
    for (const Content content : {Content::any, Content::pointer_free}) {
        void* block = engine.allocate(30, 8, content);
        for (const ByteCount bytes : {60U, 5'000U, 300'000U, 9'000U, 4'096U, 200U, 24U}) {
            block = engine.resize(block, bytes);
            BOOST_TEST((engine.find_block(block)->content == content), bytes);
        }
        engine.deallocate(block);
    }
    BOOST_TEST(engine.check().empty());
}

BOOST_AUTO_TEST_SUITE_END()
