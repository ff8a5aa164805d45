#pragma once
/// A heap in a folder of its own that goes away, and the part library if the machine has it.

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "document.hpp"
#include "dxf_import.hpp"
#include "seed.hpp"

namespace cad::test {

namespace fs = std::filesystem;

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "taiyen_cad_XXXXXX").string();
        BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

/// An empty document, and its heap as the thread's current one.
struct DocumentInHeap {
    TemporaryFolder folder;
    taiyen::SnapshotHeap heap{taiyen::create_only, folder.path() / "library.tyn"};
    Document& document = heap.construct<Document>("document");
};

/// Precondition of cases that read LibreCAD's parts.
inline boost::test_tools::assertion_result library_is_installed(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result(fs::is_directory(library_folder));
    result.message() << "librecad-data is not installed";
    return result;
}

}  // namespace cad::test
