#include <taiyen/transfer/resize.hpp>

#include "store/heap_access.hpp"

namespace taiyen {

std::size_t set_capacity(const std::filesystem::path& path, std::size_t capacity, const PersistentOptions& files) {
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, store::OpenMode::open_only, HeapKind::archive, files);
    const std::size_t before = file->engine().capacity();
    file->save_resized(capacity);
    file->close();
    return before;
}

}  // namespace taiyen
