#pragma once
/// Frames: made, and read with every byte checked.
/// Thread rule: values.

#include <array>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <taiyen/base/units.hpp>
#include <taiyen/replicate/replication_target.hpp>

#include "base/uuid.hpp"
#include "replicate/frame_layout.hpp"

namespace taiyen::replicate {

using layout::FrameHead;
using layout::FrameKind;

/// The bytes of a frame: sets magic, version, sizes and checksums of `head`.
std::vector<std::byte> encode(FrameHead& head, std::span<const std::span<const std::byte>> body);

/// The head of the frame behind `before` (number 0: there is none yet), by the same file.
FrameHead successor(const FrameHead& before, const Uuid& heap);
/// A frame by which `file` becomes the one that appends, as that attachment; what it holds is as of `serial`.
struct EpochFrame {
    FrameHead head;
    std::vector<std::byte> bytes;
};
/// By group: as of which transactions the heap can be restored, whatever its frames' age.
using KeptSerials = std::map<std::array<std::uint8_t, 16>, Serial>;
EpochFrame encode_epoch(const FrameHead& before, const Uuid& heap, const Uuid& file, std::span<const std::uint8_t, 16> attached, Serial serial,
                        const KeptSerials& kept, FrameKind kind = FrameKind::epoch);
/// What the newest epoch frame says. Nothing is kept where it is gone, or damaged: until the groups say it again. Throws: what the target throws.
KeptSerials kept_at(ReplicationTarget& target, const FrameHead& newest);

/// What a target's frames are of.
enum class Lane { heap, group };

class Frame {
public:
    /// Frame `number` of the target. Throws: Error{corrupt (or missing) | mismatch | unsupported_version | permission (it is sealed)}, what the target throws.
    Frame(ReplicationTarget& target, std::uint64_t number, Lane lane = Lane::heap);

    const FrameHead& head() const { return head_; }
    FrameKind kind() const { return head_.kind; }
    Uuid heap() const;
    /// Of the file that appended it.
    Uuid file() const;
    std::span<const std::byte> body() const { return std::span(bytes_).subspan(sizeof(FrameHead)); }
    /// What stands in front of the body. Throws: Error{corrupt}: it is shorter.
    template <class T>
    T begin_of_body() const {
        T found;
        if (body().size() < sizeof found) throw_corrupt("it ends early");
        std::memcpy(&found, body().data(), sizeof found);
        return found;
    }
    /// Throws: Error{corrupt}: it doesn't continue the one before.
    void require_follows(const FrameHead& before) const;
    [[noreturn]] void throw_corrupt(const std::string& why) const;

private:
    std::string target_;
    std::uint64_t number_;
    std::vector<std::byte> bytes_;
    FrameHead head_{};
};

}  // namespace taiyen::replicate
