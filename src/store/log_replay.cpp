#include "store/log_replay.hpp"

#include <cstring>
#include <utility>

#include "log/group.hpp"

namespace taiyen::store {
namespace {

class CutReplay final : public LogReplay {
public:
    CutReplay(std::unique_ptr<LogReplay> replay, Serial upto) : replay_(std::move(replay)), upto_(upto) {}

    void check(const log::Record& group) override {
        if (is_done()) return;
        if (is_whole(group)) return replay_->check(group);
        replay_->check(cut(group));
    }
    void apply(const log::Record& group, HeapFile& heap) override {
        if (is_done()) return;
        if (is_whole(group)) return replay_->apply(group, heap);
        replay_->apply(cut(group), heap);
    }
    Serial last() const override { return replay_->last(); }
    std::uint64_t transactions() const override { return replay_->transactions(); }
    bool is_done() const override { return replay_->last() >= upto_; }

private:
    /// Whether nothing in it stands behind the serial.
    bool is_whole(const log::Record& group) const {
        bool is_whole = true;
        const bool is_group = log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte>) { is_whole &= serial <= upto_; });
        return is_whole || !is_group;
    }
    /// The group without what stands behind the serial.
    log::Record cut(const log::Record& group) const {
        log::Record front = group;
        std::size_t end = sizeof(log::layout::GroupHead);
        log::layout::GroupHead head{};
        log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> bytes) {
            if (serial > upto_) return;
            ++head.records;
            end += sizeof(log::layout::GroupRecordHead) + round_up(bytes.size(), 8);
        });
        if (head.records == 0) return front;
        front.payload.resize(end);
        std::memcpy(front.payload.data(), &head, sizeof head);
        return front;
    }

    std::unique_ptr<LogReplay> replay_;
    Serial upto_;
};

}  // namespace

LogReplayMaker replay_up_to(LogReplayMaker make, Serial last) {
    return [make = std::move(make), last](const std::filesystem::path& log, ByteCount capacity, Serial contained) {
        return std::make_unique<CutReplay>(make(log, capacity, contained), last);
    };
}

}  // namespace taiyen::store
