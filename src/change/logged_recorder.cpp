#include "change/logged_recorder.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/planted.hpp"

namespace taiyen::change {
namespace {

ByteCount words_for(ByteCount mapped) { return round_up(mapped, page_bytes) / page_bytes * sizeof(std::uint64_t); }

}  // namespace

LoggedRecorder::LoggedRecorder(Capture mode, heap::HeapCore& core, ByteCount mapped, Audit audit, Outside outside)
    : Recorder(core, outside), mode_(mode), audit_(audit), opened_(words_for(core.ranges().durable_bytes)),
      lines_(round_up(core.ranges().durable_bytes, page_bytes)), runs_(round_up(core.ranges().durable_bytes, page_bytes) / line_bytes * sizeof(Run)) {
    TAIYEN_CHECK(mode != Capture::pages);
    grow(mapped);
}

LoggedRecorder::~LoggedRecorder() { stop(); }

void LoggedRecorder::grow(ByteCount mapped) {
    TAIYEN_CHECK(mapped <= core_.ranges().durable_bytes);
    opened_.grow(words_for(mapped));
    lines_.grow(round_up(mapped, page_bytes));
    runs_.grow(round_up(mapped, page_bytes) / line_bytes * sizeof(Run));
    mapped_ = std::max(mapped_, mapped);  // (L2)
}

void LoggedRecorder::start() {
    clear();
    if (audit_ != Audit::off) shadow_.emplace(core_, mapped_);
    listening_ = true;
    if (mode_ == Capture::stores) core_.set_listener(this);
}

void LoggedRecorder::stop() noexcept {
    if (!listening_) return;  // the heap may be gone already: a reader on the thread that destroyed it keeps us
    if (core_.listener() == this) core_.set_listener(nullptr);
    listening_ = false;
    shadow_.reset();
    clear();
}

void LoggedRecorder::touch(HeapOffset where, ByteCount length) {
    if (where.value > mapped_ || length > mapped_ - where.value)
        throw Error(errc::invalid_argument, core_.path(), where.value, "the range to be written does not lie in the heap");
    if (length == 0) return;
    for (std::uint64_t page = where.value / page_bytes; listening_ && page <= (where.value + length - 1) / page_bytes; ++page) {
        if (opened_.as<std::uint64_t>()[page] != 0) continue;
        if (core_.about_to_change({page * page_bytes}, page_bytes, true) != heap::Proof::hidden) continue;
        core_.check_usable(false);  // it is lost
        throw HeapFull(length, 0, HeapFull::Cause::address_space, core_.path().native());
    }
    record(where.value, length);
}

void LoggedRecorder::about_to_write(HeapOffset offset, ByteCount length) {
    if (planted(Bug::engine_writes_unheard)) return;
    record(offset.value, length);
}

void LoggedRecorder::on_store(void* address, ByteCount length) noexcept {
    if (is_stray() && listening_) [[unlikely]] {
        report_stray(address);
        std::abort();
    }
    ++counters_.stores;
    record(static_cast<std::uint64_t>(static_cast<std::byte*>(address) - span()), length);
}

inline void LoggedRecorder::record(std::uint64_t where, ByteCount length) noexcept {
    if (!listening_ || where >= mapped_ || length == 0) return;
    const std::uint64_t last = where + (std::min<ByteCount>(length, mapped_ - where) - 1);
    const std::uint64_t last_page = last / page_bytes;
    std::uint64_t from = where;
    for (std::uint64_t page = where / page_bytes;; ++page) {
        const std::uint64_t to = page == last_page ? last : (page + 1) * page_bytes - 1;
        const unsigned first_line = static_cast<unsigned>(from / line_bytes % lines_per_page);
        const unsigned last_line = static_cast<unsigned>(to / line_bytes % lines_per_page);
        const std::uint64_t wanted = (~std::uint64_t{0} >> (63U - (last_line - first_line))) << first_line;
        const std::uint64_t missing = wanted & ~opened_.as<std::uint64_t>()[page];
        if (missing != 0) open(page, missing);
        if (page == last_page) break;
        from = to + 1;
    }
}

void LoggedRecorder::open(std::uint64_t page, std::uint64_t lines) noexcept {
    std::uint64_t& opened = opened_.as<std::uint64_t>()[page];
    if (opened == 0) (void)core_.about_to_change({page * page_bytes}, page_bytes, true);  // what is hidden ends the program below
    opened |= lines;
    while (lines != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(lines));
        const auto count = static_cast<unsigned>(std::countr_one(lines >> first));
        open_run(page * lines_per_page + first, count);
        lines = first + count == lines_per_page ? 0 : lines & (~std::uint64_t{0} << (first + count));
    }
}

void LoggedRecorder::open_run(std::uint64_t first_line, std::uint64_t count) noexcept {
    const auto* const from = reinterpret_cast<const Line*>(span()) + first_line;
    Line* const to = lines_.as<Line>() + line_count_;
    for (std::uint64_t i = 0; i < count; ++i) to[i] = from[i];
    Run* const behind = runs_.as<Run>() + run_count_;
    if (run_count_ != 0) {
        Run& before = behind[-1];
        if (before.first_line + before.count() == first_line && before.slot() + before.count() == line_count_ &&
            before.count() + count <= Run::count_max) {
            before.slot_and_count += count;
            line_count_ += count;
            return;
        }
    }
    *behind = {first_line, line_count_ << 16U | count};
    ++run_count_;
    line_count_ += count;
}

bool LoggedRecorder::has_changed() const {
    return std::ranges::any_of(std::span<const Run>(runs_.as<Run>(), run_count_), [&](const Run& run) {
        return std::memcmp(lines_.as<Line>() + run.slot(), reinterpret_cast<const Line*>(span()) + run.first_line, run.count() * line_bytes) != 0;
    });
}

void LoggedRecorder::cut(ChangeSet& out) {
    const ByteCount size = out.size();
    try {
        if (shadow_)
            add_audited_changes(out, *shadow_);
        else
            add_changes(out);
    } catch (...) {
        out.truncate(size);
        throw;
    }
    clear();
    ++counters_.cuts;
}

void LoggedRecorder::add_written(WrittenRanges& ranges) const {
    for (const Run& run : std::span<const Run>(runs_.as<Run>(), run_count_)) ranges.add({run.first_line * line_bytes}, run.count() * line_bytes);
}

void LoggedRecorder::add_audited_changes(ChangeSet& out, AuditShadow& shadow) {
    ChangeSet changes;
    add_changes(changes);
    out.append(changes);
    shadow.follow(changes, Direction::forward);
    if (audit_ != Audit::scope) return;
    try {
        shadow.prove();
    } catch (...) {
        shadow.follow(changes, Direction::backward);
        throw;
    }
}

void LoggedRecorder::add_changes(ChangeSet& out) {
    const std::span<Run> runs(runs_.as<Run>(), run_count_);
    if (run_count_ == 1 && runs[0].first_line % lines_per_page + runs[0].count() <= lines_per_page) {  // a small scope
        const HeapOffset where{runs[0].first_line * line_bytes};
        add_changed_ranges(out, where, lines_.data() + runs[0].slot() * line_bytes, span() + where.value, runs[0].count() * line_bytes);
        return;
    }
    std::ranges::sort(runs, {}, &Run::first_line);
    // A piece: neighbouring lines within one page.
    std::uint64_t piece_line = 0;
    std::uint64_t piece_count = 0;
    const std::byte* old = nullptr;
    const auto compare_piece = [&] {
        if (piece_count != 0) add_changed_ranges(out, {piece_line * line_bytes}, old, span() + piece_line * line_bytes, piece_count * line_bytes);
    };
    for (const Run& run : runs) {
        std::uint64_t line = run.first_line;
        std::uint64_t slot = run.slot();
        for (std::uint64_t left = run.count(); left != 0;) {
            const std::uint64_t count = std::min(left, lines_per_page - line % lines_per_page);
            const std::byte* const bytes = lines_.data() + slot * line_bytes;
            if (piece_count != 0 && piece_line + piece_count == line && line % lines_per_page != 0) {
                if (old != joined_.data()) std::memcpy(joined_.data(), old, piece_count * line_bytes);
                std::memcpy(joined_.data() + piece_count * line_bytes, bytes, count * line_bytes);
                old = joined_.data();
                piece_count += count;
            } else {
                compare_piece();
                piece_line = line;
                piece_count = count;
                old = bytes;
            }
            line += count;
            slot += count;
            left -= count;
        }
    }
    compare_piece();
}

void LoggedRecorder::clear() noexcept {
    auto* const opened = opened_.as<std::uint64_t>();
    for (const Run& run : std::span<const Run>(runs_.as<Run>(), run_count_)) {
        if (planted(Bug::lines_stay_kept)) break;
        const std::uint64_t last_page = (run.first_line + run.count() - 1) / lines_per_page;
        for (std::uint64_t page = run.first_line / lines_per_page; page <= last_page; ++page) opened[page] = 0;
    }
    if (const ByteCount used = line_count_ * line_bytes; used > kept_memory_max) lines_.release(kept_memory_max, round_up(used, page_bytes));
    if (const ByteCount used = run_count_ * sizeof(Run); used > kept_memory_max) runs_.release(kept_memory_max, round_up(used, page_bytes));
    line_count_ = 0;
    run_count_ = 0;
}

void LoggedRecorder::restore() noexcept {
    const bool listened = std::exchange(listening_, false);
    const std::span<const Run> runs(runs_.as<Run>(), run_count_);
    for (const Run& run : runs) std::memcpy(span() + run.first_line * line_bytes, lines_.data() + run.slot() * line_bytes, run.count() * line_bytes);
    // The engine looks at all of its words anew: only when they are all back.
    for (const Run& run : runs) core_.engine().forget({run.first_line * line_bytes}, run.count() * line_bytes);
    clear();
    listening_ = listened;
}

void LoggedRecorder::apply(const ChangeSetView& changes, Direction direction) noexcept {
    const bool listened = std::exchange(listening_, false);
    write_changes(span(), changes, direction);
    changes.for_each(direction, [&](const Entry& entry) {
        if (entry.kind != EntryKind::procedure) core_.engine().forget(entry.where, entry.length);
    });
    listening_ = listened;
    if (shadow_) shadow_->follow(changes, direction);
}

void LoggedRecorder::extended(ByteCount, ByteCount to) {
    grow(to);
    if (shadow_) shadow_->extended(to);
}

void LoggedRecorder::audit() const {
    if (shadow_) shadow_->prove();
}

}  // namespace taiyen::change
