// The outputs in doc/tool.md are what the commands print. With TAIYEN_WRITE_DOCUMENTS=1 they are written into it instead.

#include <boost/test/unit_test.hpp>

#include <regex>

#include "tool/tool_fixture.hpp"

namespace next_version {
struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    float weight = 0;
    std::int32_t stock = 0;
};
}  // namespace next_version

namespace {
using namespace tool_test;

/// What differs from heap to heap and from disk to disk made equal.
std::string levelled(std::string text) {
    text = std::regex_replace(text, std::regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID");
    text = std::regex_replace(text, std::regex("[0-9]{4}(-[0-9]{2}){2} [0-9:]{8} UTC(, in [0-9,]+ ms)?"), "TIME");
    text = std::regex_replace(text, std::regex("last from [^ \n]+"), "last from HOST");
    text = std::regex_replace(text, std::regex("epoch 0x[0-9a-f_]+"), "epoch");
    text = std::regex_replace(text, std::regex("address +0x[0-9a-f_]+"), "address");
    text = std::regex_replace(text, std::regex("tyz: [0-9,]+ B, [0-9.]+ %"), "tyz: fewer");  // pointers compress better or worse
    text = std::regex_replace(text, std::regex("on disk +[0-9.,]+ [KMGi]*B before, [0-9.,]+ [KMGi]*B now"), "on disk before, now");
    return std::regex_replace(text, std::regex("on disk +[0-9.,]+ [KMGi]*B"), "on disk");
}

void make_edited(const std::filesystem::path& path) {
    taiyen::PersistentOptions options = small();
    options.address = 0x4520'0000'0000;  // bytes of pointers are counted
    taiyen::SnapshotHeap heap(taiyen::create_only, path, options);
    heap.attach_undo();
    for (const char* name : {"draw the frame", "place the bolts", "paint it"}) {
        taiyen::UndoScope scope(heap, name);
        ++heap.find_or_construct<int>("revision");
        heap.find_or_construct<taiyen::vector<double>>("lengths").push_back(1.5);
        scope.commit();
    }
    heap.undo();
    heap.snapshot();
}

void make_heaps(const ScratchDirectory& dir) {
    make_drawing(dir / "drawing.tyn");
    make_drawing(dir / "damaged.tyn");
    make_log_heap(dir / "values.tyl");
    flip(dir / "damaged.tyn", 50'000);
    copy_as_crashed(dir / "drawing.tyn", dir / "newer.tyn");
    {
        taiyen::SnapshotHeap heap(taiyen::open_only, dir / "newer.tyn");
        *heap.find<int>("revision") = 8;
        for (double& length : *heap.find<taiyen::vector<double>>("lengths")) length += 1;
        heap.construct<taiyen::vector<int>>("widths").resize(100);
        heap.snapshot();
    }
    {
        taiyen::SnapshotHeap heap(taiyen::create_only, dir / "next.tyn", small());
        heap.construct<taiyen::map<taiyen::string, next_version::Part>>("parts");
        heap.construct<std::int64_t>("revision");
        heap.construct<taiyen::vector<double>>("lengths");
        heap.construct<taiyen::set<taiyen::string>>("users");
        heap.snapshot();
    }
    make_crashed_bank(dir, "bank.tyn");
    make_edited(dir / "edited.tyn");
    make_drawing(dir / "leaking.tyn");
    {
        taiyen::PersistentOptions options = small();
        options.address = 0x4520'0000'0000;
        taiyen::SnapshotHeap heap(taiyen::create_only, dir / "placed.tyn", options);
        fill(heap);
        heap.snapshot();
    }
    {
        taiyen::SnapshotHeap heap(taiyen::create_only, dir / "pointing.tyn", small());
        auto& kinds = heap.construct<taiyen::map<int, const char*>>("kinds");
        for (std::uintptr_t i = 0; i < 20; ++i) kinds[static_cast<int>(i)] = reinterpret_cast<const char*>(0x5c03'91d4'2011 + i % 4 * 7);
        heap.snapshot();
    }
    taiyen::SnapshotHeap heap(taiyen::open_only, dir / "leaking.tyn");
    for (const char* text : {"an outline that nobody points to any more", "another one"}) {
        auto* const lost = static_cast<char*>(heap.allocate(2000));
        std::memset(lost, 0, 2000);
        std::memcpy(lost, text, std::strlen(text));
    }
    heap.snapshot();
}

/// What a shell in that folder prints.
std::string shell(const ScratchDirectory& dir, const std::string& command) {
    const std::string line = "cd '" + dir.path().string() + "' && PATH=.:$PATH && { " + command + "; } >stdout 2>&1";
    BOOST_TEST(std::system(line.c_str()) != -1);
    return file_bytes(dir / "stdout");
}

/// Runs the commands of a document's console blocks, and returns the document with what they print.
std::string with_outputs(const ScratchDirectory& dir, const std::string& document) {
    std::istringstream lines(document);
    std::string made;
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (line == "```console") inside = true;
        if (line == "```") inside = false;
        if (inside && line.starts_with("$ "))
            made += line + "\n" + shell(dir, line.substr(2));
        else if (!inside || line == "```console")
            made += line + "\n";
    }
    return made;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(document)

BOOST_AUTO_TEST_CASE(the_outputs_on_the_page_about_the_command_are_what_it_prints) {
    const ScratchDirectory dir;
    make_heaps(dir);
    std::filesystem::create_symlink(TAIYEN_TOOL, dir / "taiyen");
    const std::filesystem::path page = std::filesystem::path(TAIYEN_ROOT) / "doc" / "tool.md";
    const std::string written = file_bytes(page);
    const std::string now = with_outputs(dir, written);
    if (std::getenv("TAIYEN_WRITE_DOCUMENTS") != nullptr) {
        std::ofstream(page, std::ios::binary) << now;
        return;
    }
    std::istringstream expected(levelled(written));
    std::istringstream found(levelled(now));
    std::string a;
    std::string b;
    const auto next = [&] {
        const bool more = static_cast<bool>(std::getline(expected, a));
        return static_cast<bool>(std::getline(found, b)) || more;
    };
    while (next()) {
        BOOST_TEST_REQUIRE(a == b,
                           "doc/tool.md says\n  " << a << "\nand the command prints\n  " << b << "\nTAIYEN_WRITE_DOCUMENTS=1 writes what it prints");
        a.clear();
        b.clear();
    }
}

BOOST_AUTO_TEST_SUITE_END()
