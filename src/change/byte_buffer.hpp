#pragma once
/// ByteBuffer: bytes that grow at the end, for change sets that may become as large as a heap.
///
/// Unlike a std::vector it doesn't clear what is about to be filled. A large one has a mapping of its own: memory is brought in by the megabyte, and growing moves page tables instead of
/// bytes. A set of gigabytes otherwise costs more time in page faults and copies than in its bytes. No huge pages: hosts of virtual machines take free ones away first, and giving them back costs more
/// than they save.
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
    ~ByteBuffer() {
        if (is_large())
            vm::unmap_large(data_, capacity_);
        else
            std::free(data_);  // NOLINT(cppcoreguidelines-no-malloc): grown by realloc
    }

    std::byte* data() { return data_; }
    ByteCount size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::span<const std::byte> bytes() const { return {data_, size_}; }

    /// Room for `length` more bytes at the end, unspecified. Throws: std::bad_alloc; then nothing changed.
    std::byte* extend(ByteCount length) {
        if (length > capacity_ - size_) {
            if (length > SIZE_MAX / 4 - size_) throw std::bad_alloc();
            reallocate(std::max({size_ + length, capacity_ + capacity_ / 2, ByteCount{64}}));
        }
        size_ += length;
        if (size_ > populated_ && is_large()) populate();
        return data_ + (size_ - length);
    }
    void append(std::span<const std::byte> bytes) {
        if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
    }
    /// Requires: `size` is at most `size()`.
    void truncate(ByteCount size) noexcept { size_ = size; }

private:
    static constexpr ByteCount large = ByteCount{4} << 20U;
    static constexpr ByteCount piece = ByteCount{1} << 20U;  ///< few enough bytes to be in the processor's cache still when they are filled
    static constexpr ByteCount step = ByteCount{2} << 20U;   ///< of a large one's capacity

    bool is_large() const { return capacity_ >= large; }
    void reallocate(ByteCount capacity) {
        if (capacity >= large) return reallocate_large(round_up(capacity, step));
        void* const grown = std::realloc(data_, capacity);  // NOLINT(cppcoreguidelines-no-malloc): small ones are grown in place often
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<std::byte*>(grown);
        capacity_ = capacity;
    }
    void reallocate_large(ByteCount capacity) {
        std::byte* const grown = is_large() ? vm::grow_large(data_, capacity_, capacity) : vm::map_large(capacity);
        if (grown == nullptr) throw std::bad_alloc();
        if (!is_large()) {
            if (size_ != 0) std::memcpy(grown, data_, size_);
            std::free(data_);  // NOLINT(cppcoreguidelines-no-malloc)
            populated_ = round_up(size_, piece);
        }
        data_ = grown;
        capacity_ = capacity;
    }
    /// The piece that `size_` has come into; what was skipped comes in as it is filled.
    void populate() noexcept {
        const ByteCount end = round_up(size_, piece);
        const ByteCount begin = std::max(populated_, end - piece);
        vm::populate(data_ + begin, end - begin);
        populated_ = end;
    }

    std::byte* data_ = nullptr;
    ByteCount size_ = 0;
    ByteCount capacity_ = 0;
    ByteCount populated_ = 0;  ///< of a large one: up to where memory was brought in
};

}  // namespace taiyen::change
