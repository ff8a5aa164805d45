// verify(): proves what the files hold without changing them. Every byte is read from the device, not from the page cache.

#include <taiyen/inspect/report.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <exception>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/sentence.hpp"
#include "inspect/program_words.hpp"
#include "inspect/type_text.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"
#include "undo/history_memory.hpp"

namespace taiyen {
namespace {

using store::HeapFile;
using store::PageFile;
using store::TablePage;
using store::Via;

std::string hexadecimal(std::uint64_t value) {
    char digits[2 + 16];
    digits[0] = '0';
    digits[1] = 'x';
    return {digits, std::to_chars(digits + 2, std::end(digits), value, 16).ptr};
}

/// Findings stop here: a file that is damaged all over is damaged.
constexpr std::size_t findings_max = 1000;

class Verifier {
public:
    Verifier(const HeapFile& heap, const VerifyOptions& options) : heap_(heap), options_(options) {}

    Report run() {
        if (heap_.read_only() && heap_.restoration().backing_rebuilt)
            add(Severity::healable, heap_.path(), 0, "it is missing or damaged; the next opening for writing brings it back from the data file");
        begin_file(heap_.backing(), heap_.data());
        if (const PageFile* data = heap_.data()) {
            begin_file(*data, &heap_.backing());
        }
        verify_table_pages();
        for (const File& found : files_) {
            end_file(found);
        }
        verify_ring();
        verify_blocks();
        verify_history();
        if (options_.program_pointers != ProgramSearch::none && report_.ok()) note_program_pointers();
        // Threads find things in any order.
        std::sort(report_.findings.begin(), report_.findings.end(), [](const Finding& a, const Finding& b) {
            return std::tie(a.path.native(), a.offset, a.what) < std::tie(b.path.native(), b.offset, b.what);
        });
        report_.pages_checked = pages_checked_;
        return std::move(report_);
    }

private:
    /// What became of the pages of one sequence in one file.
    struct Pages {
        bool damaged = false;
        bool lost = false;        ///< some of them in every copy
        bool unreadable = false;  ///< some of them are refused by the device
    };
    /// One file under verification.
    struct File {
        const PageFile& file;
        const PageFile* other;
        store::Extents extents;
        ByteCount size;
        std::uint64_t header_root;
        std::atomic<std::uint64_t> root = 0;
        std::atomic<bool> all_sound = true;
        std::array<Pages, 2> pages{};  ///< by sequence; the report's mutex guards them
    };
    /// A table page and the pages that it covers: what one thread does in one piece.
    struct Piece {
        File* found;
        std::uint64_t table_page;
    };

    void add(Severity severity, const std::filesystem::path& path, std::uint64_t offset, std::string what) {
        const std::lock_guard lock(report_mutex_);
        if (report_.findings.size() < findings_max) {
            report_.findings.push_back({severity, path, offset, std::move(what)});
        }
    }

    void begin_file(const PageFile& file, const PageFile* other) {
        const store::Slots slots = store::read_slots(file.file());
        const store::Header* newest = slots.newest();
        for (std::size_t i = 0; i < 2; ++i) {
            if (!slots.slot[i]) {
                add(newest != nullptr || other != nullptr ? Severity::healable : Severity::damage, file.path(), i * store::header_slot_bytes,
                    "header slot " + std::to_string(i) + ": " + slots.problem[i].what);
            }
        }
        if (newest == nullptr) {
            return;
        }
        if (newest->state == store::FileState::filling) {
            add(Severity::healable, file.path(), 0, "it was being filled when its user crashed; the next opening for writing fills it again");
            return;
        }
        if (heap_.read_only() && newest->generation != heap_.view().header.generation) {
            add(Severity::note, file.path(), 0,
                "its user crashed while this copy was being brought up to date; the next opening for writing goes on with that");
            return;
        }
        File& found = files_.emplace_back(file, other, newest->extents(), file.file().info().size_bytes, newest->table_root);
        // Chunk by chunk, to the file's end: what lies behind the extents must be zero.
        for (const store::Sequence sequence : {store::Sequence::span, store::Sequence::annex}) {
            for (std::size_t k = 0; file.layout.has(sequence, k) && file.layout.table_of(sequence, k) < found.size; ++k) {
                const store::ChunkShape& chunk = store::chunk_shapes[k];
                const std::uint64_t first = (sequence == store::Sequence::span ? 0 : store::annex_first_table_page) + chunk.first_table_page;
                for (std::uint64_t i = 0; i < chunk.table_pages; ++i) {
                    // Where the file has ended there is nothing to cover, and a table page that isn't there is one of zeros.
                    if (file.layout.table_offset(first + i) < found.size) {
                        pieces_.push_back({&found, first + i});
                    }
                }
            }
        }
    }

    void end_file(const File& found) {
        if (found.all_sound && heap_.recovering_pages().empty() && found.root != found.header_root) {
            add(found.other != nullptr ? Severity::healable : Severity::damage, found.file.path(), 0,
                "a page of the checksum table is not the one that the header stands for (a lost or stale write)");
        }
    }

    void verify_table_pages() {
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
        for (std::thread& helper : helpers) {
            helper.join();
        }
        if (failed_) {
            std::rethrow_exception(failed_);
        }
    }

    void take_pieces(bool tells) noexcept {
        try {
            AlignedBuffer buffer;
            for (std::size_t i = next_++; i < pieces_.size(); i = next_++) {
                verify_table_page(*pieces_[i].found, pieces_[i].table_page, buffer);
                if (tells && options_.progress) {
                    options_.progress(std::min(next_.load(), pieces_.size()), pieces_.size());
                }
            }
        } catch (...) {
            next_ = pieces_.size();
            const std::lock_guard lock(report_mutex_);
            if (!failed_) {
                failed_ = std::current_exception();
            }
        }
    }

    void verify_table_page(File& found, std::uint64_t index, AlignedBuffer& buffer) {
        const Uuid& heap = found.file.header.heap;
        const store::TableCover cover = store::cover_of(index);
        TablePage table;
        if (const auto refusal = found.file.try_read_table_page(index, table, Via::device)) {
            report_table_page(found, index, *refusal);
            return;
        }
        // A checkpoint that a crash interrupted may have torn a table page: its entries of other pages stand.
        const bool may_be_torn = heap_.is_recovering(cover);
        if (!store::is_sound(table, index, heap) && !may_be_torn) {
            found.all_sound = false;
            add(Severity::healable, found.file.path(), found.file.layout.table_offset(index),
                "a page of the checksum table is damaged; it can be rebuilt from the pages that it covers");
            return;
        }
        if (table.checksum != 0) {
            found.root += mix(index, table.checksum);
        }
        if (found.file.layout.file_offset(offset_of(cover.first)) >= found.size) {
            return;
        }
        buffer.grow(store::entries_per_table_page * page_bytes);
        const auto pages = buffer.first(cover.count * page_bytes);
        const bool some_are_refused = found.file.try_read_pages(cover.first, pages, Via::device).has_value();
        std::uint64_t pages_checked = 0;
        for (std::uint64_t i = 0; i < cover.count; ++i) {
            const PageNumber number{cover.first.value + i};
            if (may_be_torn && heap_.recovering_pages().contains(number.value)) {
                continue;  // its bytes come from the journal; the reader has them
            }
            const bool within = found.extents.hold(number);
            const std::uint64_t expected = within ? table.entries[i] : 0;
            pages_checked += within ? 1 : 0;
            const auto page = pages.subspan(i * page_bytes, page_bytes);
            const auto refusal = some_are_refused && is_zero(page) ? found.file.try_read_pages(number, page, Via::device) : std::nullopt;
            if (refusal || store::page_checksum(page, number, heap) != expected) {
                report_page(found, number, expected, within, refusal);
            }
        }
        pages_checked_ += pages_checked;
    }

    /// `refusal`: what the device said if it can't read the page.
    void report_page(File& found, PageNumber page, std::uint64_t expected, bool within, const std::optional<Error>& refusal) {
        bool healable = !within;
        if (within && found.other != nullptr) {
            const AlignedBuffer bytes(page_bytes);
            const bool is_given = !found.other->try_read_pages(page, bytes.span(), Via::device);
            healable = is_given && store::page_checksum(bytes.span(), page, found.other->header.heap) == expected;
        }
        const std::string problem = refusal  ? " can't be read: " + sentence_of(*refusal)
                                    : within ? " is damaged: its checksum differs"
                                             : " lies behind the heap's end and is not zero";
        add(healable ? Severity::healable : Severity::damage, found.file.path(), found.file.layout.file_offset(offset_of(page)),
            store::text_of(page) + problem +
                (!within    ? "; heal() makes it zero"
                 : healable ? "; the other copy is whole: heal() restores it"
                            : ""));
        note_pages(found, store::sequence_of(page), healable, refusal.has_value());
    }

    /// A page of the checksum table that the device can't read: the pages that it covers are not looked at.
    void report_table_page(File& found, std::uint64_t index, const Error& refusal) {
        found.all_sound = false;
        bool healable = false;
        if (found.other != nullptr) {
            TablePage table;
            const bool is_given = !found.other->try_read_table_page(index, table, Via::device);
            healable = is_given && store::is_sound(table, index, found.other->header.heap);
        }
        add(healable ? Severity::healable : Severity::damage, found.file.path(), found.file.layout.table_offset(index),
            "a page of the checksum table can't be read, so the pages that it covers were not looked at: " + sentence_of(refusal) +
                (healable ? "; the other copy is whole: heal() restores it" : ""));
        note_pages(found, store::sequence_of_table(index), healable, true);
    }

    void note_pages(File& found, store::Sequence sequence, bool healable, bool unreadable) {
        const std::lock_guard lock(report_mutex_);
        Pages& pages = found.pages[static_cast<std::size_t>(sequence)];
        pages.damaged = true;
        pages.lost = pages.lost || !healable;
        pages.unreadable = pages.unreadable || unreadable;
    }

    /// Whether what is mapped of the sequence can be looked at: a page that the device can't read, or that Verify::at_first_touch hides, would end the program there.
    bool can_look_at(store::Sequence sequence, const char* what) {
        for (const File& found : files_) {
            const Pages& pages = found.pages[static_cast<std::size_t>(sequence)];
            if (&found.file == &heap_.view() && (pages.unreadable || (pages.lost && heap_.hides_unproven()))) {
                add(Severity::note, found.file.path(), 0, std::string(what) + " not looked at, because pages can't be read");
                return false;
            }
        }
        return true;
    }

    /// How bad it is that what is mapped contradicts itself: where it is so because of pages that the other copy has whole, it is not lost.
    Severity severity_in(store::Sequence sequence) const {
        for (const File& found : files_) {
            const Pages& pages = found.pages[static_cast<std::size_t>(sequence)];
            if (&found.file == &heap_.view() && pages.damaged && !pages.lost) return Severity::healable;
        }
        return Severity::damage;
    }

    void verify_ring() {
        const io::File* ring = heap_.ring_file();
        if (ring == nullptr) {
            return;
        }
        try {
            const store::Header& header = heap_.backing().header;
            const log::RingIdentity identity = log::Ring::read_identity(*ring);
            if (identity.ring != header.ring || identity.heap != header.heap) {
                add(Severity::damage, ring->path(), 0, "the journal belongs to another heap or opening");
                return;
            }
            const auto result = log::Ring::scan(*ring, identity, header.ring_start, [](const log::Record&) { return true; });
            if (result.how == log::ScanEnd::corrupt) {
                add(Severity::damage, ring->path(), log::Ring::header_bytes + result.next.position % identity.capacity_bytes,
                    "an acknowledged record is damaged");
            }
        } catch (const Error& error) {
            add(Severity::damage, ring->path(), error.offset(), error.what());
        }
    }

    void verify_blocks() {
        if (!can_look_at(store::Sequence::span, "the blocks were")) return;
        heap_.will_read_metadata();
        for (const heap::Damage& damage : heap_.engine().check()) {
            add(severity_in(store::Sequence::span), heap_.view().path(), heap_.view().layout.file_offset(damage.where), damage.what);
        }
        report_.blocks_checked = heap_.engine().stats().live_blocks;
    }

    /// In the order of the blocks, so that a heap beyond memory is read once: which object holds a block, find_leaks() knows.
    void note_program_pointers() {
        const heap::Engine& engine = heap_.engine();
        const auto* const begin = reinterpret_cast<const std::byte*>(heap_.ranges().durable);
        inspect::ProgramWords words(options_.program_pointers);
        engine.for_each_block([&](const heap::Block& block) {
            if (block.content == heap::Content::pointer_free) return true;
            for (ByteCount at = 0; at + sizeof(std::uint64_t) <= block.usable_bytes; at += sizeof(std::uint64_t)) {
                std::uint64_t word;
                std::memcpy(&word, begin + block.offset.value + at, sizeof word);
                if (inspect::ProgramWords::may_be(heap_, word)) words.add(block, {block.offset.value + at}, word, 0);
            }
            return true;
        });
        const inspect::ProgramWords::Verdict verdict = words.judge();
        const std::vector<heap::Root> roots = engine.roots();
        const auto file_offset = [&](HeapOffset place) { return heap_.view().layout.file_offset(place); };
        for (const inspect::ProgramWords::Found& found : verdict.found) {
            const auto object =
                std::find_if(roots.begin(), roots.end(), [&](const heap::Root& root) { return found.place.value - root.object.value < root.bytes; });
            const std::string what =
                object == roots.end() ? "" : ", in the object '" + object->name + "' (" + inspect::type_text(object->fingerprint) + ")";
            const std::string others = found.words == 1   ? ""
                                       : found.words == 2 ? ", and so does another word in blocks of that size"
                                                          : ", and so do " + std::to_string(found.words - 1) + " others in blocks of that size";
            const std::string target =
                found.leads_to.empty() ? "what looks like a program's own memory" : "the program's own memory, " + found.leads_to;
            add(Severity::note, heap_.view().path(), file_offset(found.place),
                "byte " + std::to_string(found.place.value - found.block.offset.value) + " of the block of " +
                    std::to_string(found.block.usable_bytes) + " bytes at offset " + hexadecimal(found.block.offset.value) + what + " points to " +
                    hexadecimal(found.target) + ", " + target + others +
                    "; after a restart this points to nothing: keep an offset, an id or a name instead");
        }
        if (verdict.unjudged != 0)
            add(Severity::note, heap_.view().path(), 0,
                std::to_string(verdict.unjudged) + " more words may be pointers to a program's own memory; the search keeps no more");
    }

    void verify_history() {
        if (!can_look_at(store::Sequence::annex, "the undo history was")) return;
        const undo::HistoryCheck check = undo::check_history(undo::viewed_history_memory(heap_), heap_.backing().header.capacity);
        for (const undo::HistoryFault& fault : check.faults) {
            add(check.other_version ? Severity::note : severity_in(store::Sequence::annex), heap_.view().path(),
                heap_.view().layout.file_offset({store::annex_start.value + fault.offset}), fault.what + "; the heap itself is not concerned");
        }
        report_.steps_checked = check.steps;
    }

    const HeapFile& heap_;
    const VerifyOptions& options_;
    std::list<File> files_;
    std::vector<Piece> pieces_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<std::uint64_t> pages_checked_ = 0;
    std::mutex report_mutex_;  ///< guards the two below while threads are at work
    Report report_;
    std::exception_ptr failed_;
};

}  // namespace

Report verify(const ArchiveHeap& heap, const VerifyOptions& options) {
    const HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    const auto saves = file.hold_saves();
    return Verifier(file, options).run();
}

Report ArchiveHeap::verify() const {
    VerifyOptions options;
    options.threads = 1;
    return taiyen::verify(*this, options);
}

}  // namespace taiyen
