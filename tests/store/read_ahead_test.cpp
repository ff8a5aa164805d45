// How pages come in from the file: with their neighbours, or alone where the heap takes more than half of the memory that there is.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/descriptor.hpp"
#include "store/heap_file.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(read_ahead)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

struct Memory {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    ByteCount bytes = 8_MiB;  ///< that the process may have

    std::shared_ptr<HeapFile> open(OpenMode mode, ReadAhead wanted = ReadAhead::automatic, HeapKind kind = HeapKind::archive) {
        PersistentOptions options = small_heap(64U << 20U);
        options.read_ahead = wanted;
        options.dirty_limit = 64U << 20U;
        options.verify = Verify::changes;
        store::Tuning tuning;
        tuning.memory = [this] { return bytes; };
        return HeapFile::open(io::posix_storage(), path, mode, kind, options, tuning);
    }
    /// A closed heap with a block of that size.
    void make(ByteCount block) {
        const auto file = open(OpenMode::create_only);
        std::memset(file->engine().allocate(block, 16), 7, block);
        file->save();
        file->close();
    }
};

/// How many mappings of the span read their pages alone, and how many don't (VmFlags of smaps, proc_pid_smaps(5)).
struct Mappings {
    int alone = 0;
    int others = 0;
    explicit Mappings(const HeapFile& file) {
        std::ifstream smaps("/proc/thread-self/smaps");
        bool within = false;
        for (std::string line; std::getline(smaps, line);) {
            const std::size_t dash = line.find('-');
            if (dash != std::string::npos && dash == line.find_first_not_of("0123456789abcdef")) {
                const std::uintptr_t begin = std::stoull(line, nullptr, 16);
                within = begin >= file.ranges().durable && begin < file.ranges().durable + file.image().mapped();
            } else if (within && line.starts_with("VmFlags:")) {
                (line.find(" rr") != std::string::npos ? alone : others) += 1;
            }
        }
    }
};

/// Whether nothing of the file is in the page cache any more: not so on file systems that live there.
bool forget_cached(const std::filesystem::path& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ::fsync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    const std::size_t bytes = std::filesystem::file_size(path);
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    std::vector<unsigned char> pages((bytes + page_bytes - 1) / page_bytes);
    const bool known = ::mincore(mapped, bytes, pages.data()) == 0;
    ::munmap(mapped, bytes);
    return known && std::none_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1U) != 0; });
}

/// Pages of the mapped span that are in memory.
std::size_t pages_in_memory(const HeapFile& file) {
    std::vector<unsigned char> pages(file.image().mapped() / page_bytes);
    BOOST_REQUIRE_EQUAL(::mincore(reinterpret_cast<void*>(file.ranges().durable), file.image().mapped(), pages.data()), 0);
    return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1U) != 0; }));
}

/// Nothing comes in any more.
std::size_t settled_pages(const HeapFile& file) {
    std::size_t before = pages_in_memory(file);
    for (int round = 0; round < 100; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (const std::size_t now = pages_in_memory(file); std::exchange(before, now) == now) break;
    }
    return before;
}

long major_faults() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_majflt;
}
}  // namespace

BOOST_FIXTURE_TEST_CASE(a_heap_that_grows_beyond_half_of_memory_reads_its_pages_alone_from_then_on, Memory) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        const auto file = open(OpenMode::create_only, ReadAhead::automatic, kind);
        BOOST_TEST((file->image().read_ahead() == ReadAhead::normal));
        BOOST_TEST(Mappings(*file).alone == 0);
        file->engine().allocate(5_MiB, 16);
        BOOST_TEST((file->image().read_ahead() == ReadAhead::random));
        BOOST_TEST(Mappings(*file).others == 0);
        file->engine().allocate(16_MiB, 16);
        BOOST_TEST(Mappings(*file).others == 0);
        file->close();
        for (const char* suffix : {"", ".data", ".log"}) std::filesystem::remove(path.string() + suffix);
    }
}

BOOST_FIXTURE_TEST_CASE(what_was_larger_than_half_of_memory_at_opening_reads_its_pages_alone, Memory) {
    make(6_MiB);
    for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only}) {
        bytes = 8_MiB;
        auto file = open(mode);
        BOOST_TEST((file->image().read_ahead() == ReadAhead::random));
        BOOST_TEST(Mappings(*file).others == 0);
        file->close();
        bytes = 64_MiB;
        file = open(mode);
        BOOST_TEST((file->image().read_ahead() == ReadAhead::normal));
        BOOST_TEST(Mappings(*file).alone == 0);
        file->close();
    }
}

BOOST_FIXTURE_TEST_CASE(who_asks_for_one_way_gets_it_whatever_there_is_of_memory, Memory) {
    make(6_MiB);
    bytes = 1_MiB;
    auto file = open(OpenMode::open_only, ReadAhead::normal);
    BOOST_TEST((file->image().read_ahead() == ReadAhead::normal));
    BOOST_TEST(Mappings(*file).alone == 0);
    file->close();
    bytes = 1_TiB;
    file = open(OpenMode::open_only, ReadAhead::random);
    BOOST_TEST((file->image().read_ahead() == ReadAhead::random));
    file->engine().allocate(20_MiB, 16);
    BOOST_TEST(Mappings(*file).others == 0);
}

BOOST_FIXTURE_TEST_CASE(a_limit_of_memory_that_changes_is_seen_by_a_save_that_brings_the_files_up_to_date, Memory) {
    bytes = 1_GiB;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::transactional}) {
        bytes = 1_GiB;
        const auto file = open(OpenMode::create_only, ReadAhead::automatic, kind);
        auto* const block = static_cast<char*>(file->engine().allocate(6_MiB, 16));
        for (const ByteCount now : {8_MiB, 1_GiB}) {
            bytes = now;
            std::memset(block, static_cast<int>(now % 251), 6_MiB);
            file->save();
            BOOST_TEST((file->image().read_ahead() == (now == 8_MiB ? ReadAhead::random : ReadAhead::normal)));
            BOOST_TEST((now == 8_MiB ? Mappings(*file).others : Mappings(*file).alone) == 0);
        }
        file->close();
        std::filesystem::remove(path);
        std::filesystem::remove(path.string() + ".log");
    }
}

BOOST_FIXTURE_TEST_CASE(one_touch_brings_in_one_page_where_pages_are_read_alone, Memory) {
    make(16_MiB);
    if (!forget_cached(path)) return;  // on this file system there is nothing to read
    const auto touched = [&](ReadAhead wanted) {
        for (int round = 0; round < 50 && !forget_cached(path); ++round) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const auto file = open(OpenMode::open_only, wanted);
        const std::size_t before = settled_pages(*file);
        (void)*reinterpret_cast<volatile const char*>(file->ranges().durable + 9_MiB);
        const std::size_t now = settled_pages(*file);
        file->close();
        return now - before;
    };
    const std::size_t alone = touched(ReadAhead::random);
    BOOST_TEST(alone <= 1U);
    BOOST_TEST(touched(ReadAhead::normal) >= alone);  // how many more is the system's to say
}

BOOST_FIXTURE_TEST_CASE(a_pass_over_the_span_reads_ahead_where_pages_are_read_alone, Memory) {
    make(16_MiB);
    if (!forget_cached(path)) return;  // on this file system there is nothing to read
    const auto file = open(OpenMode::open_only, ReadAhead::random);
    const long before = major_faults();
    file->proofs().prove_span();
    BOOST_TEST(major_faults() - before < 400);  // of 4096 pages
}

BOOST_FIXTURE_TEST_CASE(metadata_is_asked_for_as_a_whole, Memory) {
    make(30_MiB);
    if (!forget_cached(path)) return;  // on this file system there is nothing to read
    const auto file = open(OpenMode::open_only, ReadAhead::random);
    const std::size_t before = pages_in_memory(*file);
    file->image().will_read_metadata();
    std::size_t now = settled_pages(*file);
    for (int round = 0; round < 20 && now - before <= 100; ++round) now = settled_pages(*file);  // a slow disk
    BOOST_TEST(now - before > 100U);
    BOOST_TEST(now < 400U);
}

BOOST_AUTO_TEST_SUITE_END()
