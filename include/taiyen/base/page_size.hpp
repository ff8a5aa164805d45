#pragma once
/// Pages of memory under a heap.

namespace taiyen {

enum class PageSize {
    automatic,
    base,  ///< 4 KiB
    huge   ///< 2 MiB, where the system has them; a heap's stats() tell how many bytes it got
};

}  // namespace taiyen
