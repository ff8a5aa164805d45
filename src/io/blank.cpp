#include "io/blank.hpp"

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"

namespace taiyen::io {

bool is_blank(const File& file, std::uint64_t offset) {
    const AlignedBuffer piece(ByteCount{1} << 20U);
    while (true) {
        const ByteCount got = file.read_direct(piece.span(), offset);
        if (!is_zero(piece.first(got))) return false;
        if (got < piece.span().size()) return true;
        offset += got;
    }
}

}  // namespace taiyen::io
