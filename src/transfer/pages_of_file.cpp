#include "transfer/pages_of_file.hpp"

#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "store/heap_file.hpp"
#include "transfer/live_chunks.hpp"
#include "transfer/saved_pages.hpp"

namespace taiyen::transfer {
namespace {

namespace fs = std::filesystem;

/// What compressing would say of the heap.
CompressedHeap look_at(const SavedPages& saved) {
    const store::Header& header = saved.header();
    const HeapKind kind = !header.log.is_nil() ? HeapKind::transactional : !header.data.is_nil() ? HeapKind::snapshot : HeapKind::archive;
    const ByteCount extent = saved.survey().extent() * page_bytes;
    return {kind, header.heap.text(), header.base, header.position_independent, header.capacity, extent, saved.names(), saved.serial()};
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

void copy_pages(SavedPages& saved, PageTarget& target, const RewritePages& rewrite, const CopyOptions& options, const fs::path& path) {
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
            for (std::size_t n = 0; n < together; ++n)
                checksums.push_back(target.checksum_of({first.value + n}, pages.subspan(n * page_bytes, page_bytes)));
            target.write(first, pages, checksums);
            i += together;
        }
        if (options.progress) options.progress(live.bytes_seen(), saved.survey().extent() * page_bytes);
    }
}

}  // namespace

PagesOfFile::PagesOfFile(io::Storage& storage, const fs::path& path, const PersistentOptions& files, bool drop_history)
    : storage_(storage), path_(path), files_(files) {
    const auto file = open();
    if (has_history(*file) && !drop_history)
        throw Error(errc::history_conflict, path, "the heap has a history, and the new one would begin without a past; accept that (drop_history)");
    found_ = look_at(SavedPages(*file));
}

std::shared_ptr<store::HeapFile> PagesOfFile::open() const {
    return store::HeapFile::open(storage_, path_, store::OpenMode::read_only, HeapKind::archive, files_);
}

HeapShape PagesOfFile::shape() const {
    return {found_.kind, found_.address, found_.position_independent, found_.capacity_bytes, found_.extent_bytes, found_.serial, path_};
}

void PagesOfFile::copy(PageTarget& target, const RewritePages& rewrite, const CopyOptions& options) const {
    const auto file = open();
    SavedPages saved(*file);
    const CompressedHeap again = look_at(saved);
    if (again.extent_bytes != found_.extent_bytes || again.address != found_.address || again.capacity_bytes != found_.capacity_bytes ||
        again.serial != found_.serial)
        throw Error(errc::busy, path_, "the heap was changed while it was looked at; try again");
    copy_pages(saved, target, rewrite, options, path_);
}

}  // namespace taiyen::transfer
