#pragma once
/// ByteBuffer: bytes that grow at the end, for change sets that may become as large as a heap.
///
/// Unlike a std::vector it doesn't clear what is about to be filled, lets the system move its memory instead of copying it when it grows, and brings memory in by the megabyte where it is
/// large: a set of gigabytes otherwise costs more time in page faults and copies than in its bytes.
/// Thread rule: values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include <taiyen/base/units.hpp>

#include "vm/address_space.hpp"

namespace taiyen::change {

class ByteBuffer {
public:
    ByteBuffer() = default;
    ByteBuffer(const ByteBuffer& other) { append(other.bytes()); }
    ByteBuffer(ByteBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), capacity_(std::exchange(other.capacity_, 0)),
          populated_(std::exchange(other.populated_, 0)) {}
    ByteBuffer& operator=(ByteBuffer other) noexcept {
        swap(*this, other);
        return *this;
    }
    friend void swap(ByteBuffer& left, ByteBuffer& right) noexcept {
        std::swap(left.data_, right.data_);
        std::swap(left.size_, right.size_);
        std::swap(left.capacity_, right.capacity_);
        std::swap(left.populated_, right.populated_);
    }
    ~ByteBuffer() { std::free(data_); }  // NOLINT(cppcoreguidelines-no-malloc): grown by realloc

    std::byte* data() { return data_; }
    ByteCount size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::span<const std::byte> bytes() const { return {data_, size_}; }

    /// Room for `length` more bytes at the end, unspecified. Throws: std::bad_alloc; then nothing changed.
    std::byte* extend(ByteCount length) {
        if (length > capacity_ - size_) {
            if (length > SIZE_MAX / 2 - size_) throw std::bad_alloc();
            reallocate(std::max({size_ + length, capacity_ + capacity_ / 2, ByteCount{64}}));
        }
        size_ += length;
        if (size_ > populated_ && capacity_ >= large) populate();
        return data_ + (size_ - length);
    }
    void append(std::span<const std::byte> bytes) {
        if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
    }
    /// Throws: std::bad_alloc.
    void reserve(ByteCount capacity) {
        if (capacity > capacity_) reallocate(capacity);
    }
    /// Requires: `size` is at most `size()`.
    void truncate(ByteCount size) noexcept { size_ = size; }

private:
    static constexpr ByteCount large = ByteCount{4} << 20U;
    static constexpr ByteCount piece = ByteCount{1} << 20U;

    void reallocate(ByteCount capacity) {
        void* const grown = std::realloc(data_, capacity);  // NOLINT(cppcoreguidelines-no-malloc): it moves pages, not bytes
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<std::byte*>(grown);
        capacity_ = capacity;
    }
    void populate() noexcept {
        const ByteCount first = round_up(reinterpret_cast<std::uintptr_t>(data_) + std::max(populated_, size_ - std::min(size_, piece)), page_bytes) -
                                reinterpret_cast<std::uintptr_t>(data_);
        const ByteCount end = std::min(capacity_, size_ + piece);
        populated_ = end;
        const ByteCount last = round_down(reinterpret_cast<std::uintptr_t>(data_) + end, page_bytes) - reinterpret_cast<std::uintptr_t>(data_);
        if (first < last) vm::populate(data_ + first, last - first);
    }

    std::byte* data_ = nullptr;
    ByteCount size_ = 0;
    ByteCount capacity_ = 0;
    ByteCount populated_ = 0;  ///< up to where memory was brought in ahead; only for large buffers
};

}  // namespace taiyen::change
