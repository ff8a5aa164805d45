#pragma once
/// HeldBlocks: durable blocks that an object outside the heap has taken along, and that would be lost if the process died now.
///
/// `auto x = std::move(parts.front())` leaves x with durable blocks on loan. If x is alive when its scope ends, and no word of the heap that was written since refers to a block of it, the block is *held*:
/// it stays allocated, so nobody reuses it under x, and the heap says durably that it is nobody's, so that the next process frees it.
///
/// (H1) What is held has an entry in the root directory: the name `entry_prefix` and the block's offset. The entry is written and removed in the scope, transaction or save that makes it true, so undo, redo,
///      rollback and replay need to know nothing of it: a step undone gives the block back to its owner in the heap and takes the entry away.
/// (H2) An entry is a suspicion, never a proof. Before the next process frees a block, `unreferenced_blocks` looks through the whole heap: a block that a word of the heap refers to stays, and only its entry goes.
///      So a loan or a return that was missed here costs a leak, never somebody's data. Before `close()` says that the heap is in use, `owned_outside` looks through it likewise.
/// (H3) Freeing a block removes its entry.
/// What is lent is noticed by the allocator: a copy of an allocator that lies in the heap, made for an object outside, is followed by the pointers that it may take along (`head_words`).
/// Thread rule: `lend`: a read of the heap; not beside whoever allocates or frees. `lend_block`, `let_go`: safe. Everything else: of who changes the heap.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heap/core.hpp"

namespace taiyen::heap {

/// The blocks of `suspects`, and those that only they lead to, that nothing else refers to: no named object, no word of another block, neither as an address (of the block or into it, tagged or not) nor as a
/// distance of the block's begin from the word or from the heap's begin. `outside`: blocks that objects outside refer to. Nothing in a heap without named objects, where everything may be known by its address alone.
/// Complexity: reads all live blocks. Throws: std::bad_alloc, Error{corrupt}.
std::vector<HeapOffset> unreferenced_blocks(const Engine& engine, const std::byte* span, std::span<const HeapOffset> suspects,
                                            std::span<const HeapOffset> outside, Links links = Links::addresses);

/// Those of `suspects` whose begin no word of a live block is, but for words in blocks that only suspects lead to. A standard container has a word with the begin of each of its blocks, so what is left has its owner outside.
/// Complexity: reads all live blocks. Throws: std::bad_alloc, Error{corrupt}.
std::vector<HeapOffset> owned_outside(const Engine& engine, const std::byte* span, std::span<const HeapOffset> suspects,
                                      Links links = Links::addresses);

/// The live blocks of `starts`, and all that their words lead to, ascending. Throws: std::bad_alloc.
std::vector<Block> reached_blocks(const Engine& engine, const std::byte* span, std::span<const HeapOffset> starts, Links links = Links::addresses);

class HeldBlocks {
public:
    /// No named object of a program begins so.
    static constexpr std::string_view entry_prefix = "\1held ";
    static constexpr std::string_view entry_fingerprint = "\1held";
    static std::string entry_name(HeapOffset block);
    static bool is_entry(const Root& root) { return root.fingerprint == entry_fingerprint && root.name == entry_name(root.object); }

    explicit HeldBlocks(HeapCore& core) : core_(core) {}

    /// The allocator at `home`, in the heap, is being copied for an object at `borrower`, outside.
    void lend(std::uintptr_t home, std::uintptr_t borrower) noexcept;
    /// The object outside whose allocator is at `borrower`, with durable memory on loan, has allocated more of it. Counts only where it holds something already: there are many temporary allocators.
    void lend_block(const void* block, std::uintptr_t borrower) noexcept;
    /// A block whose owner outside freed it, which was taken back: nobody may have it any more. If nothing refers to it the next process frees it.
    /// `scope`: which lent it. Requires: it is live.
    void abandon(const void* block, std::uint32_t scope) noexcept { note({reinterpret_cast<std::uintptr_t>(block), 0, 0, scope}); }
    /// Whether the block is on loan since a scope before that one, which is open.
    bool lent_before(const void* block, std::uint32_t scope) const noexcept;
    /// Its owner outside gives it up.
    void let_go(const void* block) noexcept;

    /// Whether a scope that ends has nothing to settle.
    bool is_idle() const noexcept { return lent_count_.load(std::memory_order_relaxed) == 0 && entries_.empty(); }

    /// What becomes of the blocks on loan. Make one when a scope ends, show it all that was written since something was lent, changed or not, then `finish`.
    /// Where nothing was lent what has changed will do.
    /// A word that was stored again with the value it had before may be the only one that refers to a block: a node at the place of one that was freed.
    class Settling {
    public:
        explicit Settling(HeldBlocks& held);
        /// The words there, as they are now, may refer to blocks.
        void look_at(HeapOffset offset, ByteCount length);
        /// Writes entries. False: there was nothing to write. Throws: Error{corrupt}.
        bool finish();
        /// The blocks that would get an entry now. Throws: std::bad_alloc.
        std::vector<HeapOffset> held();

    private:
        struct Watched {
            std::uintptr_t begin;
            std::uintptr_t end;
            std::uintptr_t borrower;  ///< where the object was that took it; 0: unknown, or gone
            bool entry;               ///< has one already
            bool referenced = false;
            bool linked = false;  ///< from within, to the object outside
            bool is_held() const { return begin != end && (linked || !referenced); }
        };
        struct Edge {
            std::uint32_t from;
            std::uint32_t to;
        };
        Watched* find(std::uintptr_t address);
        void refer(std::uintptr_t word, std::uintptr_t address);
        void decide();
        /// False: the address lies in no watched block.
        bool may_be_watched(std::uintptr_t address) const noexcept {
            const std::uintptr_t page = address / page_bytes % pages_known;
            return address - first_ < bytes_ && (near_[page / 64] >> page % 64 & 1U) != 0;
        }
        bool links_outside(const Watched& watched) const;

        HeldBlocks& held_;
        std::vector<Watched> watched_;  ///< ascending
        std::vector<Edge> edges_;
        std::uintptr_t first_ = 0;  ///< of all
        std::uintptr_t bytes_ = 0;
        static constexpr std::uintptr_t pages_known = 4096;
        std::array<std::uint64_t, pages_known / 64> near_{};  ///< pages of watched blocks; the address of a page modulo their number
    };

    /// Of what was lent, only these blocks are still out.
    void keep_lent(std::span<const HeapOffset> blocks) noexcept;
    /// A scope, transaction or save begins: reads entries if need be, and frees what other processes held. Does nothing that can't wait: what fails is tried again later.
    void begin(bool may_change) noexcept;
    /// What was written since `begin` stays.
    void kept() noexcept;
    /// It was taken back. `all`: and so is everything that was lent.
    void taken_back(bool all) noexcept;
    /// What was written since a scope within another one began, with that serial, was taken back, and what it lent.
    void part_taken_back(std::uint32_t scope) noexcept;
    /// The directory was changed by somebody else: undo, redo, replay.
    void reload() noexcept { stale_ = stale_ || ever_; }
    bool has_lent() const noexcept { return lent_count_.load(std::memory_order_relaxed) != 0; }
    bool has_entries() const noexcept { return !entries_.empty(); }
    /// A block was freed. Requires: !is_idle().
    void freed(const void* block) noexcept;
    /// Blocks with an entry whose owner outside is alive.
    std::vector<HeapOffset> owned() const;
    /// Entries, as far as they are known.
    std::size_t size() const noexcept { return entries_.size(); }

private:
    friend class Settling;
    /// Where a standard container has pointers to its blocks, behind its allocator: strings, vectors, deques, lists, buckets; trees, hashed nodes.
    static constexpr std::array<std::uintptr_t, 2> head_words{8, 24};
    /// The same of containers that keep distances.
    static constexpr std::array<std::uintptr_t, 4> distance_head_words{8, 16, 24, 32};
    static constexpr std::uintptr_t middle_word = 16;
    static constexpr std::uintptr_t end_word = 24;  ///< of a vector
    /// An object is no longer than this, or it is none of those that link blocks to themselves.
    static constexpr std::uintptr_t object_bytes = 64;
    struct Lent {
        std::uintptr_t block;
        std::uintptr_t source;    ///< the word of the heap that referred to it; 0: none did
        std::uintptr_t borrower;  ///< 0: nobody any more
        std::uint32_t scope;      ///< its serial
    };
    struct Entry {
        std::uintptr_t block;
        std::uintptr_t end;
        std::uintptr_t borrower;
    };

    void note(const Lent& lent) noexcept;
    void lend_by_distances(std::uintptr_t home, std::uintptr_t borrower) noexcept;
    /// Where the word at that address of the heap points to, if it is a pointer.
    std::uintptr_t target_at(std::uintptr_t word) const noexcept;
    bool is_owned(std::uintptr_t block) const;
    bool source_still_refers(const Lent& lent) const noexcept;
    bool object_still_refers(const Lent& lent) const noexcept;
    bool is_end_of_vector(std::uintptr_t home, std::uintptr_t end) const noexcept;
    bool is_string_within(std::uintptr_t home) const noexcept;
    bool is_tree_at(std::uintptr_t home) const noexcept;
    bool is_live(std::uintptr_t block) const noexcept;
    void load();
    void release_leftovers();
    std::uintptr_t base() const noexcept { return core_.ranges().durable; }
    HeapOffset offset(std::uintptr_t block) const noexcept { return {block - base()}; }

    HeapCore& core_;

    mutable std::mutex mutex_;
    std::unordered_multimap<std::uintptr_t, Lent> lent_;  ///< by block; not settled yet
    std::size_t compact_at_ = 4096;
    std::vector<std::uintptr_t> borrowers_;  ///< of entries, ascending
    std::vector<std::uintptr_t> owned_;      ///< with an owner outside, ascending; in a step that is undone they have no entry
    std::atomic<std::size_t> lent_count_{0};
    std::atomic<std::size_t> owned_count_{0};

    std::vector<Entry> entries_;             ///< ascending
    std::vector<std::uintptr_t> leftovers_;  ///< entries of processes before this one
    bool loaded_ = false;
    bool stale_ = true;
    bool ever_ = false;      ///< there was an entry
    bool touched_ = false;   ///< entries were written since `begin`
    bool released_ = false;  ///< leftovers were freed since `begin`
};

}  // namespace taiyen::heap
