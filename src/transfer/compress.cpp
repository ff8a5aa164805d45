#include <taiyen/transfer/compress.hpp>

#include <algorithm>
#include <cstring>
#include <ostream>

#include <taiyen/base/error.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/codecs.hpp"
#include "store/heap_access.hpp"
#include "transfer/file_target.hpp"
#include "transfer/live_chunks.hpp"
#include "transfer/pipeline.hpp"
#include "transfer/saved_pages.hpp"
#include "transfer/stream_marks.hpp"
#include "transfer/stream_writer.hpp"
#include "transfer/transfer.hpp"
#include "vm/address_space.hpp"

namespace taiyen {
namespace transfer {
namespace {

template <class Mark>
std::span<const std::byte> bytes_of(const Mark& mark) {
    return std::as_bytes(std::span(&mark, 1));
}

/// A codec makes nearly nothing of zeros, and a body of one run is expanded to where it belongs.
std::uint64_t gap_bytes_for(Codec codec) { return codec == Codec::none ? layout::gap_bytes_min : layout::packed_gap_bytes_min; }

/// A chunk on its way, with memory that is used again.
struct PackedSlot {
    PackedSlot(Codec codec, int level) : body(gap_bytes_for(codec)), packer(codec, level), packed(Packer::bound(codec, ChunkBody::body_bytes_max)) {}

    ChunkPages pages;
    ChunkBody body;
    Packer packer;
    AlignedBuffer packed;
    ByteCount packed_bytes = 0;  ///< 0: the body travels as it is
    std::uint64_t number = 0;
    std::uint64_t body_checksum = 0;
    std::uint64_t seen = 0;

    std::span<const std::byte> stored() const { return packed_bytes != 0 ? packed.first(packed_bytes) : body.bytes(); }
};

layout::StreamHead head_of(const SavedPages& saved) {
    const store::Header& header = saved.header();
    layout::StreamHead head{};
    head.magic = layout::stream_magic;
    head.version = layout::version;
    head.kind = static_cast<std::uint32_t>(!header.log.is_nil()    ? HeapKind::transactional
                                           : !header.data.is_nil() ? HeapKind::snapshot
                                                                   : HeapKind::archive);
    std::memcpy(head.heap_uuid, header.heap.bytes.data(), sizeof head.heap_uuid);
    head.base = header.base;
    head.incompatible_features = header.position_independent ? layout::feature_position_independent : 0;
    head.capacity = header.capacity;
    head.extent = saved.survey().extent() * page_bytes;
    head.serial = saved.serial().value;
    head.names = saved.names();
    seal(head);
    return head;
}

void check_cancelled(const std::stop_token& cancel) {
    if (cancel.stop_requested()) throw Error(errc::cancelled, "compressing was cancelled");
}

/// LZ4 looks back over 64 KiB only, and is so fast that it matters whether a chunk and what becomes of it lie in the processor's second cache; zstd gains from every byte that it has seen.
std::size_t chunk_pages_for(Codec codec) { return codec == Codec::lz4 ? layout::chunk_pages_max / 4 : layout::chunk_pages_max; }

/// How many chunks may be on their way: each takes 2.2 MiB, by LZ4 .6, and zstd keeps up to 1.3 MiB for it at level 3, 4 at 6, 13 at 9, 25 at 12, 34 at 19.
/// Two for each thread, as long as memory stays within its bounds: they leave in order, and while the next one to leave is with a thread that the system has stopped, the others need something to do.
std::size_t slots_for(const CompressOptions& options, unsigned threads) {
    const int level = options.codec == Codec::zstd ? options.level : 0;
    const unsigned most = level <= 3 ? 8 : level <= 6 ? 6 : level <= 9 ? 3 : level <= 12 ? 2 : 1;
    return threads == 1 ? 1 : std::min(2 * threads, most);
}

bool is_compressed_heap(const io::File& file) {
    std::uint64_t magic = 0;
    return file.read(std::as_writable_bytes(std::span(&magic, 1)), 0) == sizeof magic && magic == layout::stream_magic;
}

}  // namespace

Compressed compress_to(store::HeapFile& heap, const ByteSink& sink, const CompressOptions& options) {
    check_level(options.codec, options.level);
    check_cancelled(options.cancel);
    SavedPages saved(heap);
    return compress_pages(saved, head_of(saved), sink, options);
}

Compressed compress_pages(PageSource& source, const layout::StreamHead& head, const ByteSink& sink, const CompressOptions& options) {
    check_level(options.codec, options.level);
    check_cancelled(options.cancel);
    Compressed done;
    done.serial = {head.serial};
    const auto put = [&](std::span<const std::byte> bytes) {
        sink(bytes);
        done.stream_bytes += bytes.size();
    };
    put(bytes_of(head));
    std::uint64_t before = head.checksum;

    const unsigned threads = threads_for(options.threads);
    std::vector<PackedSlot> slots;
    const std::size_t count = slots_for(options, threads);
    slots.reserve(count);
    for (std::size_t i = 0; i < count; ++i) slots.emplace_back(options.codec, options.level);
    LivePages live(source, chunk_pages_for(options.codec));
    std::uint64_t planned = 0;
    run_pipeline(
        slots, threads,
        [&](PackedSlot& slot) {
            check_cancelled(options.cancel);
            slot.number = planned++;
            const bool more = live.next(slot.pages);
            slot.seen = live.bytes_seen();
            return more;
        },
        [&](PackedSlot& slot) {
            slot.body.gather(source, slot.pages);
            slot.packed_bytes = options.codec == Codec::none ? 0 : slot.packer.pack(slot.body.bytes(), slot.packed.span());
            slot.body_checksum = body_checksum(slot.stored(), slot.number);
        },
        [&](PackedSlot& slot) {
            layout::ChunkHead chunk{};
            chunk.magic = layout::chunk_magic;
            chunk.codec = slot.packed_bytes != 0 ? static_cast<layout::StoredCodec>(options.codec) : layout::StoredCodec::none;
            chunk.first_page = slot.pages.pages.front();
            chunk.runs = slot.body.runs();
            chunk.content_bytes = slot.body.content_bytes();
            chunk.stored_bytes = static_cast<std::uint32_t>(slot.stored().size());
            chunk.body_checksum = slot.body_checksum;
            seal(chunk, before);
            before = chunk.checksum;
            put(bytes_of(chunk));
            put(slot.stored());
            done.content_bytes += chunk.content_bytes;
            ++done.chunks;
            if (options.progress) options.progress(slot.seen, head.extent);
        });
    check_cancelled(options.cancel);
    layout::StreamEnd end{};
    end.magic = layout::end_magic;
    end.chunks = done.chunks;
    end.content_bytes = done.content_bytes;
    end.stream_bytes = done.stream_bytes + sizeof end;
    seal(end, before);
    put(bytes_of(end));
    return done;
}

Compressed into_file(io::Storage& storage, const std::filesystem::path& file, const CompressOptions& options, const CompressInto& compress) {
    FileTarget target(storage, file, is_compressed_heap);
    const Compressed done = compress([&](std::span<const std::byte> bytes) { target.write(bytes); }, options);
    target.publish();
    return done;
}

Compressed into_stream(std::ostream& stream, const CompressOptions& options, const CompressInto& compress) {
    const auto sink = [&](std::span<const std::byte> bytes) {
        if (!stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
            throw Error(errc::io_error, "the stream that a heap is compressed into takes no more; what it has got is worth nothing");
    };
    const Compressed done = compress(ByteSink(sink), options);
    if (!stream.flush())
        throw Error(errc::io_error, "the stream that a heap was compressed into could not be flushed; what it has got is worth nothing");
    return done;
}

/// Asks for memory in large pages, where that is much of it.
void expect_stores(std::byte* memory, std::size_t bytes) {
    constexpr std::size_t huge_bytes = std::size_t{2} << 20U;
    const std::uintptr_t begin = round_up(reinterpret_cast<std::uintptr_t>(memory), huge_bytes);
    const std::uintptr_t end = round_down(reinterpret_cast<std::uintptr_t>(memory) + bytes, huge_bytes);
    if (begin + 4 * huge_bytes <= end) vm::prefer_huge_pages(reinterpret_cast<void*>(begin), end - begin);
}

std::vector<std::byte> into_memory(const CompressOptions& options, const CompressInto& compress) {
    std::vector<std::byte> stream;
    // Memory that grows by doubling is written three times; how far the heap is tells what the rest may take. What lies behind may be holes, so it is a moderate amount, or four times as much.
    constexpr double moderate_bytes = 256.0 * (1U << 20U);
    std::uint64_t seen = 0;
    std::uint64_t all = 0;
    CompressOptions told = options;
    told.progress = [&](std::uint64_t done, std::uint64_t total) {
        seen = done;
        all = total;
        if (options.progress) options.progress(done, total);
    };
    const auto sink = [&](std::span<const std::byte> bytes) {
        const std::size_t needed = stream.size() + bytes.size();
        if (needed > stream.capacity()) {
            const double rest = seen != 0 ? 1.05 * static_cast<double>(all) / static_cast<double>(seen) : 1;
            const double most = std::max(4.0, moderate_bytes / static_cast<double>(needed));
            try {
                stream.reserve(static_cast<std::size_t>(static_cast<double>(needed) * std::clamp(rest, 1.5, most)));
            } catch (const std::bad_alloc&) {
                stream.reserve(needed + needed / 2);  // where address space is scarce
            }
            // The first store to each page of it is made here, one after another, while the codec's threads wait.
            expect_stores(stream.data() + stream.size(), stream.capacity() - stream.size());
        }
        stream.insert(stream.end(), bytes.begin(), bytes.end());
    };
    compress(ByteSink(sink), told);
    if (stream.size() < stream.capacity() / 4) stream.shrink_to_fit();
    return stream;
}

Compressed compress_to(store::HeapFile& heap, io::Storage& storage, const std::filesystem::path& file, const CompressOptions& options) {
    return into_file(storage, file, options, [&](const ByteSink& sink, const CompressOptions& how) { return compress_to(heap, sink, how); });
}

}  // namespace transfer

Compressed compress(ArchiveHeap& heap, const ByteSink& sink, const CompressOptions& options) {
    return transfer::compress_to(HeapAccess::file(heap), sink, options);
}

Compressed compress(ArchiveHeap& heap, std::ostream& stream, const CompressOptions& options) {
    return transfer::into_stream(stream, options, [&](const ByteSink& sink, const CompressOptions& how) { return compress(heap, sink, how); });
}

Compressed compress(ArchiveHeap& heap, const std::filesystem::path& file, const CompressOptions& options) {
    return transfer::compress_to(HeapAccess::file(heap), io::posix_storage(), file, options);
}

std::vector<std::byte> compress(ArchiveHeap& heap, const CompressOptions& options) {
    return transfer::into_memory(options, [&](const ByteSink& sink, const CompressOptions& how) { return compress(heap, sink, how); });
}

Compressed compress_file(const std::filesystem::path& heap, const std::filesystem::path& file, const CompressOptions& options,
                         const PersistentOptions& companions) {
    ArchiveHeap opened(open_read_only, heap, companions);
    return compress(opened, file, options);
}

Compressed compress_file(const std::filesystem::path& heap, const ByteSink& sink, const CompressOptions& options,
                         const PersistentOptions& companions) {
    ArchiveHeap opened(open_read_only, heap, companions);
    return compress(opened, sink, options);
}

}  // namespace taiyen
