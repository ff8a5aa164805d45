// Position-independent heaps of all kinds, elsewhere than where they were made: because something lies there, or another copy of the heap.

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>
#include <taiyen/transfer/compress.hpp>
#include <taiyen/transfer/expand.hpp>
#include <taiyen/transfer/rebase.hpp>

#include <map>
#include <string>
#include <vector>

#include "containers/document.hpp"
#include "containers/offset_family.hpp"
#include "heap/core.hpp"
#include "scratch_directory.hpp"

namespace offset_heap_test {
using namespace taiyen;
using taiyen::test::Document;
using taiyen::test::InMemory;
using taiyen::test::InOffsetHeap;
using taiyen::test::place_of;
using taiyen::test::position_independent_heap;
using taiyen::test::take_place_of;

using Stored = Document<InOffsetHeap>;

/// Its constructor hides what it holds from the compiler's look.
class Opaque {
public:
    Opaque() {}  // NOLINT: not an aggregate
    taiyen::vector<int> numbers;
};

struct Travelling {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    Document<InMemory> model;

    template <class Heap>
    void change_both(Heap& heap, unsigned seed) {
        taiyen::test::change(heap.template find_or_construct<Stored>("document"), seed);
        taiyen::test::change(model, seed);
    }
    /// The model as these changes make it; a copy's neighbours would be another one's parts.
    void be(const std::vector<unsigned>& seeds) {
        model = {};
        for (const unsigned seed : seeds) taiyen::test::change(model, seed);
    }
    template <class Heap>
    static std::string content_of(const Heap& heap) {
        const auto* const document = heap.template find<Stored>("document");
        return document == nullptr ? "(none)" : describe(*document);
    }
    /// The heap's files as they are, in a folder of their own: what a killed process leaves if the heap is open.
    std::filesystem::path copy(const std::string& folder) {
        std::filesystem::create_directory(directory / folder);
        for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
            if (entry.is_regular_file()) std::filesystem::copy_file(entry.path(), directory / folder / entry.path().filename());
        return directory / folder / "heap.tyn";
    }

    template <class Heap>
    void open_elsewhere_and_go_on() {
        std::uintptr_t made = 0;
        {
            Heap heap(create_only, path, position_independent_heap());
            made = place_of(heap);
            change_both(heap, 1);
            change_both(heap, 2);
            heap.snapshot();
            heap.close();
        }
        BOOST_TEST(read_parameters(path).position_independent);
        {
            const vm::Reservation other = take_place_of(path);
            Heap heap(open_only, path);
            BOOST_TEST(place_of(heap) != made);
            BOOST_TEST(content_of(heap) == describe(model));
            BOOST_TEST(heap.verify().ok());
            change_both(heap, 3);
            BOOST_TEST(content_of(heap) == describe(model));
            heap.snapshot();
            change_both(heap, 4);
            heap.snapshot();
            BOOST_TEST(heap.verify().ok());
            heap.close();
            const Heap reader(open_read_only, path);
            BOOST_TEST(place_of(reader) != made);
            BOOST_TEST(content_of(reader) == describe(model));
        }
        BOOST_TEST(read_parameters(path).address == made);
        Heap heap(open_only, path);
        BOOST_TEST(place_of(heap) == made);
        BOOST_TEST(content_of(heap) == describe(model));
        BOOST_TEST(heap.verify().ok());
        heap.close();
    }
};

}  // namespace offset_heap_test
using namespace offset_heap_test;

BOOST_FIXTURE_TEST_SUITE(offset_heaps, Travelling)

BOOST_AUTO_TEST_CASE(an_archive_whose_place_is_taken_opens_elsewhere_and_equals_its_model) { open_elsewhere_and_go_on<ArchiveHeap>(); }

BOOST_AUTO_TEST_CASE(a_snapshot_heap_whose_place_is_taken_opens_elsewhere_and_equals_its_model) { open_elsewhere_and_go_on<SnapshotHeap>(); }

BOOST_AUTO_TEST_CASE(a_heap_at_a_fixed_address_is_refused_where_its_place_is_taken) {
    PersistentOptions options = position_independent_heap();
    options.position_independent = false;
    ArchiveHeap(create_only, path, options).close();
    const vm::Reservation other = take_place_of(path);
    BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, path), Error, [](const Error& error) { return error.code() == errc::address_in_use; });
    options.position_independent = true;  // what the file says wins
    BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, path, options), Error, [](const Error& error) { return error.code() == errc::address_in_use; });
}

BOOST_AUTO_TEST_CASE(two_copies_of_a_heap_are_open_at_once_and_go_their_own_ways) {
    {
        SnapshotHeap heap(create_only, path, position_independent_heap());
        change_both(heap, 1);
        heap.snapshot();
        heap.close();
    }
    const std::filesystem::path second = copy("second");
    SnapshotHeap one(open_only, path);
    SnapshotHeap two(open_only, second);
    BOOST_TEST(place_of(one) != place_of(two));
    const std::string before = describe(model);
    change_both(one, 2);
    one.snapshot();
    BOOST_TEST(content_of(two) == before);
    BOOST_TEST(content_of(one) == describe(model));
    two.find<Stored>("document")->numbers = one.find<Stored>("document")->numbers;
    two.snapshot();
    BOOST_TEST(one.verify().ok());
    BOOST_TEST(two.verify().ok());
}

BOOST_AUTO_TEST_CASE(what_a_crash_left_is_recovered_at_another_address) {
    SnapshotHeap heap(create_only, path, position_independent_heap());
    for (unsigned i = 0; i < 6; ++i) {
        change_both(heap, i);
        heap.snapshot();
        const std::string saved = describe(model);
        change_both(heap, 100 + i);  // not saved
        SnapshotHeap recovered(open_only, copy(std::to_string(i)));
        BOOST_TEST(place_of(recovered) != place_of(heap));
        BOOST_TEST(!recovered.restoration().clean);
        BOOST_TEST(content_of(recovered) == saved);
        BOOST_TEST(recovered.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(transactions_are_replayed_and_go_on_at_another_address) {
    TransactionalHeap heap(create_only, path, position_independent_heap());
    std::vector<unsigned> seeds;
    for (unsigned i = 0; i < 4; ++i) {
        {
            Transaction transaction(heap);
            change_both(heap, i);
            transaction.commit();
        }
        seeds.push_back(i);
        const std::string committed = describe(model);
        const std::filesystem::path left = copy(std::to_string(i));
        TransactionalHeap recovered(open_only, left);
        BOOST_TEST(place_of(recovered) != place_of(heap));
        BOOST_TEST(recovered.restoration().transactions_replayed == i + 1);
        BOOST_TEST(content_of(recovered) == committed);
        {
            Transaction transaction(recovered);
            change_both(recovered, 50 + i);
            BOOST_TEST(content_of(recovered) == describe(model));
            transaction.rollback();
        }
        BOOST_TEST(content_of(recovered) == committed);
        be(seeds);
        {
            Transaction transaction(recovered);
            change_both(recovered, 60 + i);
            transaction.commit();
        }
        const std::string went_on = describe(model);
        be(seeds);
        recovered.close();
        const ArchiveHeap again(open_read_only, left);
        BOOST_TEST(place_of(again) != place_of(heap));
        BOOST_TEST(content_of(again) == went_on);
        BOOST_TEST(again.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(declared_ranges_are_captured_at_another_address) {
    struct Pair {
        offset_ptr<int> first;
        int second;
    };
    PersistentOptions options = position_independent_heap();
    options.capture = Capture::declared;
    {
        TransactionalHeap heap(create_only, path, options);
        Transaction transaction(heap);
        auto& pair = heap.construct<Pair>("pair");
        transaction.touch(&pair, sizeof pair);
        pair.first = &pair.second;
        pair.second = 1;
        transaction.commit();
    }
    const vm::Reservation other = take_place_of(path);
    TransactionalHeap heap(open_only, path, options);
    Pair& pair = *heap.find<Pair>("pair");
    BOOST_TEST(pair.first.get() == &pair.second);
    {
        Transaction transaction(heap);
        transaction.touch(&pair, sizeof pair);
        *pair.first = 2;
        pair.first = nullptr;
        transaction.rollback();
    }
    BOOST_TEST(pair.first.get() == &pair.second);
    BOOST_TEST(pair.second == 1);
}

BOOST_AUTO_TEST_CASE(steps_are_undone_and_redone_at_another_address) {
    std::vector<std::string> states;
    std::uintptr_t made = 0;
    {
        SnapshotHeap heap(create_only, path, position_independent_heap());
        made = place_of(heap);
        heap.attach_undo();
        for (unsigned i = 0; i < 6; ++i) {
            UndoScope scope(heap);
            change_both(heap, i);
            scope.commit();
            states.push_back(describe(model));
        }
        heap.snapshot();
        heap.close();
    }
    const vm::Reservation other = take_place_of(path);
    SnapshotHeap heap(open_only, path);
    BOOST_TEST(place_of(heap) != made);
    heap.attach_undo();
    for (std::size_t i = 5; i > 0; --i) {
        BOOST_TEST(content_of(heap) == states[i]);
        BOOST_TEST(heap.undo());
    }
    BOOST_TEST(content_of(heap) == states[0]);
    for (std::size_t i = 1; i < 4; ++i) {
        BOOST_TEST(heap.redo());
        BOOST_TEST(content_of(heap) == states[i]);
    }
    BOOST_TEST(heap.verify().ok());
    {
        UndoScope scope(heap);
        taiyen::test::change(*heap.find<Stored>("document"), 77);
        scope.cancel();
    }
    BOOST_TEST(content_of(heap) == states[3]);
    heap.snapshot();
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(what_was_taken_along_is_reclaimed_by_the_next_process_wherever_it_is) {
    SnapshotHeap heap(create_only, path, position_independent_heap());
    const std::string text(500, 'x');
    auto& lines = heap.construct<offset::vector<offset::string>>("lines");
    for (int i = 0; i < 3; ++i) lines.emplace_back(text.c_str());
    heap.snapshot();
    const auto live = heap.stats().live_blocks;
    {
        const offset::string out = std::move(lines.back());
        lines.pop_back();
        heap.snapshot();
        const std::filesystem::path left = copy("second");
        SnapshotHeap recovered(open_only, left);
        BOOST_TEST(place_of(recovered) != place_of(heap));
        const auto& left_lines = *recovered.find<offset::vector<offset::string>>("lines");
        BOOST_REQUIRE(left_lines.size() == 2U);
        BOOST_TEST((left_lines[1] == text.c_str()));
        BOOST_TEST(reclaim(recovered).freed_blocks == 1U);
        BOOST_TEST(recovered.stats().live_blocks == live - 1);
        BOOST_TEST(find_leaks(recovered).leaked_blocks == 0U);
        BOOST_TEST((left_lines[0] == text.c_str()));
    }
}

BOOST_AUTO_TEST_CASE(an_expanded_copy_is_open_beside_its_original) {
    SnapshotHeap heap(create_only, path, position_independent_heap());
    change_both(heap, 5);
    heap.snapshot();
    const std::vector<std::byte> stream = compress(heap);
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        ExpandOptions options;
        options.kind = kind;
        options.log_capacity = std::size_t{1} << 20U;
        const std::filesystem::path target = directory / ("expanded " + std::string(name_of(kind)) + ".tyn");
        const CompressedHeap said = expand(stream, target, options);
        BOOST_TEST(said.position_independent);
        BOOST_TEST(read_parameters(target).position_independent);
        const ArchiveHeap expanded(open_only, target);
        BOOST_TEST(place_of(expanded) != place_of(heap));
        BOOST_TEST(content_of(expanded) == describe(model));
        BOOST_TEST(expanded.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(rebase_says_that_there_is_nothing_to_do) {
    {
        ArchiveHeap heap(create_only, path, position_independent_heap());
        change_both(heap, 6);
        heap.snapshot();
        heap.close();
    }
    const std::uintptr_t made = read_parameters(path).address;
    const RebaseReport report = rebase(path, anywhere);
    BOOST_TEST(report.position_independent);
    BOOST_TEST(!report.moved);
    BOOST_TEST(report.live_blocks == 0U);
    BOOST_TEST(report.old_address == made);
    BOOST_TEST(report.relocation().map(made + 4096) == made + 4096);
    BOOST_TEST(read_parameters(path).address == made);
    const vm::Reservation other = take_place_of(path);
    BOOST_TEST(rebase(path, anywhere).position_independent);
}

BOOST_AUTO_TEST_CASE(raw_pointers_are_refused_by_an_error_where_the_compiler_can_not_know_the_heap) {
    const auto is_refused = [](const Error& error) { return error.code() == errc::raw_pointer && error.path().filename() == "heap.tyn"; };
    ArchiveHeap heap(create_only, path, position_independent_heap());
    BOOST_CHECK_EXCEPTION(heap.construct<taiyen::string>("name"), Error, is_refused);
    BOOST_CHECK_EXCEPTION((heap.find_or_construct<taiyen::map<int, int>>("map")), Error, is_refused);
    BOOST_CHECK_EXCEPTION(heap.make<int*>(), Error, is_refused);
    BOOST_TEST(heap.stats().live_blocks == 0U);
    BOOST_TEST(heap.find<taiyen::string>("name") == nullptr);
    // A class that isn't looked into is found out when it takes memory.
    auto& opaque = heap.construct<Opaque>("opaque");
    BOOST_CHECK_EXCEPTION(opaque.numbers.push_back(1), Error, is_refused);
    BOOST_TEST(opaque.numbers.empty());
    // Outside the heap addresses are what they are.
    taiyen::vector<int> outside(heap);
    outside.assign(100, 1);
    BOOST_TEST(outside.size() == 100U);
}

BOOST_AUTO_TEST_CASE(containers_with_distances_work_in_a_heap_at_a_fixed_address_too) {
    PersistentOptions options = position_independent_heap();
    options.position_independent = false;
    ArchiveHeap heap(create_only, path, options);
    change_both(heap, 8);
    BOOST_TEST(content_of(heap) == describe(model));
    heap.construct<taiyen::string>("name", "raw pointers are fine here");
}

BOOST_AUTO_TEST_SUITE_END()
