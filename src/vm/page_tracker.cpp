#include "vm/page_tracker.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

namespace taiyen::vm {
namespace {

constexpr const char* pagemap_path = "/proc/thread-self/pagemap";

// The kernel's interface (uapi linux/fs.h since 6.7), declared here because the headers of Debian 12 are older.
namespace kernel {
constexpr std::uint64_t page_is_file = 1U << 2U;
constexpr std::uint64_t page_is_present = 1U << 3U;
constexpr std::uint64_t page_is_swapped = 1U << 4U;

struct PageRegion {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t categories;
};
static_assert(sizeof(PageRegion) == 24);

struct ScanArguments {
    std::uint64_t size;
    std::uint64_t flags;
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t walk_end;
    std::uint64_t vec;
    std::uint64_t vec_len;
    std::uint64_t max_pages;
    std::uint64_t category_inverted;
    std::uint64_t category_mask;
    std::uint64_t category_anyof_mask;
    std::uint64_t return_mask;
};
static_assert(sizeof(ScanArguments) == 96);

constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArguments);

// Entries of the pagemap file.
constexpr std::uint64_t entry_is_file = 1ULL << 61U;  // or shared anonymous memory
constexpr std::uint64_t entry_is_swapped = 1ULL << 62U;
constexpr std::uint64_t entry_is_present = 1ULL << 63U;
}  // namespace kernel

/// Collects pages as maximal runs.
class RunBuilder {
public:
    RunBuilder(std::uint64_t origin_page, std::vector<PageRun>& runs) : origin_(origin_page), runs_(runs), fixed_(runs.size()) {}
    void add(std::uint64_t page, std::uint64_t count) {
        const std::uint64_t first = page - origin_;
        if (runs_.size() > fixed_ && runs_.back().first + runs_.back().count == first)
            runs_.back().count += count;
        else
            runs_.push_back({first, count});
    }

private:
    std::uint64_t origin_;
    std::vector<PageRun>& runs_;
    std::size_t fixed_;  // runs that were there before are not ours to extend
};

/// Returns 0 or an errno value.
int scan(int descriptor, std::uint64_t begin, std::uint64_t end, RunBuilder& runs) {
    std::array<kernel::PageRegion, 512> regions;
    kernel::ScanArguments arguments{};
    arguments.size = sizeof arguments;
    arguments.vec = reinterpret_cast<std::uintptr_t>(regions.data());
    arguments.vec_len = regions.size();
    // "Not a file page" must hold, and one of "present", "swapped".
    arguments.category_inverted = kernel::page_is_file;
    arguments.category_mask = kernel::page_is_file;
    arguments.category_anyof_mask = kernel::page_is_present | kernel::page_is_swapped;
    arguments.return_mask = 0;  // present next to swapped pages make one region
    arguments.end = end;
    while (begin < end) {
        arguments.start = begin;
        arguments.walk_end = 0;
        const int found = ::ioctl(descriptor, kernel::pagemap_scan, &arguments);
        if (found < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        for (int i = 0; i < found; ++i) {
            const kernel::PageRegion& region = regions[static_cast<std::size_t>(i)];
            runs.add(region.start / page_bytes, (region.end - region.start) / page_bytes);
        }
        if (arguments.walk_end <= begin) return EIO;  // no progress: not the interface we know
        begin = arguments.walk_end;
    }
    return 0;
}

int read_entries(int descriptor, std::uint64_t begin, std::uint64_t end, RunBuilder& runs) {
    std::array<std::uint64_t, 4096> entries;
    const std::uint64_t last = end / page_bytes;
    for (std::uint64_t page = begin / page_bytes; page < last;) {
        const std::size_t wanted = std::min<std::uint64_t>(entries.size(), last - page) * sizeof(std::uint64_t);
        const ssize_t got = ::pread(descriptor, entries.data(), wanted, static_cast<off_t>(page * sizeof(std::uint64_t)));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        const std::size_t count = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
        if (count == 0) return EIO;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t entry = entries[i];
            if ((entry & (kernel::entry_is_present | kernel::entry_is_swapped)) != 0 && (entry & kernel::entry_is_file) == 0) runs.add(page + i, 1);
        }
        page += count;
    }
    return 0;
}

int collect(TrackerKind kind, int descriptor, std::uint64_t begin, std::uint64_t end, RunBuilder& runs) {
    return kind == TrackerKind::scan ? scan(descriptor, begin, end, runs) : read_entries(descriptor, begin, end, runs);
}

/// Whether the kernel offers this way: a page of the stack, just written, must be found.
bool works(TrackerKind kind, int descriptor) {
    const volatile char written = 1;
    const std::uint64_t page = round_down(reinterpret_cast<std::uintptr_t>(&written), page_bytes);
    std::vector<PageRun> found;
    RunBuilder runs(page / page_bytes, found);
    return collect(kind, descriptor, page, page + page_bytes, runs) == 0 && found == std::vector<PageRun>{{0, 1}};
}

TrackerKind wanted_kind(TrackerKind kind) {
    const char* const forced = std::getenv("TAIYEN_PAGE_TRACKER");
    if (kind != TrackerKind::automatic || forced == nullptr || *forced == '\0') return kind;
    if (std::strcmp(forced, "scan") == 0) return TrackerKind::scan;
    if (std::strcmp(forced, "pagemap") == 0) return TrackerKind::pagemap;
    throw Error(errc::invalid_argument, std::string("TAIYEN_PAGE_TRACKER=") + forced + " is unknown; set it to scan or pagemap, or unset it");
}

const char* name_of(TrackerKind kind) { return kind == TrackerKind::scan ? "PAGEMAP_SCAN" : "pagemap"; }

}  // namespace

PageTracker::PageTracker(TrackerKind kind) : kind_(wanted_kind(kind)) {
    if (::sysconf(_SC_PAGESIZE) != static_cast<long>(page_bytes))
        throw Error(errc::unsupported_page_size, "this machine's memory pages are not 4 KiB: written pages can't be told apart");
    Descriptor pagemap{::open(pagemap_path, O_RDONLY | O_CLOEXEC)};
    if (!pagemap.is_open()) {
        const int error = errno;
        throw Error(error == EMFILE || error == ENFILE ? errc::too_many_files : errc::io_error, pagemap_path,
                    std::string("can't be opened: ") + std::strerror(error));
    }
    const bool scan_works = kind_ != TrackerKind::pagemap && works(TrackerKind::scan, pagemap.get());
    if (kind_ == TrackerKind::automatic) kind_ = scan_works ? TrackerKind::scan : TrackerKind::pagemap;
    if (!scan_works && (kind_ == TrackerKind::scan || !works(TrackerKind::pagemap, pagemap.get())))
        throw Error(errc::io_error, pagemap_path, std::string("this kernel doesn't report written pages by ") + name_of(kind_));
    descriptor_ = std::move(pagemap);
}

void PageTracker::written_pages(const void* address, ByteCount length, std::vector<PageRun>& runs) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    TAIYEN_CHECK(begin % page_bytes == 0 && length % page_bytes == 0 && begin <= UINTPTR_MAX - length);
    RunBuilder builder(begin / page_bytes, runs);
    if (const int error = collect(kind_, descriptor_.get(), begin, begin + length, builder); error != 0)
        throw Error(errc::io_error, pagemap_path, std::string("reading written pages by ") + name_of(kind_) + " failed: " + std::strerror(error));
}

std::string_view PageTracker::name() const { return name_of(kind_); }

}  // namespace taiyen::vm
