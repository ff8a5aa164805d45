#include <taiyen/transfer/volatile_heaps.hpp>

#include <algorithm>
#include <cstring>
#include <istream>

#include <taiyen/base/error.hpp>

#include "base/uuid.hpp"
#include "transfer/pages_of_file.hpp"
#include "transfer/stream_marks.hpp"
#include "transfer/stream_reader.hpp"
#include "transfer/stream_writer.hpp"
#include "transfer/volatile_pages.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen {
namespace transfer {
namespace {

namespace fs = std::filesystem;

layout::StreamHead head_of_volatile(const VolatilePages& pages) {
    const HeapShape shape = pages.shape();
    const Uuid uuid = random_uuid();
    layout::StreamHead head{};
    head.magic = layout::stream_magic;
    head.version = layout::version;
    head.kind = static_cast<std::uint32_t>(shape.kind);
    head.compatible_features = layout::compatible_volatile;
    head.incompatible_features = shape.position_independent ? layout::feature_position_independent : 0;
    std::memcpy(head.heap_uuid, uuid.bytes.data(), sizeof head.heap_uuid);
    head.base = shape.base;
    head.capacity = shape.capacity;
    head.extent = shape.extent;
    head.names = pages.names();
    seal(head);
    return head;
}

/// A heap that comes into being in memory, and goes where it belongs when it is complete.
class VolatileMaker {
public:
    VolatileMaker(const HeapShape& shape, const VolatileExpandOptions& options) : shape_(shape), options_(options) {
        const MovedHeap moved = shape.moved();
        plan_ = plan_move(moved, options.heap.capacity, options.address, options.defragment, options.pointers);
        if (options.address) check_place(*options.address, plan_.capacity, shape.name);
        if (!plan_.in_one_go && plan_.base != anywhere && options.pointers.conservative) check_distance(shape.base, plan_.base, shape.name);
        if (plan_.base == anywhere) {
            const vm::Reservation old = old_place();
            reserve();
        } else {
            vm::Reservation place = heap::VolatileCore::reserve(plan_.capacity, plan_.base);  // it will be free, or nothing is begun
            if (!meets_old_place(place)) place_ = std::move(place);
        }
    }

    /// Out of pages.
    VolatileHeap make(const FillPages& fill) {
        MemoryPages draft(shape_.extent);
        fill(draft, {});
        MadeSpan host;
        if (plan_.in_one_go) {
            prove(heap::Engine(draft.data(), shape_.capacity, host, nullptr, true), shape_);
            note_one_go();
            return settle(draft);
        }
        std::optional<MemoryPages> image;
        PointerOptions pointers = options_.pointers;
        if (const vm::Reservation home = reserve_view(shape_, pointers); home.address() != shape_.base) {
            image.emplace(moved_image(draft.data(), pointers, {}));
        } else {
            vm::map_anonymous(home.data(), shape_.extent);
            draft.move_to(home.data());
            image.emplace(moved_image(home.data(), pointers, {}));
        }
        return settle(*image);
    }
    /// Out of a heap that goes on.
    VolatileHeap make(const HeapView& view) {
        MemoryPages image = moved_image(view, options_.pointers, options_.progress);
        if (plan_.in_one_go) note_one_go();
        return settle(image);
    }

    RebaseReport take_report() { return std::move(report_); }

private:
    /// Where the old heap lay, if nothing else lies there: the old heap may have to be opened there, or looked at, while the new one has its place.
    vm::Reservation old_place() const {
        try {
            return vm::Reservation(shape_.base, shape_.extent);
        } catch (const Error&) {
            return {};
        }
    }
    /// Then it has to be free again until the old heap was looked at.
    bool meets_old_place(const vm::Reservation& place) const {
        return place.address() < shape_.base + shape_.extent && shape_.base < place.address() + place.size();
    }
    void reserve() {
        place_ = heap::VolatileCore::reserve(plan_.capacity, plan_.base, within_slot(shape_.base, options_.pointers));
        plan_.base = place_.address();
    }
    void note_one_go() {
        report_.old_address = shape_.base;
        report_.new_address = plan_.base;
        report_.moved = report_.old_address != report_.new_address;
        report_.position_independent = shape_.position_independent;
        report_.capacity_bytes = shape_.capacity;
    }
    MemoryPages moved_image(const std::byte* bytes, const PointerOptions& pointers, const Progress& progress) {
        MadeSpan host;
        const heap::Engine engine(const_cast<std::byte*>(bytes), shape_.capacity, host, nullptr, true);
        prove(engine, shape_);
        return moved_image({engine, bytes, shape_.base, shape_.capacity, shape_.name}, pointers, progress);
    }
    MemoryPages moved_image(const HeapView& view, const PointerOptions& pointers, const Progress& progress) {
        HeapMove move(view, plan_, pointers, shape_.is_volatile);
        MemoryPages image(move.extent());
        move.write(image, options_.cancel, progress);
        report_ = move.take_report();
        return image;
    }
    VolatileHeap settle(MemoryPages& image) {
        if (!place_) reserve();
        VolatileOptions options = options_.heap;
        options.capacity = plan_.capacity;
        const auto links = shape_.position_independent ? heap::Links::distances : heap::Links::addresses;
        auto core = heap::VolatileCore::open(options, std::move(place_), links, [&](std::byte* span, heap::SpanHost& host) {
            host.extend(image.extent());
            image.move_to(span, options.numa_node >= 0);
            std::memcpy(span + offsetof(heap::layout::SuperBlock, capacity), &plan_.capacity, sizeof plan_.capacity);
        });
        return heap::VolatileCore::heap_of(std::move(core));
    }

    const HeapShape& shape_;
    const VolatileExpandOptions& options_;
    MovePlan plan_;
    vm::Reservation place_;
    RebaseReport report_;
};

ExpandedVolatile expand_volatile_from(const ByteSource& source, const fs::path& name, bool whole, const VolatileExpandOptions& options) {
    const ReadOptions how{options.expanded_bytes_max, options.threads, options.progress, options.cancel, whole};
    StreamReader reader(source, name, how);
    const HeapShape shape = reader.shape();
    VolatileMaker maker(shape, options);
    VolatileHeap made = maker.make([&](PageTarget& target, const RewritePages& rewrite) { reader.read(target, rewrite); });
    return {Expanded{reader.heap(), maker.take_report()}, std::move(made)};
}

CompressedHeap said_of(const VolatilePages& pages) {
    const HeapShape shape = pages.shape();
    return {HeapKind::volatile_heap, {}, shape.base, shape.position_independent, shape.capacity, shape.extent, pages.names(), {}};
}

}  // namespace

Expanded convert_to(io::Storage& storage, const VolatileHeap& heap, const fs::path& target, const ExpandOptions& options) {
    const VolatilePages pages(heap);
    Expanded converted{said_of(pages), {}};
    converted.move = make_heap(storage, pages.shape(), target, options, pages.view());
    return converted;
}

}  // namespace transfer

Compressed compress(const VolatileHeap& heap, const ByteSink& sink, const CompressOptions& options) {
    transfer::VolatilePages pages(heap);
    return transfer::compress_pages(pages, transfer::head_of_volatile(pages), sink, options);
}

Compressed compress(const VolatileHeap& heap, std::ostream& stream, const CompressOptions& options) {
    return transfer::into_stream(stream, options, [&](const ByteSink& sink, const CompressOptions& how) { return compress(heap, sink, how); });
}

Compressed compress(const VolatileHeap& heap, const std::filesystem::path& file, const CompressOptions& options) {
    return transfer::into_file(io::posix_storage(), file, options,
                               [&](const ByteSink& sink, const CompressOptions& how) { return compress(heap, sink, how); });
}

std::vector<std::byte> compress(const VolatileHeap& heap, const CompressOptions& options) {
    return transfer::into_memory(options, [&](const ByteSink& sink, const CompressOptions& how) { return compress(heap, sink, how); });
}

Expanded convert(const VolatileHeap& heap, const std::filesystem::path& target, const ExpandOptions& options) {
    return transfer::convert_to(io::posix_storage(), heap, target, options);
}

ExpandedVolatile expand_volatile(const ByteSource& source, const VolatileExpandOptions& options) {
    return transfer::expand_volatile_from(source, {}, false, options);
}

ExpandedVolatile expand_volatile(std::istream& stream, const VolatileExpandOptions& options) {
    return expand_volatile(transfer::source_of(stream), options);
}

ExpandedVolatile expand_volatile(std::span<const std::byte> stream, const VolatileExpandOptions& options) {
    return transfer::expand_volatile_from(transfer::source_of(stream), {}, true, options);
}

ExpandedVolatile expand_volatile_file(const std::filesystem::path& file, const VolatileExpandOptions& options) {
    const auto opened = io::posix_storage().open(file, io::Access::read_only);
    return transfer::expand_volatile_from(transfer::source_of(*opened), file, true, options);
}

ExpandedVolatile convert_to_volatile(const std::filesystem::path& path, const VolatileConvertOptions& options) {
    const transfer::PagesOfFile pages(io::posix_storage(), path, options.files, options.drop_history);
    const transfer::HeapShape shape = pages.shape();
    transfer::VolatileMaker maker(shape, options);
    VolatileHeap made = maker.make([&](transfer::PageTarget& target, const transfer::RewritePages& rewrite) {
        pages.copy(target, rewrite, {options.progress, options.cancel});
    });
    return {Expanded{pages.found(), maker.take_report()}, std::move(made)};
}

ExpandedVolatile convert_to_volatile(const VolatileHeap& heap, const VolatileExpandOptions& options) {
    const transfer::VolatilePages pages(heap);
    const transfer::HeapShape shape = pages.shape();
    VolatileExpandOptions elsewhere = options;
    if (!elsewhere.address) elsewhere.address = anywhere;
    transfer::VolatileMaker maker(shape, elsewhere);
    VolatileHeap made = maker.make(pages.view());
    return {Expanded{transfer::said_of(pages), maker.take_report()}, std::move(made)};
}

}  // namespace taiyen
