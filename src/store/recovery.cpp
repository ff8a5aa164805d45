#include "store/recovery.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/engine_layout.hpp"
#include "io/blank.hpp"
#include "store/opening_record.hpp"
#include "store/page_copies.hpp"
#include "store/page_table.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {
namespace {

/// Writes the saves' pages into the backing file and (not null) the data file, unconditionally, then tables, sync, headers; with a new epoch, or the ring going on from
/// where it has been read.
void install(OpenFiles& files, PageFile* data, const std::vector<SaveRecord>& saves, const log::RingStart& ring_start, bool new_epoch) {
    PageFile& backing = *files.backing;
    const std::set<std::uint64_t> covered = pages_of(saves);
    Header after = backing.header;
    for (const SaveRecord& save : saves) {
        after.extent = std::max<ByteCount>(after.extent, save.head.extent);
        after.annex = save.annex;
    }
    const Extents extents = after.extents();
    const auto is_covered = [&](PageNumber page) { return covered.contains(page.value); };
    PageTable table(
        backing.header.heap,
        [&](std::uint64_t index, TablePage& page) { load_table_page(backing, data, index, extents, is_covered, Via::device, page); }, 0);
    const auto into_both = [&](auto&& write) {
        write(backing);
        if (data != nullptr) write(*data);
    };
    into_both([&](PageFile& file) {
        const Extents before = file.header.extents();
        file.layout = planted(Bug::annex_guessed_place) ? file.layout.with_annex(after.annex.extent, before.span) : FileLayout(after.annex.places);
        if (!planted(Bug::install_keeps_tail)) file.clear_growth(before, extents, is_covered);
        file.make_long_enough(extents);
    });
    for (const SaveRecord& save : saves) {
        for_each_saved_page(save, files.ring.get(), [&](PageNumber page, std::uint64_t sum, std::span<const std::byte> image) {
            into_both([&](PageFile& file) {
                if (sum != 0)
                    file.write_pages(page, image);
                else if (save.punches())
                    file.punch_pages(page, 1);
                else
                    file.write_zero_pages(page, 1);
            });
            table.set(page, sum);
        });
        count_row(save.staged() ? Row::stage_installed : Row::records_installed);
    }
    if (!saves.empty()) {
        // Also a table page whose entries did not change is written again: an interrupted checkpoint may have torn it.
        std::uint64_t last = ~std::uint64_t{0};
        for (const std::uint64_t page : covered) {
            const std::uint64_t index = place_of({page}).table_page;
            if (index != last) {
                table.touch(index);
                last = index;
            }
        }
        const Generation generation{saves.back().head.generation};
        table.write_changed(generation, [&](const TablePage& page) {
            if (!planted(Bug::annex_without_table) || sequence_of_table(page.index) == Sequence::span)
                into_both([&](PageFile& file) { file.write_table_page(page); });
        });
        into_both([](PageFile& file) { file.sync(); });
        backing.header.generation = generation;
        backing.header.serial = {saves.back().head.serial};
        backing.header.extent = after.extent;
        backing.header.annex = after.annex;
        backing.header.table_root = table_root_of(backing, extents, Via::cache, data);
    }
    if (saves.empty() && data != nullptr && data->header.extents() != extents && !planted(Bug::cleared_without_sync)) {
        // A save that only made room had not reached it; now its header is about to speak of these pages, which this recovery has cleared, or one that was killed behind that.
        data->sync();
    }
    backing.header.state = FileState::whole;
    backing.header.staged = {};
    backing.header.ring_start = ring_start;
    if (new_epoch) {
        if (planted(Bug::ring_restarts_in_old_epoch)) {
            backing.header.ring_start.position = 0;
            backing.header.ring_start.sequence = 1;
        } else if (!planted(Bug::same_epoch_after_recovery)) {
            backing.header.ring_start = {{random_u64()}, 0, 1, random_u64()};
        }
    }
    backing.header.clean = false;
    backing.write_header();
    if (data != nullptr) {
        data->header.take_content(backing.header);
        data->header.is_new = false;
        data->write_header();
    }
}

[[noreturn]] void throw_problem(const std::filesystem::path& path, const SlotProblem& problem) {
    const bool damaged = problem.code == errc::corrupt;
    throw Error(problem.code, path, 0, problem.what + (damaged ? "; restore the file from a copy" : ""));
}

bool is_short(const PageFile& file) { return file.file().info().size_bytes < file.layout.file_bytes_for(file.header.extents()); }

/// One opening: looks at the files, chooses the row, reads what the ring has, and carries the row out.
class Recovery {
public:
    Recovery(io::Storage& storage, const HeapPaths& paths, bool read_only, bool detach_data, RingUse use)
        : storage_(storage), paths_(paths), read_only_(read_only), detach_data_(detach_data), use_(use) {
        files_.restoration.opened_at = time_now();
    }

    /// As open_files().
    OpenFiles run(const LogReplayMaker& log_replay, const std::function<void(const Header&)>& before_writing) {
        look_at_backing();
        look_at_data();
        choose();
        require_countable();
        const bool was_staged = newest_.state == FileState::staged;
        ring_ = (use_ == RingUse::given_up ? read_what_is_left : read_ring)(storage_, paths_, newest_, read_only_, files_.restoration);
        prove();
        files_.restoration.cause = cause(was_staged);
        if (ring_.tail && !read_only_ && writes_before_log()) check_tail(ring_, newest_, paths_, log_replay, files_.restoration);
        if (!planted(Bug::copy_keeps_capacity)) backing().header.capacity = newest_.capacity;
        before_writing(newest_);
        files_.ring = ring_.file;
        files_.tail = ring_.tail;
        if (read_only_) {
            files_.map_data = row_ == CopyRow::data_to_backing || row_ == CopyRow::backing_rebuilt;
            files_.overlay = std::move(ring_.saves);
            files_.stage = ring_.file;
        } else {
            carry_out();
        }
        return std::move(files_);
    }

private:
    using Data = CopiesFound::Data;
    PageFile& backing() { return *files_.backing; }
    PageFile& data() { return *files_.data; }

    // 1. What is there.
    void look_at_backing() {
        if (is_restorable(storage_, paths_)) {
            if (!paths_.data_is_beside)
                throw Error(
                    errc::not_found, paths_.backing,
                    "the heap is missing; its data file, " + paths_.data.string() + ", is whole: make an empty file here, and opening fills it");
            found_.backing_lost = true;
            is_missing_ = true;
            return;
        }
        backing_file_ = open_locked(storage_, paths_.backing, read_only_);
        backing_slots_ = read_slots(*backing_file_);
        if (const Header* const newest = backing_slots_.newest()) {
            if (newest->role != FileRole::backing)
                throw Error(errc::mismatch, paths_.backing, "this is the data file of a heap; open the heap's own file instead");
            files_.backing.emplace(backing_file_, *newest);
            found_.backing_generation = newest->generation;
        } else if (!was_a_heap(*backing_file_, backing_slots_.verdict(), is_blank_) || !storage_.find(paths_.data)) {
            throw_lost();
        } else {
            found_.backing_lost = true;
        }
    }
    /// Whether a file without a header may be written over: it is recognisable as a heap's, or nothing is in its place but zeros (`is_blank`), or it was cut there.
    static bool was_a_heap(const io::File& file, const SlotProblem& problem, bool& is_blank) {
        if (problem.code == errc::corrupt || problem.code == errc::truncated) return true;
        if (problem.code == errc::io_error) return false;
        const AlignedBuffer head(chunks_offset);
        const std::span<const std::byte> found = head.first(file.read_direct(head.span(), 0));
        const std::span<const std::byte> beginning = header_beginning();
        // What is left of a cut file is followed by zeros once it is being filled again.
        const auto there = static_cast<std::size_t>(std::ranges::mismatch(found, beginning).in1 - found.begin());
        return is_blank = is_zero(found.subspan(there));
    }
    /// Of a file that begins with zeros: whether its first table page is that heap's, or nothing else is in it either.
    static bool holds_nothing_else(const io::File& file, const Uuid& heap) {
        const AlignedBuffer piece(sizeof(TablePage));
        TablePage table;
        const ByteCount got = file.read_direct(piece.span(), chunks_offset);
        std::memcpy(&table, piece.data(), sizeof table);
        return (got == sizeof table && table.checksum != 0 && is_sound(table, 0, heap)) || io::is_blank(file, chunks_offset);
    }
    [[noreturn]] void throw_lost() const {
        if (is_missing_) throw Error(errc::not_found, paths_.backing, "the heap is missing, and its data file alone can't bring it back");
        throw_problem(paths_.backing, backing_slots_.verdict());
    }

    void look_at_data() {
        if (!found_.backing_lost) {
            if (backing().header.data.is_nil()) return;
            const bool is_there = storage_.find(paths_.data).has_value() && !is_orphan_of_another_data();
            if (!is_there && !detach_data_) require_closed_beside();
            if (is_there && detach_data_)
                throw Error(errc::already_exists, paths_.data,
                            "the data file is here, so it can't be done without (detach_data_file): open the heap with it, or move it away first");
            if (!is_there) {
                found_.data = Data::missing;
                remakes_data_ = !detach_data_;
                return;
            }
        }
        const std::shared_ptr<io::File> file = open_locked(storage_, paths_.data, read_only_);
        if (is_missing_) {
            if (storage_.find(paths_.backing)) throw Error(errc::busy, paths_.backing, "the heap is being restored by somebody else; try again");
            // A reader takes one file for both: it writes to neither.
            backing_file_ = read_only_ ? file : storage_.create_unnamed(io::directory_of(paths_.backing));
            if (!read_only_ && !backing_file_->try_lock(io::Lock::exclusive))
                throw Error(errc::busy, paths_.backing, "a file that was just made is locked; try again");
        }
        const Slots slots = read_slots(*file);
        if (const Header* const newest = slots.newest()) {
            if (is_blank_ && !holds_nothing_else(*backing_file_, newest->heap)) throw_lost();
            require_belongs(*newest);
            files_.data.emplace(file, *newest);
            files_.header_behind = slots.damaged();
            found_.data = newest->state == FileState::whole ? Data::whole : Data::filling;
        } else if (found_.backing_lost) {
            throw_lost();
        } else {
            require_damaged(*file, slots.verdict());
            files_.data.emplace(file, header_of_lost_data());
            found_.data = Data::lost;
        }
        const Header& header = data().header;
        found_.data_generation = header.generation;
        found_.data_clean = header.clean;
        found_.data_unused = header.is_new;
    }
    /// Whether a data file was being made in the place of one that was lost, and the heap doesn't name it yet: it goes when another one is attached.
    bool is_orphan_of_another_data() const {
        const Slots slots = read_slots(*storage_.open(paths_.data, io::Access::read_only));
        const Header* const newest = slots.newest();
        const Header& own = files_.backing->header;
        return newest != nullptr && newest->role == FileRole::data && newest->is_new && newest->heap == own.heap && newest->file != own.data;
    }
    /// That the data file, which is missing, had nothing that the backing file lacks, and can't be somewhere else.
    void require_closed_beside() const {
        const Header& header = files_.backing->header;
        if (!read_only_ && header.clean && header.data_is_beside && paths_.data_is_beside) return;
        throw Error(
            errc::mismatch, paths_.data,
            "the heap's data file is missing: put it beside the heap, or name it in the options; if it is lost, open with detach_data_file to "
            "go on without it");
    }
    /// That it is the heap's data file.
    void require_belongs(const Header& found) const {
        if (found.role != FileRole::data) throw_other_heap();
        if (found_.backing_lost) return;
        const Header& own = files_.backing->header;
        if (found.heap != own.heap || found.file != own.data) throw_other_heap();
        // An interrupted save that moves the heap, or gives it another capacity: the data file has it already.
        const bool moved = found.state == FileState::whole && found.generation.value == own.generation.value + 1;
        const bool resized = found.capacity != own.capacity;
        if (((found.base != own.base || resized) && !moved) || (resized && capacity_in_span(found) != found.capacity))
            throw Error(errc::mismatch, paths_.data, "address and capacity are not the heap's; restore the file from a copy");
        if (found.position_independent != own.position_independent)
            throw Error(errc::mismatch, paths_.data, "only one of the two may be mapped anywhere; restore the file from a copy");
        if (!grows_from(own.annex, found.annex) && !grows_from(found.annex, own.annex))
            throw Error(errc::mismatch, paths_.data, "its annex lies elsewhere than the heap's; restore the file from a copy");
    }
    /// What the data file's first page says.
    ByteCount capacity_in_span(const Header& found) const {
        const std::unique_ptr<io::File> file = storage_.open(paths_.data, io::Access::read_only);
        const AlignedBuffer page(page_bytes);
        std::memset(page.data(), 0, page_bytes);
        static_cast<void>(file->read_direct(page.span(), FileLayout(found.annex.places).file_offset({0})));
        heap::layout::SuperBlock super;
        std::memcpy(&super, page.data(), sizeof super);
        return super.capacity;
    }
    [[noreturn]] void throw_other_heap() const {
        throw Error(errc::mismatch, paths_.data, "this data file belongs to another heap; put the right one beside " + paths_.backing.string());
    }
    /// That it was a data file, before its header was lost.
    void require_damaged(const io::File& file, const SlotProblem& problem) {
        if (was_a_heap(file, problem, data_is_blank_) && (!data_is_blank_ || holds_nothing_else(file, backing().header.heap))) return;
        if (problem.code == errc::io_error) throw_problem(paths_.data, problem);
        throw Error(problem.code == errc::not_a_heap ? errc::mismatch : problem.code, paths_.data,
                    "this is not the heap's data file: " + problem.what);
    }
    Header header_of_lost_data() const {
        Header header = files_.backing->header;
        header.role = FileRole::data;
        header.file = header.data;
        header.state = FileState::filling;
        header.staged = {};
        header.sequence = 0;
        return header;
    }

    // 2. The row, and what counts by it.
    void choose() {
        found_.backing_short = !found_.backing_lost && is_short(backing());
        found_.data_short = files_.data && is_short(data());
        if (planted(Bug::trust_filling_data) && found_.data == Data::filling && !found_.data_short && !found_.backing_lost) {
            data().header.generation = data().header.filling_generation;
            data().header.state = FileState::whole;
            found_.data = Data::whole;
            found_.data_generation = data().header.generation;
        }
        row_ = choose_row(found_);
        switch (row_) {
            case CopyRow::refused_lost: throw_lost();
            case CopyRow::refused_short:
                if (found_.backing_short)
                    throw Error(errc::truncated, paths_.backing, backing_file_->info().size_bytes,
                                "the file ends early: its header speaks of " +
                                    std::to_string(backing().layout.file_bytes_for(backing().header.extents())) + " bytes; restore it from a copy");
                throw Error(errc::truncated, paths_.data, data().file().info().size_bytes,
                            std::string("the file ends early") + (found_.backing_lost ? "" : ", and it holds a newer save than the heap") +
                                "; restore it from a copy");
            case CopyRow::refused_apart:
                throw Error(errc::mismatch, paths_.data,
                            "it is ahead of the heap by more than an interrupted save: one of them is an old copy; put back the right one, or move "
                            "the old one away");
            case CopyRow::backing_rebuilt: files_.backing.emplace(backing_file_, header_of_lost_backing()); break;
            default: break;
        }
        const bool data_counts = row_ == CopyRow::backing_rebuilt || row_ == CopyRow::data_to_backing;
        newest_ = data_counts ? data().header : backing().header;
        files_.header_behind = files_.header_behind || (!is_missing_ && backing_slots_.damaged());
        files_.restoration.clean = newest_.clean && !data_counts && row_ != CopyRow::data_refilled;
        files_.restoration.data_detached = row_ == CopyRow::data_given_up && !remakes_data_;
        files_.restoration.data_rebuilt = remakes_data_;
        files_.remakes_data = remakes_data_;
        files_.restoration.backing_rebuilt = row_ == CopyRow::backing_rebuilt;
        files_.restoration.copies_levelled = row_ == CopyRow::data_to_backing || row_ == CopyRow::backing_to_data;
        files_.restoration.last_written = time_of(newest_.written_at);
        files_.restoration.read_only = read_only_;
    }
    Header header_of_lost_backing() const {
        Header header = files_.data->header;
        header.role = FileRole::backing;
        header.data = header.file;  // whatever it says: this is the data file that is here
        header.file = random_uuid();
        header.generation = {};
        header.is_new = false;
        return header;
    }
    OpeningCause cause(bool was_staged) const {
        if (use_ != RingUse::all) return OpeningCause::last_resort;
        if (is_missing_ || is_blank_ || data_is_blank_ || found_.data == Data::missing) return OpeningCause::lost_file;
        const bool levelled = files_.restoration.copies_levelled;
        const bool has_old_copy = levelled && newest_.clean;  // whoever closes has brought both up to the same save
        if (found_.backing_lost || found_.backing_short || found_.data == Data::lost || found_.data_short || has_old_copy)
            return OpeningCause::damaged_file;
        if (was_staged || levelled || found_.data == Data::filling) return OpeningCause::interrupted_save;
        if (!newest_.clean) return OpeningCause::crash;
        return files_.header_behind ? OpeningCause::damaged_header : OpeningCause::closed;
    }
    void require_countable() const {
        if (read_only_) return;
        for (const std::optional<PageFile>* const file : {&files_.backing, &files_.data})
            if (*file && !(*file)->header.may_count_on())
                throw Error(errc::corrupt, (*file)->file().path(), 0,
                            "the header's counters have come close to their end, as no use of the heap brings them; restore the file from a copy, or "
                            "open it for reading and make another heap of it");
    }
    /// That the backing file is whole, where the data file, which would tell how to go on after an interrupted large save, is lost.
    void prove() {
        if (use_ == RingUse::proven || use_ == RingUse::given_up) {
            const bool data_counts = row_ == CopyRow::backing_rebuilt || row_ == CopyRow::data_to_backing;
            prove_last_save(data_counts ? data() : backing(), row_ == CopyRow::alike ? &data() : nullptr, ring_.saves);
        }
        if (row_ == CopyRow::data_given_up) prove_alone(backing(), ring_.saves);
        if (row_ == CopyRow::data_refilled && ring_.saves.empty() &&
            table_root_of(backing(), backing().header.extents(), Via::device) != backing().header.table_root)
            throw Error(errc::corrupt, paths_.backing, chunks_offset,
                        "its pages are not the ones that its header stands for, and the data file is damaged too; restore it from a copy");
    }
    /// Whether something is written before the transactions of the log are.
    bool writes_before_log() { return (row_ != CopyRow::alone && row_ != CopyRow::alike) || !ring_.saves.empty() || headers_differ(); }
    bool headers_differ() {
        if (!files_.data || row_ == CopyRow::data_refilled) return false;
        const Header& one = backing().header;
        const Header& other = data().header;
        return other.ring_start != one.ring_start || other.clean != one.clean || other.ring != one.ring || other.extents() != one.extents();
    }

    // 3. A writer applies it to the files.
    void carry_out() {
        if (files_.header_behind) {
            ++files_.restoration.headers_repaired;
            count_row(Row::slot_repaired);
        }
        files_.restoration.data_rebuilt = files_.restoration.data_rebuilt || row_ == CopyRow::data_refilled;
        if (files_.restoration.needed()) {
            backing().header.opening = record_of(files_.restoration);
            if (files_.data) data().header.opening = backing().header.opening;
        }
        // Interrupted from here on, it is a file without a header.
        const bool is_cut = found_.backing_short && !planted(Bug::cut_backing_is_believed);
        const bool is_filled = found_.backing_lost && !is_missing_ && !planted(Bug::blank_backing_unmarked);
        if (is_cut || is_filled) spoil_headers(*backing_file_);
        const bool forgets_data = row_ == CopyRow::data_given_up || found_.data == Data::lost || found_.data_short;
        if (forgets_data && !planted(Bug::lost_data_leaves_tail)) {
            // Pages of a large save that only the data file knew of may have come this far: the heap is about to grow there.
            backing().clear_behind(backing().header.extents());
            backing().sync();
        }
        switch (row_) {
            case CopyRow::data_given_up: give_data_up(); break;
            case CopyRow::backing_rebuilt:
                count_row(Row::backing_rebuilt);
                copy_to_backing(true);
                break;
            case CopyRow::data_to_backing: copy_to_backing(false); break;
            case CopyRow::backing_to_data:
                count_row(Row::backing_to_data);
                copy_newer(backing(), data(), data().header.generation, false);
                break;
            case CopyRow::data_refilled: begin_refill(); break;
            default: break;
        }
        if (!planted(Bug::copy_keeps_address)) backing().header.base = newest_.base;  // a staged save may have moved the heap
        install_ring();
        if (row_ == CopyRow::data_refilled) refill();
        if (is_missing_ && planted(Bug::restored_named_late)) name_backing();
    }
    /// The commit point. First of all: from here on the lost file, should it come back, is nobody's. Where another one is to be made, attaching that is.
    void give_data_up() {
        if (planted(Bug::detach_in_memory_only)) return;
        backing().header.data = {};
        if (!remakes_data_) backing().write_header();
    }
    void copy_to_backing(bool everything) {
        count_row(Row::data_to_backing);
        copy_newer(data(), backing(), backing().header.generation, everything);
        if (is_missing_ && !planted(Bug::restored_named_late)) name_backing();
    }
    /// Before what the ring has goes into the data file: half of that there, and nothing elsewhere, would be all that there is.
    void name_backing() {
        backing_file_->prepare_durable();
        storage_.publish(*backing_file_, paths_.backing);
        storage_.sync_directory(io::directory_of(paths_.backing));
    }
    void begin_refill() {
        count_row(Row::data_refilled);
        if (found_.data == Data::filling && data().header.state == FileState::filling) return;
        if (found_.data_short && planted(Bug::cut_data_is_believed)) return;
        if (found_.data == Data::lost && !planted(Bug::blank_data_unmarked))
            spoil_headers(data().file());  // interrupted from here on, it is still recognisable
        data().header.state = FileState::filling;
        data().header.filling_generation = backing().header.generation;
        data().write_header();
    }
    void refill() {
        data().layout = backing().layout;
        if (!planted(Bug::refill_keeps_tail)) data().clear_behind(backing().header.extents());
        copy_newer(backing(), data(), {}, true);
    }
    void install_ring() {
        if (use_ == RingUse::given_up) return give_ring_up();
        const bool has_ring = newest_.ring_kind != RingKind::none;
        const bool has_transactions = ring_.tail.has_value();
        const bool is_due = has_transactions ? !ring_.saves.empty() : has_ring;
        if (is_due || headers_differ()) {
            PageFile* const second = files_.data && row_ != CopyRow::data_refilled ? &data() : nullptr;
            install(files_, second, ring_.saves, newest_.ring_start, has_ring && !has_transactions);
        } else if (!has_transactions) {
            count_row(Row::clean);
        }
    }

    /// What is left of it goes into the files. The header that says so is the commit point: from there on nothing that lies about is this heap's ring.
    void give_ring_up() {
        Header& header = backing().header;
        header.ring_kind = RingKind::none;
        header.ring = header.log = {};
        header.ring_capacity = header.log_capacity = 0;
        PageFile* const second = files_.data && row_ != CopyRow::data_refilled ? &data() : nullptr;
        install(files_, second, ring_.saves, {}, false);
        files_.ring = nullptr;
    }

    io::Storage& storage_;
    const HeapPaths& paths_;
    const bool read_only_;
    const bool detach_data_;
    const RingUse use_;
    OpenFiles files_;
    std::shared_ptr<io::File> backing_file_;
    Slots backing_slots_;
    CopiesFound found_;
    bool is_missing_ = false;     ///< the backing file
    bool is_blank_ = false;       ///< it begins with zeros where its headers were
    bool data_is_blank_ = false;  ///< the data file does
    bool remakes_data_ = false;   ///< it is missing, and the heap gets another one
    CopyRow row_ = CopyRow::alone;
    Header newest_;  ///< what counts
    RingContents ring_;
};

}  // namespace

bool is_restorable(io::Storage& storage, const HeapPaths& paths) {
    if (storage.find(paths.backing) || !storage.find(paths.data)) return false;
    try {
        const Slots slots = read_slots(*storage.open(paths.data, io::Access::read_only));
        const Header* const header = slots.newest();
        const bool is_whole = header != nullptr && header->role == FileRole::data && header->state == FileState::whole && !header->is_new;
        return is_whole && !storage.find(paths.backing);  // asked again: a creation names the heap before it says that the data file isn't new
    } catch (const Error& error) {
        for (const errc nobodys : {errc::not_found, errc::not_a_regular_file, errc::permission})
            if (error.code() == nobodys) return false;
        throw;
    }
}

OpenFiles open_files(io::Storage& storage, const HeapPaths& paths, bool read_only, bool detach_data, const LogReplayMaker& log_replay,
                     const std::function<void(const Header&)>& before_writing, RingUse use) {
    return Recovery(storage, paths, read_only, detach_data, use).run(log_replay, before_writing);
}

}  // namespace taiyen::store
