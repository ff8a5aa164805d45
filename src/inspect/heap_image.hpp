#pragma once
/// HeapImage: the bytes of a heap that was open for reading, at another address, after it was closed: so that another heap can be opened at its own.
///
/// (I1) Bytes are those that the program would see: what only a journal or log holds is in the image, too.
/// (I2) Nobody changes the files while an image lives: it keeps their locks.
/// Pointers in it mean nothing. Thread rule: a value that doesn't change.

#include <cstring>
#include <memory>

#include "io/storage.hpp"
#include "store/heap_file.hpp"
#include "vm/address_space.hpp"

namespace taiyen::inspect {

class HeapImage {
public:
    /// Requires: open for reading. Throws: HeapFull{address_space}, Error{io_error}. Complexity: constant, but for heaps that were not closed: those are read once.
    explicit HeapImage(const store::HeapFile& heap)
        : memory_(vm::Reservation::anywhere(heap.image().mapped())), backing_(heap.files().backing().handle()),
          data_(heap.files().data() != nullptr ? heap.files().data()->handle() : nullptr) {
        const store::PageFile& view = heap.files().view();
        const ByteCount file_bytes = round_up(view.file().info().size_bytes, page_bytes);
        store::for_each_piece({0}, heap.image().mapped(), [&](HeapOffset at, ByteCount part) {
            const std::uint64_t from = view.layout.file_offset(at);
            const ByteCount there = file_bytes > from ? std::min<ByteCount>(part, file_bytes - from) : 0;
            if (there != 0) view.file().map_private(memory_.data() + at.value, there, from, io::Protection::read_write);
            if (there < part) vm::map_anonymous(memory_.data() + at.value + there, part - there);
        });
        const auto* const live = reinterpret_cast<const std::byte*>(heap.ranges().durable);
        const ByteCount differs_within =
            heap.files().restoration().clean ? page_bytes : heap.image().mapped();  // the first page may have been healed in the view
        for (ByteCount at = 0; at < differs_within; at += page_bytes)
            if (std::memcmp(memory_.data() + at, live + at, page_bytes) != 0) std::memcpy(memory_.data() + at, live + at, page_bytes);
    }

    const std::byte* data() const { return memory_.data(); }

private:
    vm::Reservation memory_;
    std::shared_ptr<io::File> backing_;
    std::shared_ptr<io::File> data_;
};

}  // namespace taiyen::inspect
