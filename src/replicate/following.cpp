#include "replicate/following.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"

namespace taiyen::replicate {
namespace {

/// Zeros where the heap has no page of the table.
const store::TablePage no_table{};

/// Of transactions that become durable together, and the frames that they come in.
constexpr ByteCount joined_bytes_max = 256_KiB;
constexpr std::uint64_t joined_frames_max = 256;

}  // namespace

Following::Following(store::HeapFile& heap, txn::TransactionService& service, ReplicationTarget& target)
    : heap_(heap), service_(service), target_(target) {
    service.refuse(Error(errc::follower, heap.path(), "this heap follows another file, and is only read; promote it to change it"));
}

// ---- frames

bool Following::find_position(const ReplicationTarget::Range& range) {
    const store::ReplicaMark& mark = heap_.files().backing().header.replica;
    if (mark.frame < range.first || mark.frame > range.last) return false;
    const Frame frame(target_, mark.frame);
    if (frame.head().checksum != mark.frame_checksum) return false;
    last_ = frame.head();
    return true;
}

bool Following::is_still_there() const {
    try {
        return Frame(target_, last_.number).head().checksum == last_.checksum;
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) throw;
        return false;
    }
}

bool Following::step(bool looks_back) {
    const ReplicationTarget::Range range = target_.range();
    if (range.empty()) return false;
    if (!is_placed_ && !find_position(range)) return jump(range);
    is_placed_ = true;
    if (range.last < last_.number) return jump(range);  // frames that were there are gone: what comes instead has a base
    if (range.last == last_.number) return looks_back && !is_still_there() && jump(range);
    if (range.first > last_.number + 1) return jump(range);
    try {
        return follow_next(range) || jump(range);
    } catch (const Error& error) {
        const bool is_passable = error.code() == errc::corrupt || error.code() == errc::missing_procedure;
        if (is_passable && jump_beyond(last_.number + 1, range)) return true;
        throw;
    }
}

/// False: it doesn't continue the last one.
bool Following::follow_next(const ReplicationTarget::Range& range) {
    Frame frame(target_, last_.number + 1);
    require_same_heap(frame);
    newest_ = std::max(newest_, Serial{frame.head().last_serial});
    if (frame.head().previous != last_.checksum) return false;
    frame.require_follows(last_);
    if (frame.kind() == FrameKind::records) {
        follow_transactions(std::move(frame), range);
        return true;
    }
    if (frame.kind() == FrameKind::base_done && frame.head().checksum != base_checksum_ && !planted(Bug::follower_passes_bases)) {
        const Base base = read_base(target_, frame.head().number);
        // One that is older than what is here came while transactions went on: what is here has come from those.
        if (base.serial() >= applied()) follow_bases({base}, base.head);
    }
    last_ = frame.head();
    return true;
}

void Following::require_same_heap(const Frame& frame) const {
    const Uuid& own = heap_.files().table().heap();
    if (frame.heap() == own) return;
    throw Error(errc::mismatch, target_.name(), "it holds the heap " + frame.heap().text() + ", not " + own.text() + "; follow it into another file");
}

bool Following::jump(const ReplicationTarget::Range& range) {
    const Frame newest(target_, range.last);
    require_same_heap(newest);
    newest_ = {newest.head().last_serial};
    // One that was followed already doesn't lead past what doesn't continue it.
    const auto found = find_base(target_, range, [&](const Base& base) { return base.serial() >= applied(); });
    if (!found || found->head.checksum == base_checksum_) {
        if (range.last <= last_.number && newest_ <= applied()) return false;  // whoever appends will see that frames are gone, and send a base
        throw Error(errc::diverged, target_.name(),
                    "the frames that this follower has read aren't there any more, and no base is new enough to go on from; make a base where the "
                    "heap is changed, or remove this file and follow again");
    }
    follow_found(*found);
    return true;
}

bool Following::jump_beyond(std::uint64_t number, const ReplicationTarget::Range& range) {
    const auto found = find_base(target_, range, [&](const Base& base) { return base.serial() >= applied() && base.head.begin > number; });
    if (!found) return false;
    follow_found(*found);
    return true;
}

void Following::follow_found(const Base& base) {
    const FrameHead begin = Frame(target_, base.head.begin).head();  // transactions may stand among the base's frames
    follow_bases(with_those_below(target_, base), begin);
    last_ = begin;
    is_placed_ = true;
    note_position();
}

void Following::note_position() {
    if (!is_placed_) return;
    store::ReplicaMark mark = heap_.files().backing().header.replica;
    if (mark.frame == last_.number && mark.frame_checksum == last_.checksum) return;
    mark.frame = last_.number;
    mark.frame_checksum = last_.checksum;
    heap_.companions().mark_replica(mark);
}

// ---- transactions

void Following::add_transactions(const Frame& frame, log::Record& all, Serial& last) const {
    if (frame.head().last_serial <= last.value) return;
    if (frame.head().first_serial > last.value + 1) frame.throw_corrupt("transactions before it are missing");
    const auto group = transactions_behind(frame, last);
    if (!group) return;
    if (all.payload.empty()) {
        all = *group;
        return;
    }
    log::layout::GroupHead head{};
    log::layout::GroupHead more{};
    std::memcpy(&head, all.payload.data(), sizeof head);
    std::memcpy(&more, group->payload.data(), sizeof more);
    all.payload.insert(all.payload.end(), group->payload.begin() + sizeof more, group->payload.end());
    head.records += more.records;
    std::memcpy(all.payload.data(), &head, sizeof head);
}

void Following::follow_transactions(Frame frame, const ReplicationTarget::Range& range) {
    log::Record all;
    Serial last = applied();
    add_transactions(frame, all, last);
    FrameHead newest = frame.head();
    const ByteCount bytes_max = std::min(joined_bytes_max, service_.log().capacity() / 8);
    const std::uint64_t end = newest.number >= alone_until_ ? std::min(range.last, newest.number + joined_frames_max) : newest.number;
    while (newest.number < end && all.payload.size() < bytes_max) {
        try {
            const Frame next(target_, newest.number + 1);
            if (next.kind() != FrameKind::records) break;
            next.require_follows(newest);
            add_transactions(next, all, last);
            newest = next.head();
        } catch (const Error&) {
            break;  // told when it is that frame's turn
        }
    }
    newest_ = std::max(newest_, Serial{newest.last_serial});
    try {
        if (!all.payload.empty()) service_.follow(all);
    } catch (const Error&) {
        if (newest.number == frame.head().number || heap_.condition().is_poisoned()) throw;
        alone_until_ = newest.number + 1;
        return;
    }
    last_ = newest;
}

// ---- bases

Following::Tables Following::read_tables(const std::vector<Base>& bases, const store::Extents& extents) const {
    Tables tables;
    if (bases.front().is_full()) store::for_each_table_page(heap_.files().extents(), [&](std::uint64_t index) { tables[index] = {0, 0, no_table}; });
    for (const Base& base : bases) {
        std::uint64_t frames = 0;
        std::optional<FrameHead> before;
        for (std::uint64_t number = base.head.begin; number <= base.head.number; ++number) {
            const Frame frame(target_, number);
            if (before) frame.require_follows(*before);
            before = frame.head();
            if (frame.kind() != FrameKind::pages || frame.head().begin != base.head.begin) continue;
            ++frames;
            const PagesFrame pages(frame, extents);
            if (pages.is_held()) tables[pages.table().index] = {number, frame.head().checksum, pages.table()};
        }
        if (frames != base.body.page_frames)
            throw Error(errc::corrupt, target_.name(),
                        "frames of the base that ends with frame " + std::to_string(base.head.number) + " are missing; make a new base");
    }
    if (bases.front().is_full()) {
        std::uint64_t root = 0;
        for (const auto& [index, newest] : tables)
            if (newest.table.checksum != 0) root += mix(index, newest.table.checksum);
        if (root != bases.back().shape(target_.name()).table_root)
            throw Error(
                errc::corrupt, target_.name(),
                "the pages of the base that ends with frame " + std::to_string(bases.back().head.number) + " don't belong together; make a new base");
    }
    return tables;
}

std::vector<PageNumber> Following::differing(const Tables& tables) const {
    std::vector<PageNumber> pages;
    const auto saves = heap_.files().hold_saves();
    const store::Extents here = heap_.files().extents();
    for (const auto& [index, newest] : tables) {
        const store::TablePage& own = store::holds_table(here, index) ? heap_.files().table().page(index) : no_table;
        const store::TableCover cover = store::cover_of(index);
        for (std::uint64_t i = 0; i < cover.count; ++i)
            if (newest.table.entries[i] != own.entries[i]) pages.push_back({cover.first.value + i});
    }
    std::ranges::sort(pages, {}, &PageNumber::value);
    return pages;
}

std::unique_ptr<io::File> Following::spool(const Tables& tables, const std::vector<PageNumber>& pages, const store::Extents& extents) const {
    std::unique_ptr<io::File> file = heap_.files().storage().create_unnamed(io::directory_of(heap_.path()));
    std::uint64_t at = 0;  // of the next image in the file
    for (std::size_t k = 0; k < pages.size();) {
        const std::uint64_t index = store::place_of(pages[k]).table_page;
        std::size_t end = k;
        while (end < pages.size() && store::place_of(pages[end]).table_page == index) ++end;
        std::vector<std::byte> images((end - k) * page_bytes);
        if (const Newest& newest = tables.at(index); newest.frame != 0) {
            const Frame frame(target_, newest.frame);
            if (frame.head().checksum != newest.checksum) frame.throw_corrupt("it has changed");
            const PagesFrame there(frame, extents);
            std::size_t next = k;
            there.for_each_run([&](PageNumber first, std::uint64_t count, std::span<const std::byte> run) {
                for (; next < end && pages[next].value < first.value + count; ++next) {
                    if (run.empty()) continue;
                    const auto from = run.subspan((pages[next].value - first.value) * page_bytes, page_bytes);
                    std::ranges::copy(from, images.begin() + static_cast<std::ptrdiff_t>((next - k) * page_bytes));
                }
            });
        }
        file->write(images, at);
        at += images.size();
        k = end;
    }
    return file;
}

void Following::follow_bases(const std::vector<Base>& bases, const FrameHead& has_all_up_to) {
    const Base& newest = bases.back();
    const store::Header shape = newest.shape(target_.name());
    const store::Header& own = heap_.files().backing().header;
    const bool lies_there = shape.position_independent ? own.position_independent : shape.base == own.base && !own.position_independent;
    if (shape.capacity != own.capacity || !lies_there) {
        throw Error(errc::mismatch, heap_.path(),
                    "the heap that this file follows was moved, or has another capacity now; remove this file, and follow again");
    }
    service_.save_itself();  // what is compared is what the files have
    const Tables tables = read_tables(bases, shape.extents());
    const std::vector<PageNumber> pages = differing(tables);
    if (!pages.empty() || newest.serial() != applied()) {
        const std::unique_ptr<io::File> images = spool(tables, pages, shape.extents());
        store::ReplicaMark mark = own.replica;
        mark.frame = has_all_up_to.number;
        mark.frame_checksum = has_all_up_to.checksum;
        service_.follow_pages(
            newest.serial(), shape.extent, shape.annex, pages,
            [&](std::span<const PageNumber> wanted, std::span<std::byte> to) {
                for (std::size_t k = 0; k < wanted.size(); ++k) {
                    const auto at =
                        static_cast<std::uint64_t>(std::ranges::lower_bound(pages, wanted[k].value, {}, &PageNumber::value) - pages.begin());
                    if (images->read(to.subspan(k * page_bytes, page_bytes), at * page_bytes) != page_bytes)
                        throw Error(errc::truncated, heap_.path(), "the file that pages wait in has become shorter");
                }
            },
            mark);
    }
    base_checksum_ = newest.head.checksum;
}

// ---- taking over

void Following::take_over() {
    const store::HeapFiles& files = heap_.files();
    Uuid owner;  // when this began
    for (bool is_first = true;; is_first = false) {
        bool has_followed = false;
        while (!planted(Bug::promoted_before_end) && step(true)) has_followed = true;
        if (planted(Bug::promoted_before_end)) last_ = Frame(target_, target_.range().last).head();
        if (last_.number == 0 || (target_.range().last < last_.number) || (!is_first && !has_followed && !planted(Bug::promoted_before_end))) {
            throw Error(errc::diverged, target_.name(),
                        "the newest frames that this follower has read aren't there any more, so nothing can go on behind them; copy the file, and "
                        "replicate the copy to another place");
        }
        const Frame newest(target_, last_.number);
        if (is_first) owner = newest.file();
        if (newest.file() != owner && newest.file() != files.backing().header.file)
            throw Error(errc::fenced, target_.name(), "another follower was promoted meanwhile; follow that one");
        store::ReplicaMark mark = files.backing().header.replica;
        std::ranges::copy(mark.attached, mark.attached_before);
        std::ranges::copy(random_uuid().bytes, mark.attached);
        mark.reopened_at = 0;
        const auto allow_changes = [&] {
            store::ReplicaMark allowed = mark;
            allowed.role = store::ReplicaRole::owner;
            allowed.frame = allowed.frame_checksum = 0;
            heap_.companions().mark_replica(allowed);
        };
        if (planted(Bug::promoted_unfenced))
            allow_changes();
        else
            heap_.companions().mark_replica(mark);  // who crashes now still follows, and takes the place again
        const EpochFrame epoch =
            encode_epoch(last_, files.table().heap(), files.backing().header.file, mark.attached, applied(), kept_at(target_, last_));
        if (!target_.append(epoch.head.number, epoch.bytes)) continue;  // frames have come
        last_ = epoch.head;
        if (!planted(Bug::promoted_unfenced)) allow_changes();
        return;
    }
}

}  // namespace taiyen::replicate
