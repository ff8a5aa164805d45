#include "vm/address_space.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <taiyen/base/error.hpp>

#include "vm/dumps.hpp"

using namespace taiyen;
using vm::Placement;
using vm::Reservation;

namespace {

constexpr ByteCount length = 1_MiB;

/// A free range of the default zone, from its low end.
std::uintptr_t free_address(ByteCount bytes) {
    const vm::Zone zone = vm::default_zone();
    const auto found = vm::find_free(bytes, 2_MiB, Placement::low, zone.first, zone.last);
    BOOST_REQUIRE(found.has_value());
    return *found;
}

char* chars(std::uintptr_t address) { return reinterpret_cast<char*>(address); }

bool readable(std::uintptr_t address) {
    int pipe_ends[2];
    BOOST_REQUIRE_EQUAL(::pipe(pipe_ends), 0);
    const bool ok = ::write(pipe_ends[1], chars(address), 1) == 1;
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    return ok;
}

bool writable(std::uintptr_t address) {
    int pipe_ends[2];
    BOOST_REQUIRE_EQUAL(::pipe(pipe_ends), 0);
    BOOST_REQUIRE_EQUAL(::write(pipe_ends[1], "x", 1), 1);
    const bool ok = ::read(pipe_ends[0], chars(address), 1) == 1;
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    return ok;
}

template <class Action>
Error error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error;
    }
    BOOST_FAIL("nothing was thrown");
    throw 0;
}

/// A 64 KiB file without a name.
struct NamelessFile {
    int descriptor = ::memfd_create("taiyen-vm-test", MFD_CLOEXEC);
    NamelessFile() { BOOST_REQUIRE_EQUAL(::ftruncate(descriptor, 64_KiB), 0); }
    ~NamelessFile() { ::close(descriptor); }
};

/// Runs `body` in a child; its result is the exit status (127: an exception nobody caught).
int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        int status = 127;
        try {
            status = body();
        } catch (...) {}
        ::_exit(status);
    }
    int status = 0;
    BOOST_REQUIRE_EQUAL(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::size_t status_kib(const char* field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind(field, 0) == 0) return std::stoul(line.substr(line.find(':') + 1));
    return 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(address_space)

BOOST_AUTO_TEST_CASE(a_reservation_covers_its_range_and_nothing_of_it_can_be_read) {
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    BOOST_TEST(reservation.address() == address);
    BOOST_TEST(reservation.data() == reinterpret_cast<std::byte*>(address));
    BOOST_TEST(reservation.size() == length);
    BOOST_TEST(bool(reservation));
    const auto mapping = vm::mapping_in(address, length);
    BOOST_REQUIRE(mapping.has_value());
    BOOST_TEST(mapping->begin <= address);
    BOOST_TEST(mapping->end >= address + length);
    BOOST_TEST(!readable(address));
    BOOST_TEST(!readable(address + length - 1));
}

BOOST_AUTO_TEST_CASE(a_reservation_ends_with_its_object) {
    const std::uintptr_t address = free_address(length);
    { const Reservation reservation(address, length); }
    BOOST_TEST(!vm::mapping_in(address, length).has_value());
}

BOOST_AUTO_TEST_CASE(a_moved_reservation_has_one_owner) {
    const std::uintptr_t address = free_address(2 * length);
    Reservation first(address, length);
    Reservation second(std::move(first));
    BOOST_TEST(!bool(first));
    BOOST_TEST(second.address() == address);
    Reservation third(address + length, length);
    third = std::move(second);
    BOOST_TEST(third.address() == address);
    BOOST_TEST(!vm::mapping_in(address + length, length).has_value());
    BOOST_TEST(vm::mapping_in(address, length).has_value());
}

BOOST_AUTO_TEST_CASE(a_leaked_reservation_stays_mapped) {
    const std::uintptr_t address = free_address(length);
    Reservation reservation(address, length);
    reservation.leak();
    BOOST_TEST(!bool(reservation));
    reservation = Reservation();
    BOOST_TEST(vm::mapping_in(address, length).has_value());
    ::munmap(chars(address), length);
}

BOOST_AUTO_TEST_CASE(a_terabyte_can_be_reserved) {
    const std::uintptr_t address = free_address(512_GiB);
    const Reservation reservation(address, 512_GiB);
    BOOST_TEST(reservation.size() == 512_GiB);
}

BOOST_AUTO_TEST_CASE(a_collision_is_an_error_that_names_the_file_in_the_way_and_leaves_it_alone) {
    const NamelessFile file;
    const std::uintptr_t address = free_address(length);
    void* const there = ::mmap(chars(address + 64_KiB), 64_KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file.descriptor, 0);
    BOOST_REQUIRE(there != MAP_FAILED);
    std::strcpy(static_cast<char*>(there), "mine");
    const Error error = error_of([&] { Reservation(address, length); });
    BOOST_TEST((error.code() == errc::address_in_use));
    const std::string text = error.what();
    BOOST_TEST(text.find("taiyen-vm-test") != std::string::npos, text);
    BOOST_TEST(text.find("_0000") != std::string::npos, text);
    BOOST_TEST(std::string(static_cast<char*>(there)) == "mine");
    BOOST_TEST(!readable(address));
    ::munmap(there, 64_KiB);
}

BOOST_AUTO_TEST_CASE(a_collision_with_anonymous_memory_is_an_error_that_says_so) {
    const std::uintptr_t address = free_address(2 * length);
    const Reservation first(address, length);
    const Error error = error_of([&] { Reservation(address + length - page_bytes, length); });
    BOOST_TEST((error.code() == errc::address_in_use));
    BOOST_TEST(std::string(error.what()).find("anonymous") != std::string::npos, error.what());
    const Reservation beside(address + length, length);
    BOOST_TEST(bool(beside));
}

BOOST_AUTO_TEST_CASE(ranges_outside_the_address_space_are_typed_errors) {
    for (const std::uintptr_t address : {std::uintptr_t{0x7fff'ffff'f000}, std::uintptr_t{0xffff'8000'0000'0000}, ~std::uintptr_t{4095}}) {
        const Error error = error_of([&] { Reservation(address, length); });
        BOOST_TEST(((error.code() == errc::out_of_address_space) || (error.code() == errc::address_in_use)), error.what());
    }
    BOOST_TEST((error_of([&] { Reservation(0x2000'0000'0000, 1ULL << 62U); }).code() == errc::out_of_address_space));
}

BOOST_AUTO_TEST_CASE(the_maps_name_the_program_and_are_ascending) {
    char path[4096];
    const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
    BOOST_REQUIRE_GT(size, 0);
    const std::string program(path, static_cast<std::size_t>(size));
    bool found = false;
    std::uintptr_t behind = 0;
    for (const vm::Mapping& mapping : vm::mappings()) {
        BOOST_TEST(mapping.begin >= behind);
        BOOST_TEST(mapping.end > mapping.begin);
        behind = mapping.end;
        found = found || mapping.name == program;
    }
    BOOST_TEST(found);
    const int local = 0;
    const auto stack = vm::mapping_in(reinterpret_cast<std::uintptr_t>(&local), 1);
    BOOST_TEST(stack.has_value());
}

BOOST_AUTO_TEST_CASE(the_maps_can_be_read_after_the_main_thread_has_ended) {
    const int status = in_child([]() -> int {
        std::thread([] {
            for (std::string line = "?"; !line.empty(); ::usleep(1000)) {
                line.clear();  // the main thread's own file becomes empty when it ends
                std::ifstream maps("/proc/self/maps");
                std::getline(maps, line);
            }
            ::_exit(vm::mappings().empty() ? 1 : 0);
        }).detach();
        ::syscall(SYS_exit, 0);
        return 2;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(free_ranges_are_found_at_the_low_and_at_the_high_end) {
    const std::uintptr_t first = free_address(64_MiB);
    const std::uintptr_t last = first + 64_MiB;
    BOOST_TEST(vm::find_free(length, page_bytes, Placement::low, first, last).value() == first);
    BOOST_TEST(vm::find_free(length, page_bytes, Placement::high, first, last).value() == last - length);

    const Reservation low(first, length + page_bytes);
    const Reservation high(last - length - page_bytes, length + page_bytes);
    BOOST_TEST(vm::find_free(length, page_bytes, Placement::low, first, last).value() == first + length + page_bytes);
    BOOST_TEST(vm::find_free(length, 2_MiB, Placement::low, first, last).value() == first + 2_MiB);
    BOOST_TEST(vm::find_free(length, page_bytes, Placement::high, first, last).value() == last - 2 * length - page_bytes);
    BOOST_TEST(vm::find_free(length, 2_MiB, Placement::high, first, last).value() == last - 4_MiB);

    const ByteCount between = 64_MiB - 2 * (length + page_bytes);
    BOOST_TEST(vm::find_free(between, page_bytes, Placement::high, first, last).value() == first + length + page_bytes);
    BOOST_TEST(!vm::find_free(between + page_bytes, page_bytes, Placement::low, first, last).has_value());
    BOOST_TEST(!vm::find_free(between + page_bytes, page_bytes, Placement::high, first, last).has_value());
    BOOST_TEST(!vm::find_free(between, 2_MiB, Placement::low, first, last).has_value());
}

BOOST_AUTO_TEST_CASE(a_gap_between_two_mappings_is_found_only_by_what_fits) {
    const std::uintptr_t first = free_address(4_MiB);
    const Reservation a(first, 1_MiB);
    const Reservation b(first + 1_MiB + 64_KiB, 3_MiB - 64_KiB);
    const auto fits = vm::find_free(64_KiB, page_bytes, Placement::low, first, first + 4_MiB);
    BOOST_TEST(fits.value() == first + 1_MiB);
    BOOST_TEST(vm::find_free(64_KiB, page_bytes, Placement::high, first, first + 4_MiB).value() == first + 1_MiB);
    BOOST_TEST(!vm::find_free(68_KiB, page_bytes, Placement::low, first, first + 4_MiB).has_value());
}

BOOST_AUTO_TEST_CASE(nothing_is_free_in_an_empty_or_overflowing_range) {
    BOOST_TEST(!vm::find_free(page_bytes, page_bytes, Placement::low, 0x3000'0000'0000, 0x3000'0000'0000).has_value());
    BOOST_TEST(!vm::find_free(page_bytes, 1ULL << 63U, Placement::low, 1ULL << 63U | 4096U, UINTPTR_MAX).has_value());
    BOOST_TEST(!vm::find_free(1ULL << 63U, page_bytes, Placement::high, 0x2000'0000'0000, 0x3000'0000'0000).has_value());
}

BOOST_AUTO_TEST_CASE(both_ends_of_the_default_zone_can_be_mapped_and_used) {
    const vm::Zone zone = vm::default_zone();
    for (const Placement placement : {Placement::low, Placement::high}) {
        const auto address = vm::find_free(length, 2_MiB, placement, zone.first, zone.last);
        BOOST_REQUIRE(address.has_value());
        const Reservation reservation(*address, length);
        vm::map_anonymous(chars(*address), length);
        *chars(*address) = 'a';
        chars(*address)[length - 1] = 'z';
        BOOST_TEST(*chars(*address) == 'a');
    }
}

BOOST_AUTO_TEST_CASE(anonymous_memory_is_zero_and_goes_back_to_the_reservation) {
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    vm::map_anonymous(chars(address), 64_KiB);
    BOOST_TEST(*chars(address) == 0);
    *chars(address) = 'x';
    BOOST_TEST(!readable(address + 64_KiB));
    vm::unmap_to_reservation(chars(address), 64_KiB);
    BOOST_TEST(!readable(address));
    vm::map_anonymous(chars(address), 64_KiB);
    BOOST_TEST(*chars(address) == 0);
}

BOOST_AUTO_TEST_CASE(protection_changes_what_may_be_stored) {
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    vm::protect(chars(address), length, false);
    BOOST_TEST(readable(address));
    BOOST_TEST(!writable(address));
    vm::protect(chars(address), 64_KiB, true);
    BOOST_TEST(writable(address));
    BOOST_TEST(!writable(address + 64_KiB));
    vm::protect(chars(address), 64_KiB, false);
    BOOST_TEST(!writable(address));
    BOOST_TEST(*chars(address) == 'x');
}

BOOST_AUTO_TEST_CASE(memory_beyond_the_data_limit_is_heap_full_and_below_it_works) {
    const std::uintptr_t address = free_address(4_GiB);
    const Reservation reservation(address, 4_GiB);
    const int status = in_child([&] {
        vm::protect(chars(address), 4_GiB, false);  // readable costs nothing
        const rlim_t limit = status_kib("VmData") * 1_KiB + 64_MiB;
        const rlimit rules{limit, limit};
        if (::setrlimit(RLIMIT_DATA, &rules) != 0) return 1;
        vm::protect(chars(address), 16_MiB, true);
        *chars(address) = 'x';
        try {
            vm::protect(chars(address), 1_GiB, true);
            return 2;
        } catch (const HeapFull& full) {
            return full.cause() == HeapFull::Cause::address_space && full.wanted() == 1_GiB ? 0 : 3;
        }
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(dropped_pages_read_what_the_file_holds) {
    const NamelessFile file;
    BOOST_REQUIRE_EQUAL(::pwrite(file.descriptor, "file", 4, 4096), 4);
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    BOOST_REQUIRE(::mmap(chars(address), 64_KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file.descriptor, 0) != MAP_FAILED);
    char* const first = chars(address);
    char* const second = first + page_bytes;
    *first = 'X';
    std::memcpy(second, "HEAP", 4);
    vm::drop(second, page_bytes);
    BOOST_TEST(std::string(second, 4) == "file");
    BOOST_TEST(*first == 'X');
}

BOOST_AUTO_TEST_CASE(locked_pages_can_be_dropped_too) {
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    vm::map_anonymous(chars(address), 64_KiB);
    *chars(address) = 'x';
    if (::mlock(chars(address), 64_KiB) != 0) {
        BOOST_TEST_MESSAGE("skipped: mlock(2) is not permitted here");
        return;
    }
    vm::drop(chars(address), 64_KiB);
    BOOST_TEST(*chars(address) == 0);
}

BOOST_AUTO_TEST_CASE(dropping_what_is_not_mapped_is_an_error) {
    const std::uintptr_t address = free_address(length);
    BOOST_TEST((error_of([&] { vm::drop(chars(address), length); }).code() == errc::io_error));
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_have_a_heap_mapping) {
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    vm::map_anonymous(chars(address), length);
    vm::prepare_heap_mapping(chars(address), length);
    *chars(address) = 'x';
    BOOST_TEST(in_child([&] { return vm::mapping_in(address, length).has_value() ? 1 : 0; }) == 0);
}

BOOST_AUTO_TEST_CASE(a_heap_mapping_is_not_locked_in_memory) {
    const std::uintptr_t address = free_address(length);
    const Reservation reservation(address, length);
    vm::map_anonymous(chars(address), length);
    const std::size_t before = status_kib("VmLck");
    ::mlock(chars(address), length);
    const std::size_t locked = status_kib("VmLck");
    if (locked == before) {
        BOOST_TEST_MESSAGE("skipped: mlock(2) is not permitted here, or a sanitizer made it do nothing");
        return;
    }
    vm::prepare_heap_mapping(chars(address), length);
    BOOST_TEST(status_kib("VmLck") == locked - length / 1_KiB);
}

BOOST_AUTO_TEST_CASE(large_memory_keeps_its_bytes_where_it_grows_and_new_ones_are_zero) {
    ByteCount length = 2_MiB;
    std::byte* memory = vm::map_large(length);
    BOOST_REQUIRE(memory != nullptr);
    std::memset(memory, 1, length);
    for (const ByteCount grown : {2_MiB, 6_MiB, 40_MiB}) {
        std::byte* const at = vm::grow_large(memory, length, grown);
        BOOST_REQUIRE(at != nullptr);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(at) % 2_MiB == 0U);
        for (ByteCount i = 0; i < grown; i += 4_KiB) BOOST_REQUIRE((at[i] == std::byte{i < length ? std::uint8_t{1} : std::uint8_t{0}}));
        std::memset(at, 1, grown);
        memory = at;
        length = grown;
    }
    BOOST_TEST((vm::grow_large(memory, length, ByteCount{1} << 60U) == nullptr));
    BOOST_TEST((memory[length - 1] == std::byte{1}));
    vm::unmap_large(memory, length);
    BOOST_TEST((vm::map_large(ByteCount{1} << 60U) == nullptr));
}

BOOST_AUTO_TEST_CASE(what_can_not_be_read_is_not_copied_and_does_not_fault) {
    const Reservation reserved = Reservation::anywhere(length);
    std::byte* const begin = reserved.data();
    vm::map_anonymous(begin, 64_KiB);
    begin[100] = std::byte{1};
    char copy[16] = {};
    BOOST_TEST(vm::try_copy(begin + 100, copy, sizeof copy));
    BOOST_TEST(copy[0] == 1);
    BOOST_TEST(!vm::try_copy(begin + 64_KiB, copy, sizeof copy));      // reserved
    BOOST_TEST(!vm::try_copy(begin + 64_KiB - 8, copy, sizeof copy));  // half of it
    BOOST_TEST(!vm::try_copy(nullptr, copy, sizeof copy));
    vm::hide(begin, 64_KiB);
    errno = 7;
    BOOST_TEST(!vm::try_copy(begin + 100, copy, sizeof copy));
    BOOST_TEST(errno == 7);
}

BOOST_AUTO_TEST_CASE(core_dumps_hold_what_is_mapped_and_not_what_is_reserved) {
    using vm::test::is_in_dumps;
    for (const bool anywhere : {false, true}) {
        const Reservation reserved = anywhere ? Reservation::anywhere(length) : Reservation(free_address(length), length);
        std::byte* const begin = reserved.data();
        BOOST_TEST(!is_in_dumps(begin));
        vm::map_anonymous(begin, 64_KiB);
        vm::make_usable(begin + 128_KiB, 64_KiB);
        begin[128_KiB] = std::byte{1};
        BOOST_TEST(is_in_dumps(begin));
        BOOST_TEST(!is_in_dumps(begin + 64_KiB));
        BOOST_TEST(is_in_dumps(begin + 128_KiB));
        BOOST_TEST(!is_in_dumps(begin + 192_KiB));
        vm::unmap_to_reservation(begin, length);
        BOOST_TEST(!is_in_dumps(begin));
        BOOST_TEST(!is_in_dumps(begin + 128_KiB));
    }
}

BOOST_AUTO_TEST_SUITE_END()
