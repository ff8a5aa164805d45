#include "ordered/store_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <taiyen/base/error.hpp>

#include "vm/address_space.hpp"

namespace taiyen::ordered {
namespace {

constexpr std::uint32_t slab_nodes_max = (std::uint32_t{2} << 20U) / StoreNode::bytes;
constexpr std::uint64_t retired_max = 64;
constexpr std::uint64_t retired_bytes_max = std::uint64_t{1} << 20U;

}  // namespace

StoreMemory::~StoreMemory() {
    for (Share& share : shares_) {
        free(share.waiting);
        free(share.open);
    }
    while (with_free_ != nullptr) {
        StoreSlab* const slab = with_free_;
        with_free_ = slab->next;
        free_slab(slab);
    }
}

// Nodes.

StoreNode* StoreMemory::take_node() {
    const std::lock_guard lock(mutex_);
    if (with_free_ == nullptr) {
        auto* const slab = ::new (core_.allocate(sizeof(StoreSlab), alignof(StoreSlab))) StoreSlab{};
        for (std::uint32_t nodes = next_nodes_; slab->memory == nullptr; nodes /= 2) {
            const std::size_t bytes = std::size_t{nodes} * StoreNode::bytes;
            try {
                slab->memory = static_cast<std::byte*>(core_.allocate(bytes, bytes));
                slab->nodes = nodes;
            } catch (const HeapFull&) {
                if (nodes != 1) continue;
                core_.deallocate(slab);
                throw;
            }
        }
        if (slab->nodes == slab_nodes_max && core_.pages() != PageSize::base) vm::prefer_huge_pages(slab->memory, slab_nodes_max * StoreNode::bytes);
        next_nodes_ = std::min(next_nodes_ * 2, slab_nodes_max);
        slab_bytes_.fetch_add(std::uint64_t{slab->nodes} * StoreNode::bytes, std::memory_order_relaxed);
        with_free_ = slab;
    }
    StoreSlab& slab = *with_free_;
    // Nodes that nobody had yet are not touched before.
    StoreNode* node = slab.free;
    if (node != nullptr) {
        slab.free = node->next();
    } else {
        node = reinterpret_cast<StoreNode*>(slab.memory + std::size_t{slab.fresh++} * StoreNode::bytes);
        node->set_slab(&slab);
    }
    if (++slab.taken == slab.nodes) {
        with_free_ = slab.next;
        if (with_free_ != nullptr) with_free_->previous = nullptr;
    }
    nodes_.fetch_add(1, std::memory_order_relaxed);
    node->set_version(0);
    return node;
}

void StoreMemory::free_node(StoreNode* node) noexcept {
    const std::lock_guard lock(mutex_);
    StoreSlab* const slab = node->slab();
    node->set_next(slab->free);
    slab->free = node;
    nodes_.fetch_sub(1, std::memory_order_relaxed);
    if (slab->taken-- == slab->nodes) {
        slab->previous = nullptr;
        slab->next = with_free_;
        if (with_free_ != nullptr) with_free_->previous = slab;
        with_free_ = slab;
    }
    if (slab->taken != 0 || (slab->next == nullptr && slab->previous == nullptr)) return;
    if (slab->next != nullptr) slab->next->previous = slab->previous;
    (slab->previous != nullptr ? slab->previous->next : with_free_) = slab->next;
    free_slab(slab);
}

void StoreMemory::free_slab(StoreSlab* slab) noexcept {
    slab_bytes_.fetch_sub(std::uint64_t{slab->nodes} * StoreNode::bytes, std::memory_order_relaxed);
    core_.deallocate(slab->memory);
    core_.deallocate(slab);
}

// Blocks.

StoreBlock* StoreMemory::make_block(std::string_view text) {
    auto* const block = ::new (core_.allocate(sizeof(StoreBlock) + text.size(), alignof(StoreBlock))) StoreBlock{nullptr, text.size()};
    if (!text.empty()) std::memcpy(block->data(), text.data(), text.size());
    return block;
}

// What was taken out.

StoreMemory::Limbo StoreMemory::due(Share& share, std::uint64_t count, std::uint64_t bytes) noexcept {
    Limbo free;
    if (share.waiting.count != 0 && share.tag < epochs::oldest()) free = std::exchange(share.waiting, {});
    if (share.waiting.count == 0 && share.open.count != 0 && (share.open.count >= count || share.open.bytes >= bytes)) {
        share.waiting = std::exchange(share.open, {});
        share.tag = epochs::end();
    }
    return free;
}

void StoreMemory::retire(const EpochSlot& slot, StoreBlock* block) noexcept {
    if (block == nullptr) return;
    Share& share = share_of(slot);
    Limbo due_now;
    {
        const std::lock_guard lock(share.mutex);
        block->next = share.open.blocks;
        share.open.blocks = block;
        ++share.open.count;
        share.open.bytes += block->bytes;
        if (share.open.count >= retired_max || share.open.bytes >= retired_bytes_max) due_now = due(share, retired_max, retired_bytes_max);
    }
    free(due_now);
}

void StoreMemory::retire(const EpochSlot& slot, StoreNode* node) noexcept {
    Share& share = share_of(slot);
    Limbo due_now;
    {
        const std::lock_guard lock(share.mutex);
        node->set_next(share.open.nodes);
        share.open.nodes = node;
        ++share.open.count;
        share.open.bytes += StoreNode::bytes;
        if (share.open.count >= retired_max || share.open.bytes >= retired_bytes_max) due_now = due(share, retired_max, retired_bytes_max);
    }
    free(due_now);
}

void StoreMemory::collect() noexcept {
    for (Share& share : shares_) {
        for (int turn = 0; turn != 3; ++turn) {  // what waits, what becomes what waits, and that
            Limbo due_now;
            {
                const std::lock_guard lock(share.mutex);
                due_now = due(share, 0, 0);
            }
            free(due_now);
        }
    }
}

void StoreMemory::free(const Limbo& limbo) noexcept {
    for (StoreBlock* block = limbo.blocks; block != nullptr;) free_block(std::exchange(block, block->next));
    for (StoreNode* node = limbo.nodes; node != nullptr;) free_node(std::exchange(node, node->next()));
}

std::uint64_t StoreMemory::keys() const noexcept {
    std::int64_t keys = 0;
    for (const Share& share : shares_) keys += share.keys.load(std::memory_order_relaxed);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(keys, 0));
}

std::uint64_t StoreMemory::retired() const noexcept {
    std::uint64_t count = 0;
    for (const Share& share : shares_) {
        const std::lock_guard lock(share.mutex);
        count += share.open.count + share.waiting.count;
    }
    return count;
}

}  // namespace taiyen::ordered
