// Healing: what one copy of a heap has damaged comes back from the other one. Each page is a durable step of its own, so that a crash leaves it healed or as it was.

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/heap_file.hpp"
#include "store/page_copies.hpp"

namespace taiyen::store {

/// One walk over both copies. Requires: saves are held, and the files have what the ring had.
class HeapFile::Healing {
public:
    Healing(HeapFile& heap, const TellLost& lost, const TellBytes& tell) : Healing(heap, lost, tell, heap.pages_with_live_base()) {}
    Healing(HeapFile& heap, const TellLost& lost, const TellBytes& tell, std::unordered_set<std::uint64_t> live)
        : heap_(heap), lost_(lost), tell_(tell), live_(std::move(live)) {}

    /// Returns how many pages were restored. Throws: the first loss, if nobody is told of each.
    std::uint64_t run() {
        const Extents extents = heap_.saved_extents();
        const std::uint64_t total = extents.span + extents.annex;
        std::uint64_t done = 0;
        for_each_table_page(extents, [&](std::uint64_t index) {
            const std::optional<std::uint64_t> pages = heal_covered(index, extents);
            if (!pages) {
                return;
            }
            done += *pages * page_bytes;
            if (tell_) {
                tell_(done, total);
            }
            // The table page in memory is sound; a file that holds another one gets it again.
            heal_table(*heap_.backing_, index);
            if (heap_.data_) {
                heal_table(*heap_.data_, index);
            }
        });
        heal_behind(*heap_.backing_, extents);
        if (heap_.data_) {
            heal_behind(*heap_.data_, extents);
        }
        heap_.note_healed(healed_);
        if (first_lost_) {
            throw Error(*first_lost_);
        }
        if (!tables_lost_) {
            heal_root(extents);
        }
        return healed_;
    }

    /// One page alone, or one of the table. Returns whether it had to be restored; one that is lost was told.
    bool run_one(const DamagedPage& damaged) {
        PageFile& file = damaged.in_data ? *heap_.data_ : *heap_.backing_;
        PageFile* const data = heap_.data_ ? &*heap_.data_ : nullptr;
        is_alone_ = true;
        if (damaged.of_table) {
            heal_table(file, damaged.number);
        } else {
            heal_page(file, damaged.in_data ? &*heap_.backing_ : data, {damaged.number});
        }
        heap_.note_healed(healed_);
        return healed_ != 0;
    }

private:
    /// The pages that a table page covers; how many those are. Nothing: the table page is lost.
    std::optional<std::uint64_t> heal_covered(std::uint64_t index, const Extents& extents) {
        try {
            heap_.table_.page(index);
        } catch (const Error& error) {
            if (error.code() != errc::corrupt && error.code() != errc::io_error) throw;
            lose(error);  // nothing says what its pages should be
            tables_lost_ = true;
            return std::nullopt;
        }
        PageFile* const data = heap_.data_ ? &*heap_.data_ : nullptr;
        const TableCover cover = cover_of(index);
        std::uint64_t count = 0;
        for (; count < cover.count && extents.hold({cover.first.value + count}); ++count) {
            const PageNumber page{cover.first.value + count};
            heal_page(*heap_.backing_, data, page);
            if (data != nullptr) {
                heal_page(*data, &*heap_.backing_, page);
            }
        }
        return count;
    }

    void heal_page(PageFile& file, PageFile* second, PageNumber page) {
        const std::uint64_t expected = heap_.table_.entry(page);
        const bool is_backing = &file == &*heap_.backing_;
        const bool is_live = live_.contains(page.value);
        if ((is_backing && is_live) || has_whole(file, page, bytes_, expected)) {
            return;
        }
        if (second == nullptr) {
            lose(file.corrupt_page(page, "its checksum differs and there is no second copy"));
            return;
        }
        if (!has_whole(*second, page, other_, expected)) {
            if (is_backing || is_live || is_alone_) {  // else it was told already
                lose(file.corrupt_page(page, "its checksum differs in both copies"));
            }
            return;
        }
        heap_.durable_step("healing", [&] {
            file.write_pages(page, other_.span());
            if (!is_alone_ || !planted(Bug::scrub_without_sync)) {
                file.sync();
            }
            if (!has_whole(file, page, bytes_, expected)) {
                file.throw_corrupt_page(page, "it reads back damaged after it was restored: the disk is failing");
            }
        });
        ++healed_;
    }

    /// Whether the file has the page whole. A page that the device can't read is as bad as one that it reads wrong.
    bool has_whole(const PageFile& file, PageNumber page, const AlignedBuffer& into, std::uint64_t expected) const {
        try {
            file.read_pages(page, into.span(), Via::device);
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
            return false;
        }
        return page_checksum(into.span(), page, heap_.table_.heap()) == expected;
    }

    void heal_table(PageFile& file, std::uint64_t index) {
        const TablePage& good = heap_.table_.page(index);
        TablePage found;
        bool same = false;
        try {
            file.read_table_page(index, found, Via::device);
            same = std::memcmp(&found, &good, sizeof found) == 0;
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
        }
        if (!same) {
            heap_.durable_step("healing", [&] {
                file.file().write(std::as_bytes(std::span(&good, 1)), file.layout.table_offset(index));
                file.sync();
            });
            ++healed_;
        }
    }

    /// What lies behind the extents, up to the file's end, is zero: it is the memory that the heap grows by. It needs no second copy.
    void heal_behind(PageFile& file, const Extents& extents) {
        if (clear_behind(file, extents) == 0) {
            return;
        }
        heap_.durable_step("healing", [&] {
            file.sync();
            if (clear_behind(file, extents) != 0) {
                throw Error(errc::corrupt, file.path(),
                            "what lies behind the heap's end reads back damaged after it was made zero: the disk is failing");
            }
        });
    }

    std::uint64_t clear_behind(PageFile& file, const Extents& extents) {
        const std::uint64_t size = file.file().info().size_bytes;
        // Of the last chunk that begins in the file.
        const auto end_of = [&](Sequence sequence) {
            std::uint64_t end = 0;
            for (std::size_t k = 0; file.layout.has(sequence, k) && file.layout.table_of(sequence, k) < size; ++k) {
                end = chunk_shapes[k].first + chunk_shapes[k].bytes;
            }
            return end;
        };
        const std::uint64_t cleared = file.clear_growth(extents, {end_of(Sequence::span), end_of(Sequence::annex)});
        healed_ += cleared;
        return cleared;
    }

    /// A table page that had to be rebuilt may differ from the one that the headers stand for.
    void heal_root(const Extents& extents) {
        const std::uint64_t root = table_root_of(*heap_.backing_, extents, Via::device);
        if (root != heap_.table_.root()) {
            heap_.table_.set_root(root);
            heap_.durable_step("healing", [&] { heap_.write_headers(); });
            ++healed_;
            heap_.note_healed();
        }
    }

    /// What nobody has whole must not keep what somebody has from being restored.
    void lose(const Error& error) {
        if (lost_) {
            lost_(error);
        } else if (!first_lost_) {
            first_lost_ = error;
        }
    }

    HeapFile& heap_;
    const TellLost& lost_;
    const TellBytes& tell_;
    const std::unordered_set<std::uint64_t> live_;
    const AlignedBuffer bytes_{page_bytes};
    const AlignedBuffer other_{page_bytes};
    std::uint64_t healed_ = 0;
    std::optional<Error> first_lost_;
    bool tables_lost_ = false;
    bool is_alone_ = false;
};

/// Pages whose base in the backing file, proven by nobody, is part of what the program sees. (A transactional heap saves what stands in its log on top of the file's own bytes.)
std::unordered_set<std::uint64_t> HeapFile::pages_with_live_base() const {
    std::unordered_set<std::uint64_t> live;
    const std::vector<vm::PageRun> runs = uses_log() ? std::vector<vm::PageRun>() : written_runs();
    const std::lock_guard lock(proof_mutex_);  // not before: who touches a hidden page takes its lock first
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            if (!saved_copies_.contains(page) && !proven_.contains({page})) {
                live.insert(page);
            }
        }
    }
    return live;
}

void HeapFile::heal_first_page(bool in_view_only) {
    // The engine reads the super block before anybody could call heal(): damage there is healed, or named, here.
    const PageNumber first{0};
    const AlignedBuffer found(page_bytes);
    const bool is_refused = backing_->try_read_pages(first, found.span(), Via::cache).has_value();
    if (page_checksum(found.span(), first, table_.heap()) == table_.entry(first)) {
        return;
    }
    const AlignedBuffer good = good_first_page();
    if (is_refused && in_view_only) {
        // Also a store would have the kernel fetch the page first.
        vm::map_anonymous(live_page(first).data(), page_bytes);
        vm::prepare_heap_mapping(live_page(first).data(), page_bytes);
        first_page_is_ours_ = true;
    } else if (read_only_) {
        vm::protect(live_page(first).data(), page_bytes, true);
    }
    if (in_view_only) {
        std::memcpy(live_page(first).data(), good.data(), page_bytes);
    } else {
        backing_->write_pages(first, good.span());
        backing_->sync();
    }
    if (read_only_) {
        vm::protect(live_page(first).data(), page_bytes, false);
    }
    owes_first_page_ = in_view_only && !read_only_;
    proven_.add(first);
    note_healed();
}

AlignedBuffer HeapFile::good_first_page() const {
    AlignedBuffer good(page_bytes);
    read_whole({0}, good.span(), data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
    return good;
}

void HeapFile::read_whole(PageNumber page, std::span<std::byte> image, const char* why) const {
    const std::uint64_t expected = table_.entry(page);
    std::optional<Error> refusal;
    for (const PageFile* file : {&*backing_, data()}) {
        if (file == nullptr) {
            continue;
        }
        if (auto refused = file->try_read_pages(page, image, Via::device); refused && !refusal) {
            refusal = std::move(refused);
        }
        if (page_checksum(image, page, table_.heap()) == expected) {
            return;
        }
    }
    if (refusal) {
        throw Error(*refusal);
    }
    backing_->throw_corrupt_page(page, why);
}

std::uint64_t HeapFile::heal(const TellLost& lost, const TellBytes& tell) {
    check_usable(false);
    const auto lock = hold_saves();
    checkpoint();
    const std::uint64_t restored = restore_in_files();  // what memory alone has whole
    return restored + Healing(*this, lost, tell).run();
}

// ---- by pieces, beside the program

ByteCount HeapFile::look_over(PageNumber& next, ByteCount bytes, std::vector<DamagedPage>& damaged) {
    const Visits::Visit visit(visits_);
    const auto saves = hold_saves();
    check_usable(false);
    const std::lock_guard layout(layout_mutex_);
    const Extents extents = saved_extents();
    const auto move_on = [&](PageNumber page) {
        const bool to_annex = !extents.hold(page) && sequence_of(page) == Sequence::span && extents.hold(annex_first_page);
        next = extents.hold(page) ? page : to_annex ? annex_first_page : PageNumber{0};
    };
    move_on(next);
    const PageNumber first = next;
    const std::uint64_t index = place_of(first).table_page;
    const TableCover cover = cover_of(index);
    std::uint64_t count =
        std::min(cover.first.value + cover.count - first.value, std::clamp<std::uint64_t>(bytes / page_bytes, 1, scrubbed_bytes_max / page_bytes));
    while (!extents.hold({first.value + count - 1})) {
        --count;
    }
    move_on({first.value + count});
    ByteCount read = 0;
    bool table_is_lost = false;
    try {
        table_.page(index);
    } catch (const Error& error) {
        if (error.code() != errc::corrupt && error.code() != errc::io_error) throw;
        table_is_lost = true;  // nothing says what its pages should be
    }
    const AlignedBuffer pages(count * page_bytes);
    for (const PageFile* file : {&backing(), data()}) {
        if (file == nullptr) {
            continue;
        }
        const bool in_data = file == data();
        if (first == cover.first || table_is_lost) {
            read += page_bytes;
            if (table_is_lost || !has_table_page(*file, index)) {
                damaged.push_back({in_data, true, index});
            }
        }
        if (table_is_lost) {
            continue;
        }
        read += pages.size();
        const bool some_are_refused = file->try_read_pages(first, pages.span(), Via::device).has_value();
        for (std::uint64_t i = 0; i < count; ++i) {
            const PageNumber page{first.value + i};
            const auto bytes_of_page = pages.span().subspan(i * page_bytes, page_bytes);
            if (pending_.contains(page.value)) {
                continue;  // the file still has the save before
            }
            const bool is_refused = some_are_refused && is_zero(bytes_of_page) && file->try_read_pages(page, bytes_of_page, Via::device);
            if (is_refused || page_checksum(bytes_of_page, page, table_.heap()) != table_.entry(page)) {
                damaged.push_back({in_data, false, page.value});
            }
        }
    }
    return read;
}

/// Whether the file has the table page as memory has it, or is about to get it.
bool HeapFile::has_table_page(const PageFile& file, std::uint64_t index) {
    const TablePage& good = table_.page(index);
    TablePage found;
    return table_.is_changed(index) || (!file.try_read_table_page(index, found, Via::device) && std::memcmp(&found, &good, sizeof found) == 0);
}

std::optional<HeapFile::Healed> HeapFile::heal_one(const DamagedPage& damaged) {
    const Visits::Visit visit(visits_);
    const std::unique_lock saves(save_mutex_, std::try_to_lock);
    if (!saves.owns_lock()) {
        return std::nullopt;
    }
    check_usable(false);
    if (damaged.in_data && !data_) return Healed::whole;  // it was detached meanwhile
    const std::lock_guard layout(layout_mutex_);
    require_whole_files();  // a write would make a file that was cut longer again
    if (!damaged.of_table && (pending_.contains(damaged.number) || !saved_extents().hold({damaged.number}))) {
        return Healed::whole;
    }
    bool is_lost = false;
    const TellLost lose = [&](const Error&) { is_lost = true; };
    const TellBytes nobody;
    try {
        const bool has_program_above = !damaged.of_table && !damaged.in_data && !uses_log();
        if (has_program_above && data_ && !planted(Bug::scrub_below_stores)) {
            const AlignedBuffer image(page_bytes);
            read_whole({damaged.number}, image.span(), "");
            waiting_.insert(damaged);
            return Healed::waits;
        }
        const bool is_healed = (!damaged.of_table || !table_.is_changed(damaged.number)) && Healing(*this, lose, nobody, {}).run_one(damaged);
        return is_lost ? Healed::lost : is_healed ? Healed::healed : Healed::whole;
    } catch (const Error& error) {
        if (poisoned_ || (error.code() != errc::corrupt && error.code() != errc::io_error)) throw;
        return Healed::lost;
    }
}

void HeapFile::heal_waiting() {
    if (waiting_.empty()) {
        return;
    }
    const TellLost told_when_found = [](const Error&) {};
    const TellBytes nobody;
    const std::unordered_set<std::uint64_t> live = pages_with_live_base();
    for (const DamagedPage& damaged : std::exchange(waiting_, {})) {
        // One whose base somebody has changed is a matter of the save (`check_base`).
        if (!pending_.contains(damaged.number)) {
            Healing(*this, told_when_found, nobody, live).run_one(damaged);
        }
    }
}

Error HeapFile::describe(const DamagedPage& damaged, const char* what) const {
    const Visits::Visit visit(visits_);
    const auto saves = hold_saves();
    const std::lock_guard layout(layout_mutex_);
    const PageFile& file = damaged.in_data && data_ ? *data_ : *backing_;
    const std::uint64_t offset =
        damaged.of_table ? file.layout.table_offset(damaged.number) : file.layout.file_offset(offset_of(PageNumber{damaged.number}));
    return {errc::corrupt, file.path(), offset,
            (damaged.of_table ? "a page of the checksum table" : text_of(PageNumber{damaged.number}) + " of the heap") + " is damaged: " + what};
}

}  // namespace taiyen::store
