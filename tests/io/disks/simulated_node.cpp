#include "io/disks/simulated_node.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "base/system_error.hpp"

namespace taiyen::io {

using Node = SimulatedStorage::Node;

Node::SavedPages::Page& Node::SavedPages::save(std::uint64_t page, PageState state, const std::byte* bytes) {
    if (slots_.size() <= page) slots_.resize(page + 1);
    if (used_ == pages_.size()) pages_.emplace_back();
    Page& saved = pages_[used_++];
    slots_[page] = static_cast<std::uint32_t>(used_);
    saved.number = page;
    saved.state = state;
    if (state == PageState::data) {
        if (!saved.bytes) saved.bytes = std::make_unique<std::array<std::byte, page_bytes>>();
        std::memcpy(saved.bytes->data(), bytes, page_bytes);
    }
    return saved;
}

void Node::SavedPages::forget(std::uint64_t page) {
    if (!has(page)) return;
    const std::size_t hole = slots_[page] - 1;
    slots_[page] = 0;
    --used_;
    if (hole != used_) {
        std::swap(pages_[hole], pages_[used_]);
        slots_[pages_[hole].number] = static_cast<std::uint32_t>(hole + 1);
    }
}

void Node::SavedPages::clear() {
    for (const Page& page : pages()) slots_[page.number] = 0;
    used_ = 0;
}

namespace {
constexpr ByteCount smallest_window = ByteCount{16} << 20U;
}

Node::Node(SimulatedStorage& storage, std::uint64_t device, std::uint64_t inode)
    : storage_(storage), device_(device), inode_(inode), descriptor_(::memfd_create("taiyen-simulated", MFD_CLOEXEC)) {
    if (!descriptor_.is_open()) throw_errno(errno, {}, "making a memory file for the simulated disk");
    storage_.nodes_.insert(this);
}

Node::~Node() {
    storage_.nodes_.erase(this);
    storage_.used_bytes_ -= allocated_pages_ * page_bytes;
    if (data_ != nullptr) ::munmap(data_, mapped_bytes_);
}

FileInfo Node::info() const {
    FileInfo info;
    info.kind = FileKind::regular;
    info.size_bytes = size_bytes_;
    info.allocated_bytes = allocated_pages_ * page_bytes;
    info.device = device_;
    info.inode = inode_;
    info.mode = 0600;
    return info;
}

void Node::touch() {
    if (storage_.marked_ && !touched_) {
        touched_ = true;
        marked_size_ = size_bytes_;
        storage_.touched_.push_back(shared_from_this());
    }
}

void Node::will_change(std::uint64_t first_page, std::uint64_t last_page) {
    touch();
    for (std::uint64_t page = first_page; page < last_page; ++page) {
        const PageState state = page_state(page);
        if (storage_.marked_ && !marked_.has(page)) marked_.save(page, state, data_ + page * page_bytes);
        if (!storage_.options_.power_cuts || pending_.has(page)) continue;
        if (const SavedPages::Page* const lost = lost_.find(page)) {
            // Dirty again: the whole page goes to the disk with the next sync.
            pending_.save(page, lost->state, lost->state == PageState::data ? lost->bytes->data() : nullptr);
            lost_.forget(page);
        } else {
            pending_.save(page, state, data_ + page * page_bytes);
        }
    }
}

void Node::set_state(std::uint64_t page, PageState state) {
    if (states_.size() <= page) states_.resize(page + 1, PageState::hole);
    const bool had = states_[page] != PageState::hole;
    const bool has = state != PageState::hole;
    if (had != has) {
        allocated_pages_ += has ? 1 : ~ByteCount{0};
        storage_.used_bytes_ += has ? page_bytes : ~ByteCount{page_bytes} + 1;
    }
    states_[page] = state;
}

/// The memory file is exactly as long as the file, rounded up to a page: touching a mapping behind the end is SIGBUS as it is on a real disk.
void Node::set_size(ByteCount size_bytes) {
    const ByteCount old_length = round_up(size_bytes_, page_bytes);
    const ByteCount new_length = round_up(size_bytes, page_bytes);
    if (new_length > mapped_bytes_) {
        const ByteCount window = std::max<ByteCount>(smallest_window, round_up(new_length * 2, page_bytes));
        void* const mapped = data_ == nullptr ? ::mmap(nullptr, window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_.get(), 0)
                                              : ::mremap(data_, mapped_bytes_, window, MREMAP_MAYMOVE);
        if (mapped == MAP_FAILED) throw_errno(errno, {}, "mapping a file of the simulated disk");
        data_ = static_cast<std::byte*>(mapped);
        mapped_bytes_ = window;
    }
    if (size_bytes < size_bytes_ && size_bytes % page_bytes != 0)
        std::memset(data_ + size_bytes, 0, std::min<ByteCount>(round_up(size_bytes, page_bytes), old_length) - size_bytes);
    if (new_length != old_length && ::ftruncate(descriptor_.get(), static_cast<off_t>(new_length)) != 0)
        throw_errno(errno, {}, "changing the size of a file of the simulated disk");
    size_bytes_ = size_bytes;
}

ByteCount Node::missing_space(std::uint64_t offset, ByteCount length) const {
    ByteCount missing = 0;
    for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + length; ++page)
        missing += page_state(page) == PageState::hole ? page_bytes : 0;
    return missing;
}

void Node::require_space(std::uint64_t offset, ByteCount length) const {
    const ByteCount missing = missing_space(offset, length);
    if (missing != 0 && (storage_.used_bytes_ > storage_.options_.space_bytes || missing > storage_.options_.space_bytes - storage_.used_bytes_))
        throw_errno(ENOSPC, {}, offset, "writing " + std::to_string(length) + " bytes to the simulated disk");
}

void Node::write(std::span<const std::byte> bytes, std::uint64_t offset) {
    if (bytes.empty()) return;
    require_space(offset, bytes.size());
    if (offset + bytes.size() > size_bytes_) resize(offset + bytes.size());
    const std::uint64_t first = offset / page_bytes;
    const std::uint64_t last = round_up(offset + bytes.size(), page_bytes) / page_bytes;
    will_change(first, last);
    std::memcpy(data_ + offset, bytes.data(), bytes.size());
    for (std::uint64_t page = first; page < last; ++page) set_state(page, PageState::data);
}

void Node::allocate(std::uint64_t offset, ByteCount length) {
    if (length == 0) return;
    require_space(offset, length);
    if (offset + length > size_bytes_) resize(offset + length);
    for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + length; ++page) {
        if (page_state(page) == PageState::hole) {
            will_change(page, page + 1);
            set_state(page, PageState::allocated);
        }
    }
}

void Node::punch(std::uint64_t offset, ByteCount length) {
    const std::uint64_t end = std::min<std::uint64_t>(offset + length, size_bytes_);
    if (offset >= end) return;
    will_change(offset / page_bytes, round_up(end, page_bytes) / page_bytes);
    // A last page that the file fills only in part is a whole page on the disk.
    const std::uint64_t whole_end = offset + length >= size_bytes_ ? round_up(end, page_bytes) : round_down(end, page_bytes);
    const std::uint64_t whole_first = round_up(offset, page_bytes);
    std::memset(data_ + offset, 0, end - offset);
    for (std::uint64_t page = whole_first / page_bytes; page < whole_end / page_bytes; ++page) set_state(page, PageState::hole);
}

void Node::resize(ByteCount size_bytes) {
    if (size_bytes == size_bytes_) return;
    touch();
    if (size_bytes < size_bytes_) {
        const std::uint64_t first_gone = round_up(size_bytes, page_bytes) / page_bytes;
        const std::uint64_t end = round_up(size_bytes_, page_bytes) / page_bytes;
        will_change(size_bytes / page_bytes, end);
        for (std::uint64_t page = first_gone; page < end; ++page) set_state(page, PageState::hole);
    }
    set_size(size_bytes);
}

ByteCount Node::read(std::span<std::byte> bytes, std::uint64_t offset) const {
    if (bytes.empty() || offset >= size_bytes_) return 0;
    const ByteCount count = std::min<ByteCount>(bytes.size(), size_bytes_ - offset);
    std::memcpy(bytes.data(), data_ + offset, count);
    return count;
}

ByteCount Node::read_durable(std::span<std::byte> bytes, std::uint64_t offset) const {
    const ByteCount count = read(bytes, offset);
    if (lost_.empty()) return count;
    for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + count; ++page) {
        if (const SavedPages::Page* const lost = lost_.find(page)) {
            const std::uint64_t first = std::max<std::uint64_t>(offset, page * page_bytes);
            const std::uint64_t last = std::min<std::uint64_t>(offset + count, (page + 1) * page_bytes);
            if (lost->state == PageState::data)
                std::memcpy(bytes.data() + (first - offset), lost->bytes->data() + first % page_bytes, last - first);
            else
                std::memset(bytes.data() + (first - offset), 0, last - first);
        }
    }
    return count;
}

void Node::restore(const SavedPages::Page& page) {
    if ((page.number + 1) * page_bytes > round_up(size_bytes_, page_bytes)) {
        set_state(page.number, PageState::hole);
        return;
    }
    std::byte* const at = data_ + page.number * page_bytes;
    if (page.state == PageState::data)
        std::memcpy(at, page.bytes->data(), page_bytes);
    else if (page_state(page.number) == PageState::data)
        std::memset(at, 0, page_bytes);
    set_state(page.number, page.state);
}

void Node::rollback() {
    const ByteCount size = marked_size_;
    if (size_bytes_ != size) {
        // Pages behind the smaller size are among the saved ones or were holes.
        for (std::uint64_t page = round_up(size, page_bytes) / page_bytes; page < states_.size(); ++page) set_state(page, PageState::hole);
        set_size(size);
    }
    for (const SavedPages::Page& page : marked_.pages()) restore(page);
    marked_.clear();
    touched_ = false;
    pending_.clear();
    lost_.clear();
    durable_size_ = size_bytes_;
    exclusive_ = nullptr;
    shared_.clear();
}

void Node::synced() {
    pending_.clear();
    durable_size_ = size_bytes_;
}

void Node::lose(const std::function<bool()>& lost) {
    const bool size_lost = durable_size_ != size_bytes_ && lost();
    touch();
    for (std::uint64_t page = 0; storage_.marked_ && page < states_.size(); ++page)
        if (states_[page] != PageState::hole && !marked_.has(page)) marked_.save(page, states_[page], data_ + page * page_bytes);
    const auto lose_page = [&](const SavedPages::Page& page) {
        // By sectors: a page may come through in part.
        std::array<std::byte, page_bytes> was{};
        if (page.state == PageState::data) was = *page.bytes;
        if ((page.number + 1) * page_bytes > round_up(size_bytes_, page_bytes)) return;
        bool all_lost = true;
        const PageState now = page_state(page.number);
        for (ByteCount sector = 0; sector < page_bytes; sector += sector_bytes)
            if (lost())
                std::memcpy(data_ + page.number * page_bytes + sector, was.data() + sector, sector_bytes);
            else
                all_lost = false;
        set_state(page.number, all_lost ? page.state : (now == PageState::data || page.state == PageState::data ? PageState::data : now));
    };
    if (size_lost && durable_size_ > size_bytes_) set_size(durable_size_);  // a lost truncation: the bytes behind come back from the saved pages
    for (const SavedPages::Page& page : pending_.pages()) lose_page(page);
    for (const SavedPages::Page& page : lost_.pages()) restore(page);
    if (size_lost && durable_size_ < size_bytes_) {
        for (std::uint64_t page = round_up(durable_size_, page_bytes) / page_bytes; page < states_.size(); ++page) set_state(page, PageState::hole);
        set_size(durable_size_);
    }
    if (size_bytes_ % page_bytes != 0) std::memset(data_ + size_bytes_, 0, page_bytes - size_bytes_ % page_bytes);  // (N1)
    pending_.clear();
    lost_.clear();
    durable_size_ = size_bytes_;
    exclusive_ = nullptr;
    shared_.clear();
}

}  // namespace taiyen::io
