// Every way in which compiled code writes to memory is announced: built at several levels of optimisation (CMakeLists.txt).
#include <array>
#include <atomic>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include <taiyen/heap/scratch.hpp>

#include "change/instrumented.hpp"
#include "instrumented/captured_scopes.hpp"

namespace taiyen::change {
namespace {

using test::Stage;

struct Point {
    double x, y, z;
};
struct Odd {
    char bytes[77];
};
struct Packed {
    char a;
    std::uint16_t b : 5;
    std::uint16_t c : 11;
    bool d : 1;
} __attribute__((packed));
struct Large {
    std::array<std::uint64_t, 100> words;
};
typedef int Vector __attribute__((vector_size(32)));

/// Constant through what the compiler can see, so that nothing is computed before it runs.
template <class T>
T opaque(T value) {
    asm volatile("" : "+m"(value));
    return value;
}

struct Field {
    explicit Field(Stage& stage) : stage_(stage), memory(static_cast<std::byte*>(stage.core().engine().allocate(64U << 10U))) {
        std::memset(memory, 0x11, 64U << 10U);
    }
    template <class T>
    T& at(std::size_t offset) {
        return *reinterpret_cast<T*>(memory + offset);
    }
    Stage& stage_;
    std::byte* memory;
};

[[gnu::noinline]] Large make_large(std::uint64_t seed) {
    Large made;
    for (std::uint64_t& word : made.words) word = seed++;
    return made;
}
[[gnu::noinline]] void throw_after(int& place) {
    place = 99;
    throw std::out_of_range("on purpose");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stores)

BOOST_AUTO_TEST_CASE(instrumented_code_has_registered_itself) { BOOST_TEST(instrumented_code_present()); }

BOOST_AUTO_TEST_CASE(single_values_of_every_size) {
    Stage stage;
    Field field(stage);
    for (const std::size_t at : {0U, 1U, 7U, 61U, 63U, 4095U, 8191U}) {
        stage.scope("char", [&] { field.at<char>(at) = opaque<char>(2); });
        stage.scope("bool", [&] { field.at<bool>(at) = opaque(false); });
    }
    for (const std::size_t at : {0U, 8U, 56U, 64U, 4088U, 4096U}) {
        stage.scope("short", [&] { field.at<short>(at) = opaque<short>(3); });
        stage.scope("int", [&] { field.at<int>(at) = opaque(4); });
        stage.scope("long", [&] { field.at<long>(at) = opaque(5L); });
        stage.scope("float", [&] { field.at<float>(at) = opaque(6.0F); });
        stage.scope("double", [&] { field.at<double>(at) = opaque(7.0); });
        stage.scope("pointer", [&] { field.at<void*>(at) = opaque<void*>(&field); });
        stage.scope("increment", [&] { ++field.at<unsigned>(at); });
        stage.scope("or", [&] { field.at<unsigned>(at) |= opaque(0xff00U); });
    }
    stage.scope("long double", [&] { field.at<long double>(32) = opaque(8.0L); });
    stage.scope("int128", [&] {
        __extension__ using Wide = __int128;
        field.at<Wide>(48) = opaque<Wide>(-3);
    });
    stage.scope("complex touched first", [&] {
        // GCC does not announce stores to the parts of a complex number.
        stage.core().recorder().touch(stage.core().offset_of(field.memory + 64), sizeof(std::complex<double>));
        field.at<std::complex<double>>(64) = {opaque(1.5), opaque(2.5)};
    });
    stage.scope("complex by memcpy", [&] {
        const std::complex<double> value(opaque(3.5), opaque(4.5));
        std::memcpy(field.memory + 64, &value, sizeof value);
    });
    stage.scope("unaligned", [&] {
        const long value = opaque(77L);
        std::memcpy(field.memory + 4091, &value, sizeof value);
    });
}

BOOST_AUTO_TEST_CASE(structs_arrays_and_bit_fields) {
    Stage stage;
    Field field(stage);
    stage.scope("struct", [&] { field.at<Point>(16) = Point{opaque(1.0), opaque(2.0), opaque(3.0)}; });
    stage.scope("struct copied within the heap", [&] { field.at<Point>(160) = field.at<Point>(16); });
    stage.scope("odd size", [&] { field.at<Odd>(200) = Odd{}; });
    stage.scope("odd size copied", [&] { field.at<Odd>(901) = field.at<Odd>(200); });
    stage.scope("bit field", [&] { field.at<Packed>(301).c = static_cast<std::uint16_t>(opaque(0x3ff)) & 0x7ff; });
    stage.scope("one bit", [&] { field.at<Packed>(301).d = !field.at<Packed>(301).d; });
    stage.scope("large zeroed", [&] { field.at<Large>(1024) = Large{}; });
    stage.scope("large returned", [&] { field.at<Large>(4000) = make_large(opaque<std::uint64_t>(9)); });
    stage.scope("large constructed in place", [&] { new (field.memory + 9000) Large(make_large(opaque<std::uint64_t>(10))); });
    stage.scope("large copied", [&] { field.at<Large>(12000) = field.at<Large>(4000); });
    stage.scope("array loop", [&] {
        auto* const numbers = &field.at<int>(16000);
        for (int i = 0; i < 1000; ++i) numbers[i] = i * i;
    });
    stage.scope("strided loop", [&] {
        auto* const numbers = &field.at<double>(24000);
        for (int i = 0; i < 500; i += 7) numbers[i] += i;
    });
    stage.scope("vector", [&] { field.at<Vector>(32000) = Vector{1, 2, 3, 4, 5, 6, 7, opaque(8)}; });
    stage.scope("masked", [&] {
        auto* const numbers = &field.at<int>(36000);
        for (int i = 0; i < 100; ++i)
            if ((opaque(i) & 5) == 1) numbers[i] = -i;
    });
    stage.scope("swap", [&] { std::swap(field.at<Point>(16), field.at<Large>(4000).words[3] != 0 ? field.at<Point>(40000) : field.at<Point>(160)); });
}

BOOST_AUTO_TEST_CASE(atomics) {
    Stage stage;
    Field field(stage);
    auto& word = field.at<std::atomic<long>>(64);
    stage.scope("store", [&] { word.store(opaque(5L)); });
    stage.scope("relaxed store", [&] { word.store(opaque(6L), std::memory_order_relaxed); });
    stage.scope("add", [&] { word.fetch_add(3); });
    stage.scope("exchange", [&] { word.exchange(opaque(70L)); });
    stage.scope("compare exchange", [&] {
        long expected = 70;
        BOOST_REQUIRE(word.compare_exchange_strong(expected, 71));
    });
    stage.scope("byte", [&] { field.at<std::atomic<bool>>(129).store(false); });
#if defined(__clang__)
    stage.scope("flag", [&] { field.at<std::atomic_flag>(131).test_and_set(); });  // GCC does not announce it
#endif
}

BOOST_AUTO_TEST_CASE(library_vocabulary_types) {
    Stage stage;
    Field field(stage);
    auto& maybe = *new (field.memory + 64) std::optional<Point>;
    auto& either = *new (field.memory + 128) std::variant<int, Point, Odd>;
    auto& both = *new (field.memory + 512) std::tuple<int, Point, char>;
    stage.scope("optional", [&] { maybe = Point{opaque(1.0), 2, 3}; });
    stage.scope("optional reset", [&] { maybe.reset(); });
    stage.scope("variant", [&] { either = Odd{}; });
    stage.scope("variant back", [&] { either.emplace<int>(opaque(3)); });
    stage.scope("tuple", [&] { both = std::tuple(opaque(1), Point{1, 2, 3}, 'x'); });
    stage.scope("array fill", [&] { field.at<std::array<short, 333>>(1001).fill(opaque<short>(5)); });
    stage.scope("copy", [&] { std::copy_n(field.memory + 1001, 500, field.memory + 5003); });
    stage.scope("fill", [&] { std::fill_n(&field.at<int>(8000), 777, opaque(3)); });
    stage.scope("sort", [&] {
        auto* const first = &field.at<int>(12000);
        for (int i = 0; i < 300; ++i) first[i] = (i * 7919) % 301;
        std::sort(first, first + 300);
    });
    stage.scope("rotate", [&] { std::rotate(field.memory + 12000, field.memory + 12100, field.memory + 13000); });
}

BOOST_AUTO_TEST_CASE(memory_functions_of_every_length) {
    Stage stage(512U << 10U);
    Field field(stage);
    const std::array<std::byte, 5000> from{};
    for (const std::size_t length : {1U, 2U, 3U, 5U, 8U, 13U, 16U, 24U, 32U, 63U, 64U, 65U, 100U, 127U, 128U, 200U, 511U, 4096U, 5000U}) {
        // The last byte may lie alone on its line: each end is tried.
        for (const std::size_t end : {64U * 100U, 64U * 100U + 1U, 64U * 100U + 63U, 4096U * 3U + 1U}) {
            stage.start();
            std::memcpy(field.memory + end - length, from.data(), opaque(length));
            stage.check("memcpy");
            stage.scope("memset", [&] { std::memset(field.memory + end - length, 0x22, opaque(length)); });
            stage.scope("memmove", [&] { std::memmove(field.memory + end - length, field.memory + 40000, opaque(length)); });
        }
    }
    stage.scope("constant lengths", [&] {
        std::memset(field.memory + 1, 0, 3);
        std::memset(field.memory + 101, 0, 24);
        std::memset(field.memory + 201, 0, 48);
        std::memcpy(field.memory + 301, from.data(), 7);
        std::memcpy(field.memory + 401, from.data(), 40);
        std::memcpy(field.memory + 501, from.data(), 96);
        __builtin_memcpy(field.memory + 701, from.data(), 15);
    });
}

BOOST_AUTO_TEST_CASE(the_last_byte_of_a_store_of_any_size_is_seen_where_it_lies_alone_on_its_line) {
    Stage stage;
    Field field(stage);
    std::byte* const line = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(field.memory) + 4096, 64));
    stage.scope("struct of 77 bytes", [&] { *reinterpret_cast<Odd*>(line + 1 - 77) = Odd{}; });
    stage.scope("three bytes", [&] {
        struct Three {
            char c[3];
        };
        *reinterpret_cast<Three*>(line + 64 + 1 - 3) = Three{{opaque('a'), 'b', 'c'}};
    });
}

BOOST_AUTO_TEST_CASE(a_scope_that_an_exception_leaves_is_taken_back) {
    Stage stage;
    Field field(stage);
    stage.taken_back("int", [&] { BOOST_CHECK_THROW(throw_after(field.at<int>(128)), std::out_of_range); });
    stage.taken_back("everything", [&] { std::memset(field.memory, 0, 64U << 10U); });
}

BOOST_AUTO_TEST_CASE(stores_outside_any_heap_and_into_scratch_memory_are_not_recorded) {
    Stage stage;
    stage.start();
    const std::uint64_t before = stage.core().recorder().counters().stores;
    auto* const scratch = static_cast<int*>(heap::allocate_scratch(400, 16));
    const auto local = std::make_unique<std::array<int, 100>>();
    for (int i = 0; i < 100; ++i) scratch[i] = (*local)[static_cast<std::size_t>(i)] = opaque(i);
    BOOST_TEST(stage.core().recorder().counters().stores == before);
    BOOST_TEST(stage.core().recorder().certainly_unchanged());
    heap::deallocate(scratch);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
