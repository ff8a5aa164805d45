#pragma once
/// IdIndex: from ids to places, for one writer and any number of readers that never wait.
///
/// Open addressing with linear probing in shards, each of which doubles alone. A cell's id never changes within a table; what was erased keeps its cell until the table is made anew.
/// (I1) A reader within an EpochGuard finds an id that is there throughout. What changes beside it, it finds before or after.
/// (I2) `set` after `prepare` doesn't throw.
/// (I3) A shard may wait in an image: whoever asks for it first, a reader or the writer, makes its table.
/// Thread rule: `find`, `load` and `for_each_in` are safe in an EpochGuard; all else has one thread at a time.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <taiyen/base/units.hpp>

#include "base/checksum.hpp"
#include "logheap/log_layout.hpp"

namespace taiyen::logheap {

/// Where a record lies: segment, offset in it, and its bytes; all ones in the length: those of a run of segments.
struct Place {
    std::uint64_t word = 0;  ///< 0: nowhere

    static constexpr std::uint64_t large_units = (std::uint64_t{1} << 20U) - 1;
    static constexpr Place at(std::uint32_t segment, std::uint64_t offset, std::uint64_t record_bytes) {
        return {std::uint64_t{segment} << 40U | offset / 8 << 20U | record_bytes / 8};
    }
    static constexpr Place run_at(std::uint32_t segment, std::uint64_t offset) {
        return {std::uint64_t{segment} << 40U | offset / 8 << 20U | large_units};
    }
    constexpr std::uint32_t segment() const { return static_cast<std::uint32_t>(word >> 40U); }
    constexpr std::uint64_t offset() const { return (word >> 20U & large_units) * 8; }
    constexpr bool is_large() const { return (word & large_units) == large_units; }
    /// Requires: not large.
    constexpr std::uint64_t bytes() const { return (word & large_units) * 8; }
    constexpr explicit operator bool() const { return word != 0; }
    constexpr bool operator==(const Place&) const = default;
};

class IdIndex {
public:
    IdIndex() = default;
    IdIndex(const IdIndex&) = delete;
    IdIndex& operator=(const IdIndex&) = delete;
    ~IdIndex();

    static constexpr std::size_t shard_count = layout::image_shards;

    using Image = std::function<std::vector<layout::ImageCell>(std::size_t shard)>;
    /// So many ids wait in each shard of the image, which is asked once for each. What it throws, `find` and all else throw that ask for the shard. Requires: an empty index.
    void wait_in(Image image, const std::array<std::uint64_t, shard_count>& ids);
    /// Makes the shard's table if it waits. Throws: what the image throws, std::bad_alloc; then it goes on waiting.
    void load(std::size_t shard) const {
        if (shards_[shard].waits.load(std::memory_order_acquire)) load_now(shard);
    }

    /// Nowhere: it isn't there. Requires: an EpochGuard, or to be the writer. Throws: as load. Complexity: a cache miss.
    Place find(std::uint64_t id) const {
        const Cell* const cell = cell_of(id);
        return cell == nullptr ? Place{} : Place{cell->place.load(std::memory_order_seq_cst)};
    }
    /// Serial of the operation that made the value; 0: it isn't there. Requires: to be the writer.
    std::uint64_t born(std::uint64_t id) const {
        const Cell* const cell = cell_of(id);
        return cell == nullptr || cell->place.load(std::memory_order_relaxed) == 0 ? 0 : cell->born.load(std::memory_order_relaxed);
    }
    static std::size_t shard_of(std::uint64_t id) noexcept { return mix(id, 0) >> shard_shift; }
    /// The next operation on it waits less.
    void prefetch(std::uint64_t id) const noexcept {
        const std::uint64_t hash = mix(id, 0);
        if (const Table* const table = shards_[hash >> shard_shift].table.load(std::memory_order_acquire))
            __builtin_prefetch(&table->cells[hash & table->mask], 1);
    }
    /// Room for so many new ids in that shard. Throws: as load; then nothing changed.
    void prepare(std::size_t shard, std::uint64_t ids = 1);
    /// Returns where it was. Requires: `prepare` of its shard, since the last new id was set; the id isn't 0, the place somewhere.
    Place set(std::uint64_t id, Place place, std::uint64_t born) noexcept;
    /// The value lies elsewhere. Requires: it is there.
    void move(std::uint64_t id, Place place) { const_cast<Cell*>(cell_of(id))->place.store(place.word); }
    /// Returns where it was. Throws: as load.
    Place erase(std::uint64_t id);

    std::uint64_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
    ByteCount bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

    /// Calls `f(id, Place, born)` for all in the shard. Throws: as load. Requires: as find; what `f` does to the index, it does as the writer, and to ids that are there.
    template <class F>
    void for_each_in(std::size_t shard, F&& f) const {
        load(shard);
        const Table* const table = shards_[shard].table.load(std::memory_order_acquire);
        if (table == nullptr) return;
        for (std::uint64_t at = 0; at <= table->mask; ++at) {
            const std::uint64_t id = table->cells[at].id.load(std::memory_order_acquire);
            const Place place{table->cells[at].place.load(std::memory_order_acquire)};
            if (id != 0 && place) f(id, place, table->cells[at].born.load(std::memory_order_relaxed));
        }
    }

private:
    struct Cell {
        std::atomic<std::uint64_t> id;
        std::atomic<std::uint64_t> place;
        std::atomic<std::uint64_t> born;  ///< of what is there; readers ask the record
    };
    struct Table {
        std::uint64_t mask;
        Cell* cells;
        ByteCount large_bytes = 0;  ///< of memory in huge pages
    };
    struct Shard {
        std::atomic<Table*> table{nullptr};
        std::atomic<bool> waits{false};  ///< for `load`; it has no table
        std::uint64_t live = 0;
        std::uint64_t used = 0;  ///< cells that have an id
    };
    struct Retired {
        Table* table;
        std::uint64_t epoch;
    };
    static constexpr ByteCount large_bytes = 1_MiB;
    static Table* make_table(std::uint64_t cells);
    static void free_table(Table* table) noexcept;
    static constexpr unsigned shard_shift = 59;
    /// Null: the id has none.
    const Cell* cell_of(std::uint64_t id) const {
        const std::uint64_t hash = mix(id, 0);
        const Table* table = shards_[hash >> shard_shift].table.load();
        if (table == nullptr) [[unlikely]] {
            load(hash >> shard_shift);
            table = shards_[hash >> shard_shift].table.load();
            if (table == nullptr) return nullptr;
        }
        for (std::uint64_t at = hash & table->mask;; at = (at + 1) & table->mask) {
            const std::uint64_t found = table->cells[at].id.load(std::memory_order_acquire);
            if (found == id) return &table->cells[at];
            if (found == 0) return nullptr;
        }
    }
    static Cell& cell_for(Table& table, std::uint64_t id) noexcept;
    void free_retired() noexcept;
    void load_now(std::size_t shard) const;

    mutable std::array<Shard, shard_count> shards_;
    Image image_;
    mutable std::array<std::mutex, shard_count> loading_;
    std::vector<Retired> retired_;
    std::atomic<std::uint64_t> size_{0};
    mutable std::atomic<ByteCount> bytes_{0};
};

}  // namespace taiyen::logheap
