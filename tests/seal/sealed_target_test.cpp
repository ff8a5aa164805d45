// Sealed frames: their bytes, and that none is opened that wasn't sealed so.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/seal/sealed_target.hpp>

#include "replicate/pretended_target.hpp"
#include "seal/keys.hpp"
#include "seed.hpp"
#include "throws.hpp"

using namespace taiyen;
using namespace taiyen::seal::test;
using taiyen::replicate::test::PretendedTarget;
using taiyen::test::throws;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::string hex(const Bytes& bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        constexpr std::string_view digits = "0123456789abcdef";
        text += digits[std::to_integer<std::size_t>(byte >> 4)];
        text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
    return text;
}

/// A place, and who seals there.
struct Sealed {
    std::shared_ptr<PretendedTarget> place = std::make_shared<PretendedTarget>();
    SealedTarget target{place, std::vector{key_of(0)}};

    Bytes sealed(std::uint64_t number, const Bytes& frame) {
        const auto other = std::make_shared<PretendedTarget>();
        other->lose_from(number);
        BOOST_TEST_REQUIRE(SealedTarget(other, std::vector{key_of(0)}).append(number, frame));
        return other->frames().at(number);
    }
    /// What reading says of these bytes.
    std::string told(errc code, std::uint64_t number, const Bytes& bytes) {
        place->put(number, bytes);
        try {
            (void)target.read(number);
        } catch (const Error& error) {
            BOOST_TEST((error.code() == code), error.what());
            return error.what();
        }
        return "it was opened";
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sealed_target)

// Made by another program: BLAKE2b of Python's hashlib, XChaCha20-Poly1305 of libsodium.
BOOST_FIXTURE_TEST_CASE(a_sealed_frame_has_these_bytes_for_ever, Sealed) {
    const std::string golden =
        "54415949454e530a0100000000000000fad0fd9ff87b2609f1c0f8a2ac9d9d99c277967839fba1c5f9b78f396b85e0e5"
        "42a1051a8ba61cb977fa42e936013a5e6841101e95b5fac5284dea8db2";
    BOOST_TEST(hex(sealed(2, bytes_of("what it holds"))) == golden);
}

BOOST_FIXTURE_TEST_CASE(what_was_sealed_is_read, Sealed) {
    for (std::uint64_t number = 1; number < 4; ++number) {
        const Bytes frame(1000 * (number - 1), std::byte{7});
        BOOST_TEST(target.append(number, frame));
        BOOST_TEST((target.read(number) == frame));
        BOOST_TEST(place->frames().at(number).size() == frame.size() + 64);
    }
    BOOST_TEST(target.range().last == 3U);
    BOOST_TEST(target.name() == "pretended");
    BOOST_TEST(target.linger().count() == place->linger().count());
    target.trim(2);
    BOOST_TEST(place->range().first == 2U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)target.read(1); }));
}

BOOST_FIXTURE_TEST_CASE(nothing_of_a_frame_is_seen_in_its_seal, Sealed) {
    const std::string secret = "what nobody may read";
    const Bytes bytes = sealed(1, bytes_of(secret + secret));
    BOOST_TEST(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(secret.substr(0, 4)) == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(the_same_frame_has_the_same_bytes_and_any_other_has_others, Sealed) {
    const Bytes frame = bytes_of("what it holds");
    const Bytes first = sealed(1, frame);
    BOOST_TEST((sealed(1, frame) == first));
    const Bytes second = sealed(2, frame);
    BOOST_TEST(hex(second).substr(48) != hex(first).substr(48));  // another nonce, so all of it
    BOOST_TEST(hex(second).substr(48, 48) != hex(first).substr(48, 48));
    BOOST_TEST(hex(sealed(1, bytes_of("What it holds"))).substr(48, 48) != hex(first).substr(48, 48));
    BOOST_TEST(target.append(1, frame));
    BOOST_TEST(target.append(1, frame));                     // as after an answer that was lost
    BOOST_TEST(!target.append(1, bytes_of("another one")));  // of another owner
    BOOST_TEST((target.read(1) == frame));
}

BOOST_FIXTURE_TEST_CASE(no_flipped_bit_and_no_cut_is_opened, Sealed) {
    const Bytes whole = sealed(1, bytes_of("what it holds"));
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        Bytes bytes = whole;
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        const std::size_t at = bit / 8;
        const errc code = at >= 8 && at < 12 ? errc::unsupported_version : at >= 16 && at < 24 ? errc::permission : errc::corrupt;
        BOOST_TEST_CONTEXT("bit " << bit) { BOOST_TEST(told(code, 1, bytes).find("frame 1 ") != std::string::npos); }
    }
    for (std::size_t size = 0; size < whole.size(); ++size) BOOST_TEST_CONTEXT("size " << size) {
            BOOST_TEST(told(errc::corrupt, 1, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}) != "it was opened");
        }
    Bytes longer = whole;
    longer.push_back({});
    BOOST_TEST(told(errc::corrupt, 1, longer).find("broken seal") != std::string::npos);
    place->put(1, whole);
    BOOST_TEST((target.read(1) == bytes_of("what it holds")));
}

BOOST_FIXTURE_TEST_CASE(a_frame_in_another_ones_place_is_not_opened, Sealed) {
    BOOST_TEST(told(errc::corrupt, 2, sealed(1, bytes_of("what it holds"))).find("pretended: frame 2 has a broken seal") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(bytes_that_nobody_sealed_are_not_opened, Sealed) {
    BOOST_TEST(told(errc::corrupt, 1, bytes_of("TAYIENF\n, and so on")).find("frame 1 isn't sealed") != std::string::npos);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const Bytes head = sealed(1, {});
    for (int i = 0; i < 2000; ++i) {
        Bytes bytes(random() % 200);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        const std::size_t kept = std::min<std::size_t>(random() % 65, bytes.size());
        std::copy_n(head.begin(), kept, bytes.begin());
        if (bytes == head) continue;
        place->put(1, bytes);
        BOOST_CHECK_THROW((void)target.read(1), Error);
    }
}

BOOST_FIXTURE_TEST_CASE(another_key_is_told_from_damage_and_never_shown, Sealed) {
    BOOST_TEST_REQUIRE(target.append(1, bytes_of("what it holds")));
    SealedTarget other(place, std::vector{key_of(1)});
    try {
        (void)other.read(1);
        BOOST_ERROR("it was opened");
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::permission));
        BOOST_TEST(std::string(error.what()).starts_with("pretended: frame 1 is sealed with another key; name that one"));
    }
}

BOOST_FIXTURE_TEST_CASE(the_first_key_seals_and_any_opens, Sealed) {
    BOOST_TEST_REQUIRE(target.append(1, bytes_of("under the old key")));
    SealedTarget rotated(place, std::vector{key_of(1), key_of(0)});
    BOOST_TEST_REQUIRE(rotated.append(2, bytes_of("under the new key")));
    BOOST_TEST((rotated.read(1) == bytes_of("under the old key")));
    BOOST_TEST((rotated.read(2) == bytes_of("under the new key")));
    BOOST_TEST(throws(errc::permission, [&] { (void)target.read(2); }));
    BOOST_TEST((SealedTarget(place, std::vector{key_of(1)}).read(2) == bytes_of("under the new key")));
}

BOOST_AUTO_TEST_CASE(sealing_needs_a_target_and_a_key) {
    BOOST_TEST(throws(errc::invalid_argument, [] { SealedTarget(nullptr, std::vector{key_of(0)}); }));
    BOOST_TEST(throws(errc::invalid_argument, [] { SealedTarget(std::make_shared<PretendedTarget>(), {}); }));
}

BOOST_AUTO_TEST_SUITE_END()
