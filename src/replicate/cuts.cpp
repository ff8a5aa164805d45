#include "replicate/cuts.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "store/opening_record.hpp"

namespace taiyen::replicate {
namespace {

using layout::CutHead;
using layout::MemberHead;

constexpr std::size_t member_name_bytes_max = 200;

void put(std::vector<std::byte>& bytes, std::span<const std::byte> piece) {
    const std::size_t at = bytes.size();
    bytes.resize(round_up(at + piece.size(), 8));
    if (!piece.empty()) std::memcpy(bytes.data() + at, piece.data(), piece.size());
}

template <class T>
void put(std::vector<std::byte>& bytes, const T& value) {
    put(bytes, std::as_bytes(std::span(&value, 1)));
}

void put_name(std::vector<std::byte>& bytes, const std::string& name) { put(bytes, std::as_bytes(std::span(name))); }

/// What comes next in a frame's body.
class Pieces {
public:
    explicit Pieces(const Frame& frame) : frame_(frame), left_(frame.body()) {}
    bool empty() const { return left_.empty(); }
    template <class T>
    T take() {
        if (left_.size() < sizeof(T)) frame_.throw_corrupt("it ends early");
        T found;
        std::memcpy(&found, left_.data(), sizeof found);
        left_ = left_.subspan(sizeof found);
        return found;
    }
    std::string take_name(std::uint64_t bytes) {
        if (bytes > name_bytes_max || left_.size() < round_up(bytes, 8)) frame_.throw_corrupt("a name in it is too long");
        const std::string name(reinterpret_cast<const char*>(left_.data()), bytes);
        left_ = left_.subspan(round_up(bytes, 8));
        return name;
    }

private:
    const Frame& frame_;
    std::span<const std::byte> left_;
};

Frame group_frame(ReplicationTarget& target, std::uint64_t number) { return {target, number, Lane::group}; }

}  // namespace

bool may_name_a_member(const std::string& name) {
    return !name.empty() && name.size() <= member_name_bytes_max && name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
           name != "." && name != "..";
}

GroupCut told(const Cut& cut) {
    GroupCut found{cut.frame, store::time_of(cut.written_at).value_or(std::chrono::system_clock::time_point{}), cut.mark, {}};
    for (const Cut::Member& member : cut.members) found.members.push_back({member.name, member.heap.text(), member.serial});
    return found;
}

std::vector<std::byte> encode_cut(const Cut& cut) {
    std::vector<std::byte> bytes;
    put(bytes, CutHead{cut.written_at, static_cast<std::uint32_t>(cut.mark.size()), static_cast<std::uint32_t>(cut.members.size())});
    put_name(bytes, cut.mark);
    for (const Cut::Member& member : cut.members) {
        MemberHead head{};
        std::ranges::copy(member.heap.bytes, head.heap);
        head.serial = member.serial.value;
        head.name_bytes = member.name.size();
        put(bytes, head);
        put_name(bytes, member.name);
    }
    return bytes;
}

std::vector<Cut> cuts_of(const Frame& frame) {
    std::vector<Cut> cuts;
    for (Pieces pieces(frame); !pieces.empty();) {
        const auto head = pieces.take<CutHead>();
        Cut cut;
        cut.frame = frame.head().number;
        if (!store::time_of(head.written_at) || head.members == 0 || head.members > members_max) frame.throw_corrupt("it holds no cut");
        cut.written_at = head.written_at;
        cut.mark = pieces.take_name(head.name_bytes);
        for (std::uint32_t i = 0; i < head.members; ++i) {
            const auto member = pieces.take<MemberHead>();
            Uuid heap;
            std::ranges::copy(member.heap, heap.bytes.begin());
            std::string name = pieces.take_name(member.name_bytes);
            if (!may_name_a_member(name)) frame.throw_corrupt("it holds no cut");
            cut.members.push_back({std::move(name), heap, {member.serial}});
        }
        cuts.push_back(std::move(cut));
    }
    return cuts;
}

// ---- the lane

void CutLane::attach() {
    pending_.reset();
    const ReplicationTarget::Range range = target_.range();
    last_ = {};
    marks_.clear();
    group_ = random_uuid();
    own_ = random_uuid();
    if (!range.empty()) {
        const Frame newest = group_frame(target_, range.last);
        last_ = newest.head();
        group_ = newest.heap();
        marks_ = marks_in(target_);
    }
    append_epoch();
}

void CutLane::append_epoch() {
    EpochFrame epoch = encode_epoch(last_, group_, own_, own_.bytes, {}, {}, FrameKind::group_epoch);
    pending_.emplace(Pending{epoch.head, std::move(epoch.bytes), {}});
    append_pending();
}

void CutLane::append(FrameKind kind, std::span<const std::byte> body, std::uint64_t written_at, std::optional<std::vector<Cut>> marks) {
    append_pending();
    if (are_marks_owed_ && kind != FrameKind::marks) append_marks(marks_);
    do {
        FrameHead head = successor(last_, group_);
        head.kind = kind;
        head.written_at = std::max(written_at, last_.written_at);  // clocks are set back: what is looked for by time ascends
        if (kind == FrameKind::marks) head.newest_base = head.number;
        const std::array pieces{body};
        std::vector<std::byte> bytes = encode(head, pieces);
        pending_.emplace(Pending{head, std::move(bytes), marks});
    } while (!append_pending());
}

bool CutLane::append_pending() {
    if (!pending_) return true;
    if (target_.append(pending_->head.number, pending_->bytes)) {
        last_ = pending_->head;
        if (pending_->marks) {
            marks_ = std::move(*pending_->marks);
            are_marks_owed_ = false;
        }
        pending_.reset();
        return true;
    }
    attach_again();
    return false;
}

/// A target that has lost its newest frames is told again which cuts have names.
void CutLane::attach_again() {
    if (!is_end_lost()) throw_fenced();
    const ReplicationTarget::Range range = target_.range();
    last_ = range.empty() ? FrameHead{} : group_frame(target_, range.last).head();
    are_marks_owed_ = !marks_.empty();
    append_epoch();
    if (are_marks_owed_) append_marks(marks_);
}

/// And nobody else has appended since.
bool CutLane::is_end_lost() {
    const ReplicationTarget::Range range = target_.range();
    if (range.last >= last_.number) return false;
    if (range.empty()) return true;
    const Frame newest = group_frame(target_, range.last);
    return newest.file() == own_ || newest.head().epoch < last_.epoch;
}

void CutLane::throw_fenced() const {
    throw Error(errc::fenced, target_.name(), "another program makes the cuts of this group now; end it, or give this group another place");
}

void CutLane::append_cut(Cut& cut) {
    append(FrameKind::cut, encode_cut(cut), cut.written_at);
    cut.frame = last_.number;
}

void CutLane::change_marks(const std::function<void(std::vector<Cut>&)>& change) {
    append_pending();  // they may stand in it
    std::vector<Cut> marks = marks_;
    change(marks);
    append_marks(std::move(marks));
}

void CutLane::append_marks(std::vector<Cut> marks) {
    std::vector<std::byte> body;
    for (const Cut& mark : marks) put(body, std::span<const std::byte>(encode_cut(mark)));
    append(FrameKind::marks, body, store::microseconds_of(store::time_now()), std::move(marks));
}

void CutLane::trim(std::uint64_t time) {
    append_pending();
    const ReplicationTarget::Range range = target_.range();
    if (range.empty()) return;
    if (range.last != last_.number) attach_again();
    if (are_marks_owed_) append_marks(marks_);
    if (group_frame(target_, last_.number).head().checksum != last_.checksum) throw_fenced();
    // The newest cut by then is what is restored as of a time behind it.
    const auto oldest = find_cut(target_, time, {});
    if (!oldest || oldest->frame <= range.first) return;
    if (!marks_.empty() && last_.newest_base < oldest->frame) append_marks(marks_);  // they go on in a frame that stays
    target_.trim(oldest->frame);
}

// ---- looking

std::vector<Cut> marks_in(ReplicationTarget& target) {
    const ReplicationTarget::Range range = target.range();
    if (range.empty()) return {};
    const std::uint64_t number = group_frame(target, range.last).head().newest_base;
    if (number < range.first) return {};
    const Frame frame = group_frame(target, number);
    if (frame.kind() != FrameKind::marks) frame.throw_corrupt("it holds no marks");
    return cuts_of(frame);
}

std::optional<Cut> find_cut(ReplicationTarget& target, std::optional<std::uint64_t> time, std::string_view mark) {
    if (!mark.empty()) {
        const std::vector<Cut> marks = marks_in(target);
        const auto found = std::ranges::find(marks, mark, &Cut::mark);
        return found == marks.end() ? std::nullopt : std::optional(*found);
    }
    const ReplicationTarget::Range range = target.range();
    if (range.empty()) return std::nullopt;
    std::uint64_t end = range.last + 1;  // behind the newest one that was written by then
    for (std::uint64_t low = range.first; time && low < end;) {
        const std::uint64_t middle = low + (end - low) / 2;
        if (group_frame(target, middle).head().written_at <= *time)
            low = middle + 1;
        else
            end = middle;
    }
    while (end > range.first) {
        const Frame frame = group_frame(target, --end);
        if (frame.kind() != FrameKind::cut) continue;
        std::vector<Cut> cuts = cuts_of(frame);
        if (cuts.size() != 1) frame.throw_corrupt("it holds no cut");
        return std::move(cuts.front());
    }
    return std::nullopt;
}

}  // namespace taiyen::replicate
