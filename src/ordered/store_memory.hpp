#pragma once
/// StoreMemory: nodes and blocks of an ordered store, out of a volatile heap; keeps back what readers may still see.
///
/// Nodes come in slabs that double up to 2 MiB, which ask for huge pages. A slab without nodes goes back to the heap, but for one.
/// What was taken out waits in one of sixteen lists, by thread, until its epoch has passed (epochs.hpp): one list grows, the one before waits.
/// Thread rule: safe.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/epochs.hpp"
#include "ordered/store_node.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::ordered {

/// Nodes that lie side by side.
struct StoreSlab {
    StoreNode* free;  ///< had by somebody before; linked by next()
    StoreSlab* next;  ///< of the slabs that have free nodes
    StoreSlab* previous;
    std::uint32_t nodes;
    std::uint32_t taken;
    std::uint32_t fresh;  ///< so many of the first have been taken
    std::byte* memory;
};

class StoreMemory {
public:
    explicit StoreMemory(heap::VolatileCore& core) noexcept : core_(core) {}
    StoreMemory(const StoreMemory&) = delete;
    StoreMemory& operator=(const StoreMemory&) = delete;
    /// Requires: all nodes and blocks were freed or retired, and nobody reads.
    ~StoreMemory();

    /// Throws: HeapFull.
    StoreNode* take_node();
    void free_node(StoreNode* node) noexcept;
    /// With that text in it. Throws: HeapFull.
    StoreBlock* make_block(std::string_view text);
    void free_block(StoreBlock* block) noexcept { core_.deallocate(block); }

    /// Frees it when no reader can see it any more. Requires: new readers don't find it. Null: nothing happens.
    void retire(const EpochSlot& slot, StoreBlock* block) noexcept;
    void retire(const EpochSlot& slot, StoreNode* node) noexcept;
    /// Frees what no reader can see any more.
    void collect() noexcept;

    void count_keys(const EpochSlot& slot, std::int64_t added) noexcept { share_of(slot).keys.fetch_add(added, std::memory_order_relaxed); }
    std::uint64_t keys() const noexcept;
    std::uint64_t nodes() const noexcept { return nodes_.load(std::memory_order_relaxed); }
    std::uint64_t slab_bytes() const noexcept { return slab_bytes_.load(std::memory_order_relaxed); }
    /// Nodes and blocks.
    std::uint64_t retired() const noexcept;

private:
    struct Limbo {
        StoreBlock* blocks = nullptr;
        StoreNode* nodes = nullptr;
        std::uint64_t count = 0;
        std::uint64_t bytes = 0;
    };
    /// What threads with the same lowest bits of their numbers share.
    struct alignas(64) Share {
        mutable std::mutex mutex;
        Limbo open;
        Limbo waiting;
        std::uint64_t tag = 0;  ///< epoch that must have passed before what waits is freed
        std::atomic<std::int64_t> keys{0};
    };
    static constexpr std::uint32_t share_count = 16;

    Share& share_of(const EpochSlot& slot) noexcept { return shares_[slot.number % share_count]; }
    /// Takes what can be freed; under the share's lock.
    static Limbo due(Share& share, std::uint64_t count, std::uint64_t bytes) noexcept;
    void free(const Limbo& limbo) noexcept;
    void free_slab(StoreSlab* slab) noexcept;

    heap::VolatileCore& core_;
    std::mutex mutex_;  ///< of the slabs
    StoreSlab* with_free_ = nullptr;
    std::uint32_t next_nodes_ = 16;
    std::atomic<std::uint64_t> nodes_{0};
    std::atomic<std::uint64_t> slab_bytes_{0};
    std::array<Share, share_count> shares_;
};

}  // namespace taiyen::ordered
