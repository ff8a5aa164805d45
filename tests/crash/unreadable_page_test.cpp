// A page of a heap's file that the disk does not give any more, while the heap is open: a file system of our own (FUSE) answers reads of that page with EIO.

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/taiyen.hpp>

#include "store/geometry.hpp"

#ifdef TAIYEN_HAS_FUSE
#include "crash/outside/served_file.hpp"
#endif

namespace taiyen::crash {
namespace {

#ifdef TAIYEN_HAS_FUSE

namespace fs = std::filesystem;

constexpr std::uint64_t none = ~std::uint64_t{0};

/// Serves one file from another one, in a process of its own; reads that touch the page at `unreadable` fail.
class Disk final : private outside::ServedFile {
public:
    Disk(const fs::path& file, const fs::path& folder) : ServedFile(::open(file.c_str(), O_RDONLY | O_CLOEXEC), file.filename(), 0) {
        void* const memory = ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        unreadable = new (memory) std::atomic<std::uint64_t>(none);
        if (!mount(folder).empty()) return;
        server_ = ::fork();
        if (server_ == 0) {
            serve();
            ::_exit(0);
        }
    }
    ~Disk() {
        if (server_ > 0) ::kill(server_, SIGKILL);
        if (server_ > 0) ::waitpid(server_, nullptr, 0);
    }
    bool is_there() const { return server_ > 0; }

    std::atomic<std::uint64_t>* unreadable = nullptr;  ///< in memory that the server shares

private:
    int about_to_read(std::uint64_t offset, std::size_t bytes) override {
        const std::uint64_t bad = unreadable->load();
        return bad != none && offset < bad + page_bytes && bad < offset + bytes ? EIO : 0;
    }

    ::pid_t server_ = -1;
};

using Numbers = std::vector<int>;
constexpr std::size_t count = 300'000;
constexpr std::size_t on_the_page = 200'000;  ///< a number of the page that can't be read

PersistentOptions small_options() {
    PersistentOptions options;
    options.capacity = 8_MiB;
    return options;
}

int number(const ArchiveHeap& heap, std::size_t index) { return (*heap.find<taiyen::vector<int>>("numbers"))[index]; }

std::jmp_buf back;

/// What must be, in order; the first thing that isn't. 0: all is right. Runs in a process with mounts of its own.
int look_at(const fs::path& folder) {
    const fs::path original = folder / "x.tyn";
    const fs::path mounted = folder / "mounted" / "x.tyn";
    std::uint64_t bad = 0;
    {
        ArchiveHeap heap(create_only, original, small_options());
        auto& numbers = heap.construct<taiyen::vector<int>>("numbers");
        numbers.assign(count, 1);
        const std::uint64_t place = reinterpret_cast<std::uintptr_t>(&numbers[on_the_page]) - read_parameters(original).address;
        bad = store::FileLayout().file_offset({round_down(place, page_bytes)});
        heap.snapshot();
        heap.close();
    }
    fs::create_directory(folder / "mounted");
    const Disk disk(original, folder / "mounted");
    if (!disk.is_there()) return 77;
    disk.unreadable->store(bad);

    // A load of the program.
    const ::pid_t child = ::fork();
    if (child == 0) {
        for (const int signal : {SIGBUS, SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
        const ArchiveHeap heap(open_read_only, mounted);
        if (number(heap, 0) != 1) ::_exit(8);
        ::_exit(number(heap, on_the_page));
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS) return 1;

    // A read of the library.
    {
        const ArchiveHeap heap(open_read_only, mounted);
        const Report report = heap.verify();
        if (report.ok()) return 2;
        const Finding& finding = report.findings.back();
        if (finding.severity != Severity::damage || finding.path != mounted) return 3;
        if (finding.offset / page_bytes != bad / page_bytes) return 4;
    }

    // A program that handles the signal goes on with its other heaps, and with the other pages of this one.
    {
        const ArchiveHeap heap(open_read_only, mounted);
        ArchiveHeap other(create_only, folder / "other.tyn", small_options());
        std::signal(SIGBUS, [](int) { siglongjmp(back, 1); });
        if (sigsetjmp(back, 1) == 0) return number(heap, on_the_page) == 1 ? 5 : 6;
        other.construct<int>("answer") = 42;
        other.snapshot();
        other.close();
        if (number(heap, count - 1) != 1) return 7;
    }
    if (*ArchiveHeap(open_read_only, folder / "other.tyn").find<int>("answer") != 42) return 8;

    // Nothing was changed by all that: once the disk gives the page again everything is there.
    disk.unreadable->store(none);
    const ArchiveHeap heap(open_read_only, mounted);
    if (!heap.verify().ok()) return 9;
    const auto& numbers = *heap.find<taiyen::vector<int>>("numbers");
    return std::accumulate(numbers.begin(), numbers.end(), std::size_t{0}) == count ? 0 : 10;
}

/// The exit code of a process that looks.
int looked_at(const fs::path& folder) {
    const ::pid_t child = ::fork();
    if (child == 0) {
        try {
            const bool alone = ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
            ::_exit(alone ? look_at(folder) : 77);
        } catch (const std::exception& error) {
            const std::string words = std::string(error.what()) + "\n";
            (void)!::write(STDERR_FILENO, words.data(), words.size());
            ::_exit(11);
        }
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#endif

BOOST_AUTO_TEST_SUITE(unreadable_pages)

BOOST_AUTO_TEST_CASE(a_page_that_the_disk_does_not_give_stops_the_program_there_and_is_an_error_where_the_library_reads) {
#ifdef TAIYEN_HAS_FUSE
    if (::geteuid() != 0 || ::access("/dev/fuse", R_OK | W_OK) != 0) {
        BOOST_TEST_MESSAGE("skipped: mounting a file system of our own needs root and /dev/fuse");
        return;
    }
    const fs::path folder = fs::temp_directory_path() / ("taiyen-unreadable-" + std::to_string(::getpid()));
    fs::create_directory(folder);
    const int found = looked_at(folder);
    fs::remove_all(folder);
    if (found == 77) {
        BOOST_TEST_MESSAGE("skipped: FUSE, or mounts of our own, can't be had here");
        return;
    }
    BOOST_TEST(found == 0);
#else
    BOOST_TEST_MESSAGE("skipped: built without libfuse3-dev and pkg-config");
#endif
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
