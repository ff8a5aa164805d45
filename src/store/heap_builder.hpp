#pragma once
/// HeapBuilder: the file of a heap whose pages come from elsewhere, one after the other. It gets its name when it is complete.
///
/// The result is what closing an archive heap leaves: one file, clean, no ring.
/// (I1) Nothing has the name before everything is durable; until then there is nothing to clean up after a crash.
/// (I2) What gets a name is a heap: its blocks were checked.
/// (I3) Memory doesn't grow with the heap. Thread rule: one thread.

#include "io/sequential_writer.hpp"
#include "store/page_file.hpp"
#include "store/page_table.hpp"

namespace taiyen::store {

class HeapBuilder {
public:
    struct Shape {
        Uuid heap;
        std::uintptr_t base = 0;
        bool position_independent = false;
        ByteCount capacity = 0;
        ByteCount extent = 0;
        Serial serial;
    };
    /// A draft never gets a name, so nothing of it has to reach the device.
    enum class Purpose { heap, draft };
    /// Requires: bounds as a header's. Throws: Error{not_found | permission | no_space | …}.
    HeapBuilder(io::Storage& storage, std::filesystem::path path, const Shape& shape, Purpose purpose = Purpose::heap);

    const Uuid& heap() const { return file_.header.heap; }
    /// Pages from `first` on, behind all that were written before; `checksums`: of each by page_checksum. What is never written is zero. Throws: Error{no_space | io_error}.
    void write(PageNumber first, std::span<const std::byte> pages, std::span<const std::uint64_t> checksums);
    /// The first page that may be written now.
    PageNumber next() const { return next_; }
    /// Maps the extent's pages, as written so far, over reserved memory; stores there never reach the file. Throws: Error{out_of_address_space | io_error}.
    void map(std::byte* view) const;
    /// Requires: no draft. Durability: the heap is durable under its name on return. Throws: Error{corrupt (the pages are no sound heap) | already_exists | no_space | io_error}: there is nothing of that name then.
    void publish();

private:
    void write_table();
    void check_blocks_and_allocate();

    io::Storage& storage_;
    std::filesystem::path path_;
    Purpose purpose_;
    PageFile file_;
    io::SequentialWriter writer_;  ///< of the pages
    TablePage table_{};
    std::uint64_t table_index_ = 0;
    PageNumber next_{};
};

}  // namespace taiyen::store
