#include "logheap/id_index.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include <taiyen/base/check.hpp>

#include "base/epochs.hpp"
#include "vm/address_space.hpp"

namespace taiyen::logheap {

/// A table that is large comes in huge pages: looking something up there misses the cache, and with small pages also the processor's table of pages.
IdIndex::Table* IdIndex::make_table(std::uint64_t cells) {
    auto table = std::make_unique<Table>();
    table->mask = cells - 1;
    const ByteCount bytes = cells * sizeof(Cell);
    if (bytes >= large_bytes) {
        table->large_bytes = round_up(bytes, vm::large_step);
        std::byte* const memory = vm::map_large(table->large_bytes);
        if (memory == nullptr) throw std::bad_alloc();
        vm::prefer_huge_pages(memory, table->large_bytes);
        table->cells = reinterpret_cast<Cell*>(memory);
    } else {
        table->cells = static_cast<Cell*>(std::calloc(cells, sizeof(Cell)));
        if (table->cells == nullptr) throw std::bad_alloc();
    }
    return table.release();
}

void IdIndex::free_table(Table* table) noexcept {
    if (table->large_bytes != 0)
        vm::unmap_large(reinterpret_cast<std::byte*>(table->cells), table->large_bytes);
    else
        std::free(table->cells);
    delete table;
}

IdIndex::~IdIndex() {
    for (const Retired& retired : retired_) free_table(retired.table);
    for (Shard& shard : shards_)
        if (Table* const table = shard.table.load()) free_table(table);
}

/// That of the id, or the empty one where it would stand.
IdIndex::Cell& IdIndex::cell_for(Table& table, std::uint64_t id) noexcept {
    for (std::uint64_t at = mix(id, 0) & table.mask;; at = (at + 1) & table.mask) {
        Cell& cell = table.cells[at];
        const std::uint64_t found = cell.id.load(std::memory_order_relaxed);
        if (found == id || found == 0) return cell;
    }
}

void IdIndex::wait_in(Image image, const std::array<std::uint64_t, shard_count>& ids) {
    image_ = std::move(image);
    for (std::size_t shard = 0; shard < shard_count; ++shard) {
        if (ids[shard] == 0) continue;
        shards_[shard].waits.store(true, std::memory_order_release);
        size_.fetch_add(ids[shard], std::memory_order_relaxed);
    }
}

void IdIndex::load_now(std::size_t number) const {
    const std::lock_guard lock(loading_[number]);
    Shard& shard = shards_[number];
    if (!shard.waits.load(std::memory_order_relaxed)) return;
    const std::vector<layout::ImageCell> entries = image_(number);
    std::uint64_t cells = 8;
    while ((entries.size() + 1) * 8 > cells * 7) cells *= 2;
    Table* const made = make_table(cells);
    for (const layout::ImageCell& entry : entries) {
        Cell& cell = cell_for(*made, entry.id);
        cell.id.store(entry.id, std::memory_order_relaxed);
        cell.place.store(entry.place, std::memory_order_relaxed);
        cell.born.store(entry.born, std::memory_order_relaxed);
    }
    shard.used = shard.live = entries.size();
    bytes_.fetch_add(cells * sizeof(Cell), std::memory_order_relaxed);
    shard.table.store(made);
    shard.waits.store(false, std::memory_order_release);
}

void IdIndex::prepare(std::size_t number, std::uint64_t ids) {
    load(number);
    Shard& shard = shards_[number];
    Table* const old = shard.table.load(std::memory_order_relaxed);
    if (old != nullptr && (shard.used + ids) * 8 <= (old->mask + 1) * 7) return;
    free_retired();
    retired_.reserve(retired_.size() + 1);
    std::uint64_t cells = old == nullptr ? 8 : shard.live * 2 > old->mask ? (old->mask + 1) * 2 : old->mask + 1;
    while ((shard.live + ids) * 8 > cells * 7) cells *= 2;
    Table* const made = make_table(cells);
    if (old != nullptr) {
        for (std::uint64_t at = 0; at <= old->mask; ++at) {
            const std::uint64_t place = old->cells[at].place.load(std::memory_order_relaxed);
            if (place == 0) continue;
            const std::uint64_t known = old->cells[at].id.load(std::memory_order_relaxed);
            Cell& cell = cell_for(*made, known);
            cell.id.store(known, std::memory_order_relaxed);
            cell.place.store(place, std::memory_order_relaxed);
            cell.born.store(old->cells[at].born.load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
    }
    shard.used = shard.live;
    shard.table.store(made);  // in the one order with pins that readers of places set
    bytes_.fetch_add(cells * sizeof(Cell), std::memory_order_relaxed);
    if (old != nullptr) retired_.push_back({old, epochs::end()});
}

void IdIndex::free_retired() noexcept {
    const std::uint64_t oldest = epochs::oldest();
    std::erase_if(retired_, [&](const Retired& retired) {
        if (retired.epoch >= oldest) return false;
        bytes_.fetch_sub((retired.table->mask + 1) * sizeof(Cell), std::memory_order_relaxed);
        free_table(retired.table);
        return true;
    });
}

Place IdIndex::set(std::uint64_t id, Place place, std::uint64_t born) noexcept {
    TAIYEN_CHECK(id != 0 && place);
    Shard& shard = shards_[mix(id, 0) >> shard_shift];
    Cell& cell = cell_for(*shard.table.load(std::memory_order_relaxed), id);
    const bool is_new = cell.id.load(std::memory_order_relaxed) == 0;
    const Place before{cell.place.load(std::memory_order_relaxed)};
    cell.born.store(born, std::memory_order_relaxed);
    cell.place.store(place.word);
    if (is_new) {
        cell.id.store(id, std::memory_order_release);
        ++shard.used;
    }
    if (!before) {
        ++shard.live;
        size_.fetch_add(1, std::memory_order_relaxed);
    }
    return before;
}

Place IdIndex::erase(std::uint64_t id) {
    load(shard_of(id));
    Shard& shard = shards_[shard_of(id)];
    Table* const table = shard.table.load(std::memory_order_relaxed);
    if (table == nullptr) return {};
    Cell& cell = cell_for(*table, id);
    if (cell.id.load(std::memory_order_relaxed) == 0) return {};
    const Place before{cell.place.exchange(0)};
    if (before) {
        --shard.live;
        size_.fetch_sub(1, std::memory_order_relaxed);
    }
    return before;
}

}  // namespace taiyen::logheap
