// info, ls, stats, verify: what they print, what they return, and that they change nothing.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
using taiyen::SnapshotHeap;
using taiyen::TransactionalHeap;
}  // namespace

BOOST_AUTO_TEST_SUITE(looking)

BOOST_AUTO_TEST_CASE(without_a_command_or_with_a_wrong_one_the_tool_explains_itself_and_fails) {
    const ScratchDirectory dir;
    for (const char* words : {"", "polish drawing.tyn", "verify", "info --colour drawing.tyn", "verify --threads many drawing.tyn"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words << " returned " << ran.exit);
        BOOST_TEST(!ran.err.empty(), words << " said nothing");
        BOOST_TEST(ran.out.empty(), words);
    }
}

BOOST_AUTO_TEST_CASE(a_word_that_means_something_else_in_the_library_is_refused_with_the_one_that_is_meant) {
    const ScratchDirectory dir;
    make_drawing<taiyen::ArchiveHeap>(dir / "snapshot");
    const auto before = contents(dir);
    for (const auto& [words, meant] : std::vector<std::pair<std::string, std::string>>{{"snapshot snapshot", "'copy'"},
                                                                                       {"snapshot --to copy.tyn snapshot", "'recover'"},
                                                                                       {"compact --dry-run snapshot", "'sparsify'"},
                                                                                       {"rebase snapshot --to auto", "--address"},
                                                                                       {"convert snapshot other.tyn --to=auto", "--address"},
                                                                                       {"expand snapshot other.tyn --to auto", "--address"}}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.err.find(meant) != std::string::npos, ran.err);
        BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == 1, ran.err);
    }
    const Ran other = run_tool(dir, "verify --to snapshot");
    BOOST_TEST(other.exit == 2);
    BOOST_TEST(run_tool(dir, "verify snapshot --thread").err.find("--address") == std::string::npos);
    BOOST_TEST(run_tool(dir, "squash snapshot").err.find("no command 'squash'; ") != std::string::npos);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(each_command_has_a_help_that_names_its_options) {
    const ScratchDirectory dir;
    const Ran help = run_tool(dir, "--help");
    BOOST_TEST(help.exit == 0);
    BOOST_TEST(run_tool(dir, "--version").out.starts_with("taiyen 0."));
    for (const std::string command :
         {"info", "ls", "show", "stats", "verify", "leaks", "map", "log", "history", "recover", "scrub", "repair", "rebase", "resize", "sparsify"}) {
        BOOST_TEST(help.out.find(command) != std::string::npos, command);
        const Ran ran = run_tool(dir, command + " --help");
        BOOST_TEST(ran.exit == 0);
        for (const char* option : {"--json", "--data-file PATH", "--log-file PATH", "FILE"})
            BOOST_TEST(ran.out.find(option) != std::string::npos, command << " --help has no " << option << ":\n" << ran.out);
    }
}

BOOST_AUTO_TEST_CASE(the_help_of_diff_names_both_files) {
    const ScratchDirectory dir;
    const Ran ran = run_tool(dir, "diff --help");
    BOOST_TEST(ran.exit == 0);
    for (const char* words : {"--json", "--pages", "--data-file-of-b PATH", "the older heap", "the newer heap", "Exit code 1"})
        BOOST_TEST(ran.out.find(words) != std::string::npos, words << ":\n" << ran.out);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_is_an_error_that_names_it) {
    const ScratchDirectory dir;
    for (const std::string command :
         {"info", "ls", "show", "stats", "verify", "leaks", "map", "log", "history", "recover", "scrub", "repair", "sparsify"}) {
        const Ran ran = run_tool(dir, command + " nothing.tyn");
        BOOST_TEST(ran.exit == 2, command);
        BOOST_TEST(ran.err.find("nothing.tyn") != std::string::npos, ran.err);
        BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == 1, ran.err);
    }
}

BOOST_AUTO_TEST_CASE(info_tells_kind_size_and_companions) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    make_drawing<SnapshotHeap>(dir / "s.tyn");
    make_drawing<TransactionalHeap>(dir / "t.tyn");
    for (const auto& [file, kind] : std::map<std::string, std::string>{{"a.tyn", "archive"}, {"s.tyn", "snapshot"}, {"t.tyn", "transactional"}}) {
        const Ran ran = run_tool(dir, "info --json " + file);
        BOOST_TEST_REQUIRE(ran.exit == 0, ran.err);
        const auto json = ran.json();
        BOOST_TEST(json.get<std::string>("kind") == kind);
        BOOST_TEST(json.get<std::size_t>("capacity_bytes") == small().capacity);
        BOOST_TEST(json.get<bool>("clean"));
        BOOST_TEST(json.get<std::string>("data_file") == (kind == "snapshot" ? "s.tyn.data" : ""));
        BOOST_TEST(run_tool(dir, "info " + file).out.find(kind + " heap") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(info_and_log_tell_the_last_recovery_after_the_fact) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    BOOST_TEST(run_tool(dir, "info bank.tyn").out.find("recovered") == std::string::npos);
    BOOST_TEST(run_tool(dir, "recover bank.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "recover bank.tyn").exit == 0);  // with nothing to do
    const std::string told = "its last user, or the system, ended without closing it; 7 transactions of the log brought into the files\n";
    for (const char* command : {"info", "log"}) {
        const std::string out = run_tool(dir, std::string(command) + " bank.tyn").out;
        BOOST_TEST(out.find(" UTC, in ") != std::string::npos, out);
        BOOST_TEST(out.find(" ms: " + told) != std::string::npos, out);
        const auto json = run_tool(dir, std::string(command) + " --json bank.tyn").json();
        BOOST_TEST(json.get<std::string>("last_restoration.cause") == "crash");
        BOOST_TEST(json.get<std::uint64_t>("last_restoration.transactions_replayed") == 7U);
    }
    BOOST_TEST(run_tool(dir, "info bank.tyn").out.find("cleanly, 20") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ls_names_objects_with_the_types_that_a_program_would_write) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto json = run_tool(dir, "ls --json a.tyn").json();
    std::map<std::string, std::string> types;
    for (const auto& [key, object] : json.get_child("objects")) types[object.get<std::string>("name")] = object.get<std::string>("type");
    const std::map<std::string, std::string> expected{
        {"lengths", "taiyen::vector<double>"}, {"parts", "taiyen::map<taiyen::string, tool_test::Part>"}, {"revision", "int"}};
    BOOST_TEST((types == expected), run_tool(dir, "ls a.tyn").out);
    BOOST_TEST(run_tool(dir, "ls --names a.tyn").out == "lengths\nparts\nrevision\n");
}

BOOST_AUTO_TEST_CASE(ls_tells_what_types_are_made_of) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    BOOST_TEST(run_tool(dir, "ls --shapes a.tyn").out ==
               "lengths: vector<double>, 32 bytes\n"
               "parts: map<string, tool_test::Part>, 56 bytes\n"
               "tool_test::Part, 80 bytes\n"
               "  0 name: string\n"
               "  40 tags: vector<string>\n"
               "  72 weight: double\n"
               "revision: int32_t, 4 bytes\n");
    const auto json = run_tool(dir, "ls --shapes --json a.tyn").json();
    std::map<std::string, boost::property_tree::ptree> shapes;
    for (const auto& [key, object] : json.get_child("objects")) shapes[object.get<std::string>("name")] = object.get_child("shape");
    std::vector<boost::property_tree::ptree> nodes;
    for (const auto& [key, node] : shapes.at("parts")) nodes.push_back(node);
    BOOST_TEST(nodes.at(0).get<std::string>("kind") == "map");
    const auto pair = nodes.at(nodes.at(0).get_child("parts").front().second.get<std::size_t>("index"));
    BOOST_TEST(pair.get<std::string>("kind") == "pair");
    const auto part = nodes.at(pair.get_child("parts").back().second.get<std::size_t>("index"));
    BOOST_TEST(part.get<std::string>("type") == "tool_test::Part");
    BOOST_TEST(part.get_child("parts").back().second.get<std::string>("name") == "weight");
    BOOST_TEST(part.get_child("parts").back().second.get<std::uint64_t>("offset") == 72U);
    BOOST_TEST(shapes.at("revision").front().second.get<std::string>("kind") == "signed_integer");
}

BOOST_AUTO_TEST_CASE(show_prints_what_objects_hold) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto shown = [&](const std::string& words) { return run_tool(dir, "show a.tyn " + words).out; };
    BOOST_TEST(shown("revision") == "revision: 7\n");
    BOOST_TEST(shown("lengths --elements 2").starts_with("lengths: vector<double>, "));
    BOOST_TEST(shown("lengths --elements 2").find("\n  … and ") != std::string::npos);
    BOOST_TEST(shown("parts --depth 1") == shown("parts --depth 1 --elements 1"));
    const ArchiveHeap heap(taiyen::open_read_only, dir / "a.tyn");
    const auto& parts = *heap.find<Parts>("parts");
    const auto json = run_tool(dir, "show --json a.tyn parts").json();
    BOOST_TEST(json.size() == parts.size());
    for (const auto& [name, part] : parts) {
        const auto here = json.find(std::string(name));
        BOOST_REQUIRE((here != json.not_found()));
        BOOST_TEST(here->second.get<double>("weight") == part.weight);
        BOOST_TEST(here->second.get_child("tags").size() == part.tags.size());
        if (part.weight < 0.03) BOOST_TEST(std::stod(shown("'parts[\"" + std::string(name) + "\"].weight' --json")) == part.weight);
    }
    const auto all = run_tool(dir, "show --json a.tyn").json();
    BOOST_TEST(all.size() == 3U);
    BOOST_TEST(all.get<int>("revision") == 7);
    for (const char* const nothing : {"part", "'parts[\"no such part\"]'", "revision.x", "'lengths[9999999]'"}) {
        const Ran ran = run_tool(dir, std::string("show a.tyn ") + nothing);
        BOOST_TEST(ran.exit == 2, nothing);
        BOOST_TEST(ran.err.find("a.tyn") != std::string::npos, ran.err);
    }
    const Ran types = run_tool(dir, "show --types a.tyn");
    BOOST_TEST(types.out.find("\nvector<double>") != std::string::npos, types.out);
    BOOST_TEST(types.out.find("all blocks are told of by shapes\n") != std::string::npos, types.out);
    const auto counted = run_tool(dir, "show --types --json --elements 2 a.tyn").json();
    BOOST_TEST(counted.get_child("types").size() == 2U);
    BOOST_TEST(counted.get_child("types").front().second.get<std::uint64_t>("block_bytes") > 0U);
    BOOST_TEST(counted.get<std::uint64_t>("other_blocks") == 0U);
    BOOST_TEST(run_tool(dir, "show --types --elements 2 a.tyn").out.find("smaller ones") != std::string::npos);
    BOOST_TEST(run_tool(dir, "show --types a.tyn parts").exit == 2);
    BOOST_TEST(run_tool(dir, "show a.tyn 'parts['").exit == 2);
    // Patterns.
    const auto heavy = run_tool(dir, "show --json a.tyn 'parts[*].weight > 1.975'").json();
    BOOST_TEST(heavy.size() == 2U);
    for (const auto& [none, found] : heavy) {
        const auto path = found.get<std::string>("path");
        BOOST_TEST(shown("'" + path + "'") == path + ": " + found.get<std::string>("value") + "\n");
    }
    BOOST_TEST(shown("'lengths[*] >= 0' --json --elements 1") == "[\n  {\"path\": \"lengths[0]\", \"value\": 0},\n  {\"more\": \"…\"}\n]\n");
    BOOST_TEST(shown("'lengths[*] >= 0' --elements 1") == "lengths[0]: 0\n… and more; --elements 0 shows all\n");
    BOOST_TEST(shown("'parts[*].weight < 0'") == "nothing is like that\n");
    BOOST_TEST(shown("'parts[*].weight < 0' --json") == "[]\n");
    BOOST_TEST(shown("'revision > 6'") == "revision: 7\n");
    BOOST_TEST(run_tool(dir, "show a.tyn 'parts[*].weight > heavy'").exit == 2);
}

BOOST_AUTO_TEST_CASE(stats_counts_what_the_library_counts) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto json = run_tool(dir, "stats --json a.tyn").json();
    const ArchiveHeap heap(taiyen::open_read_only, dir / "a.tyn");
    BOOST_TEST(json.get<std::uint64_t>("live_blocks") == heap.stats().live_blocks);
    BOOST_TEST(json.get<std::uint64_t>("live_bytes") == heap.stats().live_bytes);
    BOOST_TEST(json.get<std::uint64_t>("generation") == heap.stats().generation);
    BOOST_TEST(json.get<std::uint64_t>("released_bytes") == heap.stats().released_bytes);
    BOOST_TEST(json.get<double>("page_efficiency") == heap.stats().page_efficiency, boost::test_tools::tolerance(1e-6));
    BOOST_TEST(json.get_child("availability").size() == 4U);
    BOOST_TEST(json.get<std::uint64_t>("log_capacity_bytes") == 0U);
    BOOST_TEST(json.get<std::string>("read_ahead") == "normal");
    {
        taiyen::PersistentOptions options;
        options.log_capacity = std::size_t{1} << 20U;
        taiyen::TransactionalHeap logged(taiyen::create_only, dir / "t.tyn", options);
        taiyen::transact(logged, [&] { logged.construct<int>("number", 1); });
        logged.close();
    }
    const auto closed = run_tool(dir, "stats --json t.tyn").json();
    BOOST_TEST(closed.get<std::uint64_t>("log_capacity_bytes") == std::uint64_t{1} << 20U);
    BOOST_TEST(closed.get<std::uint64_t>("serial") == 1U);
}

BOOST_AUTO_TEST_CASE(verify_of_a_sound_heap_returns_zero_and_leaves_every_file_as_it_is) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    make_drawing<SnapshotHeap>(dir / "s.tyn");
    make_drawing<TransactionalHeap>(dir / "t.tyn");
    const auto before = contents(dir);
    for (const std::string file : {"a.tyn", "s.tyn", "t.tyn"}) {
        const Ran ran = run_tool(dir, "verify " + file);
        BOOST_TEST(ran.exit == 0, ran.out << ran.err);
        BOOST_TEST(ran.err.empty(), "progress where no terminal is: " << ran.err);
        BOOST_TEST(ran.out.starts_with("sound: "));
        BOOST_TEST(run_tool(dir, "verify --json " + file).json().get<bool>("ok"));
    }
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(verify_returns_one_for_damage_that_a_second_copy_has_and_changes_nothing) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    for (const std::string file : {"a.tyn", "a.tyn.data"}) {
        for (const std::uint64_t at : {100U, 5000U, 9000U, 40'000U, 70'001U}) {
            flip(dir / file, at);
            const auto before = contents(dir);
            const Ran ran = run_tool(dir, "verify --json a.tyn");
            BOOST_TEST(ran.exit == 1, file << " at " << at << ": " << ran.out << ran.err);
            BOOST_TEST(!ran.json().get<bool>("ok"));
            BOOST_TEST(ran.json().get_child("findings").size() >= 1U);
            BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 1);
            BOOST_TEST((contents(dir) == before), file << " at " << at);
            flip(dir / file, at);
        }
    }
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 0);
}

BOOST_AUTO_TEST_CASE(verify_looks_as_far_as_its_level_and_says_so) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto pages = [&](const std::string& how) {
        return run_tool(dir, "verify --json " + how + " a.tyn").json().get<std::uint64_t>("pages_checked");
    };
    BOOST_TEST(run_tool(dir, "verify --level structure a.tyn").out.find("the structure only") != std::string::npos);
    BOOST_TEST(run_tool(dir, "verify --seed 12 a.tyn").out.find("a sample, --seed 12") != std::string::npos);
    BOOST_TEST(run_tool(dir, "verify --level pages a.tyn").out.find("all pages") != std::string::npos);
    BOOST_TEST(run_tool(dir, "verify --level everything a.tyn").out == run_tool(dir, "verify a.tyn").out);
    BOOST_TEST(pages("--level structure") < pages("--sample 5"));
    BOOST_TEST(pages("--sample 5") < pages("--level pages"));
    BOOST_TEST(pages("--sample 6") == pages("--sample 5") + 1);
    BOOST_TEST(pages("--sample 100%") > pages("--sample 50%"));
    BOOST_TEST(pages("--level pages") == pages(""));
    BOOST_TEST(run_tool(dir, "verify --json --sample 5 --seed 77 a.tyn").json().get<std::uint64_t>("seed") == 77U);
    BOOST_TEST(run_tool(dir, "verify --json a.tyn").json().get<std::string>("level") == "everything");
    for (const std::string wrong : {"--level deep", "--sample none", "--sample 0", "--sample 1.5", "--sample 101%", "--sample -1", "--sample 1e30",
                                    "--level pages --sample 5", "--level structure --seed 3", "--seed x"}) {
        const Ran ran = run_tool(dir, "verify " + wrong + " a.tyn");
        BOOST_TEST(ran.exit == 2, wrong);
        BOOST_TEST(ran.err.find(wrong.starts_with("--seed x")       ? "--seed"
                                : wrong.starts_with("--level deep") ? "--level"
                                                                    : "--sample") != std::string::npos,
                   wrong << ": " << ran.err);
    }
    flip(dir / "a.tyn.data", 40'000);  // a page of the second copy
    BOOST_TEST(run_tool(dir, "verify --level structure a.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "verify --sample 100% a.tyn").exit == 1);
    BOOST_TEST(run_tool(dir, "verify --level pages a.tyn").exit == 1);
}

BOOST_AUTO_TEST_CASE(verify_returns_one_for_files_that_are_too_bad_to_open) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    std::filesystem::resize_file(dir / "a.tyn", 20'000);
    const Ran truncated = run_tool(dir, "verify a.tyn");
    BOOST_TEST(truncated.exit == 1);
    BOOST_TEST(truncated.out.find("a.tyn") != std::string::npos, truncated.out);
    BOOST_TEST(run_tool(dir, "stats a.tyn").exit == 2);
    std::filesystem::resize_file(dir / "a.tyn", 0);
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 1);
    make_drawing(dir / "s.tyn");
    std::filesystem::remove(dir / "s.tyn.data");
    BOOST_TEST(run_tool(dir, "verify s.tyn").exit == 1);
    make_drawing(dir / "t.tyn");
    std::filesystem::remove(dir / "t.tyn");
    const Ran missing = run_tool(dir, "verify t.tyn");
    BOOST_TEST(missing.exit == 1);
    BOOST_TEST(missing.out.find("brings it back") != std::string::npos, missing.out);
}

BOOST_AUTO_TEST_CASE(a_heap_in_use_is_said_to_be_in_use) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
    const Ran ran = run_tool(dir, "verify a.tyn");
    BOOST_TEST(ran.exit == 2);
    BOOST_TEST(ran.err.find("open elsewhere") != std::string::npos, ran.err);
    BOOST_TEST(run_tool(dir, "compress a.tyn a.tyz").err.find("taiyen::compress(heap, file)") != std::string::npos);
    BOOST_TEST(run_tool(dir, "info a.tyn").out.find("in use, or its user crashed") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(golden_heaps_of_version_one_are_looked_into) {
    const ScratchDirectory dir;
    const std::filesystem::path golden = std::filesystem::path(TAIYEN_TESTS_DIR) / "store" / "golden";
    // Zeros at their ends were cut off (tests/store/golden/README.md).
    for (const auto& [name, bytes] : std::map<std::string, std::uintmax_t>{
             {"archive-v1.tyn", 86'016}, {"snapshot-v1.tyn", 86'016}, {"snapshot-v1.tyn.data", 86'016}, {"snapshot-v1.tyn.journal", 49'152}}) {
        std::filesystem::copy(golden / name, dir / name);
        std::filesystem::permissions(dir / name, std::filesystem::perms(0600));
        std::filesystem::resize_file(dir / name, bytes);
    }
    const auto before = contents(dir);
    for (const std::string file : {"archive-v1.tyn", "snapshot-v1.tyn"}) {
        BOOST_TEST(run_tool(dir, "info " + file).exit == 0);
        BOOST_TEST(run_tool(dir, "ls " + file).exit == 0);
        BOOST_TEST(run_tool(dir, "stats " + file).exit == 0);
        const Ran ran = run_tool(dir, "verify " + file);
        BOOST_TEST(ran.exit == 0, ran.out << ran.err);
    }
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(log_heaps_are_looked_at_and_not_changed) {
    const ScratchDirectory dir;
    make_log_heap(dir / "values.tyl");
    const auto before = contents(dir);
    const auto info = run_tool(dir, "info --json values.tyl").json();
    BOOST_TEST(info.get<std::string>("kind") == "log");
    BOOST_TEST(info.get<int>("values") == 750);
    BOOST_TEST(info.get<bool>("clean"));
    BOOST_TEST(info.get<std::string>("log_file") == "values.tyl.log");
    BOOST_TEST(run_tool(dir, "info values.tyl").out.find("log heap, format 1") != std::string::npos);
    const auto stats = run_tool(dir, "stats --json values.tyl").json();
    BOOST_TEST(stats.get<int>("values") == 750);
    BOOST_TEST(stats.get<int>("free_segments") < stats.get<int>("segments"));
    BOOST_TEST(run_tool(dir, "stats values.tyl").out.find("in 750 values") != std::string::npos);
    const Ran verified = run_tool(dir, "verify values.tyl");
    BOOST_TEST(verified.exit == 0, verified.err);
    BOOST_TEST(verified.out.find("750 values") != std::string::npos, verified.out);
    BOOST_TEST(run_tool(dir, "verify --level pages values.tyl").exit == 2);
    const auto map = run_tool(dir, "map --json values.tyl").json();
    BOOST_TEST(map.get<std::string>("colour") == "age");
    BOOST_TEST(map.get<int>("live_blocks") == 750);
    BOOST_TEST(map.get<std::uint64_t>("live_bytes") == stats.get<std::uint64_t>("live_bytes"));
    const Ran drawn = run_tool(dir, "map --svg out.svg values.tyl");
    BOOST_TEST(drawn.exit == 0, drawn.err);
    BOOST_TEST(file_bytes(dir / "out.svg").find("by when its segment was filled") != std::string::npos);
    std::filesystem::remove(dir / "out.svg");
    BOOST_TEST(run_tool(dir, "map --colour owner values.tyl").exit == 2);
    for (const char* words : {"ls values.tyl", "leaks values.tyl", "compress values.tyl out.tyz", "recover values.tyl", "scrub values.tyl"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.err.find("this is a log heap") != std::string::npos, words << ": " << ran.err);
    }
    BOOST_TEST((contents(dir) == before));
    flip(dir / "values.tyl", 2 * 1024 * 1024 + 1000);
    const Ran damaged = run_tool(dir, "verify values.tyl");
    BOOST_TEST(damaged.exit == 1, damaged.err);
    BOOST_TEST(damaged.out.find("is damaged") != std::string::npos, damaged.out);
    BOOST_TEST(run_tool(dir, "verify --json values.tyl").json().get_child("findings").size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_log_heap_is_known_by_either_header) {
    const ScratchDirectory dir;
    make_log_heap(dir / "values.tyl");
    flip(dir / "values.tyl", 0);
    BOOST_TEST(run_tool(dir, "info --json values.tyl").json().get<int>("values") == 750);
    BOOST_TEST(run_tool(dir, "verify values.tyl").exit == 0);
    flip(dir / "values.tyl", 0);
    std::filesystem::resize_file(dir / "values.tyl", 1000);
    for (const char* words : {"info values.tyl", "stats values.tyl", "map values.tyl"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.err.find("the file ends within its headers") != std::string::npos, words << ": " << ran.err);
    }
}

BOOST_AUTO_TEST_SUITE_END()
