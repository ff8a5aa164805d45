#pragma once
/// PageFile: one of the files that hold a heap's pages, backing or data: header, checksum table, pages.
///
/// It knows where things lie and nothing of when they are durable. Thread rule: external lock.

#include <memory>
#include <span>

#include "io/storage.hpp"
#include "store/geometry.hpp"
#include "store/header.hpp"
#include "store/page_table.hpp"

namespace taiyen::store {

enum class Via { cache, device };

class PageFile {
public:
    PageFile(std::shared_ptr<io::File> file, const Header& header) : header(header), file_(std::move(file)) {}

    /// As it stands in the file, or is about to.
    Header header;

    io::File& file() const { return *file_; }
    const std::shared_ptr<io::File>& handle() const { return file_; }
    const std::filesystem::path& path() const { return file_->path(); }

    /// Pages from `first` on; what lies behind the file's end reads as zeros. Requires for Via::device: 4 KiB-aligned memory.
    void read_pages(PageNumber first, std::span<std::byte> pages, Via via) const;
    void write_pages(PageNumber first, std::span<const std::byte> pages);
    /// Hint: the device may begin with them.
    void start_writing(PageNumber first, std::uint64_t count);
    void write_zero_pages(PageNumber first, std::uint64_t count);
    void punch_pages(PageNumber first, std::uint64_t count);
    /// The table page as it stands there, sound or not.
    void read_table_page(std::uint64_t index, TablePage& page, Via via) const;
    void write_table_page(const TablePage& page);

    /// Disk blocks for the pages and table pages of [from, to) of the span. Throws: Error{no_space}.
    void allocate(ByteCount from, ByteCount to);
    void sync() { file_->sync(); }
    /// Writes `header` durably, to its other slot.
    void write_header() { store::write_header(*file_, header); }

    /// Throws Error{corrupt} naming this file, the offset of the page and the remedy.
    [[noreturn]] void throw_corrupt_page(PageNumber page, const std::string& why) const;

private:
    std::shared_ptr<io::File> file_;
};

/// Calls `piece(HeapOffset, ByteCount)` for the parts of [offset, offset + length) that lie contiguously in a file.
template <class F>
void for_each_piece(HeapOffset offset, ByteCount length, F&& piece) {
    while (length > 0) {
        const ByteCount part = length < contiguous_bytes(offset) ? length : contiguous_bytes(offset);
        piece(offset, part);
        offset.value += part;
        length -= part;
    }
}

}  // namespace taiyen::store
