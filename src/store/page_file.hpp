#pragma once
/// PageFile: one of the files that hold a heap's pages, backing or data: header, checksum table, pages.
///
/// It knows where things lie and nothing of when they are durable. Thread rule: external lock.

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <taiyen/base/error.hpp>

#include "io/storage.hpp"
#include "store/geometry.hpp"
#include "store/header.hpp"
#include "store/page_table.hpp"

namespace taiyen::store {

enum class Via { cache, device };

/// "page 7", "page 7 of the annex".
std::string text_of(PageNumber page);

class PageFile {
public:
    PageFile(std::shared_ptr<io::File> file, const Header& header) : header(header), layout(header.annex.places), file_(std::move(file)) {}

    /// As it stands in the file, or is about to.
    Header header;
    /// Of the chunks begun in the file; the header's, and those of growth that is not saved yet.
    FileLayout layout;

    io::File& file() const { return *file_; }
    const std::shared_ptr<io::File>& handle() const { return file_; }
    const std::filesystem::path& path() const { return file_->path(); }

    /// Calls `part(bytes, offset)` for the parts of these pages that lie in one piece in the file, and where.
    template <class Byte, class F>
    void for_each_part(PageNumber first, std::span<Byte> pages, F&& part) const {
        const HeapOffset start = offset_of(first);
        for_each_piece(start, pages.size(), [&](HeapOffset offset, ByteCount length) {
            part(pages.subspan(offset.value - start.value, length), layout.file_offset(offset));
        });
    }
    /// Pages from `first` on; what lies behind the file's end reads as zeros. Requires for Via::device: 4 KiB-aligned memory.
    void read_pages(PageNumber first, std::span<std::byte> pages, Via via) const;
    /// The same where the device may refuse some of them: those are zeros then, which their checksums tell from what they should be. Returns the first refusal.
    /// Throws: what isn't the device's refusal (Error{io_error}).
    std::optional<Error> try_read_pages(PageNumber first, std::span<std::byte> pages, Via via) const;
    /// Hint: the device may begin to bring them into the page cache.
    void will_read(PageNumber first, std::uint64_t count) const noexcept;
    void write_pages(PageNumber first, std::span<const std::byte> pages);
    /// Hint: the device may begin with them.
    void start_writing(PageNumber first, std::uint64_t count);
    /// Until what `start_writing` began of them is on its way to nowhere but the device's memory. Throws as `sync`.
    void wait_for_writing(PageNumber first, std::uint64_t count);
    void write_zero_pages(PageNumber first, std::uint64_t count);
    void punch_pages(PageNumber first, std::uint64_t count);
    /// The table page as it stands there, sound or not.
    void read_table_page(std::uint64_t index, TablePage& page, Via via) const;
    /// The same where the device may refuse it: zeros then, and its refusal is returned.
    std::optional<Error> try_read_table_page(std::uint64_t index, TablePage& page, Via via) const;
    void write_table_page(const TablePage& page);

    /// Disk blocks for the pages and table pages of [from, from + length). Throws: Error{no_space}.
    void allocate(HeapOffset from, ByteCount length);
    /// The file holds the extents; what it lacked is a hole at its end. Throws: Error{no_space}: it may not become so long.
    void make_long_enough(const Extents& extents);
    /// What a heap grows by is zero, whatever lies there: whoever gives the file greater extents, an open heap or recovery, calls this before a header speaks of them. Makes zero the pages between
    /// the two, and the table pages that cover none in front of them. Returns how many were not. `is_written`: pages that are about to be written anyway, which are left alone.
    /// Complexity: looks at what the file has there that is no hole; none where the file ends at `before`. Durability: with the next sync.
    std::uint64_t clear_growth(const Extents& before, const Extents& after, const std::function<bool(PageNumber)>& is_written = {});
    /// Cuts off, and makes zero, what lies behind the extents: what an interrupted save left there.
    void clear_behind(const Extents& extents);
    void sync() { file_->sync(); }
    /// Writes `header` durably, to its other slot.
    void write_header() { store::write_header(*file_, header); }

    /// Error{corrupt} naming this file, the offset of the page and the remedy.
    Error corrupt_page(PageNumber page, const std::string& why) const;
    /// Throws Error{corrupt} naming this file, the offset of the page and the remedy.
    [[noreturn]] void throw_corrupt_page(PageNumber page, const std::string& why) const;

private:
    std::uint64_t clear_fresh(HeapOffset from, ByteCount length, const std::function<bool(PageNumber)>& is_written);

    std::shared_ptr<io::File> file_;
};

}  // namespace taiyen::store
