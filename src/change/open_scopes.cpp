#include "change/open_scopes.hpp"

#include "base/planted.hpp"

namespace taiyen::change {

void OpenScopes::begin_inner(std::uint32_t number) {
    levels_.reserve(levels_.size() + 1);
    if (kind_ != Kind::uncaptured) {
        keep_touched();
        cut();
        recorder_->begin_inner_scope();
        touch_again();
    }
    levels_.push_back({segments_.size(), number, {}});
    ++depth_;
}

void OpenScopes::touch_again() {
    const auto touch = [this](HeapOffset where, ByteCount length) { recorder_->touch(where, length); };
    try {
        touched_.for_each(touch);
        for (Level& level : levels_) level.touched.for_each(touch);
    } catch (...) {
        doomed_ = true;
        throw;
    }
}

void OpenScopes::roll_back_inner() {
    struct Leave {
        OpenScopes& scopes;
        ~Leave() { scopes.leave_inner(); }
    };
    {
        const Leave leave{*this};
        doomed_ = doomed_ || kind_ == Kind::uncaptured;
        if (kind_ == Kind::uncaptured) return;
        take_back_from(levels_.back().first_segment);
    }
    try_touch_again();
}

void OpenScopes::take_back_from(std::size_t segment) {
    struct Drop {
        std::vector<Segment>& segments;
        std::size_t kept;
        ~Drop() {
            if (kept != 0 && planted(Bug::inner_rollback_logged)) return;
            while (segments.size() > kept) segments.pop_back();
        }
    };
    const Drop drop{segments_, segment};
    if (planted(Bug::rollback_allocates)) [this]() noexcept { segments_.reserve(segments_.capacity() + 1); }();
    recorder_->restore();
    for (std::size_t i = segments_.size(); i > segment; --i) {
        recorder_->reserve_for(segments_[i - 1].changes);  // pages may have been closed
        recorder_->apply(segments_[i - 1].changes, Direction::backward);
    }
}

void OpenScopes::cut_changed() {
    if (!segments_.empty() && segments_.back().call.empty() && (depth_ == 1 || segments_.size() > levels_.back().first_segment)) [[unlikely]] {
        recorder_->cut(segments_.back().changes);
        return;
    }
    segments_.emplace_back();
    Segment& made = segments_.back();
    swap(made.changes, spare_);
    made.changes.clear();
    try {
        recorder_->cut(made.changes);
    } catch (...) {
        segments_.pop_back();
        throw;
    }
    if (made.changes.empty()) {
        swap(made.changes, spare_);
        segments_.pop_back();
    }
}

void OpenScopes::end_part() {
    const std::size_t segments = segments_.size();
    const ByteCount bytes = segments == 0 ? 0 : segments_.back().changes.size();
    cut();
    if (segments_.size() != segments)
        recorder_->reserve_for(segments_.back().changes);
    else if (segments != 0)
        recorder_->reserve_for(segments_.back().changes.view_since(bytes));
}

void OpenScopes::call(ByteCount mapped, std::string_view name, const std::string& signature, std::span<const std::byte> arguments) {
    const bool cuts = !in_call();  // else it is refused, and what the procedure at work did so far stays its own
    if (cuts) {
        keep_touched();
        end_part();
    }
    segments_.reserve(segments_.size() + 1);
    Segment made;
    try {
        calls_.call(*recorder_, mapped, name, signature, arguments, made.changes, made.call);
    } catch (...) {
        doomed_ = doomed_ || kind_ == Kind::uncaptured;  // what it did can't be taken back alone
        if (cuts && kind_ != Kind::uncaptured) try_touch_again();
        throw;
    }
    if (!made.changes.empty()) segments_.push_back(std::move(made));
    if (kind_ != Kind::uncaptured) touch_again();
}

void OpenScopes::repeat(ByteCount mapped, const Entry& call, Direction direction) {
    end_part();
    segments_.reserve(segments_.size() + 1);
    Segment made;
    const auto add = [&] {
        if (!made.changes.empty()) segments_.push_back(std::move(made));
    };
    try {
        calls_.repeat(*recorder_, mapped, calls_.stored(call), direction, made.changes);
    } catch (...) {
        add();
        throw;
    }
    add();
}

}  // namespace taiyen::change
