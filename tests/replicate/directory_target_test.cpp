// A directory of frames: appended to by whoever knows its end, found again, trimmed.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include <taiyen/base/error.hpp>
#include <taiyen/replicate/directory_target.hpp>

#include "scratch_directory.hpp"
#include "throws.hpp"

using namespace taiyen;
using taiyen::test::throws;

namespace {

std::vector<std::byte> bytes_of_text(const std::string& text) {
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(directory_target)

BOOST_AUTO_TEST_CASE(frames_follow_each_other_and_each_is_appended_once) {
    const ScratchDirectory scratch;
    DirectoryTarget target(scratch.path());
    BOOST_TEST(target.range().empty());
    BOOST_TEST(!target.append(2, bytes_of_text("too early")));
    BOOST_TEST(target.append(1, bytes_of_text("one")));
    BOOST_TEST(target.append(1, bytes_of_text("one")));  // again, after an answer that was lost
    BOOST_TEST(!target.append(1, bytes_of_text("another")));
    for (std::uint64_t number = 2; number <= 40; ++number) BOOST_TEST(target.append(number, bytes_of_text(std::to_string(number))));
    BOOST_TEST(!target.append(42, bytes_of_text("42")));
    DirectoryTarget other(scratch.path());
    BOOST_TEST(other.range().first == 1U);
    BOOST_TEST(other.range().last == 40U);
    BOOST_TEST((other.read(17) == bytes_of_text("17")));
    BOOST_TEST(throws(errc::not_found, [&] { (void)other.read(41); }));
}

BOOST_AUTO_TEST_CASE(frames_that_are_trimmed_are_gone_and_numbers_go_on) {
    const ScratchDirectory scratch;
    DirectoryTarget target(scratch.path());
    for (std::uint64_t number = 1; number <= 20; ++number) BOOST_TEST(target.append(number, bytes_of_text(std::to_string(number))));
    target.trim(8);
    BOOST_TEST(target.range().first == 8U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)target.read(7); }));
    BOOST_TEST((target.read(8) == bytes_of_text("8")));
    target.trim(5);  // no way back
    DirectoryTarget other(scratch.path());
    BOOST_TEST(other.range().first == 8U);
    BOOST_TEST(other.range().last == 20U);
    BOOST_TEST(other.append(21, bytes_of_text("21")));
    BOOST_TEST(target.range().last == 21U);
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(scratch.path())) files += file.path().extension() == ".frame" ? 1 : 0;
    BOOST_TEST(files == 14U);
    { std::ofstream(scratch / "0000000000000003.frame") << "left by a trim that was interrupted"; }
    { std::ofstream(scratch / "0000000000000007.frame") << "and this one"; }
    target.trim(9);
    BOOST_TEST(!std::filesystem::exists(scratch / "0000000000000007.frame"));
}

BOOST_AUTO_TEST_CASE(a_lost_frame_hides_none_behind_it) {
    for (const std::uint64_t lost : {1U, 2U, 8U, 19U}) {
        const ScratchDirectory scratch;
        DirectoryTarget target(scratch.path());
        for (std::uint64_t number = 1; number <= 20; ++number) BOOST_TEST(target.append(number, bytes_of_text(std::to_string(number))));
        std::filesystem::remove(scratch / ("00000000000000" + std::string(lost < 16 ? "0" : "1") + "0123456789abcdef"[lost % 16] + ".frame"));
        DirectoryTarget other(scratch.path());
        BOOST_TEST(other.range().last == 20U);
        BOOST_TEST(throws(errc::not_found, [&] { (void)other.read(lost); }));
        BOOST_TEST(!other.append(lost, bytes_of_text("in its place")));
    }
}

BOOST_AUTO_TEST_CASE(newest_frames_that_are_lost_while_it_is_used_are_missed) {
    const ScratchDirectory scratch;
    DirectoryTarget target(scratch.path());
    for (std::uint64_t number = 1; number <= 4; ++number) BOOST_TEST(target.append(number, bytes_of_text(std::to_string(number))));
    std::filesystem::remove(scratch / "0000000000000003.frame");
    std::filesystem::remove(scratch / "0000000000000004.frame");
    BOOST_TEST(!target.append(5, bytes_of_text("5")));
    BOOST_TEST(target.range().last == 2U);
    BOOST_TEST(target.append(3, bytes_of_text("another 3")));
    for (std::uint64_t number = 1; number <= 3; ++number) std::filesystem::remove(scratch / ("000000000000000" + std::to_string(number) + ".frame"));
    BOOST_TEST(target.range().empty());
    BOOST_TEST(target.append(1, bytes_of_text("1")));
}

BOOST_AUTO_TEST_CASE(files_that_are_no_frames_are_told_or_passed_over) {
    const ScratchDirectory scratch;
    DirectoryTarget target(scratch.path());
    BOOST_TEST(target.append(1, bytes_of_text("1")));
    for (const char* const name : {"ffffffffffffffff.frame", "0000000000000000.frame", "2.frame", "000000000000000g.frame", "notes.txt"})
        std::ofstream(scratch / name) << "x";
    DirectoryTarget other(scratch.path());
    BOOST_TEST(other.range().last == 1U);
    BOOST_TEST(other.append(2, bytes_of_text("2")));
    { std::ofstream(scratch / "0000000000000003.frame") << "x"; }
    std::filesystem::resize_file(scratch / "0000000000000003.frame", std::uintmax_t{1} << 40U);
    BOOST_TEST(throws(errc::corrupt, [&] { (void)other.read(3); }));
}

BOOST_AUTO_TEST_CASE(what_says_which_frame_is_first_is_checked) {
    const ScratchDirectory scratch;
    DirectoryTarget target(scratch.path());
    for (std::uint64_t number = 1; number <= 4; ++number) BOOST_TEST(target.append(number, bytes_of_text(std::to_string(number))));
    target.trim(3);
    { std::ofstream(scratch / "first") << "0123456789abcdef"; }
    BOOST_TEST(throws(errc::corrupt, [&] { (void)target.range(); }));
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_missing_is_named) {
    const ScratchDirectory scratch;
    BOOST_TEST(throws(errc::not_found, [&] { DirectoryTarget(scratch / "missing"); }));
    { std::ofstream(scratch / "file") << "no directory"; }
    BOOST_TEST(throws(errc::not_found, [&] { DirectoryTarget(scratch / "file"); }));
}

BOOST_AUTO_TEST_CASE(of_several_that_append_the_same_number_one_does, *boost::unit_test::label("threads")) {
    const ScratchDirectory scratch;
    for (std::uint64_t number = 1; number <= 25; ++number) {
        std::atomic<unsigned> accepted{0};
        std::vector<std::thread> racers;
        for (unsigned racer = 0; racer < 4; ++racer) {
            racers.emplace_back([&, racer] {
                DirectoryTarget target(scratch.path());
                if (target.append(number, bytes_of_text("racer " + std::to_string(racer)))) ++accepted;
            });
        }
        for (std::thread& racer : racers) racer.join();
        BOOST_TEST(accepted == 1U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
