#pragma once
/// ObjectTable: ids and the entries of their objects; an entry is the word by which an object is checked out.
///
/// A shard is an array of buckets, one cache line each with two entries; what doesn't fit stands in a chain behind the second. So a look-up of an id costs one cache miss mostly, and the word comes with it.
/// (I1) An entry's memory stays an entry's memory while the table lives; it serves another id later. Who finds an entry and takes its word afterwards compares the id then.
/// (I2) Look-ups take no lock. While somebody changes the shard one may miss an entry that is there: a miss counts only if it is found under the shard's lock.
/// (I3) A dead entry's word has the bit `dead`, alone but for `reserved` and `waking`, which late-comers may set and take back.
/// (I4) When a shard grows, entries whose word says nothing but "free" move into the new buckets; the old ones are dead then, as if their objects had been removed and added again. The others, which somebody has or waits
///      for, stay where they are: the new directory lists them (`left`). Such an entry serves no other id before the next growth: that is at most as many as the shard had when it grew, and since it grows by doubling and
///      never shrinks, all that was ever left is at most twice as many as it had when it grew last.
/// Thread rule: safe.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "vm/address_space.hpp"

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
    std::atomic<std::uintptr_t> link{0};  ///< the table's: the next entry of the chain, and what this one is
};
static_assert(sizeof(Entry) == 32);

class ObjectTable {
public:
    /// Throws: std::bad_alloc.
    explicit ObjectTable(std::size_t expected) {
        // Two buckets for each would be far more than there can be: no product below wraps around.
        if (expected > ~std::size_t{0} / (2 * sizeof(Bucket))) throw std::bad_alloc();
        std::size_t buckets = buckets_least;
        while (is_full(expected / shard_count, buckets)) buckets *= 2;
        blocks_.push_back(make_buckets(shard_count * buckets));
        Bucket* first = blocks_.back().get();
        for (Shard& shard : shards_) {
            shard.directories.push_back(std::make_unique<Directory>(first, buckets));
            shard.now.store(shard.directories.back().get(), std::memory_order_release);
            first += buckets;
        }
    }

    /// Where an id's bucket is; computed once for the stages of a look-up.
    static std::uint64_t mix(std::int64_t id) noexcept {
        std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e37'79b9'7f4a'7c15U;
        mixed ^= mixed >> 29U;
        return mixed * 0xbf58'476d'1ce4'e5b9U;
    }
    /// Ids with the same one share a bucket as long as the table is as small as it can be.
    static std::uint64_t first_bucket_of(std::int64_t id) noexcept {
        const std::uint64_t mixed = mix(id);
        return (mixed >> 58U) * buckets_least + ((mixed >> 16U) & (buckets_least - 1));
    }
    void fetch(std::uint64_t mixed) const noexcept { __builtin_prefetch(&bucket_of(*shard_of(mixed).now.load(std::memory_order_acquire), mixed), 1); }
    /// May miss what is there while the shard changes.
    Entry* look_up(std::int64_t id, std::uint64_t mixed) const noexcept {
        const Directory& directory = *shard_of(mixed).now.load(std::memory_order_acquire);
        Bucket& bucket = bucket_of(directory, mixed);
        for (Entry& entry : bucket.entries)
            if (serves(entry, id)) return &entry;
        for (Entry* entry = next_of(bucket.entries.back()); entry != nullptr; entry = next_of(*entry))
            if (serves(*entry, id)) return entry;
        if (directory.left.empty()) return nullptr;
        const auto left =
            std::lower_bound(directory.left.begin(), directory.left.end(), id, [](const Left& one, std::int64_t wanted) { return one.id < wanted; });
        // Once at most: it led to one entry when the shard grew.
        return left != directory.left.end() && left->id == id && serves(*left->entry, id) ? left->entry : nullptr;
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
        if (shard.free.empty()) add_entries(shard);
        if (is_full(shard.used, shard.directories.back()->mask + 1)) grow(shard);
        Entry& made = place(shard, *shard.directories.back(), id, word, object, mixed);
        ++shard.used;
        return {&made, true};
    }
    /// The id leads nowhere; the entry is still the caller's. Requires: the caller has it for itself.
    void unlink(Entry& entry) noexcept {
        const std::uint64_t mixed = mix(entry.id.load(std::memory_order_relaxed));
        Shard& shard = shard_of(mixed);
        const std::lock_guard lock(shard.mutex);
        const std::uintptr_t link = entry.link.load(std::memory_order_relaxed);
        entry.link.store(link & ~linked, std::memory_order_release);
        if ((link & (chained | left_behind)) == chained) {
            Entry* before = &bucket_of(*shard.directories.back(), mixed).entries.back();
            while (next_of(*before) != &entry) before = next_of(*before);
            // Whoever stands at the entry goes on from there as before.
            before->link.store((before->link.load(std::memory_order_relaxed) & flags) | (link & ~flags), std::memory_order_release);
        }
        --shard.used;
    }
    /// Requires: unlinked, dead, nobody in its queue.
    void give_back(Entry& entry) noexcept {
        Shard& shard = shard_of(mix(entry.id.load(std::memory_order_relaxed)));
        const std::lock_guard lock(shard.mutex);
        const std::uintptr_t link = entry.link.load(std::memory_order_relaxed);
        if ((link & left_behind) != 0) return;  // a directory lists it: it would be found twice
        entry.link.store(link & ~owned, std::memory_order_release);
        if ((link & chained) != 0) shard.free.push_back(&entry);
    }
    /// Calls `visit(entry)` for each that serves an id, in no order, under its shard's lock.
    template <class F>
    void for_each(F&& visit) const {
        for (const Shard& shard : shards_) {
            const std::lock_guard lock(shard.mutex);
            for_each_in(*shard.directories.back(), visit);
        }
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
    static constexpr std::size_t buckets_least = 8;
    static constexpr std::size_t entries_at_once = 32;
    static constexpr std::size_t large_page = std::size_t{2} << 20U;

    // What an entry is, in the lower bits of its link.
    static constexpr std::uintptr_t linked = 1;       ///< its id leads to it
    static constexpr std::uintptr_t owned = 2;        ///< it serves an id, or is about to be given back
    static constexpr std::uintptr_t chained = 4;      ///< in a chain, not in a bucket
    static constexpr std::uintptr_t left_behind = 8;  ///< it was taken when its shard grew
    static constexpr std::uintptr_t flags = sizeof(Entry) - 1;

    struct alignas(64) Bucket {
        std::array<Entry, 2> entries;
    };
    static_assert(sizeof(Bucket) == 64);
    struct Free {
        void operator()(Bucket* buckets) const noexcept { std::free(buckets); }
    };
    using Buckets = std::unique_ptr<Bucket, Free>;
    struct Left {
        std::int64_t id;
        Entry* entry;
    };
    struct Directory {
        Directory(Bucket* first, std::size_t count) : buckets(first), mask(count - 1) {}
        Bucket* buckets;
        std::size_t mask;
        std::vector<Left> left;  ///< of before, where they were; by id, as they may be all
    };
    struct alignas(64) Shard {
        std::atomic<Directory*> now{nullptr};
        mutable std::mutex mutex;
        std::size_t used = 0;
        std::size_t spare = 0;     ///< entries for chains: `free` has room for so many
        std::vector<Entry*> free;  ///< for chains
        /// The last one is in use; look-ups may still walk the others, which are half as large each.
        std::vector<std::unique_ptr<Directory>> directories;
        std::vector<Buckets> buckets;
        std::vector<std::unique_ptr<Entry[]>> entries;
    };

    Shard& shard_of(std::uint64_t mixed) noexcept { return shards_[mixed >> 58U]; }
    const Shard& shard_of(std::uint64_t mixed) const noexcept { return shards_[mixed >> 58U]; }
    static Bucket& bucket_of(const Directory& directory, std::uint64_t mixed) noexcept { return directory.buckets[(mixed >> 16U) & directory.mask]; }
    static Entry* next_of(const Entry& entry) noexcept {
        return reinterpret_cast<Entry*>(entry.link.load(std::memory_order_acquire) &
                                        ~flags);  // NOLINT(performance-no-int-to-ptr): it was made of one
    }
    static bool serves(const Entry& entry, std::int64_t id) noexcept {
        return entry.id.load(std::memory_order_relaxed) == id && (entry.link.load(std::memory_order_acquire) & linked) != 0;
    }
    /// Of five entries in four buckets on average, one in nine stands in a chain.
    static bool is_full(std::size_t used, std::size_t buckets) noexcept { return used >= buckets + buckets / 4; }

    /// Throws: std::bad_alloc.
    static Buckets make_buckets(std::size_t count) {
        const std::size_t bytes = count * sizeof(Bucket);
        const bool large = bytes >= large_page;
        void* const memory =
            large ? std::aligned_alloc(large_page, (bytes + large_page - 1) & ~(large_page - 1)) : std::aligned_alloc(sizeof(Bucket), bytes);
        if (memory == nullptr) throw std::bad_alloc();
        if (large) vm::prefer_huge_pages(memory, bytes);  // random look-ups miss the translations of small ones
        std::span<Bucket> made(static_cast<Bucket*>(memory), count);
        std::uninitialized_default_construct(made.begin(), made.end());
        return Buckets(made.data());
    }

    /// Requires: a free entry.
    static Entry& place(Shard& shard, Directory& directory, std::int64_t id, std::uint64_t word, void* object, std::uint64_t mixed) noexcept {
        Bucket& bucket = bucket_of(directory, mixed);
        Entry* made = nullptr;
        std::uintptr_t link = owned | linked;
        for (Entry& entry : bucket.entries) {
            const std::uintptr_t now = entry.link.load(std::memory_order_relaxed);
            if ((now & owned) != 0) continue;
            made = &entry;
            link |= now & ~flags;
            break;
        }
        Entry& last = bucket.entries.back();
        const std::uintptr_t chain = last.link.load(std::memory_order_relaxed);
        const bool in_chain = made == nullptr;
        if (in_chain) {
            made = shard.free.back();
            shard.free.pop_back();
            link |= chained | (chain & ~flags);
        }
        made->id.store(id, std::memory_order_relaxed);
        made->object.store(object, std::memory_order_relaxed);
        made->word.store(word, std::memory_order_release);
        made->link.store(link, std::memory_order_release);
        if (in_chain) last.link.store((chain & flags) | reinterpret_cast<std::uintptr_t>(made), std::memory_order_release);
        return *made;
    }

    template <class F>
    static void for_each_in(const Directory& directory, F&& visit) {
        const auto look_at = [&](Entry& entry) {
            if ((entry.link.load(std::memory_order_relaxed) & linked) != 0) visit(entry);
        };
        for (Bucket& bucket : std::span(directory.buckets, directory.mask + 1)) {
            for (Entry& entry : bucket.entries) look_at(entry);
            for (Entry* entry = next_of(bucket.entries.back()); entry != nullptr; entry = next_of(*entry)) look_at(*entry);
        }
        for (const Left& left : directory.left) look_at(*left.entry);
    }

    /// Requires: a free entry; each that moves leaves another one. Throws: std::bad_alloc, and nothing has changed.
    static void grow(Shard& shard) {
        Directory& before = *shard.directories.back();
        const std::size_t count = before.mask + 1;
        std::vector<Entry*> all;
        all.reserve(shard.used);
        for_each_in(before, [&](Entry& entry) { all.push_back(&entry); });

        Buckets buckets = make_buckets(count * 2);
        auto made = std::make_unique<Directory>(buckets.get(), count * 2);
        made->left.reserve(all.size());
        const std::size_t spare = shard.spare + 2 * count + before.left.size();
        shard.free.reserve(spare);
        shard.buckets.reserve(shard.buckets.size() + 1);
        shard.directories.reserve(shard.directories.size() + 1);
        shard.spare = spare;

        for (Entry* const entry : all) {
            // Who looks for it meanwhile finds nothing, and waits for the lock.
            const std::uintptr_t link = entry->link.load(std::memory_order_relaxed) & ~linked;
            entry->link.store(link, std::memory_order_release);
            std::uint64_t nobody = 0;
            if (!entry->word.compare_exchange_strong(nobody, word::dead, std::memory_order_acq_rel)) {
                entry->link.store(link | linked | left_behind, std::memory_order_release);
                made->left.push_back({entry->id.load(std::memory_order_relaxed), entry});
                continue;
            }
            const std::int64_t id = entry->id.load(std::memory_order_relaxed);
            place(shard, *made, id, 0, entry->object.load(std::memory_order_relaxed), mix(id));
            entry->link.store((link & ~flags) | chained, std::memory_order_release);
            shard.free.push_back(entry);  // what was left before, too: nobody looks into the list of before any more but who comes too late
        }
        std::sort(made->left.begin(), made->left.end(), [](const Left& one, const Left& other) { return one.id < other.id; });
        shard.buckets.push_back(std::move(buckets));
        shard.directories.push_back(std::move(made));
        shard.now.store(shard.directories.back().get(), std::memory_order_release);
    }
    static void add_entries(Shard& shard) {
        shard.free.reserve(shard.spare + entries_at_once);
        shard.entries.push_back(std::make_unique<Entry[]>(entries_at_once));
        shard.spare += entries_at_once;
        for (std::size_t i = entries_at_once; i-- != 0;) shard.free.push_back(&shard.entries.back()[i]);
    }

    std::array<Shard, shard_count> shards_;
    std::vector<Buckets> blocks_;  ///< the first buckets of all shards
};

}  // namespace taiyen::object
