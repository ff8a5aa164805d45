#pragma once
/// LentBlocks: which scope lent a durable block to an object outside, and what its free means now.
///
/// Scopes, and the times between them, have serials, unique for one opening of the heap. A block that was moved out carries the serial of that moment. When its owner frees it:
///   still open            freed at once
///   committed             queued; freed at the start of the next scope or implicit step, so that looking at a document never makes a step
///   rolled back, undone   ignored: the block belongs to what it was moved out of, again
/// Thread rule: external lock.

#include <cstdint>
#include <vector>

namespace taiyen::change {

class LentBlocks {
public:
    enum class Fate : std::uint8_t { open, committed, rolled_back, undone };

    /// The next serial, open. Room for `spare` more is made. Throws: std::bad_alloc, Error{invalid_argument} (4 billion scopes).
    std::uint32_t begin(std::size_t spare);
    /// The same after a `begin` that left room.
    std::uint32_t begin_spare() noexcept;
    std::uint32_t last() const noexcept { return static_cast<std::uint32_t>(fates_.size()); }

    /// The serials [first, last] as far as they are `from`.
    void change(std::uint32_t first, std::uint32_t last, Fate from, Fate to) noexcept;
    Fate fate(std::uint32_t serial) const noexcept;

    /// Throws: std::bad_alloc.
    void queue(void* block, std::uint32_t serial) { queue_.push_back({block, serial, false}); }
    /// Frees what is queued and committed by `free(void*)`, forgets what was rolled back. It is queued again if `taken_back` follows instead of `kept`.
    template <class F>
    void apply(F&& free) {
        std::size_t kept = 0;
        for (Waiting& waiting : queue_) {
            const Fate now = fate(waiting.serial);
            if (now == Fate::rolled_back) continue;
            if (now == Fate::committed && !waiting.freed) {
                free(waiting.block);
                waiting.freed = true;
            }
            queue_[kept++] = waiting;
        }
        queue_.resize(kept);
    }
    void kept() noexcept {
        std::erase_if(queue_, [](const Waiting& waiting) { return waiting.freed; });
    }
    void taken_back() noexcept {
        for (Waiting& waiting : queue_) waiting.freed = false;
    }
    bool has_queued() const noexcept { return !queue_.empty(); }

private:
    struct Waiting {
        void* block;
        std::uint32_t serial;
        bool freed;  ///< in the open scope
    };
    std::vector<Fate> fates_;  ///< of serial i + 1
    std::vector<Waiting> queue_;
};

}  // namespace taiyen::change
