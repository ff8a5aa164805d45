#include "store/healing.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/page_copies.hpp"

namespace taiyen::store {

/// One walk over both copies. Requires: saves are held, and the files have what the ring had.
class Healing::Walk {
public:
    Walk(Healing& healing, const TellLost& lost, const TellBytes& tell) : Walk(healing, lost, tell, healing.proofs_.pages_with_live_base()) {}
    Walk(Healing& healing, const TellLost& lost, const TellBytes& tell, std::unordered_set<std::uint64_t> live)
        : condition_(healing.condition_), files_(healing.files_), proofs_(healing.proofs_), lost_(lost), tell_(tell), live_(std::move(live)) {}

    /// Returns how many pages were restored. Throws: the first loss, if nobody is told of each.
    std::uint64_t run() {
        const Extents extents = files_.extents();
        const std::uint64_t total = extents.span + extents.annex;
        std::uint64_t done = 0;
        for_each_table_page(extents, [&](std::uint64_t index) {
            const std::optional<std::uint64_t> pages = heal_covered(index, extents);
            if (!pages) return;
            done += *pages * page_bytes;
            if (tell_) tell_(done, total);
            // The table page in memory is sound; a file that holds another one gets it again.
            heal_table(files_.backing(), index);
            if (files_.data()) heal_table(*files_.data(), index);
        });
        heal_behind(files_.backing(), extents);
        if (files_.data()) heal_behind(*files_.data(), extents);
        files_.note_healed(healed_);
        if (first_lost_) throw Error(*first_lost_);
        if (!tables_lost_) heal_root(extents);
        return healed_;
    }

    /// One page alone, or one of the table. Returns whether it had to be restored; one that is lost was told.
    bool run_one(const DamagedPage& damaged) {
        PageFile& file = damaged.in_data ? *files_.data() : files_.backing();
        PageFile* const data = files_.data();
        is_alone_ = true;
        if (damaged.of_table)
            heal_table(file, damaged.number);
        else
            heal_page(file, damaged.in_data ? &files_.backing() : data, {damaged.number});
        files_.note_healed(healed_);
        return healed_ != 0;
    }

private:
    /// The pages that a table page covers; how many those are. Nothing: the table page is lost.
    std::optional<std::uint64_t> heal_covered(std::uint64_t index, const Extents& extents) {
        try {
            files_.table().page(index);
        } catch (const Error& error) {
            if (error.code() != errc::corrupt && error.code() != errc::io_error) throw;
            lose(error);  // nothing says what its pages should be
            tables_lost_ = true;
            return std::nullopt;
        }
        PageFile* const data = files_.data();
        const TableCover cover = cover_of(index);
        std::uint64_t count = 0;
        for (; count < cover.count && extents.hold({cover.first.value + count}); ++count) {
            const PageNumber page{cover.first.value + count};
            heal_page(files_.backing(), data, page);
            if (data != nullptr) heal_page(*data, &files_.backing(), page);
        }
        return count;
    }

    void heal_page(PageFile& file, PageFile* second, PageNumber page) {
        const std::uint64_t expected = files_.table().entry(page);
        const bool is_backing = &file == &files_.backing();
        const bool is_live = live_.contains(page.value);
        if ((is_backing && is_live) || has_whole(file, page, bytes_, expected)) return;
        const bool was_read = could_be_read_;
        if (second == nullptr) {
            lose(file.corrupt_page(page, "its checksum differs and there is no second copy"));
            return;
        }
        if (!has_whole(*second, page, other_, expected)) {
            if (is_backing || is_live || is_alone_)  // else it was told already
                lose(file.corrupt_page(page, "its checksum differs in both copies"));
            return;
        }
        const bool is_seen = is_backing && was_read && !is_alone_ && !files_.uses_log() && proofs_.keeps_rot(page, bytes_.span(), other_.span());
        condition_.durable_step("healing", [&] {
            file.write_pages(page, other_.span());
            if (!is_alone_ || !planted(Bug::scrub_without_sync)) file.sync();
            if (!has_whole(file, page, bytes_, expected))
                file.throw_corrupt_page(page, "it reads back damaged after it was restored: the disk is failing");
        });
        ++healed_;
        if (!is_seen) return;
        condition_.poison("healing",
                          "a page was damaged on disk before it was changed, and what was stored there can't be told from what was damaged");
        file.throw_corrupt_page(page,
                                "it was changed on top of that, and what was stored there can't be told from what was damaged; the file has it again "
                                "as the newest save left it: close the heap and open it again");
    }

    /// Whether the file has the page whole. A page that the device can't read is as bad as one that it reads wrong.
    bool has_whole(const PageFile& file, PageNumber page, const AlignedBuffer& into, std::uint64_t expected) const {
        could_be_read_ = true;
        try {
            file.read_pages(page, into.span(), Via::device);
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
            could_be_read_ = false;
            return false;
        }
        return page_checksum(into.span(), page, files_.table().heap()) == expected;
    }

    void heal_table(PageFile& file, std::uint64_t index) {
        const TablePage& good = files_.table().page(index);
        TablePage found;
        bool same = false;
        try {
            file.read_table_page(index, found, Via::device);
            same = std::memcmp(&found, &good, sizeof found) == 0;
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
        }
        if (!same) {
            condition_.durable_step("healing", [&] {
                file.file().write(std::as_bytes(std::span(&good, 1)), file.layout.table_offset(index));
                file.sync();
            });
            ++healed_;
        }
    }

    /// What lies behind the extents, up to the file's end, is zero: it is the memory that the heap grows by. It needs no second copy.
    void heal_behind(PageFile& file, const Extents& extents) {
        if (clear_behind(file, extents) == 0) return;
        condition_.durable_step("healing", [&] {
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
            for (std::size_t k = 0; file.layout.has(sequence, k) && file.layout.table_of(sequence, k) < size; ++k)
                end = chunk_shapes[k].first + chunk_shapes[k].bytes;
            return end;
        };
        const std::uint64_t cleared = file.clear_growth(extents, {end_of(Sequence::span), end_of(Sequence::annex)});
        healed_ += cleared;
        return cleared;
    }

    /// A table page that had to be rebuilt may differ from the one that the headers stand for.
    void heal_root(const Extents& extents) {
        const std::uint64_t root = table_root_of(files_.backing(), extents, Via::device);
        if (root != files_.table().root()) {
            files_.table().set_root(root);
            condition_.durable_step("healing", [&] { files_.write_headers(); });
            ++healed_;
            files_.note_healed();
        }
    }

    /// What nobody has whole must not keep what somebody has from being restored.
    void lose(const Error& error) {
        if (lost_)
            lost_(error);
        else if (!first_lost_)
            first_lost_ = error;
    }

    Condition& condition_;
    HeapFiles& files_;
    const Proofs& proofs_;
    const TellLost& lost_;
    const TellBytes& tell_;
    const std::unordered_set<std::uint64_t> live_;
    const AlignedBuffer bytes_{page_bytes};
    const AlignedBuffer other_{page_bytes};
    std::uint64_t healed_ = 0;
    std::optional<Error> first_lost_;
    bool tables_lost_ = false;
    bool is_alone_ = false;
    mutable bool could_be_read_ = false;  ///< what was read last
};

std::uint64_t Healing::heal(const TellLost& lost, const TellBytes& tell) {
    condition_.check_usable(false);
    const auto lock = files_.hold_saves();
    saves_.checkpoint();
    const std::uint64_t restored = proofs_.restore_in_files();  // what memory alone has whole
    return restored + Walk(*this, lost, tell).run();
}

ByteCount Healing::look_over(PageNumber& next, ByteCount bytes, std::vector<DamagedPage>& damaged) {
    const Visits::Visit visit(visits_);
    const auto saves = files_.hold_saves();
    condition_.check_usable(false);
    const auto layout = files_.hold_layout();
    const Extents extents = files_.extents();
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
    while (!extents.hold({first.value + count - 1})) --count;
    move_on({first.value + count});
    ByteCount read = 0;
    bool table_is_lost = false;
    try {
        files_.table().page(index);
    } catch (const Error& error) {
        if (error.code() != errc::corrupt && error.code() != errc::io_error) throw;
        table_is_lost = true;  // nothing says what its pages should be
    }
    const AlignedBuffer pages(count * page_bytes);
    for (const PageFile* file : {&files_.backing(), files_.data()}) {
        if (file == nullptr) continue;
        const bool in_data = file == files_.data();
        if (first == cover.first || table_is_lost) {
            read += page_bytes;
            if (table_is_lost || !has_table_page(*file, index)) damaged.push_back({in_data, true, index});
        }
        if (table_is_lost) continue;
        read += pages.size();
        const bool some_are_refused = file->try_read_pages(first, pages.span(), Via::device).has_value();
        for (std::uint64_t i = 0; i < count; ++i) {
            const PageNumber page{first.value + i};
            const auto bytes_of_page = pages.span().subspan(i * page_bytes, page_bytes);
            if (saves_.is_pending(page.value)) continue;  // the file still has the save before
            const bool is_refused = some_are_refused && is_zero(bytes_of_page) && file->try_read_pages(page, bytes_of_page, Via::device);
            if (is_refused || page_checksum(bytes_of_page, page, files_.table().heap()) != files_.table().entry(page))
                damaged.push_back({in_data, false, page.value});
        }
    }
    return read;
}

/// Whether the file has the table page as memory has it, or is about to get it.
bool Healing::has_table_page(const PageFile& file, std::uint64_t index) {
    const TablePage& good = files_.table().page(index);
    TablePage found;
    return files_.table().is_changed(index) ||
           (!file.try_read_table_page(index, found, Via::device) && std::memcmp(&found, &good, sizeof found) == 0);
}

std::optional<Healed> Healing::heal_one(const DamagedPage& damaged) {
    const Visits::Visit visit(visits_);
    const auto saves = files_.try_hold_saves();
    if (!saves.owns_lock()) return std::nullopt;
    condition_.check_usable(false);
    if (damaged.in_data && !files_.data()) return Healed::whole;  // it was detached meanwhile
    const auto layout = files_.hold_layout();
    files_.require_whole();  // a write would make a file that was cut longer again
    if (!damaged.of_table && (saves_.is_pending(damaged.number) || !files_.extents().hold({damaged.number}))) return Healed::whole;
    bool is_lost = false;
    const TellLost lose = [&](const Error&) { is_lost = true; };
    const TellBytes nobody;
    try {
        const bool has_program_above = !damaged.of_table && !damaged.in_data && !files_.uses_log();
        if (has_program_above && files_.data() && !planted(Bug::scrub_below_stores)) {
            const AlignedBuffer image(page_bytes);
            files_.read_whole({damaged.number}, image.span(), "");
            waiting_.insert(damaged);
            return Healed::waits;
        }
        const bool is_healed = (!damaged.of_table || !files_.table().is_changed(damaged.number)) && Walk(*this, lose, nobody, {}).run_one(damaged);
        return is_lost ? Healed::lost : is_healed ? Healed::healed : Healed::whole;
    } catch (const Error& error) {
        if (condition_.is_poisoned() || (error.code() != errc::corrupt && error.code() != errc::io_error)) throw;
        return Healed::lost;
    }
}

void Healing::heal_waiting() {
    if (waiting_.empty()) return;
    const TellLost told_when_found = [](const Error&) {};
    const TellBytes nobody;
    const std::unordered_set<std::uint64_t> live = proofs_.pages_with_live_base();
    for (const DamagedPage& damaged : std::exchange(waiting_, {})) {
        // One whose base somebody has changed is a matter of the save (`check_base`).
        if (!saves_.is_pending(damaged.number)) Walk(*this, told_when_found, nobody, live).run_one(damaged);
    }
}

Error Healing::describe(const DamagedPage& damaged, const char* what) const {
    const Visits::Visit visit(visits_);
    const auto saves = files_.hold_saves();
    const auto layout = files_.hold_layout();
    const PageFile& file = damaged.in_data && files_.data() ? *files_.data() : files_.backing();
    const std::uint64_t offset =
        damaged.of_table ? file.layout.table_offset(damaged.number) : file.layout.file_offset(offset_of(PageNumber{damaged.number}));
    return {errc::corrupt, file.path(), offset,
            (damaged.of_table ? "a page of the checksum table" : text_of(PageNumber{damaged.number}) + " of the heap") + " is damaged: " + what};
}

}  // namespace taiyen::store
