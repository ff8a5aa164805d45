#include <taiyen/inspect/free_pages.hpp>

#include <vector>

#include <taiyen/base/error.hpp>

#include "heap/survey.hpp"
#include "io/storage.hpp"
#include "store/heap_access.hpp"
#include "transfer/rebase_file.hpp"

namespace taiyen {
namespace {

std::vector<std::filesystem::path> copies_of(const store::HeapFile& file) {
    std::vector<std::filesystem::path> paths{file.files().backing().path()};
    if (file.files().data() != nullptr) paths.push_back(file.files().data()->path());
    return paths;
}

std::uint64_t disk_bytes_of(const std::vector<std::filesystem::path>& paths) {
    std::uint64_t bytes = 0;
    for (const std::filesystem::path& path : paths)
        if (const auto found = io::posix_storage().find(path)) bytes += found->allocated_bytes;
    return bytes;
}

/// Throws: Error{corrupt}.
void require_sound_metadata(const store::HeapFile& file) {
    file.image().will_read_metadata();
    if (!file.read_only() && !file.proofs().metadata_is_sound())
        throw Error(errc::corrupt, file.path(),
                    "a page that says what is free is damaged, and live pages might be taken for free ones; run 'taiyen repair', or restore the heap "
                    "from a copy");
    if (const std::vector<heap::Damage> damages = file.engine().check(1); !damages.empty())
        throw Error(errc::corrupt, file.path(), damages[0].where.value, damages[0].what + "; run 'taiyen verify', restore the heap from a copy");
}

void count_pages(const store::HeapFile& file, FreePagesReport& report) {
    const heap::Survey survey(reinterpret_cast<const std::byte*>(file.ranges().durable), file.ranges().durable_bytes);
    std::uint64_t names = 0;
    survey.visit([&](const heap::PagesInUse& pages) {
        switch (pages.use) {
            case heap::PageUse::small:
            case heap::PageUse::packed: report.pages_in_use += pages.live_bytes != 0 ? 1 : 0; break;
            case heap::PageUse::run: report.pages_in_use += pages.count; break;
            case heap::PageUse::directory: names += pages.count; break;
            case heap::PageUse::released: report.released_pages += pages.count; [[fallthrough]];
            case heap::PageUse::available: report.free_pages += pages.count; break;
            case heap::PageUse::metadata:
            case heap::PageUse::zone:
            case heap::PageUse::growth: break;
        }
        return true;
    });
    const heap::EngineStats stats = file.engine().stats();
    report.live_bytes = stats.live_bytes;
    report.live_blocks = stats.live_blocks;
    report.pages_in_use += names;
    report.pages_needed = names + (stats.live_bytes + page_bytes - 1) / page_bytes;
}

}  // namespace

FreePagesReport give_back_free_pages(const std::filesystem::path& path, const FreePagesOptions& options) {
    const store::OpenMode mode = options.dry_run ? store::OpenMode::read_only : store::OpenMode::open_only;
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, mode, HeapKind::archive, options.files);
    require_sound_metadata(*file);
    FreePagesReport report;
    report.has_history = transfer::has_history(*file);
    count_pages(*file, report);
    const std::vector<std::filesystem::path> copies = copies_of(*file);
    report.disk_bytes_before = disk_bytes_of(copies);
    if (!options.dry_run) file->give_back().take_all(options.progress);
    file->close();
    report.disk_bytes_after = disk_bytes_of(copies);
    return report;
}

}  // namespace taiyen
