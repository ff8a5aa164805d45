#pragma once
/// What a guarded heap knows of each block, outside the heap's memory: its exact size, where it was allocated and freed, and the canaries around it.
///
///     raw block of the heap:   [ canary, a multiple of 16 and of the alignment | block, exactly as many bytes as were asked for | canary, at least 16 ]
///
/// (G1) A block that is freed keeps its memory, poisoned, until so many bytes were freed behind it (quarantine). Its canaries are checked when it is freed; its poison,
///      and the canaries once more, when it leaves.
/// (G2) The records lie elsewhere: whatever a program overwrites, its blocks are named rightly.
/// (G3) The lock is never held while the heap is called.
/// Under Valgrind nothing is filled: it sees each access itself. Under the address sanitizer both are done; code that it didn't compile is checked by canaries and poison.
/// Thread rule: safe.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/heap/live_blocks.hpp>
#include <taiyen/heap/volatile_heap.hpp>

#include "heap/memory_tools.hpp"

namespace taiyen::heap {

class BlockGuards {
public:
    static constexpr ByteCount canary_bytes = 16;
    static constexpr std::byte canary{0xCA};
    static constexpr std::byte poison{0xDF};

    BlockGuards(const VolatileOptions& options, MemoryTool tool, std::uintptr_t heap_begin, ByteCount heap_bytes);

    static constexpr ByteCount front_bytes(ByteCount alignment) { return std::max(canary_bytes, alignment); }

    /// The heap has given the raw block: the block in it. Throws: std::bad_alloc; then nothing happened.
    [[gnu::noinline]] void* admit(void* raw, ByteCount raw_bytes, ByteCount bytes, ByteCount alignment);
    /// Frees into the quarantine; false: it was no live block, which was reported.
    [[gnu::noinline]] bool retire(void* block) noexcept;
    /// A raw block that has left the quarantine, which may keep so many bytes; null: none. It is the caller's.
    void* leave_quarantine(ByteCount kept_bytes) noexcept;
    ByteCount quarantine_max() const { return quarantine_max_; }

    /// Of the live block that starts there.
    std::optional<ByteCount> size_of(const void* block) const noexcept;
    /// What a bad pointer is, for reports and errors.
    std::string describe(const void* address) const;
    /// Looks at each block, live and in quarantine; reports what was damaged since the last look and returns how many blocks.
    std::size_t check() noexcept;
    LiveBlocks live_blocks(std::size_t listed_max) const;
    /// Each live block and its bytes as asked for.
    template <class Visit>
    void for_each_live(const Visit& visit) const {
        const std::lock_guard lock(mutex_);
        for (const auto& [raw, record] : records_)
            if (record.live) visit(static_cast<const std::byte*>(record.block()), record.bytes);
    }
    /// Where the live block that starts there was allocated; empty: not recorded.
    std::string place_of(const void* block) const;
    struct Totals {
        std::uint64_t blocks = 0;
        ByteCount bytes = 0;
    };
    /// Of what is live.
    Totals totals() const;

    /// The heap's memory is given up: the memory checkers are told that there are no blocks any more.
    void forget_all() noexcept;

    std::mutex& mutex() { return mutex_; }

private:
    using Place = std::uint32_t;  ///< number of a place in the program, 0: not recorded
    static constexpr unsigned frames_max = 16;
    using Frames = std::array<void*, frames_max>;

    struct Record {
        void* raw = nullptr;
        ByteCount raw_bytes = 0;
        ByteCount front = 0;
        ByteCount bytes = 0;
        Place allocated = 0;
        Place freed = 0;
        bool live = true;

        std::byte* block() const { return static_cast<std::byte*>(raw) + front; }
        ByteCount back() const { return raw_bytes - front - bytes; }
    };
    using Records = std::map<std::uintptr_t, Record>;  ///< by raw block

    /// What is told once the lock is free: handlers may use the heap.
    struct Finding {
        errc code;
        const void* address;
        std::string text;
    };
    using Findings = std::vector<Finding>;

    [[gnu::noinline]] Place here();
    std::string place_text(Place place) const;
    std::string name_of(const Record& record) const;
    const Record* find(const void* address) const;
    /// Finds damage of the canaries, and of the poison of a freed block, and restores them; true: there was some.
    bool look(const Record& record, Findings& findings) noexcept;
    Finding bad_free(const void* block) const;
    void tell(const Findings& findings) const noexcept;
    void shut(const Record& record) const noexcept;
    void unlock_memory(const Record& record) const noexcept;
    bool fills() const { return tool_ != MemoryTool::valgrind; }

    const MemoryTool tool_;
    const bool records_places_;
    const bool aborts_;
    const ByteCount quarantine_max_;
    const std::uintptr_t heap_begin_;
    const ByteCount heap_bytes_;
    const std::string name_;  ///< of the heap; empty: none

    mutable std::mutex mutex_;
    Records records_;
    std::deque<std::uintptr_t> quarantine_;  ///< raw blocks, oldest first
    ByteCount quarantined_ = 0;
    std::vector<Frames> places_;
    std::unordered_multimap<std::size_t, Place> place_numbers_;  ///< by hash
};

}  // namespace taiyen::heap
