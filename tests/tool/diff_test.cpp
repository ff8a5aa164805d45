// diff: exit codes as diff(1), what it finds where, and that free space is no difference.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
using taiyen::SnapshotHeap;
using taiyen::TransactionalHeap;

/// The drawing in old.tyn, and what `edit` makes of it in new.tyn.
template <class Edit>
void make_pair(const ScratchDirectory& dir, Edit edit) {
    make_drawing<ArchiveHeap>(dir / "old.tyn");
    copy_as_crashed(dir / "old.tyn", dir / "new.tyn");
    ArchiveHeap heap(taiyen::open_only, dir / "new.tyn");
    edit(heap);
    heap.snapshot();
    heap.close();
}

struct Found {
    std::string change;
    std::map<std::string, std::uint64_t> counts;
};

std::map<std::string, Found> objects(const boost::property_tree::ptree& json) {
    std::map<std::string, Found> found;
    for (const auto& [key, object] : json.get_child("objects")) {
        Found& one = found[object.get<std::string>("name")];
        one.change = object.get<std::string>("change");
        for (const char* count : {"blocks_added", "blocks_removed", "blocks_changed", "bytes_added", "bytes_removed", "bytes_changed"})
            one.counts[count] = object.get<std::uint64_t>(count);
    }
    return found;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(diff)

BOOST_AUTO_TEST_CASE(a_copy_is_the_same_and_so_is_what_a_crash_left_of_it) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    copy_as_crashed(dir / "a.tyn", dir / "b.tyn");
    make_crashed_bank(dir, "crashed.tyn");
    copy_as_crashed(dir / "crashed.tyn", dir / "closed.tyn");
    { TransactionalHeap heap(taiyen::open_only, dir / "closed.tyn"); }
    const auto before = contents(dir);
    for (const std::string files : {"a.tyn b.tyn", "a.tyn a.tyn", "crashed.tyn closed.tyn", "closed.tyn crashed.tyn"}) {
        const Ran ran = run_tool(dir, "diff " + files);
        BOOST_TEST(ran.exit == 0, files << ": " << ran.out << ran.err);
        BOOST_TEST(ran.out.starts_with("same: "), ran.out);
        BOOST_TEST(run_tool(dir, "diff --json " + files).json().get<bool>("same"));
    }
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(exactly_the_bytes_that_were_changed_are_counted_for_the_object_that_holds_them) {
    const ScratchDirectory dir;
    make_pair(dir, [](ArchiveHeap& heap) {
        auto& lengths = *heap.find<taiyen::vector<double>>("lengths");
        auto* const bytes = reinterpret_cast<unsigned char*>(lengths.data());
        for (const std::size_t at : {0U, 1U, 4095U, 4096U, 20'000U}) bytes[at] ^= 0x5aU;
    });
    const Ran ran = run_tool(dir, "diff --json --pages --list 10 old.tyn new.tyn");
    BOOST_TEST(ran.exit == 1, ran.err);
    const auto json = ran.json();
    auto found = objects(json);
    BOOST_TEST(found["lengths"].change == "changed");
    BOOST_TEST(found["lengths"].counts["bytes_changed"] == 5U);
    BOOST_TEST(found["lengths"].counts["blocks_changed"] == 1U);
    BOOST_TEST(found["parts"].change == "same");
    BOOST_TEST(found["revision"].change == "same");
    BOOST_TEST(json.get_child("blocks").size() == 1U);
    std::uint64_t pages = 0;
    for (const auto& [key, run] : json.get_child("pages")) pages += run.get<std::uint64_t>("bytes") / 4096;
    BOOST_TEST(pages == json.get<std::uint64_t>("pages_changed"));
    BOOST_TEST((pages >= 2U && pages <= 4U));
    BOOST_TEST(run_tool(dir, "diff --pages old.tyn new.tyn").out.find("pages 0x") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(objects_that_came_went_and_changed_their_type_are_told) {
    const ScratchDirectory dir;
    make_pair(dir, [](ArchiveHeap& heap) {
        heap.destroy<int>("revision");
        heap.construct<double>("revision", 1.5);
        heap.destroy<taiyen::vector<double>>("lengths");
        heap.construct<taiyen::vector<int>>("widths").resize(100);
    });
    const auto json = run_tool(dir, "diff --json old.tyn new.tyn").json();
    auto found = objects(json);
    BOOST_TEST(found["revision"].change == "retyped");
    BOOST_TEST(found["lengths"].change == "removed");
    BOOST_TEST(found["widths"].change == "added");
    BOOST_TEST(found["parts"].change == "same");
    BOOST_TEST(json.get<std::uint64_t>("live_blocks_before") - json.get<std::uint64_t>("sum.blocks_removed") +
                   json.get<std::uint64_t>("sum.blocks_added") ==
               json.get<std::uint64_t>("live_blocks_after"));
    const Ran text = run_tool(dir, "diff old.tyn new.tyn");
    BOOST_TEST(text.out.find("revision was of type int and is of type double") != std::string::npos, text.out);
    // The other way round what came has gone.
    found = objects(run_tool(dir, "diff --json new.tyn old.tyn").json());
    BOOST_TEST(found["lengths"].change == "added");
    BOOST_TEST(found["widths"].change == "removed");
}

BOOST_AUTO_TEST_CASE(a_dry_run_of_a_migration_tells_which_types_have_changed) {
    const ScratchDirectory dir;
    make_drawing(dir / "old.tyn");
    {
        taiyen::SnapshotHeap heap(taiyen::create_only, dir / "new.tyn", small());
        heap.construct<Parts>("parts");
        heap.construct<std::int64_t>("revision");
        heap.construct<taiyen::set<int>>("users");
        heap.construct<taiyen::map<int, int, std::greater<int>>>("order");
        heap.snapshot();
    }
    {
        SnapshotHeap heap(taiyen::open_only, dir / "old.tyn");
        heap.construct<taiyen::map<int, int>>("order");
        heap.snapshot();
    }
    const auto before = contents(dir);
    const Ran ran = run_tool(dir, "migrate --dry-run old.tyn new.tyn");
    BOOST_TEST(ran.exit == 1, ran.err);
    BOOST_TEST(ran.out.find("removed  lengths: vector<double>") != std::string::npos, ran.out);
    BOOST_TEST(ran.out.find("same     parts: map<string, tool_test::Part>\n") != std::string::npos, ran.out);
    BOOST_TEST(ran.out.find("changed  order: ") != std::string::npos, ran.out);  // of which shapes tell nothing
    BOOST_TEST(ran.out.find("changed  revision: int64_t\n") != std::string::npos, ran.out);
    BOOST_TEST(ran.out.find("was int32_t, is int64_t\n") != std::string::npos, ran.out);
    BOOST_TEST(ran.out.find("added    users: set<int32_t>, which only LIKE has\n") != std::string::npos, ran.out);
    const auto json = run_tool(dir, "migrate --json --dry-run old.tyn new.tyn").json();
    BOOST_TEST(!json.get<bool>("same"));
    BOOST_TEST(json.get_child("objects").size() == 5U);
    const Ran same = run_tool(dir, "migrate --dry-run old.tyn old.tyn");
    BOOST_TEST(same.exit == 0);
    BOOST_TEST(same.out.find("nothing has to be migrated\n") != std::string::npos, same.out);
    const Ran wet = run_tool(dir, "migrate old.tyn new.tyn");
    BOOST_TEST(wet.exit == 2);
    BOOST_TEST(wet.err.find("taiyen::Migration") != std::string::npos, wet.err);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(fields_elements_and_keys_that_differ_are_told_by_paths) {
    const ScratchDirectory dir;
    make_pair(dir, [](ArchiveHeap& heap) {
        auto& parts = *heap.find<Parts>("parts");
        parts.begin()->second.weight = 7.5;
        parts["a new one"].name = "new";
        *heap.find<int>("revision") = 8;
        (*heap.find<taiyen::vector<double>>("lengths"))[5] = -1;
    });
    const std::string fields = run_tool(dir, "diff --fields 0 old.tyn new.tyn").out;
    BOOST_TEST(fields.find("\nchanged  lengths[5]: 0 -> -1\n") != std::string::npos, fields);
    BOOST_TEST(fields.find("\nchanged  parts[\"bolt, number 0\"].weight: 0 -> 7.5\n") != std::string::npos, fields);
    BOOST_TEST(fields.find("\nadded    parts[\"a new one\"]: {\"name\": \"new\"") != std::string::npos, fields);
    BOOST_TEST(fields.find("\nchanged  revision: 7 -> 8\n") != std::string::npos, fields);
    BOOST_TEST(run_tool(dir, "diff --fields 1 old.tyn new.tyn").out.find("… and 3 more\n") != std::string::npos);
    const auto json = run_tool(dir, "diff --json --fields 0 old.tyn new.tyn").json();
    BOOST_TEST(json.get_child("fields").size() == 4U);
    BOOST_TEST(json.get_child("fields").back().second.get<std::string>("path") == "revision");
    BOOST_TEST(json.get_child("fields").back().second.get<std::string>("after") == "8");
    BOOST_TEST(run_tool(dir, "diff --fields 0 old.tyn old.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "diff --json --fields 0 old.tyn old.tyn").json().get_child("fields").empty());
    BOOST_TEST(run_tool(dir, "diff --fields x old.tyn old.tyn").exit == 2);
}

BOOST_AUTO_TEST_CASE(what_was_stored_in_space_that_is_free_again_is_no_difference) {
    const ScratchDirectory dir;
    make_pair(dir, [](ArchiveHeap& heap) {
        std::vector<void*> blocks;
        for (int i = 0; i < 300; ++i) {
            void* const block = heap.allocate(100 + static_cast<std::size_t>(i) * 7);
            std::memset(block, 0x77, heap.usable_size(block));
            blocks.push_back(block);
        }
        heap.snapshot();
        for (void* const block : blocks) heap.deallocate(block);
    });
    BOOST_TEST((file_bytes(dir / "old.tyn") != file_bytes(dir / "new.tyn")));
    const Ran ran = run_tool(dir, "diff old.tyn new.tyn");
    BOOST_TEST(ran.exit == 0, ran.out << ran.err);
}

BOOST_AUTO_TEST_CASE(a_leaked_block_is_a_difference_that_no_object_holds) {
    const ScratchDirectory dir;
    make_pair(dir, [](ArchiveHeap& heap) { std::memset(heap.allocate(3000), 0, 3000); });
    const auto json = run_tool(dir, "diff --json old.tyn new.tyn").json();
    BOOST_TEST(json.get<std::uint64_t>("unheld.blocks_added") == 1U);
    BOOST_TEST(json.get<std::uint64_t>("sum.blocks_added") == 1U);
    for (const auto& [name, object] : objects(json)) BOOST_TEST(object.change == "same", name);
}

BOOST_AUTO_TEST_CASE(different_heaps_are_said_to_be_different_ones) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    make_drawing(dir / "b.tyn");
    const Ran ran = run_tool(dir, "diff a.tyn b.tyn");
    BOOST_TEST(ran.exit == 1);
    BOOST_TEST(ran.out.find("these are different heaps") != std::string::npos, ran.out);
}

BOOST_AUTO_TEST_CASE(what_can_not_be_compared_is_trouble_and_not_a_difference) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    std::ofstream(dir / "text") << std::string(20'000, 'x');
    for (const std::string files : {"a.tyn nothing.tyn", "nothing.tyn a.tyn", "a.tyn text", "text a.tyn", "a.tyn .", "a.tyn"}) {
        const Ran ran = run_tool(dir, "diff " + files);
        BOOST_TEST(ran.exit == 2, files << " returned " << ran.exit);
        BOOST_TEST(!ran.err.empty(), files);
    }
    std::filesystem::rename(dir / "a.tyn.data", dir / "elsewhere.data");
    BOOST_TEST(run_tool(dir, "diff a.tyn a.tyn").exit == 2);
    BOOST_TEST(run_tool(dir, "diff --data-file elsewhere.data --data-file-of-b elsewhere.data a.tyn a.tyn").exit == 0);
}

BOOST_AUTO_TEST_SUITE_END()
