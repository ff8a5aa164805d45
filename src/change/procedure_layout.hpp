#pragma once
/// The bytes of a procedure's call: what the arguments of a procedure entry (change_set_layout.hpp) hold. FORMAT.md says why.
///
///   CallHead | CallRun … | what the caller passed

#include <cstddef>
#include <cstdint>

namespace taiyen::change::layout {

struct CallHead {
    std::uint64_t signature;      ///< checksum of the types of the arguments
    std::uint64_t digest_before;  ///< of the pages below before the call (the entry's digest: after it)
    std::uint64_t runs;
};
static_assert(sizeof(CallHead) == 24);

/// Pages that the call changed; runs ascend and don't touch.
struct CallRun {
    std::uint64_t first;  ///< page
    std::uint64_t count;
};
static_assert(sizeof(CallRun) == 16);

/// Where the checksums of signatures and pages begin.
inline constexpr std::uint64_t call_seed = 0x3150'4554'5354'4954ULL;

}  // namespace taiyen::change::layout
