#pragma once
/// HeldBlocks: durable blocks that objects outside the heap have taken along.
///
/// `auto x = std::move(parts.front())` leaves x with durable blocks on loan. They stay allocated while x lives, and nothing in the heap owns them: if the process ends first they are a leak, which `reclaim` frees.
/// What is here is in memory only, for those who would pull the blocks away under x: `close()` and `compact()`.
///
/// (H1) The allocator notices a loan: a copy of one that lies in the heap, made for an object outside, is followed by the pointers that it may take along (`head_words`). Those blocks are suspects.
/// (H2) `settle` drops the suspects that the heap has again: it looks where the containers lie that may have got them (`watch`).
/// (H3) A suspicion is no proof. Whoever needs one asks `owned_outside`, which reads the whole heap. So what was missed here costs that search, or lets a heap close that is in use; never anybody's data.
/// Thread rule: `lend`, `settle`: a read of the heap; not beside whoever allocates or frees. The rest: safe.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "heap/core.hpp"

namespace taiyen::heap {

/// Those of `suspects` whose begin no word of a live block is, but for words in blocks that only suspects lead to. A standard container has a word with the begin of each of its blocks, so what is left has its owner outside.
/// Complexity: reads all live blocks. Throws: std::bad_alloc, Error{corrupt}.
std::vector<HeapOffset> owned_outside(const Engine& engine, const std::byte* span, std::span<const HeapOffset> suspects,
                                      Links links = Links::addresses);

/// The live blocks of `starts`, and all that their words lead to, ascending. Throws: std::bad_alloc.
std::vector<Block> reached_blocks(const Engine& engine, const std::byte* span, std::span<const HeapOffset> starts, Links links = Links::addresses);

class HeldBlocks {
public:
    explicit HeldBlocks(HeapCore& core) : core_(core) {}

    /// The allocator at `home`, in the heap, is being copied for an object outside.
    void lend(std::uintptr_t home) noexcept;
    /// An object outside that has durable memory on loan has allocated more of it.
    void lend_block(const void* block) noexcept { suspect(reinterpret_cast<std::uintptr_t>(block)); }
    /// An allocator was made at `home`, in the heap, for an object that may have got what another one had.
    void watch(std::uintptr_t home) noexcept {
        if (!is_idle()) [[unlikely]]
            note(home);
    }
    /// A block was freed, or its owner outside gives it up.
    void freed(const void* block) noexcept;
    /// What was lent since the scope with that serial began belongs to the heap again.
    void taken_back(std::uint32_t scope) noexcept;
    /// A scope ends, or the heap is saved: forgets the suspects that it has again.
    void settle() noexcept;

    /// Whether anything may have been lent since the heap was opened, remembered or not.
    bool has_lent() const noexcept { return has_lent_.load(std::memory_order_relaxed); }
    /// Whether there are no suspects.
    bool is_idle() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
    /// How many there are.
    std::size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }
    /// Ascending. Throws: std::bad_alloc.
    std::vector<HeapOffset> suspects() const;

private:
    /// Where a standard container has pointers to its blocks, behind its allocator: strings, vectors, deques, lists, buckets; trees, hashed nodes.
    static constexpr std::array<std::uintptr_t, 2> head_words{8, 24};
    /// The same of containers that keep distances.
    static constexpr std::array<std::uintptr_t, 4> distance_head_words{8, 16, 24, 32};
    static constexpr std::uintptr_t middle_word = 16;
    static constexpr std::uintptr_t end_word = 24;  ///< of a vector
    /// Around its allocator an object has the words that refer to its blocks, as far as they are known: a deque's are far behind.
    static constexpr std::uintptr_t bytes_before = 16;
    static constexpr std::uintptr_t bytes_behind = 88;
    /// What is beyond is not suspected: memory stays bounded.
    static constexpr std::size_t suspects_max = std::size_t{1} << 20U;
    static constexpr std::size_t watched_max = 4096;
    static constexpr std::size_t looked_into_max = 1024;
    static constexpr std::uintptr_t node_bytes = 32;  ///< of one without an element

    void note(std::uintptr_t home) noexcept;
    void lend_by_distances(std::uintptr_t home) noexcept;
    bool is_end_of_vector(std::uintptr_t home, std::uintptr_t end) const noexcept;
    bool is_string_within(std::uintptr_t home) const noexcept;
    bool is_tree_at(std::uintptr_t home) const noexcept;
    bool is_live(std::uintptr_t block) const noexcept;
    bool is_linked_within(std::uintptr_t block) const noexcept;
    void suspect(std::uintptr_t block) noexcept;
    /// Forgets what these have. Requires: the mutex.
    void look_at(std::span<const std::uintptr_t> homes) noexcept;
    void count() noexcept { count_.store(suspects_.size(), std::memory_order_relaxed); }
    std::uintptr_t base() const noexcept { return core_.ranges().durable; }

    HeapCore& core_;

    mutable std::mutex mutex_;
    std::unordered_map<std::uintptr_t, std::uint32_t> suspects_;  ///< by block; the serial of the scope
    std::vector<std::uintptr_t> new_suspects_;                    ///< since the last `settle`, the first of them
    std::vector<std::uintptr_t> watched_;
    std::atomic<std::size_t> count_{0};
    std::atomic<bool> watches_{false};
    std::atomic<bool> has_lent_{false};
};

}  // namespace taiyen::heap
