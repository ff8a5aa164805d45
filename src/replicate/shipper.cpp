#include "replicate/shipper.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "log/group.hpp"
#include "store/opening_record.hpp"

namespace taiyen::replicate {
namespace {

using layout::BaseBegin;
using layout::BaseDone;
using layout::EpochBody;
using log::GroupLog;

/// What is sent of a base while saves are held stays below this, unless the heap is saved faster than it is sent.
constexpr std::uint64_t last_tables_max = 32;
constexpr unsigned passes_max = 8;
/// From there on the next frame is made while one is on its way.
constexpr ByteCount flight_bytes_min = 64_KiB;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Shipper::Shipper(store::HeapFile& heap, txn::TransactionService& service, ReplicationTarget& target, ByteCount frame_bytes, Codec codec)
    : heap_(heap), service_(service), target_(target), frame_bytes_(frame_bytes), packer_(codec) {}

// ---- frames

/// A save whose transactions the frames have, this one included, needs no pages.
void Shipper::note_covered(FrameHead& head) const {
    const store::SavedPoint point = heap_.files().point();
    const bool is_whole = point.serial == point.durable_serial;
    if (!is_whole || point.serial.value > head.last_serial) return;
    head.covered_generation = point.generation.value;
    head.covered_serial = point.serial.value;
}

void Shipper::append(FrameKind kind, std::span<const std::span<const std::byte>> body, const FrameHead& like) {
    append_pending();
    pending_.emplace(made(kind, body, like));
    append_pending();
}

Shipper::Pending Shipper::made(FrameKind kind, std::span<const std::span<const std::byte>> body, const FrameHead& like) {
    if (before_frame) before_frame();
    FrameHead head = like;
    head.kind = kind;
    for (const auto& piece : body) head.bytes_since_base += piece.size();
    if (kind == FrameKind::base_done && is_base_full_) head.bytes_since_base = 0;
    std::vector<std::byte> bytes = packer_.pack(encode(head, body));
    return {head, std::move(bytes)};
}

/// Behind the frame that is on its way. `append_pending` says what has become of it.
void Shipper::send(Pending next) {
    const std::optional<Pending> before = settle_pending();  // its memory goes when the next one is on its way
    pending_.emplace(std::move(next));
    if (pending_->bytes.size() >= flight_bytes_min) take_off();
    if (before && after_frame) after_frame();
    if (!flight_.valid()) append_pending();
}

void Shipper::take_off() {
    try {
        flight_ = std::async(std::launch::async, [this] { return target_.append(pending_->head.number, pending_->bytes); });
    } catch (const std::exception&) {}  // there is no thread for it, or no memory
}

bool Shipper::is_pending_there() { return flight_.valid() ? flight_.get() : target_.append(pending_->head.number, pending_->bytes); }

void Shipper::append_pending() {
    if (settle_pending() && after_frame) after_frame();
}

std::optional<Shipper::Pending> Shipper::settle_pending() {
    if (!pending_) return std::nullopt;
    bytes_sent_ += pending_->bytes.size();
    while (!is_pending_there()) {
        if (planted(Bug::refused_appended_anyway)) {
            pending_->head.number = target_.range().last + 1;
            pending_->head.previous = Frame(target_, pending_->head.number - 1).head().checksum;
            const std::vector<std::byte> body(pending_->bytes.begin() + sizeof(FrameHead), pending_->bytes.end());
            const std::array pieces{std::span<const std::byte>(body)};
            pending_->bytes = encode(pending_->head, pieces);
            continue;
        }
        hold_.reset();
        if (target_.range().last + 1 < pending_->head.number) {
            pending_.reset();
            must_attach_ = are_frames_lost_ = true;
            throw Error(errc::io_error, target_.name(), "frames that were there are gone; what they held is sent again");
        }
        throw_fenced();
    }
    last_ = pending_->head;
    if (last_.kind == FrameKind::base_begin) {
        base_begun_ = std::chrono::steady_clock::now();
        base_bytes_ = 0;
    }
    if (last_.kind != FrameKind::records) base_bytes_ += pending_->bytes.size();
    if (last_.kind == FrameKind::records) shipped_ = {last_.last_serial};
    if (last_.kind == FrameKind::base_done) {
        ++bases_;
        base_sent_ = {std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - base_begun_), base_bytes_};
        base_generation_ = {last_.covered_generation};
        is_base_lost_ = are_frames_lost_ = false;
        if (is_base_full_) full_base_written_at_ = last_.written_at;
    }
    return std::exchange(pending_, std::nullopt);
}

void Shipper::throw_fenced() {
    std::string where;
    bool is_deposed = false;
    try {
        const Frame newest(target_, target_.range().last);
        where = ", from " + host_of(newest.head());
        const Uuid& own = heap_.files().backing().header.file;
        is_deposed = newest.heap() == heap_.files().table().heap() && newest.file() != own && std::ranges::equal(last_.file, own.bytes);
        if (is_deposed) depose(newest.head());
    } catch (const Error& error) {
        if (error.code() != errc::corrupt || is_deposed) throw;  // whatever it is, it isn't ours
    }
    throw Error(errc::fenced, target_.name(),
                "somebody else appends frames there" + where + ": this file's transactions are no longer replicated; replicate to another place");
}

/// Whether this file appended frames there before the one that does now.
bool Shipper::was_owner(const FrameHead& newest) const {
    const Uuid& own = heap_.files().backing().header.file;
    if (std::ranges::equal(newest.file_before, own.bytes)) return true;
    // Another one may have been promoted since.
    const std::uint64_t first = target_.range().first;
    try {
        for (std::uint64_t epoch = newest.epoch_frame; epoch > first;) {
            const Frame before(target_, epoch - 1);
            if (before.file() == own) return true;
            epoch = before.head().epoch_frame;
        }
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) throw;
    }
    return false;
}

void Shipper::depose(const FrameHead& newest) {
    const Error error(errc::fenced, target_.name(),
                      "another file, on " + host_of(newest) +
                          ", was promoted in this one's place: what this one has committed since isn't there, and nothing more can be committed "
                          "here; open the other file");
    if (!planted(Bug::deposed_goes_on)) {
        service_.refuse(error);
        store::ReplicaMark mark = heap_.files().backing().header.replica;
        mark.role = store::ReplicaRole::deposed;
        heap_.companions().mark_replica(mark);
    }
    throw Error(error);
}

// ---- attaching

/// What nobody can read nothing can follow.
Frame Shipper::newest_frame(std::uint64_t number) {
    try {
        return {target_, number};
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) throw;
        throw Error(errc::corrupt, target_.name(),
                    sentence_of(error) + ". No frame can follow the newest one, which is that: replicate to another place");
    }
}

void Shipper::read_end() {
    const ReplicationTarget::Range range = target_.range();
    last_ = {};
    shipped_ = {};
    if (range.empty()) {
        if (range.last != 0) throw Error(errc::corrupt, target_.name(), "all frames were trimmed; replicate to another place");
        return;
    }
    const Frame newest = newest_frame(range.last);
    if (newest.heap() != heap_.files().table().heap()) {
        throw Error(errc::mismatch, target_.name(),
                    "it holds the heap " + newest.heap().text() + ", not " + heap_.files().table().heap().text() + "; replicate to another place");
    }
    last_ = newest.head();
    shipped_ = {last_.last_serial};
    base_generation_ = {};
    full_base_written_at_ = 0;
    is_base_lost_ = false;
    try {
        for (std::uint64_t number = last_.newest_base; number >= range.first;) {
            const Frame base(target_, number);
            if (number == last_.newest_base) base_generation_ = {base.head().covered_generation};
            if (base.file() != heap_.files().backing().header.file) is_base_lost_ = true;  // generations of another file mean nothing here
            const std::uint64_t before = base.begin_of_body<BaseDone>().begun.previous;
            if (before >= number) base.throw_corrupt("it lies on a later base");
            number = before;
            if (number == 0 && !is_base_lost_) full_base_written_at_ = base.head().written_at;
        }
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) throw;
        is_base_lost_ = true;  // nothing can be built on it any more: all pages are sent
    }
}

/// Of whoever attached last, for messages.
std::string Shipper::host_of(const FrameHead& head) const {
    if (head.epoch_frame < target_.range().first) return "a machine that the frames don't name any more";
    const auto body = Frame(target_, head.epoch_frame).begin_of_body<EpochBody>();
    return "the machine " + std::string(body.host, ::strnlen(body.host, sizeof body.host));
}

void Shipper::require_ours() {
    const store::Header& header = heap_.files().backing().header;
    if (!std::ranges::equal(last_.file, header.file.bytes)) {
        if (was_owner(last_)) depose(last_);
        throw Error(errc::fenced, target_.name(),
                    "another file of this heap replicates there, from " + host_of(last_) + "; replicate to another place");
    }
    const auto is = [&](const std::uint8_t(&attached)[16]) { return std::ranges::equal(last_.attached, attached); };
    const bool is_known = is(header.replica.attached) || is(header.replica.attached_before);
    const bool was_here = header.replica.reopened_at == 0 || header.replica.reopened_at - 1 >= last_.last_serial;
    if (!is_known || !was_here || log().durable().value < last_.last_serial) {
        throw Error(errc::diverged, target_.name(),
                    "it holds transactions up to " + std::to_string(last_.last_serial) +
                        " that are no part of this file's history: the file was brought back from an older copy, or was replicated to another place "
                        "since; restore the heap from there, or replicate to another place");
    }
}

void Shipper::settle() noexcept {
    if (flight_.valid()) flight_.wait();
    flight_ = {};
}

void Shipper::attach() {
    settle();
    pending_.reset();
    hold_.reset();
    service_.log_bytes_of_calls();
    read_end();
    store::ReplicaMark mark = heap_.files().backing().header.replica;
    const bool is_new_target = last_.number == 0;
    if (!is_new_target) require_ours();
    // Whatever becomes of this attachment, or of its frames: who goes back to the one before is known.
    std::ranges::copy(is_new_target ? mark.attached : last_.attached, mark.attached_before);
    std::ranges::copy(random_uuid().bytes, mark.attached);
    if (!was_attached_ && !is_new_target) kept_ = kept_at(target_, last_);
    const auto append_first = [&] {
        std::ranges::copy(mark.attached, last_.attached);
        append_epoch();
        was_attached_ = true;
    };
    if (planted(Bug::attached_before_marked)) append_first();
    if (!planted(Bug::attached_unmarked)) heap_.companions().mark_replica(mark);
    if (!planted(Bug::attached_before_marked)) append_first();
    mark.reopened_at = 0;
    // Of another target it can't be told any more what this file was when that one had its last frame.
    if (is_new_target) std::ranges::fill(mark.attached_before, std::uint8_t{0});
    if (!planted(Bug::attached_unmarked)) heap_.companions().mark_replica(mark);
    must_attach_ = false;
    catch_up();
}

/// Of the attachment that `last_` has: from here on this file appends, and what it keeps is known.
void Shipper::append_epoch() {
    append_pending();
    EpochFrame epoch = encode_epoch(last_, heap_.files().table().heap(), heap_.files().backing().header.file, last_.attached, log().durable(), kept_);
    pending_.emplace(Pending{epoch.head, std::move(epoch.bytes)});
    append_pending();
}

/// The target gets what it lacks so that the log's records continue it.
void Shipper::catch_up() {
    if (last_.newest_base == 0 || is_base_lost_) return send_base(std::nullopt);
    // Who had read frames that are gone goes on from a base.
    if (!are_frames_lost_) {
        const auto saves = heap_.files().hold_saves();
        const store::SavedPoint point = heap_.files().point();
        if (!service_.has_calls_behind(point.serial) && point.generation.value == last_.covered_generation &&
            point.serial.value <= last_.last_serial) {
            hold_ = std::make_unique<GroupLog::Hold>(log(), heap_.files().ring_identity().ring, GroupLog::Point{point.serial, point.log_start});
            at_ = point.log_start;
            if (!hold_->is_lost()) return;
        }
    }
    // On top of the newest base: what came between it and the covered save stands in records, which are not read any more behind a later base.
    send_base(planted(Bug::delta_from_newer) ? Generation{last_.covered_generation} : base_generation_);
}

// ---- records

/// `step` again if it finds frames gone that were there: behind another attachment, which sends what they held.
template <class F>
void Shipper::with_lost_frames(F&& step) {
    for (unsigned losses = 0;; ++losses) {
        try {
            if (must_attach_) attach();
            return step();
        } catch (const Error& error) {
            if (!must_attach_ || losses == 3) throw;  // who loses everything all the time is away
            report({static_cast<errc>(error.code().value()), nullptr, error.what()});
        }
    }
}

bool Shipper::ship() {
    const Serial before = shipped_;
    const std::uint64_t frames = last_.number;
    with_lost_frames([&] {
        append_pending();
        if (ship_records()) return;
        hold_.reset();
        catch_up();
    });
    return shipped_ != before || last_.number != frames;
}

/// False: the log hasn't got what comes next.
bool Shipper::ship_records() {
    if (!hold_ || hold_->is_lost()) return false;
    // A call from before it was known that the heap is replicated: what it changed comes as pages.
    if (service_.has_calls_behind(shipped_) && !planted(Bug::calls_replicated)) return false;
    const GroupLog::Point end = log().durable_point();
    if (end.serial > shipped_ && !scan_to(end)) return false;
    at_ = end.next;  // also where a frame that was refused at first was the last one: who waits for room in the log goes on
    hold_->move_on(at_.position);
    return true;
}

/// False: the log hasn't got all of it.
bool Shipper::scan_to(const GroupLog::Point& end) {
    Batch batch;
    std::uint64_t expected = shipped_.value + 1;
    bool is_whole = true;
    const auto file = hold_->file();
    if (!file) return false;
    const auto take = [&](const log::Record& group) {
        const std::int64_t count = log::count_in_group(group);
        if (count < 0 || group.number > expected || group.payload.size() > layout::frame_bytes_max / 2) {
            is_whole = planted(Bug::gap_shipped_over) && count >= 0;
            if (!is_whole) return false;
        }
        const std::uint64_t last = group.number + static_cast<std::uint64_t>(count) - 1;
        if (last >= expected) {
            if (batch.records == 0) {
                batch.first = group.number;
                batch.body.resize(sizeof(log::layout::GroupHead));
            }
            batch.body.insert(batch.body.end(), group.payload.begin() + sizeof(log::layout::GroupHead), group.payload.end());
            batch.records += static_cast<std::uint32_t>(count);
            batch.last = last;
            expected = last + 1;
            if (batch.body.size() >= frame_bytes_) {
                if (hold_->is_lost()) return false;
                send(made(batch));
                batch.clear();
            }
        }
        return last < end.serial.value;
    };
    try {
        const auto recent = hold_->recent(at_.position);
        if (recent.empty()) log::Ring::scan(*file, hold_->identity(), at_, take, end.next.position);
        for (const auto& group : recent)
            if (!take(*group)) break;
    } catch (const Error&) {
        if (flight_.valid()) append_pending();
        if (pending_ || !hold_ || !hold_->is_lost()) throw;
        return false;  // what was read is what came to stand there
    }
    append_pending();
    if (hold_->is_lost()) return false;
    if (batch.records != 0) pending_.emplace(made(batch));
    append_pending();
    return is_whole && (shipped_ >= end.serial || planted(Bug::gap_shipped_over));
}

Shipper::Pending Shipper::made(Batch& batch) {
    const log::layout::GroupHead group{batch.records, 0};
    std::memcpy(batch.body.data(), &group, sizeof group);
    FrameHead head = next_head();
    head.first_serial = batch.first;
    head.last_serial = batch.last;
    note_covered(head);
    const std::array pieces{std::span<const std::byte>(batch.body)};
    return made(FrameKind::records, pieces, head);
}

// ---- bases

void Shipper::send_pages(std::uint64_t begin, const store::TablePage& table, std::span<const std::byte> pages, std::uint64_t count) {
    std::vector<std::span<const std::byte>> pieces{bytes_of(table)};
    store::for_each_alike(table, count, [&](std::uint64_t i, std::uint64_t run, bool is_zero) {
        if (!is_zero) pieces.push_back(pages.subspan(i * page_bytes, run * page_bytes));
    });
    FrameHead head = next_head();
    head.begin = begin;
    append(FrameKind::pages, pieces, head);
}

void Shipper::send_base(std::optional<Generation> since) {
    store::HeapFiles& files = heap_.files();
    store::Companions& companions = heap_.companions();
    // Everything that was shipped is in the files: the frames behind the base's beginning hold all that comes after it.
    if (files.durable_serial() < service_.last_committed() || service_.is_ahead_of_log()) service_.save_itself();
    is_base_full_ = !since;
    const BaseBegin begun{since ? since->value : 0, since ? last_.newest_base : 0};
    const std::array head_piece{bytes_of(begun)};
    append(FrameKind::base_begin, head_piece, next_head());
    const std::uint64_t begin = last_.number;
    std::uint64_t page_frames = 0;
    const AlignedBuffer buffer(store::entries_per_table_page * page_bytes);
    std::optional<Generation> sent = since;

    // First beside the program's saves, piece by piece; again and again, until little is left.
    for (unsigned pass = 0; pass < passes_max; ++pass) {
        Generation now_saved;
        store::Extents extents;
        std::uint64_t left = 0;
        {
            const auto saves = files.hold_saves();
            now_saved = files.point().generation;
            extents = files.extents();
            store::for_each_table_page(extents, [&](std::uint64_t index) {
                const store::TablePage& table = files.table().page(index);
                left += sent ? (table.generation > sent->value ? 1 : 0) : (table.checksum != 0 ? 1 : 0);
            });
        }
        if (left <= last_tables_max) break;
        store::for_each_table_page(extents, [&](std::uint64_t index) {
            store::TablePage table;
            std::uint64_t count = 0;
            {
                const auto saves = files.hold_saves();
                heap_.condition().check_usable(false);
                count = companions.read_saved(index, sent, files.extents(), buffer.span());  // the heap may have grown
                if (count != 0) table = files.table().page(index);
            }
            if (count == 0) return;
            send_pages(begin, table, buffer.span(), count);
            ++page_frames;
            ship_records();  // who waits for them doesn't wait for the base
        });
        sent = now_saved;
    }

    // Then what is left, and the heap's shape, as of one save.
    struct Tables {
        store::TablePage table;
        std::vector<std::byte> pages;
        std::uint64_t count;
    };
    std::vector<Tables> left;
    BaseDone done{begun, 0, 0, {}};
    store::SavedPoint point;
    std::unique_ptr<GroupLog::Hold> hold;
    {
        auto saves = files.hold_saves();
        heap_.condition().check_usable(false);
        const store::Extents extents = files.extents();
        store::for_each_table_page(extents, [&](std::uint64_t index) {
            if (const std::uint64_t count = companions.read_saved(index, sent, extents, buffer.span()); count != 0) {
                const auto pages = buffer.span().first(count * page_bytes);
                left.push_back({files.table().page(index), {pages.begin(), pages.end()}, count});
            }
        });
        if (planted(Bug::base_without_hold)) {
            saves.unlock();
            planted_step();
            saves.lock();
        }
        point = files.point();
        store::Header header = companions.header_of_copy();
        done.header = store::encode(header);
        hold = std::make_unique<GroupLog::Hold>(log(), files.ring_identity().ring, GroupLog::Point{point.serial, point.log_start});
    }
    for (const Tables& tables : left) {
        send_pages(begin, tables.table, tables.pages, tables.count);
        ++page_frames;
        ship_records();
    }
    done.page_frames = page_frames;
    ship_records();  // up to that save, if the log has it: then the heap can be restored as of each of them
    if (shipped_ < point.serial || !hold_ || hold_->is_lost()) {
        if (shipped_ < point.serial) shipped_ = exact_from_ = point.serial;
        hold_ = std::move(hold);
        at_ = point.log_start;
    }
    FrameHead head = next_head();
    head.begin = begin;
    head.newest_base = head.number;
    head.last_serial = shipped_.value;
    head.covered_generation = point.generation.value;
    head.covered_serial = point.serial.value;
    const std::array pieces{bytes_of(done)};
    append(FrameKind::base_done, pieces, head);
}

void Shipper::make_base() {
    with_lost_frames([&] { send_base(std::nullopt); });
}

// ---- what is kept

void Shipper::keep(const std::array<std::uint8_t, 16>& group, std::optional<Serial> serial) {
    KeptSerials kept = kept_;
    if (serial)
        kept[group] = *serial;
    else
        kept.erase(group);
    if (kept == kept_ && !is_kept_unsure_) return;
    std::swap(kept, kept_);
    is_kept_unsure_ = true;
    try {
        with_lost_frames([&] { append_epoch(); });
        is_kept_unsure_ = false;
    } catch (...) {
        kept_ = std::move(kept);
        throw;
    }
}

void Shipper::trim(std::uint64_t time) {
    Serial serial{~std::uint64_t{0}};
    for (const auto& [group, first] : kept_) serial = std::min(serial, first);
    // The newest base that is older than that is the first that is needed, and so is all that it stands on.
    std::uint64_t done = last_.newest_base;
    while (done != 0) {
        const Frame frame(target_, done);
        const auto base = frame.begin_of_body<BaseDone>();
        if (base.begun.previous == 0) {
            if (frame.head().written_at <= time && frame.head().covered_serial <= serial.value) {
                if (!kept_.empty() && last_.epoch_frame < frame.head().begin && !planted(Bug::kept_not_carried)) append_epoch();
                return target_.trim(frame.head().begin);
            }
            const Frame begin(target_, frame.head().begin);
            done = begin.head().newest_base;
        } else {
            done = base.begun.previous;
        }
        if (done < target_.range().first) return;
    }
}

}  // namespace taiyen::replicate
