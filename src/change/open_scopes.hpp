#pragma once
/// OpenScopes: the scopes of a heap that are open, one within the other, and what they have changed. A transaction is one.
///
/// What was captured since the last cut belongs to the innermost one, and so do the segments from its first one on. It becomes part of the one around it by being forgotten; it is rolled back by taking its segments back.
///
/// (I1) Taking back allocates nothing and calls nobody's code: what it needs was reserved when pages opened, or by the cut that it takes back. Only pages that were closed as inner scopes began have to be
///      opened again, and the system may refuse that.
/// (I2) What a scope has touched stays captured until it ends, whatever is cut or taken back meanwhile; where the system refuses that, the scopes are doomed.
/// Numbers, owners and what becomes of the changes are for whoever has the scopes. Thread rule: external lock.

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "change/change_set.hpp"
#include "change/procedure_calls.hpp"
#include "change/recorder.hpp"
#include "change/written_ranges.hpp"

namespace taiyen::change {

class OpenScopes {
public:
    /// What was changed between two cuts. Changes that follow changes of the same scope are of one segment.
    struct Segment {
        ChangeSet changes;
        ChangeSet call;  ///< not empty: what a log or a step says instead of the changes
        ChangeSetView story() const { return call.empty() ? changes.view() : call.view(); }
    };
    /// Of an outermost scope.
    enum class Kind {
        edit,        ///< others may begin within it
        flat,        ///< none begins within it
        uncaptured,  ///< the recorder is stopped: nobody knows what changes
    };

    OpenScopes(heap::HeapCore& core, std::unique_ptr<Recorder> recorder)
        : declared_(recorder->mode() == Capture::declared), recorder_(std::move(recorder)), calls_(core) {}

    Recorder& recorder() const noexcept { return *recorder_; }
    bool has_recorder() const noexcept { return recorder_ != nullptr; }
    /// Of the same mode; null: there is none until another one is set.
    std::unique_ptr<Recorder> set_recorder(std::unique_ptr<Recorder> recorder) noexcept { return std::exchange(recorder_, std::move(recorder)); }
    ProcedureCalls& calls() noexcept { return calls_; }
    bool in_call() const noexcept { return calls_.running(); }
    /// The engine is about to write.
    void about_to_write(HeapOffset offset, ByteCount length) {
        calls_.engine_writes();
        recorder_->about_to_write(offset, length);
    }

    /// 0: none is open.
    std::size_t depth() const noexcept { return depth_; }
    /// Of the innermost one.
    std::uint32_t number() const noexcept { return depth_ > 1 ? levels_.back().number : number_; }
    std::uint32_t outermost_number() const noexcept { return number_; }
    /// All of it has to be taken back: a part would have to be taken back alone and can't be, or what was touched can't be captured any more.
    bool is_doomed() const noexcept { return doomed_; }
    std::span<const Segment> segments() const noexcept { return segments_; }

    /// The outermost one. Throws: Error{stray_write}: it didn't begin.
    void begin(std::uint32_t number, Kind kind) {
        if (kind != Kind::uncaptured) recorder_->begin_scope();
        depth_ = 1;
        kind_ = kind;
        number_ = number;
        keeps_touched_ = kind != Kind::flat && !declared_;
        touched_.clear();
    }
    /// Throws: std::bad_alloc …: it didn't begin; they may be doomed.
    void begin_inner(std::uint32_t number);
    /// The innermost one, not the outermost, is over: part of the one around it.
    void leave_inner() noexcept {
        levels_.pop_back();
        --depth_;
    }
    /// The same one is over, and taken back, if it can be alone. Throws: what it changed isn't all taken back.
    void roll_back_inner();
    /// Takes everything back; the outermost is still open. Throws: as roll_back_inner.
    void roll_back() { take_back_from(0); }
    /// All of them are over: what was not taken back stays.
    void end() noexcept {
        if (kind_ != Kind::uncaptured) recorder_->end_scope();
        if (!segments_.empty()) {
            swap(spare_, segments_.front().changes);
            segments_.clear();
        }
        if (!levels_.empty()) [[unlikely]]
            levels_.clear();
        depth_ = 0;
        doomed_ = false;
    }
    /// Keeps no more memory than that for those to come.
    void shrink(ByteCount kept) noexcept {
        if (spare_.size() > kept) spare_ = ChangeSet();
    }

    /// What happened since the last cut becomes a part of the innermost scope's last segment, or a segment. Throws: std::bad_alloc, Error{uncaptured_store}.
    void cut() {
        if (!recorder_->certainly_unchanged()) cut_changed();
    }
    /// The same, and what follows is another segment's; with memory reserved for taking it back. Throws: as `cut`.
    void end_part();
    /// Memory for taking everything back that was cut. Throws: std::bad_alloc; Error{…}: pages can't be opened.
    void reserve() {
        for (const Segment& segment : segments_) recorder_->reserve_for(segment.changes);
    }
    /// The range is about to be written, and stays captured until the innermost scope ends. Throws: as Recorder::touch.
    void touch(HeapOffset where, ByteCount bytes) {
        if (keeps_touched_) [[unlikely]]
            (depth_ > 1 ? levels_.back().touched : touched_).add(where, bytes);
        recorder_->touch(where, bytes);
    }
    /// A segment of its own. Throws: as ProcedureCalls::call: it did nothing; they may be doomed.
    void call(ByteCount mapped, std::string_view name, const std::string& signature, std::span<const std::byte> arguments);
    /// Does a stored call again, or takes it back: a segment of its own, as bytes. Throws: as ProcedureCalls::repeat; roll back then.
    void repeat(ByteCount mapped, const Entry& call, Direction direction);

private:
    /// An inner scope.
    struct Level {
        std::size_t first_segment;
        std::uint32_t number;
        WrittenRanges touched;
    };

    void cut_changed();
    void take_back_from(std::size_t segment);
    /// Before a cut behind which the scope goes on. Throws: std::bad_alloc.
    void keep_touched() {
        if (keeps_touched_ || kind_ != Kind::edit) return;
        recorder_->add_written(touched_);
        keeps_touched_ = true;
    }
    /// Throws: they are doomed.
    void touch_again();
    /// The same, and the end of the outermost says it.
    void try_touch_again() noexcept {
        try {
            touch_again();
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): they are doomed
        }
    }

    const bool declared_;
    std::unique_ptr<Recorder> recorder_;
    ProcedureCalls calls_;
    std::size_t depth_ = 0;
    bool keeps_touched_ = false;  ///< declared mode remembers by itself what was touched, until the first cut within the scope
    bool doomed_ = false;
    Kind kind_ = Kind::edit;
    std::uint32_t number_ = 0;  ///< of the outermost one
    std::vector<Segment> segments_;
    std::vector<Level> levels_;  ///< of depth 2 and more
    WrittenRanges touched_;      ///< by the outermost one; in declared mode from the first cut within it on, with what was touched before
    ChangeSet spare_;            ///< its memory is used again
};

}  // namespace taiyen::change
