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
            files_.note_recovering(page);
            if (sequence_of(page) == Sequence::annex)
                image_.annex().lay_over(page, image);
            else if (image.empty())
                std::memset(image_.live_page(page).data(), 0, page_bytes);
            else
                std::memcpy(image_.live_page(page).data(), image.data(), page_bytes);
        });
        files_.move_point([&](SavedPoint& point) { point.generation = {save.head.generation}; });
    }
    files_.move_point([&](SavedPoint& point) { point.extent = image_.mapped(); });
}

void HeapFile::replay_log(const LogTail& tail) {
    if (condition_.is_read_only()) vm::protect(image_.begin(), image_.mapped(), true);
    const ByteCount in_file = image_.mapped();
    files_.set_replaying(true);
    const std::unique_ptr<LogReplay> replay = log_replay_(files_.paths().log, files_.backing().header.capacity, tail.contained);
    log::ScanResult end{};
    try {
        end = log::Ring::scan(*files_.ring_file(), files_.ring_identity(), tail.start, [&](const log::Record& record) {
            if (planted(Bug::replay_skips_first_group) && record.position == tail.start.position) return true;
            replay->apply(record, *this);
            return !replay->is_done();
        });
        if (!tail.checked && !replay->is_done()) judge_end(end, files_.ring_identity().capacity_bytes, files_.paths().log, files_.found());
    } catch (const Error& error) {
        name_last_resort(error, files_.paths().log, files_.paths());
        throw;
    }
    files_.found().transactions_replayed = replay->transactions();
    count_row(Row::log_replayed);
    make_engine();  // what it knew is from before
    if (engine_->extent() > image_.mapped())
        throw Error(errc::corrupt, files_.paths().log, "the transaction log speaks of more than it makes room for; restore the files from a copy");
    files_.set_replaying(false);
    if (condition_.is_read_only()) {
        files_.move_point([&](SavedPoint& point) { point.serial = point.durable_serial = replay->last(); });
        vm::protect(image_.begin(), image_.mapped(), false);
        return;
    }
    // The log is right. What had to wait for that:
    proofs_.write_first_page();
    files_.grow(image_.mapped() - in_file, [&] {
        if (!planted(Bug::replay_keeps_tail)) files_.clear_growth({in_file, files_.point().annex.extent}, image_.mapped_extents());
        files_.make_long_enough(image_.mapped_extents());
    });
    // An intact record behind a torn one must never come back to life: nothing is appended to what has been replayed.
    const log::RingStart fresh{{random_u64()}, 0, 1, random_u64()};
    if (image_.annex().is_overlaid()) open_annex(0);
    save_at({replay->last(), planted(Bug::same_epoch_after_replay) ? end.next : fresh, image_.mapped()});
    image_.annex().replayed();
    proofs_.map_first_page();
    files_.grow(image_.mapped() - in_file, [&] { image_.map({in_file}, image_.mapped() - in_file, io::Protection::read_write); });
}

void HeapFile::change_view(const std::function<void(std::byte*)>& change) {
    TAIYEN_CHECK(condition_.is_read_only());
    vm::protect(image_.begin(), image_.mapped(), true);
    files_.set_replaying(true);  // what is restored from the second copy meanwhile stays writable
    try {
        change(image_.begin());
    } catch (...) {
        files_.set_replaying(false);
        throw;
    }
    files_.set_replaying(false);
    make_engine();  // what it knew is from before
    if (engine_->extent() > image_.mapped())
        throw Error(errc::corrupt, path(), "what was changed speaks of more than it makes room for; nothing was written");
    vm::protect(image_.begin(), image_.mapped(), false);
}

std::span<std::byte> HeapFile::replay_annex_page(PageNumber page) {
    return image_.annex().replay_page(page, [this](PageNumber base, std::span<std::byte> image) {
        const ChangedPage asked{base, 0};
        proofs_.read_bases({&asked, 1}, image);
    });
}

}  // namespace taiyen::store
