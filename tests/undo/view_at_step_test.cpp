// A reader's view is led to either side of any step; the files stay as they are.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <taiyen/change/procedure.hpp>

#include "file_bytes.hpp"
#include "store/heap_access.hpp"
#include "undo/undo_fixture.hpp"
#include "undo/view_at_step.hpp"

using namespace taiyen;
using namespace taiyen::undo::test;
using undo::StepSide;

namespace {

struct ViewFixture : UndoFixture {
    std::vector<int> values_at(std::uint64_t step, StepSide side) {
        const ArchiveHeap reader(open_read_only, path, small_heap());
        undo::view_at_step(HeapAccess::file(reader), step, side);
        const Numbers* const found = reader.find<Numbers>("numbers");
        return found == nullptr ? std::vector<int>{} : std::vector<int>(found->begin(), found->end());
    }
    void refuses(errc code, std::uint64_t step) {
        const ArchiveHeap reader(open_read_only, path, small_heap());
        BOOST_TEST(throws(code, [&] { undo::view_at_step(HeapAccess::file(reader), step, StepSide::before); }));
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(view_at_step, ViewFixture)

BOOST_AUTO_TEST_CASE(each_step_is_seen_from_both_sides_done_or_undone) {
    // As it is behind so many steps: the first one makes the object, the fourth takes pages of its own.
    std::vector<std::vector<int>> stories{{}};
    heap->attach_undo();
    const auto step = [&](auto change) {
        UndoScope scope(*heap, "a step");
        change(numbers());
        scope.commit();
        stories.push_back(values());
    };
    step([](Numbers& n) { n.push_back(1); });
    step([](Numbers& n) { n.push_back(2); });
    step([](Numbers& n) { n.front() = 7; });
    step([](Numbers& n) { n.resize(100'000, 3); });
    step([](Numbers& n) { n.clear(); });
    step([](Numbers& n) { n = {5, 6}; });
    std::vector<std::uint64_t> ids;
    for (const UndoStep& one : heap->undo_steps()) ids.push_back(one.id);
    BOOST_REQUIRE(ids.size() + 1 == stories.size());
    for (int undone = 0; undone != 9; undone += 3) {
        if (undone != 0) {
            heap->attach_undo();
            for (int i = 0; i != 3; ++i) BOOST_REQUIRE(heap->undo());
        }
        heap->snapshot();
        heap.reset();
        const std::string before = taiyen::test::file_bytes(path);
        for (std::size_t i = 0; i != ids.size(); ++i) {
            BOOST_TEST((values_at(ids[i], StepSide::before) == stories[i]), "before step " << i << ", " << undone << " undone");
            BOOST_TEST((values_at(ids[i], StepSide::behind) == stories[i + 1]), "behind step " << i << ", " << undone << " undone");
        }
        BOOST_TEST((taiyen::test::file_bytes(path) == before));
        heap.emplace(open_only, path, small_heap());
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_shown_is_refused) {
    static const bool registered = [] {
        // Large enough that the call takes less than the bytes.
        const auto reverse = [](ProcedureHeap& of) { std::ranges::reverse(*of.find<Numbers>("numbers")); };
        register_procedure("reverse numbers", reverse, reverse);
        return true;
    }();
    BOOST_REQUIRE(registered);
    heap->attach_undo();
    {
        UndoScope scope(*heap, "many");
        for (int i = 0; i != 20'000; ++i) numbers().push_back(i);
        scope.commit();
    }
    {
        UndoScope scope(*heap, "a call");
        scope.call("reverse numbers");
        scope.commit();
    }
    push(2);
    const std::vector<UndoStep> steps = heap->undo_steps();
    heap->snapshot();
    heap.reset();
    refuses(errc::not_found, 4711);
    BOOST_TEST((values_at(steps.back().id, StepSide::before).back() == 0));
    refuses(errc::mismatch, steps.front().id);

    SnapshotHeap(create_only, directory / "without.tyn", small_heap()).close();
    path = directory / "without.tyn";
    refuses(errc::not_found, 1);
}

BOOST_AUTO_TEST_SUITE_END()
