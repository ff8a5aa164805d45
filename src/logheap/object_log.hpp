#pragma once
/// ObjectLog: an open LogHeap. Operations are records of a ring (log::GroupLog); their bytes are copied into open segments, which reach the file when the ring's room is needed or the segment is full.
///
/// Two segments are open: the hot one takes what operations write, the cold one what cleaning moves. Memory of segment n is at one address for ever: anonymous while it is open, the file's mapping
/// before and afterwards, with the same bytes.
///
/// (L1) The ring gives room back only when what stood there lies in segments that a durable header names, and those are synced.
/// (L2) A segment is written anew only when nothing that is durable needs it: it holds no live record, every operation that made its records dead is durable, records that cleaning moved lie in a
///      segment that a durable header names, no view looks at it, and recovery doesn't read it.
/// (L3) Recovery reads the image of the index, then the tail (segments with records that the image doesn't know), then the ring. They come in the order in which they
///      were made, so the last record of an id counts, and a tombstone is needed in the tail only: cleaning takes no segment of the tail, and moves no tombstone.
/// (L4) An operation is one record of the ring with one serial, whatever it writes: it is there wholly or not at all. A header names only what the ring has durably.
/// (L5) Cleaning changes a place only where the index still names the record that was moved; it never changes bytes that somebody may see.
/// (L6) Flushing, images and cleaning have parts that need no lock; the keeper, a thread of the log's own, does those beside operations. One such work goes on at a time, in `ahead_`;
///      whoever has the lock and needs what it brings finishes it. No cleaning moves anything while an image is written.
/// Thread rule: safe; one mutex for all who write. Readers take none: a place from the index, a pin on its segment, and a second look at the index.
/// Lock order: `writer_`, then `ahead_mutex_`; the keeper takes `writer_` while it holds neither.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <taiyen/logheap/log_heap.hpp>

#include "base/process.hpp"
#include "log/group_log.hpp"
#include "logheap/id_index.hpp"
#include "logheap/log_files.hpp"
#include "vm/address_space.hpp"
#include "vm/memory_limit.hpp"

namespace taiyen::logheap {

class ObjectLog {
public:
    enum class Opening { create, open, open_or_create, read_only };
    /// `memory`: bytes that the process may have. Throws: as LogHeap's constructor.
    static std::unique_ptr<ObjectLog> open(io::Storage& storage, const std::filesystem::path& path, const LogHeapOptions& options, Opening opening,
                                           ByteCount memory = vm::usable_memory());
    ObjectLog(const ObjectLog&) = delete;
    ObjectLog& operator=(const ObjectLog&) = delete;
    ~ObjectLog();

    // As LogHeap's.
    LogHandle put(std::span<const std::byte> bytes);
    LogHandle put_as(LogId id, std::span<const std::byte> bytes);
    std::optional<LogHandle> insert(LogId id, std::span<const std::byte> bytes);
    /// `expected`: 0: whatever it is.
    bool update(LogHandle handle, Serial expected, std::span<const std::byte> bytes);
    bool remove(LogHandle handle, Serial expected = {});
    Serial commit(const LogBatch& batch);
    LogView get(LogHandle handle) const;
    void for_each(const std::function<void(const LogView&)>& f, LogId first = LogId::none) const;
    std::uint64_t size() const noexcept { return index_.size(); }
    Serial last_durable() const;
    void wait_durable(Serial serial) const;
    void checkpoint();
    std::size_t clean(std::size_t bytes);
    LogHeapStats stats() const;
    std::vector<LogSegment> segments() const;
    const LogRestoration& restoration() const { return restoration_; }
    LogVerification verify() const;
    const std::filesystem::path& path() const { return files_.path(); }
    bool in_forked_child() const noexcept { return !is_process(process_); }
    bool has_views() const noexcept { return views_.load() != 0; }
    /// Checkpoint; the header says that the heap was closed. Requires: no views.
    void close();
    void unpin(std::uint32_t segment) const noexcept;
    /// Writes of its own are over: as after a failed write, in tests that drop the heap.
    void abandon() noexcept {
        stop_keeper();
        is_over_ = true;
    }
    /// Ends the log's own thread. All else goes on.
    void stop_keeper() noexcept;
    enum class Task { flush, image, cleaning };
    /// Does what the log's own thread would do, and calls `meanwhile` wherever that has let the lock go: tests operate there. Requires: `LogHeapOptions::background` is false.
    /// `in_image` is called in the middle of an image; nothing there may need more than free room.
    void do_ahead(Task task, const std::function<void()>& meanwhile, const std::function<void()>& in_image);
    /// Throws unless the sums of live bytes, states and places agree with each other. Complexity: linear; for tests.
    void check_sums() const;

private:
    enum class Use : std::uint8_t {
        free,
        open,
        sealed,
        pinned,  ///< free when views let it go
        part     ///< of a run, behind its first one
    };
    struct Segment {
        std::atomic<std::uint32_t> pins{0};
        Use use = Use::free;
        bool in_tail = false;     ///< recovery reads it
        bool is_victim = false;   ///< cleaning moves what lives in it
        bool is_emptied = false;  ///< cleaning moved what lived in it: free when the next header is durable
        bool is_allocated = false;
        bool is_damaged = false;  ///< cleaning found a wrong checksum: it stays as it is
        layout::SegmentKind kind = layout::SegmentKind::hot;
        std::uint32_t units = 1;
        std::uint32_t end = 0;
        std::atomic<std::uint64_t> birth{0};
        std::uint64_t filled_at = 0;  ///< newest operation when it was written to last
        std::uint64_t live = 0;       ///< bytes of records that the index names
        std::uint64_t reusable_from = 0;
    };
    /// A segment that is being filled.
    struct Open {
        layout::SegmentKind kind;
        std::uint32_t number = 0;  ///< 0: there is none
        std::uint64_t end = 0;
        std::uint64_t written = 0;  ///< bytes that the file has
        std::uint64_t from = 0;     ///< where what the image doesn't know begins
    };
    enum class Reason { value, removal, cleaning };
    /// What the next header says, and what follows from it.
    struct Flush {
        struct OpenSegment {
            layout::TailSegment part;  ///< what the image didn't know
            std::uint64_t birth;
        };
        bool with_image = false;
        bool has_image = false;  ///< it is written, as far as there is one
        bool is_clean = false;
        std::uint64_t serial = 0;    ///< newest operation in segments
        log::GroupLog::Point point;  ///< where recovery begins to read the ring; what it finds there up to `serial` is in segments
        std::uint64_t next_id = 0;
        std::uint64_t next_birth = 0;
        std::uint64_t written = 0;                   ///< of `since_checkpoint_`
        std::size_t sealed = 0;                      ///< of `tail_`
        std::size_t emptied = 0;                     ///< of `emptied_`
        std::vector<OpenSegment> open;               ///< when it began
        std::vector<layout::TailSegment> tail;       ///< of the header
        std::vector<layout::ImageSegment> segments;  ///< of the image
    };
    /// Segments whose survivors are moved.
    struct Cleaning {
        enum class Step { chosen, looked_through, has_room, copied };
        struct Survivor {
            std::uint64_t version;
            std::uint64_t id;
            Place place;
        };
        struct Copy {
            Survivor from;
            Place to;
        };
        Step step = Step::chosen;
        bool takes_last = false;  ///< free segment
        bool is_cut = false;      ///< there was no room for all of them
        std::vector<std::uint32_t> victims;
        std::vector<Survivor> survivors;
        std::size_t next = 0;      ///< survivor that wasn't copied
        std::vector<Copy> copies;  ///< into the room behind the cold segment's end
        std::size_t applied = 0;   ///< of the copies
        std::uint32_t to_segment = 0;
        std::uint64_t to_offset = 0;
    };
    /// Work that the keeper does ahead.
    struct Ahead {
        std::variant<Flush, Cleaning> work;
        bool is_written = false;  ///< a flush: all but its end is done
        std::exception_ptr failure{};
    };
    struct Operation {
        layout::OperationKind kind;
        std::uint64_t id;
        std::span<const std::byte> bytes;
        std::uint64_t born = 0;
        Place run{};  ///< of a large value
    };

    ObjectLog(LogFiles files, const LogHeapOptions& options, bool writes, ByteCount memory);

    // object_log.cpp
    std::unique_lock<std::mutex> lock_for_writing();
    /// What fails there leaves files of which nothing is known.
    template <class F>
    void durable_step(const char* what, F&& step) {
        try {
            step();
        } catch (const std::exception& error) {
            poison(what, error);
            throw;
        }
    }
    void poison(const char* what, const std::exception& error) noexcept;
    Serial write(std::span<Operation> operations);
    void append(std::uint64_t serial, std::span<const Operation> operations);
    void apply(const Operation& operation, std::uint64_t serial);
    void wait_if_sync(Serial serial) const;
    LogHandle give_id();
    template <class F>
    void for_each_id(std::uint64_t first, F&& f) const;
    bool is_there(LogHandle handle, Serial expected) const;
    void refuse_none(LogId id) const;
    std::uint64_t version_of(std::uint64_t id) const;
    [[noreturn]] void throw_damaged(std::uint64_t id, Place place) const;
    std::uint64_t pinned_segments() const;
    std::uint64_t limit() const;
    std::uint64_t checkpoint_bytes() const;
    void ensure_image_room(std::uint64_t more_ids);
    void map_file(std::uint32_t segment, std::uint64_t units) const;
    void choose_read_ahead() noexcept;
    void will_read(std::uint32_t segment) const noexcept;
    void refuse_beyond_limit(std::uint64_t more, std::uint64_t less, std::uint64_t wanted) const;
    const layout::RecordHead& head_at(Place place) const;
    std::span<const std::byte> bytes_at(Place place) const;
    std::uint32_t check_of(std::uint32_t segment, std::uint64_t offset, const layout::RecordHead& head, std::span<const std::byte> bytes) const;
    bool is_sound(std::uint32_t segment, std::uint64_t offset, const layout::RecordHead& head, std::span<const std::byte> bytes) const;
    std::byte* memory_of(std::uint32_t segment) const { return first_segment_ + std::uint64_t{segment - 1} * files_.segment_bytes(); }
    std::uint64_t live_bytes_at(Place place) const {
        return place.is_large() ? segments_[place.segment()].units * files_.segment_bytes() : place.bytes();
    }

    // segments.cpp
    void ensure_room(Open& open, std::uint64_t record_bytes, Reason reason);
    void take(Open& open);
    /// A run of free segments, with blocks; 0: there is none.
    std::uint32_t take_run(std::uint64_t units);
    std::uint64_t units_of_run(std::uint64_t bytes) const;
    bool allocate(std::uint64_t segment);
    void allocate_ahead(std::uint64_t count);
    void make_reusable(std::uint32_t segment, std::uint64_t units);
    [[noreturn]] void throw_full(std::uint64_t wanted_bytes) const;
    /// Segments that can be taken.
    std::uint64_t available() const { return is_disk_full_ ? free_allocated_ : free_; }
    std::uint32_t find_free(std::uint64_t units);
    void begin_segment(std::uint32_t segment, layout::SegmentKind kind, std::uint32_t units, std::uint64_t large_bytes, std::byte* at);
    void write_open(Open& open);
    void seal(Open& open);
    void write_record(std::uint32_t number, std::uint64_t offset, layout::RecordHead head, std::span<const std::byte> bytes) const;
    void grow_open(Open& open, std::uint64_t end);
    Place place_record(Open& open, const layout::RecordHead& head, std::span<const std::byte> bytes);
    void kill(Place place, std::uint64_t serial);
    void free_if_dead(std::uint32_t segment, std::uint64_t serial);
    void make_free(std::uint32_t segment) noexcept;
    void free_unpinned();
    Place write_large(std::span<const std::byte> bytes, std::uint64_t id, std::uint64_t version, std::uint64_t born);

    // flush.cpp
    Flush begin_flush(bool with_image);
    void write_image(const Flush& flush, const std::function<void()>& meanwhile);
    void write_flush(Flush& flush, const std::function<void()>& meanwhile);
    static bool is_harmless_to_images(const Error& error);
    void poison_unless_harmless(const Flush& flush, const std::exception& error);
    void end_flush(const Flush& flush);
    void flush();
    void checkpoint_now(bool is_clean);
    bool try_checkpoint();
    void flush_now(bool with_image, bool is_clean);

    // cleaner.cpp
    std::uint64_t segment_room() const;
    static bool can_be_cleaned(const Segment& segment);
    void mark_victims(const Cleaning& cleaning);
    bool clean_run(std::uint64_t units);
    bool is_kept(std::uint64_t segment) const { return segment >= kept_begin_ && segment < kept_end_; }
    void ensure_free(std::uint64_t wanted, std::uint64_t at_least, std::uint64_t wanted_bytes);
    std::optional<Cleaning> begin_cleaning();
    void find_survivors(Cleaning& cleaning) const;
    bool begin_stretch(Cleaning& cleaning);
    void copy_stretch(Cleaning& cleaning) const;
    bool apply_copies(Cleaning& cleaning, std::size_t count);
    bool end_cleaning(const Cleaning& cleaning);
    bool clean_batch();
    bool go_on_cleaning(Cleaning& cleaning);

    // keeper.cpp
    void load_index() noexcept;
    void keep() noexcept;
    void ask_keeper() noexcept;
    std::uint64_t free_wanted_ahead() const;
    std::optional<Task> next_task() const;
    bool do_task(Task task, std::unique_lock<std::mutex>& lock, const std::function<void()>& meanwhile, const std::function<void()>& in_image);
    bool flush_ahead(bool with_image, std::unique_lock<std::mutex>& lock, const std::function<void()>& meanwhile,
                     const std::function<void()>& in_image);
    bool clean_ahead(std::unique_lock<std::mutex>& lock, const std::function<void()>& meanwhile);
    void finish_ahead();

    // recovery.cpp
    void recover();
    /// Of the tail.
    struct FoundRecord {
        std::uint64_t id;
        Place place;  ///< nowhere: it is a tombstone
        std::uint64_t born;
        std::uint64_t version;
        std::uint32_t segment;
        std::uint32_t offset;
    };
    void read_image();
    bool can_read_cells(std::size_t shard) const;
    std::vector<layout::ImageCell> cells_of(const LogFiles::Image& image, std::size_t shard) const;
    bool is_head(const layout::SegmentHead& head, std::uint64_t number) const;
    void claim(std::uint32_t number, std::uint32_t units, const layout::SegmentHead& head);
    void read_tail();
    template <class F>
    void read_segment(const layout::TailSegment& tail, layout::SegmentKind kind, F&& f);
    [[noreturn]] void refuse_record(std::uint32_t segment, std::uint64_t offset) const;
    void apply_found(std::vector<FoundRecord>& batch);
    void read_ring();
    void count_live();
    void sum_segments();
    void resume_hot();
    void start_log();

    /// Free segments that puts leave: for the hot one of removals, the cold one, and one more.
    static constexpr std::uint64_t reserve = 3;
    /// Segments that cleaning and what goes with an operation may seal between two looks at the length of the tail.
    static constexpr std::size_t tail_room = 40;
    /// Records whose cells are fetched at once when the tail is read.
    static constexpr std::size_t found_at_once = 32;
    /// Segments that one cleaning takes.
    static constexpr std::size_t victims_max = 8;
    /// Tries to get the lock before a writer sleeps: the keeper has it for some microseconds at a time.
    static constexpr int spins = 200;
    /// So many ids are set aside with each header, so that none is given twice.
    static constexpr std::uint64_t ids_ahead = std::uint64_t{1} << 20U;
    /// More segments than that are not begun between two headers.
    static constexpr std::uint64_t births_ahead = std::uint64_t{1} << 32U;

    const ProcessNumber process_ = this_process();
    const LogHeapOptions options_;
    const bool writes_;
    LogFiles files_;
    std::uint64_t seed_ = 0;  ///< of checks: the heap's
    vm::Reservation memory_;
    std::byte* first_segment_ = nullptr;   ///< begins at a huge page
    std::unique_ptr<Segment[]> segments_;  ///< by number, from 1 on
    IdIndex index_;
    std::unique_ptr<log::GroupLog> log_;
    LogRestoration restoration_;

    mutable std::mutex writer_;
    Open hot_{layout::SegmentKind::hot};
    Open cold_{layout::SegmentKind::cold};
    std::vector<layout::TailSegment> tail_;  ///< sealed ones
    std::vector<std::uint32_t> emptied_;
    bool has_pinned_ = false;  ///< a segment is `Use::pinned`
    std::uint64_t serial_ = 0;
    std::uint64_t next_id_ = 1;
    std::uint64_t next_birth_ = 1;
    std::uint64_t free_ = 0;
    std::uint64_t free_allocated_ = 0;                    ///< of them; as far as is known
    mutable std::atomic<bool> is_index_damaged_ = false;  ///< cells of an image can't be read
    const ByteCount usable_memory_;
    std::atomic<bool> reads_alone_ = false;
    bool has_failed_image_ = false;  ///< ahead of need; the next one is written when it is needed
    bool is_disk_full_ = false;      ///< for segments: those without blocks are none
    std::uint64_t live_ = 0;
    std::uint64_t since_checkpoint_ = 0;
    std::uint64_t kept_begin_ = 0;  ///< segments for a run: nobody else takes them
    std::uint64_t kept_end_ = 0;
    std::uint64_t lowest_free_ = 1;  ///< no segment before it is free
    LogHeapStats counts_;
    std::string failure_;
    std::atomic<bool> is_poisoned_{false};
    bool is_over_ = false;
    mutable std::atomic<std::uint64_t> views_{0};

    std::mutex ahead_mutex_;
    std::optional<Ahead> ahead_;  ///< set and reset with both locks; the keeper works at it with `ahead_mutex_` alone
    std::condition_variable wake_;
    bool is_asked_ = false;
    bool is_stopping_ = false;
    std::thread keeper_;
};

}  // namespace taiyen::logheap
