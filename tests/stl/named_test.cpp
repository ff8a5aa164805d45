#include <taiyen/stl/named.hpp>

#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>

#include "heap/memory_core.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using stl::test::long_text;

namespace named_test {

struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double x, y;
};

struct Fragile {
    taiyen::string name;
    explicit Fragile(const char* text) : name(text) { throw std::runtime_error("as asked"); }
};

struct alignas(256) Aligned {
    int value = 7;
};

}  // namespace named_test

BOOST_AUTO_TEST_SUITE(named_objects)

using named_test::Part;

BOOST_AUTO_TEST_CASE(what_is_constructed_is_found_again_until_it_is_destroyed) {
    MemoryCore core;
    using Index = taiyen::map<int, taiyen::string>;
    BOOST_TEST(stl::find<Index>(core, "index") == nullptr);
    Index& index = stl::construct<Index>(core, "index");
    index.emplace(1, long_text(1).c_str());
    BOOST_TEST(stl::find<Index>(core, "index") == &index);
    BOOST_TEST(&stl::find_or_construct<Index>(core, "index") == &index);
    BOOST_TEST(heap::in_durable(core, index.at(1).data()));
    BOOST_TEST(stl::destroy<Index>(core, "index"));
    BOOST_TEST(!stl::destroy<Index>(core, "index"));
    BOOST_TEST(stl::find<Index>(core, "index") == nullptr);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(every_level_of_nesting_gets_the_heap) {
    MemoryCore core;
    auto& document = stl::construct<taiyen::map<taiyen::string, taiyen::vector<taiyen::unordered_map<taiyen::string, Part>>>>(core, "document");
    Part& part = document[long_text(1).c_str()].emplace_back()[long_text(2).c_str()];
    part.name = long_text(3).c_str();
    part.tags.emplace_back(long_text(4).c_str());
    for (const void* each : {static_cast<const void*>(&part), static_cast<const void*>(part.name.data()), static_cast<const void*>(part.tags.data()),
                             static_cast<const void*>(part.tags[0].data())}) {
        BOOST_TEST(heap::in_durable(core, each));
    }
    stl::destroy<std::remove_reference_t<decltype(document)>>(core, "document");
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(arguments_reach_the_constructor) {
    MemoryCore core;
    BOOST_TEST(stl::construct<int>(core, "number", 5) == 5);
    BOOST_TEST(stl::construct<int>(core, "zero") == 0);
    BOOST_TEST(stl::construct<taiyen::vector<int>>(core, "numbers", 3U, 9).size() == 3U);
    BOOST_TEST(stl::find_or_construct<taiyen::string>(core, "text", long_text(1).c_str()) == long_text(1).c_str());
    const auto& pair = stl::construct<std::pair<taiyen::string, int>>(core, "pair", long_text(2).c_str(), 4);
    BOOST_TEST(heap::in_durable(core, pair.first.data()));
    const auto& part = stl::construct<Part>(core, "part", taiyen::string(long_text(3).c_str(), core), taiyen::vector<taiyen::string>(core), 1.0, 2.0);
    BOOST_TEST(part.y == 2.0);
    BOOST_TEST(heap::in_durable(core, part.name.data()));
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(&stl::construct<named_test::Aligned>(core, "aligned")) % 256 == 0U);
}

BOOST_AUTO_TEST_CASE(a_taken_name_is_refused_and_a_wrong_type_names_both) {
    MemoryCore core;
    stl::construct<taiyen::map<int, int>>(core, "index");
    const auto before = core.engine().stats().live_blocks;
    BOOST_CHECK_EXCEPTION((stl::construct<taiyen::map<int, int>>(core, "index")), Error, [](const Error& e) { return e.code() == errc::name_taken; });
    const auto mismatch = [](const Error& e) {
        const std::string text = e.what();
        return e.code() == errc::type_mismatch && text.find("memory.tyn") != std::string::npos &&
               text.find("std::map<int, int") != std::string::npos && text.find("std::vector<int") != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(stl::find<taiyen::vector<int>>(core, "index"), Error, mismatch);
    BOOST_CHECK_EXCEPTION(stl::find_or_construct<taiyen::vector<int>>(core, "index"), Error, mismatch);
    BOOST_CHECK_EXCEPTION(stl::destroy<taiyen::vector<int>>(core, "index"), Error, mismatch);
    BOOST_TEST(core.engine().stats().live_blocks == before);
}

BOOST_AUTO_TEST_CASE(a_constructor_that_throws_leaves_neither_block_nor_name) {
    MemoryCore core;
    BOOST_CHECK_THROW(stl::construct<named_test::Fragile>(core, "fragile", long_text(1).c_str()), std::runtime_error);
    BOOST_CHECK_THROW(stl::make<named_test::Fragile>(core, long_text(1).c_str()), std::runtime_error);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
    BOOST_TEST(!heap::find_named(core, "fragile").has_value());
}

BOOST_AUTO_TEST_CASE(a_name_that_cannot_be_added_leaves_no_object) {
    MemoryCore core;
    BOOST_CHECK_EXCEPTION(stl::construct<taiyen::string>(core, "", long_text(1).c_str()), Error,
                          [](const Error& e) { return e.code() == errc::invalid_argument; });
    BOOST_CHECK_EXCEPTION(stl::construct<taiyen::string>(core, std::string(2000, 'n'), long_text(1).c_str()), Error,
                          [](const Error& e) { return e.code() == errc::invalid_argument; });
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(objects_without_a_name_live_until_destroyed) {
    MemoryCore core;
    const Reports reports;
    auto* const part = stl::make<Part>(core);
    part->name = long_text(1).c_str();
    stl::destroy_object<Part>(core, nullptr);
    stl::destroy_object(core, part);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
    BOOST_TEST(Reports::entries().empty());
}

BOOST_AUTO_TEST_CASE(a_wrong_pointer_is_reported_and_its_object_left_alone) {
    MemoryCore core;
    const Reports reports;
    auto* const parts = stl::make<taiyen::vector<Part>>(core, 3U);
    Part outside{taiyen::string("x", core), taiyen::vector<taiyen::string>(core), 0, 0};
    const auto before = core.engine().stats().live_blocks;
    stl::destroy_object(core, &outside);
    stl::destroy_object(core, &(*parts)[1]);
    BOOST_TEST(core.engine().stats().live_blocks == before);
    stl::destroy_object(core, parts);
    stl::destroy_object(core, parts);
    BOOST_REQUIRE(Reports::entries().size() == 3U);
    BOOST_TEST((Reports::entries()[0].code == errc::foreign_pointer));
    BOOST_TEST((Reports::entries()[1].code == errc::double_free));
    BOOST_TEST((Reports::entries()[2].code == errc::double_free));
}

BOOST_AUTO_TEST_CASE(a_heap_that_refuses_changes_is_still_read) {
    MemoryCore core;
    stl::construct<int>(core, "number", 5);
    core.refuse(errc::read_only);
    BOOST_TEST(*stl::find<int>(core, "number") == 5);
    BOOST_TEST(stl::find_or_construct<int>(core, "number", 6) == 5);
    const auto read_only = [](const Error& e) { return e.code() == errc::read_only; };
    BOOST_CHECK_EXCEPTION(stl::construct<int>(core, "another", 5), Error, read_only);
    BOOST_CHECK_EXCEPTION(stl::destroy<int>(core, "number"), Error, read_only);
    BOOST_CHECK_EXCEPTION(stl::make<int>(core, 5), Error, read_only);
    BOOST_TEST(*stl::find<int>(core, "number") == 5);
}

BOOST_AUTO_TEST_CASE(fingerprints_tell_types_apart_and_name_the_layout) {
    BOOST_TEST(stl::fingerprint<int>() == "i 4 bytes aligned to 4, cxx11");
    BOOST_TEST(stl::fingerprint<int>() != stl::fingerprint<unsigned>());
    BOOST_TEST(stl::fingerprint<Part>().find("N10named_test4PartE 88 bytes aligned to 8") == 0U);
    BOOST_TEST((stl::fingerprint<taiyen::map<int, int>>() != stl::fingerprint<taiyen::map<int, long>>()));
    BOOST_TEST((stl::fingerprint<taiyen::map<int, taiyen::string>>().find("St3mapIi") == 0U));
}

BOOST_AUTO_TEST_SUITE_END()
