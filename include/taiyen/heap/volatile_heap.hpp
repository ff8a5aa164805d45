#pragma once
/// VolatileHeap: a private heap in one contiguous range of addresses, as many of them as a program likes.
///
/// Any thread may allocate, and free what another thread allocated. Threads own segments of 64 KiB, so small blocks of different threads share no cache line and need no lock.
/// Containers: `taiyen::vector<int> v(heap)`, `heap.allocator<T>()`, or std::pmr through taiyen::memory_resource. Guide: doc/volatile_heap.md.
/// Thread rule: safe, but for closing, moving and destroying, which no other call may overlap.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/base/page_size.hpp>
#include <taiyen/base/placement.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/heap/live_blocks.hpp>

namespace taiyen {

namespace heap {
class HeapCore;
class VolatileCore;
}  // namespace heap

/// What a volatile heap is made with.
struct VolatileOptions {
    std::size_t capacity = std::size_t{64} << 30U;  ///< bytes of address space; minimum 256 KiB, rounded up to 4 KiB
    std::uintptr_t address = 0;                     ///< where it begins, a multiple of 2 GiB from 4 GiB on; 0: somewhere
    Placement placement = Placement::automatic;     ///< without an address
    std::string name{};                             ///< what messages call the heap
    PageSize pages = PageSize::automatic;           ///< automatic: huge pages under small blocks once there are some MiB of them
    int numa_node = -1;                             ///< memory comes from that node; -1: from wherever the system likes

    /// For finding errors: canaries around each block, freed memory poisoned and kept back for a while. Each call takes a lock; blocks need 32 bytes more, and a record.
    bool guarded = false;
    bool record_places = false;    ///< guarded: reports say where a block was allocated and freed
    bool abort_on_damage = false;  ///< guarded: after the report
    bool report_leaks = false;     ///< at close, what is still live and no root leads to (leaked_blocks) goes to the report handler
    std::size_t quarantine_bytes = std::size_t{16} << 20U;  ///< guarded: so much freed memory waits
    /// Under Valgrind, or with the address sanitizer in the program, the heap is guarded whatever is said above, and tells them of each block. Else it costs nothing.
    bool tell_memory_tools = true;
};

/// Figures about a volatile heap. Exact while no other thread is in the heap, else a picture that may be blurred.
struct VolatileStats {
    std::size_t capacity_bytes = 0;
    std::size_t extent_bytes = 0;  ///< of the span in use
    std::size_t live_bytes = 0;    ///< usable bytes of live blocks
    std::uint64_t live_blocks = 0;
    std::size_t free_bytes = 0;          ///< free user bytes within the extent
    std::size_t dirty_bytes = 0;         ///< resident: live and freed, metadata included
    std::size_t reserved_bytes = 0;      ///< address space, metadata included
    std::size_t metadata_bytes = 0;      ///< resident bytes of it outside the span, and the engine's within
    std::size_t huge_bytes = 0;          ///< resident in huge pages
    std::size_t mappings = 0;            ///< of the process that lie in the heap
    std::size_t largest_free_bytes = 0;  ///< largest block that fits without growth of the extent
    std::size_t threads = 0;             ///< that hold segments
    std::size_t idle_threads = 0;        ///< records whose threads have ended

    /// Free pieces by size: [i] counts those of 2^i to 2^(i+1) − 1 granules of 16 bytes.
    std::array<std::uint64_t, 40> free_pieces{};
    /// Blocks of these sizes that the free pieces could hold, each piece taken alone, and all together as if they were one.
    static constexpr std::array<std::size_t, 8> sizes{16, 48, 256, 1024, 4096, 16384, 65536, 1048576};
    std::array<std::uint64_t, 8> fitting{};
    /// Availability for blocks of `sizes[i]`: Σ⌊Fᵢ/s⌋ ÷ ⌊ΣFᵢ/s⌋; 1 where nothing is free.
    double availability(std::size_t i) const noexcept {
        const std::uint64_t whole = free_bytes / sizes[i];
        return whole == 0 ? 1.0 : static_cast<double>(fitting[i]) / static_cast<double>(whole);
    }
    /// Live bytes ÷ dirty bytes, with sizes as they were rounded up. A program that knows what it asked for divides that by `dirty_bytes`.
    double page_efficiency() const noexcept { return dirty_bytes == 0 ? 1.0 : static_cast<double>(live_bytes) / static_cast<double>(dirty_bytes); }
};

class TAIYEN_EXPORT VolatileHeap {
public:
    /// Throws: HeapFull{address_space}, Error{invalid_argument | address_in_use | out_of_address_space}.
    explicit VolatileHeap(const VolatileOptions& options = {});
    VolatileHeap(VolatileHeap&&) noexcept;
    VolatileHeap& operator=(VolatileHeap&&) noexcept;
    VolatileHeap(const VolatileHeap&) = delete;
    VolatileHeap& operator=(const VolatileHeap&) = delete;
    /// Gives all memory back, live blocks too: nothing in them is destroyed.
    ~VolatileHeap();

    /// A block of at least `bytes` (0 counts as 1), aligned to `alignment` (a power of two ≤ 2 MiB; less counts as 16). Throws: HeapFull, Error{invalid_argument | closed}.
    /// Unasked, small blocks touch no more cache lines than their size needs, and blocks of 4 KiB and more begin at a page.
    void* allocate(std::size_t bytes, std::size_t alignment = 16);
    /// The same; null where `allocate` throws.
    void* try_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
    /// By any thread. Null: nothing happens. A bad pointer (freed twice, interior, foreign) is reported and changes nothing.
    void deallocate(void* block) noexcept;
    /// Dynamic block: may move, keeps content. Null: allocates. Throws: HeapFull (the old block stays as it was), Error{double_free | foreign_pointer} for a bad pointer.
    void* resize(void* block, std::size_t bytes);
    /// Usable bytes of the live block that starts at the address, 0 if none does.
    std::size_t usable_size(const void* block) const noexcept;
    /// Whether the address lies in the heap's span.
    bool owns(const void* address) const noexcept;

    // Objects; defined in taiyen/stl/named.hpp. Names are a register for few objects: each call takes the heap's lock, and two threads that construct the same name at
    // once get one errc::name_taken.
    /// For a container in this heap. Throws: Error{closed}.
    template <class T>
    persistent_allocator<T> allocator();
    /// Makes an object under a name of 1 to 1,024 bytes; containers in it lie in this heap. Throws: Error{name_taken | invalid_argument}, Error{type_mismatch}: in an object of the type fields lie in other places, HeapFull, what the constructor throws: nothing changed. Complexity: O(1).
    template <class T, class... A>
    T& construct(std::string_view name, A&&... arguments);
    /// The object of that name; if there is none, as construct. Throws: also Error{type_mismatch}, as find.
    template <class T, class... A>
    T& find_or_construct(std::string_view name, A&&... arguments);
    /// Null: there is no such object. Throws: Error{type_mismatch} if it was constructed as another type, if something inside it had another layout then, or if a container finds its keys no more.
    template <class T>
    T* find(std::string_view name);
    /// Takes the layout of what lies inside, and the keys, for what the program says they are: after a rebuild that changed nothing that matters.
    template <class T>
    T* find(std::string_view name, accept_layout_t);
    /// The same, to look at.
    template <class T>
    const T* find(std::string_view name) const;
    /// Destroys the object and frees its name and memory. False: there is none. Throws: Error{type_mismatch}, as find; nothing changed.
    template <class T>
    bool destroy(std::string_view name);
    /// Makes an object without a name; who refers to it keeps it: what nothing leads to is a leak (taiyen/inspect/leaks.hpp). Throws: HeapFull, what the constructor throws: nothing changed. Complexity: O(1).
    template <class T, class... A>
    T* make(A&&... arguments);
    /// Destroys such an object and frees its memory. Null: nothing happens.
    template <class T>
    void destroy_object(T* object);

    /// Complexity: linear in the extent, and a system call for each MiB of it.
    VolatileStats stats() const;
    /// What is live now, or leaked, if all should have been freed. Requires: no other thread is in the heap; what others freed lately may still count in a heap without guards.
    LiveBlocks live_blocks(std::size_t listed_max = 100) const;
    /// The live blocks that can't be reached: neither a root region nor a named object leads to them, through however many blocks. `count`, `bytes` and `by_size` are of all of them; listed is one for each
    /// lost structure, with what it leads to. Conservative: each aligned word that could be an address within a block counts as one, so a leak may be missed, and none is told that a root leads to.
    /// Requires: as for live_blocks. Complexity: O(n log n) for n live bytes.
    LiveBlocks leaked_blocks(std::size_t listed_max = 100) const;
    /// Bytes outside the heap's blocks where they are referred to, a variable or an array: a root region of leaked_blocks() and of the report at close. It must stay readable until it is removed
    /// or the heap is closed. The same beginning once more: with the new length. Throws: std::bad_alloc.
    void add_leak_root(const void* begin, std::size_t bytes);
    void remove_leak_root(const void* begin) noexcept;
    /// Looks at the canaries and the poison of all blocks of a guarded heap; reports what was damaged since the last look, and returns how many blocks.
    std::size_t check_guards() const noexcept;
    /// Gives the memory of free pages back to the system now instead of when it has decayed: this thread's, and those of threads that have ended.
    void trim() noexcept;
    bool is_open() const noexcept { return core_ != nullptr; }
    /// As the destructor does.
    void close() noexcept;
    /// The heap's name, if it was given one: there is no file.
    const std::filesystem::path& path() const noexcept;

    /// The compiled side; null after close().
    heap::HeapCore* core() const noexcept;

private:
    friend class heap::VolatileCore;
    explicit VolatileHeap(std::unique_ptr<heap::VolatileCore> core) noexcept;

    std::unique_ptr<heap::VolatileCore> core_;
};

}  // namespace taiyen
