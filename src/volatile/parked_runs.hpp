#pragma once
/// Blocks of 2 to 32 KiB that a thread has freed and keeps for its next requests, without the heap's lock. For the engine they are live.
///
/// (P1) What is allocated for such a request gets a mark in the note of the page where it begins, which nobody else uses in the engine's segments: where, its size, and whether it is live or
///      parked. No two of them begin in the same page: each is longer than half of one. Live → parked is one atomic exchange, so of two frees one is refused, whichever threads they come from.
/// (P2) A mark goes before the engine frees or resizes the block: then the engine alone knows it.
/// Thread rule: one thread, its owner; under the heap's lock whoever holds that, while it has no owner. Marks: safe.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "volatile/owned_segments.hpp"

namespace taiyen::heap {

/// The mark of a page, as the block at that granule sees it; 0: none. Two bits of state, the block's granules from bit 2 on, and from bit 24 on its first granule within the page.
class RunMark {
public:
    enum class State : std::uint32_t { none = 0, live = 1, parked = 2 };

    RunMark(const OwnedMap& map, std::uint64_t granule)
        : word_(map.notes[granule / layout::page_granules].next), start_(static_cast<std::uint32_t>(granule % layout::page_granules) << start_shift) {
    }

    State state() const { return state_of(word_.load(std::memory_order_acquire)); }
    void set_live(std::uint32_t granules) { word_.store(word(granules, State::live), std::memory_order_release); }
    void revive() { set_live(granules_of(word_.load(std::memory_order_relaxed))); }
    /// No more a mark of this block; another one's stays.
    void clear() {
        if (state() != State::none) word_.store(0, std::memory_order_release);
    }
    /// From live to parked: granules of the block. 0: it wasn't live.
    std::uint32_t park() {
        std::uint32_t seen = word_.load(std::memory_order_acquire);
        if (state_of(seen) != State::live) return 0;
        const std::uint32_t granules = granules_of(seen);
        return word_.compare_exchange_strong(seen, word(granules, State::parked), std::memory_order_acq_rel) ? granules : 0;
    }

private:
    static constexpr unsigned start_shift = 24;
    static_assert(layout::page_granules <= 256);

    State state_of(std::uint32_t word) const {
        return (word & ~((std::uint32_t{1} << start_shift) - 1)) == start_ ? static_cast<State>(word & 3U) : State::none;
    }
    static std::uint32_t granules_of(std::uint32_t word) { return (word & ((std::uint32_t{1} << start_shift) - 1)) >> 2U; }
    std::uint32_t word(std::uint32_t granules, State state) const { return start_ | granules << 2U | static_cast<std::uint32_t>(state); }

    std::atomic_ref<std::uint32_t> word_;
    const std::uint32_t start_;
};

class ParkedRuns {
public:
    static constexpr ByteCount request_min = ByteCount{2049};  ///< smaller ones are the segments' matter
    static constexpr ByteCount request_max = ByteCount{32} << 10U;
    static constexpr ByteCount bytes_max = ByteCount{1} << 20U;

    static bool serves(ByteCount bytes, ByteCount alignment) { return bytes - request_min <= request_max - request_min && alignment <= page_bytes; }

    /// A block of at least `bytes` and little more, at a multiple of `alignment`; null: none.
    std::byte* take(ByteCount bytes, ByteCount alignment) noexcept {
        const auto wanted = static_cast<std::uint32_t>((bytes + layout::granule_bytes - 1) / layout::granule_bytes);
        const std::uint32_t fitting = wanted + wanted / 16;
        // Nearly a page: a whole one wastes no more than an eighth.
        const std::uint32_t most = wanted > layout::page_granules - layout::page_granules / 8 ? std::max(fitting, layout::page_granules) : fitting;
        for (unsigned bin = bin_of(wanted); bin < bins && bin <= bin_of(most); ++bin) {
            Bin& from = bins_[bin];
            for (unsigned at = from.count, tries = 4; at-- > 0 && tries > 0; --tries) {
                std::byte* const block = from.blocks[at];
                if (from.granules[at] < wanted || from.granules[at] > most || reinterpret_cast<std::uintptr_t>(block) % alignment != 0) continue;
                bytes_ -= from.granules[at] * layout::granule_bytes;
                --from.count;
                from.blocks[at] = from.blocks[from.count];
                from.granules[at] = from.granules[from.count];
                return block;
            }
        }
        return nullptr;
    }
    /// False: no room; see relieve(). Requires: granules_min ≤ granules ≤ granules_max, and the block is marked as parked.
    bool put(std::byte* block, std::uint32_t granules) noexcept {
        Bin& to = bins_[bin_of(granules)];
        if (to.count == slots || bytes_ + granules * layout::granule_bytes > bytes_max) return false;
        to.blocks[to.count] = block;
        to.granules[to.count++] = static_cast<std::uint16_t>(granules);
        bytes_ += granules * layout::granule_bytes;
        return true;
    }
    /// Gives the older half of each bin, or all, to `give_back(block)`.
    template <class GiveBack>
    void relieve(bool all, const GiveBack& give_back) noexcept {
        for (Bin& bin : bins_) {
            const unsigned count = all ? bin.count : (bin.count + 1) / 2;
            for (unsigned i = 0; i < count; ++i) {
                bytes_ -= bin.granules[i] * layout::granule_bytes;
                give_back(bin.blocks[i]);
            }
            std::copy(bin.blocks.begin() + count, bin.blocks.begin() + bin.count, bin.blocks.begin());
            std::copy(bin.granules.begin() + count, bin.granules.begin() + bin.count, bin.granules.begin());
            bin.count -= count;
        }
    }
    /// Blocks above this size are not parked, whoever allocated them.
    static constexpr std::uint32_t granules_max = static_cast<std::uint32_t>(request_max / layout::granule_bytes);
    static constexpr std::uint32_t granules_min = layout::page_granules / 2 + 1;

private:
    static constexpr unsigned slots = 64;
    static constexpr unsigned bins = 33;  ///< eight for each doubling from half a page on
    struct Bin {
        std::uint32_t count = 0;
        std::array<std::uint16_t, slots> granules{};
        std::array<std::byte*, slots> blocks{};
    };
    static constexpr unsigned bin_of(std::uint32_t granules) {
        const unsigned doubling = static_cast<unsigned>(std::bit_width(granules)) - 8;
        return doubling * 8 + ((granules - (128U << doubling)) >> (4 + doubling));
    }
    static_assert(layout::page_granules == 256);

    ByteCount bytes_ = 0;
    std::array<Bin, bins> bins_{};
};

}  // namespace taiyen::heap
