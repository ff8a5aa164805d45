#pragma once
/// A heap's life on a recorded disk, and the model of what it must hold.
///
/// The model knows nothing of the engine: after each save, the names and bytes of a few objects, and the bytes of the annex. Save 1 is the empty heap as it was created; save 0 means that there
/// is no heap yet. Each heap also holds its newest save's number under the name "number".

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <taiyen/inspect/report.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "crash/explorer.hpp"
#include "crash/shared_states.hpp"
#include "store/byte_log.hpp"
#include "store/heap_file.hpp"
#include "vm/address_space.hpp"

namespace taiyen::crash {

/// The named object that tells which state a heap is in.
inline constexpr const char* number_name = "number";

/// What a block of that size is filled with.
std::vector<std::byte> bytes_for(ByteCount size, std::uint64_t seed);

struct Model {
    std::map<std::string, std::vector<std::byte>> objects;
    std::vector<std::byte> annex;  ///< empty: there is none, or it ended
    std::uintptr_t address = 0;    ///< of the heap; 0: anywhere
    bool linked = false;           ///< "links" leads to objects that are there; later ones may take their places
};

/// By save number; entry 0 stands for no heap.
using History = SharedStates<Model>;

struct HeapSetup {
    HeapKind kind = HeapKind::archive;
    ByteCount capacity = 4_MiB;
    ByteCount journal_bytes = 64_KiB;
    ByteCount log_bytes = 64_KiB;
    bool data_file = false;  ///< of a transactional heap
    bool annex = false;      ///< openings open it
    bool detach_data_file = false;
    bool elsewhere = false;     ///< position-independent, and wherever it is opened, something else lies in its place
    bool remakes_data = false;  ///< the data file was lost when the heap was closed, and every opening makes another one
    bool misses_heap = false;   ///< the heap's own file is lost before, and comes back from the data file
    bool rots = false;          ///< what its files have behind the extents of their headers is noise when a crash is recovered
    bool heals = false;         ///< pages of one copy rot in its life: before the files are judged, what the other one has whole is restored
    bool apart = false;         ///< data file and log lie in directories, and on devices, of their own (a journal is always beside the heap)

    static const std::filesystem::path& path();
    std::filesystem::path data_path() const;
    std::filesystem::path log_path() const;
};

/// Whether the heap's header speaks of a data file.
bool names_data_file(io::Storage& disk, const std::filesystem::path& heap);

inline const std::filesystem::path heap_path = "/disk/x.tyn";

class HeapLife {
public:
    HeapLife(io::Storage& disk, io::RecordingStorage* marks, const HeapSetup& setup, History history = {});
    HeapLife(const HeapLife&) = delete;
    HeapLife& operator=(const HeapLife&) = delete;

    void create();
    /// Opens, and notes in `model` what it finds.
    void open();
    void open(HeapKind kind);
    /// Opens it and leaves the annex alone, whatever the setup says: the next save ends it.
    void open_without_annex(HeapKind kind);
    /// Opens the annex; its content must be that of the save that was found.
    void open_annex();
    void close();
    /// As if the last snapshot of a transactional heap had failed.
    void close_without_snapshot();
    /// close() will make a hole of each free page.
    void give_all_back() { heap_->give_back().take_all(); }
    /// The process is gone: the heap's handles must be dead already.
    void abandon();

    /// Puts `size` bytes that depend on `seed` under `name`, new, or resized and overwritten.
    void put(const std::string& name, ByteCount size, std::uint64_t seed);
    /// Overwrites a few bytes of an object.
    void touch(const std::string& name, std::uint64_t seed);
    void remove(const std::string& name);
    /// Puts `size` zeros and one byte under a new name: the heap grows, and few pages of it change.
    void put_sparse(const std::string& name, ByteCount size);
    /// Of a transactional heap: a save that brings nothing but room for so many more bytes.
    void make_room(ByteCount bytes);
    /// The same as a crash leaves it between the headers of the heap's own file and of its data file.
    void make_room_cut_short(ByteCount bytes);
    /// Writes into the annex, which grows for it. Its first bytes are the number of the save.
    void write_annex(ByteCount at, ByteCount size, std::uint64_t seed);
    bool has_annex() const { return !model_.annex.empty(); }
    /// Puts the addresses of all objects under the name "links"; of a position-independent heap the distances to them.
    void link();
    /// A save that moves the heap so many slots on, with what "links" points to; the heap is closed then.
    void move(std::uintptr_t slots);
    /// A save that gives the heap another capacity; the heap is closed then.
    void resize(ByteCount capacity);
    /// Of a transactional heap: a commit; some are followed by a snapshot.
    void save();
    void checkpoint() { heap_->saves().checkpoint(); }
    /// A sector of the object, in a page that is its alone, rots durably in one of the files.
    void rot(const std::string& name, bool in_data);
    /// A round of a scrub, by this thread.
    void scrub();

    /// Throws std::runtime_error unless the heap equals a save of the history; returns its number.
    std::uint64_t compare() const;
    /// Throws std::runtime_error unless engine and files are sound.
    void prove() const;

    const History& history() const { return history_; }
    /// The newest save that was told to be durable, and the newest that was begun.
    std::uint64_t acknowledged() const { return acknowledged_; }
    std::uint64_t issued() const { return issued_; }
    bool is_open() const { return heap_ != nullptr; }
    store::HeapFile& heap() { return *heap_; }

private:
    void open_as(store::OpenMode mode, HeapKind kind);
    std::byte* object(const std::string& name) const;
    void compare_annex(std::uint64_t number) const;
    /// Of a position-independent heap: its place is taken while it is opened.
    std::optional<vm::Reservation> take_its_place() const;
    void compare_distances() const;
    /// Throws std::runtime_error if verify() finds damage; what lies behind the extents may be `rotten`.
    void judge_files(bool rotten) const;
    bool lies_behind(const Finding& finding) const;
    std::byte* own_block(const std::string& name, ByteCount size);
    void issue(std::uint64_t save);
    void acknowledge(std::uint64_t save);
    PersistentOptions options(HeapKind kind) const;
    store::Tuning tuning() const;

    io::Storage& disk_;
    io::RecordingStorage* marks_;  ///< where saves are issued and acknowledged; may be null
    HeapSetup setup_;
    History history_;
    Model model_;  ///< of the working view
    std::uint64_t acknowledged_ = 0;
    std::uint64_t issued_ = 0;
    std::shared_ptr<store::HeapFile> heap_;
    std::shared_ptr<store::test::ByteLog> log_;  ///< of a transactional heap
    std::optional<ArchiveHeap> owner_;           ///< its public face
};

/// A heap on the disk.
class HeapSubject final : public Subject {
public:
    HeapSubject(const HeapSetup& setup, History history, std::optional<LostFile> lost = std::nullopt)
        : setup_(setup), history_(std::move(history)), lost_(std::move(lost)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) override;
    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t state) override;
    void rot(io::SimulatedStorage& disk) const override;

private:
    std::uint64_t check_missing(io::SimulatedStorage& disk, std::uint64_t state) const;
    /// Whether the heap must be told to go on without its data file. In some states that file comes back instead.
    bool misses_data(io::SimulatedStorage& disk, std::uint64_t state) const;

    HeapSetup setup_;
    History history_;
    std::optional<LostFile> lost_;
};

/// Random small changes and saves, as a program makes them.
void change_something(HeapLife& life, std::mt19937_64& random);

}  // namespace taiyen::crash
