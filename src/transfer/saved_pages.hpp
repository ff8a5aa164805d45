#pragma once
/// SavedPages: the span of an open heap as its newest save left it, while the program goes on.
///
/// Its bytes come from the files, where a checksum proves them; of a reader's heap whose user crashed, from the private view into which opening brought what the files lack.
/// (I1) As long as it lives nothing is saved: the files hold one save.
/// (I2) What it gives was compared with its checksum; a page that is damaged comes from the other copy, else Error{corrupt}.
/// (I3) The metadata below `survey()` is proven before anything is decided by it.
/// Thread rule: `read` and `survey` are safe; the rest needs an external lock.

#include <mutex>
#include <optional>
#include <vector>

#include "store/heap_file.hpp"
#include "transfer/page_source.hpp"

namespace taiyen::transfer {

class SavedPages final : public PageSource {
public:
    /// Brings the files up to date. Throws: Error{closed | poisoned | scope_open | corrupt | io_error}, HeapFull{address_space}.
    explicit SavedPages(store::HeapFile& heap);
    SavedPages(const SavedPages&) = delete;
    SavedPages& operator=(const SavedPages&) = delete;

    const heap::Survey& survey() const override { return *survey_; }
    const store::Header& header() const { return heap_.files().view().header; }
    Serial serial() const { return serial_; }
    /// Named objects.
    std::uint64_t names() const { return names_; }
    /// The page's checksum; 0: it is zero. Cheap in ascending order.
    std::uint64_t checksum_of(PageNumber page) override;
    /// Whether the page's bytes are in memory only, so that no checksum speaks of it.
    bool is_private(PageNumber page) const;
    /// Pages from `first` on. `checksums`: theirs, as checksum_of gave them.
    void read(PageNumber first, std::span<std::byte> pages, std::span<const std::uint64_t> checksums) const override;

private:
    std::uint64_t entry(PageNumber page);
    void load_table_page(std::uint64_t index);
    /// Proves the page's bytes; those that are damaged come from the other file. Throws: Error{corrupt}.
    void heal(PageNumber page, std::span<std::byte> bytes, std::uint64_t checksum) const;
    void find_view();
    void prove_bases();
    void prove_metadata();
    /// The other file, if there is one.
    const store::PageFile* other() const { return heap_.files().data() == &heap_.files().view() ? nullptr : heap_.files().data(); }

    /// The same, if it holds the same save.
    const store::PageFile* twin() const { return other() != nullptr && other()->header.generation == header().generation ? other() : nullptr; }

    store::HeapFile& heap_;
    std::unique_lock<std::mutex> saves_;
    ByteCount extent_ = 0;
    Serial serial_;
    std::uint64_t names_ = 0;
    std::vector<vm::PageRun> private_;  ///< ascending
    vm::Reservation mapped_;            ///< our own view; empty: a reader's heap is one
    std::byte* view_ = nullptr;
    std::optional<heap::Survey> survey_;
    std::optional<std::uint64_t> table_index_;
    store::TablePage table_{};
};

}  // namespace taiyen::transfer
