#pragma once
/// LogHeap: values reached by handles, in a log of segments that is always compact.
///
///   taiyen::LogHeap heap(taiyen::open_or_create, "values.tyl");
///   const taiyen::LogHandle handle = heap.put(bytes);     // durable when it returns
///   if (const taiyen::LogView view = heap.get(handle)) use(view.bytes());
///   heap.update(handle, others);
///   heap.remove(handle);
///
/// What containers can't do, handles can: values move. So room that removed values leave is used again whatever the sizes were, and nothing fragments.
/// Beside the heap's file stands its ring (`x.tyl.log`): a put is one record there, and its bytes reach the heap's file later, segment by segment (Rosenblum and Ousterhout, "The design and implementation
/// of a log-structured file system", 1992; Rumble and others, "Log-structured memory for DRAM-based storage", 2014).
/// Stored bytes and protocol: src/logheap/FORMAT.md; guide: doc/log_heap.md.
/// Thread rule: safe, the constructors, moving, close() and the destructor excepted. Readers never wait, for writers or for cleaning. One process at a time has a heap open for writing.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <taiyen/base/capture.hpp>
#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

namespace logheap {
class ObjectLog;  ///< the compiled engine behind it
}

/// Name of a value. Those that a heap gives count up and are never given again, also after a crash; a program may choose its own below 2^63: those beyond are a LogMap's. 0: none.
enum class LogId : std::uint64_t { none = 0 };

/// A value, and which one of those that ever had its id.
struct LogHandle {
    LogId id = LogId::none;
    Serial born{};  ///< serial of the put that made it; 0: whichever has the id

    constexpr LogHandle() = default;
    constexpr LogHandle(LogId of, Serial made = {}) noexcept : id(of), born(made) {}
    bool operator==(const LogHandle&) const = default;
};

/// What is a value as it is: its bytes say all of it. What only leads to others (pointers, spans, views of text) is none.
template <class T>
concept LogValue = std::is_trivially_copyable_v<T> && alignof(T) <= 8 && !std::is_pointer_v<T> && !std::is_array_v<T> && !std::ranges::view<T>;

/// Options of a LogHeap. Sizes matter at creation; at reopening what the file says wins.
struct LogHeapOptions {
    std::size_t capacity = 64_GiB;      ///< bytes of segments; the file is sparse and takes what is used. At least 16 segments
    std::size_t segment_bytes = 0;      ///< a power of two from 64 KiB to 2 MiB; 0: 2 MiB, or less in a small heap
    std::size_t log_capacity = 64_MiB;  ///< of the ring, bytes; at least four segments
    double utilisation = 0.9;  ///< of each opening: share of the capacity that values may take, at most 0.95; from there on put() throws HeapFull
    std::size_t checkpoint_bytes =
        0;  ///< of each opening: so much is written between two images of the index; 0: an eighth of the capacity, 1 GiB at most
    Durability durability = Durability::sync;       ///< of each opening: whether put() and the like return when they are durable, or at once
    std::chrono::microseconds loss_window{10'000};  ///< Durability::async: what a crash takes was put within one such window
    bool background = true;                         ///< of each opening: a thread of the heap's own flushes, cleans and writes images ahead
    bool checks_reads = true;                       ///< of each opening: get() compares the value with its checksum
    std::filesystem::path log_file{};               ///< empty: `x.tyl.log` beside `x.tyl`
};

/// What a LogHeap is like. All counts since opening unless told otherwise.
struct LogHeapStats {
    std::uint64_t values = 0;           ///< now
    std::uint64_t live_bytes = 0;       ///< now: of values, with their heads; of a run of segments all that it takes
    std::uint64_t segment_bytes = 0;    ///< of one
    std::uint64_t segments = 0;         ///< that there are
    std::uint64_t free_segments = 0;    ///< now
    std::uint64_t pinned_segments = 0;  ///< now: that views look at
    std::uint64_t views = 0;            ///< now: that live; one that a program forgets keeps its segment for ever
    std::uint64_t index_bytes = 0;      ///< now: of memory
    Serial appended{};                  ///< newest operation
    Serial durable{};                   ///< newest that a crash leaves
    std::uint64_t put_bytes = 0;        ///< of records that operations wrote
    std::uint64_t moved_bytes = 0;      ///< of records that cleaning moved
    std::uint64_t cleaned_segments = 0;
    std::uint64_t flushes = 0;      ///< times that room of the ring was given back
    std::uint64_t checkpoints = 0;  ///< images of the index that were written
    std::uint64_t ahead = 0;        ///< flushes, images and cleanings of the heap's own thread
};

/// How a LogHeap was opened.
struct LogRestoration {
    bool was_clean = true;              ///< it had been closed
    std::uint64_t values = 0;           ///< in it
    std::uint64_t from_segments = 0;    ///< records newer than the index's image, found in segments
    std::uint64_t from_ring = 0;        ///< operations found in the ring
    std::uint64_t ring_torn_bytes = 0;  ///< of an operation that was being written; nobody was told that it is durable
    std::chrono::microseconds took{};
};

/// A segment, or a run of segments that one value takes.
struct LogSegment {
    enum class Kind {
        free,
        hot,   ///< what operations wrote
        cold,  ///< what cleaning moved
        large  ///< one value in a run
    };
    std::uint64_t number = 0;  ///< from 1 on
    std::uint64_t offset = 0;  ///< in the heap's file
    Kind kind = Kind::free;
    std::uint64_t bytes = 0;         ///< that it takes
    std::uint64_t filled_bytes = 0;  ///< of records, those that are dead among them; of a run all that it takes
    std::uint64_t live_bytes = 0;    ///< as filled_bytes
    std::uint64_t age = 0;  ///< operations since it was filled
    std::uint64_t views = 0;
    bool has_blocks = false;  ///< disk blocks, at least some
};

/// What LogHeap::verify found.
struct LogVerification {
    std::uint64_t values = 0;
    std::uint64_t bytes = 0;  ///< of values, without heads
    /// A value that is not what was put.
    struct Damaged {
        LogId id;
        std::uint64_t offset;  ///< in the heap's file
    };
    std::vector<Damaged> damaged;
};

/// A value as it was when the view was made: its bytes neither move nor change while the view lives. Thread rule: as a pointer.
class TAIYEN_EXPORT LogView {
public:
    LogView() = default;
    LogView(LogView&& other) noexcept { swap(other); }
    LogView& operator=(LogView&& other) noexcept {
        LogView(std::move(other)).swap(*this);
        return *this;
    }
    LogView(const LogView&) = delete;
    LogView& operator=(const LogView&) = delete;
    ~LogView() {
        if (log_ != nullptr) release();
    }

    /// Whether there is a value; an empty one is one.
    explicit operator bool() const noexcept { return log_ != nullptr; }
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    LogHandle handle() const noexcept { return handle_; }
    LogId id() const noexcept { return handle_.id; }
    /// Serial of the operation that wrote these bytes: what `replace` expects, and `wait_durable` waits for.
    Serial version() const noexcept { return version_; }
    std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
    /// The value as an object, in place. Throws: Error{type_mismatch}: it has another size.
    template <LogValue T>
    const T& as() const {
        if (bytes_.size() != sizeof(T)) throw_size(sizeof(T));
        return *reinterpret_cast<const T*>(bytes_.data());
    }
    void swap(LogView& other) noexcept {
        std::swap(log_, other.log_);
        std::swap(bytes_, other.bytes_);
        std::swap(handle_, other.handle_);
        std::swap(version_, other.version_);
        std::swap(segment_, other.segment_);
    }

private:
    friend class logheap::ObjectLog;
    void release() noexcept;
    [[noreturn]] void throw_size(std::size_t wanted) const;

    const logheap::ObjectLog* log_ = nullptr;
    std::span<const std::byte> bytes_;
    LogHandle handle_;
    Serial version_;
    std::uint32_t segment_ = 0;
};

/// Operations that happen together or not at all. Nothing is written before LogHeap::commit. Of several operations on one id the last counts. Thread rule: as a container.
class LogBatch {
public:
    /// Under an id that the program chose. Throws: Error{invalid_argument} (LogId::none), std::bad_alloc.
    TAIYEN_EXPORT void put(LogId id, std::span<const std::byte> bytes);
    void put(LogId id, std::string_view text) { put(id, std::as_bytes(std::span(text))); }
    /// Throws: as put.
    TAIYEN_EXPORT void remove(LogId id);
    bool empty() const noexcept { return operations_.empty(); }
    std::size_t size() const noexcept { return operations_.size(); }
    void clear() noexcept {
        operations_.clear();
        bytes_.clear();
    }

private:
    friend class logheap::ObjectLog;
    struct Operation {
        LogId id;
        bool removes;
        std::size_t begin;
        std::size_t length;
    };
    std::vector<Operation> operations_;
    std::vector<std::byte> bytes_;
};

class TAIYEN_EXPORT LogHeap {
public:
    /// Creates `path` and its ring. Durability: the empty heap is durable on return. Throws: Error{already_exists | not_found | permission | no_space | invalid_argument | …}.
    LogHeap(create_only_t, const std::filesystem::path& path, const LogHeapOptions& options = {});
    /// Opens for writing; after a crash every operation that was durable is there, and each batch whole. Complexity: of a heap that was closed, linear in its segments; after a crash, reads the image of the index, and what was written after it.
    /// Throws: Error{not_found | not_a_heap | busy | corrupt | log_missing | mismatch | truncated | unsupported_version | …}: nothing was written.
    LogHeap(open_only_t, const std::filesystem::path& path, const LogHeapOptions& options = {});
    LogHeap(open_or_create_t, const std::filesystem::path& path, const LogHeapOptions& options = {});
    /// Opens for reading beside other readers; nothing at all is written. Throws: as opening.
    LogHeap(open_read_only_t, const std::filesystem::path& path, const LogHeapOptions& options = {});
    LogHeap(LogHeap&&) noexcept;
    LogHeap& operator=(LogHeap&&) noexcept;
    LogHeap(const LogHeap&) = delete;
    LogHeap& operator=(const LogHeap&) = delete;
    /// As close(); what fails is reported. Views that live keep the heap's memory and its files; nobody opens it again before the process ends.
    ~LogHeap();

    // Operations. Durability: as `LogHeapOptions::durability` says; readers may see a value a moment before it is durable.
    // They throw HeapFull (nothing was changed; removing works also when the heap is full), Error{poisoned} (an earlier write failed: open the heap again), Error{corrupt} (the image of the index is damaged where it has the id), Error{read_only | closed | forked}, std::bad_alloc.

    /// A new value of any size, 0 included. Complexity: a copy into the ring's group and one into a segment.
    LogHandle put(std::span<const std::byte> bytes);
    /// Inserts, or replaces what has the id. Throws: also Error{invalid_argument}: LogId::none.
    LogHandle put_as(LogId id, std::span<const std::byte> bytes);
    /// Inserts under an id that the program chose. Nothing: there is a value already, and nothing was changed. Throws: also Error{invalid_argument}: LogId::none.
    std::optional<LogHandle> insert(LogId id, std::span<const std::byte> bytes);
    /// Replaces it. False: there is none, or a younger one has its id; nothing was changed.
    bool update(LogHandle handle, std::span<const std::byte> bytes);
    /// The same, if it still is what a view with that version showed.
    bool replace(LogHandle handle, Serial expected, std::span<const std::byte> bytes);
    /// False: as update.
    bool remove(LogHandle handle);
    /// The same, if it still is what a view with that version showed.
    bool remove(LogHandle handle, Serial expected);
    /// All of the batch's operations, as one: whoever reads afterwards sees all, and a crash leaves all or none. A reader beside it may see some. Returns their serial. Throws: as put; the batch stays.
    Serial commit(const LogBatch& batch);

    LogHandle put(std::string_view text) { return put(std::as_bytes(std::span(text))); }
    LogHandle put_as(LogId id, std::string_view text) { return put_as(id, std::as_bytes(std::span(text))); }
    std::optional<LogHandle> insert(LogId id, std::string_view text) { return insert(id, std::as_bytes(std::span(text))); }
    bool update(LogHandle handle, std::string_view text) { return update(handle, std::as_bytes(std::span(text))); }
    bool replace(LogHandle handle, Serial expected, std::string_view text) { return replace(handle, expected, std::as_bytes(std::span(text))); }
    template <LogValue T>
    LogHandle put(const T& object) {
        return put(std::as_bytes(std::span<const T, 1>(&object, 1)));
    }
    template <LogValue T>
    LogHandle put_as(LogId id, const T& object) {
        return put_as(id, std::as_bytes(std::span<const T, 1>(&object, 1)));
    }
    template <LogValue T>
    std::optional<LogHandle> insert(LogId id, const T& object) {
        return insert(id, std::as_bytes(std::span<const T, 1>(&object, 1)));
    }
    template <LogValue T>
    bool update(LogHandle handle, const T& object) {
        return update(handle, std::as_bytes(std::span<const T, 1>(&object, 1)));
    }
    template <LogValue T>
    bool replace(LogHandle handle, Serial expected, const T& object) {
        return replace(handle, expected, std::as_bytes(std::span<const T, 1>(&object, 1)));
    }

    /// An empty view: there is none, or a younger one has its id. Waits for nobody, but the first look into a part of the index, which is read then. Throws: Error{corrupt} (the value, or the index where it has the id), Error{closed | forked}, std::bad_alloc (the first time on a thread). Complexity: two dependent cache misses, and the checksum.
    LogView get(LogHandle handle) const;
    bool contains(LogHandle handle) const { return static_cast<bool>(get(handle)); }
    /// How many there are. Complexity: constant.
    std::uint64_t size() const;
    bool empty() const { return size() == 0; }
    /// Calls `f(const LogView&)` for each value whose id is not below `first`, in no order: for each that lives throughout once. Throws: as get; what `f` throws.
    void for_each(const std::function<void(const LogView&)>& f, LogId first = LogId::none) const;

    /// Newest operation that a crash leaves. Throws: Error{closed}.
    Serial last_durable() const;
    /// Returns when that operation is durable. Throws: Error{poisoned | invalid_argument}.
    void wait_durable(Serial serial) const;
    /// Writes an image of the index: opening reads less afterwards. Durability: of everything before. Throws: as put.
    void checkpoint();
    /// Moves values together until so many bytes of free segments were won, or nothing can be won. Returns how many. The heap does it by itself when it is short of room. Throws: as put.
    std::size_t clean(std::size_t bytes);

    LogHeapStats stats() const;
    /// What lies where, ascending. Throws: Error{closed}. Complexity: linear in the segments.
    std::vector<LogSegment> segments() const;
    LogRestoration restoration() const;
    /// Reads every value and compares it with its checksum. Throws: Error{corrupt}: the image of the index is damaged; Error{closed | forked}.
    LogVerification verify() const;
    const std::filesystem::path& path() const;
    /// Checkpoint, and both files closed. Throws: Error{still_in_use}: views live, the heap stays open; what a checkpoint throws: it is closed, and what was durable is.
    void close();
    bool is_open() const noexcept { return log_ != nullptr; }

private:
    logheap::ObjectLog& open_log() const;
    bool leave_to_parent() noexcept;
    std::unique_ptr<logheap::ObjectLog> log_;
};

}  // namespace taiyen
