#include "store/heap_builder.hpp"

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "heap/engine.hpp"
#include "heap/survey.hpp"
#include "vm/address_space.hpp"

namespace taiyen::store {
namespace {

class FixedSpan final : public heap::SpanHost {
public:
    void extend(ByteCount) override {}
};

Header header_of(const HeapBuilder::Shape& shape) {
    Header header;
    header.heap = shape.heap;
    header.file = random_uuid();
    header.base = shape.base;
    header.position_independent = shape.position_independent;
    header.capacity = shape.capacity;
    header.extent = shape.extent;
    header.serial = shape.serial;
    header.clean = true;
    return header;
}

}  // namespace

HeapBuilder::HeapBuilder(io::Storage& storage, std::filesystem::path path, const Shape& shape, Purpose purpose)
    : storage_(storage), path_(std::move(path)), purpose_(purpose), file_(storage.create_unnamed(io::directory_of(path_)), header_of(shape)),
      writer_(file_.file()) {
    // Behind the end a touch of `map` would be a signal; and a file that only grows by what is appended keeps blocks behind its end on XFS (speculative preallocation, which fallocate makes permanent).
    file_.file().resize(file_.layout.file_bytes_for(file_.header.extents()));
}

void HeapBuilder::write(PageNumber first, std::span<const std::byte> pages, std::span<const std::uint64_t> checksums) {
    TAIYEN_CHECK(first >= next_ && pages.size() == checksums.size() * page_bytes && offset_of(first).value + pages.size() <= file_.header.extent);
    file_.for_each_part(first, pages, [&](std::span<const std::byte> part, std::uint64_t offset) {
        purpose_ == Purpose::draft ? file_.file().write(part, offset) : writer_.write(part, offset);
    });
    for (std::size_t i = 0; i < checksums.size(); ++i) {
        const TablePlace place = place_of({first.value + i});
        if (place.table_page != table_index_) {
            write_table();
            table_index_ = place.table_page;
        }
        table_.entries[place.entry] = checksums[i];
    }
    next_ = {first.value + checksums.size()};
}

void HeapBuilder::write_table() {
    if (!is_zero(std::as_bytes(std::span(table_.entries)))) {
        table_.index = table_index_;
        table_.checksum = table_page_checksum(table_, heap());
        file_.header.table_root += mix(table_index_, table_.checksum);
        file_.write_table_page(table_);
    }
    table_ = {};
}

void HeapBuilder::map(std::byte* view) const {
    const ByteCount extent = file_.header.extent;
    for_each_piece({0}, extent, [&](HeapOffset offset, ByteCount length) {
        file_.file().map_private(view + offset.value, length, file_.layout.file_offset(offset), io::Protection::read);
    });
    vm::prepare_heap_mapping(view, extent);
}

void HeapBuilder::check_blocks_and_allocate() {
    const ByteCount extent = file_.header.extent;
    const vm::Reservation view = vm::Reservation::anywhere(extent);
    map(view.data());
    try {
        FixedSpan host;
        const heap::Engine engine(view.data(), file_.header.capacity, host, nullptr, true);
        if (engine.extent() != extent) throw Error(errc::corrupt, path_, "its first page speaks of another size");
        if (const auto damages = engine.check(1); !damages.empty())
            throw Error(errc::corrupt, path_, file_.layout.file_offset(damages.front().where), damages.front().what);
    } catch (const Error& error) {
        if (error.code() != errc::corrupt && error.code() != errc::unsupported_version) throw;
        throw Error(errc::corrupt, path_, error.offset(), "what was to become this heap is none: " + sentence_of(error) + "; get another copy");
    }
    // As after a save: what the engine may hand out has disk blocks.
    const heap::Survey survey(view.data(), file_.header.capacity);
    std::uint64_t from = 0;
    const auto allocate_to = [&](std::uint64_t end) { file_.allocate(offset_of(PageNumber{from}), (end - from) * page_bytes); };
    survey.visit_released([&](heap::PageRun run) {
        allocate_to(run.first);
        from = run.first + run.count;
    });
    allocate_to(extent / page_bytes);
}

void HeapBuilder::publish() {
    TAIYEN_CHECK(purpose_ == Purpose::heap);
    writer_.finish();
    write_table();
    check_blocks_and_allocate();
    write_first_headers(file_.file(), file_.header);
    const auto name = [&] { storage_.publish(file_.file(), path_); };
    if (planted(Bug::expanded_named_before_sync)) name();
    file_.sync();
    if (!planted(Bug::expanded_named_before_sync)) name();
    storage_.sync_directory(io::directory_of(path_));
}

}  // namespace taiyen::store
