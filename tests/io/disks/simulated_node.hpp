#pragma once
/// A file on the simulated disk: its bytes in a memory file of the kernel, what each page is, what is durable of it, and what it was when the disk was marked.
///
/// Thread rule: the disk's lock.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/descriptor.hpp"
#include "io/disks/simulated_storage.hpp"

namespace taiyen::io {

/// (N1) Bytes of the memory file behind `size_bytes` up to its page's end are zero.
class SimulatedStorage::Node final : public std::enable_shared_from_this<Node> {
public:
    enum class PageState : std::uint8_t { hole, allocated, data };

    Node(SimulatedStorage& storage, std::uint64_t device, std::uint64_t inode);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node();

    FileInfo info() const;
    ByteCount size_bytes() const { return size_bytes_; }
    /// The content, `size_bytes` long, until it grows.
    const std::byte* data() const { return data_; }
    int descriptor() const { return descriptor_.get(); }
    PageState page_state(std::uint64_t page) const { return page < states_.size() ? states_[page] : PageState::hole; }

    void write(std::span<const std::byte> bytes, std::uint64_t offset);
    void allocate(std::uint64_t offset, ByteCount length);
    void punch(std::uint64_t offset, ByteCount length);
    void resize(ByteCount size_bytes);
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const;
    ByteCount read_durable(std::span<std::byte> bytes, std::uint64_t offset) const;

private:
    friend class SimulatedStorage;
    friend class SimulatedFile;

    /// Former contents of pages. Slots are kept for reuse.
    class SavedPages {
    public:
        struct Page {
            std::uint64_t number = 0;
            PageState state = PageState::hole;
            std::unique_ptr<std::array<std::byte, page_bytes>> bytes;  ///< unspecified unless `state` is data
        };
        bool has(std::uint64_t page) const { return page < slots_.size() && slots_[page] != 0; }
        Page& save(std::uint64_t page, PageState state, const std::byte* bytes);
        Page* find(std::uint64_t page) { return has(page) ? &pages_[slots_[page] - 1] : nullptr; }
        const Page* find(std::uint64_t page) const { return has(page) ? &pages_[slots_[page] - 1] : nullptr; }
        void forget(std::uint64_t page);
        void clear();
        bool empty() const { return used_ == 0; }
        std::span<Page> pages() { return std::span(pages_).first(used_); }

    private:
        std::vector<std::uint32_t> slots_;  ///< by page: index into pages_ plus 1
        std::vector<Page> pages_;
        std::size_t used_ = 0;
    };

    void set_size(ByteCount size_bytes);
    void will_change(std::uint64_t first_page, std::uint64_t last_page);
    void touch();
    void set_state(std::uint64_t page, PageState state);
    void restore(const SavedPages::Page& page);
    void rollback();
    void synced();
    void lose(const std::function<bool()>& lost);
    ByteCount missing_space(std::uint64_t offset, ByteCount length) const;
    void require_space(std::uint64_t offset, ByteCount length) const;

    SimulatedStorage& storage_;
    std::uint64_t device_;
    std::uint64_t inode_;
    Descriptor descriptor_;
    std::byte* data_ = nullptr;
    ByteCount mapped_bytes_ = 0;
    ByteCount size_bytes_ = 0;
    std::vector<PageState> states_;
    ByteCount allocated_pages_ = 0;

    bool touched_ = false;
    ByteCount marked_size_ = 0;
    SavedPages marked_;

    ByteCount durable_size_ = 0;  ///< with power_cuts
    SavedPages pending_;          ///< durable contents of pages written since the last sync
    SavedPages lost_;             ///< durable contents of pages whose sync failed

    const void* exclusive_ = nullptr;  ///< who holds the lock
    std::set<const void*> shared_;
};

}  // namespace taiyen::io
