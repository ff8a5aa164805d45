#include "vm/address_space.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <algorithm>
#include <charconv>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/descriptor.hpp"
#include "base/sanitizers.hpp"

namespace taiyen::vm {
namespace {

// Kernel headers older than 4.17 lack it; the value is part of the system call interface.
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#if defined(TAIYEN_THREAD_SANITIZER)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void* pointer(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): fixed addresses are this room's business
}

bool is_page_multiple(std::uintptr_t value) { return value % page_bytes == 0; }

/// 0x2300_0000_0000: groups of four digits, as people read addresses.
std::string hex(std::uintptr_t value) {
    std::string digits(2 * sizeof value, '0');
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    digits.resize(static_cast<std::size_t>(end - digits.data()));
    for (std::size_t at = digits.size(); at > 4;) {
        at -= 4;
        digits.insert(at, 1, '_');
    }
    return "0x" + digits;
}

std::string range_text(std::uintptr_t begin, std::uintptr_t end) { return hex(begin) + "-" + hex(end); }

[[noreturn]] void throw_in_use(std::uintptr_t address, ByteCount length) {
    std::string text = "address range " + range_text(address, address + length) + " is taken by ";
    if (const auto other = mapping_in(address, length))
        text += (other->name.empty() ? "an anonymous mapping" : other->name) + " at " + range_text(other->begin, other->end);
    else
        text += "a mapping that has vanished meanwhile";
    throw Error(errc::address_in_use, text + "; unmap it or use another address");
}

/// A call on memory that is ours failed: the system ran out of something, or forbids it.
[[noreturn]] void throw_refused(const char* call, ByteCount length) {
    const int error = errno;
    if (error == ENOMEM || error == EAGAIN) throw HeapFull(length, 0, HeapFull::Cause::address_space);
    throw Error(errc::permission, std::string(call) + " refused: " + std::strerror(error));
}

/// A hint: never fails.
void leave_out_of_dumps(void* address, ByteCount length) noexcept {
    const int before = errno;
    ::madvise(address, length, MADV_DONTDUMP);
    errno = before;
}

std::string read_maps() {
    // Not /proc/self: that is the main thread, which may have ended before the others.
    const Descriptor maps{::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC)};
    if (!maps.is_open()) {
        const int error = errno;
        throw Error(error == EMFILE || error == ENFILE ? errc::too_many_files : errc::io_error, "/proc/thread-self/maps",
                    std::string("can't be opened: ") + std::strerror(error));
    }
    std::string text;
    std::size_t used = 0;
    for (;;) {
        text.resize(std::max<std::size_t>(2 * used, 64_KiB));
        const ssize_t got = ::read(maps.get(), text.data() + used, text.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int error = errno;
            throw Error(errc::io_error, "/proc/thread-self/maps", std::string("can't be read: ") + std::strerror(error));
        }
        if (got == 0) break;
        used += static_cast<std::size_t>(got);
    }
    text.resize(used);
    return text;
}

/// "begin-end perms offset device inode   name"
std::optional<Mapping> parse_line(std::string_view line) {
    Mapping mapping{};
    const char* const last = line.data() + line.size();
    const auto begin = std::from_chars(line.data(), last, mapping.begin, 16);
    if (begin.ec != std::errc{} || begin.ptr == last || *begin.ptr != '-') return std::nullopt;
    const auto end = std::from_chars(begin.ptr + 1, last, mapping.end, 16);
    if (end.ec != std::errc{}) return std::nullopt;
    std::string_view rest(end.ptr, static_cast<std::size_t>(last - end.ptr));
    mapping.is_readable = rest.starts_with(" r");
    for (int field = 0; field < 4; ++field) {
        rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
        rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    }
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    mapping.name = rest;
    return mapping;
}

}  // namespace

Reservation::Reservation(std::uintptr_t address, ByteCount length) {
    TAIYEN_CHECK(is_page_multiple(address) && is_page_multiple(length) && length > 0);
    if (address > UINTPTR_MAX - length)
        throw Error(errc::out_of_address_space, "address range at " + hex(address) + " runs past the end of the address space");
    if (const Zone zone = default_zone(); thread_sanitizer && (address < zone.first || address + length > zone.last)) {
        // Its run time would end the process.
        throw Error(errc::out_of_address_space, "the thread sanitizer has no room at " + range_text(address, address + length) +
                                                    "; use addresses in " + range_text(zone.first, zone.last));
    }
    void* const got = ::mmap(pointer(address), length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) {
        const int error = errno;
        if (error == EEXIST) throw_in_use(address, length);
        const char* const remedy =
            error == EAGAIN ? "; the process locks all its memory (mlockall): raise its limit of locked memory, or open the heap before locking"
                            : "; use another address or a smaller capacity, or raise the process's limit of address space";
        throw Error(errc::out_of_address_space,
                    "address range " + range_text(address, address + length) + " can't be reserved: " + std::strerror(error) + remedy);
    }
    if (got != pointer(address)) {
        ::munmap(got, length);
        throw_in_use(address, length);
    }
    leave_out_of_dumps(got, length);
    address_ = address;
    length_ = length;
}

void Reservation::extend(ByteCount length) {
    TAIYEN_CHECK(length_ != 0 && length >= length_);
    if (length != length_) {
        Reservation more(address_ + length_, length - length_);
        more.leak();
        length_ = length;
    }
}

Reservation Reservation::anywhere(ByteCount length) {
    TAIYEN_CHECK(is_page_multiple(length) && length > 0);
    void* const got = ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) throw HeapFull(length, 0, HeapFull::Cause::address_space);
    leave_out_of_dumps(got, length);
    Reservation reservation;
    reservation.address_ = reinterpret_cast<std::uintptr_t>(got);
    reservation.length_ = length;
    return reservation;
}

Reservation::Reservation(Reservation&& other) noexcept : address_(std::exchange(other.address_, 0)), length_(std::exchange(other.length_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
    Reservation old(std::move(other));
    std::swap(address_, old.address_);
    std::swap(length_, old.length_);
    return *this;
}

Reservation::~Reservation() {
    if (length_ != 0) ::munmap(pointer(address_), length_);
}

std::vector<Mapping> mappings() {
    const std::string text = read_maps();
    std::vector<Mapping> found;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (auto mapping = parse_line(std::string_view(text).substr(at, end - at))) found.push_back(std::move(*mapping));
        at = end + 1;
    }
    return found;
}

std::optional<Mapping> mapping_in(std::uintptr_t address, ByteCount length) {
    for (Mapping& mapping : mappings())
        if (mapping.end > address && mapping.begin - std::min(address, mapping.begin) < length) return std::move(mapping);
    return std::nullopt;
}

std::optional<std::uintptr_t> find_free(ByteCount length, ByteCount alignment, Placement placement, std::uintptr_t first, std::uintptr_t last) {
    TAIYEN_CHECK(length > 0 && alignment >= page_bytes && (alignment & (alignment - 1)) == 0);
    std::optional<std::uintptr_t> best;
    // Looks into one gap; true: the search is over.
    const auto consider = [&](std::uintptr_t begin, std::uintptr_t end) {
        begin = std::max(begin, first);
        end = std::min(end, last);
        if (begin >= end || begin > UINTPTR_MAX - alignment) return false;
        const std::uintptr_t lowest = round_up(begin, alignment);
        if (lowest >= end || end - lowest < length) return false;
        best = placement == Placement::low ? lowest : round_down(end - length, alignment);
        return placement == Placement::low;
    };
    std::uintptr_t behind = 0;  // end of the mappings seen so far
    for (const Mapping& mapping : mappings()) {
        if (mapping.begin > behind && consider(behind, mapping.begin)) return best;
        behind = std::max(behind, mapping.end);
    }
    consider(behind, UINTPTR_MAX);
    return best;
}

namespace {

constexpr Zone thread_sanitizer_zone{0x5500'0000'0000, 0x5600'0000'0000};

}  // namespace

// Below 0x1100_0000_0000 the address sanitizer has its shadow memory.
Zone default_zone() { return thread_sanitizer ? thread_sanitizer_zone : Zone{0x1100'0000'0000, 0x1c00'0000'0000}; }
Zone volatile_zone() { return thread_sanitizer ? thread_sanitizer_zone : Zone{0x1c00'0000'0000, 0x2000'0000'0000}; }
Zone spare_zone() { return thread_sanitizer ? thread_sanitizer_zone : Zone{0x2000'0000'0000, 0x5000'0000'0000}; }

void protect(void* address, ByteCount length, bool writable) {
    if (::mprotect(address, length, writable ? PROT_READ | PROT_WRITE : PROT_READ) != 0) throw_refused("mprotect(2)", length);
}

bool try_protect(void* address, ByteCount length, bool writable) noexcept {
    const int before = errno;
    const bool done = ::mprotect(address, length, writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
    errno = before;
    return done;
}

bool try_copy(const void* from, void* to, ByteCount length) noexcept {
    const int before = errno;
    const iovec source{const_cast<void*>(from), length};
    const iovec target{to, length};
    const bool done = ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == static_cast<ssize_t>(length);
    errno = before;
    return done;
}

void hide(void* address, ByteCount length) {
    if (::mprotect(address, length, PROT_NONE) != 0) throw_refused("mprotect(2)", length);
}

void make_usable(void* address, ByteCount length) {
    protect(address, length, true);
    const int before = errno;
    ::madvise(address, length, MADV_DODUMP);
    errno = before;
}

void map_anonymous(void* address, ByteCount length) {
    if (::mmap(address, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        throw_refused("mmap(2)", length);
}

bool move_mapping(void* from, void* to, ByteCount length) noexcept {
    const int before = errno;
    const bool done = ::mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) != MAP_FAILED;
    errno = before;
    return done;
}

void replace_mapping(void* from, void* to, ByteCount length) {
    if (::mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) throw_refused("mremap(2)", length);
}

void unmap_to_reservation(void* address, ByteCount length) {
    if (::mmap(address, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        throw_refused("mmap(2)", length);
    leave_out_of_dumps(address, length);
}

std::uint64_t mappings_max() noexcept {
    constexpr std::uint64_t usual = 65530;
    const Descriptor limit{::open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC)};
    char digits[32];
    const ssize_t got = !limit.is_open() ? -1 : ::read(limit.get(), digits, sizeof digits);
    std::uint64_t value = 0;
    if (got <= 0 || std::from_chars(digits, digits + got, value).ec != std::errc{}) return usual;
    return value;
}

void drop(void* address, ByteCount length) {
    if (::madvise(address, length, MADV_DONTNEED) == 0) return;
    // Locked pages (the program called mlockall(2) after the heap was mapped) can't be dropped.
    if (errno == EINVAL && ::munlock(address, length) == 0 && ::madvise(address, length, MADV_DONTNEED) == 0) return;
    const int error = errno;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    throw Error(errc::io_error, "madvise(MADV_DONTNEED) of " + range_text(begin, begin + length) + " failed: " + std::strerror(error));
}

void set_readahead(void* address, ByteCount length, bool wanted) noexcept {
    const int before = errno;
    ::madvise(address, length, wanted ? MADV_NORMAL : MADV_RANDOM);
    errno = before;
}

void will_read(void* address, ByteCount length) noexcept {
    constexpr ByteCount piece = 128_KiB;  // the system cuts what is asked for at once to what it reads ahead
    const int before = errno;
    for (ByteCount at = 0; at < length; at += piece) ::madvise(static_cast<std::byte*>(address) + at, std::min(piece, length - at), MADV_WILLNEED);
    errno = before;
}

void populate(void* address, ByteCount length) noexcept {
    const int before = errno;
    ::madvise(address, length, MADV_POPULATE_WRITE);
    errno = before;
}

void prefer_huge_pages(void* address, ByteCount length) noexcept {
    const int before = errno;
    ::madvise(address, length, MADV_HUGEPAGE);
    errno = before;
}

namespace {

/// Address space at a multiple of 2 MiB.
std::byte* reserve_large(ByteCount length) noexcept {
    if (length > SIZE_MAX - large_step) return nullptr;
    void* const got = ::mmap(nullptr, length + large_step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return nullptr;
    const auto first = reinterpret_cast<std::uintptr_t>(got);
    const std::uintptr_t begin = round_up(first, large_step);
    if (begin != first) ::munmap(got, begin - first);
    ::munmap(pointer(begin + length), first + large_step - begin);
    return static_cast<std::byte*>(pointer(begin));
}

}  // namespace

std::byte* map_large(ByteCount length) noexcept {
    TAIYEN_CHECK(length != 0 && length % large_step == 0);
    std::byte* const memory = reserve_large(length);
    if (memory == nullptr) return nullptr;
    if (::mprotect(memory, length, PROT_READ | PROT_WRITE) != 0) {
        ::munmap(memory, length);
        return nullptr;
    }
    return memory;
}

std::byte* grow_large(std::byte* memory, ByteCount length, ByteCount grown) noexcept {
    TAIYEN_CHECK(grown >= length && grown % large_step == 0);
    if (::mremap(memory, length, grown, 0) != MAP_FAILED) return memory;
    std::byte* const target = reserve_large(grown);
    if (target == nullptr) return nullptr;
    if (::mremap(memory, length, grown, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
        ::munmap(target, grown);
        return nullptr;
    }
    return target;
}

void unmap_large(std::byte* memory, ByteCount length) noexcept { ::munmap(memory, length); }

void prepare_heap_mapping(void* address, ByteCount length) {
    if (::munlock(address, length) != 0) throw_refused("munlock(2)", length);
    if (::madvise(address, length, MADV_DONTFORK) != 0) throw_refused("madvise(MADV_DONTFORK)", length);
}

}  // namespace taiyen::vm
