// Frames: their bytes, and that none is believed that isn't what was written.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <string>

#include "base/checksum.hpp"
#include "replicate/frame.hpp"
#include "replicate/packed_frame.hpp"
#include "replicate/pretended_target.hpp"
#include "throws.hpp"

using namespace taiyen;
using namespace taiyen::replicate;
using taiyen::replicate::layout::PackedHead;
using taiyen::replicate::test::PretendedTarget;
using taiyen::test::throws;

namespace {

FrameHead head_of_test(std::uint64_t number) {
    FrameHead head{};
    head.kind = FrameKind::records;
    for (std::size_t i = 0; i < sizeof head.heap; ++i) head.heap[i] = static_cast<std::uint8_t>(i);
    head.number = number;
    head.previous = 3;
    head.epoch = 1;
    head.epoch_frame = 1;
    head.first_serial = 4;
    head.last_serial = 5;
    head.written_at = 6;
    head.newest_base = 1;
    head.covered_generation = 8;
    head.covered_serial = 9;
    return head;
}

std::vector<std::byte> frame_of_test(std::uint64_t number, std::uint64_t newest_base = 1) {
    FrameHead head = head_of_test(number);
    head.newest_base = newest_base;
    const std::string text = "what it holds";
    const std::array pieces{std::as_bytes(std::span(text)).first(4), std::as_bytes(std::span(text)).subspan(4)};
    return encode(head, pieces);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frames)

BOOST_AUTO_TEST_CASE(a_frame_has_these_bytes_for_ever) {
    const std::vector<std::byte> bytes = frame_of_test(2, 7);
    BOOST_REQUIRE_EQUAL(bytes.size(), sizeof(FrameHead) + 13);
    BOOST_TEST(std::string(reinterpret_cast<const char*>(bytes.data()), 8) == "TAYIENF\n");
    BOOST_TEST(std::to_integer<int>(bytes[8]) == 1);
    BOOST_TEST(std::to_integer<int>(bytes[12]) == 2);
    BOOST_TEST(checksum(bytes, 0) == 14676904230566533633ULL);
}

BOOST_AUTO_TEST_CASE(what_was_written_is_read) {
    PretendedTarget target;
    target.put(2, frame_of_test(2));
    const Frame frame(target, 2);
    BOOST_TEST((frame.kind() == FrameKind::records));
    BOOST_TEST(frame.head().last_serial == 5U);
    BOOST_TEST(std::string(reinterpret_cast<const char*>(frame.body().data()), frame.body().size()) == "what it holds");
    BOOST_TEST(std::to_integer<int>(std::byte{frame.heap().bytes[15]}) == 15);
}

BOOST_AUTO_TEST_CASE(no_flipped_bit_and_no_cut_is_believed) {
    const std::vector<std::byte> whole = frame_of_test(2);
    PretendedTarget target;
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        std::vector<std::byte> bytes = whole;
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        target.put(2, bytes);
        BOOST_TEST_CONTEXT("bit " << bit) {
            BOOST_TEST(throws(errc::corrupt, [&] { (void)Frame(target, 2); }));
        }
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
        target.put(2, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
        BOOST_TEST_CONTEXT("size " << size) {
            BOOST_TEST(throws(errc::corrupt, [&] { (void)Frame(target, 2); }));
        }
    }
    target.put(3, whole);  // in another one's place
    BOOST_TEST(throws(errc::corrupt, [&] { (void)Frame(target, 3); }));
}

BOOST_AUTO_TEST_CASE(what_was_packed_is_read_and_no_flipped_bit_and_no_cut_of_it_is_believed) {
    const std::vector<std::byte> body(3000, std::byte{7});
    const auto make = [&] {
        FrameHead head = head_of_test(2);
        const std::array pieces{std::span(body)};
        return encode(head, pieces);
    };
    PretendedTarget target;
    for (const Codec codec : {Codec::lz4, Codec::zstd}) {
        FramePacker packer(codec);
        const std::vector<std::byte> packed = packer.pack(make());
        BOOST_TEST(packed.size() < 500U);
        BOOST_TEST((packer.pack(make()) == packed));
        target.put(2, packed);
        BOOST_TEST(std::ranges::equal(Frame(target, 2).body(), body));
        for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
            std::vector<std::byte> bytes = packed;
            bytes[bit / 8] ^= std::byte{1} << (bit % 8);
            target.put(2, bytes);
            BOOST_TEST_CONTEXT("bit " << bit) {
                BOOST_TEST(throws(errc::corrupt, [&] { (void)Frame(target, 2); }));
            }
        }
        for (std::size_t size = 0; size < packed.size(); ++size) {
            target.put(2, {packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)});
            BOOST_TEST_CONTEXT("size " << size) {
                BOOST_TEST(throws(errc::corrupt, [&] { (void)Frame(target, 2); }));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_would_hardly_become_smaller_stays_as_it_is) {
    std::vector<std::byte> body(100'000);
    std::mt19937 random(1);
    for (std::byte& byte : body) byte = static_cast<std::byte>(random());
    FrameHead head = head_of_test(2);
    const std::array pieces{std::span<const std::byte>(body)};
    const std::vector<std::byte> frame = encode(head, pieces);
    for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd}) BOOST_TEST((FramePacker(codec).pack(frame) == frame));
    BOOST_TEST((FramePacker(Codec::lz4).pack(frame_of_test(2)) == frame_of_test(2)));  // small
}

BOOST_AUTO_TEST_CASE(a_packed_frame_is_no_bomb) {
    PackedHead head{layout::packed_magic, 1, 0, layout::packed_frame_bytes_max + 1, 0};
    head.checksum = checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(PackedHead, checksum)), checksum({}, head.frame_bytes));
    const auto bytes = std::as_bytes(std::span(&head, 1));
    PretendedTarget target;
    target.put(2, {bytes.begin(), bytes.end()});
    BOOST_TEST(throws(errc::corrupt, [&] { (void)Frame(target, 2); }));
}

BOOST_AUTO_TEST_CASE(a_frame_of_a_newer_version_says_so) {
    std::vector<std::byte> bytes = frame_of_test(2);
    FrameHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    head.version = 2;
    head.checksum = checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(FrameHead, checksum)), head.version);
    std::memcpy(bytes.data(), &head, sizeof head);
    PretendedTarget target;
    target.put(2, bytes);
    BOOST_TEST(throws(errc::unsupported_version, [&] { (void)Frame(target, 2); }));
}

BOOST_AUTO_TEST_CASE(a_frame_continues_the_one_before) {
    PretendedTarget target;
    FrameHead first = head_of_test(1);
    target.put(1, encode(first, {}));
    const auto follows = [&](auto&& change) {
        FrameHead second = head_of_test(2);
        second.previous = first.checksum;
        change(second);
        target.put(2, encode(second, {}));
        return !throws(errc::corrupt, [&] { Frame(target, 2).require_follows(Frame(target, 1).head()); });
    };
    BOOST_TEST(follows([](FrameHead&) {}));
    BOOST_TEST(!follows([](FrameHead& head) { ++head.previous; }));
    BOOST_TEST(!follows([](FrameHead& head) { head.last_serial = 4; }));
    BOOST_TEST(!follows([](FrameHead& head) { ++head.epoch; }));
    BOOST_TEST(follows([](FrameHead& head) {
        head.kind = FrameKind::epoch;
        ++head.epoch;
    }));
    BOOST_TEST(!follows([](FrameHead& head) { ++head.heap[3]; }));
}

BOOST_AUTO_TEST_SUITE_END()
