#pragma once
/// The checksum table in memory: one entry per page, table pages loaded on first use.
///
/// (I1) An entry is the checksum of the page as the newest save left it (also while that save stands in the ring only).
/// (I2) `root` is the sum over the non-zero table pages, as they were last written out, of mix(index, checksum).
/// Thread rule: external lock; but `entry` may be called beside everything else.

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/uuid.hpp"
#include "store/geometry.hpp"
#include "store/heap_layout.hpp"

namespace taiyen::store {

/// Checksum of a page's bytes bound to its place and heap; 0 for a zero page.
std::uint64_t page_checksum(std::span<const std::byte> page, PageNumber number, const Uuid& heap) noexcept;
std::uint64_t table_page_checksum(const TablePage& page, const Uuid& heap) noexcept;
/// A table page is sound if it is all zero, or its checksum and index are right.
bool is_sound(const TablePage& page, std::uint64_t index, const Uuid& heap) noexcept;

/// Calls `visit(entry, run, is_zero)` for the runs of pages, among the first `count` of those that the table page covers, that are zero, or aren't.
template <class F>
void for_each_alike(const TablePage& table, std::uint64_t count, F&& visit) {
    for (std::uint64_t i = 0, run = 0; i < count; i += run) {
        const bool is_zero = table.entries[i] == 0;
        for (run = 1; i + run < count && (table.entries[i + run] == 0) == is_zero; ++run) {}
        visit(i, run, is_zero);
    }
}

class PageTable {
public:
    /// Gives the sound table page `index` as the files hold it, or throws.
    using Loader = std::function<void(std::uint64_t index, TablePage& page)>;

    PageTable(const Uuid& heap, Loader loader, std::uint64_t root) : heap_(heap), loader_(std::move(loader)), root_(root) {}

    std::uint64_t entry(PageNumber page);
    void set(PageNumber page, std::uint64_t checksum);
    /// `set` of that page, and of so many more, takes no memory from now on. Throws: std::bad_alloc, and what the loader throws.
    void reserve(PageNumber page, std::size_t changes);
    /// The table page counts as changed, whatever its entries.
    void touch(std::uint64_t index);
    const TablePage& page(std::uint64_t index) {
        const std::lock_guard lock(mutex_);
        return load(index).page;
    }
    bool is_loaded(std::uint64_t index) const;
    /// Whether it differs from what the files have. Requires: it is loaded.
    bool is_changed(std::uint64_t index) {
        const std::lock_guard lock(mutex_);
        return load(index).changed;
    }

    /// Seals each changed table page (generation, checksum, root) and gives it to `write`; afterwards none is changed.
    void write_changed(Generation generation, const std::function<void(const TablePage&)>& write);
    std::uint64_t root() const { return root_; }
    void set_root(std::uint64_t root) { root_ = root; }
    const Uuid& heap() const { return heap_; }

private:
    struct Loaded {
        TablePage page;
        bool changed = false;
    };
    Loaded& load(std::uint64_t index);
    void mark_changed(Loaded& loaded, std::uint64_t index);

    Uuid heap_;
    Loader loader_;
    std::uint64_t root_;
    mutable std::mutex mutex_;                                   ///< guards which pages are loaded, and their entries
    std::array<std::vector<std::unique_ptr<Loaded>>, 2> pages_;  ///< of the span, of the annex
    std::vector<std::uint64_t> changed_;
};

}  // namespace taiyen::store
