#include "store/header.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <utility>

#include <taiyen/store/archive_heap.hpp>

#include "file_bytes.hpp"
#include "heap/core.hpp"
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
        for (const std::uint64_t slot : {std::uint64_t{0}, std::uint64_t{4096}}) file->write(std::as_bytes(std::span(&value, 1)), slot + offset);
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

BOOST_AUTO_TEST_CASE(log_and_stage_lie_where_the_format_says_and_are_read) {
    HeaderFile f;
    f.header.log = random_uuid();
    f.header.log_capacity = 64_MiB;
    f.header.serial = {41};
    write_header(*f.file, f.header);
    BOOST_TEST((read_slots(*f.file).newest()->log_identity() == f.header.log_identity()));
    BOOST_TEST(read_slots(*f.file).newest()->staged.head.stage_offset == 0U);
    f.header.state = FileState::staged;
    f.header.staged.head = {8, 42, 128_KiB, 5, 4, 0, 73'728, 77, 0};
    f.header.staged.ring_start = {{12}, 16'384, 9, 100};
    f.header.staged.annex = {4096, 0, {1}};
    write_header(*f.file, f.header);
    const Slots slots = read_slots(*f.file);
    BOOST_TEST_REQUIRE(slots.newest() != nullptr);
    const Header after = slots.newest()->after_stage();
    BOOST_TEST(slots.newest()->serial.value == 41U);
    BOOST_TEST(after.serial.value == 42U);
    BOOST_TEST(after.generation.value == 8U);
    BOOST_TEST(after.extent == 128_KiB);
    BOOST_TEST(after.annex.extent == 4096U);
    BOOST_TEST((after.ring_start == f.header.staged.ring_start));
    BOOST_TEST((after.state == FileState::whole));
    BOOST_TEST((after.log == f.header.log));
    std::array<std::uint64_t, 55> words{};
    f.file->read(std::as_writable_bytes(std::span(words)), 0);
    BOOST_TEST(std::memcmp(&words[34], f.header.log.bytes.data(), 16) == 0);  // byte 272
    BOOST_TEST(words[36] == 64_MiB);
    BOOST_TEST(words[37] == 8U);  // generation
    BOOST_TEST(words[38] == 42U);
    BOOST_TEST(words[39] == 128_KiB);
    BOOST_TEST(words[43] == 73'728U);
    BOOST_TEST(words[46] == 12U);  // epoch
    BOOST_TEST(words[47] == 16'384U);
    BOOST_TEST(words[50] == 4096U);  // annex
    BOOST_TEST(words[54] == 0U);     // zeros from here on, byte 440 is word 55
}

BOOST_AUTO_TEST_CASE(its_time_and_the_last_recovery_lie_where_the_format_says_and_are_no_reason_to_refuse_it) {
    HeaderFile f;
    f.header.opening = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    write_header(*f.file, f.header);
    std::array<std::uint64_t, 68> words{};
    f.file->read(std::as_writable_bytes(std::span(words)), f.header.sequence % 2 * header_slot_bytes);
    BOOST_TEST(words[56] == f.header.written_at);  // byte 448
    BOOST_TEST(words[56] > 1'700'000'000'000'000U);
    BOOST_TEST(words[57] == 1U);
    BOOST_TEST(words[60] == (std::uint64_t{5} << 32U) + 4);  // cause and flags
    BOOST_TEST(words[61] == 6U);
    BOOST_TEST(words[66] == 11U);
    BOOST_TEST(words[67] == 0U);  // zeros from here on
    std::memset(&f.header.opening, 0xff, sizeof f.header.opening);
    write_header(*f.file, f.header);
    BOOST_TEST_REQUIRE(read_slots(*f.file).newest() != nullptr);
    BOOST_TEST(read_slots(*f.file).newest()->opening.headers_repaired == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(a_file_that_does_not_own_its_heap_says_so_under_a_feature_bit) {
    HeaderFile f;
    const auto word_at = [&](std::uint64_t place) {
        std::uint64_t word = 0;
        f.file->read(std::as_writable_bytes(std::span(&word, 1)), f.header.sequence % 2 * header_slot_bytes + place);
        return word;
    };
    write_header(*f.file, f.header);
    BOOST_TEST(word_at(32) == 0U);
    for (const ReplicaRole role : {ReplicaRole::follower, ReplicaRole::deposed}) {
        f.header.replica.role = role;
        f.header.replica.frame = 17;
        write_header(*f.file, f.header);
        BOOST_TEST(word_at(32) == 8U);
        BOOST_TEST(word_at(584) == static_cast<std::uint64_t>(role));
        BOOST_TEST(word_at(592) == 17U);
        BOOST_TEST((read_slots(*f.file).newest()->replica.role == role));
        Header other = f.header;
        other.replica = {};
        other.take_content(f.header);
        BOOST_TEST((other.replica.role == role));
    }
}

BOOST_AUTO_TEST_CASE(a_staged_save_that_moves_the_heap_says_so_under_a_feature_bit_until_it_is_in_the_file) {
    HeaderFile f;
    const auto word_at = [&](std::uint64_t place) {
        std::uint64_t word = 0;
        f.file->read(std::as_writable_bytes(std::span(&word, 1)), f.header.sequence % 2 * header_slot_bytes + place);
        return word;
    };
    f.header.state = FileState::staged;
    f.header.staged.head = {8, 0, 64_KiB, 1, 1, 0, 73'728, 77, 0};
    write_header(*f.file, f.header);
    BOOST_TEST(word_at(32) == 0U);  // incompatible features
    BOOST_TEST(read_slots(*f.file).newest()->after_stage().base == f.header.base);
    f.header.staged.base = 0x2400'0000'0000;
    write_header(*f.file, f.header);
    BOOST_TEST(word_at(32) == 1U);
    BOOST_TEST(word_at(440) == 0x2400'0000'0000U);
    const Header found = *read_slots(*f.file).newest();
    BOOST_TEST(found.base == f.header.base);
    BOOST_TEST(found.after_stage().base == 0x2400'0000'0000U);
    f.header = found.after_stage();
    write_header(*f.file, f.header);
    BOOST_TEST(word_at(32) == 0U);
    BOOST_TEST(word_at(440) == 0U);
    BOOST_TEST(read_slots(*f.file).newest()->base == 0x2400'0000'0000U);
}

BOOST_AUTO_TEST_CASE(position_independence_is_a_feature_that_who_does_not_know_it_refuses) {
    HeaderFile f;
    const auto features = [&] {
        std::uint64_t word = 0;
        f.file->read(std::as_writable_bytes(std::span(&word, 1)), f.header.sequence % 2 * header_slot_bytes + 32);
        return word;
    };
    f.header.position_independent = true;
    write_header(*f.file, f.header);
    BOOST_TEST(features() == 2U);
    BOOST_TEST(read_slots(*f.file).newest()->position_independent);
    f.header.state = FileState::staged;
    f.header.staged.head = {8, 0, 64_KiB, 1, 1, 0, 73'728, 77, 0};
    write_header(*f.file, f.header);
    BOOST_TEST(features() == 2U);
    f.header.staged.base = 0x2400'0000'0000;
    write_header(*f.file, f.header);
    BOOST_TEST(features() == 3U);
    BOOST_TEST(read_slots(*f.file).newest()->after_stage().position_independent);
}

BOOST_AUTO_TEST_CASE(a_header_that_contradicts_itself_about_stage_or_log_is_corrupt) {
    const auto refused = [](const std::function<void(Header&)>& change) {
        HeaderFile f;
        change(f.header);
        write_first_headers(*f.file, f.header);
        const Slots slots = read_slots(*f.file);
        return slots.newest() == nullptr && slots.verdict().code == errc::corrupt;
    };
    const auto stage = [](Header& header) {
        header.state = FileState::staged;
        header.staged.head.stage_offset = 73'728;
        header.staged.head.generation = header.generation.value + 1;
    };
    BOOST_TEST(!refused(stage));
    BOOST_TEST(refused([&](Header& header) { stage(header), header.staged.head.stage_offset = 0; }));
    BOOST_TEST(refused([&](Header& header) { stage(header), header.staged.head.generation += 1; }));
    BOOST_TEST(!refused([&](Header& header) { stage(header), header.staged.base = 0x2400'0000'0000; }));
    BOOST_TEST(refused([&](Header& header) { stage(header), header.staged.base = 0x2400'0000'1000; }));
    BOOST_TEST(refused([&](Header& header) { stage(header), header.staged.base = address_end; }));
    BOOST_TEST(refused([&](Header& header) { stage(header), header.staged.ring_start.position = 100; }));
    BOOST_TEST(refused([&](Header& header) { stage(header), header.ring_kind = RingKind::none; }));
    BOOST_TEST(refused([&](Header& header) { header.log = random_uuid(); }));
    BOOST_TEST(refused([&](Header& header) { header.log_capacity = 4096; }));
    BOOST_TEST(refused([&](Header& header) { header.log = random_uuid(), header.log_capacity = 100; }));
}

BOOST_AUTO_TEST_CASE(a_header_that_would_be_refused_is_not_written) {
    const std::function<void(Header&)> ends[] = {[](Header& h) { h.generation = {count_end}; }, [](Header& h) { h.serial = {count_end}; },
                                                 [](Header& h) { h.sequence = count_end - 1; }, [](Header& h) { h.sequence = count_end - 2; }};
    for (const auto& end : ends) {
        HeaderFile f;
        Header header = f.header;
        end(header);
        BOOST_CHECK_EXCEPTION(write_header(*f.file, header), Error, [](const Error& error) { return error.code() == errc::corrupt; });
        const Slots slots = read_slots(*f.file);
        BOOST_TEST((!slots.damaged() && slots.newest()->sequence == f.header.sequence));
    }
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

BOOST_AUTO_TEST_CASE(of_two_slots_that_tell_nothing_usable_the_more_telling_one_counts_wherever_it_stands) {
    const auto spoil = [](HeaderFile& f, std::uint64_t slot, errc how) {
        const auto [offset, value] = how == errc::unsupported_version ? std::pair{8U, 2U}
                                     : how == errc::not_a_heap        ? std::pair{0U, 0U}
                                                                      : std::pair{128U, 1U};
        f.file->write(std::as_bytes(std::span(&value, 1)), slot * header_slot_bytes + offset);
    };
    const errc from_the_most_telling[] = {errc::unsupported_version, errc::corrupt, errc::not_a_heap};
    for (std::size_t more = 0; more < 3; ++more) {
        for (std::size_t less = more; less < 3; ++less) {
            for (const std::uint64_t slot : {0U, 1U}) {
                HeaderFile f;
                spoil(f, slot, from_the_most_telling[more]);
                spoil(f, 1 - slot, from_the_most_telling[less]);
                BOOST_TEST((read_slots(*f.file).verdict().code == from_the_most_telling[more]));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(fields_out_of_bounds_are_refused_even_with_a_right_checksum) {
    const auto refused = [](auto&& change) {
        HeaderFile f;
        Header header = f.header;
        change(header);
        write_first_headers(*f.file, header);
        return read_slots(*f.file).newest() == nullptr;
    };
    BOOST_TEST(refused([](Header& h) { h.capacity = 4096; }));
    BOOST_TEST(refused([](Header& h) { h.extent = h.capacity + page_bytes; }));
    BOOST_TEST(refused([](Header& h) { h.base = 4096; }));
    BOOST_TEST(refused([](Header& h) { h.base = 0; }));
    BOOST_TEST(refused([](Header& h) { h.capacity = std::uint64_t{1} << 60U; }));
    BOOST_TEST(refused([](Header& h) { h.ring_start.position = 17; }));
    BOOST_TEST(!refused([](Header&) {}));
    BOOST_TEST(!refused([](Header& h) { h.position_independent = true; }));
    // Each field by itself.
    BOOST_TEST(refused([](Header& h) { h.role = static_cast<FileRole>(0); }));
    BOOST_TEST(refused([](Header& h) { h.state = static_cast<FileState>(0); }));
    BOOST_TEST(refused([](Header& h) { h.state = static_cast<FileState>(99); }));
    BOOST_TEST(refused([](Header& h) { h.capacity += 17; }));
    BOOST_TEST(refused([](Header& h) { h.extent += 17; }));
    BOOST_TEST(refused([](Header& h) { h.extent = page_bytes; }));
    BOOST_TEST(refused([](Header& h) { h.base = ~std::uintptr_t{0} - heap::slot_bytes + 1; }));
    BOOST_TEST(refused([](Header& h) { h.base = address_end; }));
    BOOST_TEST(refused([](Header& h) { h.generation = {count_end * 2}; }));
    BOOST_TEST(refused([](Header& h) { h.serial = {count_end * 2}; }));
    BOOST_TEST(refused([](Header& h) { h.filling_generation = {count_end}; }));
    BOOST_TEST(refused([](Header& h) { h.ring_start.sequence = count_end; }));
    BOOST_TEST(refused([](Header& h) { h.ring_start.position = count_end; }));
    BOOST_TEST(refused([](Header& h) { h.ring_kind = static_cast<RingKind>(9); }));
    BOOST_TEST(refused([](Header& h) { h.ring_capacity = 0; }));
    BOOST_TEST(refused([](Header& h) { h.ring_capacity += 512; }));
    BOOST_TEST(refused([](Header& h) { h.ring_capacity = std::uint64_t{1} << 40U; }));
    BOOST_TEST(refused([](Header& h) { h.log_capacity = 1_MiB; }));
    BOOST_TEST(refused([](Header& h) { h.log = random_uuid(); }));
    const auto with_log = [](Header& h, ByteCount capacity) {
        h.log = random_uuid();
        h.log_capacity = capacity;
    };
    BOOST_TEST(!refused([&](Header& h) { with_log(h, 1_MiB); }));
    BOOST_TEST(refused([&](Header& h) { with_log(h, 1_MiB + 1); }));
    BOOST_TEST(refused([&](Header& h) { with_log(h, std::uint64_t{1} << 40U); }));
    const auto with_annex = [](Header& h, ByteCount extent, ByteCount used, std::uint8_t place) {
        h.annex.extent = extent;
        h.annex.used = used;
        h.annex.places[0] = place;
    };
    BOOST_TEST(!refused([&](Header& h) { with_annex(h, 8192, 4096, 1); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, 8192, 4096, 0); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, 8192, 4096, 2); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, 8000, 4096, 1); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, 8192, 4000, 1); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, 8192, 16384, 1); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, ~ByteCount{4095}, 0, 1); }));
    BOOST_TEST(refused([&](Header& h) { with_annex(h, 0, 0, 1); }));
    const auto staged = [](Header& h) {
        h.state = FileState::staged;
        h.staged.head.stage_offset = 1_MiB;
        h.staged.head.generation = h.generation.value + 1;
    };
    BOOST_TEST(!refused(staged));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.staged.head.stage_offset = 0; }));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.staged.head.generation = h.generation.value; }));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.staged.ring_start.position = 17; }));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.ring_kind = RingKind::none, h.ring_capacity = 0; }));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.staged.ring_start.position = count_end; }));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.staged.ring_start.sequence = count_end; }));
    BOOST_TEST(refused([&](Header& h) { staged(h), h.staged.head.serial = count_end; }));
}

BOOST_AUTO_TEST_CASE(a_heap_that_could_count_past_the_bound_while_it_is_open_is_opened_for_reading_only) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    PersistentOptions options;
    options.capacity = 1U << 20U;
    ArchiveHeap(create_only, path, options).close();
    const std::string whole = taiyen::test::file_bytes(path);
    const auto opens = [&](auto how, const std::function<void(Header&)>& change) {
        std::ofstream(path, std::ios::binary) << whole;
        {
            const auto file = io::posix_storage().open(path, io::Access::read_write);
            Header header = *read_slots(*file).newest();
            change(header);
            write_header(*file, header);
        }
        const std::string before = taiyen::test::file_bytes(path);
        try {
            const ArchiveHeap heap(how, path);
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::corrupt), error.what());
            BOOST_TEST(error.path() == path);
            BOOST_TEST((taiyen::test::file_bytes(path) == before));
            return false;
        }
        return read_slots(*io::posix_storage().open(path, io::Access::read_only)).newest() != nullptr;  // what it has written is read again
    };
    constexpr std::uint64_t last = count_end - counts_of_an_opening - 1;
    for (const std::uint64_t value : {count_end - 1, last + 1}) {
        for (const auto& change : {std::function<void(Header&)>([&](Header& h) { h.serial = {value}; }),
                                   std::function<void(Header&)>([&](Header& h) { h.generation = {value}; }),
                                   std::function<void(Header&)>([&](Header& h) { h.sequence = value - 2; })}) {
            BOOST_TEST(!opens(open_only, change));
            BOOST_TEST(opens(open_read_only, change));
        }
    }
    BOOST_TEST(opens(open_only, [&](Header& h) { h.serial = {last}, h.generation = {last}; }));
}

BOOST_AUTO_TEST_SUITE_END()
