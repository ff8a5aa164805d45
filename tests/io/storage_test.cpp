// What every storage promises, real or pretended.

#include "io/disks.hpp"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace taiyen::io::test {
namespace {

BOOST_AUTO_TEST_SUITE(every_storage)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_file_is_empty_and_private_to_its_owner, Disk, Disks) {
    Disk disk;
    const mode_t before = ::umask(0777);
    const auto file = disk.storage().create(disk.path("a"));
    const auto unnamed = disk.storage().create_unnamed(disk.directory());
    ::umask(before);
    for (const File* const each : {file.get(), unnamed.get()}) {
        BOOST_TEST(each->info().mode == 0600U);
        BOOST_TEST(each->info().size_bytes == 0U);
        BOOST_TEST((each->info().kind == FileKind::regular));
    }
    BOOST_TEST(file->path() == disk.path("a"));
    BOOST_TEST(disk.storage().find(disk.path("a"))->inode == file->info().inode);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(written_bytes_are_read_back_at_any_offset, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(3000, 1), 1000);
    file->write(repeated(5000, 2), 9001);
    file->sync();
    auto expected = repeated(14001, 0);
    std::fill_n(expected.begin() + 1000, 3000, std::byte{1});
    std::fill_n(expected.begin() + 9001, 5000, std::byte{2});
    BOOST_TEST((content(*file) == expected));
    const auto again = disk.storage().open(disk.path("a"), Access::read_only);
    BOOST_TEST((content(*again) == expected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_read_at_the_end_is_short, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(5000, 3), 0);
    AlignedBuffer buffer = filled(8192, 9);
    BOOST_TEST(file->read(buffer.span(), 4096) == 904U);
    BOOST_TEST(file->read(buffer.span(), 5000) == 0U);
    BOOST_TEST(file->read(buffer.span(), 1'000'000) == 0U);
    BOOST_TEST(file->read_direct(buffer.span(), 4096) == 904U);
    BOOST_TEST(file->read_direct(buffer.span(), 8192) == 0U);
    BOOST_TEST(file->read_direct(buffer.span(), 0) == 5000U);
    BOOST_TEST(std::to_integer<int>(buffer.data()[4999]) == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(durable_writes_and_buffered_ones_see_each_other, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create_unnamed(disk.directory());
    file->allocate(0, 64_KiB);
    file->sync();
    file->write_durable(filled(8192, 5).span(), 4096);
    AlignedBuffer buffer = filled(4096, 0);
    BOOST_TEST(file->read(buffer.span(), 8192) == 4096U);
    BOOST_TEST(std::to_integer<int>(buffer.data()[4095]) == 5);
    file->write(repeated(4096, 6), 4096);
    BOOST_TEST(file->read_direct(buffer.span(), 4096) == 4096U);
    BOOST_TEST(std::to_integer<int>(buffer.data()[0]) == 6);
    file->write_durable(filled(4096, 7).span(), 4096);
    BOOST_TEST(file->read(buffer.span(), 4096) == 4096U);
    BOOST_TEST(std::to_integer<int>(buffer.data()[0]) == 7);
    BOOST_TEST(file->info().size_bytes == 64_KiB);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_file_opened_for_reading_cannot_be_changed, Disk, Disks) {
    Disk disk;
    disk.storage().create(disk.path("a"))->write(repeated(4096, 1), 0);
    const auto file = disk.storage().open(disk.path("a"), Access::read_only);
    BOOST_CHECK_EXCEPTION(file->write(repeated(1, 2), 0), Error, has_code(errc::read_only));
    BOOST_CHECK_EXCEPTION(file->write_durable(filled(4096, 2).span(), 0), Error, has_code(errc::read_only));
    BOOST_CHECK_EXCEPTION(file->allocate(0, 8192), Error, has_code(errc::read_only));
    BOOST_CHECK_EXCEPTION(file->punch(0, 4096), Error, has_code(errc::read_only));
    BOOST_CHECK_EXCEPTION(file->resize(0), Error, has_code(errc::read_only));
    BOOST_TEST((content(*file) == repeated(4096, 1)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(allocating_grows_the_file_and_keeps_its_bytes, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(5000, 1), 0);
    file->allocate(4096, 60_KiB);
    BOOST_TEST(file->info().size_bytes == 64_KiB);
    BOOST_TEST(file->info().allocated_bytes >= 64_KiB);
    auto expected = repeated(64_KiB, 0);
    std::fill_n(expected.begin(), 5000, std::byte{1});
    BOOST_TEST((content(*file) == expected));
    file->allocate(0, 4096);  // lies inside: nothing changes
    BOOST_TEST(file->info().size_bytes == 64_KiB);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_written_directly_and_through_the_page_cache_is_one_file, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(20'000, 1), 0);
    file->write_direct(filled(8192, 2).span(), 4096);
    file->write(repeated(100, 3), 8192);
    file->write_direct(filled(4096, 4).span(), 32'768);  // behind the end
    file->sync();
    auto expected = repeated(36'864, 0);
    std::fill_n(expected.begin(), 20'000, std::byte{1});
    std::fill_n(expected.begin() + 4096, 8192, std::byte{2});
    std::fill_n(expected.begin() + 8192, 100, std::byte{3});
    std::fill_n(expected.begin() + 32'768, 4096, std::byte{4});
    BOOST_TEST((content(*file) == expected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_punched_range_reads_as_zeros_and_the_size_stays, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(30'000, 1), 0);
    file->punch(4096, 8192);
    file->punch(28'672, 1_MiB);  // beyond the end
    auto expected = repeated(30'000, 1);
    std::fill_n(expected.begin() + 4096, 8192, std::byte{0});
    std::fill_n(expected.begin() + 28'672, 30'000 - 28'672, std::byte{0});
    BOOST_TEST((content(*file) == expected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(resizing_cuts_and_a_later_growth_brings_zeros, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(10'000, 1), 0);
    file->resize(5000);
    file->resize(12'000);
    auto expected = repeated(12'000, 0);
    std::fill_n(expected.begin(), 5000, std::byte{1});
    BOOST_TEST((content(*file) == expected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(data_extents_cover_all_that_is_not_zero, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->resize(1_MiB);
    file->write(repeated(8192, 1), 64_KiB);
    file->write(repeated(100, 2), 512_KiB);
    file->sync();
    const auto bytes = content(*file);
    std::vector<bool> covered(bytes.size());
    std::uint64_t end = 0;
    for (const auto& extent : file->data_extents(0, 2_MiB)) {
        BOOST_TEST(extent.offset >= end);
        BOOST_TEST(extent.length > 0U);
        end = extent.offset + extent.length;
        BOOST_REQUIRE(end <= bytes.size());
        std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(extent.offset), extent.length, true);
    }
    for (std::size_t at = 0; at < bytes.size(); ++at)
        if (bytes[at] != std::byte{0}) BOOST_REQUIRE(covered[at]);
    const auto part = file->data_extents(64_KiB + 4096, 100);
    BOOST_REQUIRE(part.size() == 1U);
    BOOST_TEST(part[0].offset == 64_KiB + 4096);
    BOOST_TEST(part[0].length == 100U);
    BOOST_TEST(file->data_extents(3_MiB, 1_MiB).empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bad_paths_have_codes_of_their_own_and_never_block, Disk, Disks) {
    Disk disk;
    Storage& storage = disk.storage();
    disk.make_special("directory", FileKind::directory);
    disk.make_special("link", FileKind::symbolic_link);
    disk.make_special("fifo", FileKind::other);
    for (const Access access : {Access::read_only, Access::read_write}) {
        BOOST_CHECK_EXCEPTION(storage.open(disk.path("missing"), access), Error, has_code(errc::not_found));
        BOOST_CHECK_EXCEPTION(storage.open(disk.path("nowhere/a"), access), Error, has_code(errc::not_found));
        for (const char* const name : {"directory", "link", "fifo"})
            BOOST_CHECK_EXCEPTION(storage.open(disk.path(name), access), Error, has_code(errc::not_a_regular_file));
    }
    BOOST_TEST((storage.find(disk.path("directory"))->kind == FileKind::directory));
    BOOST_TEST((storage.find(disk.path("link"))->kind == FileKind::symbolic_link));
    BOOST_TEST((storage.find(disk.path("fifo"))->kind == FileKind::other));
    BOOST_TEST(!storage.find(disk.path("missing")).has_value());
    BOOST_TEST(!storage.find(disk.path("nowhere/a")).has_value());
    for (const char* const name : {"directory", "link", "fifo"})
        BOOST_CHECK_EXCEPTION(storage.create(disk.path(name)), Error, has_code(errc::already_exists));
    BOOST_CHECK_EXCEPTION(storage.create(disk.path("nowhere/a")), Error, has_code(errc::not_found));
    BOOST_CHECK_EXCEPTION(storage.create_unnamed(disk.path("nowhere")), Error, has_code(errc::not_found));
    BOOST_CHECK_EXCEPTION(storage.sync_directory(disk.path("nowhere")), Error, has_code(errc::not_found));
    BOOST_CHECK_EXCEPTION(storage.remove(disk.path("directory")), Error, has_code(errc::not_a_regular_file));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_error_names_the_file_and_the_offset, Disk, Disks) {
    Disk disk;
    BOOST_CHECK_EXCEPTION(disk.storage().open(disk.path("missing"), Access::read_only), Error,
                          [&](const Error& error) { return error.path() == disk.path("missing"); });
    const auto file = disk.storage().create(disk.path("a"));
    const std::uint64_t far = std::uint64_t{1} << 62U;
    BOOST_CHECK_EXCEPTION(file->write(repeated(1, 1), far), Error, [&](const Error& error) {
        return error.path() == disk.path("a") && error.offset() == far && error.code() == errc::no_space;
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(creating_leaves_what_is_there_alone, Disk, Disks) {
    Disk disk;
    disk.storage().create(disk.path("a"))->write(repeated(10, 1), 0);
    BOOST_CHECK_EXCEPTION(disk.storage().create(disk.path("a")), Error, has_code(errc::already_exists));
    BOOST_TEST((content(*disk.storage().open(disk.path("a"), Access::read_only)) == repeated(10, 1)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_unnamed_file_gets_its_name_whole_or_vanishes, Disk, Disks) {
    Disk disk;
    Storage& storage = disk.storage();
    {
        const auto file = storage.create_unnamed(disk.directory());
        file->write(repeated(10, 1), 0);
        BOOST_TEST(!storage.find(disk.path("a")).has_value());
        storage.publish(*file, disk.path("a"));
        storage.sync_directory(disk.directory());
        BOOST_TEST(file->path() == disk.path("a"));
        BOOST_TEST(storage.find(disk.path("a"))->inode == file->info().inode);
    }
    BOOST_TEST((content(*storage.open(disk.path("a"), Access::read_only)) == repeated(10, 1)));
    { const auto dropped = storage.create_unnamed(disk.directory()); }
    if (fs::exists(disk.directory())) BOOST_TEST(std::distance(fs::directory_iterator(disk.directory()), fs::directory_iterator()) == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(publishing_onto_a_taken_name_leaves_both_alone, Disk, Disks) {
    Disk disk;
    Storage& storage = disk.storage();
    storage.create(disk.path("a"))->write(repeated(10, 1), 0);
    disk.make_special("link", FileKind::symbolic_link);
    const auto file = storage.create_unnamed(disk.directory());
    file->write(repeated(20, 2), 0);
    BOOST_CHECK_EXCEPTION(storage.publish(*file, disk.path("a")), Error, has_code(errc::already_exists));
    BOOST_CHECK_EXCEPTION(storage.publish(*file, disk.path("link")), Error, has_code(errc::already_exists));
    BOOST_TEST((content(*storage.open(disk.path("a"), Access::read_only)) == repeated(10, 1)));
    storage.publish(*file, disk.path("b"));
    BOOST_TEST((content(*storage.open(disk.path("b"), Access::read_only)) == repeated(20, 2)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(renaming_replaces_and_removing_is_told, Disk, Disks) {
    Disk disk;
    Storage& storage = disk.storage();
    storage.create(disk.path("a"))->write(repeated(10, 1), 0);
    storage.create(disk.path("b"))->write(repeated(20, 2), 0);
    const auto held = storage.open(disk.path("b"), Access::read_only);
    storage.rename(disk.path("a"), disk.path("b"));
    BOOST_TEST(!storage.find(disk.path("a")).has_value());
    BOOST_TEST((content(*storage.open(disk.path("b"), Access::read_only)) == repeated(10, 1)));
    BOOST_TEST((content(*held) == repeated(20, 2)));
    BOOST_CHECK_EXCEPTION(storage.rename(disk.path("a"), disk.path("c")), Error, has_code(errc::not_found));
    BOOST_TEST(storage.remove(disk.path("b")));
    BOOST_TEST(!storage.remove(disk.path("b")));
    BOOST_TEST(!storage.remove(disk.path("nowhere/b")));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(renaming_can_leave_alone_what_has_the_name, Disk, Disks) {
    Disk disk;
    Storage& storage = disk.storage();
    storage.create(disk.path("a"))->write(repeated(10, 1), 0);
    storage.create(disk.path("b"))->write(repeated(20, 2), 0);
    BOOST_CHECK_EXCEPTION(storage.rename(disk.path("a"), disk.path("b"), Existing::refused), Error, has_code(errc::already_exists));
    BOOST_TEST((content(*storage.open(disk.path("a"), Access::read_only)) == repeated(10, 1)));
    BOOST_TEST((content(*storage.open(disk.path("b"), Access::read_only)) == repeated(20, 2)));
    storage.rename(disk.path("a"), disk.path("c"), Existing::refused);
    BOOST_TEST(!storage.find(disk.path("a")).has_value());
    BOOST_TEST((content(*storage.open(disk.path("c"), Access::read_only)) == repeated(10, 1)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exclusive_lock_excludes_and_shared_ones_do_not, Disk, Disks) {
    Disk disk;
    Storage& storage = disk.storage();
    auto first = storage.create(disk.path("a"));
    const auto second = storage.open(disk.path("a"), Access::read_write);
    const auto third = storage.open(disk.path("a"), Access::read_only);
    BOOST_TEST(first->try_lock(Lock::exclusive));
    BOOST_TEST(first->try_lock(Lock::exclusive));
    BOOST_TEST(!second->try_lock(Lock::exclusive));
    BOOST_TEST(!third->try_lock(Lock::shared));
    first.reset();
    BOOST_TEST(second->try_lock(Lock::shared));
    BOOST_TEST(third->try_lock(Lock::shared));
    BOOST_TEST(!second->try_lock(Lock::exclusive));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_private_mapping_shows_the_file_and_never_changes_it, Disk, Disks) {
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(16_KiB, 1), 0);
    void* const memory = ::mmap(nullptr, 16_KiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    BOOST_REQUIRE(memory != MAP_FAILED);
    file->map_private(memory, 8_KiB, 8_KiB, Protection::read_write);
    auto* const bytes = static_cast<volatile unsigned char*>(memory);
    BOOST_TEST(bytes[0] == 1);
    bytes[0] = 9;
    file->write(repeated(4096, 2), 12_KiB);
    BOOST_TEST(bytes[4096] == 2);  // a clean page still is the file's
    BOOST_TEST(bytes[0] == 9);
    BOOST_TEST(std::to_integer<int>(content(*file)[8_KiB]) == 1);
    ::madvise(memory, 4096, MADV_DONTNEED);
    BOOST_TEST(bytes[0] == 1);
    ::munmap(memory, 16_KiB);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
