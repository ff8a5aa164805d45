#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "census.hpp"
#include "demo/console.hpp"
#include "demo/stages.hpp"
#include "demo/ten_lines.hpp"

namespace cad::demo {
namespace {

/// Type and device of the mount that holds `path`, as /proc/self/mountinfo lists it.
std::string file_system_of(const std::filesystem::path& path) {
    const std::string wanted = std::filesystem::canonical(path).string();
    std::ifstream in("/proc/self/mountinfo");
    std::string best = "unknown";
    std::size_t best_length = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::string skipped, mount, field;
        fields >> skipped >> skipped >> skipped >> skipped >> mount;
        while (fields >> field && field != "-") {}
        std::string type, device;
        fields >> type >> device;
        const bool holds = mount == "/" || wanted == mount || wanted.starts_with(mount + "/");
        if (holds && mount.size() >= best_length) {
            best_length = mount.size();
            best = type + " on " + device;
        }
    }
    return best;
}

std::string memory_text() {
    const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
    return grouped(pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) >> 20U) + " MiB of memory";
}

}  // namespace

bool closing_table(const Setting& setting) {
    heading("9. The heap and the machine");
    const taiyen::SnapshotHeap heap(taiyen::open_only, setting.heap_file());
    const Document& document = *heap.find<Document>("document");
    const taiyen::HeapStats stats = heap.stats();
    const taiyen::HeapParameters parameters = taiyen::read_parameters(setting.heap_file());
    char address[32];
    std::snprintf(address, sizeof address, "%#llx", static_cast<unsigned long long>(parameters.address));
    utsname kernel{};
    uname(&kernel);
    row("heap", bytes_text(stats.live_bytes) + " live",
        grouped(stats.live_blocks) + " blocks; " + bytes_text(stats.allocated_bytes) + " on disk, twice");
    row("document", grouped(census_of(document).entities()) + " entities", grouped(document.revision) + " edits since the import");
    row("opens at", address, grouped(stats.capacity_bytes >> 30U) + " GiB of address space");
    row("page tracker", stats.page_tracker, "how written pages are found");
    row("kernel", kernel.release, std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " processors, " + memory_text());
    row("file system", file_system_of(setting.out));
    row("compiler", __VERSION__);
    return verdict("verify()", heap.verify().ok(), grouped(stats.generation) + " saves in the file's life");
}

}  // namespace cad::demo
