#include "store/recovery.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>

#include "base/checksum.hpp"
#include "base/planted.hpp"

namespace taiyen::store {
namespace {

std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Row::count_)> row_counts{};

const std::filesystem::path& ring_path(const HeapPaths& paths, const Header& header) {
    return header.ring_kind == RingKind::log ? paths.log : paths.journal;
}

/// Opens the journal or the transaction log that the header names. Throws: Error{log_missing | mismatch | corrupt …}.
std::shared_ptr<io::File> open_ring(io::Storage& storage, const HeapPaths& paths, const Header& header, bool read_only) {
    const std::filesystem::path& path = ring_path(paths, header);
    const std::string name = header.ring_kind == RingKind::log ? "transaction log" : "journal";
    if (!storage.find(path)) {
        throw Error(errc::log_missing, path,
                    "the heap was not closed and its " + name +
                        " is missing: put it beside the heap, or name it in the options; it may hold the newest changes");
    }
    std::shared_ptr<io::File> file = open_locked(storage, path, read_only);
    const log::RingIdentity found = log::Ring::read_identity(*file);
    if (found.ring != header.ring || found.heap != header.heap || found.capacity_bytes != header.ring_capacity) {
        throw Error(errc::mismatch, path,
                    "this " + name + " belongs to another heap or to an earlier opening; put the right one beside " + paths.backing.string());
    }
    return file;
}

/// Whether there are transactions behind what the header says is in the files; nothing: there are none. Throws: Error{corrupt}.
std::optional<LogTail> find_tail(const io::File& ring, const Header& newest, const HeapPaths& paths, Restoration& restoration) {
    const log::ScanResult first = log::Ring::scan(ring, newest.ring_identity(), newest.ring_start, [&](const log::Record& record) {
        if (record.kind != record_transactions) {
            throw Error(errc::corrupt, paths.log, record.file_offset, "the record holds no transactions; restore the files from a copy");
        }
        return false;
    });
    if (first.records != 0) {
        return LogTail{newest.serial, newest.ring_start};
    }
    judge_end(first, newest.ring_capacity, paths.log, restoration);
    return std::nullopt;
}

/// Throws: Error{corrupt | mismatch | missing_procedure}.
void check_tail(LogTail& tail, const io::File& ring, const Header& newest, const HeapPaths& paths, const LogReplayMaker& make_replay,
                Restoration& restoration) {
    const std::unique_ptr<LogReplay> replay = make_replay(paths.log, newest.capacity, tail.contained);
    const auto result = log::Ring::scan(ring, newest.ring_identity(), tail.start, [&](const log::Record& record) {
        replay->check(record);
        return true;
    });
    judge_end(result, newest.ring_capacity, paths.log, restoration);
    tail.checked = true;
}

/// The save in the stage, entries and images proven. Throws: Error{corrupt}.
SaveRecord read_stage(const io::File& ring, const Header& header, const HeapPaths& paths) {
    auto save = decode_staged(header.staged, header.capacity);
    if (!save || !load_stage(ring, *save, header.capacity, header.heap)) {
        throw Error(errc::corrupt, ring_path(paths, header), header.staged.head.stage_offset,
                    "the staged pages of a save are damaged; restore the files from a copy");
    }
    return std::move(*save);
}

/// The saves behind the header's generation, consecutive. Throws: Error{corrupt | mismatch}.
std::vector<SaveRecord> read_saves(const io::File& ring, const Header& newest, const HeapPaths& paths, Restoration& restoration) {
    std::vector<SaveRecord> saves;
    std::uint64_t expected = newest.generation.value + 1;
    AnnexHead annex = newest.annex;
    log::RingIdentity identity = newest.ring_identity();
    const auto result = log::Ring::scan(ring, identity, newest.ring_start, [&](const log::Record& record) {
        if (planted(Bug::replay_first_record_only) && !saves.empty()) {
            return false;
        }
        auto save = decode_save(record, newest.capacity);
        if (!save) {
            throw Error(errc::corrupt, paths.journal, record.file_offset, "the record holds no save of this heap; restore the files from a copy");
        }
        if (record.number != expected) {
            throw Error(errc::mismatch, paths.journal, record.file_offset,
                        "save " + std::to_string(record.number) + " stands where save " + std::to_string(expected) +
                            " is due; the files do not belong together");
        }
        if (!grows_from(annex, save->annex)) {
            throw Error(errc::corrupt, paths.journal, record.file_offset,
                        "the save speaks of another annex than the heap has; restore the files from a copy");
        }
        annex = save->annex;
        ++expected;
        saves.push_back(std::move(*save));
        return true;
    });
    judge_end(result, newest.ring_capacity, paths.journal, restoration);
    return saves;
}

/// Writes the saves' pages into the backing file and (not null) the data file, unconditionally, then tables, sync, headers; with a new epoch, or the ring going on from
/// where it has been read.
void install(OpenFiles& files, PageFile* data, const std::vector<SaveRecord>& saves, const log::RingStart& ring_start, bool new_epoch) {
    PageFile& backing = *files.backing;
    std::set<std::uint64_t> covered;
    Header after = backing.header;
    for (const SaveRecord& save : saves) {
        for (const SavedPage& saved : save.pages) {
            covered.insert(saved.page);
        }
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
        if (data != nullptr) {
            write(*data);
        }
    };
    into_both([&](PageFile& file) {
        const Extents before = file.header.extents();
        file.layout = planted(Bug::annex_guessed_place) ? file.layout.with_annex(after.annex.extent, before.span) : FileLayout(after.annex.places);
        if (!planted(Bug::install_keeps_tail)) {
            file.clear_growth(before, extents, is_covered);
        }
        file.make_long_enough(extents);
    });
    for (const SaveRecord& save : saves) {
        for_each_saved_page(save, files.ring.get(), [&](PageNumber page, std::uint64_t sum, std::span<const std::byte> image) {
            into_both([&](PageFile& file) {
                if (sum != 0) {
                    file.write_pages(page, image);
                } else if (save.punches()) {
                    file.punch_pages(page, 1);
                } else {
                    file.write_zero_pages(page, 1);
                }
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
            if (!planted(Bug::annex_without_table) || sequence_of_table(page.index) == Sequence::span) {
                into_both([&](PageFile& file) { file.write_table_page(page); });
            }
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

/// A backing file whose two header slots are both damaged but which is recognisable as a heap.
bool may_be_rebuilt(const Slots& slots) { return slots.verdict().code == errc::corrupt; }

}  // namespace

HeapPaths heap_paths(const std::filesystem::path& path, const PersistentOptions& options) {
    const auto beside = [&](const char* suffix) { return std::filesystem::path(path.string() + suffix); };
    return {path, options.data_file.empty() ? beside(".data") : options.data_file, beside(".journal"),
            options.log_file.empty() ? beside(".log") : options.log_file};
}

void judge_end(const log::ScanResult& result, ByteCount capacity, const std::filesystem::path& path, Restoration& restoration) {
    if (result.how == log::ScanEnd::corrupt) {
        throw Error(errc::corrupt, path, result.next.position % std::max<ByteCount>(capacity, 1) + log::Ring::header_bytes,
                    "an acknowledged record is damaged; restore the files from a copy");
    }
    if (result.how == log::ScanEnd::torn) {
        restoration.records_cut = 1;
        count_row(Row::torn_record_cut);
    }
}

bool is_still_at(io::Storage& storage, const io::File& file, const std::filesystem::path& path) {
    const auto found = storage.find(path);
    const io::FileInfo info = file.info();
    return found && found->inode == info.inode && found->device == info.device;
}

std::shared_ptr<io::File> open_locked(io::Storage& storage, const std::filesystem::path& path, bool read_only) {
    const auto until = std::chrono::steady_clock::now() + lock_goes_within.load();
    for (;;) {
        std::shared_ptr<io::File> file = storage.open(path, read_only ? io::Access::read_only : io::Access::read_write);
        while (!file->try_lock(read_only ? io::Lock::shared : io::Lock::exclusive)) {
            if (std::chrono::steady_clock::now() >= until)
                throw Error(errc::busy, path,
                            "the heap is open elsewhere; close it there first, or have it copied there: taiyen::compress(heap, file)");
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        if (is_still_at(storage, *file, path)) return file;
    }
}

std::uint64_t rows_taken(Row row) noexcept { return row_counts[static_cast<std::size_t>(row)].load(std::memory_order_relaxed); }
void count_row(Row row) noexcept { row_counts[static_cast<std::size_t>(row)].fetch_add(1, std::memory_order_relaxed); }

namespace {

/// A table page torn by an interrupted checkpoint: its old and new version differ only in entries of covered pages; every other entry must match its page in one of the files.
void rebuild_table_page(const PageFile& backing, const PageFile* data, std::uint64_t index, const Extents& extents,
                        const std::function<bool(PageNumber)>& is_covered, TablePage& page) {
    const Uuid& heap = backing.header.heap;
    const TableCover cover = cover_of(index);
    const AlignedBuffer buffer(cover.count * page_bytes);
    backing.try_read_pages(cover.first, buffer.span(), Via::device);
    for (std::uint64_t i = 0; i < cover.count; ++i) {
        const PageNumber number{cover.first.value + i};
        const auto image = buffer.span().subspan(i * page_bytes, page_bytes);
        const auto matches = [&] { return page_checksum(image, number, heap) == page.entries[i]; };
        if (is_covered(number)) {
            continue;
        }
        if (!extents.hold(number)) {
            page.entries[i] = 0;
            continue;
        }
        if (matches()) {
            continue;
        }
        const std::optional<Error> refusal = backing.try_read_pages(number, image, Via::device);
        if (!matches() && data != nullptr) {
            data->try_read_pages(number, image, Via::device);
        }
        if (!matches()) {
            if (refusal) {
                throw Error(*refusal);
            }
            backing.throw_corrupt_page(number, "neither its checksum nor a second copy can be relied on");
        }
    }
    page.index = index;
    page.checksum = table_page_checksum(page, heap);
}

}  // namespace

bool load_table_page(const PageFile& backing, const PageFile* data, std::uint64_t index, const Extents& extents,
                     const std::function<bool(PageNumber)>& is_covered, Via via, TablePage& page) {
    const Uuid& heap = backing.header.heap;
    const auto has_sound = [&](const PageFile& file, Via asked) {
        const auto refusal = file.try_read_table_page(index, page, asked);
        return !refusal && is_sound(page, index, heap);
    };
    if (via == Via::cache && has_sound(backing, Via::cache)) {
        return false;
    }
    const std::optional<Error> refusal = backing.try_read_table_page(index, page, Via::device);
    if (!refusal && is_sound(page, index, heap)) {
        return false;
    }
    const TablePage found = page;
    if (data != nullptr && has_sound(*data, Via::device)) {
        count_row(Row::table_page_rebuilt);
        return true;
    }
    if (refusal) {
        throw Error(*refusal);  // nothing is left of it to begin with
    }
    page = found;
    rebuild_table_page(backing, data, index, extents, is_covered, page);
    count_row(Row::table_page_rebuilt);
    return true;
}

std::uint64_t table_root_of(const PageFile& file, const Extents& extents, Via via, const PageFile* twin) {
    std::uint64_t root = 0;
    TablePage page;
    for_each_table_page(extents, [&](std::uint64_t index) {
        if (const auto refusal = file.try_read_table_page(index, page, via)) {
            if (twin == nullptr || twin->try_read_table_page(index, page, via) || !is_sound(page, index, file.header.heap)) {
                throw Error(*refusal);
            }
        }
        if (page.checksum != 0) {
            root += mix(index, page.checksum);
        }
    });
    return root;
}

void copy_newer(const PageFile& from, PageFile& to, Generation since, bool everything) {
    const Extents extents = from.header.extents();
    const Uuid& heap = from.header.heap;
    to.layout = FileLayout(from.header.annex.places);
    to.make_long_enough(extents);
    TablePage table;
    const auto is_newer = [&](const TablePage& page) { return everything || page.generation > since.value; };
    if (!planted(Bug::copy_keeps_tail)) {
        std::optional<std::uint64_t> read;
        to.clear_growth(to.header.extents(), extents, [&](PageNumber page) {
            if (const std::uint64_t index = place_of(page).table_page; read != index) {
                from.read_table_page(index, table, Via::device);
                read = index;
            }
            return is_newer(table);
        });
    }
    const AlignedBuffer pages(entries_per_table_page * page_bytes);
    const AlignedBuffer source(page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        from.read_table_page(index, table, Via::device);
        if (!is_sound(table, index, heap)) {
            throw Error(errc::corrupt, from.path(), from.layout.table_offset(index),
                        "a page of the checksum table is damaged; restore the file from a copy");
        }
        const TableCover cover = cover_of(index);
        const Sequence sequence = sequence_of(cover.first);
        const std::uint64_t count = std::min(cover.count, page_of(start_of(sequence)).value + extents.of(sequence) / page_bytes - cover.first.value);
        if (!is_newer(table)) {
            return;
        }
        // What is about to be overwritten need not be readable.
        TablePage old;
        const bool old_is_refused = to.try_read_table_page(index, old, Via::device).has_value();
        const bool some_are_refused = to.try_read_pages(cover.first, pages.first(count * page_bytes), Via::device).has_value();
        for (std::uint64_t i = 0; i < count; ++i) {
            const PageNumber number{cover.first.value + i};
            const auto there = pages.span().subspan(i * page_bytes, page_bytes);
            const bool same =
                planted(Bug::copy_by_entries) ? old.entries[i] == table.entries[i] : page_checksum(there, number, heap) == table.entries[i];
            const auto is_refused = [&] { return some_are_refused && to.try_read_pages(number, there, Via::device); };
            if (same && !is_refused()) {
                continue;
            }
            from.read_pages(number, source.span(), Via::device);
            if (page_checksum(source.span(), number, heap) != table.entries[i]) {
                from.throw_corrupt_page(number, "its checksum differs, and the other copy is older");
            }
            to.write_pages(number, source.span());
        }
        if (table.checksum != 0) {
            to.write_table_page(table);
        } else if (old_is_refused || !is_zero({reinterpret_cast<const std::byte*>(&old), sizeof old})) {
            TablePage empty{};
            to.file().write({reinterpret_cast<const std::byte*>(&empty), sizeof empty}, to.layout.table_offset(index));
        }
    });
    to.sync();
    to.header.take_content(from.header);
    to.write_header();
}

namespace {

/// Proves that the backing file and the ring alone hold the newest save: every page that no save of the ring brings is the one that the table stands for.
void prove_alone(const PageFile& backing, const std::vector<SaveRecord>& saves) {
    const Extents extents = backing.header.extents();
    if (saves.empty() && table_root_of(backing, extents, Via::device) != backing.header.table_root) {
        // An interrupted large save had begun to change it, and only the data file could tell how to go on.
        throw Error(errc::corrupt, backing.path(), chunks_offset,
                    "its pages are not the ones that its header stands for, and the data file is missing; restore it from a copy");
    }
    std::set<std::uint64_t> covered;
    for (const SaveRecord& save : saves) {
        for (const SavedPage& saved : save.pages) {
            covered.insert(saved.page);
        }
    }
    const auto is_covered = [&](PageNumber page) { return covered.contains(page.value); };
    TablePage table;
    const AlignedBuffer buffer(entries_per_table_page * page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        load_table_page(backing, nullptr, index, extents, is_covered, Via::device, table);
        const TableCover cover = cover_of(index);
        const auto pages = buffer.first(cover.count * page_bytes);
        backing.read_pages(cover.first, pages, Via::device);
        for (std::uint64_t i = 0; i < cover.count; ++i) {
            const PageNumber number{cover.first.value + i};
            if (extents.hold(number) && !is_covered(number) &&
                page_checksum(pages.subspan(i * page_bytes, page_bytes), number, backing.header.heap) != table.entries[i]) {
                backing.throw_corrupt_page(number, "its checksum differs, and the data file that might have it whole is missing");
            }
        }
    });
}

}  // namespace

OpenFiles open_files(io::Storage& storage, const HeapPaths& paths, bool read_only, bool detach_data, const LogReplayMaker& log_replay,
                     const std::function<void(const Header&)>& before_writing) {
    OpenFiles files;
    std::shared_ptr<io::File> backing = open_locked(storage, paths.backing, read_only);
    const Slots slots = read_slots(*backing);
    bool rebuild = false;

    // 1. Headers: which files are there, which is the newest.
    if (const Header* newest = slots.newest()) {
        if (newest->role != FileRole::backing) {
            throw Error(errc::mismatch, paths.backing, "this is the data file of a heap; open the heap's own file instead");
        }
        files.backing.emplace(backing, *newest);
    } else if (!may_be_rebuilt(slots) || !storage.find(paths.data)) {
        throw_problem(paths.backing, slots.verdict());
    } else {
        rebuild = true;
    }

    Header* lost_data_header = nullptr;
    Header from_backing;
    const bool missing = !rebuild && !files.backing->header.data.is_nil() && !storage.find(paths.data);
    if (missing && !detach_data) {
        throw Error(errc::mismatch, paths.data,
                    "the heap's data file is missing: put it beside the heap, or name it in the options; if it is lost, open with detach_data_file "
                    "to go on without it");
    }
    if (detach_data && !missing && !rebuild && !files.backing->header.data.is_nil()) {
        throw Error(errc::already_exists, paths.data,
                    "the data file is here, so it can't be done without (detach_data_file): open the heap with it, or move it away first");
    }
    files.restoration.data_detached = missing;
    if (rebuild || (!files.backing->header.data.is_nil() && !missing)) {
        std::shared_ptr<io::File> data = open_locked(storage, paths.data, read_only);
        const Slots data_slots = read_slots(*data);
        if (const Header* found = data_slots.newest()) {
            if (found->role != FileRole::data ||
                (!rebuild && (found->heap != files.backing->header.heap || found->file != files.backing->header.data))) {
                throw Error(errc::mismatch, paths.data, "this data file belongs to another heap; put the right one beside " + paths.backing.string());
            }
            // An interrupted save that moves the heap: the data file is there already.
            const bool moved = found->state == FileState::whole && !rebuild && found->generation.value == files.backing->header.generation.value + 1;
            if (!rebuild && ((found->base != files.backing->header.base && !moved) || found->capacity != files.backing->header.capacity)) {
                throw Error(errc::mismatch, paths.data, "address and capacity are not the heap's; restore the file from a copy");
            }
            if (!rebuild && found->position_independent != files.backing->header.position_independent) {
                throw Error(errc::mismatch, paths.data, "only one of the two may be mapped anywhere; restore the file from a copy");
            }
            if (!rebuild && !grows_from(files.backing->header.annex, found->annex) && !grows_from(found->annex, files.backing->header.annex)) {
                throw Error(errc::mismatch, paths.data, "its annex lies elsewhere than the heap's; restore the file from a copy");
            }
            files.data.emplace(data, *found);
            files.header_behind = files.header_behind || data_slots.damaged();
        } else if (rebuild) {
            throw_problem(paths.backing, slots.verdict());
        } else if (data_slots.verdict().code != errc::corrupt && data_slots.verdict().code != errc::truncated) {
            const SlotProblem problem = data_slots.verdict();
            if (problem.code == errc::io_error) {
                throw_problem(paths.data, problem);
            }
            throw Error(problem.code == errc::not_a_heap ? errc::mismatch : problem.code, paths.data,
                        "this is not the heap's data file: " + problem.what);
        } else {
            from_backing = files.backing->header;
            from_backing.role = FileRole::data;
            from_backing.file = from_backing.data;
            from_backing.state = FileState::filling;
            from_backing.staged = {};
            from_backing.sequence = 0;
            lost_data_header = &from_backing;
            files.data.emplace(data, from_backing);
        }
    }
    if (rebuild) {
        if (files.data->header.state != FileState::whole || (files.data->header.is_new && files.data->header.generation.value == 0)) {
            throw_problem(paths.backing, slots.verdict());
        }
        Header header = files.data->header;
        header.role = FileRole::backing;
        header.file = random_uuid();
        header.generation = {};
        header.is_new = false;
        files.backing.emplace(backing, header);
    }
    PageFile& b = *files.backing;
    PageFile* d = files.data ? &*files.data : nullptr;
    if (!rebuild && b.file().info().size_bytes < b.layout.file_bytes_for(b.header.extents())) {
        throw Error(errc::truncated, paths.backing, b.file().info().size_bytes,
                    "the file ends early: its header speaks of " + std::to_string(b.layout.file_bytes_for(b.header.extents())) +
                        " bytes; restore it from a copy");
    }
    const bool data_short = d != nullptr && d->file().info().size_bytes < d->layout.file_bytes_for(d->header.extents());
    if (data_short && rebuild) {
        throw Error(errc::truncated, paths.data, d->file().info().size_bytes, "the file ends early; restore it from a copy");
    }
    bool refill = d != nullptr && (lost_data_header != nullptr || data_short || d->header.state == FileState::filling) && !rebuild;
    if (planted(Bug::trust_filling_data) && refill && lost_data_header == nullptr && !data_short) {
        refill = false;
        d->header.generation = d->header.filling_generation;
        d->header.state = FileState::whole;
    }
    const bool data_newer = d != nullptr && !refill && (rebuild || d->header.generation > b.header.generation);
    if (data_short && d->header.state == FileState::whole && d->header.generation > b.header.generation) {
        throw Error(errc::truncated, paths.data, d->file().info().size_bytes,
                    "the file ends early, and it holds a newer save than the heap; restore it from a copy");
    }
    if (data_newer && !rebuild && (d->header.clean || d->header.generation.value != b.header.generation.value + 1)) {
        // No crash leaves that: the data file is ahead by the one save that was under way.
        throw Error(errc::mismatch, paths.data,
                    "it is ahead of the heap by more than an interrupted save: one of them is an old copy; put back the other, or move the data file "
                    "to where the heap finds none");
    }
    Header newest = data_newer ? d->header : b.header;
    files.header_behind = files.header_behind || slots.damaged();
    files.restoration.clean = newest.clean && !data_newer && !refill;

    for (const PageFile* const file : {&b, d}) {
        if (!read_only && file != nullptr && !file->header.may_count_on()) {
            throw Error(
                errc::corrupt, file->file().path(), 0,
                "the header's counters have come close to their end, as no use of the heap brings them; restore the file from a copy, or open it for "
                "reading and make another heap of it");
        }
    }

    // 2. Stage and ring: the saves, or the transactions, that the files do not have yet.
    std::vector<SaveRecord> saves;
    if (newest.ring_kind != RingKind::none) {
        files.ring = open_ring(storage, paths, newest, read_only);
        if (newest.state == FileState::staged) {
            SaveRecord staged = read_stage(*files.ring, newest, paths);
            if (!grows_from(newest.annex, staged.annex)) {
                throw Error(errc::corrupt, paths.backing, "the staged save speaks of another annex than the heap has; restore the files from a copy");
            }
            saves.push_back(std::move(staged));
            newest = newest.after_stage();
        }
        if (newest.ring_kind == RingKind::log) {
            files.tail = find_tail(*files.ring, newest, paths, files.restoration);
        } else {
            std::vector<SaveRecord> recorded = read_saves(*files.ring, newest, paths, files.restoration);
            std::move(recorded.begin(), recorded.end(), std::back_inserter(saves));
        }
        files.restoration.snapshots_replayed = saves.size();
    }
    files.restoration.backing_rebuilt = rebuild;
    if (refill && saves.empty() && table_root_of(b, b.header.extents(), Via::device) != b.header.table_root) {
        // An interrupted large save had begun to change it, and the data file, which would tell how to go on, is lost.
        throw Error(errc::corrupt, paths.backing, chunks_offset,
                    "its pages are not the ones that its header stands for, and the data file is damaged too; restore it from a copy");
    }
    if (missing) {
        prove_alone(b, saves);
    }
    const auto headers_differ = [&] {
        return d != nullptr && !refill &&
               (d->header.ring_start != b.header.ring_start || d->header.clean != b.header.clean || d->header.ring != b.header.ring ||
                d->header.extents() != b.header.extents());
    };
    const bool log_comes_last =
        missing || data_newer || refill || !saves.empty() || headers_differ() || (d != nullptr && d->header.generation != b.header.generation);
    if (files.tail && !read_only && log_comes_last) {
        check_tail(*files.tail, *files.ring, newest, paths, log_replay, files.restoration);
    }

    before_writing(newest);

    // 3. The row is chosen. A reader applies it in its view; a writer to the files.
    if (read_only) {
        files.map_data = data_newer;
        files.overlay = std::move(saves);
        files.stage = files.ring;
        return files;
    }
    if ((missing || lost_data_header != nullptr || data_short) && !planted(Bug::lost_data_leaves_tail)) {
        // Pages of a large save that only the data file knew of may have come this far: the heap is about to grow there.
        b.clear_behind(b.header.extents());
        b.sync();
    }
    if (missing && !planted(Bug::detach_in_memory_only)) {
        // The commit point. First of all: from here on the lost file, should it come back, is nobody's.
        b.header.data = {};
        b.write_header();
    }
    if (rebuild) {
        count_row(Row::backing_rebuilt);
    }
    if (data_newer) {
        count_row(Row::data_to_backing);
        copy_newer(*d, b, b.header.generation, rebuild);
    }
    if (refill) {
        count_row(Row::data_refilled);
        files.restoration.data_rebuilt = true;
        if (d->header.state != FileState::filling || lost_data_header != nullptr) {
            d->header.state = FileState::filling;
            d->header.filling_generation = b.header.generation;
            d->write_header();
        }
    } else if (d != nullptr && d->header.generation < b.header.generation) {
        count_row(Row::backing_to_data);
        copy_newer(b, *d, d->header.generation, false);
    }
    if (!planted(Bug::copy_keeps_address)) {
        b.header.base = newest.base;  // a staged save may have moved the heap
    }
    if (files.tail ? !saves.empty() || headers_differ() : newest.ring_kind != RingKind::none || headers_differ()) {
        install(files, refill ? nullptr : d, saves, newest.ring_start, newest.ring_kind != RingKind::none && !files.tail);
    } else if (!files.tail) {
        count_row(Row::clean);
    }
    if (refill) {
        d->layout = b.layout;
        if (!planted(Bug::refill_keeps_tail)) {
            d->clear_behind(b.header.extents());
        }
        copy_newer(b, *d, {}, true);
    }
    if (files.header_behind) {
        ++files.restoration.headers_repaired;
        count_row(Row::slot_repaired);
    }
    return files;
}

}  // namespace taiyen::store
