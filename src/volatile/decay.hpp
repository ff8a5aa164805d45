#pragma once
/// Decay: how much memory a volatile heap leaves in its free pages.
///
/// Of that memory half goes back to the system from time to time, and at once what is more than a part of the memory in use. A look counts the states of all pages, so there is one only after much was freed.
/// Who owns it finds the pages and gives them back. Thread rule: external lock.

#include <chrono>
#include <optional>

#include <taiyen/base/units.hpp>

#include "heap/engine.hpp"

namespace taiyen::heap {

class Decay {
public:
    using Clock = std::chrono::steady_clock::time_point (*)() noexcept;
    /// Shorter pieces of free pages keep their memory.
    static constexpr ByteCount piece_bytes_min = ByteCount{64} << 10U;

    /// Pages of so many bytes got free.
    void freed(ByteCount bytes) noexcept { freed_since_look_ += bytes; }
    /// Whether so much was freed since the last look that another one is worth its cost.
    bool wants_look() const noexcept { return freed_since_look_ >= freed_until_look_; }
    /// How many bytes the free pages may keep; nothing: what they have. Complexity: constant.
    std::optional<ByteCount> look(const PageTotals& pages, ByteCount extent) noexcept;
    /// Free pages have lost their memory, for whatever reason.
    void purged() noexcept { freed_since_purge_ = 0; }
    /// For tests: what it goes by instead of the system's clock.
    void set_clock(Clock clock) noexcept { clock_ = clock; }

private:
    ByteCount freed_since_look_ = 0;
    ByteCount freed_until_look_ = 0;
    ByteCount freed_since_purge_ = 0;
    std::chrono::steady_clock::time_point last_purge_{};
    Clock clock_ = &std::chrono::steady_clock::now;
};

}  // namespace taiyen::heap
