#pragma once
/// Following: brings a follower's heap to where a target is, frame by frame. It runs when it is called, on one thread: Follower's, or a test's.
///
/// (F1) Each frame continues the one before, and transactions come without a gap; a follower whose frames are gone goes on from a base that isn't older than what it shows.
/// (F2) What is shown is durable here, so it is never taken back.
/// (F3) A base is compared with what is here, page by page: what differs becomes as it is there. So nothing that changed without a transaction is missed.
/// (F4) The place of the one that appends is taken at the target's end, by who has everything up to there; then the file says so durably, and may be changed.
/// Thread rule: one thread; readers use the heap meanwhile.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/storage.hpp"
#include "replicate/bases.hpp"
#include "store/heap_file.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::replicate {

class Following {
public:
    /// All must outlive it. Transactions of `service` are refused from now on.
    Following(store::HeapFile& heap, txn::TransactionService& service, ReplicationTarget& target);

    /// Does what the next frame says. False: there is none. `looks_back`: whether the frame before is still there is asked even then. Throws: Error{mismatch}: the target holds another heap; Error{diverged}: what this file has isn't there any more, nor is a base to go on from;
    /// Error{corrupt}; what the target throws, what the heap throws.
    bool step(bool looks_back = false);
    /// Notes durably how far it is: the next opening goes on from there. Throws: Error{io_error | poisoned | …}.
    void note_position();
    /// Becomes the one that appends, with everything that is there. From then on the file may be opened for writing. Throws: as step; Error{fenced}: another follower was promoted meanwhile; what the target
    /// throws: then it still follows, or owns the place already and takes it again when it is called again.
    void take_over();

    Serial applied() const { return service_.last_committed(); }
    /// Newest frame that was read; number 0: none.
    const FrameHead& position() const { return last_; }
    /// Newest transaction and frame that the target had when it was asked last.
    Serial newest() const { return newest_; }

private:
    struct Newest {
        std::uint64_t frame;     ///< of pages; 0: the base has none there, so they are zero
        std::uint64_t checksum;  ///< of that frame's head
        store::TablePage table;
    };
    /// Of table pages, by index.
    using Tables = std::map<std::uint64_t, Newest>;

    void require_same_heap(const Frame& frame) const;
    /// The frame that this file's header names. False: it isn't there any more.
    bool find_position(const ReplicationTarget::Range& range);
    /// Whether the newest frame that was read is still the one that it was.
    bool is_still_there() const;
    bool follow_next(const ReplicationTarget::Range& range);
    /// Where frames are gone: the newest base that isn't older than what is here, and isn't known. False: there is none yet.
    bool jump(const ReplicationTarget::Range& range);
    /// The same, past a frame that can't be followed. False: there is none.
    bool jump_beyond(std::uint64_t number, const ReplicationTarget::Range& range);
    void follow_found(const Base& base);
    /// Of that frame, and of those behind it that are there and hold transactions, too: together they become durable, and are shown.
    void follow_transactions(Frame frame, const ReplicationTarget::Range& range);
    void add_transactions(const Frame& frame, log::Record& all, Serial& last) const;
    /// `bases`: each on top of the one before. `has_all_up_to`: a frame up to which everything is here then.
    void follow_bases(const std::vector<Base>& bases, const FrameHead& has_all_up_to);
    /// The images of these pages, one behind the other, in a file without a name: what reads it needs no target.
    std::unique_ptr<io::File> spool(const Tables& tables, const std::vector<PageNumber>& pages, const store::Extents& extents) const;
    Tables read_tables(const std::vector<Base>& bases, const store::Extents& extents) const;
    /// Those that aren't here as they are there, ascending.
    std::vector<PageNumber> differing(const Tables& tables) const;

    store::HeapFile& heap_;
    txn::TransactionService& service_;
    ReplicationTarget& target_;
    bool is_placed_ = false;  ///< `last_` is what the header says, or newer
    FrameHead last_{};
    Serial newest_;
    std::uint64_t alone_until_ = 0;    ///< frames up to that number are followed one by one: one of them can't be
    std::uint64_t base_checksum_ = 0;  ///< of the end of the newest base that was followed
};

}  // namespace taiyen::replicate
