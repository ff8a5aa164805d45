#pragma once
/// ArchiveHeap: a heap that is a file.
///
/// Containers are allocated in it and found again by name; `snapshot()` saves them: when it returns, what it saved survives power cuts, and a crash at any
/// moment leaves either the old or the new snapshot, whole. `close()` and destructors never save. Format and protocol: src/store/FORMAT.md.
/// Thread rule: external lock; concurrent reads are fine. Copying a container out of the heap is a read: it needs the lock where another thread allocates or stores meanwhile. No stores by
/// other threads during `snapshot()`.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/restoration.hpp>

namespace taiyen {

namespace store {
class HeapFile;  ///< the compiled engine behind the persistent heaps
}
struct Report;     ///< taiyen/inspect/report.hpp
struct HeapStats;  ///< taiyen/inspect/stats.hpp

/// A run of pages that were written since the last save: byte offset within the heap and length, multiples of 4 KiB.
struct WrittenRange {
    std::uint64_t offset;
    std::size_t bytes;
};

class TAIYEN_EXPORT ArchiveHeap {
public:
    /// Creates `path` (mode 0600) with an empty heap. Durability: the empty heap is durable on return.
    /// Throws: Error{already_exists | mismatch (a foreign data file stands there) | permission | no_space | address_in_use | …}; nothing half-made is left behind.
    ArchiveHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    /// Opens an existing heap of any kind, recovering it if its last user crashed.
    /// Throws: Error{not_found | not_a_heap | busy | corrupt | truncated | address_in_use | …}; a file that is refused for what it is
    /// (not a heap, another version, damaged header, foreign or missing companion, busy, taken address) is left untouched.
    /// A heap whose own file is missing, empty, zeroed or cut short comes back from a whole data file: `restoration().backing_rebuilt`. Reads and writes the whole heap then.
    /// A heap that was closed and whose data file, at its default place, is lost gets another one: `restoration().data_rebuilt`. Otherwise one that is lost for good takes `detach_data_file`.
    ArchiveHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    /// A heap that its data file at the default place brings back is opened, not created.
    ArchiveHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    /// Opens for reading and writes nothing at all, not even repairs; several readers may do so at once.
    ArchiveHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    ArchiveHeap(ArchiveHeap&&) noexcept;
    ArchiveHeap& operator=(ArchiveHeap&&) noexcept;
    ArchiveHeap(const ArchiveHeap&) = delete;
    ArchiveHeap& operator=(const ArchiveHeap&) = delete;
    /// Closes without saving; what fails is reported to the report handler.
    ~ArchiveHeap();

    // Blocks.
    /// A block of at least `bytes` (0 counts as 1), aligned to `alignment` (a power of two up to 2 MiB; less counts as 16). Complexity: O(1) up to 2 KiB, else by free runs.
    /// Durability: with the next save, transaction or UndoScope. Throws: HeapFull, Error{invalid_argument | closed | read_only | poisoned | forked | no_transaction}: nothing changed.
    void* allocate(std::size_t bytes, std::size_t alignment = 16);
    /// Null: nothing happens. A bad pointer (freed twice, interior, foreign) is reported, and changes nothing. Durability: as allocate.
    void deallocate(void* block) noexcept;
    /// Dynamic block: may move, keeps content. Null: allocates. Durability: as allocate. Throws: HeapFull, Error{double_free | foreign_pointer} for a bad pointer: the old block stays.
    void* resize(void* block, std::size_t bytes);
    /// Usable bytes of the live block that starts at the address, 0 if none does.
    std::size_t usable_size(const void* block) const noexcept;
    /// Whether the address lies in the heap.
    bool owns(const void* address) const noexcept;

    // Objects; defined in taiyen/stl/named.hpp. Making one throws Error{foreign_pointer}, too: it points to the program's own memory.
    /// For a container in this heap. Throws: Error{closed}.
    template <class T>
    persistent_allocator<T> allocator();
    /// Makes an object under a name of 1 to 1,024 bytes; containers in it lie in this heap. Durability: with the next save, transaction or UndoScope. Throws: Error{name_taken | invalid_argument}, Error{type_mismatch}: in an object of the type fields lie in other places, HeapFull, what the constructor throws: nothing changed. Complexity: O(1).
    template <class T, class... A>
    T& construct(std::string_view name, A&&... arguments);
    /// The object of that name; if there is none, as construct. Throws: also Error{type_mismatch}, as find.
    template <class T, class... A>
    T& find_or_construct(std::string_view name, A&&... arguments);
    /// Null: there is no such object. Throws: Error{type_mismatch} if it was constructed as another type, if something inside it had another layout then, or if a container finds its keys no more.
    template <class T>
    T* find(std::string_view name);
    /// Takes the layout of what lies inside, and the keys, for what the program says they are: after a rebuild that changed nothing that matters.
    /// Durability: with the next save, transaction or UndoScope that changes something.
    template <class T>
    T* find(std::string_view name, accept_layout_t);
    /// The same, to look at.
    template <class T>
    const T* find(std::string_view name) const;
    /// Destroys the object and frees its name and memory. False: there is none. Durability: with the next save, transaction or UndoScope. Throws: Error{type_mismatch}, as find; nothing changed.
    template <class T>
    bool destroy(std::string_view name);
    /// Makes an object without a name; who refers to it keeps it: what nothing leads to is a leak (taiyen/inspect/leaks.hpp). Durability: with the next save, transaction or UndoScope. Throws: HeapFull, what the constructor throws: nothing changed. Complexity: O(1).
    template <class T, class... A>
    T* make(A&&... arguments);
    /// Destroys such an object and frees its memory. Null: nothing happens.
    template <class T>
    void destroy_object(T* object);

    // Saving.
    /// Saves everything. Durability: all of it on return. Throws: Error{foreign_pointer | io_error | no_space | poisoned | scope_open | read_only}.
    void snapshot();
    /// Reads every page of every copy from the device and restores damaged ones from the other copy; returns how many pages were restored.
    /// Durability: restored pages are synced. Throws: Error{corrupt} naming the first page that no copy has whole, after all others were restored (scrub(), taiyen/inspect/repair.hpp, lists them).
    /// Complexity: reads all files.
    std::uint64_t heal();
    /// Bytes of pages written since the last save (whole pages). Complexity: by resident pages, about 20 ns each; in a transactional heap the written ones are compared with the file's, about 1 µs each.
    std::size_t dirty_bytes() const;
    /// The written pages themselves.
    std::vector<WrittenRange> written_ranges() const;

    // The data file: a second copy of everything, from which damaged pages are healed, and the heap if its own file is lost.
    /// Makes one while the heap is in use, empty: `x.tyn.data` beside the heap. Elsewhere, options name it at the next opening (`data_file`). With progress: taiyen/inspect/up_to_date.hpp.
    /// Durability: on return; a crash before leaves the heap without. Thread rule: beside transactions safe; they wait at the end for what was saved meanwhile. Complexity: reads and writes the whole heap.
    /// Throws: Error{already_exists} (the heap has one), Error{mismatch | busy} (the name belongs to something else), Error{scope_open} (this thread has a transaction or a ReadLock),
    /// Error{no_space | corrupt | invalid_argument}: nothing changed.
    void attach_data_file(const std::filesystem::path& path = {});
    /// Heals the heap's own file, then goes on without the data file, which is removed. Durability: on return. Complexity: reads both files. A SnapshotHeap makes another one when it is opened next.
    /// Throws: Error{not_found} (it has none), Error{scope_open} (as above), Error{corrupt}: nothing changed. Also of a page that was damaged before it was changed: snapshot() restores it from the data file.
    void detach_data_file();
    bool has_data_file() const;

    // Looking.
    /// Looks behind all blocks that were allocated since the heap was opened `guarded`; what was written there goes to the report handler (errc::stray_write), once. Returns how many blocks.
    /// Requires: nobody changes the heap meanwhile. Throws: Error{closed | poisoned | …}. Complexity: linear in the number of those blocks.
    std::size_t check_guards() const;
    /// Proves everything, headers to histories; taiyen/inspect/report.hpp has levels, threads and progress. Changes nothing. Throws: Error{closed | io_error}. Complexity: reads all files. Defined in room inspect.
    Report verify() const;
    /// Sizes, counts, what is where (taiyen/inspect/stats.hpp). Throws: Error{closed}. Complexity: by the heap's metadata. Defined in room inspect.
    HeapStats stats() const;
    /// The kind it was opened as.
    HeapKind kind() const;
    /// What opening found and did, and what was healed since.
    Restoration restoration() const;
    const std::filesystem::path& path() const;
    bool is_open() const noexcept;
    /// Closes without saving. Throws: Error{still_in_use} if containers that were moved out of the heap still hold blocks of it (the files are closed all the same).
    void close();

    /// The compiled side; for the rooms above and for programs that call heap::… functions themselves. Null after close().
    heap::HeapCore* core() const noexcept;

protected:
    explicit ArchiveHeap(std::shared_ptr<store::HeapFile> file) noexcept;
    std::shared_ptr<store::HeapFile> file_;
    friend struct HeapAccess;  ///< src/store/heap_access.hpp: tests open heaps over other storages
};

}  // namespace taiyen
