#include "store/page_table.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"

namespace taiyen::store {
namespace {

std::uint64_t word_of(const Uuid& uuid, std::size_t index) {
    std::uint64_t word = 0;
    std::memcpy(&word, uuid.bytes.data() + index * 8, 8);
    return word;
}

std::uint64_t seed_of(const Uuid& heap, std::uint64_t what, std::uint64_t number) {
    return mix(mix(word_of(heap, 0), word_of(heap, 1) ^ what), number);
}

std::span<const std::byte> bytes_of(const TablePage& page) { return {reinterpret_cast<const std::byte*>(&page), sizeof page}; }

}  // namespace

std::uint64_t page_checksum(std::span<const std::byte> page, PageNumber number, const Uuid& heap) noexcept {
    return is_zero(page) ? 0 : checksum(page, seed_of(heap, 'P', number.value));
}

std::uint64_t table_page_checksum(const TablePage& page, const Uuid& heap) noexcept {
    return checksum(bytes_of(page).subspan(sizeof page.checksum), seed_of(heap, 'T', page.index));
}

bool is_sound(const TablePage& page, std::uint64_t index, const Uuid& heap) noexcept {
    return is_zero(bytes_of(page)) || (page.index == index && page.checksum == table_page_checksum(page, heap));
}

bool PageTable::is_loaded(std::uint64_t index) const {
    const std::lock_guard lock(mutex_);
    const auto& pages = pages_[static_cast<std::size_t>(sequence_of_table(index))];
    const std::uint64_t at = index % annex_first_table_page;
    return at < pages.size() && pages[at] != nullptr;
}

PageTable::Loaded& PageTable::load(std::uint64_t index) {
    auto& pages = pages_[static_cast<std::size_t>(sequence_of_table(index))];
    const std::uint64_t at = index % annex_first_table_page;
    if (at >= pages.size()) pages.resize(std::max<std::size_t>(at + 1, pages.size() * 2));
    auto& slot = pages[at];
    if (!slot) {
        auto fresh = std::make_unique<Loaded>();
        loader_(index, fresh->page);
        slot = std::move(fresh);
    }
    return *slot;
}

std::uint64_t PageTable::entry(PageNumber page) {
    const TablePlace place = place_of(page);
    const std::lock_guard lock(mutex_);
    return load(place.table_page).page.entries[place.entry];
}

void PageTable::set(PageNumber page, std::uint64_t checksum) {
    const TablePlace place = place_of(page);
    const std::lock_guard lock(mutex_);
    Loaded& loaded = load(place.table_page);
    if (loaded.page.entries[place.entry] == checksum) return;
    mark_changed(loaded, place.table_page);
    loaded.page.entries[place.entry] = checksum;
}

void PageTable::reserve(PageNumber page, std::size_t changes) {
    const std::lock_guard lock(mutex_);
    load(place_of(page).table_page);
    if (const std::size_t wanted = changed_.size() + changes; wanted > changed_.capacity())
        changed_.reserve(std::max(wanted, 2 * changed_.capacity()));
}

void PageTable::touch(std::uint64_t index) {
    const std::lock_guard lock(mutex_);
    mark_changed(load(index), index);
}

void PageTable::mark_changed(Loaded& loaded, std::uint64_t index) {
    if (!loaded.changed) {
        changed_.push_back(index);
        loaded.changed = true;
    }
}

void PageTable::write_changed(Generation generation, const std::function<void(const TablePage&)>& write) {
    std::sort(changed_.begin(), changed_.end());
    for (const std::uint64_t index : changed_) {
        Loaded& loaded = [&]() -> Loaded& {
            const std::lock_guard lock(mutex_);
            return load(index);
        }();
        TablePage& page = loaded.page;
        if (page.checksum != 0) root_ -= mix(index, page.checksum);
        page.index = index;
        page.generation = generation.value;
        page.checksum = table_page_checksum(page, heap_);
        root_ += mix(index, page.checksum);
        write(page);
        loaded.changed = false;
    }
    changed_.clear();
}

}  // namespace taiyen::store
