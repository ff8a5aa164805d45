// Streams that version 1 wrote once are read for good, and what writes them has not changed.

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>

#include <cstdlib>

#include "store/golden/content.hpp"
#include "store/heap_probe.hpp"

namespace {
using namespace taiyen;

const std::filesystem::path golden_folder = std::filesystem::path(TAIYEN_TESTS_DIR) / "transfer/golden";

/// The golden heap with the zeros at its end that were left out.
std::filesystem::path golden_heap(const ScratchDirectory& directory) {
    std::filesystem::copy_file(std::filesystem::path(TAIYEN_TESTS_DIR) / "store/golden/archive-v1.tyn", directory / "heap.tyn");
    std::filesystem::permissions(directory / "heap.tyn", std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
    std::filesystem::resize_file(directory / "heap.tyn", 86'016);
    return directory / "heap.tyn";
}

BOOST_AUTO_TEST_SUITE(golden_streams)

BOOST_AUTO_TEST_CASE(are_expanded_and_the_plain_one_is_written_again_byte_for_byte) {
    ScratchDirectory directory;
    const std::filesystem::path heap = golden_heap(directory);
    const char* const folder = std::getenv("TAIYEN_WRITE_GOLDEN");
    for (const auto& [codec, name] :
         {std::pair{Codec::none, "archive-v1-none.tyz"}, {Codec::lz4, "archive-v1-lz4.tyz"}, {Codec::zstd, "archive-v1-zstd.tyz"}}) {
        CompressOptions how;
        how.codec = codec;
        if (folder != nullptr) compress_file(heap, std::filesystem::path(folder) / name, how);
        const std::filesystem::path target = directory / (std::string(name) + ".tyn");
        const CompressedHeap said = expand_file(golden_folder / name, target);
        BOOST_TEST(said.address == golden::archive_address);
        BOOST_TEST(said.capacity_bytes == golden::capacity);
        BOOST_TEST(said.names == golden::archive_content().size());
        ArchiveHeap expanded(open_only, target);
        for (const golden::Named& named : golden::archive_content()) {
            const auto found = heap::find_named(*expanded.core(), named.name);
            BOOST_TEST_REQUIRE(found.has_value());
            BOOST_TEST(std::string(static_cast<const char*>(found->object), found->bytes) == named.bytes);
            BOOST_TEST(found->fingerprint == golden::fingerprint);
        }
        BOOST_TEST(expanded.verify().ok());
        expanded.close();
    }
    CompressOptions plain;
    plain.codec = Codec::none;
    compress_file(heap, directory / "again.tyz", plain);
    BOOST_TEST((probe::bytes_of(directory / "again.tyz") == probe::bytes_of(golden_folder / "archive-v1-none.tyz")));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
