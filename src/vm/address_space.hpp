#pragma once
/// Address space: reserving it, finding free ranges, saying who has a range.
///
/// (I1) A reservation never covers somebody else's mapping: MAP_FIXED_NOREPLACE, and the returned address is checked (kernels before 4.17
///      ignore the flag silently).
/// (I2) Reserved memory is PROT_NONE, MAP_NORESERVE: it costs address space only. Core dumps leave it out (MADV_DONTDUMP), since some tools write terabytes of zeros else; what is mapped over it is in them.
/// Thread rule: safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/units.hpp>

namespace taiyen::vm {

/// A range of address space that is ours; the destructor unmaps it with everything that was mapped over it.
class Reservation {
public:
    Reservation() = default;
    /// Throws: Error{address_in_use}, whose text names the mapping in the way and its range, or Error{out_of_address_space}.
    /// `address` and `length` are multiples of 4 KiB.
    Reservation(std::uintptr_t address, ByteCount length);
    /// Wherever the system has room. Throws: HeapFull{address_space}.
    static Reservation anywhere(ByteCount length);
    Reservation(Reservation&&) noexcept;
    Reservation& operator=(Reservation&&) noexcept;
    ~Reservation();

    /// Makes it longer where it is. Throws: as the constructor; then nothing changed.
    void extend(ByteCount length);

    std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
    std::uintptr_t address() const { return address_; }
    ByteCount size() const { return length_; }
    explicit operator bool() const { return length_ != 0; }
    /// Gives the range up without unmapping it (it stays mapped until the process ends).
    void leak() noexcept { length_ = 0; }

private:
    std::uintptr_t address_ = 0;
    ByteCount length_ = 0;
};

/// One line of /proc/self/maps.
struct Mapping {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool is_readable;
    std::string name;  ///< the file, "[stack]", …; empty: anonymous
};
std::vector<Mapping> mappings();
/// The first mapping that overlaps the range.
std::optional<Mapping> mapping_in(std::uintptr_t address, ByteCount length);

enum class Placement { low, high };
/// A free range of `length` bytes, aligned, inside [first, last): the lowest or the highest one. A hint: reserve it to be sure.
std::optional<std::uintptr_t> find_free(ByteCount length, ByteCount alignment, Placement placement, std::uintptr_t first, std::uintptr_t last);

/// Where the addresses of programs end, x86-64 with four levels of page tables.
inline constexpr std::uintptr_t address_end = std::uintptr_t{1} << 47U;

/// A range of addresses: [first, last).
struct Zone {
    std::uintptr_t first;
    std::uintptr_t last;
};
/// Where heap files go by default: no sanitizer needs it, and the upper two bytes of an address there are no text, no number below 2^32, no recent time and no floating number of usual size.
/// Under the thread sanitizer the little that it leaves.
Zone default_zone();
/// Where volatile heaps go: the same kind of addresses, so that they are in no file's way.
Zone volatile_zone();
/// Where they go when that is used up.
Zone spare_zone();

/// mprotect(2). Throws: HeapFull{address_space} if the system refuses memory for it.
void protect(void* address, ByteCount length, bool writable);
/// The same for signal handlers and destructors: false instead of an exception, errno untouched.
bool try_protect(void* address, ByteCount length, bool writable) noexcept;
/// PROT_NONE over what is mapped there; its pages stay. Throws: HeapFull{address_space}.
void hide(void* address, ByteCount length);
/// Reserved memory becomes zero pages, readable and writable, where it is: no new mapping. Throws: HeapFull{address_space}; then nothing changed.
void make_usable(void* address, ByteCount length);
/// Private anonymous zero pages over a reserved range (MAP_NORESERVE), readable and writable. Throws: HeapFull{address_space}.
void map_anonymous(void* address, ByteCount length);
/// Moves private anonymous pages of one mapping to another place of ours by their page tables; what lay there is gone. The source stays mapped and is empty afterwards.
/// False: nothing was moved (they belong to several mappings, the system is too old, or has no room for another mapping).
bool move_mapping(void* from, void* to, ByteCount length) noexcept;
/// A mapping of ours takes the place of another one in one step; where it lay nothing is mapped then. Throws: HeapFull{address_space}; then nothing was moved.
void replace_mapping(void* from, void* to, ByteCount length);
/// Back to PROT_NONE, giving the memory up.
void unmap_to_reservation(void* address, ByteCount length);
/// How many mappings a process may have (vm.max_map_count). Never throws: the usual number where the system doesn't tell.
std::uint64_t mappings_max() noexcept;
/// Copies memory that others may be storing to, and that may not be readable: then false, where a load would fault.
[[nodiscard]] bool try_copy(const void* from, void* to, ByteCount length) noexcept;
/// MADV_DONTNEED: private copies are dropped; the next touch reads what the mapping's file holds. Throws: Error{io_error}.
void drop(void* address, ByteCount length);
/// Whether touching a page of a file mapping fetches its neighbours from the device, too (MADV_NORMAL), or that page alone (MADV_RANDOM). A hint: never fails.
void set_readahead(void* address, ByteCount length, bool wanted) noexcept;
/// The device may begin to read these pages of a file mapping (MADV_WILLNEED). A hint: never fails.
void will_read(void* address, ByteCount length) noexcept;
/// Brings fresh pages of anonymous memory in at once instead of by a page fault each (Linux 5.14). A hint: never fails; for signal handlers, too.
void populate(void* address, ByteCount length) noexcept;
/// Anonymous memory of that range may come in huge pages, where the system has them. A hint: never fails; the range begins at a page.
void prefer_huge_pages(void* address, ByteCount length) noexcept;
inline constexpr ByteCount large_step = 2_MiB;  ///< a huge page
/// Fresh private anonymous memory at a multiple of 2 MiB, so that it moves by few entries of page tables. Null: none is to be had. `length`: a multiple of 2 MiB.
std::byte* map_large(ByteCount length) noexcept;
/// Makes such memory longer, where it is or elsewhere, by its page tables; what is added is zero. Null: none is to be had, and nothing changed.
std::byte* grow_large(std::byte* memory, ByteCount length, ByteCount grown) noexcept;
void unmap_large(std::byte* memory, ByteCount length) noexcept;
/// munlock + MADV_DONTFORK: what a fresh heap mapping needs (a child must not see it; nothing of it is locked in memory).
void prepare_heap_mapping(void* address, ByteCount length);

}  // namespace taiyen::vm
