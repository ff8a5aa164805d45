#include <taiyen/transfer/convert.hpp>

#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "transfer/heap_maker.hpp"
#include "transfer/live_chunks.hpp"
#include "transfer/rebase_file.hpp"
#include "transfer/stream_marks.hpp"

namespace taiyen {
namespace transfer {
namespace {

namespace fs = std::filesystem;

/// What compressing would say of the heap.
struct Found {
    CompressedHeap heap;
    HeapShape shape;
};

Found look_at(const SavedPages& saved, const fs::path& path) {
    const store::Header& header = saved.header();
    const HeapKind kind = !header.log.is_nil() ? HeapKind::transactional : !header.data.is_nil() ? HeapKind::snapshot : HeapKind::archive;
    const ByteCount extent = saved.survey().extent() * page_bytes;
    return {{kind, header.heap.text(), header.base, header.position_independent, header.capacity, extent, saved.names(), saved.serial()},
            {kind, header.base, header.position_independent, header.capacity, extent, saved.serial(), path}};
}

/// The page without what is nobody's.
void clear_free_bytes(const heap::Survey& survey, std::uint64_t page, std::span<std::byte> bytes) {
    unsigned kept = 0;
    survey.for_each_live_range(static_cast<heap::Page>(page), [&](unsigned from, unsigned to) {
        std::memset(bytes.data() + kept, 0, from - kept);
        kept = to;
    });
    std::memset(bytes.data() + kept, 0, page_bytes - kept);
}

void copy_pages(SavedPages& saved, store::HeapBuilder& builder, const RewritePages& rewrite, const ConvertOptions& options, const fs::path& path) {
    const AlignedBuffer buffer(layout::chunk_pages_max * page_bytes);
    LivePages live(saved);
    std::vector<std::uint64_t> checksums;
    for (ChunkPages chunk; live.next(chunk);) {
        if (options.cancel.stop_requested()) throw Error(errc::cancelled, path, "converting was cancelled");
        const std::size_t count = chunk.pages.size();
        for (std::size_t i = 0; i < count;) {
            std::size_t together = 1;
            while (i + together < count && chunk.pages[i + together] == chunk.pages[i] + together) ++together;
            const PageNumber first{chunk.pages[i]};
            const auto pages = buffer.first(together * page_bytes);
            saved.read(first, pages, std::span(chunk.checksums).subspan(i, together));
            for (std::size_t n = 0; n < together; ++n) clear_free_bytes(saved.survey(), first.value + n, pages.subspan(n * page_bytes, page_bytes));
            if (rewrite) rewrite(first, pages);
            checksums.clear();
            for (std::size_t n = 0; n < together; ++n) {
                checksums.push_back(store::page_checksum(pages.subspan(n * page_bytes, page_bytes), {first.value + n}, builder.heap()));
            }
            builder.write(first, pages, checksums);
            i += together;
        }
        if (options.progress) options.progress(live.bytes_seen(), saved.survey().extent() * page_bytes);
    }
}

}  // namespace

Expanded convert_to(io::Storage& storage, const fs::path& path, const fs::path& target, const ConvertOptions& options) {
    const auto open = [&] { return store::HeapFile::open(storage, path, store::OpenMode::read_only, HeapKind::archive, options.files); };
    const Found found = [&] {
        const auto file = open();
        if (has_history(*file) && !options.drop_history)
            throw Error(errc::history_conflict, path,
                        "the heap has a history, and the new one would begin without a past; accept that (drop_history)");
        return look_at(SavedPages(*file), path);
    }();
    Expanded converted{found.heap, {}};
    // Opened twice: in between, its address is free for whatever has to be tried there.
    converted.move = make_heap(storage, found.shape, target, options, [&](store::HeapBuilder& builder, const RewritePages& rewrite) {
        const auto file = open();
        SavedPages saved(*file);
        const Found again = look_at(saved, path);
        if (again.shape.extent != found.shape.extent || again.shape.base != found.shape.base || again.shape.capacity != found.shape.capacity ||
            again.shape.serial != found.shape.serial)
            throw Error(errc::busy, path, "the heap was changed while it was looked at; try again");
        copy_pages(saved, builder, rewrite, options, path);
    });
    return converted;
}

}  // namespace transfer

Expanded convert(const std::filesystem::path& path, const std::filesystem::path& target, const ConvertOptions& options) {
    return transfer::convert_to(io::posix_storage(), path, target, options);
}

}  // namespace taiyen
