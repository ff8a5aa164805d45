#pragma once
/// ReplicationTarget: where the frames of a replicated heap are kept, off the machine: one numbered sequence, appended to only by who knows where it ends.
///
/// That one condition gives the order of frames, each of them once, and the fence between two that both take themselves for the owner.
/// What frames hold: src/replicate/FORMAT.md. A target knows nothing of it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// Thread rule: safe.
class TAIYEN_EXPORT ReplicationTarget {
public:
    /// Numbers of the frames that are there.
    struct Range {
        std::uint64_t first = 1;
        std::uint64_t last = 0;  ///< before `first`: none is there
        bool empty() const { return last < first; }
    };

    ReplicationTarget() = default;
    ReplicationTarget(const ReplicationTarget&) = delete;
    ReplicationTarget& operator=(const ReplicationTarget&) = delete;
    virtual ~ReplicationTarget();

    /// What errors call it: a path, or an address.
    virtual std::string name() const = 0;
    /// So long it pays to wait for others before a frame is appended, if nobody waits for what is in it.
    virtual std::chrono::milliseconds linger() const { return std::chrono::milliseconds(1); }
    /// Throws: Error: it can't be asked.
    virtual Range range() = 0;
    /// Appends the frame as that number, the one behind `range().last`. True: it is there, durably; also if an earlier call that failed left it. False: another frame is there, or `number` isn't the next one.
    /// Throws: Error: whether it is there is not known; the same call again tells.
    virtual bool append(std::uint64_t number, std::span<const std::byte> frame) = 0;
    /// Throws: Error{not_found}: it was trimmed, or never there.
    virtual std::vector<std::byte> read(std::uint64_t number) = 0;
    /// Frames before `first` are needed no more.
    virtual void trim(std::uint64_t first) = 0;
};

}  // namespace taiyen
