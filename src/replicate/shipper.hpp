#pragma once
/// Shipper: brings what a transactional heap has committed to a target, frame by frame. It runs when it is called, on one thread: Replication's, or a test's.
///
/// (R1) Only durable transactions leave.
/// (R2) A frame is appended only as the successor of the last frame that this shipper knows. If another one is there, somebody else owns the target: nothing more is appended.
/// (R3) The frames hold every transaction, or a base that holds it. What the log hasn't (larger than it, loaded relaxed, overwritten before it was shipped) is followed by the pages that were saved since.
/// (R4) A base is exact as of one save: its last pages are read while saves are held, and what was saved since it began is among them.
/// (R5) A target that has lost its newest frames gets what they held again.
/// (R6) The heap's header says durably that it is attached before the target does.
/// Nobody waits for it: a commit never does, a save for what is read of the files at once.
/// Thread rule: one thread; the heap is used by others meanwhile, and open while a call runs.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include <taiyen/replicate/replication.hpp>

#include "log/group_log.hpp"
#include "replicate/frame.hpp"
#include "replicate/packed_frame.hpp"
#include "store/heap_file.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::replicate {

class Shipper {
public:
    /// All must outlive it, but for the heap, which must be open while a call runs.
    Shipper(store::HeapFile& heap, txn::TransactionService& service, ReplicationTarget& target, ByteCount frame_bytes, Codec codec = Codec::none);

    /// Becomes the one that appends, and sends what the target lacks to go on: all pages, or those saved since.
    /// Throws: Error{fenced}: another file replicates there; Error{diverged}: the target holds what isn't this file's history; Error{mismatch}: it holds another heap; nothing was appended. What the target throws.
    void attach();
    /// Sends what is durable and wasn't sent. False: there was nothing. Requires: attached. Throws: Error{fenced}, what the target throws: the next call goes on.
    bool ship();
    /// Sends all pages as of the newest transaction. Requires and throws: as ship.
    void make_base();
    /// Frames that nobody needs to restore what was written since `time` (microseconds since 1970), or what is kept, go; so do earlier bases. Throws: as ship.
    void trim(std::uint64_t time);
    /// What that group needs to restore the heap as of that transaction is not trimmed, whoever replicates it; nothing: nothing more is kept for it. The target knows it when this returns. Throws: as ship.
    void keep(const std::array<std::uint8_t, 16>& group, std::optional<Serial> serial);
    const KeptSerials& kept() const { return kept_; }

    /// Nothing is on its way any more when it returns: what has become of it the next call finds out.
    void settle() noexcept;

    /// Newest transaction that the target has.
    Serial shipped() const { return shipped_; }
    /// In the log, of the first group that it may not have; nothing: the log hasn't got what comes next.
    std::optional<std::uint64_t> position() const { return hold_ && !hold_->is_lost() ? std::optional(at_.position) : std::nullopt; }
    /// From there on up to `shipped` the target can restore the heap as of each transaction; earlier ones may have come as pages.
    Serial exact_from() const { return exact_from_; }
    const FrameHead& newest() const { return last_; }
    /// How many it has made, full and partial.
    std::uint64_t bases() const { return bases_; }
    struct BaseSent {
        std::chrono::microseconds took{0};
        std::uint64_t bytes = 0;  ///< of its frames
    };
    /// The newest of them.
    const BaseSent& base_sent() const { return base_sent_; }
    /// Of all frames that it has given to the target.
    std::uint64_t bytes_sent() const { return bytes_sent_; }
    /// When the newest base of all pages was complete; 0: there is none.
    std::uint64_t full_base_written_at() const { return full_base_written_at_; }
    /// Called before each frame; what it throws ends the call, and the next one goes on. Empty: nothing.
    std::function<void()> before_frame;
    /// Called when one is there. Empty: nothing.
    std::function<void()> after_frame;

private:
    /// Records on their way into a frame.
    struct Batch {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        std::uint32_t records = 0;
        std::vector<std::byte> body;
        /// Its memory stays.
        void clear() {
            body.clear();
            records = 0;
        }
    };
    struct Pending {
        FrameHead head;
        std::vector<std::byte> bytes;
    };
    log::GroupLog& log() const { return *service_.shared_log(); }
    Frame newest_frame(std::uint64_t number);
    void read_end();
    void require_ours();
    std::string host_of(const FrameHead& head) const;
    /// Also what an earlier call has left.
    void append(FrameKind kind, std::span<const std::span<const std::byte>> body, const FrameHead& like);
    /// Behind the frame that is on its way.
    Pending made(FrameKind kind, std::span<const std::span<const std::byte>> body, const FrameHead& like);
    Pending made(Batch& batch);
    void send(Pending next);
    void take_off();
    bool is_pending_there();
    void append_pending();
    /// The same, but for `after_frame`; returns the frame that is there now.
    std::optional<Pending> settle_pending();
    template <class F>
    void with_lost_frames(F&& step);
    FrameHead next_head() const { return successor(pending_ ? pending_->head : last_, heap_.files().table().heap()); }
    void append_epoch();
    /// Somebody else has appended: this file is no longer the one that may. Throws: Error{fenced}.
    [[noreturn]] void throw_fenced();
    bool was_owner(const FrameHead& newest) const;
    /// The heap refuses transactions from now on, and the file to be opened for writing. Throws: Error{fenced}.
    [[noreturn]] void depose(const FrameHead& newest);
    void note_covered(FrameHead& head) const;
    bool ship_records();
    bool scan_to(const log::GroupLog::Point& end);
    /// Pages saved since that generation, on top of what is there; all of them without one.
    void send_base(std::optional<Generation> since);
    void send_pages(std::uint64_t begin, const store::TablePage& table, std::span<const std::byte> pages, std::uint64_t count);
    void catch_up();

    store::HeapFile& heap_;
    txn::TransactionService& service_;
    ReplicationTarget& target_;
    const ByteCount frame_bytes_;
    FramePacker packer_;

    FrameHead last_{};  ///< of the newest frame; number 0: there is none
    Serial shipped_;
    Serial exact_from_;
    KeptSerials kept_;
    bool is_kept_unsure_ = false;   ///< what the target knows may be another thing
    bool was_attached_ = false;     ///< since then `kept_` is known
    bool must_attach_ = false;      ///< the target has lost its end
    bool are_frames_lost_ = false;  ///< and no base has come since
    Generation base_generation_;    ///< of the newest base, full or not
    bool is_base_lost_ = false;     ///< it is damaged
    bool is_base_full_ = false;     ///< the one that is sent
    std::uint64_t full_base_written_at_ = 0;
    std::uint64_t bases_ = 0;
    BaseSent base_sent_;
    std::uint64_t bytes_sent_ = 0;
    std::uint64_t base_bytes_ = 0;  ///< of the one that is sent
    std::chrono::steady_clock::time_point base_begun_;
    std::optional<Pending> pending_;             ///< appended, or about to be, but whether it is there is not known
    std::unique_ptr<log::GroupLog::Hold> hold_;  ///< null: what comes next isn't in the log, or nobody knows where
    log::RingStart at_;                          ///< a group of the log; all before it was shipped
    std::future<bool> flight_;                   ///< of the pending frame, while the next one is made; the last member: its end is waited for
};

}  // namespace taiyen::replicate
