#include "store/heap_paths.hpp"

#include <thread>

#include <taiyen/base/error.hpp>

namespace taiyen::store {

HeapPaths heap_paths(const std::filesystem::path& path, const PersistentOptions& options) {
    const auto beside = [&](const char* suffix) { return std::filesystem::path(path.string() + suffix); };
    const std::filesystem::path data = beside(".data");
    const bool data_is_beside = options.data_file.empty() || options.data_file == data;
    return {path, data_is_beside ? data : options.data_file, beside(".journal"), options.log_file.empty() ? beside(".log") : options.log_file,
            data_is_beside};
}

bool is_still_at(io::Storage& storage, const io::File& file, const std::filesystem::path& path) {
    const auto found = storage.find(path);
    const io::FileInfo info = file.info();
    return found && found->inode == info.inode && found->device == info.device;
}

std::shared_ptr<io::File> open_locked(io::Storage& storage, const std::filesystem::path& path, bool read_only) {
    const auto until = std::chrono::steady_clock::now() + lock_goes_within.load();
    for (;;) {
        std::shared_ptr<io::File> file = storage.open(path, read_only ? io::Access::read_only : io::Access::read_write);
        while (!file->try_lock(read_only ? io::Lock::shared : io::Lock::exclusive)) {
            if (std::chrono::steady_clock::now() >= until)
                throw Error(errc::busy, path,
                            "the heap is open elsewhere; close it there first, or have it copied there: taiyen::compress(heap, file)");
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        if (is_still_at(storage, *file, path)) return file;
    }
}

}  // namespace taiyen::store
