#pragma once
/// Replays a recorded trace on a simulated disk and knows, at every point, what a crash there could leave.
///
/// The disk always holds what is durable for sure. What was done since, and is not covered by a barrier, is *pending*: a list of operations, each made
/// of units that reach the disk or don't, one by one: a 512-byte sector, a punched page, a change of size, a directory entry.
///
/// (C1) A sector carries what the page cache held after its operation, so a lost earlier write does not come back inside a later one by accident of
///      alignment, and a later one brings along what shared its sector.
/// (C2) Units that an operation durable by itself has overwritten are gone: they can't come back over it.
/// (C3) Pending operations take effect in their order; a selection leaves some out.
/// Thread rule: one thread.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/disks/recording_storage.hpp"
#include "io/disks/simulated_node.hpp"

namespace taiyen::crash {

/// The durable content of a disk: what a crash state is, and what a trace begins with.
struct Image {
    std::map<std::filesystem::path, std::vector<std::byte>> files;
};
/// Directories of the tests' disks; each lies on a device of its own.
inline constexpr const char* heap_directory = "/disk";
inline constexpr const char* data_directory = "/second";
inline constexpr const char* log_directory = "/third";
std::uint64_t device_of(const std::filesystem::path& directory);
void add_directories(io::SimulatedStorage& disk);

/// A file that a heap lost.
struct LostFile {
    std::vector<std::byte> bytes;  ///< empty: it never comes back
    std::uint64_t number = 0;      ///< the newest save, or state, that it may know of
};

Image image_of(const io::SimulatedStorage& disk);

class Replay {
public:
    /// The disk gets the base's files (it must be empty) and is marked.
    Replay(io::SimulatedStorage& disk, const Image& base);

    /// What kind of unit.
    enum class UnitKind : std::uint8_t { sector, punched_page, size, name };
    struct Pending {
        std::size_t number = 0;  ///< index of the operation in its trace
        io::Operation::Kind kind{};
        int node = -1;
        std::size_t first_unit = 0;  ///< among all pending units
        std::size_t units = 0;
        bool has_size = false;  ///< the first unit is a change of size; of an allocation all are, ascending
        bool orphaned = false;  ///< its sync failed: no later one covers it
        bool covered = false;   ///< an operation that is durable when it returns, and has not returned yet
    };

    /// The operation has begun: a crash from here on may see any part of it.
    void begin(const io::Operation& operation, std::size_t number);
    /// It has returned.
    void finish(const io::Operation& operation);

    const std::vector<Pending>& pending() const { return pending_; }
    std::size_t unit_count() const { return units_.size(); }
    bool unit_is_gone(std::size_t unit) const { return units_[unit].gone; }

    /// By unit: 0 lost, 1 reached the disk, 2 reached it as zeros (sectors only).
    using Selection = std::vector<std::uint8_t>;

    /// A number for the whole content of the disk if this selection of pending units has reached it. Equal disks give equal numbers.
    std::uint64_t fingerprint(const Selection& selection);
    /// Puts that content on the disk. `SimulatedStorage::rollback` takes it off again.
    void mount(const Selection& selection);

    /// Durable writes that lay outside the durable size of their file; the seam forbids them, here they count as not durable.
    std::uint64_t durable_writes_outside() const { return durable_writes_outside_; }

private:
    using Node = io::SimulatedStorage::Node;
    using Names = std::map<std::filesystem::path, int>;

    struct FileState {
        std::shared_ptr<Node> node;
        std::vector<std::byte> live;             ///< what the page cache shows
        std::vector<std::uint64_t> sector_sums;  ///< of the durable content; 0: all zero
        std::uint64_t sum = 0;                   ///< their sum
        // Of the selection being composed:
        std::vector<std::uint32_t> patch_of_sector;  ///< index into patches plus 1, valid if stamp fits
        std::vector<std::uint64_t> stamp;
    };
    struct Unit {
        UnitKind kind{};
        bool gone = false;
        std::uint64_t sector = 0;  ///< first sector, or the new size
        std::uint64_t sum = 0;
        const std::byte* bytes = nullptr;  ///< null: zeros
    };
    struct NameChange {
        std::filesystem::path removed;
        std::filesystem::path added;  ///< empty: none
        int node = -1;
        bool removed_durable = false;
        bool added_durable = false;
    };
    struct Patch {
        std::uint64_t sector = 0;
        const std::byte* bytes = nullptr;
        std::uint64_t sum = 0;
        bool hole = false;
        std::uint64_t valid = io::sector_bytes;  ///< less behind a cut of the file's size; 0: nothing of it is left
    };
    struct Composed {
        std::uint64_t size = 0;
        std::uint64_t killed_from = ~std::uint64_t{0};
        std::vector<Patch> patches;
    };

    int node_of(io::FileId file) const;
    int add_node(std::shared_ptr<Node> node);
    void add_pending(Pending pending, std::vector<Unit> units);
    void write_live(FileState& file, std::uint64_t offset, std::span<const std::byte> bytes);
    std::vector<Unit> sector_units(const FileState& file, std::uint64_t offset, std::uint64_t length);
    std::uint64_t safe_size(int node) const;
    void begin_name(NameChange change, const io::Operation& operation, std::size_t number);

    void make_durable(std::size_t index);
    void drop_made_durable();
    void refresh_sums(FileState& file, std::uint64_t first_sector, std::uint64_t last_sector);
    void refresh_all_sums(FileState& file);
    void compose(const Selection& selection);
    Names composed_names(const Selection& selection) const;
    static std::uint64_t sum_of(std::uint64_t sector, const std::byte* bytes, std::size_t count);

    io::SimulatedStorage& disk_;
    std::vector<FileState> files_;
    std::map<io::FileId, int> nodes_;
    Names names_;  ///< durable
    Names live_names_;
    std::vector<Pending> pending_;
    std::vector<Unit> units_;
    std::vector<std::unique_ptr<std::vector<std::byte>>> unit_bytes_;  ///< by pending operation
    std::vector<NameChange> name_changes_;                             ///< by pending operation
    std::vector<Composed> composed_;
    std::uint64_t composition_ = 0;
    std::uint64_t durable_writes_outside_ = 0;
};

}  // namespace taiyen::crash
