#include "replicate/packed_frame.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "replicate/frame_layout.hpp"

namespace taiyen::replicate {
namespace {

using layout::PackedHead;

std::uint64_t checksum_of(const PackedHead& head, std::span<const std::byte> packed) {
    return checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(PackedHead, checksum)), checksum(packed, head.frame_bytes));
}

}  // namespace

std::vector<std::byte> FramePacker::pack(std::vector<std::byte> frame) {
    if (codec_ == Codec::none || frame.size() < layout::packed_frame_bytes_min || frame.size() > layout::packed_frame_bytes_max) return frame;
    std::vector<std::byte> bytes(sizeof(PackedHead) + Packer::bound(codec_, frame.size()));
    const std::span<std::byte> room = std::span(bytes).subspan(sizeof(PackedHead));
    const ByteCount used = packer_.pack(frame, room);
    // What hardly becomes smaller is read faster as it is.
    if (used == 0 || sizeof(PackedHead) + used > frame.size() / 8 * 7) return frame;
    PackedHead head{layout::packed_magic, static_cast<std::uint32_t>(codec_), 0, frame.size(), 0};
    head.checksum = checksum_of(head, room.first(used));
    std::memcpy(bytes.data(), &head, sizeof head);
    bytes.resize(sizeof head + used);
    return bytes;
}

bool is_packed(std::span<const std::byte> bytes) {
    std::uint64_t magic = 0;
    if (bytes.size() < sizeof(PackedHead)) return false;
    std::memcpy(&magic, bytes.data(), sizeof magic);
    return magic == layout::packed_magic;
}

std::optional<std::vector<std::byte>> unpack(std::span<const std::byte> bytes) {
    PackedHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    const auto packed = bytes.subspan(sizeof head);
    const auto codec = static_cast<Codec>(head.codec);
    if (head.checksum != checksum_of(head, packed) || head.reserved != 0) return std::nullopt;
    if ((codec != Codec::lz4 && codec != Codec::zstd) || head.frame_bytes > layout::packed_frame_bytes_max) return std::nullopt;
    std::vector<std::byte> frame(head.frame_bytes);
    if (!Unpacker().unpack(codec, packed, frame)) return std::nullopt;
    return frame;
}

}  // namespace taiyen::replicate
