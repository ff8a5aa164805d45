// verify(): proves what the files hold without changing them. Pages are read from the device, not from the page cache.

#include <taiyen/inspect/report.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <optional>
#include <tuple>

#include "base/uuid.hpp"
#include "heap/survey.hpp"
#include "heap/word_walk.hpp"
#include "inspect/file_check.hpp"
#include "inspect/program_words.hpp"
#include "inspect/type_text.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"
#include "undo/history_memory.hpp"

namespace taiyen {
namespace {

using store::HeapFile;

std::string hexadecimal(std::uint64_t value) {
    char digits[2 + 16];
    digits[0] = '0';
    digits[1] = 'x';
    return {digits, std::to_chars(digits + 2, std::end(digits), value, 16).ptr};
}

class Verifier {
public:
    Verifier(const HeapFile& heap, const VerifyOptions& options) : heap_(heap), options_(options), files_(heap, options, report_) {}

    Report run() {
        const auto begun = std::chrono::steady_clock::now();
        report_.level = options_.level;
        if (options_.level == VerifyLevel::sample) report_.seed = options_.seed != 0 ? options_.seed : random_u64();
        files_.headers_and_tables();
        files_.pages();
        if (!files_.is_stopped()) verify_what_is_mapped();
        report_.stopped = files_.is_stopped();
        // Threads find things in any order.
        std::sort(report_.findings.begin(), report_.findings.end(), [](const Finding& a, const Finding& b) {
            return std::tie(a.path.native(), a.offset, a.what) < std::tie(b.path.native(), b.offset, b.what);
        });
        report_.took = std::chrono::steady_clock::now() - begun;
        return std::move(report_);
    }

private:
    /// Nobody changes the heap meanwhile, and nothing is written into its files.
    void verify_what_is_mapped() {
        const txn::Reading reading(heap_);
        std::optional<store::Visits::Visit> visit;
        if (!heap_.read_only()) visit.emplace(heap_.visits());
        // Until all is durable that was committed the log is being written: what is read of it then looks torn.
        txn::TransactionService* const service = heap_.kind() == HeapKind::transactional ? txn::TransactionService::of(heap_) : nullptr;
        if (service != nullptr) service->wait_durable(service->log().appended());
        const auto saves = heap_.files().hold_saves();
        heap_.check_usable(true);
        for (const WrittenRange& range : heap_.written_ranges()) report_.pages_unsaved += range.bytes / page_bytes;
        verify_ring();
        verify_blocks();
        if (const std::size_t blocks = heap_.check_guards(); blocks != 0)
            add(Severity::damage, heap_.path(), 0,
                "something wrote behind " + std::to_string(blocks) + " blocks of the open heap; the report handler was told which");
        if (options_.level < VerifyLevel::everything) return;
        verify_history();
        if (options_.program_pointers != ProgramSearch::none && report_.ok()) note_program_pointers();
    }

    void add(Severity severity, const std::filesystem::path& path, std::uint64_t offset, std::string what) {
        files_.add(severity, path, offset, std::move(what));
    }

    void verify_ring() {
        const io::File* const ring = heap_.files().ring_file().get();
        if (ring == nullptr) return;
        try {
            const store::Header& header = heap_.files().backing().header;
            const log::RingIdentity identity = log::Ring::read_identity(*ring);
            if (identity.ring != header.ring || identity.heap != header.heap) {
                add(Severity::damage, ring->path(), 0, "the journal belongs to another heap or opening");
                return;
            }
            if (options_.level < VerifyLevel::pages) return;
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
        if (!files_.can_look_at(store::Sequence::span, "the blocks were")) return;
        heap_.image().will_read_metadata();
        const auto add_all = [&](const std::vector<heap::Damage>& damages, Severity severity) {
            for (const heap::Damage& damage : damages)
                add(severity, heap_.files().view().path(), heap_.files().view().layout.file_offset(damage.where), damage.what);
        };
        const std::vector<heap::Damage> damages = heap_.engine().check();
        add_all(damages, files_.severity_in(store::Sequence::span));
        if (damages.empty()) add_all(heap_.engine().bad_shapes(), Severity::note);
        if (options_.level == VerifyLevel::structure) return;  // of 10 GiB in small blocks, counting takes longer than all the rest
        // By pages: Engine::stats() visits each block.
        const heap::Survey survey(reinterpret_cast<const std::byte*>(heap_.ranges().durable), heap_.engine().capacity());
        survey.visit([&](const heap::PagesInUse& pages) {
            report_.blocks_checked += pages.use == heap::PageUse::directory ? 0 : pages.blocks;
            return true;
        });
    }

    /// In the order of the blocks, so that a heap beyond memory is read once: which object holds a block, find_leaks() knows.
    void note_program_pointers() {
        const heap::Engine& engine = heap_.engine();
        const heap::WordsFrom span{reinterpret_cast<const std::byte*>(heap_.ranges().durable)};
        inspect::ProgramWords words(options_.program_pointers);
        engine.for_each_block([&](const heap::Block& block) {
            if (block.content == heap::Content::pointer_free) return true;
            heap::for_each_word(span, block.offset.value, block.offset.value + block.usable_bytes, [&](std::uint64_t place, std::uint64_t word) {
                if (inspect::ProgramWords::may_be(heap_, word)) words.add(block, {place}, word, 0);
            });
            return true;
        });
        const inspect::ProgramWords::Verdict verdict = words.judge();
        const std::vector<heap::Root> roots = engine.roots();
        const auto file_offset = [&](HeapOffset place) { return heap_.files().view().layout.file_offset(place); };
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
            add(Severity::note, heap_.files().view().path(), file_offset(found.place),
                "byte " + std::to_string(found.place.value - found.block.offset.value) + " of the block of " +
                    std::to_string(found.block.usable_bytes) + " bytes at offset " + hexadecimal(found.block.offset.value) + what + " points to " +
                    hexadecimal(found.target) + ", " + target + others +
                    "; after a restart this points to nothing: keep an offset, an id or a name instead");
        }
        if (verdict.unjudged != 0)
            add(Severity::note, heap_.files().view().path(), 0,
                std::to_string(verdict.unjudged) + " more words may be pointers to a program's own memory; the search keeps no more");
    }

    void verify_history() {
        if (!files_.can_look_at(store::Sequence::annex, "the undo history was")) return;
        const undo::HistoryCheck check = undo::check_history(undo::viewed_history_memory(heap_), heap_.files().backing().header.capacity);
        for (const undo::HistoryFault& fault : check.faults) {
            add(check.other_version ? Severity::note : files_.severity_in(store::Sequence::annex), heap_.files().view().path(),
                heap_.files().view().layout.file_offset({store::annex_start.value + fault.offset}),
                fault.what + "; the heap itself is not concerned");
        }
        report_.steps_checked = check.steps;
    }

    const HeapFile& heap_;
    const VerifyOptions& options_;
    Report report_;
    inspect::FileCheck files_;
};

}  // namespace

Report verify(const ArchiveHeap& heap, const VerifyOptions& options) {
    const HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    return Verifier(file, options).run();
}

Report ArchiveHeap::verify() const {
    VerifyOptions options;
    options.threads = 1;
    return taiyen::verify(*this, options);
}

}  // namespace taiyen
