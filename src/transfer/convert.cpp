#include <taiyen/transfer/convert.hpp>

#include "transfer/pages_of_file.hpp"

namespace taiyen {
namespace transfer {

namespace fs = std::filesystem;

Expanded convert_to(io::Storage& storage, const fs::path& path, const fs::path& target, const ConvertOptions& options) {
    const PagesOfFile pages(storage, path, options.files, options.drop_history);
    Expanded converted{pages.found(), {}};
    converted.move = make_heap(storage, pages.shape(), target, options,
                               [&](PageTarget& into, const RewritePages& rewrite) { pages.copy(into, rewrite, {options.progress, options.cancel}); });
    return converted;
}

}  // namespace transfer

Expanded convert(const std::filesystem::path& path, const std::filesystem::path& target, const ConvertOptions& options) {
    return transfer::convert_to(io::posix_storage(), path, target, options);
}

}  // namespace taiyen
