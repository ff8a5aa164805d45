// What a crash has left in a ring, on top of the files: in the view of a reader, or saved.

#include <cstring>
#include <utility>

#include "base/planted.hpp"
#include "base/uuid.hpp"
#include "store/heap_file.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {

void HeapFile::apply_overlay(const std::vector<SaveRecord>& overlay, const io::File* stage) {
    // A reader's view of a heap whose user crashed: what recovery would write into the files goes into private copies.
    for (const SaveRecord& save : overlay) {
        for_each_saved_page(save, stage, [&](PageNumber page, std::uint64_t, std::span<const std::byte> image) {
            recovering_pages_.insert(page.value);
            if (sequence_of(page) == Sequence::annex) {
                annex_.lay_over(page, image);
            } else if (image.empty()) {
                std::memset(live_page(page).data(), 0, page_bytes);
            } else {
                std::memcpy(live_page(page).data(), image.data(), page_bytes);
            }
        });
        generation_ = {save.head.generation};
    }
    saved_extent_ = mapped_;
}

void HeapFile::replay_log(const LogTail& tail) {
    if (read_only_) {
        vm::protect(reservation_.data(), mapped_, true);
    }
    const ByteCount in_file = mapped_;
    replaying_ = true;
    const std::unique_ptr<LogReplay> replay = tuning_.log_replay(paths_.log, backing_->header.capacity, tail.contained);
    log::ScanResult end{};
    try {
        end = log::Ring::scan(*ring_file_, ring_identity_, tail.start, [&](const log::Record& record) {
            if (planted(Bug::replay_skips_first_group) && record.position == tail.start.position) return true;
            replay->apply(record, *this);
            return !replay->is_done();
        });
        if (!tail.checked && !replay->is_done()) {
            judge_end(end, ring_identity_.capacity_bytes, paths_.log, restoration_);
        }
    } catch (const Error& error) {
        name_last_resort(error, paths_.log, paths_);
        throw;
    }
    restoration_.transactions_replayed = replay->transactions();
    count_row(Row::log_replayed);
    make_engine();  // what it knew is from before
    if (engine_->extent() > mapped_) {
        throw Error(errc::corrupt, paths_.log, "the transaction log speaks of more than it makes room for; restore the files from a copy");
    }
    replaying_ = false;
    if (read_only_) {
        serial_ = durable_serial_ = replay->last();
        vm::protect(reservation_.data(), mapped_, false);
        return;
    }
    // The log is right. What had to wait for that:
    if (std::exchange(owes_first_page_, false)) {
        backing_->write_pages({0}, good_first_page().span());
        backing_->sync();
    }
    grow(mapped_ - in_file, [&] {
        if (!planted(Bug::replay_keeps_tail)) {
            clear_growth({in_file, saved_annex_.extent}, mapped_extents());
        }
        make_long_enough(mapped_extents());
    });
    // An intact record behind a torn one must never come back to life: nothing is appended to what has been replayed.
    const log::RingStart fresh{{random_u64()}, 0, 1, random_u64()};
    if (annex_.is_overlaid()) {
        annex_.open(0);
    }
    save_at({replay->last(), planted(Bug::same_epoch_after_replay) ? end.next : fresh, mapped_});
    annex_.replayed();
    if (std::exchange(first_page_is_ours_, false)) {
        map({0}, page_bytes, io::Protection::read_write);
    }
    grow(mapped_ - in_file, [&] { map({in_file}, mapped_ - in_file, io::Protection::read_write); });
}

}  // namespace taiyen::store
