#pragma once
/// Options of heaps, tags of opening, kinds.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include <taiyen/base/capture.hpp>
#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/placement.hpp>
#include <taiyen/heap/foreign_pointers.hpp>

namespace taiyen {

/// Type of `create_only`: there must be no heap yet.
struct create_only_t {
    explicit create_only_t() = default;
};
/// Type of `open_only`: there must be a heap.
struct open_only_t {
    explicit open_only_t() = default;
};
/// Type of `open_or_create`: the heap that is there, else a new one.
struct open_or_create_t {
    explicit open_or_create_t() = default;
};
/// Type of `open_read_only`: nothing at all is written.
struct open_read_only_t {
    explicit open_read_only_t() = default;
};
inline constexpr create_only_t create_only{};
inline constexpr open_only_t open_only{};
inline constexpr open_or_create_t open_or_create{};
inline constexpr open_read_only_t open_read_only{};

/// How written pages are found (taiyen stats prints the one in use); `automatic` takes the fastest that the kernel has.
enum class PageTrackerChoice { automatic, scan, pagemap };

/// The kinds of heaps.
enum class HeapKind { volatile_heap, archive, snapshot, transactional };
TAIYEN_EXPORT std::string_view name_of(HeapKind kind) noexcept;

/// When pages are compared with their checksums, beyond those that opening reads anyway (headers, the first page, what a journal or log brings). Whichever it is: what is about to be saved is proven, metadata is
/// before blocks are taken or freed by it, and what an UndoScope or a Transaction changes is before its first change. A page that is damaged comes from the second copy where there is one.
enum class Verify {
    automatic,  ///< at opening for writing where that takes a millisecond at most (there is a second copy, and 4 MiB in use or less); what nobody has whole is told when it is used. Otherwise as `changes`
    changes,  ///< what is only read isn't proven. A page that rotted and is changed outside of scopes and transactions may end the heap at its next save (Error{corrupt}): what was stored can't be told from the rot
    at_opening,  ///< all of it: the constructor reads the whole heap, and throws Error{corrupt} if a page can't be had. What rots later, in pages that memory doesn't hold, is found as by `changes`
    /// Each page before the program sees it: its first access faults, and goes on when the page and its neighbours (64 KiB) are proven. A page that nobody has whole stays out of reach: the report handler is told
    /// (errc::corrupt, the file and the byte), then the access is a real SIGSEGV. Needs the process's SIGSEGV handler, in every thread that touches the heap. A system call doesn't fault: write(2) from a
    /// part that nobody has touched fails with EFAULT; load a byte of each 64 KiB first. Complexity: a fault and the checksums of 64 KiB, once for each
    at_first_touch
};

/// How pages that memory doesn't hold come in from the file as the program touches them.
enum class ReadAhead {
    automatic,  ///< `random` where the heap takes more than half of the memory that the process may have, else `normal`; looked at again as the heap grows, and after saves that bring the files up to date
    normal,  ///< with their neighbours, as many as the system reads ahead of a file: megabytes on some machines. Best where memory holds the heap in the end, and for passes over large arrays
    random   ///< one by one: best where other pages have to leave for them. What takes one pass over all of a large heap says `normal` instead
};

/// Options matter at creation; at reopening what the file says wins (capacity, address, log capacity), and the paths say where attached files lie. One that was given, and differs from what an opening for writing
/// finds, goes to the report handler (errc::invalid_argument), with what would change it.
struct PersistentOptions {
    std::size_t capacity =
        0;  ///< bytes up to which the heap may grow; minimum 256 KiB, rounded up to 4 KiB; 0: 64 GiB. Addresses are taken as it grows
    std::uintptr_t address = 0;                  ///< where to map, a multiple of 2 GiB; 0: as `placement` says
    Placement placement = Placement::automatic;  ///< at creation, without an address
    /// At creation: the heap may be mapped anywhere. It is opened where it was made if nothing lies there, else wherever there is room, so copies of it can be open at once; it takes types without
    /// raw pointers only (`taiyen::offset::map`, …; `position_independent<T>`).
    bool position_independent = false;
    std::filesystem::path data_file{};  ///< empty: `x.tyn.data` beside `x.tyn`
    /// At opening: a data file that is gone is no error (mismatch), the heap goes on without it. Reads the whole heap to prove that it needs no second copy. One that is there is an error: already_exists.
    /// Durability: the heap knows of no data file any more when opening for writing returns; a SnapshotHeap makes a new one.
    bool detach_data_file = false;
    std::filesystem::path log_file{};  ///< empty: `x.tyn.log` (transactional heaps) beside it
    std::size_t log_capacity = 0;      ///< bytes, rounded up to 4 KiB, at least 64 KiB; of a log that exists what the file says wins; 0: 64 MiB
    /// Durability::async: what is lost was committed within one such window. A commit waits while one that is older by as much isn't durable, because the device is slow.
    std::chrono::microseconds loss_window{10'000};
    // When a transactional heap brings its files up to date in the background: whichever comes first.
    double snapshot_log_fill = 0.5;                  ///< so full the log is then, as a fraction of its capacity
    std::chrono::milliseconds snapshot_interval{0};  ///< so long after the last time, if anything was committed since; 0: never for that reason
    std::size_t snapshot_dirty_bytes = 0;            ///< this many bytes of pages were changed since the last time; 0: chosen from `dirty_limit`
    /// Unsaved bytes before HeapFull (a transactional heap saves in the background instead, and gives saved pages back); 0: half of memory, or of the least limit of its cgroup (v1, v2) and those above.
    std::size_t dirty_limit = 0;
    Capture capture = Capture::pages;
    Durability durability = Durability::sync;
    Audit audit = Audit::off;
    PageTrackerChoice tracker = PageTrackerChoice::automatic;
    ReadAhead read_ahead = ReadAhead::automatic;                 ///< of each opening; taiyen stats prints the one in use
    Verify verify = Verify::automatic;                           ///< of each opening
    ForeignPointers foreign_pointers = ForeignPointers::refuse;  ///< of each opening: what saves, commits and the making of objects do about them
    /// Of each opening, for finding errors: canaries behind each block that is allocated, looked at when it is freed, by saves of a heap without transactions, by check_guards() and at close. Blocks take 16 bytes
    /// more, and a record in the program's memory; the heap can be opened without.
    bool guarded = false;
    ProgramPointers program_pointers = ProgramPointers::linked;  ///< of each opening: which saves and commits are searched for these, too
};

}  // namespace taiyen
