#pragma once
/// What a view reads, and nothing outside it: addresses and lengths of a heap that nobody vouches for.

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/view.hpp>

#include "store/heap_file.hpp"

namespace taiyen::inspect {

struct ViewMemory {
    ViewMemory(store::HeapFile& heap, std::shared_ptr<const Shape> type) : file(heap), shape(std::move(type)) {}

    std::uint64_t end() const { return file.image().mapped(); }
    [[noreturn]] void throw_corrupt(std::uint64_t offset, const std::string& what) const {
        throw Error(errc::corrupt, file.path(), offset, what + ": 'taiyen verify' tells what else is damaged");
    }
    void require(std::uint64_t offset, std::uint64_t bytes) const {
        if (offset > end() || bytes > end() - offset) throw_corrupt(offset, "something leads out of the heap");
    }
    void read(std::uint64_t offset, void* to, std::uint64_t bytes) const {
        require(offset, bytes);
        file.prove({offset}, bytes);
        std::memcpy(to, reinterpret_cast<const void*>(file.ranges().durable + offset), bytes);
    }
    template <class T>
    T word(std::uint64_t offset) const {
        T value;
        read(offset, &value, sizeof value);
        return value;
    }
    /// Where the pointer that is stored there leads to, an end of memory at most; nothing: it is null.
    std::optional<std::uint64_t> target(std::uint64_t offset, bool distances) const {
        const auto stored = word<std::uint64_t>(offset);
        if (stored == (distances ? 1U : 0U)) return std::nullopt;
        const std::uint64_t to = distances ? offset + stored : stored - file.ranges().durable;
        if (to > end()) throw_corrupt(offset, "a pointer leads out of the heap");
        return to;
    }

    store::HeapFile& file;
    const std::shared_ptr<const Shape> shape;
};

struct ViewAccess {
    /// Of an object: of several, the array of them. Throws: Error{corrupt}: it ends behind the heap.
    static ViewValue object(store::HeapFile& heap, std::shared_ptr<const Shape> shape, std::uint64_t offset, std::uint64_t count);

    static ViewValue inner(const ViewValue& value, std::uint32_t node, std::uint64_t offset) { return value.inner(node, offset); }
    static ViewValue pair(const ViewValue& value, std::uint32_t node, std::uint64_t first, std::uint64_t second) {
        ViewValue made = value.inner(node, first);
        made.second_ = second;
        return made;
    }
    static const ViewMemory& memory(const ViewValue& value) { return *value.memory_; }
    static const ShapeNode& node(const ViewValue& value) { return value.node(); }
};

/// The elements of one container. Ends after as many as it claims to have.
class ViewWalk {
public:
    virtual ~ViewWalk() = default;
    /// Nothing: there are no more.
    virtual std::optional<ViewValue> next() = 0;
    /// How many are left; nothing: they have to be counted.
    virtual std::optional<std::uint64_t> left() const = 0;

    static bool is_known(const ViewValue& container) noexcept;
    /// Null: where its elements lie is not known.
    static std::unique_ptr<ViewWalk> of(const ViewValue& container);
};

}  // namespace taiyen::inspect
