#include "architecture/arrows.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <boost/test/unit_test.hpp>

namespace {

namespace fs = std::filesystem;
using taiyen::architecture::violations;

/// A tree of sources in a folder of its own, gone afterwards.
class SourceTree {
public:
    SourceTree() {
        std::string name = (fs::temp_directory_path() / "taiyen-arrows-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        write("src/README.md",
              "| level | room | owns | never |\n"
              "|---|---|---|---|\n"
              "| 0 | `base` | `low` | prints: `cout`, `puts` |\n"
              "| 3 | `heap`, `log` | blocks | |\n"
              "| 7 | `stl` | | |\n"
              "| 8 | `tool` | | |\n");
        write("include/taiyen/base/low.hpp", "#pragma once\n#include <vector>\n");
        write("include/taiyen/heap/high.hpp", "#pragma once\n#include <taiyen/base/low.hpp>\n");
        write("src/base/low.cpp", "#include <taiyen/base/low.hpp>\n#include <sys/mman.h>\n");
        write("src/heap/block.hpp", "#pragma once\n");
        write("src/heap/high.cpp", "#include \"heap/block.hpp\"\n#include <taiyen/base/low.hpp>\n");
        write("tests/heap/high_test.cpp", "#include \"heap/block.hpp\"\n#include <taiyen/taiyen.hpp>\n");
    }
    SourceTree(const SourceTree&) = delete;
    SourceTree& operator=(const SourceTree&) = delete;
    ~SourceTree() {
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }

    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text;
    }
    const fs::path& root() const { return root_; }

private:
    fs::path root_;
};

/// What is found when `file` with `text` joins a tree that is in order: exactly one violation, in that file.
std::string only_violation(const std::string& file, const std::string& text) {
    const SourceTree tree;
    tree.write(file, text);
    const auto found = violations(tree.root());
    BOOST_REQUIRE_EQUAL(found.size(), 1U);
    BOOST_TEST(found.front().starts_with(file + ":"));
    return found.front();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(arrows)

BOOST_AUTO_TEST_CASE(every_include_of_this_project_points_to_its_own_room_or_below) {
    for (const auto& violation : violations(TAIYEN_SOURCE_DIR)) BOOST_ERROR(violation);
}

// Programs that want the containers over offset_ptr, or those of other libraries, have the library and say so themselves.
BOOST_AUTO_TEST_CASE(the_umbrella_header_includes_every_public_header_that_needs_no_other_library) {
    auto included = taiyen::architecture::includes_of(fs::path(TAIYEN_SOURCE_DIR) / "include/taiyen/taiyen.hpp");
    std::erase(included, "taiyen/heap.hpp");
    std::erase(included, "taiyen/base/detail/language.hpp");  // says what is wrong with a compiler that is too old
    std::sort(included.begin(), included.end());
    auto headers = taiyen::architecture::public_headers(TAIYEN_SOURCE_DIR);
    std::erase_if(headers, [](const std::string& header) {
        return fs::path(header).filename().string().starts_with("offset_") || header.starts_with("taiyen/other_containers/") ||
               header.starts_with("taiyen/nats/") || header.starts_with("taiyen/seal/") || header.find("/detail/") != std::string::npos;
    });
    BOOST_TEST(included == headers, boost::test_tools::per_element());
}

// What lies in a folder `detail` may go or change at any time.
BOOST_AUTO_TEST_CASE(no_example_and_no_page_includes_what_is_detail) {
    std::size_t looked_at = 0;
    for (const char* const folder : {"examples", "doc"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(TAIYEN_SOURCE_DIR) / folder)) {
            if (!entry.is_regular_file()) continue;
            std::ifstream file(entry.path());
            ++looked_at;
            for (std::string line; std::getline(file, line);)
                if (line.find("#include <taiyen/") != std::string::npos && line.find("/detail/") != std::string::npos)
                    BOOST_ERROR(entry.path().string() + ": " + line);
        }
    BOOST_TEST(looked_at > 30U);
}

// Each of these takes as long to compile as all that heap.hpp declares itself; a container's header is paid by who uses the container.
BOOST_AUTO_TEST_CASE(the_slim_header_includes_no_costly_one) {
    const auto included = taiyen::architecture::standard_headers_of(TAIYEN_SOURCE_DIR, "taiyen/heap.hpp");
    BOOST_TEST(included.contains("filesystem"));
    for (const char* const costly : {"algorithm",
                                     "any",
                                     "bitset",
                                     "complex",
                                     "condition_variable",
                                     "deque",
                                     "execution",
                                     "forward_list",
                                     "fstream",
                                     "functional",
                                     "future",
                                     "iomanip",
                                     "iostream",
                                     "istream",
                                     "list",
                                     "locale",
                                     "memory_resource",
                                     "mutex",
                                     "ostream",
                                     "random",
                                     "ranges",
                                     "regex",
                                     "set",
                                     "shared_mutex",
                                     "sstream",
                                     "stop_token",
                                     "thread",
                                     "unordered_map",
                                     "unordered_set",
                                     "variant",
                                     "boost/pfr.hpp"}) {
        BOOST_TEST(!included.contains(costly), costly);
    }
}

BOOST_AUTO_TEST_CASE(a_header_that_comes_by_way_of_others_is_seen) {
    const SourceTree tree;
    tree.write("include/taiyen/heap.hpp", "#pragma once\n#include <taiyen/heap/high.hpp>\n");
    BOOST_TEST(violations(tree.root()).empty());
    BOOST_TEST(taiyen::architecture::standard_headers_of(tree.root(), "taiyen/heap.hpp").contains("vector"));
}

BOOST_AUTO_TEST_CASE(a_tree_in_order_has_no_violations) {
    const SourceTree tree;
    BOOST_TEST(violations(tree.root()).empty());
}

BOOST_AUTO_TEST_CASE(an_upward_include_is_found_with_its_line) {
    const auto found = only_violation("src/base/bad.cpp", "#include <cstdio>\n\n  #  include <taiyen/heap/high.hpp>\n");
    BOOST_TEST(found == "src/base/bad.cpp:3: room base (level 0) must not include room heap (level 3)");
}

BOOST_AUTO_TEST_CASE(a_sideways_include_is_found) { only_violation("src/log/bad.cpp", "#include \"heap/block.hpp\"\n"); }

BOOST_AUTO_TEST_CASE(a_test_of_a_room_must_not_reach_above_it) { only_violation("tests/base/bad_test.cpp", "#include \"heap/block.hpp\"\n"); }

BOOST_AUTO_TEST_CASE(a_public_header_must_not_need_a_private_one) {
    only_violation("include/taiyen/heap/bad.hpp", "#pragma once\n#include \"heap/block.hpp\"\n");
}

BOOST_AUTO_TEST_CASE(a_public_header_must_not_need_other_libraries) {
    only_violation("include/taiyen/heap/bad.hpp", "#pragma once\n#include <fmt/format.h>\n");
    only_violation("include/taiyen/heap/bad.hpp", "#pragma once\n#include <sys/mman.h>\n");
    only_violation("include/taiyen/heap/bad.hpp", "#pragma once\n#include <boost/container/vector.hpp>\n");
    only_violation("include/taiyen/heap/bad.hpp", "#pragma once\n#include <boost/pfr.hpp>\n");
}

BOOST_AUTO_TEST_CASE(boost_pfr_is_welcome_where_it_was_asked_for) {
    const SourceTree tree;
    tree.write("include/taiyen/stl/walk.hpp", "#pragma once\n#if __has_include(<boost/pfr.hpp>)\n#include <boost/pfr.hpp>\n#endif\n");
    BOOST_TEST(violations(tree.root()).empty());
}

BOOST_AUTO_TEST_CASE(the_library_must_not_include_its_umbrella) { only_violation("src/heap/bad.cpp", "#include <taiyen/taiyen.hpp>\n"); }

BOOST_AUTO_TEST_CASE(a_path_instead_of_a_room_is_found) {
    only_violation("src/heap/bad.cpp", "#include \"block.hpp\"\n");
    only_violation("src/heap/bad.cpp", "#include \"../heap/block.hpp\"\n");
}

BOOST_AUTO_TEST_CASE(a_header_that_cannot_be_included_twice_is_found) { only_violation("src/heap/bad.hpp", "#include <vector>\n"); }

BOOST_AUTO_TEST_CASE(the_tool_must_not_need_what_the_shared_library_hides) {
    const SourceTree tree;
    tree.write("src/heap/inline.hpp", "#pragma once\n");
    tree.write("src/heap/compiled.hpp", "#pragma once\n");
    tree.write("src/heap/compiled.cpp", "#include \"heap/compiled.hpp\"\n");
    tree.write("src/tool/command.cpp", "#include \"heap/inline.hpp\"\n");
    BOOST_TEST(violations(tree.root()).empty());
    tree.write("src/tool/bad.cpp", "#include \"heap/compiled.hpp\"\n");
    BOOST_REQUIRE_EQUAL(violations(tree.root()).size(), 1U);
    BOOST_TEST(violations(tree.root()).front().starts_with("src/tool/bad.cpp:1: the tool must not include the compiled \"heap/compiled.hpp\""));
}

BOOST_AUTO_TEST_CASE(a_word_that_a_room_never_uses_is_found_in_its_code_only) {
    const auto found = only_violation("src/base/bad.cpp", "// puts\nconst char quote = '\"';\nint i = 1'000; void f() { std::puts(\"\"); }\n");
    BOOST_TEST(found == "src/base/bad.cpp:3: room base must not use the word puts");
    only_violation("include/taiyen/base/bad.hpp", "#pragma once\nusing std::cout;\n");
    const SourceTree tree;
    tree.write("src/base/good.cpp", "// puts\n/* puts,\nputs */ const char* low = \"puts \\\" puts\"; int outputs, puts_;\n");
    tree.write("src/heap/good.cpp", "int puts;\n");
    tree.write("tests/base/good_test.cpp", "int puts;\n");
    BOOST_TEST(violations(tree.root()).empty());
}

BOOST_AUTO_TEST_CASE(a_room_that_the_table_lacks_is_none) {
    const SourceTree tree;
    tree.write("src/README.md", "| 0 | `base` | | |\n");
    BOOST_TEST(!violations(tree.root()).empty());
    tree.write("src/README.md", "no table\n");
    BOOST_CHECK_THROW(violations(tree.root()), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(a_file_in_no_room_is_found) { only_violation("src/utils/bad.hpp", "#pragma once\n"); }

BOOST_AUTO_TEST_SUITE_END()
