#pragma once
/// Blocks of 4 to 32 KiB that a thread has freed and keeps for its next requests, without the heap's lock. For the engine they are live.
///
/// (P1) What is allocated for such a request at the beginning of a page gets a mark in that page's note, which nobody else uses in the engine's segments: its size, and whether
///      it is live or parked. Live → parked is one atomic exchange, so of two frees one is refused, whichever threads they come from.
/// (P2) A mark goes before the engine frees or resizes the block: then the engine alone knows it.
/// Thread rule: one thread, its owner; under the heap's lock whoever holds that, while it has no owner. Marks: safe.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "heap/owned_segments.hpp"

namespace taiyen::heap {

/// The mark of a page where such a block begins; 0: none.
class RunMark {
public:
    enum class State : std::uint32_t { none = 0, live = 1, parked = 2 };

    RunMark(const OwnedMap& map, std::uint64_t granule) : word_(map.notes[granule / layout::page_granules].next) {}
    static bool may_have_one(std::uint64_t granule) { return granule % layout::page_granules == 0; }

    State state() const { return static_cast<State>(word_.load(std::memory_order_acquire) & 3U); }
    void set_live(std::uint32_t granules) { word_.store(granules << 2U | static_cast<std::uint32_t>(State::live), std::memory_order_release); }
    void revive() { set_live(word_.load(std::memory_order_relaxed) >> 2U); }
    void clear() { word_.store(0, std::memory_order_release); }
    /// From live to parked: granules of the block. 0: it wasn't live.
    std::uint32_t park() {
        std::uint32_t seen = word_.load(std::memory_order_acquire);
        if (static_cast<State>(seen & 3U) != State::live) return 0;
        const std::uint32_t granules = seen >> 2U;
        return word_.compare_exchange_strong(seen, granules << 2U | static_cast<std::uint32_t>(State::parked), std::memory_order_acq_rel) ? granules
                                                                                                                                          : 0;
    }

private:
    std::atomic_ref<std::uint32_t> word_;
};

class ParkedRuns {
public:
    static constexpr ByteCount request_min = 3584;  ///< smaller ones would waste too much of a page
    static constexpr ByteCount request_max = ByteCount{32} << 10U;
    static constexpr ByteCount bytes_max = ByteCount{1} << 20U;

    static bool serves(ByteCount bytes, ByteCount alignment) { return bytes - request_min <= request_max - request_min && alignment <= page_bytes; }

    /// A block of at least `bytes` and little more; null: none.
    std::byte* take(ByteCount bytes) noexcept {
        const auto wanted = static_cast<std::uint32_t>((bytes + layout::granule_bytes - 1) / layout::granule_bytes);
        const std::uint32_t most = std::max(wanted + wanted / 16, layout::page_granules);
        const unsigned first = bin_of(std::max(wanted, layout::page_granules));
        for (unsigned bin = first; bin < bins && bin <= first + 1; ++bin) {
            Bin& from = bins_[bin];
            for (unsigned at = from.count, tries = 4; at-- > 0 && tries > 0; --tries) {
                if (from.granules[at] < wanted || from.granules[at] > most) continue;
                std::byte* const block = from.blocks[at];
                bytes_ -= from.granules[at] * layout::granule_bytes;
                --from.count;
                from.blocks[at] = from.blocks[from.count];
                from.granules[at] = from.granules[from.count];
                return block;
            }
        }
        return nullptr;
    }
    /// False: no room; see relieve(). Requires: granules ≥ those of a page, and the block is marked as parked.
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

private:
    static constexpr unsigned slots = 64;
    static constexpr unsigned bins = 25;  ///< eight for each doubling from a page on
    struct Bin {
        std::uint32_t count = 0;
        std::array<std::uint16_t, slots> granules{};
        std::array<std::byte*, slots> blocks{};
    };
    static constexpr unsigned bin_of(std::uint32_t granules) {
        const unsigned doubling = static_cast<unsigned>(std::bit_width(granules)) - 9;
        return doubling * 8 + ((granules - (256U << doubling)) >> (5 + doubling));
    }
    static_assert(layout::page_granules == 256);

    ByteCount bytes_ = 0;
    std::array<Bin, bins> bins_{};
};

}  // namespace taiyen::heap
