#pragma once
/// Image: the span of an open heap and its annex, mapped privately over the files: the program works on copies, and the files never hold anything that was not saved.
///
/// (P1) A page is mapped from the file of `HeapFiles::view`, or it is memory of its own where that file has nothing for it.
/// (P2) What is hidden until it is proven (FirstTouch) nobody has written.
/// Thread rule: external lock; reading ahead may be decided beside it.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <taiyen/store/options.hpp>

#include "heap/core.hpp"
#include "store/annex.hpp"
#include "store/first_touch.hpp"
#include "store/heap_files.hpp"
#include "vm/address_space.hpp"
#include "vm/page_tracker.hpp"

namespace taiyen::store {

class Image {
public:
    /// Core and files must outlive it. `memory`: bytes that the process may have.
    Image(const heap::HeapCore& core, HeapFiles& files, vm::Reservation reservation, const PersistentOptions& options,
          std::function<ByteCount()> memory);

    vm::Reservation& reservation() noexcept { return reservation_; }
    std::byte* begin() const noexcept { return reservation_.data(); }
    /// Bytes of the span.
    ByteCount mapped() const noexcept { return mapped_; }
    void set_mapped(ByteCount bytes) noexcept { mapped_ = bytes; }
    Extents mapped_extents() const { return {mapped_, annex_.mapped()}; }
    Annex& annex() noexcept { return annex_; }
    const Annex& annex() const noexcept { return annex_; }
    bool is_mapped(PageNumber page) const { return sequence_of(page) == Sequence::span || annex_.is_open(); }
    std::span<std::byte> live_page(PageNumber page) const;
    /// Maps [offset, offset + length) of span or annex from the file.
    void map(HeapOffset offset, ByteCount length, io::Protection protection) {
        map_at(live_page(page_of(offset)).data(), offset, length, protection);
    }
    void map_at(std::byte* address, HeapOffset offset, ByteCount length, io::Protection protection) const;

    /// Private copies of span and annex, by page number.
    std::vector<vm::PageRun> written_runs() const;
    std::vector<vm::PageRun> written_span_runs() const { return written_span_runs(mapped_); }
    /// The same of the span's first bytes.
    std::vector<vm::PageRun> written_span_runs(ByteCount bytes) const;
    vm::PageTracker& tracker() noexcept { return tracker_; }
    const vm::PageTracker& tracker() const noexcept { return tracker_; }

    // What is hidden until it is proven: Verify::at_first_touch.
    void hide(std::unique_ptr<FirstTouch> first_touch) noexcept { first_touch_ = std::move(first_touch); }
    /// Null: nothing is hidden.
    FirstTouch* first_touch() const noexcept { return first_touch_.get(); }
    bool is_hidden(PageNumber page) const noexcept { return first_touch_ && sequence_of(page) == Sequence::span && !first_touch_->is_visible(page); }
    /// Throws: Error{corrupt | io_error}: nobody has the page whole; HeapFull{address_space}.
    void open_hidden(PageNumber page) const;
    void uncover(HeapOffset offset, ByteCount length) const;
    /// Whether nobody has the hidden page whole.
    bool is_lost(PageNumber page) const;

    // How pages of the span come in.
    ByteCount memory() const noexcept { return memory_; }
    /// `normal` or `random`. Thread-safe.
    ReadAhead read_ahead() const noexcept { return reads_alone_.load(std::memory_order_relaxed) ? ReadAhead::random : ReadAhead::normal; }
    /// Decides it, by what the span takes and the memory that the process may have.
    void choose_read_ahead() noexcept;
    /// The same; the memory is looked at again.
    void look_at_memory() noexcept;
    /// Hint: that part of the span is about to be read from one end to the other. Where pages come in one by one it is asked for as a whole.
    void will_read(HeapOffset offset, ByteCount length) const noexcept;
    /// The same of all metadata.
    void will_read_metadata() const noexcept;

private:
    const heap::HeapCore& core_;
    HeapFiles& files_;
    vm::Reservation reservation_;
    vm::PageTracker tracker_;
    ByteCount mapped_ = 0;
    Annex annex_;
    std::unique_ptr<FirstTouch> first_touch_;
    const std::function<ByteCount()> find_memory_;
    const ReadAhead wanted_read_ahead_;
    std::atomic<ByteCount> memory_;
    std::mutex read_ahead_mutex_;  ///< one decision at a time
    std::atomic<bool> reads_alone_ = false;
};

}  // namespace taiyen::store
