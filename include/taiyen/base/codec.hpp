#pragma once
/// Codec: what makes bytes fewer that leave a heap.

namespace taiyen {

/// lz4 is as fast as memory, zstd about twice as small.
enum class Codec {
    none = 0,
    lz4 = 1,  ///< Yann Collet, https://lz4.org
    zstd = 2  ///< RFC 8878
};

}  // namespace taiyen
