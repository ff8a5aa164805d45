#include "io/disks.hpp"

#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace taiyen::io::test {
namespace {

/// Runs `work` in a forked child; its result is the child's exit status. With `_Fork`, no handler of pthread_atfork(3) runs there.
template <class Work>
int in_child(Work work, pid_t (*make)() = ::fork) {
    const pid_t child = make();
    if (child == 0) ::_exit(work());
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

BOOST_AUTO_TEST_SUITE(the_posix_storage)

BOOST_AUTO_TEST_CASE(descriptors_are_not_inherited_by_programs) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->allocate(0, 8_KiB);
    AlignedBuffer buffer = filled(4096, 1);
    file->write_durable(buffer.span(), 0);
    file->read_direct(buffer.span(), 0);
    int seen = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        if (fs::read_symlink(entry.path(), error) == disk.path("a")) {
            ++seen;
            const int flags = ::fcntl(std::stoi(entry.path().filename().string()), F_GETFD);
            BOOST_TEST((flags & FD_CLOEXEC) != 0);
        }
    }
    BOOST_TEST(seen >= 1);
}

BOOST_AUTO_TEST_CASE(a_device_is_not_a_regular_file) {
    BOOST_CHECK_EXCEPTION(posix_storage().open("/dev/null", Access::read_write), Error, has_code(errc::not_a_regular_file));
}

BOOST_AUTO_TEST_CASE(a_forbidden_file_is_a_matter_of_permission) {
    PosixDisk disk;
    disk.storage().create(disk.path("a"));
    fs::permissions(disk.path("a"), fs::perms::none);
    const int code = in_child([&] {
        if (::geteuid() == 0 && ::setuid(65534) != 0) return 0;  // root may do everything
        try {
            disk.storage().open(disk.path("a"), Access::read_only);
        } catch (const Error& error) {
            return error.code().value();
        }
        return 0;
    });
    BOOST_TEST((code == static_cast<int>(errc::permission)));
}

BOOST_AUTO_TEST_CASE(a_read_only_file_system_says_so) {
    if (!fs::exists("/proc/version")) {
        BOOST_TEST_MESSAGE("skipped: no /proc");
        return;
    }
    // Whatever the code, a file below /proc cannot be created and the error is typed.
    BOOST_CHECK_THROW(posix_storage().create("/proc/taiyen"), Error);
}

BOOST_AUTO_TEST_CASE(too_many_open_files_has_its_own_code) {
    PosixDisk disk;
    disk.storage().create(disk.path("a"));
    const int code = in_child([&] {
        const rlimit limit{.rlim_cur = 16, .rlim_max = 16};
        ::setrlimit(RLIMIT_NOFILE, &limit);
        std::vector<std::unique_ptr<File>> files;
        try {
            for (int count = 0; count < 100; ++count) files.push_back(disk.storage().open(disk.path("a"), Access::read_only));
        } catch (const Error& error) {
            return error.code().value();
        }
        return 0;
    });
    BOOST_TEST(code == static_cast<int>(errc::too_many_files));
}

BOOST_AUTO_TEST_CASE(a_program_without_standard_descriptors_gets_none_of_them_from_the_storage) {
    for (const bool plain : {false, true}) {
        PosixDisk rich;
        PlainPosixDisk poor;
        PosixDisk& disk = plain ? poor : rich;
        const int code = in_child([&] {
            for (const int standard : {0, 1, 2}) ::close(standard);
            const auto none_is_open = [] { return ::fcntl(0, F_GETFD) < 0 && ::fcntl(1, F_GETFD) < 0 && ::fcntl(2, F_GETFD) < 0; };
            const auto created = disk.storage().create(disk.path("a"));
            if (!none_is_open()) return 1;
            created->allocate(0, 8_KiB);
            AlignedBuffer buffer = filled(4096, 1);
            created->write_durable(buffer.span(), 0);
            created->write_direct(buffer.span(), 4096);
            created->read_direct(buffer.span(), 0);
            if (!none_is_open()) return 2;
            const auto unnamed = disk.storage().create_unnamed(disk.directory());
            if (!none_is_open()) return 3;
            disk.storage().publish(*unnamed, disk.path("b"));
            const auto opened = disk.storage().open(disk.path("a"), Access::read_write);
            if (!opened->try_lock(Lock::exclusive)) return 4;
            disk.storage().sync_directory(disk.directory());
            if (!none_is_open()) return 5;
            for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
                const int flags = ::fcntl(std::stoi(entry.path().filename().string()), F_GETFD);
                std::error_code error;
                if (fs::read_symlink(entry.path(), error) == disk.path("a") && (flags & FD_CLOEXEC) == 0) return 6;
            }
            return 0;
        });
        BOOST_TEST(code == 0);
    }
}

BOOST_AUTO_TEST_CASE(where_only_standard_descriptors_are_left_there_are_too_many_open_files) {
    PosixDisk disk;
    disk.storage().create(disk.path("a"));
    const int code = in_child([&] {
        for (int number = 3; ::fcntl(number, F_GETFD) >= 0 || ::dup2(2, number) >= 0; ++number)
            if (number > 60) break;
        ::close(0);
        const rlimit limit{.rlim_cur = 60, .rlim_max = 60};
        ::setrlimit(RLIMIT_NOFILE, &limit);
        for (const Access access : {Access::read_only, Access::read_write}) {
            try {
                disk.storage().open(disk.path("a"), access);
                return 1;
            } catch (const Error& error) {
                if (error.code() != errc::too_many_files) return 2;
            }
        }
        try {
            disk.storage().create(disk.path("b"));
            return 3;
        } catch (const Error& error) {
            if (error.code() != errc::too_many_files) return 4;
        }
        return disk.storage().find(disk.path("b")) ? 5 : 0;
    });
    BOOST_TEST(code == 0);
}

BOOST_AUTO_TEST_CASE(a_limit_of_file_sizes_is_an_error_and_no_signal) {
    for (const bool plain : {false, true}) {
        PosixDisk rich;
        PlainPosixDisk poor;
        PosixDisk& disk = plain ? poor : rich;
        const auto large = disk.storage().create(disk.path("large"));
        large->allocate(0, 256_KiB);
        const int code = in_child([&] {
            ::signal(SIGXFSZ, SIG_DFL);
            const auto file = disk.storage().create(disk.path("a"));
            const rlimit limit{.rlim_cur = 64_KiB, .rlim_max = 64_KiB};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            const AlignedBuffer page = filled(4096, 1);
            file->allocate(0, 64_KiB);
            file->write(page.span(), 60_KiB);
            file->write_durable(page.span(), 60_KiB);
            large->allocate(0, 256_KiB);  // nothing grows
            large->resize(128_KiB);
            int number = 0;
            for (const auto& call :
                 {std::function<void()>([&] { file->write(page.span(), 60_KiB + 1); }),
                  std::function<void()>([&] { file->write(page.span(), 64_KiB); }),
                  std::function<void()>([&] { file->write_direct(page.span(), 64_KiB); }),
                  std::function<void()>([&] { file->write_durable(page.span(), 64_KiB); }),
                  std::function<void()>([&] { file->allocate(32_KiB, 33_KiB); }), std::function<void()>([&] { file->resize(64_KiB + 1); }),
                  std::function<void()>([&] { large->write(page.span(), 100_KiB); }), std::function<void()>([&] { large->resize(129_KiB); })}) {
                ++number;
                try {
                    call();
                    return number;
                } catch (const Error& error) {
                    if (error.code() != errc::no_space) return 100 + number;
                }
            }
            return 0;
        });
        BOOST_TEST(code == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_lock_excludes_another_process) {
    PosixDisk disk;
    auto file = disk.storage().create(disk.path("a"));
    BOOST_REQUIRE(file->try_lock(Lock::exclusive));
    const auto child_gets_it = [&] { return disk.storage().open(disk.path("a"), Access::read_write)->try_lock(Lock::exclusive) ? 1 : 0; };
    BOOST_TEST(in_child(child_gets_it) == 0);
    file.reset();
    BOOST_TEST(in_child(child_gets_it) == 1);
    // The child's lock died with it.
    BOOST_TEST(disk.storage().open(disk.path("a"), Access::read_write)->try_lock(Lock::exclusive));
}

BOOST_AUTO_TEST_CASE(a_lock_dies_with_its_owner_although_a_forked_child_lives) {
    PosixDisk disk;
    auto file = disk.storage().create(disk.path("a"));
    BOOST_REQUIRE(file->try_lock(Lock::exclusive));
    int pipe[2] = {-1, -1};
    BOOST_REQUIRE(::pipe(pipe) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(pipe[1]);
        char byte = 0;
        (void)!::read(pipe[0], &byte, 1);  // lives until the parent has looked
        ::_exit(0);
    }
    file.reset();
    const bool free = disk.storage().open(disk.path("a"), Access::read_write)->try_lock(Lock::exclusive);
    ::close(pipe[1]);
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    BOOST_TEST(free);
}

BOOST_AUTO_TEST_CASE(a_locked_file_is_unusable_in_a_forked_child) {
    PosixDisk disk;
    auto file = disk.storage().create(disk.path("a"));
    file->allocate(0, 4096);
    file->write_durable(filled(4096, 1).span(), 0);
    BOOST_REQUIRE(file->try_lock(Lock::exclusive));
    const int code = in_child([&] {
        int sum = 0;
        for (const auto& call : {std::function<void()>([&] { file->write(repeated(1, 2), 0); }),
                                 std::function<void()>([&] { file->write_durable(filled(4096, 2).span(), 0); }),
                                 std::function<void()>([&] { (void)file->info(); }), std::function<void()>([&] { file->sync(); })}) {
            try {
                call();
            } catch (const Error& error) {
                sum += error.code() == errc::forked ? 1 : 0;
            }
        }
        file.reset();
        return sum;
    });
    BOOST_TEST(code == 4);
    BOOST_TEST((content(*file) == repeated(4096, 1)));
    file->read_direct(AlignedBuffer(4096).span(), 0);
    file->write_direct(filled(4096, 1).span(), 0);
    const int kept = in_child([&] {
        int found = 0;
        for (int number = 0; number < 256; ++number) {
            std::error_code error;
            found += fs::read_symlink("/proc/self/fd/" + std::to_string(number), error) == disk.path("a") ? 1 : 0;
        }
        return found;
    });
    BOOST_TEST(kept == 0);
}

BOOST_AUTO_TEST_CASE(a_child_does_not_remove_the_hidden_name_of_its_parents_file) {
    PlainPosixDisk disk;
    auto file = disk.storage().create_unnamed(disk.directory());
    in_child([&] {
        file.reset();
        return 0;
    });
    disk.storage().publish(*file, disk.path("a"));
    BOOST_TEST(disk.storage().find(disk.path("a")).has_value());
}

BOOST_AUTO_TEST_CASE(a_child_made_without_handlers_of_fork_leaves_its_parents_files_alone) {
    PlainPosixDisk disk;
    auto locked = disk.storage().create(disk.path("a"));
    locked->write(repeated(100, 1), 0);
    BOOST_REQUIRE(locked->try_lock(Lock::exclusive));
    auto unnamed = disk.storage().create_unnamed(disk.directory());
    const int code = in_child(
        [&] {
            ::alarm(30);
            int wrong = 0;
            for (const auto& call :
                 {std::function<void()>([&] { locked->write(repeated(1, 2), 0); }), std::function<void()>([&] { locked->resize(1); }),
                  std::function<void()>([&] { locked->punch(0, 10); }), std::function<void()>([&] { (void)locked->try_lock(Lock::shared); }),
                  std::function<void()>([&] { locked->sync(); })}) {
                try {
                    call();
                    ++wrong;
                } catch (const Error& error) {
                    if (error.code() != errc::forked) wrong += 10;
                }
            }
            locked.reset();
            unnamed.reset();
            // The child's own files are its own, and are closed in its children.
            auto own = disk.storage().create(disk.path("b"));
            if (!own->try_lock(Lock::exclusive)) wrong += 100;
            if (const pid_t grandchild = ::fork(); grandchild == 0) {
                int refused = 1;
                try {
                    (void)own->info();
                } catch (const Error& error) {
                    refused = error.code() == errc::forked ? 0 : 2;
                }
                ::_exit(refused);
            } else {
                int status = 0;
                ::waitpid(grandchild, &status, 0);
                if (status != 0) wrong += 100;
            }
            own->write(repeated(1, 1), 0);
            return wrong;
        },
        ::_Fork);
    BOOST_TEST(code == 0);
    BOOST_TEST(!disk.storage().open(disk.path("a"), Access::read_write)->try_lock(Lock::exclusive));
    BOOST_TEST((content(*locked) == repeated(100, 1)));
    disk.storage().publish(*unnamed, disk.path("c"));
    BOOST_TEST(disk.storage().find(disk.path("c")).has_value());
}

BOOST_AUTO_TEST_CASE(holes_take_no_disk_space) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(1_MiB, 1), 0);
    file->sync();
    const ByteCount before = file->info().allocated_bytes;
    file->punch(64_KiB, 512_KiB);
    if (file->info().allocated_bytes == before) {
        BOOST_TEST_MESSAGE("skipped: this file system has no holes");
        return;
    }
    BOOST_TEST(file->info().allocated_bytes <= before - 448_KiB);
    const auto extents = file->data_extents(0, 1_MiB);
    BOOST_REQUIRE(extents.size() == 2U);
    BOOST_TEST(extents[0].length == 64_KiB);
    BOOST_TEST(extents[1].offset == 576_KiB);
}

BOOST_AUTO_TEST_CASE(a_file_system_in_memory_serves_without_direct_transfers) {
    const fs::path directory = "/dev/shm";
    if (!fs::exists(directory)) {
        BOOST_TEST_MESSAGE("skipped: no /dev/shm");
        return;
    }
    const auto file = posix_storage().create_unnamed(directory);
    file->allocate(0, 64_KiB);
    file->write_durable(filled(4096, 1).span(), 4096);
    AlignedBuffer buffer = filled(4096, 0);
    BOOST_TEST(file->read_direct(buffer.span(), 4096) == 4096U);
    BOOST_TEST(std::to_integer<int>(buffer.data()[4095]) == 1);
}

BOOST_AUTO_TEST_CASE(a_refused_mapping_is_an_error) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->resize(4096);
    BOOST_CHECK_EXCEPTION(file->map_private(nullptr, 4096, 1, Protection::read), Error, has_code(errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_no_space) {
    if (!fs::exists("/dev/shm")) {
        BOOST_TEST_MESSAGE("skipped: no /dev/shm");
        return;
    }
    const auto file = posix_storage().create_unnamed("/dev/shm");
    BOOST_CHECK_EXCEPTION(file->allocate(0, 1_TiB * 8), Error, has_code(errc::no_space));
}

BOOST_AUTO_TEST_CASE(the_directory_of_a_bare_name_is_the_current_one) {
    BOOST_TEST(directory_of("a") == ".");
    BOOST_TEST(directory_of("b/a") == "b");
    BOOST_TEST(directory_of("/a") == "/");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
