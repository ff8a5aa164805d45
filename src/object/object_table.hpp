#pragma once
/// ObjectTable: ids and the entries of their objects; an entry is the word by which an object is checked out.
///
/// (I1) Entries stay where they are, and their memory stays entries' memory while the table lives; it serves another id later. Who finds an entry and takes its word afterwards compares the id then.
/// (I2) Look-ups take no lock. While somebody changes the shard one may miss an entry that is there: a miss counts only if it is found under the shard's lock.
/// (I3) A dead entry's word has the bit `dead`, alone but for `reserved` and `waking`, which late-comers may set and take back.
/// Thread rule: safe.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace taiyen::object {

namespace word {
inline constexpr std::uint64_t one_reader = 1;
inline constexpr std::uint64_t readers = (std::uint64_t{1} << 31U) - 1;
inline constexpr std::uint64_t writer = std::uint64_t{1} << 31U;
inline constexpr std::uint64_t waiters = std::uint64_t{1} << 32U;   ///< somebody stands in its queue
inline constexpr std::uint64_t waking = std::uint64_t{1} << 33U;    ///< somebody was woken for it and hasn't tried yet: no need to wake another one
inline constexpr std::uint64_t reserved = std::uint64_t{1} << 34U;  ///< for who goes first
inline constexpr std::uint64_t loading = std::uint64_t{1} << 35U;
inline constexpr std::uint64_t dead = std::uint64_t{1} << 36U;
}  // namespace word

struct alignas(32) Entry {
    std::atomic<std::uint64_t> word{word::dead};
    std::atomic<std::int64_t> id{0};
    std::atomic<void*> object{nullptr};
    Entry* next_free = nullptr;
};
static_assert(sizeof(Entry) == 32);

class ObjectTable {
public:
    explicit ObjectTable(std::size_t expected) {
        std::size_t slots = slots_least;
        while (slots * 3 / 5 < expected / shard_count) slots *= 2;
        for (Shard& shard : shards_) replace(shard, slots);
    }

    /// Where an id's slot is; computed once for the stages of a look-up.
    static std::uint64_t mix(std::int64_t id) noexcept {
        std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e37'79b9'7f4a'7c15U;
        mixed ^= mixed >> 29U;
        return mixed * 0xbf58'476d'1ce4'e5b9U;
    }
    void fetch_slot(std::uint64_t mixed) const noexcept {
        const Directory& directory = *shard_of(mixed).now.load(std::memory_order_acquire);
        __builtin_prefetch(&directory.slots[(mixed >> tag_bits) & directory.mask]);
    }
    void fetch_entry(std::uint64_t mixed) const noexcept {
        const Directory& directory = *shard_of(mixed).now.load(std::memory_order_acquire);
        const std::uint64_t slot = directory.slots[(mixed >> tag_bits) & directory.mask].load(std::memory_order_relaxed);
        if (slot != 0) __builtin_prefetch(entry_in(slot), 1);
    }
    /// May miss what is there while the shard changes.
    Entry* look_up(std::int64_t id, std::uint64_t mixed) const noexcept {
        const Directory& directory = *shard_of(mixed).now.load(std::memory_order_acquire);
        const std::size_t home = (mixed >> tag_bits) & directory.mask;
        for (std::size_t step = 0; step <= directory.mask; ++step) {
            const std::uint64_t slot = directory.slots[(home + step) & directory.mask].load(std::memory_order_acquire);
            if (slot == 0) return nullptr;
            if (slot >> 48U != (mixed & tag_mask)) continue;
            Entry* const entry = entry_in(slot);
            if (entry->id.load(std::memory_order_relaxed) == id) return entry;
        }
        return nullptr;
    }
    Entry* find(std::int64_t id) const {
        const std::uint64_t mixed = mix(id);
        if (Entry* const found = look_up(id, mixed)) return found;
        const std::lock_guard lock(shard_of(mixed).mutex);
        return look_up(id, mixed);
    }

    /// The id's entry, and whether it is new: with that word and object then. Throws: std::bad_alloc.
    std::pair<Entry*, bool> insert(std::int64_t id, std::uint64_t word, void* object) {
        const std::uint64_t mixed = mix(id);
        Shard& shard = shard_of(mixed);
        const std::lock_guard lock(shard.mutex);
        if (Entry* const found = look_up(id, mixed)) return {found, false};
        if ((shard.used + 1) * 5 > (shard.now.load(std::memory_order_relaxed)->mask + 1) * 3) grow(shard);
        if (shard.free == nullptr) add_entries(shard);
        Entry* const made = std::exchange(shard.free, shard.free->next_free);
        made->id.store(id, std::memory_order_relaxed);
        made->object.store(object, std::memory_order_relaxed);
        made->word.store(word, std::memory_order_release);
        place(*shard.now.load(std::memory_order_relaxed), *made, mixed);
        ++shard.used;
        return {made, true};
    }
    /// The id leads nowhere; the entry is still the caller's. Requires: the caller has it for itself.
    void unlink(Entry& entry) noexcept {
        const std::uint64_t mixed = mix(entry.id.load(std::memory_order_relaxed));
        Shard& shard = shard_of(mixed);
        const std::lock_guard lock(shard.mutex);
        Directory& directory = *shard.now.load(std::memory_order_relaxed);
        std::size_t hole = (mixed >> tag_bits) & directory.mask;
        while (entry_in(directory.slots[hole].load(std::memory_order_relaxed)) != &entry) hole = (hole + 1) & directory.mask;
        for (std::size_t next = hole;;) {
            next = (next + 1) & directory.mask;
            const std::uint64_t slot = directory.slots[next].load(std::memory_order_relaxed);
            if (slot == 0) break;
            const std::size_t home = (mix(entry_in(slot)->id.load(std::memory_order_relaxed)) >> tag_bits) & directory.mask;
            if (((next - home) & directory.mask) < ((next - hole) & directory.mask)) continue;  // it would come to lie before its home
            directory.slots[hole].store(slot, std::memory_order_release);
            hole = next;
        }
        directory.slots[hole].store(0, std::memory_order_release);
        --shard.used;
    }
    /// Requires: unlinked, dead, nobody in its queue.
    void give_back(Entry& entry) noexcept {
        Shard& shard = shard_of(mix(entry.id.load(std::memory_order_relaxed)));
        const std::lock_guard lock(shard.mutex);
        entry.next_free = shard.free;
        shard.free = &entry;
    }
    std::uint64_t size() const {
        std::uint64_t sum = 0;
        for (const Shard& shard : shards_) {
            const std::lock_guard lock(shard.mutex);
            sum += shard.used;
        }
        return sum;
    }

private:
    static constexpr std::size_t shard_count = 64;
    static constexpr std::size_t slots_least = 16;
    static constexpr std::size_t entries_at_once = 128;
    static constexpr unsigned tag_bits = 16;
    static constexpr std::uint64_t tag_mask = 0xffff;

    /// Slots: an entry's address, and above it the tag of its id. Linear probing, no tombstones.
    struct Directory {
        explicit Directory(std::size_t count) : mask(count - 1), slots(std::make_unique<std::atomic<std::uint64_t>[]>(count)) {}
        std::size_t mask;
        std::unique_ptr<std::atomic<std::uint64_t>[]> slots;
    };
    struct alignas(64) Shard {
        std::atomic<Directory*> now{nullptr};
        mutable std::mutex mutex;
        std::size_t used = 0;
        Entry* free = nullptr;
        /// The last one is in use; look-ups may still walk the others, which are half as large each.
        std::vector<std::unique_ptr<Directory>> directories;
        std::vector<std::unique_ptr<Entry[]>> entries;
    };

    static Entry* entry_in(std::uint64_t slot) noexcept {
        return reinterpret_cast<Entry*>(slot & ((std::uint64_t{1} << 48U) - 1));  // NOLINT(performance-no-int-to-ptr): it was made of one
    }
    Shard& shard_of(std::uint64_t mixed) noexcept { return shards_[mixed >> 58U]; }
    const Shard& shard_of(std::uint64_t mixed) const noexcept { return shards_[mixed >> 58U]; }

    static void place(Directory& directory, Entry& entry, std::uint64_t mixed) noexcept {
        std::size_t at = (mixed >> tag_bits) & directory.mask;
        while (directory.slots[at].load(std::memory_order_relaxed) != 0) at = (at + 1) & directory.mask;
        directory.slots[at].store(reinterpret_cast<std::uintptr_t>(&entry) | (mixed & tag_mask) << 48U, std::memory_order_release);
    }
    static void replace(Shard& shard, std::size_t slots) {
        shard.directories.push_back(std::make_unique<Directory>(slots));
        shard.now.store(shard.directories.back().get(), std::memory_order_release);
    }
    static void grow(Shard& shard) {
        const Directory& before = *shard.now.load(std::memory_order_relaxed);
        auto made = std::make_unique<Directory>((before.mask + 1) * 2);
        for (std::size_t i = 0; i <= before.mask; ++i) {
            const std::uint64_t slot = before.slots[i].load(std::memory_order_relaxed);
            if (slot != 0) place(*made, *entry_in(slot), mix(entry_in(slot)->id.load(std::memory_order_relaxed)));
        }
        shard.directories.push_back(std::move(made));
        shard.now.store(shard.directories.back().get(), std::memory_order_release);
    }
    static void add_entries(Shard& shard) {
        shard.entries.push_back(std::make_unique<Entry[]>(entries_at_once));
        Entry* const made = shard.entries.back().get();
        for (std::size_t i = entries_at_once; i-- != 0;) {
            made[i].next_free = shard.free;
            shard.free = &made[i];
        }
    }

    std::array<Shard, shard_count> shards_;
};

}  // namespace taiyen::object
