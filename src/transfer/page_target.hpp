#pragma once
/// PageTarget: where the pages of a heap that comes into being go: into a file (FilePages), or into memory (MemoryPages).
///
/// Thread rule: `checksum_of` is safe; the rest: one thread.

#include <cstring>
#include <span>

#include "store/heap_builder.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer {

class PageTarget {
public:
    virtual ~PageTarget() = default;
    /// What `write` wants to know about the page.
    virtual std::uint64_t checksum_of(PageNumber page, std::span<const std::byte> bytes) const = 0;
    /// Pages from `first` on, behind all that were written before. What is never written is zero. Throws: Error{no_space | io_error}.
    virtual void write(PageNumber first, std::span<const std::byte> pages, std::span<const std::uint64_t> checksums) = 0;
    /// The first page that may be written now.
    virtual PageNumber next() const = 0;
};

class FilePages final : public PageTarget {
public:
    explicit FilePages(store::HeapBuilder& builder) : builder_(builder) {}
    std::uint64_t checksum_of(PageNumber page, std::span<const std::byte> bytes) const override {
        return store::page_checksum(bytes, page, builder_.heap());
    }
    void write(PageNumber first, std::span<const std::byte> pages, std::span<const std::uint64_t> checksums) override {
        builder_.write(first, pages, checksums);
    }
    PageNumber next() const override { return builder_.next(); }

private:
    store::HeapBuilder& builder_;
};

/// Memory of its own, with nothing in it that was not written.
class MemoryPages final : public PageTarget {
public:
    /// Throws: HeapFull{address_space}.
    explicit MemoryPages(ByteCount extent) : memory_(vm::Reservation::anywhere(extent)) { vm::map_anonymous(memory_.data(), extent); }
    std::uint64_t checksum_of(PageNumber, std::span<const std::byte>) const override { return 0; }
    void write(PageNumber first, std::span<const std::byte> pages, std::span<const std::uint64_t>) override {
        std::memcpy(memory_.data() + offset_of(first).value, pages.data(), pages.size());
        next_ = {first.value + pages.size() / page_bytes};
    }
    PageNumber next() const override { return next_; }

    std::byte* data() const { return memory_.data(); }
    ByteCount extent() const { return memory_.size(); }
    /// What was written goes there, over anonymous memory; nothing is left here. `copied`: the memory there stays what it is.
    void move_to(std::byte* place, bool copied = false) {
        if (copied || !vm::move_mapping(memory_.data(), place, memory_.size())) std::memcpy(place, memory_.data(), next_.value * page_bytes);
        memory_ = {};
    }

private:
    vm::Reservation memory_;
    PageNumber next_{};
};

}  // namespace taiyen::transfer
