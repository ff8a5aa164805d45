// Steps of compact(): after each of them everything is as its model, wherever it lies now; taken back, everything lies where it lay.

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <set>

#include "containers/declared_document.hpp"
#include "containers/declared_shapes.hpp"
#include "seed.hpp"
#include "transfer/transfer_fixture.hpp"

namespace taiyen::transfer::test {

using taiyen::test::Chain;

/// Says less than there is: `hidden` is nobody's.
struct Reticent {
    Chain* known = nullptr;
    Chain* hidden = nullptr;
};

}  // namespace taiyen::transfer::test

namespace taiyen::transfer::test {
namespace {

using Stored = Document<InHeap>;
using Texts = taiyen::map<int, taiyen::string>;
using Model = std::map<int, std::string>;

std::string text_of(std::mt19937_64& random) { return std::string(random() % 150, static_cast<char>('a' + random() % 26)); }

Model content(const Texts& texts) {
    Model found;
    for (const auto& [number, text] : texts) found[number].assign(text.data(), text.size());
    return found;
}

CompactOptions in_steps_of(std::size_t bytes) {
    CompactOptions options;
    options.bytes_max = bytes;
    return options;
}
template <class... T>
CompactOptions knowing(std::size_t bytes = std::size_t{16} << 20U) {
    CompactOptions options = in_steps_of(bytes);
    options.types.add<T...>();
    return options;
}

/// Blocks of all sizes come and go beside the texts, so that these lie far from one another.
void churn(ArchiveHeap& heap, Model& model, std::mt19937_64& random, int count, int kept) {
    auto& texts = heap.find_or_construct<Texts>("texts");
    std::vector<void*> blocks;
    for (int i = 0; i < count; ++i) {
        const std::string text = text_of(random);
        const int number = static_cast<int>(random() % 100'000);
        texts[number] = text.c_str();
        model[number] = text;
        for (int n = 0; n < 3; ++n) blocks.push_back(heap.allocate(random() % 16 == 0 ? random() % 9000 : random() % 300));
    }
    while (model.size() > static_cast<std::size_t>(kept)) {
        const auto gone = model.begin();
        texts.erase(gone->first);
        model.erase(gone);
        if (model.size() <= static_cast<std::size_t>(kept)) break;
        const auto at = model.lower_bound(static_cast<int>(random() % 100'000));
        if (at == model.end()) continue;
        texts.erase(at->first);
        model.erase(at);
    }
    for (void* const block : blocks) heap.deallocate(block);
}

struct CompactFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    std::mt19937_64 random{taiyen::test::seed_of_run()};
    Model model;

    template <class F>
    errc refusal(F&& action) {
        try {
            action();
        } catch (const Error& error) {
            return static_cast<errc>(error.code().value());
        }
        return errc{};
    }
};

BOOST_FIXTURE_TEST_SUITE(compacted_heaps, CompactFixture)

BOOST_AUTO_TEST_CASE(keep_blocks_of_numbers_and_text_apart_from_the_others) {
    std::vector<std::byte> stream;
    const auto require_apart = [](ArchiveHeap& heap) {
        const heap::Engine& engine = heap.core()->engine();
        const auto content_at = [&](const void* block) { return engine.find_block(block)->content; };
        std::size_t long_texts = 0;
        for (const auto& entry : *heap.find<Texts>("texts")) {
            BOOST_REQUIRE((content_at(&entry) == heap::Content::any));
            if (entry.second.size() < 16) continue;
            ++long_texts;
            BOOST_REQUIRE((content_at(entry.second.data()) == heap::Content::pointer_free));
        }
        BOOST_TEST(long_texts > 100U);
        BOOST_TEST((content_at(heap.find<taiyen::vector<double>>("numbers")->data()) == heap::Content::pointer_free));
        BOOST_TEST(engine.check().empty());
        BOOST_TEST(heap.verify().ok());
    };
    {
        ArchiveHeap heap(create_only, path, small_heap());
        churn(heap, model, random, 3000, 400);
        void* const before = heap.allocate(60'000);
        heap.construct<taiyen::vector<double>>("numbers", 5'000U);
        heap.deallocate(before);
        heap.snapshot();
        require_apart(heap);
        std::uint64_t moved = 0;
        for (CompactReport step; (step = compact(heap, knowing<Texts, taiyen::vector<double>>(50'000))).moved_blocks != 0;)
            moved += step.moved_blocks;
        BOOST_TEST(moved > 300U);
        require_apart(heap);
        BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
        heap.snapshot();
        stream = compress(heap);
        heap.close();
    }
    for (const Defragment order : {Defragment::no, Defragment::by_address, Defragment::by_reachability}) {
        ExpandOptions options;
        options.defragment = order;
        options.pointers.types.add<Texts, taiyen::vector<double>>();
        const std::filesystem::path there = directory / ("to" + std::to_string(static_cast<int>(order)) + ".tyn");
        expand(std::span(stream), there, options);
        ArchiveHeap heap(open_only, there);
        require_apart(heap);
        BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
    }
}

template <class Heap, class InStep>
void compact_a_document(CompactFixture& test, InStep&& in_step) {
    Document<InMemory> model;
    {
        Heap heap(create_only, test.path, small_heap());
        in_step(heap, [&] {
            std::vector<void*> blocks;
            for (unsigned round = 1; round < 40; ++round) {
                edit(heap, model, round, 1);
                for (int n = 0; n < 40; ++n) blocks.push_back(heap.allocate(test.random() % 400));
            }
            for (void* const block : blocks) heap.deallocate(block);
        });
        CompactOptions options = knowing<Stored>(8192);
        std::uint64_t steps = 0;
        std::uint64_t pages = 0;
        for (;; ++steps) {
            const CompactReport report = compact(heap, options);
            BOOST_REQUIRE(content_of(heap) == describe(model));
            expect_verified(heap);
            BOOST_TEST(report.moved_bytes <= options.bytes_max);
            BOOST_TEST(report.undeclared_blocks + report.suspected_blocks == 0U);
            if (steps == 0) pages = report.pages_before;
            BOOST_REQUIRE(steps < 1000U);
            if (report.done()) {
                BOOST_TEST(report.pages_before < pages);
                break;
            }
            if (steps % 4 == 3 && steps < 20) in_step(heap, [&] { edit(heap, model, 100 + static_cast<unsigned>(steps), 1); });
        }
        BOOST_TEST(steps > 3U);
        if constexpr (!std::is_same_v<Heap, TransactionalHeap>) heap.snapshot();
        heap.close();
    }
    Heap heap(open_only, test.path, small_heap());
    BOOST_TEST(content_of(heap) == describe(model));
    in_step(heap, [&] { edit(heap, model, 999, 2); });
    BOOST_TEST(content_of(heap) == describe(model));
    expect_verified(heap);
    heap.close();
}

BOOST_AUTO_TEST_CASE(hold_the_same_document_after_each_of_many_small_steps) {
    const auto plainly = [](auto&, auto&& action) { action(); };
    compact_a_document<ArchiveHeap>(*this, plainly);
    std::filesystem::remove(path);
    compact_a_document<SnapshotHeap>(*this, plainly);
    std::filesystem::remove(path);
    std::filesystem::remove(path.string() + ".data");
    compact_a_document<TransactionalHeap>(*this, [](TransactionalHeap& heap, auto&& action) {
        Transaction transaction(heap);
        action();
        transaction.commit();
    });
}

BOOST_AUTO_TEST_CASE(that_were_full_of_holes_end_without_any) {
    ArchiveHeap heap(create_only, path, small_heap());
    churn(heap, model, random, 5000, 500);
    const std::size_t live = heap.stats().live_bytes;
    BOOST_TEST(availability(heap, 65'536) < 0.97);
    std::uint64_t before = 0;
    CompactReport report;
    for (int steps = 0; steps < 100; ++steps) {
        report = compact(heap, knowing<Texts>());
        if (steps == 0) before = report.pages_before;
        BOOST_TEST(report.pinned_bytes == 0U);
        if (report.done()) break;
    }
    BOOST_TEST(report.done());
    BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
    expect_verified(heap);
    BOOST_TEST(heap.stats().live_bytes == live);
    // Beside what is live: of each size class a page that is not full; of 150 random heaps the most was 15 KB.
    BOOST_TEST(report.pages_after * 4096 < live + live / 10 + (std::size_t{24} << 10U));
    BOOST_TEST(before > report.pages_after * 5);
    BOOST_TEST(report.segments_after <= report.pages_after / 16 + 3);
    for (const std::size_t bytes : {64U, 4096U})
        BOOST_TEST(availability(heap, bytes) >= 0.98, "of " << bytes << " bytes: " << availability(heap, bytes));
    BOOST_TEST(availability(heap, 65'536) > 0.95);  // some fifty places in all: one is two per cent
}

BOOST_AUTO_TEST_CASE(tell_the_program_where_everything_lies) {
    ArchiveHeap heap(create_only, path, small_heap());
    churn(heap, model, random, 1000, 200);
    std::vector<const taiyen::string*> mine;
    for (const auto& [number, text] : *heap.find<Texts>("texts")) mine.push_back(&text);
    const auto* named = heap.find<Texts>("texts");
    for (CompactReport report; !(report = compact(heap, knowing<Texts>(4096))).done();) {
        report.relocation.visit(mine);
        named = report.relocation(named);
        BOOST_TEST(named == heap.find<Texts>("texts"));
    }
    auto at = mine.begin();
    for (const auto& [number, text] : *named) BOOST_REQUIRE(*at++ == &text);
}

BOOST_AUTO_TEST_CASE(keep_their_sets_of_ids) {
    ArchiveHeap heap(create_only, path, small_heap());
    auto& set = heap.construct<object_id_set<>>("set");
    std::set<std::int64_t> ids;
    std::vector<void*> blocks;
    for (int i = 0; i < 20'000; ++i) {
        const std::int64_t id = static_cast<std::int64_t>(random() % 100'000) * (i % 2 == 0 ? 1 : std::int64_t{1} << 30U);
        ids.insert(id);
        set.insert(id);
        if (i % 8 == 0) blocks.push_back(heap.allocate(random() % 600));
    }
    for (void* const block : blocks) heap.deallocate(block);
    std::uint64_t moved = 0;
    for (CompactReport report; !(report = compact(heap, knowing<object_id_set<>>(std::size_t{64} << 10U))).done();) {
        BOOST_TEST(report.pinned_bytes == 0U);
        moved += report.moved_blocks;
        auto& now = *heap.find<object_id_set<>>("set");
        BOOST_REQUIRE(now.is_sound());
        BOOST_REQUIRE(std::equal(now.begin(), now.end(), ids.begin(), ids.end()));
    }
    BOOST_TEST(moved > 100U);
    auto& now = *heap.find<object_id_set<>>("set");
    for (const std::int64_t id : ids) now.erase(id);
    BOOST_TEST(now.empty());
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(lie_where_they_lay_if_the_transaction_is_rolled_back_and_are_durable_if_not) {
    {
        TransactionalHeap heap(create_only, path, small_heap());
        {
            Transaction transaction(heap);
            churn(heap, model, random, 1000, 200);
            transaction.commit();
        }
        const std::vector<std::byte> before = span_of(heap, path);
        {
            Transaction transaction(heap);
            heap.find<Texts>("texts")->erase(model.begin()->first);
            BOOST_TEST(compact(heap, knowing<Texts>()).moved_blocks > 100U);
            BOOST_TEST(content(*heap.find<Texts>("texts")).size() == model.size() - 1);
        }
        BOOST_TEST((span_of(heap, path) == before));
        BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
        const CompactReport report = compact(heap, knowing<Texts>());
        BOOST_TEST(report.moved_blocks > 100U);
        BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
        const ReadLock lock(heap);
        BOOST_CHECK(refusal([&] { compact(heap, knowing<Texts>()); }) == errc::scope_open);
    }  // not saved: what the log has is what counts
    TransactionalHeap heap(open_only, path, small_heap());
    BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
    expect_verified(heap);
    for (int i = 0; i < 20 && !compact(heap, knowing<Texts>()).done(); ++i) {}
    const Serial before = ReadLock(heap).serial();
    BOOST_TEST(compact(heap, knowing<Texts>()).done());
    BOOST_TEST((ReadLock(heap).serial() == before));  // nothing to do is no transaction
}

BOOST_AUTO_TEST_CASE(can_be_undone_and_done_again) {
    PersistentOptions files = small_heap();
    files.audit = Audit::scope;  // each byte that changes must have been captured
    SnapshotHeap heap(create_only, path, files);
    heap.attach_undo();
    {
        const UndoScope scope(heap, "churn");
        churn(heap, model, random, 1000, 500);
    }
    std::vector<std::vector<std::byte>> states{span_of(heap, path)};
    for (int i = 0; i < 5; ++i) {
        BOOST_TEST(compact(heap, knowing<Texts>(4096)).moved_blocks != 0U);
        BOOST_TEST(heap.undo_name() == "compact");
        states.push_back(span_of(heap, path));
    }
    for (std::size_t i = states.size() - 1; i-- > 0;) {
        BOOST_TEST(heap.undo());
        BOOST_TEST((span_of(heap, path) == states[i]));
        BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
    }
    BOOST_TEST(heap.undo_name() == "churn");
    for (std::size_t i = 1; i < states.size(); ++i) {
        BOOST_TEST(heap.redo());
        BOOST_TEST((span_of(heap, path) == states[i]));
    }
    BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
    {
        UndoScope scope(heap, "both");
        (*heap.find<Texts>("texts"))[1'000'000] = "another";
        BOOST_TEST(compact(heap, knowing<Texts>()).moved_blocks != 0U);
        scope.cancel();
    }
    BOOST_TEST((span_of(heap, path) == states.back()));
    {
        const UndoScope scope(heap, "both");
        (*heap.find<Texts>("texts"))[1'000'000] = "another";
        BOOST_TEST(compact(heap, knowing<Texts>()).moved_blocks != 0U);
    }
    BOOST_TEST(heap.undo_name() == "both");
    BOOST_TEST(heap.undo());
    BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
    heap.snapshot();
    heap.close();
    SnapshotHeap again(open_only, path, files);
    again.attach_undo();
    BOOST_TEST(again.redo());
    model[1'000'000] = "another";
    BOOST_TEST((content(*again.find<Texts>("texts")) == model));
    expect_verified(again);
}

BOOST_AUTO_TEST_CASE(of_which_nobody_knows_a_part_keep_that_part_and_what_it_leads_to) {
    ArchiveHeap heap(create_only, path, small_heap());
    std::vector<void*> blocks;
    const auto space = [&] {
        for (int i = 0; i < 80; ++i) blocks.push_back(heap.allocate(sizeof(Chain), alignof(Chain)));  // more than a page
    };
    auto& first = heap.construct<Chain>("first");
    space();
    auto& secret = heap.construct<Reticent>("secret");
    space();
    Chain* const seen = heap.make<Chain>();
    space();
    Chain* const hidden = heap.make<Chain>();
    space();
    Chain* const only_seen = heap.make<Chain>();
    first.next = seen;
    seen->next = hidden;
    hidden->next = only_seen;
    hidden->text = "a text that is longer than a small buffer";
    only_seen->number = reinterpret_cast<std::uintptr_t>(only_seen);
    secret.known = seen;
    secret.hidden = hidden;
    space();
    for (void* const block : blocks) heap.deallocate(block);
    // The type of "secret" is not declared.
    const CompactReport report = compact(heap, knowing<Chain>());
    BOOST_TEST(report.undeclared_blocks == 1U);
    BOOST_TEST(report.undeclared == std::vector<std::string>{"secret"});
    BOOST_TEST(report.suspected_blocks >= 2U);  // those, and what may end where they begin
    BOOST_TEST(report.moved_blocks >= 1U);
    BOOST_TEST(heap.find<Reticent>("secret") == &secret);
    BOOST_TEST(secret.known == seen);
    BOOST_TEST(secret.hidden == hidden);
    const Chain* const start = heap.find<Chain>("first");
    BOOST_TEST(start->next == seen);
    BOOST_TEST(seen->next == hidden);
    BOOST_TEST(std::string_view(hidden->text) == "a text that is longer than a small buffer");
    BOOST_TEST(hidden->next != only_seen);
    BOOST_TEST(hidden->next->number == reinterpret_cast<std::uintptr_t>(only_seen));  // a number stays what it is
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(keep_what_containers_find_by_its_address) {
    ArchiveHeap heap(create_only, path, small_heap());
    auto& known = heap.construct<taiyen::unordered_set<Chain*>>("known");
    auto& ordered = heap.construct<taiyen::map<Chain*, int>>("ordered");
    std::vector<void*> blocks;
    std::vector<Chain*> chains;
    for (int i = 0; i < 100; ++i) {
        chains.push_back(heap.make<Chain>());
        chains.back()->text = "a text that is longer than a small buffer";
        i % 2 == 0 ? void(known.insert(chains.back())) : void(ordered.emplace(chains.back(), i));
        for (int n = 0; n < 4; ++n) blocks.push_back(heap.allocate(200));
    }
    for (void* const block : blocks) heap.deallocate(block);
    CompactReport report;
    std::uint64_t moved = 0;
    for (int i = 0; i < 20 && !(report = compact(heap, knowing<taiyen::unordered_set<Chain*>, taiyen::map<Chain*, int>>())).done(); ++i)
        moved += report.moved_blocks;
    BOOST_TEST(report.keyed_blocks == 100U);
    BOOST_TEST(moved > 50U);
    const auto& known_now = *heap.find<taiyen::unordered_set<Chain*>>("known");
    const auto& ordered_now = *heap.find<taiyen::map<Chain*, int>>("ordered");
    for (int i = 0; i < 100; ++i) {
        Chain* const chain = chains[static_cast<std::size_t>(i)];
        BOOST_TEST((i % 2 == 0 ? known_now.count(chain) == 1 : ordered_now.at(chain) == i));
        BOOST_TEST(std::string_view(chain->text) == "a text that is longer than a small buffer");
    }
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(keep_ends_apart_from_the_beginnings_that_follow_them) {
    // Vectors that fill their blocks, one beside the other; every other one is nobody's and stays.
    using Vectors = taiyen::vector<taiyen::vector<std::uint64_t>>;
    ArchiveHeap heap(create_only, path, small_heap());
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(heap.allocate(32));
    auto& vectors = heap.construct<Vectors>("vectors", 400U);
    auto& others = heap.construct<Vectors>("others", 400U);
    for (std::size_t i = 0; i < vectors.size(); ++i) {
        vectors[i].assign(4, i);
        if (i % 7 == 0) others[i].assign(4, i);
        if (i % 5 == 0) blocks.push_back(heap.allocate(32));
    }
    for (void* const block : blocks) heap.deallocate(block);
    const DeclaredTypes both = DeclaredTypes().add<Vectors>();
    for (const bool only_one : {true, false}) {
        if (only_one) heap.construct<std::array<Vectors*, 1>>("witness")[0] = &others;
        for (int steps = 0; steps < 50; ++steps) {
            CompactOptions options = in_steps_of(4096);
            options.types = both;
            const CompactReport report = compact(heap, options);
            const Vectors& now = *heap.find<Vectors>("vectors");
            const Vectors& other = *heap.find<Vectors>("others");
            for (std::size_t i = 0; i < now.size(); ++i) {
                BOOST_REQUIRE(now[i].size() == 4U);
                BOOST_REQUIRE(now[i].capacity() == 4U);
                BOOST_REQUIRE(now[i][3] == i);
                BOOST_REQUIRE(other[i].size() == (i % 7 == 0 ? 4U : 0U));
                if (i % 7 == 0) BOOST_REQUIRE(other[i][3] == i);
            }
            expect_verified(heap);
            if (report.done()) break;
        }
        if (only_one) heap.destroy<std::array<Vectors*, 1>>("witness");
    }
}

BOOST_AUTO_TEST_CASE(move_large_blocks_within_their_budget_only) {
    using Blobs = taiyen::vector<taiyen::vector<unsigned char>>;
    ArchiveHeap heap(create_only, path, small_heap());
    std::vector<void*> below;
    for (int i = 0; i < 120; ++i) below.push_back(heap.allocate(std::size_t{64} << 10U));
    auto& blobs = heap.construct<Blobs>("blobs", 6U);
    for (std::size_t i = 0; i < blobs.size(); ++i) {
        const std::size_t bytes = (std::size_t{64} << 10U << i) + 48 * i;  // with a tail in a page of small blocks
        blobs[i].assign(bytes, static_cast<unsigned char>(i + 1));
    }
    for (void* const block : below) heap.deallocate(block);
    CompactReport report = compact(heap, knowing<Blobs>(std::size_t{300} << 10U));
    BOOST_TEST(report.large_blocks == 3U);
    BOOST_TEST(report.moved_bytes <= std::size_t{300} << 10U);
    BOOST_TEST(report.moved_blocks != 0U);
    for (int i = 0; i < 20 && !(report = compact(heap, knowing<Blobs>())).done(); ++i) {}
    BOOST_TEST(report.large_blocks == 0U);
    const Blobs& now = *heap.find<Blobs>("blobs");
    for (std::size_t i = 0; i < now.size(); ++i) {
        BOOST_TEST(now[i].size() == (std::size_t{64} << 10U << i) + 48 * i);
        BOOST_TEST(static_cast<std::size_t>(std::count(now[i].begin(), now[i].end(), i + 1)) == now[i].size());
    }
    expect_verified(heap);
    BOOST_TEST(availability(heap, 65'536) >= 0.98);
}

BOOST_AUTO_TEST_CASE(stop_in_time) {
    ArchiveHeap heap(create_only, path, small_heap());
    churn(heap, model, random, 1000, 200);
    CompactOptions options = knowing<Texts>();
    options.time_max = std::chrono::microseconds(1);  // the walk takes longer: one page's blocks move in any case
    const CompactReport report = compact(heap, options);
    BOOST_TEST(report.moved_blocks != 0U);
    BOOST_TEST(report.moved_bytes <= 4096U);
    BOOST_TEST(report.left_blocks != 0U);
    BOOST_TEST((content(*heap.find<Texts>("texts")) == model));
}

BOOST_AUTO_TEST_CASE(keep_what_objects_outside_have_taken_along) {
    for (const bool churned : {false, true}) {
        TransactionalHeap heap(create_only, directory / (churned ? "churned.tyn" : "plain.tyn"), small_heap());
        Transaction transaction(heap);
        if (churned) churn(heap, model, random, 600, 100);
        auto& lines = heap.construct<taiyen::vector<taiyen::string>>("lines");
        lines.reserve(2);
        lines.emplace_back("a line that is longer than a small buffer");
        lines.emplace_back("another line that is longer than a small buffer");
        const taiyen::string mine = std::move(lines.front());
        const char* const place = mine.data();
        CompactReport report;
        for (int i = 0; i < 50 && !(report = compact(heap, knowing<Texts, taiyen::vector<taiyen::string>>())).done(); ++i) {}
        // A block that was used before may keep a word that refers to the line: then it counts as the heap's own, which nobody declared.
        BOOST_TEST(report.held_blocks + (churned ? report.undeclared_blocks : 0) == 1U);
        BOOST_TEST((churned || report.undeclared_blocks == 0U));
        BOOST_TEST(mine.data() == place);
        BOOST_TEST(std::string_view(mine) == "a line that is longer than a small buffer");
        BOOST_TEST(std::string_view((*heap.find<taiyen::vector<taiyen::string>>("lines"))[1]) == "another line that is longer than a small buffer");
        transaction.commit();
        expect_verified(heap);
    }
}

BOOST_AUTO_TEST_CASE(are_refused_where_nothing_may_change) {
    {
        ArchiveHeap heap(create_only, path, small_heap());
        churn(heap, model, random, 10, 5);
        heap.snapshot();
        heap.close();
        BOOST_CHECK(refusal([&] { compact(heap, knowing<Texts>()); }) == errc::closed);
    }
    ArchiveHeap heap(open_read_only, path);
    BOOST_CHECK(refusal([&] { compact(heap, knowing<Texts>()); }) == errc::read_only);
    PersistentOptions anywhere_it_fits = small_heap();
    anywhere_it_fits.position_independent = true;
    ArchiveHeap other(create_only, directory / "offset.tyn", anywhere_it_fits);
    BOOST_CHECK(refusal([&] { compact(other, knowing<Texts>()); }) == errc::type_mismatch);
}

template <class Heap>
void random_program(CompactFixture& test, Capture capture, int rounds) {
    PersistentOptions files = small_heap();
    files.capture = capture;
    auto heap = std::make_unique<Heap>(create_only, test.path, files);
    Document<InMemory> model;
    std::vector<void*> blocks;
    unsigned seed = static_cast<unsigned>(test.random());
    constexpr bool is_transactional = std::is_same_v<Heap, TransactionalHeap>;
    for (int round = 0; round < rounds; ++round) {
        const auto work = [&](Document<InMemory>& changed) {
            edit(*heap, changed, ++seed, 1);
            for (int n = 0; n < 30; ++n) blocks.push_back(heap->allocate(test.random() % 20 == 0 ? test.random() % 40'000 : test.random() % 500));
            std::shuffle(blocks.begin(), blocks.end(), test.random);
            while (blocks.size() > 60) {
                heap->deallocate(blocks.back());
                blocks.pop_back();
            }
        };
        CompactOptions options = knowing<Stored>(4096 + test.random() % 60'000);
        if constexpr (is_transactional) {
            Transaction transaction(*heap);
            const auto kept_blocks = blocks;
            const bool rolls_back = round != 0 && test.random() % 4 == 0;  // the first one makes the document
            Document<InMemory> nobodys;
            work(rolls_back ? nobodys : model);
            if (test.random() % 2 == 0) compact(*heap, options);
            if (rolls_back) {
                transaction.rollback();
                blocks = kept_blocks;
            } else {
                transaction.commit();
            }
        } else {
            work(model);
        }
        const CompactReport report = compact(*heap, options);
        BOOST_TEST(report.undeclared_blocks == blocks.size());  // nobody leads to them
        BOOST_REQUIRE(content_of(*heap) == describe(model));
        if (round % 8 == 0) expect_verified(*heap);
        if (test.random() % 10 == 0) {
            if constexpr (!is_transactional) heap->snapshot();
            heap.reset();
            heap = std::make_unique<Heap>(open_only, test.path, files);
        }
    }
    expect_verified(*heap);
    heap.reset();
}

BOOST_AUTO_TEST_CASE(hold_what_random_programs_left_in_them) {
    random_program<ArchiveHeap>(*this, Capture::pages, 40);
    std::filesystem::remove(path);
    random_program<TransactionalHeap>(*this, Capture::pages, 40);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
