/// The root directory.

#include <algorithm>
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

BOOST_AUTO_TEST_CASE(shapes_of_types_lie_in_the_directory_and_are_no_names) {
    SpanMemory memory(1_MiB);
    TestHost host;
    Engine::format(memory.base(), 1_MiB, host);
    Engine engine(memory.base(), 1_MiB, host);
    engine.add_root({"part", "type", {4096}, 0, 1});
    BOOST_TEST(!engine.shape_of("type"));
    const std::string small(100, 's');
    const std::string large(10'000, 'l');
    engine.set_shape("type", large);
    engine.set_shape("other type", small);
    BOOST_TEST((engine.shape_of("type") == large));
    BOOST_TEST((engine.shape_of("other type") == small));
    BOOST_TEST(engine.roots().size() == 1U);
    BOOST_TEST(engine.shapes().size() == 4U);
    engine.set_shape("type", small);
    BOOST_TEST((engine.shape_of("type") == small));
    BOOST_TEST(engine.shapes().size() == 2U);
    engine.set_shape("type", large);
    // Names that grow the directory, which is rewritten.
    for (int i = 0; i < 500; ++i) engine.add_root({"name " + std::to_string(i), "type", {4096}, 0, 1});
    BOOST_TEST((engine.shape_of("type") == large));
    BOOST_TEST(engine.roots().size() == 501U);
    for (const Root& shape : engine.shapes()) BOOST_TEST(Engine::is_shape_name(shape.name));
    BOOST_TEST(!Engine::is_shape_name(std::string("\0shade 1", 8)));
    // A part is lost: there is no shape.
    for (const Root& shape : engine.shapes())
        if (shape.name.ends_with(" 1")) engine.remove_root(shape.name);
    BOOST_TEST(!engine.shape_of("type"));
    BOOST_TEST((engine.shape_of("other type") == small));
}

BOOST_AUTO_TEST_CASE(shapes_that_are_no_shapes_are_no_damage) {
    SpanMemory memory(1_MiB);
    TestHost host;
    Engine::format(memory.base(), 1_MiB, host);
    Engine engine(memory.base(), 1_MiB, host);
    BOOST_TEST(engine.bad_shapes().empty());
    engine.set_shape("type", "no shape");
    BOOST_TEST(engine.check().empty());
    BOOST_TEST(engine.bad_shapes().size() == 1U);
}

/// In every state of a heap that gets full, storing a shape, with a name or alone, does all or nothing, and no shape costs a name its place.
BOOST_AUTO_TEST_CASE(in_a_full_heap_a_shape_is_stored_whole_or_not_at_all) {
    const std::string small(300, 's');
    const std::string large(60'000, 'l');
    bool was_left_out = false;
    bool was_full = false;
    bool was_stored = false;
    for (std::size_t free_pages = 0; free_pages < 40; ++free_pages) {
        SpanMemory memory(1_MiB);
        TestHost host;
        Engine::format(memory.base(), 1_MiB, host);
        Engine engine(memory.base(), 1_MiB, host);
        engine.add_root({"first", "type", {4096}, 0, 1}, small);
        std::vector<void*> pages;
        try {
            while (true) pages.push_back(engine.allocate(4096, 4096));
        } catch (const HeapFull&) {}
        for (std::size_t i = 0; i < free_pages; ++i) engine.deallocate(pages[20 + i]);
        try {
            engine.set_shape("type", large);
            BOOST_TEST((engine.shape_of("type") == large));
            was_stored = true;
        } catch (const HeapFull&) {
            BOOST_TEST((engine.shape_of("type") == small));
            was_full = true;
        }
        engine.add_root({"second", "other type", {4096}, 0, 1}, large);
        BOOST_TEST(engine.find_root("second").has_value());
        const auto with_name = engine.shape_of("other type");
        BOOST_TEST((!with_name || with_name == large));
        was_left_out = was_left_out || !with_name;
        BOOST_TEST(damage_text(engine) == "");
        BOOST_TEST(engine.roots().size() == 2U);
        const std::size_t parts = (engine.shape_of("type") == large ? 15U : 1U) + (with_name ? 15U : 0U);
        BOOST_TEST(engine.shapes().size() == parts);
    }
    BOOST_TEST(was_left_out);
    BOOST_TEST(was_full);
    BOOST_TEST(was_stored);
}

BOOST_AUTO_TEST_CASE(parts_that_no_library_wrote_are_no_shape) {
    SpanMemory memory(1_MiB);
    TestHost host;
    Engine::format(memory.base(), 1_MiB, host);
    Engine engine(memory.base(), 1_MiB, host);
    engine.set_shape("type", std::string(10'000, 'l'));
    const std::vector<Root> whole = engine.shapes();
    BOOST_REQUIRE(whole.size() == 3U);
    const auto require_none = [&](std::vector<Root> parts, std::size_t line) {
        for (int i = 0; i < 40; ++i) engine.remove_root(whole[0].name.substr(0, whole[0].name.size() - 1) + std::to_string(i));
        for (const Root& part : parts) engine.add_root(part);
        BOOST_TEST(!engine.shape_of("type"), "line " << line);
        BOOST_TEST(engine.shapes().empty());
        // With an object it is a name like others, which an earlier library took.
        const auto is_name = [](const Root& part) { return part.object.value != 0 || part.bytes != 0; };
        BOOST_TEST(engine.roots().size() == static_cast<std::size_t>(std::ranges::count_if(parts, is_name)));
        BOOST_TEST(engine.bad_shapes().size() == (parts.empty() ? 0U : 1U));
        BOOST_TEST(damage_text(engine) == "");
    };
    const auto changed = [&](std::size_t part, auto change) {
        std::vector<Root> parts = whole;
        change(parts[part]);
        return parts;
    };
    require_none({}, __LINE__);
    require_none({whole[0], whole[2]}, __LINE__);  // a gap
    require_none({whole[1], whole[2]}, __LINE__);
    require_none({whole[0], whole[1]}, __LINE__);
    for (std::size_t part = 0; part < 3; ++part) {
        require_none(changed(part, [](Root& root) { root.count = 0; }), __LINE__);
        require_none(changed(part, [](Root& root) { root.count = 2; }), __LINE__);
        require_none(changed(part, [](Root& root) { root.count = ~std::uint64_t{0}; }), __LINE__);
        require_none(changed(part, [](Root& root) { root.object = {4096}; }), __LINE__);
        require_none(changed(part, [](Root& root) { root.bytes = 8; }), __LINE__);
        require_none(changed(part, [](Root& root) { root.fingerprint.clear(); }), __LINE__);
    }
    require_none(changed(1, [](Root& root) { root.fingerprint.pop_back(); }), __LINE__);
    engine.set_shape("type", "short");
    BOOST_TEST((engine.shape_of("type") == "short"));
    BOOST_TEST(engine.shapes().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
