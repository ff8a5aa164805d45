#pragma once
/// Memory for direct transfers: aligned to 4 KiB, contents unspecified.

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include <taiyen/base/units.hpp>

namespace taiyen {

class AlignedBuffer {
public:
    AlignedBuffer() = default;
    /// Throws: std::bad_alloc.
    explicit AlignedBuffer(ByteCount size) : bytes_(static_cast<std::byte*>(::operator new(size, std::align_val_t{page_bytes}))), size_(size) {}

    std::byte* data() const { return bytes_.get(); }
    ByteCount size() const { return size_; }
    std::span<std::byte> span() const { return {bytes_.get(), size_}; }
    std::span<std::byte> first(ByteCount count) const { return {bytes_.get(), count}; }

    /// Makes it at least `size` large; contents are lost when it grows.
    void grow(ByteCount size) {
        if (size > size_) *this = AlignedBuffer(size);
    }

private:
    struct Free {
        void operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t{page_bytes}); }
    };
    std::unique_ptr<std::byte, Free> bytes_;
    ByteCount size_ = 0;
};

}  // namespace taiyen
