#include <taiyen/heap/volatile_heap.hpp>

#include "volatile/volatile_core.hpp"

namespace taiyen {

using heap::throw_closed;

VolatileHeap::VolatileHeap(const VolatileOptions& options) : core_(heap::VolatileCore::open(options)) {}
VolatileHeap::VolatileHeap(std::unique_ptr<heap::VolatileCore> core) noexcept : core_(std::move(core)) {}
VolatileHeap::VolatileHeap(VolatileHeap&&) noexcept = default;
VolatileHeap& VolatileHeap::operator=(VolatileHeap&&) noexcept = default;
VolatileHeap::~VolatileHeap() = default;

void* VolatileHeap::allocate(std::size_t bytes, std::size_t alignment) {
    if (core_ == nullptr) [[unlikely]]
        throw_closed();
    return core_->allocate(bytes, alignment);
}
void* VolatileHeap::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    return core_ == nullptr ? nullptr : core_->try_allocate(bytes, alignment);
}
void VolatileHeap::deallocate(void* block) noexcept {
    if (core_ == nullptr) [[unlikely]] {
        heap::deallocate(block);
        return;
    }
    core_->deallocate(block);
}
void* VolatileHeap::resize(void* block, std::size_t bytes) {
    if (core_ == nullptr) throw_closed();
    return core_->resize(block, bytes);
}
std::size_t VolatileHeap::usable_size(const void* block) const noexcept { return core_ == nullptr ? 0 : core_->usable_size(block); }
bool VolatileHeap::owns(const void* address) const noexcept { return core_ != nullptr && heap::in_durable(*core_, address); }
VolatileStats VolatileHeap::stats() const {
    if (core_ == nullptr) throw_closed();
    return core_->stats();
}
LiveBlocks VolatileHeap::live_blocks(std::size_t listed_max) const {
    if (core_ == nullptr) throw_closed();
    return core_->live_blocks(listed_max);
}
LiveBlocks VolatileHeap::leaked_blocks(std::size_t listed_max) const {
    if (core_ == nullptr) throw_closed();
    return core_->leaked_blocks(listed_max);
}
void VolatileHeap::add_leak_root(const void* begin, std::size_t bytes) {
    if (core_ == nullptr) throw_closed();
    core_->add_leak_root(begin, bytes);
}
void VolatileHeap::remove_leak_root(const void* begin) noexcept {
    if (core_ != nullptr) core_->remove_leak_root(begin);
}
std::size_t VolatileHeap::check_guards() const noexcept { return core_ == nullptr ? 0 : core_->check_guards(); }
void VolatileHeap::trim() noexcept {
    if (core_ != nullptr) core_->trim();
}
void VolatileHeap::close() noexcept { core_.reset(); }
const std::filesystem::path& VolatileHeap::path() const noexcept {
    static const std::filesystem::path none;
    return core_ == nullptr ? none : core_->path();
}
heap::HeapCore* VolatileHeap::core() const noexcept { return core_.get(); }

}  // namespace taiyen
