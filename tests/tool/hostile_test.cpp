// What is no heap, half a heap or anything else: each command says so in one line, or as a finding; it neither dies nor changes a file that it only looks at.

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <random>

#include "seed.hpp"
#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;

const std::vector<std::string> looking{"info",
                                       "ls",
                                       "show",
                                       "show --types",
                                       "stats",
                                       "verify",
                                       "leaks",
                                       "map",
                                       "map --colour type",
                                       "log",
                                       "log --fields 0",
                                       "history",
                                       "history --fields 0",
                                       "diff sound.tyn",
                                       "diff --fields 0 sound.tyn",
                                       "migrate --dry-run sound.tyn",
                                       "sparsify --dry-run"};

void require_refused(const ScratchDirectory& dir, const std::string& command, const std::string& file) {
    const auto before = contents(dir);
    const Ran ran = run_tool(dir, command + " " + file);
    BOOST_TEST((ran.exit == 1 || ran.exit == 2), command << " " << file << " returned " << ran.exit << ": " << ran.out << ran.err);
    BOOST_TEST((ran.out + ran.err).find(file) != std::string::npos, command << " does not name " << file << ": " << ran.out << ran.err);
    BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == (ran.exit == 2 ? 1 : 0), ran.err);
    BOOST_TEST((contents(dir) == before), command << " changed something");
}
}  // namespace

BOOST_AUTO_TEST_SUITE(hostile)

BOOST_AUTO_TEST_CASE(what_is_no_heap_is_refused_by_name) {
    const ScratchDirectory dir;
    make_drawing(dir / "sound.tyn");
    std::filesystem::create_directory(dir / "folder");
    std::ofstream(dir / "empty");
    std::ofstream(dir / "text") << "just a text\n" << std::string(20'000, 'x');
    std::mt19937_64 random(7);
    std::string noise(50'000, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    std::ofstream(dir / "noise", std::ios::binary) << noise;
    std::filesystem::create_symlink("nowhere", dir / "link");
    for (const std::string& command : looking) {
        const Ran folder = run_tool(dir, command + " folder");
        BOOST_TEST((folder.exit == 1 || folder.exit == 2), command);
        BOOST_TEST((folder.out + folder.err).find("folder") != std::string::npos, folder.err);
        const Ran link = run_tool(dir, command + " link");
        BOOST_TEST((link.exit == 1 || link.exit == 2), command << link.out << link.err);
    }
    std::filesystem::remove(dir / "folder");
    std::filesystem::remove(dir / "link");
    for (const std::string& command : looking)
        for (const std::string file : {"empty", "text", "noise"}) require_refused(dir, command, file);
}

BOOST_AUTO_TEST_CASE(a_heap_without_permission_is_refused_by_name) {
    if (::geteuid() == 0) return;  // to whom nothing is forbidden
    const ScratchDirectory dir;
    make_drawing(dir / "sound.tyn");
    make_drawing(dir / "a.tyn");
    std::filesystem::permissions(dir / "a.tyn", std::filesystem::perms::none);
    for (const std::string& command : looking) {
        const Ran ran = run_tool(dir, command + " a.tyn");
        BOOST_TEST(ran.exit == 2, command);
        BOOST_TEST(ran.err.find("a.tyn") != std::string::npos, ran.err);
    }
}

BOOST_AUTO_TEST_CASE(heaps_cut_short_and_overwritten_by_noise_kill_no_command) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "sound.tyn", true);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 12; ++round) {
        copy_as_crashed(dir / "sound.tyn", dir / "a.tyn");
        const std::filesystem::path victim = dir / (round % 3 == 0 ? "a.tyn.log" : "a.tyn");
        const std::uint64_t size = std::filesystem::file_size(victim);
        if (round % 2 == 0) {
            std::filesystem::resize_file(victim, random() % size);
        } else {
            std::string noise(1 + random() % 9000, '\0');
            for (char& c : noise) c = static_cast<char>(random());
            overwrite(victim, round % 4 == 1 ? random() % 12'000 : random() % size, noise);
        }
        const auto before = contents(dir);
        for (const std::string& command : looking) {
            const Ran ran = run_tool(dir, command + " a.tyn");
            BOOST_TEST((ran.exit >= 0 && ran.exit <= 2), "round " << round << ": " << command << " returned " << ran.exit << ": " << ran.err);
        }
        BOOST_TEST((contents(dir) == before), "round " << round);
    }
}

BOOST_AUTO_TEST_SUITE_END()
