// The ring on a real file system, once: alignment, direct reads behind direct writes, names in errors.

#include "log/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <stdlib.h>

#include <filesystem>

#include <taiyen/base/error.hpp>

#include "forwarding_file.hpp"
#include "memory_file.hpp"
#include "ring_fixture.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;

namespace {

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "taiyen-ring-XXXXXX").string();
        BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(ring_on_disk)

BOOST_AUTO_TEST_CASE(records_written_to_a_disk_are_read_by_another_handle_lap_after_lap) {
    const Folder folder;
    const std::filesystem::path path = folder.path / "drawing.tyn.journal";
    const RingIdentity identity{random_uuid(), random_uuid(), 64_KiB, false};
    RingStart start{Epoch{random_u64()}, 0, 1, random_u64()};
    {
        const auto file = io::posix_storage().create(path);
        Ring::format(*file, identity);
    }
    std::size_t wraps = 0;
    for (int round = 0; round < 8; ++round) {
        const std::shared_ptr<io::File> file = io::posix_storage().open(path, io::Access::read_write);
        BOOST_TEST((Ring::read_identity(*file) == identity));
        Ring ring(file, identity, start, start.position);
        std::vector<std::vector<std::byte>> payloads;
        for (const std::size_t size : {1U, 4'000U, 10'000U}) {
            payloads.push_back(payload_of(size, size + static_cast<std::size_t>(round)));
            const std::span<const std::byte> piece(payloads.back());
            wraps += ring.next().position % 64_KiB + Ring::record_bytes(size) > 64_KiB ? 1 : 0;
            ring.append(1, size, {&piece, 1});
        }
        const auto reader = io::posix_storage().open(path, io::Access::read_only);
        const Scanned scanned = scan_all(*reader, identity, start);
        BOOST_TEST(scanned.result.how == ScanEnd::end);
        BOOST_REQUIRE_EQUAL(scanned.records.size(), payloads.size());
        for (std::size_t i = 0; i < payloads.size(); ++i) BOOST_TEST((scanned.records[i].payload == payloads[i]));
        BOOST_TEST((scanned.result.next == ring.next()));
        start = ring.next();
    }
    BOOST_TEST(wraps > 0U);
    BOOST_TEST(std::filesystem::file_size(path) == Ring::header_bytes + 64_KiB);
}

BOOST_AUTO_TEST_CASE(errors_name_the_file_on_the_disk) {
    const Folder folder;
    const std::filesystem::path path = folder.path / "notes.txt";
    io::posix_storage().create(path)->write(payload_of(20'000, 1), 0);
    const auto file = io::posix_storage().open(path, io::Access::read_only);
    BOOST_CHECK_EXCEPTION(Ring::read_identity(*file), Error, [&](const Error& error) {
        return error.code() == errc::not_a_heap && error.path() == path && std::string(error.what()).find("notes.txt") != std::string::npos;
    });
}

namespace {

/// A file that somebody cuts to nothing while it is being written.
struct CutWhileWritten final : ForwardingFile {
    using ForwardingFile::ForwardingFile;
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        ForwardingFile::write_durable(bytes, offset);
        if (cuts) resize(0);
    }
    bool cuts = false;
};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_acknowledged_in_a_file_that_was_cut_before_or_is_cut_meanwhile) {
    for (const bool meanwhile : {false, true}) {
        const auto memory = std::make_shared<MemoryFile>();
        const RingIdentity identity{random_uuid(), random_uuid(), 64_KiB, false};
        Ring::format(*memory, identity);
        const auto file = std::make_shared<CutWhileWritten>(memory);
        const RingStart start{Epoch{random_u64()}, 0, 1, random_u64()};
        Ring ring(file, identity, start, 0);
        const std::vector<std::byte> payload = payload_of(1000, 1);
        const std::span<const std::byte> piece(payload);
        ring.append(1, 1, {&piece, 1});
        if (meanwhile)
            file->cuts = true;
        else
            memory->resize(memory->info().size_bytes - 1);
        const auto has_code = [](errc code) { return [code](const Error& error) { return error.code() == code; }; };
        const ByteCount before = memory->info().size_bytes;
        BOOST_CHECK_EXCEPTION(ring.append(1, 2, {&piece, 1}), Error, has_code(errc::truncated));
        if (!meanwhile) BOOST_TEST(memory->info().size_bytes == before);  // nothing was written
        BOOST_CHECK_EXCEPTION(ring.append(1, 2, {&piece, 1}), Error, has_code(errc::poisoned));
        BOOST_TEST(ring.next().sequence == 2U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
