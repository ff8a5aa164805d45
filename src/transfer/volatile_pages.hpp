#pragma once
/// VolatilePages: what is live in a volatile heap, as pages that the engine of every heap understands.
///
/// The small blocks of a volatile heap lie in segments that its engine takes for large blocks. So metadata is made anew, with each block where it lies (NewPlaces); bytes of blocks come from the heap itself.
/// Thread rule: as PageSource; nobody is in the heap as long as it lives.

#include <taiyen/heap/volatile_heap.hpp>

#include "transfer/heap_maker.hpp"
#include "transfer/new_places.hpp"
#include "transfer/page_source.hpp"

namespace taiyen::transfer {

class VolatilePages final : public PageSource {
public:
    /// Throws: Error{closed | invalid_argument | corrupt}, HeapFull{address_space}.
    explicit VolatilePages(const VolatileHeap& heap);

    const heap::Survey& survey() const override { return *survey_; }
    std::uint64_t checksum_of(PageNumber page) override;
    void read(PageNumber first, std::span<std::byte> pages, std::span<const std::uint64_t> checksums) const override;

    std::uint64_t names() const { return names_; }
    HeapShape shape() const;
    HeapView view() const;

private:
    const std::byte* page_at(PageNumber page) const;

    const std::filesystem::path path_;  ///< empty
    const heap::HeapCore* core_ = nullptr;
    std::uint64_t names_ = 0;
    std::optional<NewPlaces> places_;
    std::optional<heap::Survey> survey_;
    /// Pages of metadata, names among them, that were made anew.
    struct Made {
        std::uint64_t first;
        std::uint64_t count;
    };
    std::vector<Made> made_;  ///< ascending
};

}  // namespace taiyen::transfer
