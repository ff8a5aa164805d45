#include <taiyen/base/error.hpp>
#include <taiyen/base/system_error.hpp>

#include <cerrno>
#include <cstdint>
#include <string>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(an_error_names_file_offset_and_remedy) {
    const taiyen::Error error(taiyen::errc::corrupt, "drawing.tyn", 4096, "header checksum differs; restore a copy");
    BOOST_TEST(std::string(error.what()).find("drawing.tyn: at byte 4096: header checksum differs") == 0U);
    BOOST_TEST((error.code() == taiyen::errc::corrupt));
    BOOST_TEST(error.offset() == 4096U);
    BOOST_TEST(error.path() == "drawing.tyn");
}

BOOST_AUTO_TEST_CASE(heap_full_is_a_bad_alloc_with_figures) {
    const taiyen::HeapFull full(100, 50);
    const std::bad_alloc& base = full;
    BOOST_TEST(std::string(base.what()).find("wanted 100 bytes, largest free block 50") != std::string::npos);
    BOOST_TEST(full.wanted() == 100U);
    BOOST_TEST(full.largest_free() == 50U);
}

BOOST_AUTO_TEST_CASE(heap_full_names_the_heap_and_of_a_long_name_the_end) {
    using taiyen::HeapFull;
    const auto text = [](const HeapFull& full) { return std::string(full.what()); };
    BOOST_TEST(text(HeapFull(100, 50)).find("heap full: ") == 0U);
    BOOST_TEST(text(HeapFull(100, 50, HeapFull::Cause::disk, "/home/drawing.tyn")).find("/home/drawing.tyn: heap full: wanted 100 bytes") == 0U);
    const HeapFull full = HeapFull(100, 50, HeapFull::Cause::neighbor).about("drawing.tyn");
    BOOST_TEST(text(full).find("drawing.tyn: heap full: wanted 100 bytes, largest free block 50: the addresses behind") == 0U);
    BOOST_TEST((full.cause() == HeapFull::Cause::neighbor));
    BOOST_TEST(full.wanted() == 100U);
    BOOST_TEST(full.largest_free() == 50U);
    for (const HeapFull::Cause cause : {HeapFull::Cause::capacity, HeapFull::Cause::disk, HeapFull::Cause::address_space,
                                        HeapFull::Cause::dirty_limit, HeapFull::Cause::neighbor, HeapFull::Cause::values}) {
        const std::string unnamed = text(HeapFull(SIZE_MAX, SIZE_MAX, cause));
        for (std::size_t length = 195; length < 210; ++length) {
            std::string name;
            while (name.size() < length) name += "ü";  // two bytes
            const std::string named = text(HeapFull(SIZE_MAX, SIZE_MAX, cause, name + ".tyn"));
            BOOST_TEST(named.ends_with("ü.tyn: " + unnamed));
            const std::string told = named.substr(0, named.size() - unnamed.size() - 6);
            BOOST_TEST((told.starts_with("…ü") || told.starts_with("ü")));
            BOOST_TEST(told.starts_with("…") == (name.size() + 4 > 200));
        }
    }
}

BOOST_AUTO_TEST_CASE(what_the_system_says_becomes_an_error_that_says_what_was_tried_and_what_to_do) {
    const taiyen::Error full = taiyen::error_of_errno(ENOSPC, "drawing.tyn", "writing 4096 bytes", 8192);
    BOOST_TEST((full.code() == taiyen::errc::no_space));
    BOOST_TEST(full.path() == "drawing.tyn");
    BOOST_TEST(full.offset() == 8192U);
    const std::string text = full.what();
    BOOST_TEST(text.find("drawing.tyn: at byte 8192: writing 4096 bytes: " + std::generic_category().message(ENOSPC)) == 0U);
    BOOST_TEST(text.find("free disk space") != std::string::npos);
    const taiyen::Error folder = taiyen::error_of_errno(EACCES, "folder", "making a folder in it");
    BOOST_TEST((folder.code() == taiyen::errc::permission));
    BOOST_TEST(folder.offset() == taiyen::Error::no_offset);
    BOOST_TEST((taiyen::error_of_errno(ESRCH, {}, "something else").code() == taiyen::errc::io_error));
}

BOOST_AUTO_TEST_CASE(codes_keep_their_numbers) {
    BOOST_TEST(static_cast<int>(taiyen::errc::not_found) == 1);
    BOOST_TEST(static_cast<int>(taiyen::errc::busy) == 12);
    BOOST_TEST(static_cast<int>(taiyen::errc::invalid_argument) == 39);
    BOOST_TEST(static_cast<int>(taiyen::errc::too_many_threads) == 42);
    BOOST_TEST(static_cast<int>(taiyen::errc::fenced) == 43);
    BOOST_TEST(static_cast<int>(taiyen::errc::diverged) == 44);
    BOOST_TEST(static_cast<int>(taiyen::errc::stale) == 46);
    BOOST_TEST(static_cast<int>(taiyen::errc::unreachable) == 47);
    BOOST_TEST(static_cast<int>(taiyen::errc::unconfirmed) == 48);
}

BOOST_AUTO_TEST_SUITE_END()
