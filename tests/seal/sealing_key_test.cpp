// Files of keys: which are taken, and that no error shows what is in one.

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <taiyen/base/error.hpp>

#include "scratch_directory.hpp"
#include "seal/keys.hpp"

using namespace taiyen;

namespace {

using std::filesystem::perms;

struct KeyFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "bank.key";

    void write(const std::string& bytes, perms who = perms::owner_read | perms::owner_write) const {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        std::filesystem::permissions(path, who);
    }
    /// What is said, with the file's name in front.
    std::string told(errc code) const {
        try {
            (void)read_sealing_key(path);
        } catch (const Error& error) {
            BOOST_TEST((error.code() == code), error.what());
            const std::string what = error.what();
            BOOST_TEST(what.starts_with(path.string() + ": "), what);
            BOOST_TEST(what.find("secret") == std::string::npos, what);
            return what;
        }
        return "it was taken";
    }
};

const std::string secret = "secret secret secret secret 1234";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sealing_key, KeyFixture)

BOOST_AUTO_TEST_CASE(a_key_is_what_is_in_its_file) {
    for (const perms who : {perms::owner_read, perms::owner_read | perms::owner_write}) {
        write(secret, who);
        const SealingKey key = read_sealing_key(path);
        BOOST_TEST(std::string(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()) == secret);
        std::filesystem::remove(path);
    }
}

BOOST_AUTO_TEST_CASE(a_key_has_thirty_two_bytes) {
    for (const std::size_t size : {0U, 31U, 33U, 64U}) {
        write(std::string(secret + secret).substr(0, size));
        BOOST_TEST(told(errc::invalid_argument).find("has " + std::to_string(size) + "; make one: head -c 32") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(a_key_that_others_may_read_or_change_is_refused) {
    for (const perms who : {perms::group_read, perms::group_write, perms::others_read, perms::others_write}) {
        write(secret, perms::owner_read | perms::owner_write | who);
        BOOST_TEST(told(errc::permission).find("chmod 600") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_file_of_a_key_is_refused) {
    BOOST_TEST(told(errc::not_found).find("make one: ") != std::string::npos);
    BOOST_TEST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    BOOST_TEST(told(errc::not_a_regular_file).find("make one: ") != std::string::npos);  // at once
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    std::filesystem::permissions(path, perms::owner_all);
    BOOST_TEST(told(errc::not_a_regular_file).find("make one: ") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
