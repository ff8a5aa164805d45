#pragma once
/// The engine's view of its span: offsets, announced stores.

#include <cstddef>
#include <cstdint>

#include "heap/engine.hpp"

namespace taiyen::heap {

/// The value, read on its own. Two neighbouring words that were just stored one by one must not be loaded as one vector: the load would wait until both
/// stores have left the processor's buffer.
inline std::uint64_t read_alone(const std::uint64_t& word) {
    std::uint64_t value = word;
    asm("" : "+r"(value));
    return value;
}

class Span {
public:
    Span(std::byte* base, WriteObserver* observer) : base_(base), observer_(observer) {}

    std::byte* base() const { return base_; }
    template <class T>
    T* at(std::uint64_t offset) const {
        return reinterpret_cast<T*>(base_ + offset);
    }
    std::uint64_t offset_of(const void* place) const { return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - base_); }
    bool observed() const { return observer_ != nullptr; }
    /// Call it before the bytes are written.
    void announce(const void* place, ByteCount length) const {
        if (observer_ != nullptr) [[unlikely]]
            observer_->about_to_write({offset_of(place)}, length);
    }
    template <class T>
    void store(T& place, const T& value) const {
        announce(&place, sizeof(T));
        place = value;
    }

private:
    std::byte* base_;
    WriteObserver* observer_;
};

}  // namespace taiyen::heap
