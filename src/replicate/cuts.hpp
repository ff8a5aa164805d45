#pragma once
/// Cuts: what a group's frames hold, and the lane that they are appended to.
///
/// (C1) A cut names transactions that were the newest ones of their heaps at one moment.
/// (C2) It is appended once the target of each member has its transaction, and can restore the heap as of it.
/// (C3) Whoever isn't the last one that attached appends nothing.
/// Thread rule: external lock.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/replicate/replication_group.hpp>

#include "replicate/frame.hpp"

namespace taiyen::replicate {

/// GroupCut, as it is kept.
struct Cut {
    struct Member {
        std::string name;
        Uuid heap;
        Serial serial;
        bool operator==(const Member&) const = default;
    };
    std::uint64_t frame = 0;
    std::uint64_t written_at = 0;  ///< microseconds since 1970
    std::string mark;
    std::vector<Member> members;
};
GroupCut told(const Cut& cut);
inline constexpr std::size_t name_bytes_max = 255;  ///< of a mark
inline constexpr std::uint32_t members_max = 1024;
/// A file's name in a folder, with what restoring adds to it.
bool may_name_a_member(const std::string& name);

std::vector<std::byte> encode_cut(const Cut& cut);
/// Those that stand in a frame of cuts or marks. Throws: Error{corrupt}.
std::vector<Cut> cuts_of(const Frame& frame);

class CutLane {
public:
    explicit CutLane(ReplicationTarget& target) : target_(target) {}

    /// Becomes the one that appends. Throws: Error{mismatch}: it is a heap's lane; what the target throws.
    void attach();
    /// Throws: Error{fenced}; what the target throws: the next call goes on.
    void append_cut(Cut& cut);
    /// `change`: what they are to become. Throws: as append_cut, what `change` throws: they are as they were.
    void change_marks(const std::function<void(std::vector<Cut>&)>& change);
    /// What a call before has left is appended. Throws: as append_cut.
    void settle() { (void)append_pending(); }
    /// Whether the target still has the newest frame. Throws: what the target throws.
    bool has_newest() { return target_.range().last >= last_.number; }
    const std::vector<Cut>& marks() const { return marks_; }
    const Uuid& group() const { return group_; }
    /// What was cut before, and has no name, is needed no more. Throws: what the target throws.
    void trim(std::uint64_t time);

private:
    void append_epoch();
    void append(FrameKind kind, std::span<const std::byte> body, std::uint64_t written_at, std::optional<std::vector<Cut>> marks = {});
    void append_marks(std::vector<Cut> marks);
    /// False: it isn't there, and this program has attached again.
    bool append_pending();
    void attach_again();
    bool is_end_lost();
    [[noreturn]] void throw_fenced() const;

    ReplicationTarget& target_;
    Uuid group_;
    Uuid own_;
    FrameHead last_{};  ///< number 0: there is none
    std::vector<Cut> marks_;
    struct Pending {
        FrameHead head;
        std::vector<std::byte> bytes;
        std::optional<std::vector<Cut>> marks;  ///< what they are once it is there
    };
    std::optional<Pending> pending_;  ///< whether it is there is not known
    bool are_marks_owed_ = false;     ///< the target has lost them
};

/// The newest cut that was made by then, or has that name. Nothing: there is none. Complexity: logarithmic. Throws: Error{corrupt | mismatch}.
std::optional<Cut> find_cut(ReplicationTarget& target, std::optional<std::uint64_t> time, std::string_view mark);
/// Of the newest frame. Throws: Error{corrupt | mismatch}.
std::vector<Cut> marks_in(ReplicationTarget& target);

}  // namespace taiyen::replicate
