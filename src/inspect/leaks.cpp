#include <taiyen/inspect/leaks.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "inspect/block_walk.hpp"
#include "inspect/program_words.hpp"
#include "inspect/type_text.hpp"
#include "store/heap_access.hpp"
#include "transfer/pointer_finder.hpp"
#include "transfer/shape_types.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {
namespace {

using heap::Block;
using inspect::BlockSet;
using inspect::BlockWalk;

class LeakFinder {
public:
    LeakFinder(const store::HeapFile& file, const LeakOptions& options)
        : file_(file), options_(options), engine_(file.engine()), walk_(file), program_words_(options.program_pointers) {}

    LeakReport run() {
        file_.image().will_read_metadata();
        for_each_block([&](const Block& block) {
            ++report_.live_blocks;
            report_.live_bytes += block.usable_bytes;
        });
        std::vector<heap::Root> roots = engine_.roots();
        std::sort(roots.begin(), roots.end(), [](const heap::Root& a, const heap::Root& b) { return a.name < b.name; });
        for (const heap::Root& root : roots) {
            Holder holder(*this, root.name);
            walk_.from(root.object, holder);
            report_.holdings.push_back(holder.holding);
        }
        held_ = walk_.visited();
        tell_program_pointers(roots);
        find_doubtful();
        find_lost();
        find_hidden();
        std::sort(chosen_.begin(), chosen_.end(), comes_before);
        for (LeakedBlock& leak : chosen_) complete(leak);
        report_.leaks = std::move(chosen_);
        report_.position_independent = file_.links() == heap::Links::distances;
        return std::move(report_);
    }

private:
    /// What one named object reaches.
    struct Holder final : BlockWalk::Listener {
        Holder(LeakFinder& whole, const std::string& name) : finder(whole) { holding.name = name; }
        void reached(const Block& block) override {
            ++holding.blocks;
            holding.bytes += block.usable_bytes;
            finder.tell(block.usable_bytes);
        }
        void met_again(HeapOffset) override { ++holding.shared_words; }
        void dangles(HeapOffset word, HeapOffset target) override {
            ++finder.report_.dangling_pointers;
            if (finder.report_.dangling.size() < finder.options_.listed_max)
                finder.report_.dangling.push_back({word.value, target.value, holding.name});
        }
        void leads_out(const Block& block, HeapOffset place, std::uint64_t word) override {
            if (finder.options_.program_pointers != ProgramSearch::none)
                finder.program_words_.add(block, place, word, finder.report_.holdings.size());
        }
        LeakFinder& finder;
        Holding holding;
    };

    struct Doubter final : BlockWalk::Listener {
        explicit Doubter(LeakFinder& whole) : finder(whole) {}
        void reached(const Block& block) override {
            ++finder.report_.doubtful_blocks;
            finder.report_.doubtful_bytes += block.usable_bytes;
            finder.choose(block, LeakKind::doubtful);
            finder.tell(block.usable_bytes);
        }
        LeakFinder& finder;
    };

    /// From a leaked block on: what it leads to is leaked indirectly, also where it was thought to be a leak of its own.
    struct Loser final : BlockWalk::Listener {
        explicit Loser(BlockSet& blocks) : direct(blocks) {}
        void reached(const Block&) override {}
        void met_again(HeapOffset block) override {
            if (inspect::id_of(block) != begin) direct.erase(inspect::id_of(block));
        }
        BlockSet& direct;
        std::int64_t begin = 0;
    };

    template <class Visit>
    void for_each_block(Visit visit) const {
        engine_.for_each_block([&](const Block& block) {
            visit(block);
            return true;
        });
    }

    void tell(std::size_t bytes) {
        done_ += bytes;
        if (options_.progress && done_ - told_ >= told_step) {
            told_ = done_;
            options_.progress(done_, report_.live_bytes);
        }
    }

    /// `roots`: as report_.holdings.
    void tell_program_pointers(const std::vector<heap::Root>& roots) {
        inspect::ProgramWords::Verdict verdict = program_words_.judge();
        report_.program_pointers = verdict.words;
        report_.program_places = verdict.found.size();
        report_.program_words_unjudged = verdict.unjudged;
        if (verdict.found.size() > options_.listed_max) verdict.found.resize(options_.listed_max);
        for (inspect::ProgramWords::Found& found : verdict.found) {
            const heap::Root& holder = roots[found.holder];
            const bool is_own = found.place.value - holder.object.value < holder.bytes;
            report_.program.push_back({found.place.value, found.block.offset.value, found.block.usable_bytes, found.target, found.words, holder.name,
                                       is_own ? inspect::type_text(holder.fingerprint) : std::string(), std::move(found.leads_to)});
        }
    }

    void find_doubtful() {
        Doubter doubter(*this);
        walk_.from_hinted(doubter);
    }

    void find_lost() {
        BlockSet lost;
        for_each_block([&](const Block& block) {
            if (walk_.visited().contains(inspect::id_of(block.offset))) return;
            lost.insert(inspect::id_of(block.offset));
            ++report_.leaked_blocks;
            report_.leaked_bytes += block.usable_bytes;
            by_size_[std::bit_ceil(block.usable_bytes)].first += 1;
            by_size_[std::bit_ceil(block.usable_bytes)].second += block.usable_bytes;
        });
        for (const auto& [bytes_max, found] : by_size_) report_.sizes.push_back({bytes_max, found.first, found.second});
        BlockSet direct;
        Loser loser(direct);
        for (const std::int64_t id : lost) {
            if (walk_.visited().contains(id)) continue;  // an earlier leak leads to it
            direct.insert(id);
            loser.begin = id;
            walk_.from(inspect::block_of(id), loser);
        }
        report_.direct_blocks = direct.size();
        for (const std::int64_t id : lost) {
            if (const auto block = engine_.find_block(address(inspect::block_of(id)))) {
                choose(*block, direct.contains(id) ? LeakKind::direct : LeakKind::indirect);
                tell(block->usable_bytes);
            }
        }
    }

    /// What words lead to and pointers don't, if it is known which ones are pointers.
    void find_hidden() {
        if (file_.links() == heap::Links::distances || file_.home() != file_.ranges().durable) {
            report_.why_not = "it is not mapped where its pointers are true";
            return;
        }
        const transfer::ShapeTypes shapes(engine_, {});
        report_.why_not = shapes.unknown();
        if (!shapes.are_all()) return;
        const heap::CoreRanges& ranges = file_.ranges();
        const transfer::HeapView view{engine_, reinterpret_cast<const std::byte*>(ranges.durable), ranges.durable, ranges.durable_bytes,
                                      file_.path()};
        transfer::PointerPlaces places(view);
        RebaseReport unused;
        PointerWalk::State state(view, places, unused, 0);
        try {
            transfer::walk_shapes(view, shapes.types(), unused, state);
        } catch (const Error& error) {
            if (error.code() != errc::type_mismatch) throw;
            report_.why_not = error.what();
            return;
        }
        report_.is_by_shapes = true;
        for_each_block([&](const Block& block) {
            if (state.reached.test(block.offset.value) || !held_.contains(inspect::id_of(block.offset))) return;
            ++report_.hidden_blocks;
            report_.hidden_bytes += block.usable_bytes;
            choose(block, LeakKind::hidden);
        });
    }

    static bool comes_before(const LeakedBlock& a, const LeakedBlock& b) {
        return std::tuple(a.kind, ~a.bytes, a.offset) < std::tuple(b.kind, ~b.bytes, b.offset);
    }
    /// Keeps the foremost ones: a heap whose front is the last of them.
    void choose(const Block& block, LeakKind kind) {
        LeakedBlock leak;
        leak.kind = kind;
        leak.offset = block.offset.value;
        leak.bytes = block.usable_bytes;
        if (chosen_.size() >= options_.listed_max) {
            if (chosen_.empty() || !comes_before(leak, chosen_.front())) return;
            std::pop_heap(chosen_.begin(), chosen_.end(), comes_before);
            chosen_.pop_back();
        }
        chosen_.push_back(leak);
        std::push_heap(chosen_.begin(), chosen_.end(), comes_before);
    }

    void complete(LeakedBlock& leak) const {
        std::memcpy(leak.beginning.data(), address({leak.offset}), std::min(leak.bytes, leak.beginning.size()));
        store::TablePage table;
        const store::TablePlace place = store::place_of(page_of(HeapOffset{leak.offset}));
        const store::PageFile& file = file_.files().view();
        if (file.layout.table_offset(place.table_page) < file.file().info().size_bytes) {
            const bool is_refused = file.try_read_table_page(place.table_page, table, store::Via::cache).has_value();
            if (!is_refused && store::is_sound(table, place.table_page, file.header.heap)) leak.generation = table.generation;
        }
    }

    const std::byte* address(HeapOffset offset) const { return reinterpret_cast<const std::byte*>(file_.ranges().durable) + offset.value; }

    static constexpr std::size_t told_step = std::size_t{1} << 20U;

    const store::HeapFile& file_;
    const LeakOptions& options_;
    const heap::Engine& engine_;
    BlockWalk walk_;
    BlockSet held_;  ///< by named objects
    inspect::ProgramWords program_words_;
    LeakReport report_;
    std::map<std::size_t, std::pair<std::uint64_t, std::size_t>> by_size_;
    std::vector<LeakedBlock> chosen_;
    std::size_t done_ = 0;
    std::size_t told_ = 0;
};

}  // namespace

LeakReport find_leaks(const ArchiveHeap& heap, const LeakOptions& options) {
    const store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    return LeakFinder(file, options).run();
}

}  // namespace taiyen
