#pragma once
/// The block engine: allocates blocks inside one contiguous span of bytes. It knows bytes only, no files.
///
/// (I1) All truth lies in the span: super block, roots, segment table, page states, lines. Everything else (bins, cursors, magazines) is a hint, checked at use,
///      rebuilt on demand (`forget`).
/// (I2) Nothing is ever written into a user's free page; a free never touches the user's page.
/// (I3) Every metadata write is announced to the `WriteObserver` before it happens.
/// (I4) A bad free (double, dangling, interior, foreign) is detected always, changes nothing and is told to the caller.
/// (I5) The bytes of the span do not depend on its address: the same span works mapped elsewhere (root objects are offsets).
/// (I6) Nothing is changed by metadata that the host has not proven (SpanHost::prove). Calls that only look believe what they see.
/// Format: FORMAT.md, `engine_layout.hpp`. Thread rule: external lock.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/units.hpp>
#include <taiyen/heap/detail/access.hpp>

namespace taiyen::heap {

/// What the engine needs from whoever owns the span.
class SpanHost {
public:
    virtual ~SpanHost() = default;
    /// What errors call the heap: its path or name; empty: none.
    virtual std::string_view name() const noexcept { return {}; }
    /// Makes [0, extent_bytes) of the span readable and writable. Fresh bytes are zero.
    /// Throws: HeapFull; then nothing changed. `extent_bytes` is a multiple of 4 KiB and only grows.
    virtual void extend(ByteCount extent_bytes) = 0;
    /// Available pages, so many bytes, are about to become part of blocks. Throws: HeapFull; then they stay available.
    virtual void about_to_use(ByteCount /*length*/) {}
    /// Whether bytes of the span may be other than what was stored there, until they are proven.
    virtual bool proves() const noexcept { return false; }
    /// Afterwards these bytes are what was stored there last. Throws: Error{corrupt | io_error}: they aren't, and nobody has them.
    virtual void prove(HeapOffset /*offset*/, ByteCount /*length*/) {}
    /// Whether pages may be moved by their mappings: never those of a file.
    virtual bool moves_pages() const { return false; }
    struct MovedBytes {
        ByteCount count = 0;
        bool source_is_empty = false;  ///< no memory lies there any more
    };
    /// Moves whole pages of the extent, as many as it can from the front; the rest is copied. Source and target don't overlap; the source's content is unspecified afterwards.
    /// `target_has_memory`: pages lie there that had better not get lost.
    virtual MovedBytes move_pages(HeapOffset /*from*/, HeapOffset /*to*/, ByteCount /*length*/, bool /*target_has_memory*/) noexcept { return {}; }
};

/// Is told about each write of the engine before it happens: metadata, and the target of a copy that `resize` makes. Must not throw.
class WriteObserver {
public:
    virtual ~WriteObserver() = default;
    virtual void about_to_write(HeapOffset offset, ByteCount length) = 0;
};

enum class FreeResult { freed, foreign, not_a_block /* interior or free memory: double or dangling */ };

struct Block {
    HeapOffset offset;
    ByteCount usable_bytes;
    Content content = Content::any;
};

/// A named object.
struct Root {
    std::string name;
    std::string fingerprint;  ///< type text, at most 4 KiB
    HeapOffset object;
    ByteCount bytes = 0;
    std::uint64_t count = 1;
};

/// A damage that `check` found; never repaired.
struct Damage {
    HeapOffset where;
    std::string what;
};

struct EngineStats {
    ByteCount capacity_bytes = 0;
    ByteCount extent_bytes = 0;  ///< of the span in use (what the file has to hold)
    ByteCount live_bytes = 0;    ///< usable bytes of live blocks
    ByteCount free_bytes = 0;    ///< free user bytes within the extent
    ByteCount metadata_bytes = 0;
    ByteCount largest_free_bytes = 0;  ///< largest block that could be allocated now, growth included
    std::uint64_t live_blocks = 0;
};

/// A run of free pages, page-aligned.
struct FreeRun {
    HeapOffset offset;
    ByteCount length;
};

/// What the user pages of the extent are, counted in bytes.
struct PageTotals {
    ByteCount used = 0;      ///< blocks lie there, or room for the growth of one
    ByteCount free = 0;      ///< and memory of the system, as far as is known
    ByteCount released = 0;  ///< free, without memory
};

class Engine {
public:
    static constexpr ByteCount capacity_min = 256 * 1024;
    /// Largest alignment `allocate` takes.
    static constexpr ByteCount alignment_max = 2 * 1024 * 1024;
    /// 2 GiB.
    static constexpr std::uint32_t zone_distance_pages = 1U << 19U;

    /// Formats an all-zero span: afterwards an empty heap of `capacity_bytes` (a multiple of 4 KiB, ≥ capacity_min) whose extent is as small as possible.
    static void format(std::byte* span, ByteCount capacity_bytes, SpanHost& host, WriteObserver* observer = nullptr);

    /// Attaches to a formatted span. Checks the super block only (constant time, touches its first pages only).
    /// `span` must be aligned like the largest alignment that blocks are to have, at least to a page.
    /// Throws: Error{corrupt | unsupported_version}: hostile bytes must not crash, hang, read outside or allocate without bound, here and in every call below.
    /// `read_only`: no store ever happens; changing calls throw Error{read_only}.
    /// `zone_distance`: pages from zone to zone (FORMAT.md), a power of two; other values are for tests.
    Engine(std::byte* span, ByteCount capacity_bytes, SpanHost& host, WriteObserver* observer = nullptr, bool read_only = false,
           std::uint32_t zone_distance = zone_distance_pages);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    /// A block of at least `bytes` (0 counts as 1), aligned to `alignment` (a power of two ≤ alignment_max). Fresh content is unspecified.
    /// With an alignment of 8 or less, blocks that 8-byte words hold and 16-byte granules would round up (24, 40, … 120 bytes) lie in packed pages; all others count it as 16.
    /// Unasked, blocks of 4 KiB and more begin at a page, and smaller ones touch no more cache lines than their size needs (of 48 bytes: as long as the quarter of each line that
    /// this leaves over is used by others).
    /// Throws: HeapFull, Error{invalid_argument | corrupt}. Complexity: constant up to 2 KiB; logarithmic in the heap's size, linear in the block's, above.
    /// Pointer-free blocks have pages of their own.
    void* allocate(ByteCount bytes, ByteCount alignment = 16, Content content = Content::any);
    /// Like `allocate` at exactly that address: true if [at, at+bytes) was free user space and now is a live block. For replay and clones. False also for a place that
    /// `allocate` never gives with that alignment: off a granule or slot, less than a page across a page's end, a page and more off a page. A replica passes the usable size,
    /// and 8 as the alignment if that is no multiple of 16. Throws: HeapFull (the extent could not grow).
    bool allocate_at(void* at, ByteCount bytes, ByteCount alignment = 16, Content content = Content::any);
    FreeResult deallocate(void* block) noexcept;
    /// Dynamic block: keeps its bytes up to the smaller size, and its Content; in place where it can, else moved by copying; gives growth buffers (≤ 50 %, address space and file only on
    /// use) that yield before HeapFull. Null: allocates. Throws: HeapFull (the old block stays as it was), Error{double_free | foreign_pointer} for a bad pointer.
    void* resize(void* block, ByteCount bytes);
    /// Usable bytes of a live block, 0 if `block` is not the start of one.
    ByteCount usable_size(const void* block) const noexcept;
    /// Whether a live block of the program begins there. Complexity: O(1), where usable_size reads the states of all pages of a large block.
    bool is_block(const void* address) const noexcept;
    /// Copies metadata that others may be changing; false: it can't be read.
    using CopyShared = std::function<bool(const void* from, void* to, ByteCount length)>;
    /// The same while others change the heap: what is taken or freed at this moment may be told either way. Nothing: `copy` failed. Needs no lock. `extent`: as the host saw it last.
    std::optional<bool> seems_block(const void* address, ByteCount extent, const CopyShared& copy) const;
    /// Whether the page that holds the offset is the engine's own, and never a block's.
    bool is_metadata(HeapOffset offset) const noexcept;
    /// The live block that contains the address (its start or its interior).
    std::optional<Block> find_block(const void* address) const noexcept;
    /// Each live block, ascending by offset; `visit` returns false to stop. Engine-internal blocks (root directory) are left out.
    void for_each_block(const std::function<bool(const Block&)>& visit) const;

    /// Pages that hold the same.
    struct Stretch {
        HeapOffset begin;
        HeapOffset end;
        Content content = Content::any;
    };
    /// Around that offset: a page, or all whole pages of a large block. Complexity: constant; in a large block, a word for each 64 KiB before the offset.
    Stretch stretch_at(HeapOffset offset) const;

    // Named objects: the root directory.
    std::optional<Root> find_root(std::string_view name) const;
    /// Throws: Error{name_taken | invalid_argument (empty, longer than 1 KiB)}, HeapFull.
    /// `shape`: that of its type, which comes with it; left out if there is room for the name alone.
    void add_root(const Root& root, std::string_view shape = {});
    /// All names of a heap that has none yet, which differ. Needs no more room than they had anywhere before. Throws: as add_root, but for name_taken.
    void add_first_roots(const std::vector<Root>& roots);
    bool remove_root(std::string_view name);
    /// Each of these names, which are there, leads to another object, of a type whose encoded shape is kept in place of any other. Throws: HeapFull, Error{corrupt | invalid_argument}: nothing has changed.
    void replace_roots(std::span<const std::pair<Root, std::string_view>> roots);
    /// The named object lies there now; false: there is no such name. Throws: Error{corrupt}; it needs no room.
    bool move_root(std::string_view name, HeapOffset object);
    /// Gives the object of that name another fingerprint; false if there is none. Throws: HeapFull, Error{corrupt | invalid_argument}: nothing happened.
    bool retype_root(std::string_view name, std::string_view fingerprint);
    std::vector<Root> roots() const;

    // Shapes of the types of named objects (src/shape/FORMAT.md), one for each fingerprint. They lie in the root directory, take no block, and stay when names go.
    /// Nothing: there is none. What is returned may be anything. Throws: Error{corrupt}.
    std::optional<std::string> shape_of(std::string_view fingerprint) const;
    /// Throws: HeapFull, Error{corrupt}: nothing has changed.
    void set_shape(std::string_view fingerprint, std::string_view encoded);
    /// Those that are whole, in the form of roots without objects: for `add_first_roots` of another heap.
    std::vector<Root> shapes() const;
    /// What of shapes can't be read. That is no damage, and `check` says nothing of it. Throws: Error{corrupt}.
    std::vector<Damage> bad_shapes() const;
    /// Whether a root's name is kept for shapes.
    static bool is_shape_name(std::string_view name) noexcept;

    /// Bytes of the range were changed from outside (undo, rollback, replay): drops the volatile hints about it; re-reads super block fields.
    void forget(HeapOffset offset, ByteCount length);
    /// How often it was told so.
    std::uint64_t outside_changes() const noexcept;

    /// Pages that are kept for small blocks, though none lies in them, become free ones.
    void release_empty_pages();
    /// Marks free page runs of at least `minimum` bytes that may have disk blocks as "free without disk blocks" and returns them; the caller turns them into
    /// zeros and holes (logged).
    /// Pages of zones in which blocks lay come last; they stay kept free.
    /// With `kept` only the highest ones, until no more than that is free and not released.
    std::vector<FreeRun> release_free_pages(ByteCount minimum, ByteCount kept = 0);
    /// Complexity: linear in the extent, a word for each 64 KiB.
    PageTotals page_totals() const;

    /// Proves the metadata: occupancy, starts, runs, states, roots agree; every violation is returned (at most `limit`). Bounded time on hostile bytes.
    std::vector<Damage> check(std::size_t limit = 100) const;
    /// Complexity: linear in the metadata in use; nothing is counted while blocks come and go.
    EngineStats stats() const;
    ByteCount capacity() const;
    ByteCount extent() const;  ///< bytes of the span in use; everything behind is untouched zero

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace taiyen::heap
