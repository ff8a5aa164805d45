#pragma once
/// What the system tells about the mappings of a range. Thread rule: safe.

#include <cstddef>
#include <cstdint>

namespace taiyen::heap {

struct SystemView {
    std::size_t mappings = 0;
    std::size_t huge_bytes = 0;  ///< that it maps by huge pages
};
/// Of the mappings that begin in [begin, end). Complexity: the system looks at all resident pages of the process.
SystemView system_view(std::uintptr_t begin, std::uintptr_t end);

}  // namespace taiyen::heap
