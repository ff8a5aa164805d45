#include "undo/history.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/heap_layout.hpp"
#include "vm/address_space.hpp"

namespace taiyen::undo {

using layout::first_step;
using layout::HistoryHeader;
using layout::StepHead;

namespace {

/// Memory is asked for in steps of this size, so that small steps of the user cost few system calls.
constexpr ByteCount growth_bytes = ByteCount{256} << 10U;
/// For change sets that are only copied.
constexpr ByteCount any_capacity = ByteCount{1} << 48U;

[[noreturn]] void throw_corrupt(std::uint64_t offset, const char* what) { throw Error(errc::corrupt, {}, offset, contradiction(what)); }

std::uint64_t header_checksum(const HistoryHeader& header) {
    return checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(HistoryHeader, checksum)), layout::header_magic);
}

std::uint64_t head_checksum(const StepHead& head, std::string_view name, std::uint64_t offset) {
    const std::uint64_t sum = checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(StepHead, head_checksum)), offset);
    return checksum(std::as_bytes(std::span(name)), sum);
}

std::uint64_t step_bytes(const NewStep& step) {
    std::uint64_t size = sizeof(StepHead) + round_up(step.name.size(), 8);
    for (const Piece& piece : step.pieces) size += (piece.joins ? 0 : layout::segment_head_bytes) + piece.changes.size();
    return size;
}

class AnonymousMemory final : public HistoryMemory {
public:
    explicit AnonymousMemory(ByteCount capacity) : reservation_(vm::Reservation::anywhere(std::max(capacity, reserved_bytes_min))) {}
    std::byte* base() override { return reservation_.data(); }
    ByteCount bytes() const override { return bytes_; }
    ByteCount capacity() const override { return reservation_.size(); }
    void extend(ByteCount bytes) override {
        vm::map_anonymous(reservation_.data() + bytes_, bytes - bytes_);
        bytes_ = bytes;
    }

private:
    vm::Reservation reservation_;
    ByteCount bytes_ = 0;
};

}  // namespace

std::string contradiction(const char* what) { return std::string("the undo history contradicts itself: ") + what; }

std::unique_ptr<HistoryMemory> anonymous_history_memory(ByteCount capacity) {
    return std::make_unique<AnonymousMemory>(round_up(capacity, page_bytes));
}

UndoHistory UndoHistory::create(std::unique_ptr<HistoryMemory> memory, ByteCount bytes, bool circular) {
    if (memory->bytes() < first_step) memory->extend(first_step);
    HistoryHeader header{};
    header.magic = layout::header_magic;
    header.version = layout::version;
    header.flags = circular ? layout::flag_circular : 0;
    header.capacity = std::min<std::uint64_t>(round_down(bytes, page_bytes), memory->capacity());
    header.next_id = 1;
    UndoHistory history(std::move(memory));
    history.store(header);
    return history;
}

std::optional<UndoHistory> UndoHistory::resume(std::unique_ptr<HistoryMemory>& memory) {
    if (memory->bytes() < first_step) return std::nullopt;
    HistoryHeader header;
    std::memcpy(&header, memory->base(), sizeof header);
    if (is_zero({memory->base(), first_step})) return std::nullopt;
    if (header.magic != layout::header_magic) throw_corrupt(0, "it begins with something else");
    if (header.version != layout::version)
        throw Error(errc::unsupported_version, {}, 0, "the undo history has version " + std::to_string(header.version) + ", this library reads 1");
    if (header.checksum != header_checksum(header)) throw_corrupt(0, "its header's checksum differs");
    const bool empty = header.undoable == 0 && header.redoable == 0;
    if (header.capacity < capacity_min || header.capacity > store::sequence_bytes_max || header.next_id == 0 || header.base_id >= header.next_id ||
        (header.flags & ~layout::flag_circular) != 0 || empty != (header.oldest == 0) || empty != (header.newest == 0) ||
        (header.undoable == 0) != (header.before == 0) || (header.redoable == 0) != (header.behind == 0) || header.undoable > memory->bytes() ||
        header.redoable > memory->bytes()) {
        throw_corrupt(0, "its header is impossible");
    }
    for (const std::uint64_t offset : {header.oldest, header.newest, header.before, header.behind, header.wrap})
        if (offset % 8 != 0 || (offset != 0 && (offset < first_step || offset > memory->bytes()))) throw_corrupt(0, "its header leads outside");
    UndoHistory history(std::move(memory));
    if (header.capacity > history.memory_->capacity()) {  // more than this process reserved: what is there fits all the same
        header.capacity = history.memory_->capacity();
        history.store(header);
    }
    return history;
}

void UndoHistory::store(HistoryHeader header) {
    header.checksum = header_checksum(header);
    memory_->about_to_write(0, sizeof header);
    std::memcpy(memory_->base(), &header, sizeof header);
}

void UndoHistory::erase(HistoryMemory& memory) {
    if (memory.bytes() >= first_step) {
        memory.about_to_write(0, first_step);
        std::memset(memory.base(), 0, first_step);
    }
}

StepView UndoHistory::step_at(std::uint64_t offset) const {
    const std::uint64_t limit = std::min<std::uint64_t>(memory_->bytes(), header().capacity);
    if (offset < first_step || offset % 8 != 0 || offset > limit || limit - offset < sizeof(StepHead)) throw_corrupt(offset, "a step lies outside");
    const std::byte* const at = memory_->base() + offset;
    StepHead head;
    std::memcpy(&head, at, sizeof head);
    if (head.size % 8 != 0 || head.size > limit - offset || head.name_bytes > layout::name_bytes_max ||
        head.size < sizeof head + round_up(head.name_bytes, 8) || (head.flags & ~layout::step_flags) != 0) {
        throw_corrupt(offset, "a step's head is impossible");
    }
    StepView step;
    step.offset = offset;
    step.id = head.id;
    step.size = head.size;
    step.previous = head.previous;
    step.life = head.life;
    step.first_serial = head.first_serial;
    step.last_serial = head.last_serial;
    step.flags = head.flags;
    step.name = {reinterpret_cast<const char*>(at + sizeof head), head.name_bytes};
    const std::uint64_t front = sizeof head + round_up(head.name_bytes, 8);
    step.body = {at + front, head.size - front};
    if (head.head_checksum != head_checksum(head, step.name, offset) || head.id == 0 || head.id >= header().next_id || head.id <= header().base_id)
        throw_corrupt(offset, "a step's head has another checksum or number");
    return step;
}

/// Where the step after this one begins. Requires: it is not the newest.
std::uint64_t UndoHistory::offset_behind(const HistoryHeader& header, const StepView& step) const {
    return step.end() == header.wrap ? first_step : step.end();
}

StepView UndoHistory::checked_previous(const StepView& step) const {
    const StepView found = step_at(step.previous);
    if (found.id >= step.id) throw_corrupt(step.offset, "the step before it is younger");
    return found;
}

bool is_call(const change::ChangeSetView& segment) {
    bool call = false;
    segment.for_each(change::Direction::forward, [&](const change::Entry& entry) { call = call || entry.kind == change::EntryKind::procedure; });
    return call;
}

std::uint64_t UndoHistory::cursor_id() const { return header().before == 0 ? header().base_id : step_at(header().before).id; }

std::optional<StepView> UndoHistory::to_undo() const { return header().undoable == 0 ? std::nullopt : std::optional(step_at(header().before)); }

std::optional<StepView> UndoHistory::to_redo() const {
    if (header().redoable == 0) return std::nullopt;
    const StepView step = step_at(header().behind);
    if (header().before != 0 && step.id <= step_at(header().before).id)
        throw_corrupt(step.offset, "the step behind the cursor is older than the one before it");
    return step;
}

std::vector<change::ChangeSetView> UndoHistory::segments(const StepView& step, ByteCount heap_capacity) const {
    std::vector<change::ChangeSetView> found;
    for_each_segment(step, heap_capacity, [&](const change::ChangeSetView& segment) { found.push_back(segment); });
    return found;
}

void UndoHistory::for_each_segment(const StepView& step, ByteCount heap_capacity,
                                   const std::function<void(const change::ChangeSetView&)>& visit) const {
    StepHead head;
    std::memcpy(&head, memory_->base() + step.offset, sizeof head);
    if (checksum(step.body, step.id) != head.body_checksum) throw_corrupt(step.offset, "a step's checksum differs");
    for (std::span<const std::byte> rest = step.body; !rest.empty();) {
        std::uint64_t size = 0;
        if (rest.size() < sizeof size) throw_corrupt(step.offset, "a step's parts don't add up");
        std::memcpy(&size, rest.data(), sizeof size);
        rest = rest.subspan(sizeof size);
        if (size > rest.size()) throw_corrupt(step.offset, "a step's parts don't add up");
        const auto view = change::ChangeSetView::checked(rest.first(size), heap_capacity);
        if (!view) throw_corrupt(step.offset, "a step holds something that is no change set");
        visit(*view);
        rest = rest.subspan(size);
    }
}

void UndoHistory::step_back(const StepView& undone) {
    HistoryHeader changed = header();
    TAIYEN_CHECK(undone.offset == changed.before && changed.undoable != 0);
    if (changed.undoable > 1)
        changed.before = checked_previous(undone).offset;
    else
        changed.before = 0;
    changed.behind = undone.offset;
    --changed.undoable;
    ++changed.redoable;
    store(changed);
}

void UndoHistory::step_forward(const StepView& redone) {
    HistoryHeader changed = header();
    TAIYEN_CHECK(redone.offset == changed.behind && changed.redoable != 0);
    if (changed.redoable > 1) {
        const StepView next = step_at(offset_behind(changed, redone));
        if (next.id <= redone.id || next.previous != redone.offset) throw_corrupt(next.offset, "steps don't follow each other");
        changed.behind = next.offset;
    } else {
        changed.behind = 0;
    }
    changed.before = redone.offset;
    ++changed.undoable;
    --changed.redoable;
    store(changed);
}

bool UndoHistory::grow(ByteCount bytes) {
    if (bytes <= memory_->bytes()) return true;
    const ByteCount limit = header().capacity;
    for (const ByteCount wanted : {std::min<ByteCount>(limit, std::max<ByteCount>(memory_->bytes() + growth_bytes, round_up(bytes, page_bytes))),
                                   std::min<ByteCount>(limit, round_up(bytes, page_bytes))}) {
        try {
            memory_->extend(wanted);
            return true;
        } catch (const HeapFull&) {}
    }
    return false;
}

/// Where a step of that size would go behind the newest one, 0: nowhere as long as the steps before it stay. Writes down the wrap it needs.
std::uint64_t UndoHistory::place(HistoryHeader& changed, std::uint64_t size) {
    if (changed.newest == 0) {
        changed.wrap = 0;
        return first_step + size <= changed.capacity && grow(first_step + size) ? first_step : 0;
    }
    const std::uint64_t tail = step_at(changed.newest).end();
    if (changed.wrap != 0) return tail <= changed.oldest && size <= changed.oldest - tail ? tail : 0;
    if (size <= changed.capacity - tail && grow(tail + size)) return tail;
    if (size <= changed.oldest - first_step) {
        changed.wrap = tail;
        return first_step;
    }
    return 0;
}

/// False: there is no step to drop.
bool UndoHistory::drop_oldest(HistoryHeader& changed) const {
    if (changed.newest == 0) return false;
    const StepView oldest = step_at(changed.oldest);
    changed.base_id = oldest.id;
    --changed.undoable;
    if (changed.undoable == 0) {
        changed.oldest = changed.newest = changed.before = changed.wrap = 0;
        return true;
    }
    const std::uint64_t next = offset_behind(changed, oldest);
    if (next == first_step) changed.wrap = 0;
    const StepView found = step_at(next);
    if (found.id <= oldest.id || found.previous != oldest.offset) throw_corrupt(next, "steps don't follow each other");
    changed.oldest = next;
    return true;
}

void UndoHistory::forget_redoable(HistoryHeader& changed) const {
    if (changed.redoable == 0) return;
    changed.newest = changed.before;
    changed.behind = 0;
    changed.redoable = 0;
    if (changed.newest == 0)
        changed.oldest = changed.wrap = 0;
    else if (changed.newest >= changed.oldest)
        changed.wrap = 0;  // what is left lies in one piece
}

void UndoHistory::write(HistoryHeader changed, std::uint64_t at, const NewStep& step, std::uint64_t size, std::uint64_t id) {
    memory_->about_to_write(at, size);
    memory_->about_to_write(0, sizeof(HistoryHeader));  // now: what throws has changed nothing
    std::byte* const begin = memory_->base() + at;
    StepHead head{};
    head.id = id;
    head.size = size;
    head.previous = changed.newest;
    head.life = step.life;
    head.first_serial = step.first_serial;
    head.last_serial = step.last_serial;
    head.flags = step.flags;
    head.name_bytes = static_cast<std::uint32_t>(step.name.size());
    std::byte* out = begin + sizeof head;
    std::memset(out, 0, round_up(step.name.size(), 8));
    out = std::copy_n(reinterpret_cast<const std::byte*>(step.name.data()), step.name.size(), out);
    out = begin + sizeof head + round_up(step.name.size(), 8);
    const std::byte* const body = out;
    std::byte* segment = nullptr;
    for (const Piece& piece : step.pieces) {
        if (!piece.joins) {
            segment = out;
            out += layout::segment_head_bytes;
        }
        out = std::copy(piece.changes.begin(), piece.changes.end(), out);
        const auto bytes = static_cast<std::uint64_t>(out - segment) - layout::segment_head_bytes;
        std::memcpy(segment, &bytes, sizeof bytes);
    }
    head.body_checksum = checksum({body, static_cast<std::size_t>(out - body)}, id);
    head.head_checksum = head_checksum(head, step.name, at);
    std::memcpy(begin, &head, sizeof head);
    if (changed.oldest == 0) changed.oldest = at;
    changed.newest = changed.before = at;
    ++changed.undoable;
    changed.next_id = std::max(changed.next_id, id + 1);
    store(changed);
}

bool UndoHistory::append(const NewStep& step) { return append(step, header().next_id); }

bool UndoHistory::append(const NewStep& step, std::uint64_t id) {
    TAIYEN_CHECK(step.name.size() <= layout::name_bytes_max);
    const std::uint64_t size = step_bytes(step);
    HistoryHeader changed = header();
    if (size > changed.capacity - first_step) return false;
    forget_redoable(changed);
    for (;;) {
        if (const std::uint64_t at = place(changed, size); at != 0) {
            write(changed, at, step, size, id);
            return true;
        }
        if (!circular() || !drop_oldest(changed)) return false;
    }
}

std::vector<StepView> UndoHistory::newest(std::uint64_t count) const {
    std::vector<StepView> found;
    count = std::min<std::uint64_t>(count, header().undoable);
    for (std::uint64_t i = 0; i < count; ++i) found.push_back(i == 0 ? step_at(header().before) : checked_previous(found.back()));
    return found;
}

std::vector<UndoStep> UndoHistory::steps() const {
    std::vector<UndoStep> all;
    for_each_step([&](const StepView& step, bool undone) {
        all.push_back({step.id, std::string(step.name), static_cast<std::size_t>(step.size), step.implicit(), undone});
    });
    return all;
}

void UndoHistory::for_each_step(const std::function<void(const StepView& step, bool undone)>& visit) const {
    const std::uint64_t total = header().undoable + header().redoable;
    StepView step;
    for (std::uint64_t i = 0; i < total; ++i) {
        const StepView next = step_at(i == 0 ? header().oldest : offset_behind(header(), step));
        if (i != 0 && next.id <= step.id) throw_corrupt(next.offset, "steps don't follow each other");
        step = next;
        visit(step, i >= header().undoable);
    }
}

bool UndoHistory::squash(std::uint64_t count, std::string_view name) {
    TAIYEN_CHECK(header().redoable == 0 && count != 0 && count <= header().undoable);
    const std::vector<StepView> merged = newest(count);
    // Copied first: the step that replaces them lies over them.
    std::vector<std::vector<std::byte>> bodies;
    std::vector<Piece> pieces;
    bool previous_is_call = true;
    NewStep step;
    step.name = name;
    step.flags = layout::step_implicit;
    for (std::size_t i = merged.size(); i-- > 0;) {
        const StepView& old = merged[i];
        for (const change::ChangeSetView& view : segments(old, any_capacity)) {
            bodies.emplace_back(view.bytes().begin(), view.bytes().end());
            const bool call = is_call(view);
            pieces.push_back({bodies.back(), !call && !previous_is_call});
            previous_is_call = call;
        }
        step.flags &= old.flags;
        if (step.life != old.life) {  // serials mean something within one opening only
            step.life = old.life;
            step.first_serial = old.first_serial;
        }
        step.last_serial = old.last_serial;
    }
    step.pieces = pieces;
    const std::uint64_t id = merged.front().id;
    const std::uint64_t size = step_bytes(step);
    HistoryHeader changed = header();
    changed.undoable -= count;
    changed.before = changed.newest = changed.undoable == 0 ? 0 : checked_previous(merged.back()).offset;
    if (changed.newest == 0)
        changed.oldest = changed.wrap = 0;
    else if (changed.newest >= changed.oldest)
        changed.wrap = 0;
    const std::uint64_t at = size > changed.capacity - first_step ? 0 : place(changed, size);
    if (at == 0) return false;
    write(changed, at, step, size, id);
    return true;
}

bool UndoHistory::resize(ByteCount bytes) {
    const ByteCount capacity = round_down(bytes, page_bytes);
    TAIYEN_CHECK(capacity >= capacity_min);
    HistoryHeader changed = header();
    if (capacity > memory_->capacity()) throw HeapFull(capacity, memory_->capacity(), HeapFull::Cause::address_space);
    if (capacity >= changed.capacity && changed.wrap == 0) {
        changed.capacity = capacity;
        store(changed);
        return true;
    }
    std::vector<StepView> steps;
    ByteCount total = 0;
    for_each_step([&](const StepView& step, bool) {
        steps.push_back(step);
        total += step.size;
    });
    std::size_t first = 0;
    for (; total > capacity - first_step; ++first) {
        if (changed.undoable == 0) return false;
        --changed.undoable;
        changed.base_id = steps[first].id;
        total -= steps[first].size;
    }
    // Copied first: they are moved together to the front, over each other.
    std::vector<std::byte> copies;
    copies.reserve(total);
    for (std::size_t i = first; i < steps.size(); ++i) {
        const std::byte* const begin = memory_->base() + steps[i].offset;
        copies.insert(copies.end(), begin, begin + steps[i].size);
    }
    if (total != 0 && !planted(Bug::resized_history_unlogged)) memory_->about_to_write(first_step, total);
    memory_->about_to_write(0, sizeof(HistoryHeader));  // from here on nothing throws
    std::ranges::copy(copies, memory_->base() + first_step);
    changed.capacity = capacity;
    changed.wrap = changed.newest = changed.before = changed.behind = 0;
    std::uint64_t at = first_step;
    for (std::size_t i = first; i < steps.size(); ++i) {
        std::byte* const begin = memory_->base() + at;
        StepHead head;
        std::memcpy(&head, begin, sizeof head);
        head.previous = changed.newest;
        head.head_checksum = head_checksum(head, {reinterpret_cast<const char*>(begin + sizeof head), head.name_bytes}, at);
        std::memcpy(begin, &head, sizeof head);
        changed.newest = at;
        if (i - first < changed.undoable) changed.before = at;
        if (i - first == changed.undoable) changed.behind = at;
        at += head.size;
    }
    changed.oldest = total == 0 ? 0 : first_step;
    store(changed);
    return true;
}

}  // namespace taiyen::undo
