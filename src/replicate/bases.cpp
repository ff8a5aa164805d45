#include "replicate/bases.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "log/group.hpp"
#include "store/log_replay.hpp"
#include "store/page_file.hpp"

namespace taiyen::replicate {

store::Header Base::shape(const std::string& target) const {
    const store::Header shape = store::decode(body.header, target);
    const bool is_plain = shape.clean && !shape.is_new && shape.role == store::FileRole::backing && shape.state == store::FileState::whole &&
                          shape.ring_kind == store::RingKind::none && shape.data.is_nil() && shape.log.is_nil() &&
                          shape.replica.role == store::ReplicaRole::owner;
    if (!is_plain || !std::ranges::equal(shape.heap.bytes, head.heap))
        throw Error(errc::corrupt, target,
                    "the base that ends with frame " + std::to_string(head.number) + " is of no closed heap; restore an earlier state");
    return shape;
}

Base read_base(ReplicationTarget& target, std::uint64_t number) {
    const Frame frame(target, number);
    Base base{frame.head(), frame.begin_of_body<layout::BaseDone>()};
    if (frame.kind() != FrameKind::base_done || base.head.begin == 0 || base.head.begin >= number || base.body.begun.previous >= base.head.begin)
        frame.throw_corrupt("it is no base's end");
    return base;
}

std::vector<Base> with_those_below(ReplicationTarget& target, const Base& base) {
    std::vector<Base> bases{base};
    while (!bases.back().is_full()) bases.push_back(read_base(target, bases.back().body.begun.previous));
    std::ranges::reverse(bases);
    return bases;
}

PagesFrame::PagesFrame(const Frame& frame, const store::Extents& extents) : table_(frame.begin_of_body<store::TablePage>()) {
    const Uuid heap = frame.heap();
    if (!store::is_sound(table_, table_.index, heap)) frame.throw_corrupt("its page of the checksum table is none");
    is_held_ = store::holds_table(extents, table_.index);
    if (!is_held_) return;
    cover_ = store::cover_of(table_.index);
    count_ = cover_.count;
    while (count_ != 0 && !extents.hold({cover_.first.value + count_ - 1})) --count_;
    for (std::uint64_t i = count_; i < cover_.count; ++i)
        if (table_.entries[i] != 0) frame.throw_corrupt("it has pages behind the heap's end");
    images_ = frame.body().subspan(sizeof table_);
    std::span<const std::byte> left = images_;
    for (std::uint64_t i = 0; i < count_; ++i) {
        if (table_.entries[i] == 0) continue;
        if (left.size() < page_bytes) frame.throw_corrupt("it ends early");
        const PageNumber page{cover_.first.value + i};
        if (store::page_checksum(left.first(page_bytes), page, heap) != table_.entries[i])
            frame.throw_corrupt(store::text_of(page) + " has another checksum");
        left = left.subspan(page_bytes);
    }
    if (!left.empty()) frame.throw_corrupt("it has more pages than it says");
}

std::optional<log::Record> transactions_behind(const Frame& frame, Serial& last, std::optional<Serial> until) {
    log::Record all;
    all.kind = store::record_transactions;
    all.number = frame.head().first_serial;
    all.payload.assign(frame.body().begin(), frame.body().end());
    log::Record wanted;
    wanted.kind = all.kind;
    wanted.number = last.value + 1;
    wanted.payload.resize(sizeof(log::layout::GroupHead));
    log::layout::GroupHead head{};
    const bool is_group = log::for_each_in_group(all, [&](Serial serial, std::span<const std::byte> record) {
        if (serial.value != last.value + 1 || (until && serial > *until)) return;
        const log::layout::GroupRecordHead record_head{static_cast<std::uint32_t>(record.size()), 0};
        const auto head_bytes = std::as_bytes(std::span(&record_head, 1));
        wanted.payload.insert(wanted.payload.end(), head_bytes.begin(), head_bytes.end());
        wanted.payload.insert(wanted.payload.end(), record.begin(), record.end());
        wanted.payload.resize(round_up(wanted.payload.size(), 8));
        ++head.records;
        last = serial;
    });
    if (!is_group) frame.throw_corrupt("it holds no transactions");
    if (head.records == 0) return std::nullopt;
    std::memcpy(wanted.payload.data(), &head, sizeof head);
    return wanted;
}

}  // namespace taiyen::replicate
