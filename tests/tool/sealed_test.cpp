// --key-file: frames that the commands seal and open.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;

void make_key(const std::filesystem::path& path, char letter) {
    std::ofstream(path) << std::string(32, letter);
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
}

struct SealedFrames {
    ScratchDirectory dir;
    bool can_seal = false;

    SealedFrames() {
        make_crashed_bank(dir, "bank.tyn");
        make_key(dir / "bank.key", 'k');
        make_key(dir / "other.key", 'o');
        std::filesystem::create_directory(dir / "frames");
        const Ran sealed = run_tool(dir, "replicate --key-file bank.key bank.tyn frames");
        can_seal = sealed.err.find("built without libsodium") == std::string::npos;
        BOOST_TEST(sealed.exit == (can_seal ? 0 : 2), sealed.err);
        BOOST_TEST_MESSAGE((can_seal ? "" : "skipped: the command was built without libsodium"));
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sealed, SealedFrames)

BOOST_AUTO_TEST_CASE(a_heap_goes_away_sealed_and_comes_back_with_the_key) {
    if (!can_seal) return;
    for (const auto& frame : std::filesystem::directory_iterator(dir / "frames")) BOOST_TEST(file_bytes(frame.path()).starts_with("TAYIENS\n"));
    BOOST_TEST(run_tool(dir, "restore --key-file bank.key frames out.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "verify out.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "replicas --verify --key-file bank.key frames").exit == 0);
    BOOST_TEST(run_tool(dir, "follow --once --key-file bank.key frames standby.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "promote --key-file bank.key standby.tyn frames").exit == 0);
}

BOOST_AUTO_TEST_CASE(without_the_key_nothing_is_read_and_the_error_says_why) {
    if (!can_seal) return;
    for (const std::string words :
         {"restore frames out.tyn", "replicas frames", "replicas --verify frames", "follow --once frames out.tyn", "replicate bank.tyn frames"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.err.find(" is sealed; name the file of its key (--key-file)") != std::string::npos, ran.err);
    }
    const Ran other = run_tool(dir, "restore --key-file other.key frames out.tyn");
    BOOST_TEST(other.exit == 2);
    BOOST_TEST(other.err.find("sealed with another key") != std::string::npos, other.err);
    BOOST_TEST(other.err.find("kkkk") == std::string::npos, other.err);
    BOOST_TEST(!std::filesystem::exists(dir / "out.tyn"));
}

BOOST_AUTO_TEST_CASE(a_changed_frame_is_found) {
    if (!can_seal) return;
    flip(dir / "frames" / "0000000000000002.frame", 100);
    const Ran damaged = run_tool(dir, "replicas --verify --key-file bank.key frames");
    BOOST_TEST(damaged.exit == 1);
    BOOST_TEST(damaged.out.find("frame 2 has a broken seal") != std::string::npos, damaged.out);
}

BOOST_AUTO_TEST_CASE(the_key_is_changed) {
    if (!can_seal) return;
    BOOST_TEST(run_tool(dir, "replicate --base --key-file other.key bank.tyn frames").exit == 2);
    const Ran changed = run_tool(dir, "replicate --base --key-file other.key --old-key-file bank.key bank.tyn frames");
    BOOST_TEST(changed.exit == 0, changed.err);
    BOOST_TEST(run_tool(dir, "restore --key-file other.key --old-key-file bank.key frames out.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "restore --key-file bank.key frames none.tyn").exit == 2);
    const Ran old = run_tool(dir, "replicas --old-key-file bank.key frames");
    BOOST_TEST(old.exit == 2);
    BOOST_TEST(old.err.find("--key-file names the key of those to come") != std::string::npos, old.err);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_key_is_refused) {
    if (!can_seal) return;
    std::filesystem::permissions(dir / "bank.key", std::filesystem::perms::others_read, std::filesystem::perm_options::add);
    const Ran open_to_all = run_tool(dir, "replicas --key-file bank.key frames");
    BOOST_TEST(open_to_all.exit == 2);
    BOOST_TEST(open_to_all.err.find("bank.key: others than its owner") != std::string::npos, open_to_all.err);
    BOOST_TEST(run_tool(dir, "replicas --key-file missing.key frames").err.find("missing.key: there is no such file") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
