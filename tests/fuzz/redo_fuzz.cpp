// Redos as nobody writes them: refused, or every entry lies within the bytes and the heap.

#include <cstdint>
#include <cstring>
#include <span>

#include <taiyen/base/check.hpp>

#include "change/redo.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace taiyen;
    using namespace taiyen::change;
    constexpr ByteCount capacity = 1_MiB;
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto view = RedoView::checked(bytes, capacity);
    if (!view) return 0;
    std::size_t entries = 0;
    std::uint64_t sum = 0;
    view->for_each([&](const Entry& entry) {
        ++entries;
        TAIYEN_CHECK(entry.before.empty());
        for (const std::byte byte : entry.after) sum += static_cast<std::uint64_t>(byte);
        for (const std::byte byte : entry.arguments) sum += static_cast<std::uint64_t>(byte);
        for (const char byte : entry.name) sum += static_cast<unsigned char>(byte);
        if (entry.kind == EntryKind::procedure) {
            TAIYEN_CHECK(!entry.name.empty());
            return;
        }
        TAIYEN_CHECK(entry.length > 0 && entry.length <= capacity && entry.where.value <= capacity - entry.length);
        TAIYEN_CHECK(entry.after.empty() || (entry.kind == EntryKind::bytes && entry.after.size() == entry.length));
        if (entry.kind == EntryKind::pages_moved) TAIYEN_CHECK(entry.source.value <= capacity - entry.length);
    });
    TAIYEN_CHECK(entries <= size && sum <= 255 * size);
    return 0;
}
