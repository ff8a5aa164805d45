/// The root directory.

#include <map>
#include <optional>
#include <string>

#include "test_span.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;
using namespace taiyen::literals;

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_roots)

BOOST_AUTO_TEST_CASE(a_root_comes_back_as_it_was_added) {
    SpanMemory memory(1_MiB);
    TestHost host;
    Engine::format(memory.base(), 1_MiB, host);
    {
        Engine engine(memory.base(), 1_MiB, host);
        BOOST_TEST(!engine.find_root("part"));
        BOOST_TEST(!engine.remove_root("part"));
        engine.add_root({"part", "vector<int>", {4096}, 24, 3});
        engine.add_root({std::string("with\0zero", 9), std::string(4096, 't'), {32}, 1, 0});
        engine.add_root({std::string(1024, 'n'), "", {48}, 8, 1});
    }
    const Engine engine(memory.base(), 1_MiB, host, nullptr, true);
    const auto part = engine.find_root("part");
    BOOST_REQUIRE(part.has_value());
    BOOST_TEST(part->name == "part");
    BOOST_TEST(part->fingerprint == "vector<int>");
    BOOST_TEST(part->object.value == 4096U);
    BOOST_TEST(part->bytes == 24U);
    BOOST_TEST(part->count == 3U);
    BOOST_TEST(engine.find_root(std::string("with\0zero", 9))->fingerprint.size() == 4096U);
    BOOST_TEST(!engine.find_root("with"));
    BOOST_TEST(engine.find_root(std::string(1024, 'n')).has_value());
    BOOST_TEST(engine.roots().size() == 3U);
}

BOOST_AUTO_TEST_CASE(names_are_unique_not_empty_and_not_too_long) {
    SpanMemory memory(1_MiB);
    TestHost host;
    Engine::format(memory.base(), 1_MiB, host);
    Engine engine(memory.base(), 1_MiB, host);
    engine.add_root({"a", "", {0}, 0, 1});
    const auto code = [](errc expected) { return [expected](const Error& error) { return error.code() == expected; }; };
    BOOST_CHECK_EXCEPTION(engine.add_root({"a", "other", {16}, 0, 1}), Error, code(errc::name_taken));
    BOOST_CHECK_EXCEPTION(engine.add_root({"", "", {16}, 0, 1}), Error, code(errc::invalid_argument));
    BOOST_CHECK_EXCEPTION(engine.add_root({std::string(1025, 'a'), "", {16}, 0, 1}), Error, code(errc::invalid_argument));
    BOOST_CHECK_EXCEPTION(engine.add_root({"b", std::string(4097, 'a'), {16}, 0, 1}), Error, code(errc::invalid_argument));
    BOOST_TEST(engine.find_root("a")->object.value == 0U);
    BOOST_TEST(engine.remove_root("a"));
    BOOST_TEST(!engine.remove_root("a"));
    engine.add_root({"a", "other", {16}, 0, 1});
    BOOST_TEST(engine.find_root("a")->object.value == 16U);
}

BOOST_AUTO_TEST_CASE(ten_thousand_names_come_and_go) {
    SpanMemory memory(64_MiB);
    TestHost host;
    Engine::format(memory.base(), 64_MiB, host);
    Engine engine(memory.base(), 64_MiB, host);
    for (unsigned i = 0; i < 10'000; ++i) engine.add_root({"object " + std::to_string(i), "type " + std::to_string(i % 7), {i * 16}, i, 1});
    BOOST_TEST(damage_text(engine) == "");
    for (unsigned i = 0; i < 10'000; ++i) BOOST_REQUIRE(engine.find_root("object " + std::to_string(i))->object.value == i * 16);
    for (unsigned i = 0; i < 10'000; i += 2) BOOST_REQUIRE(engine.remove_root("object " + std::to_string(i)));
    for (unsigned i = 0; i < 10'000; ++i) BOOST_REQUIRE(engine.find_root("object " + std::to_string(i)).has_value() == (i % 2 == 1));
    BOOST_TEST(engine.roots().size() == 5000U);
    BOOST_TEST(damage_text(engine) == "");
}

BOOST_AUTO_TEST_CASE(adding_and_removing_for_ever_needs_no_more_space) {
    SpanMemory memory(1_MiB);
    TestHost host;
    Engine::format(memory.base(), 1_MiB, host);
    Engine engine(memory.base(), 1_MiB, host);
    for (unsigned i = 0; i < 20'000; ++i) {
        engine.add_root({"r" + std::to_string(i), "", {0}, 0, 1});
        if (i >= 20) BOOST_REQUIRE(engine.remove_root("r" + std::to_string(i - 20)));
    }
    BOOST_TEST(engine.extent() <= 256_KiB);
    BOOST_TEST(engine.stats().live_blocks == 0U);
    BOOST_TEST(damage_text(engine) == "");
}

BOOST_AUTO_TEST_CASE(a_full_heap_refuses_a_root_and_stays_whole) {
    SpanMemory memory(256_KiB);
    TestHost host;
    Engine::format(memory.base(), 256_KiB, host);
    Engine engine(memory.base(), 256_KiB, host);
    unsigned count = 0;
    try {
        for (;; ++count) engine.add_root({"name " + std::to_string(count), std::string(1000, 'x'), {0}, 0, 1});
    } catch (const HeapFull&) {}
    BOOST_TEST(count > 50U);
    BOOST_TEST(engine.roots().size() == count);
    BOOST_TEST(damage_text(engine) == "");
}

BOOST_AUTO_TEST_SUITE_END()
