#include "vm/page_tracker.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <taiyen/base/error.hpp>

#include "seed.hpp"
#include "vm/address_space.hpp"

using namespace taiyen;
using vm::PageRun;
using vm::PageTracker;
using vm::TrackerKind;

namespace taiyen::vm {
std::ostream& operator<<(std::ostream& out, const PageRun& run) { return out << run.first << "+" << run.count; }
std::ostream& operator<<(std::ostream& out, TrackerKind kind) {
    return out << (kind == TrackerKind::scan ? "scan" : kind == TrackerKind::pagemap ? "pagemap" : "automatic");
}
}  // namespace taiyen::vm

namespace {

const TrackerKind both[] = {TrackerKind::scan, TrackerKind::pagemap};

/// PAGEMAP_SCAN came with Linux 6.7.
bool kernel_has_scan() {
    utsname system{};
    ::uname(&system);
    int major = 0;
    int minor = 0;
    std::sscanf(system.release, "%d.%d", &major, &minor);
    return major > 6 || (major == 6 && minor >= 7);
}

/// The tracker, or nothing with a message where the kernel has no PAGEMAP_SCAN.
std::optional<PageTracker> tracker_of(TrackerKind kind) {
    try {
        return PageTracker(kind);
    } catch (const Error& error) {
        BOOST_REQUIRE(kind == TrackerKind::scan);
        BOOST_REQUIRE(!kernel_has_scan());
        BOOST_TEST_MESSAGE("skipped: " << error.what());
        return std::nullopt;
    }
}

enum class Backing { disk_file, memory_file, anonymous };

/// `pages` pages, privately mapped; the file's pages hold their numbers.
class Span {
public:
    Span(Backing backing, std::size_t pages) : pages_(pages) {
        if (backing != Backing::anonymous) {
            descriptor_ = backing == Backing::memory_file ? ::memfd_create("taiyen-tracker-test", MFD_CLOEXEC) : nameless_disk_file();
            BOOST_REQUIRE_GE(descriptor_, 0);
            BOOST_REQUIRE_EQUAL(::ftruncate(descriptor_, static_cast<off_t>(pages * page_bytes)), 0);
            for (std::size_t page = 0; page < pages; page += 3)  // every third page has bytes, the others are holes
                BOOST_REQUIRE_EQUAL(::pwrite(descriptor_, &page, sizeof page, static_cast<off_t>(page * page_bytes)), ssize_t(sizeof page));
        }
        void* const got = ::mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_NORESERVE | (descriptor_ < 0 ? MAP_ANONYMOUS : 0), descriptor_, 0);
        BOOST_REQUIRE(got != MAP_FAILED);
        data_ = static_cast<char*>(got);
        // A huge page would count its 512 pages as written at once.
        ::madvise(data_, pages * page_bytes, MADV_NOHUGEPAGE);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    ~Span() {
        ::munmap(data_, pages_ * page_bytes);
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    volatile char* page(std::size_t number) const { return data_ + number * page_bytes; }
    char* data() const { return data_; }
    ByteCount bytes() const { return pages_ * page_bytes; }

    std::vector<PageRun> written(const PageTracker& tracker) const {
        std::vector<PageRun> runs;
        tracker.written_pages(data_, bytes(), runs);
        return runs;
    }

private:
    static int nameless_disk_file() {
        std::string path = (std::filesystem::temp_directory_path() / "taiyen-tracker-XXXXXX").string();
        const int descriptor = ::mkstemp(path.data());
        ::unlink(path.c_str());
        return descriptor;
    }

    std::size_t pages_;
    int descriptor_ = -1;
    char* data_ = nullptr;
};

std::vector<PageRun> runs_of(const std::set<std::uint64_t>& pages) {
    std::vector<PageRun> runs;
    for (const std::uint64_t page : pages)
        if (!runs.empty() && runs.back().first + runs.back().count == page)
            ++runs.back().count;
        else
            runs.push_back({page, 1});
    return runs;
}

/// Sets or unsets TAIYEN_PAGE_TRACKER for a scope.
class Environment {
public:
    explicit Environment(const char* value) {
        if (const char* const old = std::getenv("TAIYEN_PAGE_TRACKER")) old_ = old;
        set(value);
    }
    ~Environment() { set(old_ ? old_->c_str() : nullptr); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    static void set(const char* value) { value != nullptr ? ::setenv("TAIYEN_PAGE_TRACKER", value, 1) : ::unsetenv("TAIYEN_PAGE_TRACKER"); }
    std::optional<std::string> old_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(page_tracker)

BOOST_DATA_TEST_CASE(an_untouched_mapping_has_no_written_pages, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    for (const Backing backing : {Backing::disk_file, Backing::memory_file, Backing::anonymous})
        BOOST_TEST(Span(backing, 100).written(*tracker).empty());
}

BOOST_DATA_TEST_CASE(reads_of_a_file_mapping_do_not_count, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    for (const Backing backing : {Backing::disk_file, Backing::memory_file}) {
        const Span span(backing, 64);
        int sum = 0;
        for (std::size_t page = 0; page < 64; ++page) sum += *span.page(page);
        BOOST_TEST(sum != 0);
        BOOST_TEST(span.written(*tracker).empty());
    }
}

BOOST_DATA_TEST_CASE(stores_count_even_of_the_bytes_that_were_there, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    for (const Backing backing : {Backing::disk_file, Backing::memory_file, Backing::anonymous}) {
        const Span span(backing, 64);
        for (const std::size_t page : {0U, 1U, 2U, 7U, 63U}) {
            volatile char* const at = span.page(page);
            *at = *at;
        }
        BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{0, 3}, {7, 1}, {63, 1}}), boost::test_tools::per_element());
    }
}

BOOST_DATA_TEST_CASE(zero_pages_count, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const Span span(Backing::anonymous, 8);
    BOOST_TEST(*span.page(3) == 0);  // a load maps the shared zero page
    BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{3, 1}}), boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(dropped_pages_are_not_written_any_more, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const Span span(Backing::disk_file, 64);
    for (std::size_t page = 10; page < 20; ++page) *span.page(page) = 'x';
    vm::drop(span.data() + 12 * page_bytes, 3 * page_bytes);
    BOOST_TEST(*span.page(12) == 12);  // read again, from the file
    BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{10, 2}, {15, 5}}), boost::test_tools::per_element());
    vm::drop(span.data(), span.bytes());
    BOOST_TEST(span.written(*tracker).empty());
}

BOOST_DATA_TEST_CASE(swapped_pages_count, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const Span span(Backing::disk_file, 16);
    *span.page(4) = 'x';
    *span.page(5) = 'x';
    ::madvise(span.data() + 4 * page_bytes, page_bytes, MADV_PAGEOUT);
    unsigned char resident = 0;
    ::mincore(span.data() + 4 * page_bytes, page_bytes, &resident);
    if ((resident & 1U) != 0) BOOST_TEST_MESSAGE("skipped: this system doesn't swap");
    BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{4, 2}}), boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(protection_does_not_change_what_was_written, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const Span span(Backing::disk_file, 16);
    *span.page(4) = 'x';
    vm::protect(span.data(), span.bytes(), false);
    BOOST_TEST(*span.page(5) == 0);
    BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{4, 1}}), boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(pages_count_from_the_start_of_the_range_and_runs_of_earlier_calls_stay, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const Span span(Backing::memory_file, 32);
    for (std::size_t page = 4; page < 12; ++page) *span.page(page) = 'x';
    std::vector<PageRun> runs;
    tracker->written_pages(span.data() + 2 * page_bytes, 4 * page_bytes, runs);
    tracker->written_pages(span.data() + 2 * page_bytes, 4 * page_bytes, runs);
    tracker->written_pages(span.data() + 8 * page_bytes, 0, runs);
    BOOST_TEST(runs == (std::vector<PageRun>{{2, 2}, {2, 2}}), boost::test_tools::per_element());
    tracker->written_pages(span.data() + 4 * page_bytes, 4 * page_bytes, runs);
    BOOST_TEST(runs.back() == (PageRun{0, 4}));
    BOOST_TEST(runs.size() == 3U);
}

BOOST_DATA_TEST_CASE(more_runs_than_any_buffer_holds_are_all_found, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const std::size_t pages = 10'001;
    const Span span(Backing::memory_file, pages);
    for (std::size_t page = 0; page < pages; page += 2) *span.page(page) = 'x';
    const std::vector<PageRun> runs = span.written(*tracker);
    BOOST_REQUIRE_EQUAL(runs.size(), (pages + 1) / 2);
    for (std::size_t i = 0; i < runs.size(); ++i) BOOST_REQUIRE_EQUAL(runs[i], (PageRun{2 * i, 1}));
}

BOOST_DATA_TEST_CASE(one_run_across_all_buffers_is_one_run, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const std::size_t pages = 9'000;
    const Span span(Backing::anonymous, pages);
    for (std::size_t page = 0; page < pages; ++page) *span.page(page) = 'x';
    BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{0, pages}}), boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(holes_in_the_address_space_are_not_written, both, kind) {
    const auto tracker = tracker_of(kind);
    if (!tracker) return;
    const Span span(Backing::anonymous, 64);
    *span.page(1) = 'x';
    *span.page(40) = 'x';
    ::munmap(span.data() + 8 * page_bytes, 16 * page_bytes);
    vm::unmap_to_reservation(span.data() + 32 * page_bytes, 16 * page_bytes);
    BOOST_TEST(span.written(*tracker) == (std::vector<PageRun>{{1, 1}}), boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(the_tracker_outlives_the_thread_that_made_it, both, kind) {
    std::optional<PageTracker> tracker;
    std::thread([&] { tracker = tracker_of(kind); }).join();
    if (!tracker) return;
    const PageTracker moved(std::move(*tracker));
    const Span span(Backing::anonymous, 8);
    *span.page(2) = 'x';
    BOOST_TEST(span.written(moved) == (std::vector<PageRun>{{2, 1}}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(both_ways_find_exactly_the_random_pages_that_were_written) {
    const auto scan = tracker_of(TrackerKind::scan);
    const auto pagemap = tracker_of(TrackerKind::pagemap);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (const Backing backing : {Backing::disk_file, Backing::memory_file, Backing::anonymous}) {
        const std::size_t pages = 3'000;
        const Span span(backing, pages);
        std::set<std::uint64_t> model;
        for (int round = 0; round < 20; ++round) {
            const std::size_t steps = random() % 200;
            for (std::size_t step = 0; step < steps; ++step) {
                const std::size_t first = random() % pages;
                const std::size_t count = std::min<std::size_t>(1 + random() % (random() % 4 == 0 ? 40 : 2), pages - first);
                switch (random() % 4) {
                    case 0:
                        if (backing != Backing::anonymous)  // loads of anonymous memory map zero pages, which count
                            for (std::size_t page = first; page < first + count; ++page) static_cast<void>(*span.page(page));
                        break;
                    case 1:
                        vm::drop(span.data() + first * page_bytes, count * page_bytes);
                        for (std::size_t page = first; page < first + count; ++page) model.erase(page);
                        break;
                    default:
                        for (std::size_t page = first; page < first + count; ++page) {
                            span.page(page)[random() % page_bytes] = static_cast<char>(random());
                            model.insert(page);
                        }
                }
            }
            const std::vector<PageRun> expected = runs_of(model);
            BOOST_TEST(span.written(*pagemap) == expected);
            if (scan) BOOST_TEST(span.written(*scan) == expected);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_untouched_terabyte_is_scanned_without_reading_its_page_map) {
    const auto scan = tracker_of(TrackerKind::scan);
    if (!scan) return;
    const vm::Zone zone = vm::default_zone();
    const ByteCount wanted = 512_GiB;
    const vm::Reservation reservation(vm::find_free(wanted, 2_MiB, vm::Placement::low, zone.first, zone.last).value(), wanted);
    vm::map_anonymous(reservation.data() + 100_GiB, 64_KiB);
    reinterpret_cast<volatile char*>(reservation.data())[100_GiB] = 'x';
    std::vector<PageRun> runs;
    scan->written_pages(reservation.data(), wanted, runs);
    BOOST_TEST(runs == (std::vector<PageRun>{{100_GiB / page_bytes, 1}}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_environment_forces_a_way_and_an_explicit_choice_wins) {
    const bool has_scan = tracker_of(TrackerKind::scan).has_value();
    {
        const Environment environment("pagemap");
        const PageTracker tracker;
        BOOST_TEST(tracker.kind() == TrackerKind::pagemap);
        BOOST_TEST(tracker.name() == "pagemap");
        if (has_scan) BOOST_TEST(PageTracker(TrackerKind::scan).kind() == TrackerKind::scan);
    }
    if (has_scan) {
        const Environment environment("scan");
        const PageTracker tracker;
        BOOST_TEST(tracker.kind() == TrackerKind::scan);
        BOOST_TEST(tracker.name() == "PAGEMAP_SCAN");
        BOOST_TEST(PageTracker(TrackerKind::pagemap).kind() == TrackerKind::pagemap);
    }
    {
        const Environment environment(nullptr);
        BOOST_TEST(PageTracker().kind() == (has_scan ? TrackerKind::scan : TrackerKind::pagemap));
    }
}

BOOST_AUTO_TEST_CASE(an_unknown_way_in_the_environment_is_an_error) {
    const Environment environment("guess");
    BOOST_CHECK_EXCEPTION(PageTracker(), Error, [](const Error& error) { return error.code() == errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE(no_free_descriptor_is_an_error_of_its_own) {
    const int probe = ::dup(2);
    ::close(probe);
    rlimit old{};
    ::getrlimit(RLIMIT_NOFILE, &old);
    const rlimit none{static_cast<rlim_t>(probe), old.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    std::error_code code;
    try {
        const PageTracker tracker(TrackerKind::pagemap);
    } catch (const Error& error) {
        code = error.code();
    }
    ::setrlimit(RLIMIT_NOFILE, &old);
    BOOST_TEST((code == errc::too_many_files));
}

BOOST_AUTO_TEST_SUITE_END()
