#include "inspect/file_check.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "base/checksum.hpp"
#include "base/sentence.hpp"
#include "heap/engine_layout.hpp"
#include "heap/geometry.hpp"

namespace taiyen::inspect {
namespace {

using store::TablePage;
using store::Via;

/// Findings stop here: a file that is damaged all over is damaged.
constexpr std::size_t findings_max = 1000;
/// Pages of a table that are read at once.
constexpr std::uint64_t table_batch = 256;

/// Parts of a sample: the product of two such numbers fits into a word.
constexpr std::uint64_t parts_max = std::uint64_t{1} << 32U;

}  // namespace

/// While it lives nothing is saved and the heap isn't closed. Who only reads the heap saves nothing, so threads needn't wait for each other.
class FileCheck::Hold {
public:
    explicit Hold(const store::HeapFile& heap) {
        if (heap.read_only()) return;
        visit_.emplace(heap.visits());
        saves_ = heap.files().hold_saves();
        heap.check_usable(true);
    }

private:
    std::optional<store::Visits::Visit> visit_;
    std::unique_lock<std::mutex> saves_;
};

void FileCheck::add(Severity severity, const std::filesystem::path& path, std::uint64_t offset, std::string what) {
    const std::lock_guard lock(report_mutex_);
    if (report_.findings.size() < findings_max) report_.findings.push_back({severity, path, offset, std::move(what)});
}

void FileCheck::headers_and_tables() {
    const Hold hold(heap_);
    if (heap_.read_only() && heap_.files().restoration().backing_rebuilt)
        add(Severity::healable, heap_.path(), 0, "it is missing or damaged; the next opening for writing brings it back from the data file");
    check_headers(heap_.files().backing(), heap_.files().data());
    if (const store::PageFile* data = heap_.files().data()) check_headers(*data, &heap_.files().backing());
    report_.bytes_read += bytes_read_.exchange(0);
}

void FileCheck::check_headers(const store::PageFile& file, const store::PageFile* other) {
    const store::Slots slots = store::read_slots(file.file());
    bytes_read_ += slots.slot.size() * store::header_slot_bytes;
    const store::Header* newest = slots.newest();
    for (std::size_t i = 0; i < 2; ++i) {
        if (!slots.slot[i]) {
            add(newest != nullptr || other != nullptr ? Severity::healable : Severity::damage, file.path(), i * store::header_slot_bytes,
                "header slot " + std::to_string(i) + ": " + slots.problem[i].what);
        }
    }
    if (newest == nullptr) return;
    if (newest->state == store::FileState::filling) {
        add(Severity::healable, file.path(), 0, "it was being filled when its user crashed; the next opening for writing fills it again");
        return;
    }
    if (heap_.read_only() && newest->generation != heap_.files().view().header.generation) {
        add(Severity::note, file.path(), 0,
            "its user crashed while this copy was being brought up to date; the next opening for writing goes on with that");
        return;
    }
    File& found = files_.emplace_back(file, other, newest->extents(), file.file().info().size_bytes);
    check_tables(found, newest->table_root);
}

/// Chunk by chunk, to the file's end: what lies behind the extents must be zero. Where the file has ended there is nothing to cover, and a table page that isn't there is one of zeros.
template <class F>
void FileCheck::for_each_table_page(const File& found, F&& visit) const {
    const store::FileLayout& layout = found.file.layout;
    for (const store::Sequence sequence : {store::Sequence::span, store::Sequence::annex}) {
        for (std::size_t k = 0; layout.has(sequence, k) && layout.table_of(sequence, k) < found.size; ++k) {
            const store::ChunkShape& chunk = store::chunk_shapes[k];
            const std::uint64_t first = (sequence == store::Sequence::span ? 0 : store::annex_first_table_page) + chunk.first_table_page;
            const std::uint64_t there = (found.size - layout.table_of(sequence, k) + page_bytes - 1) / page_bytes;
            for (std::uint64_t i = 0; i < std::min(chunk.table_pages, there); ++i) visit(first + i);
        }
    }
}

void FileCheck::check_tables(File& found, std::uint64_t header_root) {
    const AlignedBuffer buffer(table_batch * page_bytes);
    std::uint64_t root = 0;
    bool all_sound = true;
    const auto check = [&](std::uint64_t first, std::uint64_t count) {
        const std::span<std::byte> bytes = buffer.first(count * page_bytes);
        const std::uint64_t at = found.file.layout.table_offset(first);
        bool is_given = true;
        try {
            const ByteCount got = found.file.file().read_direct(bytes, at);
            std::memset(bytes.data() + got, 0, bytes.size() - got);
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
            is_given = false;
        }
        bytes_read_ += bytes.size();
        for (std::uint64_t i = 0; i < count; ++i) {
            TablePage table;
            std::optional<Error> refusal;
            if (is_given)
                std::memcpy(&table, bytes.data() + i * page_bytes, sizeof table);
            else
                refusal = found.file.try_read_table_page(first + i, table, Via::device);
            if (!check_table_page(found, first + i, table, refusal))
                all_sound = false;
            else if (table.checksum != 0)
                root += mix(first + i, table.checksum);
        }
    };
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    for_each_table_page(found, [&](std::uint64_t index) {
        const bool joins =
            count != 0 && count < table_batch && index == first + count && store::cover_of(index).chunk == store::cover_of(first).chunk;
        if (!joins) {
            if (count != 0) check(first, count);
            first = index;
            count = 0;
        }
        ++count;
    });
    if (count != 0) check(first, count);
    if (all_sound && heap_.files().recovering_pages().empty() && root != header_root) {
        add(other_of(found) != nullptr ? Severity::healable : Severity::damage, found.file.path(), 0,
            "a page of the checksum table is not the one that the header stands for (a lost or stale write)");
    }
}

/// Whether it says something about the pages that it covers. Each one that doesn't is told once.
bool FileCheck::check_table_page(File& found, std::uint64_t index, const TablePage& table, const std::optional<Error>& refusal) {
    // A checkpoint that a crash interrupted may have torn a table page: its entries of other pages stand.
    const bool is_bad = refusal || (!store::is_sound(table, index, found.file.header.heap) && !heap_.files().is_recovering(store::cover_of(index)));
    if (!is_bad) return true;
    {
        const std::lock_guard lock(report_mutex_);
        if (!found.bad_tables.insert(index).second) return false;
    }
    if (refusal) {
        report_table_page(found, index, *refusal);
    } else {
        add(Severity::healable, found.file.path(), found.file.layout.table_offset(index),
            "a page of the checksum table is damaged; it can be rebuilt from the pages that it covers");
    }
    return false;
}

void FileCheck::plan() {
    const bool takes_all = options_.level >= VerifyLevel::pages;
    for (File& found : files_) {
        if (!takes_all) {
            if (&found.file == &heap_.files().view()) plan_metadata(found);
            continue;
        }
        for_each_table_page(found, [&](std::uint64_t index) {
            const store::TableCover cover = store::cover_of(index);
            if (found.file.layout.file_offset(offset_of(cover.first)) < found.size)
                pieces_.push_back({&found, index, {{cover.first, cover.count}}, Via::device});
        });
    }
    if (options_.level == VerifyLevel::sample) plan_sample();
}

/// Of pages of the span, those that the file holds.
void FileCheck::plan_mapped(File& found, PageNumber first, std::uint64_t count) {
    const std::uint64_t end = std::min(first.value + count, found.extents.span / page_bytes);
    while (first.value < end) {
        const std::uint64_t index = store::place_of(first).table_page;
        const store::TableCover cover = store::cover_of(index);
        const std::uint64_t part = std::min(end, cover.first.value + cover.count) - first.value;
        pieces_.push_back({&found, index, {{first, part}}, Via::cache});
        first.value += part;
    }
}

/// What the block engine is about to read in memory, as memory has it.
void FileCheck::plan_metadata(File& found) {
    const heap::Geometry geometry(found.file.header.capacity);
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        plan_mapped(found, {region.first}, region.first_user - region.first);
    }
}

/// The root directory lies between blocks; where it does the metadata say.
void FileCheck::plan_directory(File& found) {
    AlignedBuffer first_page(page_bytes);
    (void)found.file.try_read_pages({0}, first_page.span(), Via::cache);
    bytes_read_ += page_bytes;
    heap::layout::SuperBlock super;
    std::memcpy(&super, first_page.data(), sizeof super);
    if (super.directory == 0 || super.directory % page_bytes != 0 || super.directory >= found.extents.span) return;
    const heap::Engine::Stretch stretch = heap_.engine().stretch_at({super.directory});
    plan_mapped(found, page_of(stretch.begin), (stretch.end.value - stretch.begin.value) / page_bytes);
}

/// One page out of each of so many equal parts of all pages of all files: spread evenly, and the same for the same seed and files.
void FileCheck::plan_sample() {
    std::uint64_t total = 0;
    for (const File& found : files_) total += (found.extents.span + found.extents.annex) / page_bytes;
    if (total == 0) return;
    const double wanted = std::clamp(options_.sample_fraction, 0.0, 1.0) * static_cast<double>(total);
    const std::uint64_t parts = std::clamp<std::uint64_t>(
        options_.sample_pages != 0 ? options_.sample_pages : static_cast<std::uint64_t>(std::min(wanted + 1, static_cast<double>(total))), 1,
        std::min(total, parts_max));
    std::mt19937_64 random(report_.seed);
    auto found = files_.begin();
    std::uint64_t before = 0;  // pages of files in front of `found`
    // Equal but for one page.
    const auto bound = [&](std::uint64_t part) { return total / parts * part + total % parts * part / parts; };
    for (std::uint64_t part = 0; part < parts; ++part) {
        const std::uint64_t chosen = bound(part) + random() % (bound(part + 1) - bound(part));
        while (chosen - before >= (found->extents.span + found->extents.annex) / page_bytes) {
            before += (found->extents.span + found->extents.annex) / page_bytes;
            ++found;
        }
        const std::uint64_t within = chosen - before;
        const std::uint64_t span = found->extents.span / page_bytes;
        const PageNumber page = within < span ? PageNumber{within} : PageNumber{store::annex_first_page.value + (within - span)};
        const std::uint64_t index = store::place_of(page).table_page;
        if (pieces_.empty() || pieces_.back().found != &*found || pieces_.back().table_page != index || pieces_.back().via != Via::device)
            pieces_.push_back({&*found, index, {}, Via::device});
        std::vector<Run>& runs = pieces_.back().runs;
        if (!runs.empty() && runs.back().first.value + runs.back().count == page.value)
            ++runs.back().count;
        else
            runs.push_back({page, 1});
    }
}

void FileCheck::pages() {
    plan();
    check_pieces();
    if (options_.level < VerifyLevel::pages && can_look_at(store::Sequence::span, "the names were")) {
        pieces_.clear();
        for (File& found : files_)
            if (&found.file == &heap_.files().view()) plan_directory(found);
        check_pieces();
    }
    report_.pages_checked = pages_checked_;
    report_.bytes_read += bytes_read_.exchange(0);
}

void FileCheck::check_pieces() {
    next_ = 0;
    const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t wanted = options_.threads != 0 ? options_.threads : std::min(processors, 4U);
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < std::min(wanted, pieces_.size()); ++i) {
        try {
            helpers.emplace_back([this] { take_pieces(false); });
        } catch (const std::system_error&) {
            break;  // no more threads: those that are there do it
        }
    }
    take_pieces(true);
    for (std::thread& helper : helpers) helper.join();
    if (failed_) std::rethrow_exception(failed_);
}

void FileCheck::take_pieces(bool tells) noexcept {
    try {
        AlignedBuffer buffer;
        for (std::size_t i = next_++; i < pieces_.size() && !is_stopped(); i = next_++) {
            check_piece(pieces_[i], buffer);
            if (tells && options_.progress) options_.progress(std::min(next_.load(), pieces_.size()), pieces_.size());
        }
    } catch (...) {
        next_ = pieces_.size();
        const std::lock_guard lock(report_mutex_);
        if (!failed_) failed_ = std::current_exception();
    }
}

bool FileCheck::is_there(const File& found) const {
    if (&found.file == &heap_.files().backing()) return true;
    return heap_.files().data() == &found.file && found.file.header.file == found.id;
}

void FileCheck::check_piece(const Piece& piece, AlignedBuffer& buffer) {
    const Hold hold(heap_);
    File& found = *piece.found;
    if (!is_there(found)) return;
    TablePage table;
    const auto refusal = found.file.try_read_table_page(piece.table_page, table, piece.via);
    bytes_read_ += page_bytes;
    if (!check_table_page(found, piece.table_page, table, refusal)) return;
    // Of an open heap they may be greater by now.
    const store::Extents extents = heap_.read_only() ? found.extents : found.file.header.extents();
    for (const Run& run : piece.runs) check_run(piece, run, table, extents, buffer);
}

void FileCheck::check_run(const Piece& piece, const Run& run, const TablePage& table, const store::Extents& extents, AlignedBuffer& buffer) {
    File& found = *piece.found;
    const Uuid& heap = found.file.header.heap;
    const bool may_be_torn = heap_.files().is_recovering(store::cover_of(piece.table_page));
    buffer.grow(store::entries_per_table_page * page_bytes);
    const auto pages = buffer.first(run.count * page_bytes);
    const bool some_are_refused = found.file.try_read_pages(run.first, pages, piece.via).has_value();
    bytes_read_ += pages.size();
    std::uint64_t pages_checked = 0;
    for (std::uint64_t i = 0; i < run.count; ++i) {
        const PageNumber number{run.first.value + i};
        if (may_be_torn && heap_.files().recovering_pages().contains(number.value)) continue;  // its bytes come from the journal; the reader has them
        const bool within = extents.hold(number);
        const std::uint64_t expected = within ? table.entries[store::place_of(number).entry] : 0;
        pages_checked += within ? 1 : 0;
        const auto page = pages.subspan(i * page_bytes, page_bytes);
        const auto refusal = some_are_refused && is_zero(page) ? found.file.try_read_pages(number, page, piece.via) : std::nullopt;
        if (refusal || store::page_checksum(page, number, heap) != expected) report_page(found, number, expected, within, refusal);
    }
    pages_checked_ += pages_checked;
}

/// `refusal`: what the device said if it can't read the page.
void FileCheck::report_page(File& found, PageNumber page, std::uint64_t expected, bool within, const std::optional<Error>& refusal) {
    bool healable = !within;
    if (within && other_of(found) != nullptr) {
        const AlignedBuffer bytes(page_bytes);
        const bool is_given = !found.other->try_read_pages(page, bytes.span(), Via::device);
        healable = is_given && store::page_checksum(bytes.span(), page, found.other->header.heap) == expected;
    }
    const std::string problem = refusal  ? " can't be read: " + sentence_of(*refusal)
                                : within ? " is damaged: its checksum differs"
                                         : " lies behind the heap's end and is not zero";
    const std::string remedy = !within ? "; heal() makes it zero" : healable ? "; the other copy is whole: heal() restores it" : "";
    add(healable ? Severity::healable : Severity::damage, found.file.path(), found.file.layout.file_offset(offset_of(page)),
        store::text_of(page) + problem + remedy);
    note_pages(found, store::sequence_of(page), healable, refusal.has_value());
}

/// A page of the checksum table that the device can't read: the pages that it covers are not looked at.
void FileCheck::report_table_page(File& found, std::uint64_t index, const Error& refusal) {
    bool healable = false;
    if (other_of(found) != nullptr) {
        TablePage table;
        const bool is_given = !found.other->try_read_table_page(index, table, Via::device);
        healable = is_given && store::is_sound(table, index, found.other->header.heap);
    }
    add(healable ? Severity::healable : Severity::damage, found.file.path(), found.file.layout.table_offset(index),
        "a page of the checksum table can't be read, so the pages that it covers were not looked at: " + sentence_of(refusal) +
            (healable ? "; the other copy is whole: heal() restores it" : ""));
    note_pages(found, store::sequence_of_table(index), healable, true);
}

void FileCheck::note_pages(File& found, store::Sequence sequence, bool healable, bool unreadable) {
    const std::lock_guard lock(report_mutex_);
    Pages& pages = found.pages[static_cast<std::size_t>(sequence)];
    pages.damaged = true;
    pages.lost = pages.lost || !healable;
    pages.unreadable = pages.unreadable || unreadable;
}

bool FileCheck::can_look_at(store::Sequence sequence, const char* what) {
    for (const File& found : files_) {
        const Pages& pages = found.pages[static_cast<std::size_t>(sequence)];
        if (&found.file == &heap_.files().view() && (pages.unreadable || (pages.lost && heap_.image().first_touch() != nullptr))) {
            add(Severity::note, found.file.path(), 0, std::string(what) + " not looked at, because pages can't be read");
            return false;
        }
    }
    return true;
}

Severity FileCheck::severity_in(store::Sequence sequence) const {
    for (const File& found : files_) {
        const Pages& pages = found.pages[static_cast<std::size_t>(sequence)];
        if (&found.file == &heap_.files().view() && pages.damaged && !pages.lost) return Severity::healable;
    }
    return Severity::damage;
}

}  // namespace taiyen::inspect
