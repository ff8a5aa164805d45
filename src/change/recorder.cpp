#include "change/recorder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "change/instrumented.hpp"
#include "change/logged_recorder.hpp"
#include "change/page_recorder.hpp"

namespace taiyen::change {
namespace {

/// Ranges of bytes whose expected values a later change has replaced.
class Covered {
public:
    void add(std::uint64_t begin, std::uint64_t end) {
        auto at = ends_.upper_bound(begin);
        if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
        while (at != ends_.end() && at->first <= end) {
            begin = std::min(begin, at->first);
            end = std::max(end, at->second);
            at = ends_.erase(at);
        }
        ends_.emplace(begin, end);
    }
    /// Calls `visit(begin, end)` for the parts of the range that are not covered.
    template <class F>
    void for_each_gap(std::uint64_t begin, std::uint64_t end, F&& visit) const {
        auto at = ends_.upper_bound(begin);
        if (at != ends_.begin() && std::prev(at)->second > begin) --at;
        for (; at != ends_.end() && at->first < end; ++at) {
            if (begin < at->first) visit(begin, at->first);
            begin = std::max(begin, at->second);
        }
        if (begin < end) visit(begin, end);
    }

private:
    std::map<std::uint64_t, std::uint64_t> ends_;  ///< begin → end, disjoint
};

/// What the heap must hold where the entry is about to be applied; `compared`: whether that is known at all.
struct Expectation {
    bool compared = false;
    std::span<const std::byte> bytes;  ///< empty: zeros
};

Expectation expected_by(const Entry& entry, Direction direction) {
    switch (entry.kind) {
        case EntryKind::bytes: return {true, direction == Direction::backward ? entry.after : entry.before};
        case EntryKind::pages_moved: return {direction == Direction::forward, entry.before};
        case EntryKind::zeroed_run:
        case EntryKind::procedure: break;
    }
    return {};
}

/// Offset within the range of the first byte that is not as expected.
std::optional<std::uint64_t> first_difference(const std::byte* now, std::span<const std::byte> expected, ByteCount length) {
    if (expected.empty()) {
        const auto* const found = std::find_if(now, now + length, [](std::byte b) { return b != std::byte{0}; });
        if (found == now + length) return std::nullopt;
        return static_cast<std::uint64_t>(found - now);
    }
    if (std::memcmp(now, expected.data(), length) == 0) return std::nullopt;
    return static_cast<std::uint64_t>(std::mismatch(now, now + length, expected.data()).first - now);
}

/// One line of text, cut off where the room ends: made in a signal handler.
class Line {
public:
    void add(std::string_view part) noexcept {
        const std::size_t length = std::min(part.size(), room_.size() - length_);
        std::copy_n(part.data(), length, room_.data() + length_);
        length_ += length;
    }
    void add(std::uint64_t number) noexcept {
        std::array<char, 20> digits;
        add({digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr});
    }
    std::string_view text() const noexcept { return {room_.data(), length_}; }

private:
    std::array<char, 1024> room_;
    std::size_t length_ = 0;
};

/// Recorders that exist. Never destroyed: heaps in static storage may outlive this file's statics.
struct Recorders {
    std::mutex mutex;
    std::vector<Recorder*> all;
};
Recorders& recorders() {
    static Recorders& list = *new Recorders;
    return list;
}

}  // namespace

Recorder::Recorder(heap::HeapCore& core, Outside outside) : core_(core), outside_(outside) {
    Recorders& list = recorders();
    const std::lock_guard lock(list.mutex);
    list.all.push_back(this);
}

Recorder::~Recorder() {
    Recorders& list = recorders();
    const std::lock_guard lock(list.mutex);
    std::erase(list.all, this);
}

Recorder* Recorder::of(const heap::HeapCore& core) noexcept {
    Recorders& list = recorders();
    const std::lock_guard lock(list.mutex);
    // The newest: an older one belonged to a heap that was there before, and is kept by a transaction that outlives it.
    const auto found = std::find_if(list.all.rbegin(), list.all.rend(), [&](const Recorder* recorder) { return &recorder->core_ == &core; });
    return found == list.all.rend() ? nullptr : *found;
}

void Recorder::enter_scope() noexcept { scope_thread_.store(this_thread(), std::memory_order_relaxed); }

bool Recorder::is_stray() const noexcept { return outside_ == Outside::stray && scope_thread_.load(std::memory_order_relaxed) != this_thread(); }

void Recorder::report_stray(const void* address) const noexcept {
    Line text;
    text.add(core_.path().native());
    text.add(scope_thread_.load(std::memory_order_relaxed) == 0 ? ": a store while no transaction is open, at offset "
                                                                : ": a store by a thread other than the open transaction's, at offset ");
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - core_.ranges().durable;
    text.add(offset);
    if (const auto block = core_.engine().find_block(address)) {
        text.add(", in the block of ");
        text.add(block->usable_bytes);
        text.add(" bytes at ");
        text.add(block->offset.value);
    } else {
        text.add(", in no live block");
    }
    text.add("; change this heap within a Transaction of the thread that stores");
    report({errc::stray_write, address, text.text()});
}

std::optional<HeapOffset> first_conflict(const std::byte* base, const ChangeSetView& changes, Direction direction) {
    bool suspicious = false;
    changes.for_each(direction, [&](const Entry& entry) {
        const Expectation expectation = expected_by(entry, direction);
        suspicious = suspicious || (expectation.compared && first_difference(base + entry.where.value, expectation.bytes, entry.length));
    });
    if (!suspicious) return std::nullopt;

    // Appended sets overlap: what an entry visited earlier replaces is not in the heap now, and is not expected there.
    Covered covered;
    std::optional<HeapOffset> found;
    changes.for_each(direction, [&](const Entry& entry) {
        if (found || entry.kind == EntryKind::procedure) return;
        const std::uint64_t end = entry.where.value + entry.length;
        if (const Expectation expectation = expected_by(entry, direction); expectation.compared) {
            covered.for_each_gap(entry.where.value, end, [&](std::uint64_t from, std::uint64_t to) {
                if (found) return;
                const auto expected = expectation.bytes.empty() ? expectation.bytes : expectation.bytes.subspan(from - entry.where.value, to - from);
                if (const auto difference = first_difference(base + from, expected, to - from)) found = HeapOffset{from + *difference};
            });
        }
        covered.add(entry.where.value, end);
    });
    return found;
}

std::unique_ptr<Recorder> Recorder::make(Capture mode, heap::HeapCore& core, ByteCount mapped, Audit audit, Outside outside) {
    switch (mode) {
        case Capture::pages: return std::make_unique<PageRecorder>(core, mapped, audit, outside);
        case Capture::stores:
            if (!instrumented_code_present())
                throw Error(errc::not_instrumented, core.path(),
                            "no code of this program announces its stores; build it with taiyen_instrument_stores(), or use another way of capture");
            [[fallthrough]];
        case Capture::declared: return std::make_unique<LoggedRecorder>(mode, core, mapped, audit, outside);
    }
    throw Error(errc::invalid_argument, "there is no such way of capturing writes");
}

}  // namespace taiyen::change
