#pragma once
/// What a view reads, and nothing outside it: addresses and lengths of a heap that nobody vouches for.

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/view.hpp>

#include "store/heap_file.hpp"

namespace taiyen::inspect {

struct ViewMemory {
    enum class Rot { is_put_right, is_refused };
    ViewMemory(store::HeapFile& heap, std::shared_ptr<const Shape> type, Rot found = Rot::is_put_right)
        : file(heap), shape(std::move(type)), rot(found) {}

    std::uint64_t end() const { return file.image().mapped(); }
    [[noreturn]] void throw_corrupt(std::uint64_t offset, const std::string& what) const {
        throw Error(errc::corrupt, file.path(), offset, what + ": 'taiyen verify' tells what else is damaged");
    }
    bool holds(std::uint64_t offset, std::uint64_t bytes) const { return offset <= end() && bytes <= end() - offset; }
    void require(std::uint64_t offset, std::uint64_t bytes) const {
        if (!holds(offset, bytes)) throw_corrupt(offset, "something leads out of the heap");
    }
    void read(std::uint64_t offset, void* to, std::uint64_t bytes) const {
        require(offset, bytes);
        if (rot == Rot::is_put_right)
            file.prove({offset}, bytes);
        else if (!file.is_sound({offset}, bytes))
            throw_corrupt(offset, "a page is not as it was saved");
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
        const auto to = place(offset, word<std::uint64_t>(offset), distances);
        if (to && *to > end()) throw_corrupt(offset, "a pointer leads out of the heap");
        return to;
    }
    /// The same of what is stored there, wherever it leads.
    std::optional<std::uint64_t> place(std::uint64_t offset, std::uint64_t stored, bool distances) const {
        if (stored == (distances ? 1U : 0U)) return std::nullopt;
        return distances ? offset + stored : stored - file.home();
    }

    store::HeapFile& file;
    const std::shared_ptr<const Shape> shape;
    const Rot rot;
};

/// Of a value that is a bit of a `vector<bool>`: no node of the shape.
inline constexpr std::uint32_t bit_node = 0xffff'ffff;

struct ViewAccess {
    /// Of an object: of several, the array of them. Throws: Error{corrupt}: it ends behind the heap.
    static ViewValue object(store::HeapFile& heap, std::shared_ptr<const Shape> shape, std::uint64_t offset, std::uint64_t count,
                            ViewMemory::Rot rot = ViewMemory::Rot::is_put_right);

    static ViewValue inner(const ViewValue& value, std::uint32_t node, std::uint64_t offset) { return value.inner(node, offset); }
    static ViewValue pair(const ViewValue& value, std::uint32_t node, std::uint64_t first, std::uint64_t second) {
        ViewValue made = value.inner(node, first);
        made.second_ = second;
        return made;
    }
    static ViewValue bit(const ViewValue& value, std::uint64_t offset, unsigned number) {
        ViewValue made = value.inner(bit_node, offset);
        made.second_ = number;
        return made;
    }
    /// As a path names the value of that key; `…` in the place of what is longer.
    static std::string label(const ViewValue& key, std::uint64_t bytes_max);
    static bool is_text(const Shape& shape, std::uint32_t node) noexcept;
    /// Of a map: texts or numbers, by which a path says what it means.
    static bool has_simple_keys(const ViewValue& map) noexcept;
    /// So many bytes of a text, whole characters. Returns whether that is all.
    template <class Take>
    static bool for_each_piece(const ViewValue& value, std::uint64_t bytes_max, Take&& take) {
        bool is_all = true;
        value.for_each_piece([&](std::string_view piece) {
            is_all = piece.size() <= bytes_max;
            std::size_t end = is_all ? piece.size() : bytes_max;
            while (!is_all && end != 0 && (static_cast<unsigned char>(piece[end]) & 0xc0U) == 0x80) --end;
            bytes_max -= end;
            take(piece.substr(0, end));
            return is_all;
        });
        return is_all;
    }
    static const ViewMemory& memory(const ViewValue& value) { return *value.memory_; }
    static bool is_bit(const ViewValue& value) { return value.node_ == bit_node; }
    static const ShapeNode& node(const ViewValue& value) { return value.node(); }
    static std::uint32_t number(const ViewValue& value) { return value.node_; }
    /// A pair whose parts don't lie side by side.
    static bool is_split(const ViewValue& value) { return value.second_ != 0 && value.node_ != bit_node; }
};

/// The elements of one container. Ends after as many as it claims to have.
class ViewWalk {
public:
    virtual ~ViewWalk() = default;
    /// Nothing: there are no more.
    virtual std::optional<ViewValue> next() = 0;
    /// How many are left; nothing: they have to be counted.
    virtual std::optional<std::uint64_t> left() const = 0;
    using TakeBlock = std::function<void(std::uint64_t offset)>;
    using TakeValue = std::function<void(const ViewValue&)>;
    /// Calls `take` with each block that the container itself has, not what its elements have, and `take_value` with what lies in them and is no element. Of a new walk, which then is at its end. Throws: Error{corrupt}.
    virtual void for_each_block(const TakeBlock& take, const TakeValue& take_value) = 0;

    static bool is_known(const Shape& shape, std::uint32_t node) noexcept;
    /// Null: where its elements lie is not known.
    static std::unique_ptr<ViewWalk> of(const ViewValue& container);
};

}  // namespace taiyen::inspect
