#include "log/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "log/ring_layout.hpp"
#include "ring_fixture.hpp"
#include "ring_forgery.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;
using layout::IdentitySlot;

BOOST_AUTO_TEST_SUITE(ring_identity)

namespace {

const RingIdentity identity{uuid_of(0x10), uuid_of(0x80), 16_KiB, true};

MemoryFile& formatted(MemoryFile& file) {
    Ring::format(file, identity);
    return file;
}

std::error_code error_of(const io::File& file) {
    try {
        Ring::read_identity(file);
        return {};
    } catch (const Error& error) {
        BOOST_TEST(error.path() == file.path());
        return error.code();
    }
}

/// Changes a slot and makes its checksum right again.
template <class Change>
void forge(MemoryFile& file, unsigned index, Change change) {
    std::byte* const at = file.bytes.data() + index * layout::identity_slot_bytes;
    IdentitySlot slot;
    std::memcpy(static_cast<void*>(&slot), at, sizeof slot);
    change(slot);
    forge_identity({at, sizeof slot}, index, slot);
}
template <class Change>
void forge_both(MemoryFile& file, Change change) {
    forge(file, 0, change);
    forge(file, 1, change);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_identity_that_was_written_is_read) {
    MemoryFile file;
    BOOST_TEST((Ring::read_identity(formatted(file)) == identity));
    RingIdentity published = identity;
    published.is_new = false;
    Ring::write_identity(file, published);
    BOOST_TEST((Ring::read_identity(file) == published));
    Ring::write_identity(file, identity);
    BOOST_TEST((Ring::read_identity(file) == identity));
}

BOOST_AUTO_TEST_CASE(a_new_ring_takes_its_capacity_and_no_byte_more) {
    for (const ByteCount capacity : {16_KiB, 1_MiB - 4_KiB, 1_MiB, 1_MiB + 4_KiB, 2_MiB + 512_KiB, 3_MiB}) {
        MemoryFile file;
        RingIdentity of_size = identity;
        of_size.capacity_bytes = capacity;
        Ring::format(file, of_size);
        BOOST_TEST(file.bytes.size() == Ring::header_bytes + capacity);
        BOOST_TEST((Ring::read_identity(file) == of_size));
    }
}

BOOST_AUTO_TEST_CASE(a_torn_identity_write_leaves_the_old_identity_or_the_new_one) {
    for (int round = 0; round < 3; ++round) {
        for (unsigned subset = 0; subset < 256; ++subset) {
            MemoryFile file;
            RingIdentity old = identity;
            formatted(file);
            for (int i = 0; i < round; ++i) {
                old.is_new = !old.is_new;
                Ring::write_identity(file, old);
            }
            RingIdentity fresh = old;
            fresh.is_new = !old.is_new;
            file.cut_power(0, [=](std::uint64_t sector) { return (subset >> sector & 1U) != 0; });
            BOOST_CHECK_THROW(Ring::write_identity(file, fresh), PowerCut);
            file.restore_power();
            const RingIdentity found = Ring::read_identity(file);
            BOOST_REQUIRE((found == old || found == fresh));
            BOOST_REQUIRE((subset != 0 || found == old));
            BOOST_REQUIRE((subset != 255 || found == fresh));
            Ring::write_identity(file, fresh);  // and it can be written again
            BOOST_REQUIRE((Ring::read_identity(file) == fresh));
        }
    }
}

BOOST_AUTO_TEST_CASE(an_identity_write_touches_one_block_and_no_record) {
    MemoryFile file;
    formatted(file);
    std::vector<std::byte> before = file.bytes;
    Ring::write_identity(file, identity);
    const bool first_changed = !std::equal(before.begin(), before.begin() + 4096, file.bytes.begin());
    const bool second_changed = !std::equal(before.begin() + 4096, before.begin() + 8192, file.bytes.begin() + 4096);
    BOOST_TEST(first_changed != second_changed);
    BOOST_TEST(std::equal(before.begin() + 8192, before.end(), file.bytes.begin() + 8192));
}

BOOST_AUTO_TEST_CASE(one_damaged_copy_does_no_harm_and_the_next_write_replaces_it) {
    for (std::size_t byte = 0; byte < 2 * layout::identity_slot_bytes; byte += 13) {
        MemoryFile file;
        formatted(file).bytes[byte] ^= std::byte{4};
        BOOST_TEST((Ring::read_identity(file) == identity));
        Ring::write_identity(file, identity);
        file.bytes[byte < 4096 ? 4096 + 100 : 100] ^= std::byte{4};  // now the other one
        BOOST_TEST((Ring::read_identity(file) == identity));
    }
}

BOOST_AUTO_TEST_CASE(two_damaged_copies_are_corrupt) {
    MemoryFile file;
    formatted(file);
    file.bytes[200] ^= std::byte{1};
    file.bytes[4096 + 70] ^= std::byte{1};
    BOOST_TEST((error_of(file) == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(another_kind_of_file_is_not_a_ring) {
    MemoryFile file;
    BOOST_TEST((error_of(file) == errc::not_a_heap));  // empty
    file.bytes = payload_of(100, 1);
    BOOST_TEST((error_of(file) == errc::not_a_heap));
    file.bytes = payload_of(64_KiB, 1);
    BOOST_TEST((error_of(file) == errc::not_a_heap));
    file.bytes.assign(64_KiB, std::byte{0});
    BOOST_TEST((error_of(file) == errc::not_a_heap));
}

BOOST_AUTO_TEST_CASE(a_file_cut_at_any_length_is_truncated) {
    MemoryFile whole;
    formatted(whole);
    for (std::size_t size = 1; size < whole.bytes.size(); size += size < 16 || size + 16 > whole.bytes.size() ? 1 : 61) {
        MemoryFile file;
        file.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(size));
        BOOST_REQUIRE((error_of(file) == errc::truncated));
    }
}

BOOST_AUTO_TEST_CASE(a_newer_version_and_an_unknown_feature_are_unsupported_even_beside_an_old_copy) {
    MemoryFile version;
    forge_both(formatted(version), [](IdentitySlot& slot) { slot.version = 2; });
    BOOST_TEST((error_of(version) == errc::unsupported_version));
    MemoryFile feature;
    forge_both(formatted(feature), [](IdentitySlot& slot) { slot.features_incompatible = 1ULL << 63U; });
    BOOST_TEST((error_of(feature) == errc::unsupported_version));
    MemoryFile half;
    forge(formatted(half), 0, [](IdentitySlot& slot) { slot.version = 2; });
    BOOST_TEST((error_of(half) == errc::unsupported_version));
}

BOOST_AUTO_TEST_CASE(the_other_byte_order_is_told_before_anything_else_is_judged) {
    MemoryFile file;
    formatted(file);
    for (const std::size_t slot : {0U, 4096U})
        std::reverse(file.bytes.begin() + static_cast<std::ptrdiff_t>(slot + 8), file.bytes.begin() + static_cast<std::ptrdiff_t>(slot + 12));
    BOOST_TEST((error_of(file) == errc::foreign_byte_order));
}

BOOST_AUTO_TEST_CASE(hostile_capacities_with_right_checksums_are_corrupt_or_truncated) {
    for (const std::uint64_t capacity : {0ULL, 1ULL, 512ULL, 4096ULL, 16384ULL + 512, 1ULL << 41U, 1ULL << 63U, ~0ULL, ~0ULL - 4095}) {
        MemoryFile file;
        forge_both(formatted(file), [=](IdentitySlot& slot) { slot.capacity_bytes = capacity; });
        BOOST_TEST((error_of(file) == errc::corrupt));
    }
    MemoryFile file;
    forge_both(formatted(file), [](IdentitySlot& slot) { slot.capacity_bytes = 1_TiB; });
    BOOST_TEST((error_of(file) == errc::truncated));
}

BOOST_AUTO_TEST_CASE(a_copy_in_the_other_ones_place_is_damage) {
    MemoryFile file;
    formatted(file);
    RingIdentity published = identity;
    published.is_new = false;
    Ring::write_identity(file, published);  // into the first slot
    std::copy_n(file.bytes.begin(), 4096, file.bytes.begin() + 4096);
    std::fill_n(file.bytes.begin(), 4096, std::byte{0});
    BOOST_TEST((error_of(file) == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(the_identity_of_another_ring_is_not_written) {
    MemoryFile file;
    formatted(file);
    RingIdentity other = identity;
    other.ring.bytes[0] ^= 1U;
    BOOST_CHECK_EXCEPTION(Ring::write_identity(file, other), Error, [](const Error& error) { return error.code() == errc::mismatch; });
    other = identity;
    other.capacity_bytes += 4096;
    BOOST_CHECK_EXCEPTION(Ring::write_identity(file, other), Error, [](const Error& error) { return error.code() == errc::mismatch; });
    BOOST_TEST((Ring::read_identity(file) == identity));
}

BOOST_AUTO_TEST_CASE(what_is_left_of_a_ring_is_told_from_others_and_from_other_files) {
    MemoryFile whole;
    formatted(whole);
    for (std::size_t bytes = 0; bytes < whole.bytes.size(); bytes += bytes < 200 ? 1 : 500) {
        MemoryFile cut;
        cut.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
        BOOST_TEST(Ring::is_left_of(cut, identity.heap), bytes);
        if (bytes >= sizeof(IdentitySlot)) BOOST_TEST(!Ring::is_left_of(cut, uuid_of(0x20)), bytes);
    }
    MemoryFile other;
    other.bytes.resize(20'000);
    BOOST_TEST(Ring::is_left_of(other, identity.heap));
    other.bytes.back() = std::byte{1};
    BOOST_TEST(!Ring::is_left_of(other, identity.heap));
    other.bytes.assign(1, std::byte{'x'});
    BOOST_TEST(!Ring::is_left_of(other, identity.heap));
}

BOOST_AUTO_TEST_SUITE_END()
