#include "store/header.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>

#include "scratch_directory.hpp"

namespace {
using namespace taiyen;
using namespace taiyen::store;

Header sample() {
    Header header;
    header.heap = random_uuid();
    header.file = random_uuid();
    header.base = 0x2300'0000'0000;
    header.capacity = 1_GiB;
    header.extent = 64_KiB;
    header.generation = {7};
    header.ring_kind = RingKind::journal;
    header.ring = random_uuid();
    header.ring_capacity = 1_MiB;
    header.ring_start = {{11}, 8192, 5, 99};
    return header;
}

struct HeaderFile {
    ScratchDirectory directory;
    std::unique_ptr<io::File> file = io::posix_storage().create(directory.path() / "h");
    Header header = sample();
    HeaderFile() { write_first_headers(*file, header); }

    void flip(std::uint64_t offset) {
        std::byte byte{};
        file->read({&byte, 1}, offset);
        byte ^= std::byte{4};
        file->write({&byte, 1}, offset);
        file->sync();
    }
    void put32(std::uint64_t offset, std::uint32_t value) {
        for (const std::uint64_t slot : {std::uint64_t{0}, std::uint64_t{4096}}) {
            file->write(std::as_bytes(std::span(&value, 1)), slot + offset);
        }
        file->sync();
    }
};
}  // namespace

BOOST_AUTO_TEST_SUITE(headers)

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
    HeaderFile f;
    f.header.generation = {8};
    write_header(*f.file, f.header);
    const Slots slots = read_slots(*f.file);
    BOOST_TEST_REQUIRE(slots.newest() != nullptr);
    BOOST_TEST(slots.newest()->generation.value == 8U);
    BOOST_TEST((slots.newest()->ring_start == f.header.ring_start));
    BOOST_TEST((slots.newest()->heap == f.header.heap));
    BOOST_TEST(!slots.damaged());
}

BOOST_AUTO_TEST_CASE(any_flipped_bit_costs_its_slot_only) {
    HeaderFile f;
    for (std::uint64_t at = 0; at < chunks_offset; at += 13) {
        f.flip(at);
        const Slots slots = read_slots(*f.file);
        BOOST_TEST_REQUIRE(slots.damaged());
        BOOST_TEST_REQUIRE(!slots.slot[at / header_slot_bytes].has_value());
        BOOST_TEST_REQUIRE(slots.newest() != nullptr);
        f.flip(at);
    }
    BOOST_TEST(!read_slots(*f.file).damaged());
}

BOOST_AUTO_TEST_CASE(after_a_header_write_either_slot_may_be_lost) {
    HeaderFile f;
    for (std::uint64_t generation = 8; generation < 16; ++generation) {
        f.header.generation = {generation};
        write_header(*f.file, f.header);
        const Slots slots = read_slots(*f.file);
        BOOST_TEST_REQUIRE((slots.slot[0] && slots.slot[1]));
        BOOST_TEST(slots.slot[0]->generation.value == generation);
        BOOST_TEST(slots.slot[1]->generation.value == generation);
    }
}

BOOST_AUTO_TEST_CASE(each_kind_of_stranger_has_its_own_code) {
    const auto code_after = [](auto&& change) {
        HeaderFile f;
        change(f);
        return read_slots(*f.file).verdict().code;
    };
    BOOST_TEST((code_after([](HeaderFile& f) { f.put32(0, 0); }) == errc::not_a_heap));
    BOOST_TEST((code_after([](HeaderFile& f) { f.put32(8, 2); }) == errc::unsupported_version));
    BOOST_TEST((code_after([](HeaderFile& f) { f.put32(12, 0x0403'0201); }) == errc::foreign_byte_order));
    BOOST_TEST((code_after([](HeaderFile& f) { f.put32(16, 16384); }) == errc::unsupported_page_size));
    BOOST_TEST((code_after([](HeaderFile& f) { f.put32(128, 1); }) == errc::corrupt));
    BOOST_TEST((code_after([](HeaderFile& f) { f.file->resize(0); }) == errc::not_a_heap));
    BOOST_TEST((code_after([](HeaderFile& f) { f.file->resize(100); }) == errc::truncated));
}

BOOST_AUTO_TEST_CASE(fields_out_of_bounds_are_refused_even_with_a_right_checksum) {
    const auto refused = [](auto&& change) {
        HeaderFile f;
        Header header = f.header;
        change(header);
        for (int i = 0; i < 2; ++i) {
            write_header(*f.file, header);
        }
        return read_slots(*f.file).newest() == nullptr;
    };
    BOOST_TEST(refused([](Header& h) { h.capacity = 4096; }));
    BOOST_TEST(refused([](Header& h) { h.extent = h.capacity + page_bytes; }));
    BOOST_TEST(refused([](Header& h) { h.base = 4096; }));
    BOOST_TEST(refused([](Header& h) { h.base = 0; }));
    BOOST_TEST(refused([](Header& h) { h.capacity = std::uint64_t{1} << 60U; }));
    BOOST_TEST(refused([](Header& h) { h.ring_start.position = 17; }));
    BOOST_TEST(!refused([](Header&) {}));
}

BOOST_AUTO_TEST_SUITE_END()
