// log: what it says of a log that a crash left, of a torn and of a damaged one, of heaps without one; and that it changes nothing.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
using taiyen::TransactionalHeap;

std::vector<std::uint64_t> serials(const boost::property_tree::ptree& json) {
    std::vector<std::uint64_t> found;
    for (const auto& [key, work] : json.get_child("listed")) found.push_back(work.get<std::uint64_t>("serial"));
    return found;
}

using Serials = std::vector<std::uint64_t>;
}  // namespace

BOOST_AUTO_TEST_SUITE(logs)

BOOST_AUTO_TEST_CASE(the_transactions_that_a_crash_left_in_the_log_are_listed_and_no_file_changes) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    const auto before = contents(dir);
    const auto json = run_tool(dir, "log --json bank.tyn").json();
    BOOST_TEST(json.get<std::string>("kind") == "log");
    BOOST_TEST(json.get<std::string>("ending") == "whole");
    BOOST_TEST(json.get<std::uint64_t>("transactions") == 7U);
    BOOST_TEST(json.get<std::uint64_t>("files_contain") == 0U);
    BOOST_TEST(json.get<std::uint64_t>("durable_up_to") == 7U);
    BOOST_TEST(json.get<std::uint64_t>("capacity_bytes") == small().log_capacity);
    BOOST_TEST(json.get<std::uint64_t>("used_bytes") == json.get<std::uint64_t>("end_position") - json.get<std::uint64_t>("position"));
    BOOST_TEST(json.get<std::uint64_t>("used_bytes") == 4096 * json.get<std::uint64_t>("records"));
    BOOST_TEST((serials(json) == Serials{1, 2, 3, 4, 5, 6, 7}));
    for (const auto& [key, work] : json.get_child("listed")) {
        BOOST_TEST(work.get<std::uint64_t>("ranges") >= 1U);
        BOOST_TEST(work.get<std::uint64_t>("history_ranges") == 0U);
    }
    BOOST_TEST((contents(dir) == before));
    // What it promised is what an opening brings back.
    TransactionalHeap heap(taiyen::open_only, dir / "bank.tyn");
    BOOST_TEST(heap.restoration().transactions_replayed == 7U);
    BOOST_TEST(heap.last_durable().value == 7U);
    heap.close();
    const auto closed = run_tool(dir, "log --json bank.tyn").json();
    BOOST_TEST(closed.get<std::string>("ending") == "unused");
    BOOST_TEST(closed.get<std::uint64_t>("files_contain") == 7U);
    BOOST_TEST(run_tool(dir, "log bank.tyn").out.find("was closed") != std::string::npos);
    std::filesystem::remove(dir / "bank.tyn.log");
    BOOST_TEST(run_tool(dir, "log bank.tyn").out.find("missing; a new one is made") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ranges_add_up_and_serials_choose) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    BOOST_TEST((serials(run_tool(dir, "log --json --serial 3..5 bank.tyn").json()) == Serials{3, 4, 5}));
    BOOST_TEST((serials(run_tool(dir, "log --json --serial 6.. bank.tyn").json()) == Serials{6, 7}));
    BOOST_TEST((serials(run_tool(dir, "log --json --serial ..2 bank.tyn").json()) == Serials{1, 2}));
    BOOST_TEST((serials(run_tool(dir, "log --json --serial 4 bank.tyn").json()) == Serials{4}));
    BOOST_TEST((serials(run_tool(dir, "log --json --list 2 bank.tyn").json()) == Serials{6, 7}));
    for (const char* wrong : {"x", "1..y", "''", "-3"})
        BOOST_TEST(run_tool(dir, std::string("log --serial=") + wrong + " bank.tyn").exit == 2, wrong);
    const auto json = run_tool(dir, "log --json --ranges --serial 2 bank.tyn").json();
    for (const auto& [key, work] : json.get_child("listed")) {
        std::uint64_t bytes = 0;
        for (const auto& [index, range] : work.get_child("changes")) bytes += range.get<std::uint64_t>("bytes");
        BOOST_TEST(work.get_child("changes").size() == work.get<std::uint64_t>("ranges"));
        BOOST_TEST(bytes == work.get<std::uint64_t>("changed_bytes"));
        BOOST_TEST(bytes > 0U);
    }
}

BOOST_AUTO_TEST_CASE(what_each_transaction_changed_is_told_field_by_field) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn", true);
    const auto before = contents(dir);
    const std::string text = run_tool(dir, "log --fields 0 bank.tyn").out;
    BOOST_TEST(text.find("\nadded    accounts: {\"0\": \"the account of customer 0\"}\n") != std::string::npos, text);
    BOOST_TEST(text.find("\nadded    accounts[6]: \"the account of customer 6\"\n") != std::string::npos, text);
    BOOST_TEST(text.find("\nno field that is known differs\n") != std::string::npos, text);  // attaching the history is one of its own
    const auto json = run_tool(dir, "log --json --fields 1 --serial 4.. bank.tyn").json();
    BOOST_TEST(json.get_child("listed").size() == 5U);
    for (const auto& [key, work] : json.get_child("listed")) {
        BOOST_TEST(work.get_child("fields").size() == 1U);
        BOOST_TEST(work.get_child("fields").front().second.get<std::string>("change") == "added");
        BOOST_TEST(work.get<std::uint64_t>("more_fields") == 0U);
    }
    BOOST_TEST(run_tool(dir, "log --fields x bank.tyn").exit == 2);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(what_a_transaction_changes_of_the_undo_history_is_counted_apart) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn", true);
    const auto json = run_tool(dir, "log --json --ranges bank.tyn").json();
    BOOST_TEST(json.get_child("listed").size() == 8U);  // attaching is one of its own
    const auto& last = json.get_child("listed").back().second;
    BOOST_TEST(last.get<std::uint64_t>("history_ranges") >= 1U);
    BOOST_TEST(last.get_child("changes").size() == last.get<std::uint64_t>("history_ranges") + last.get<std::uint64_t>("ranges"));
}

BOOST_AUTO_TEST_CASE(a_torn_end_is_said_to_be_torn_and_is_no_damage) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    const auto whole = run_tool(dir, "log --json bank.tyn").json();
    const auto last = whole.get_child("listed").back().second.get<std::uint64_t>("position");
    overwrite(dir / "bank.tyn.log", 8192 + last + 1536, std::string(512, '\0'));
    const auto before = contents(dir);
    const Ran ran = run_tool(dir, "log --json bank.tyn");
    BOOST_TEST(ran.exit == 0);
    BOOST_TEST(ran.json().get<std::string>("ending") == "torn");
    BOOST_TEST(ran.json().get<std::uint64_t>("ends_at") == 8192 + last);
    BOOST_TEST(ran.json().get<std::uint64_t>("durable_up_to") == 6U);
    BOOST_TEST(run_tool(dir, "log bank.tyn").out.find("torn at byte " + std::to_string(8192 + last)) != std::string::npos);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(damage_is_told_with_its_place_and_what_stands_before_it_is_listed) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    const auto whole = run_tool(dir, "log --json bank.tyn").json();
    auto third = whole.get_child("listed").begin();
    std::advance(third, 2);
    const auto position = third->second.get<std::uint64_t>("position");
    for (const std::uint64_t within : {2U, 120U, 700U, 4000U}) {
        flip(dir / "bank.tyn.log", 8192 + position + within);
        const Ran ran = run_tool(dir, "log --json bank.tyn");
        BOOST_TEST(ran.exit == 1, within << ran.err);
        BOOST_TEST(ran.json().get<std::string>("ending") == "damaged");
        BOOST_TEST(ran.json().get<std::uint64_t>("ends_at") == 8192 + position);
        BOOST_TEST((serials(ran.json()) == Serials{1, 2}), within);
        BOOST_TEST(run_tool(dir, "log bank.tyn").exit == 1);
        flip(dir / "bank.tyn.log", 8192 + position + within);
    }
    BOOST_TEST(run_tool(dir, "log bank.tyn").exit == 0);
}

BOOST_AUTO_TEST_CASE(a_heap_without_a_log_is_said_to_have_none_and_a_journal_tells_its_saves) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    BOOST_TEST(run_tool(dir, "log a.tyn").out == "this heap has no transaction log, and was closed: there is no journal either\n");
    BOOST_TEST(run_tool(dir, "log --json a.tyn").json().get<std::string>("kind") == "none");
    {
        ArchiveHeap heap(taiyen::open_only, dir / "a.tyn");
        for (int i = 0; i < 3; ++i) {
            *heap.find<int>("revision") = 100 + i;
            heap.snapshot();
        }
        copy_as_crashed(dir / "a.tyn", dir / "b.tyn");
    }
    const auto json = run_tool(dir, "log --json b.tyn").json();
    BOOST_TEST(json.get<std::string>("kind") == "journal");
    BOOST_TEST(json.get_child("saves").size() == 3U);
    BOOST_TEST(json.get<std::uint64_t>("durable_up_to") == json.get<std::uint64_t>("files_contain") + 3);
    BOOST_TEST(run_tool(dir, "log b.tyn").out.find("3 saves") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_log_that_is_gone_or_of_another_heap_is_an_error_that_names_it) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    make_crashed_bank(dir, "other.tyn");
    std::filesystem::rename(dir / "bank.tyn.log", dir / "moved.log");
    const Ran gone = run_tool(dir, "log bank.tyn");
    BOOST_TEST(gone.exit == 2);
    BOOST_TEST(gone.err.find("bank.tyn.log") != std::string::npos, gone.err);
    BOOST_TEST(run_tool(dir, "log --log-file moved.log bank.tyn").exit == 0);
    const Ran foreign = run_tool(dir, "log --log-file other.tyn.log bank.tyn");
    BOOST_TEST(foreign.exit == 2);
    BOOST_TEST(foreign.err.find("belongs to another heap") != std::string::npos, foreign.err);
}

BOOST_AUTO_TEST_CASE(the_log_of_a_heap_in_use_is_not_looked_at) {
    const ScratchDirectory dir;
    const TransactionalHeap heap(taiyen::create_only, dir / "a.tyn", small());
    const Ran ran = run_tool(dir, "log a.tyn");
    BOOST_TEST(ran.exit == 2);
    BOOST_TEST(ran.err.find("open elsewhere") != std::string::npos, ran.err);
}

BOOST_AUTO_TEST_SUITE_END()
