#include <taiyen/inspect/view.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <taiyen/inspect/objects.hpp>

#include "base/json.hpp"
#include "inspect/view_memory.hpp"
#include "store/heap_access.hpp"

namespace taiyen {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint32_t unit_at(const std::vector<std::byte>& bytes, std::size_t at, std::size_t width) {
    std::uint32_t unit = 0;
    std::memcpy(&unit, bytes.data() + at, width);
    return unit;
}

/// Of a text that goes on: how many of its bytes are whole characters.
std::size_t whole_bytes(const std::vector<std::byte>& bytes, std::size_t width) {
    const std::size_t size = bytes.size();
    if (width == 2) {
        const std::uint32_t last = unit_at(bytes, size - 2, 2);
        return last >= 0xd800 && last < 0xdc00 ? size - 2 : size;
    }
    for (std::size_t back = 1; width == 1 && back <= 3; ++back) {
        const auto byte = std::to_integer<unsigned>(bytes[size - back]);
        if ((byte & 0xc0U) == 0x80) continue;
        const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        return length > back ? size - back : size;
    }
    return size;
}

std::string text_of(const std::vector<std::byte>& bytes, std::size_t width) {
    if (width == 1) return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += width) {
        std::uint32_t c = unit_at(bytes, at, width);
        if (width == 2 && c >= 0xd800 && c < 0xdc00 && at + width < bytes.size()) {
            const std::uint32_t low = unit_at(bytes, at + width, width);
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10U) + (low - 0xdc00);
                at += width;
            }
        }
        append_utf8(text, c);
    }
    return text;
}

std::string digits_of(Wide value, bool is_negative) {
    std::string digits;
    do {
        digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value != 0);
    return is_negative ? "-" + digits : digits;
}

template <class T>
std::string digits_of_floating(T value) {
    std::array<char, 128> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

bool leads_on(ShapeKind kind) { return kind == ShapeKind::pointer || kind == ShapeKind::optional || kind == ShapeKind::variant; }

}  // namespace

const ShapeNode& ViewValue::node() const noexcept {
    static const ShapeNode bit{ShapeKind::boolean, false, false, 1, 1, 0, {}, {}};
    return node_ == inspect::bit_node ? bit : memory_->shape->nodes[node_];
}
ShapeKind ViewValue::kind() const noexcept { return node().kind; }
std::string ViewValue::type() const { return node_ == inspect::bit_node ? "bool" : memory_->shape->type(node_); }
std::uint64_t ViewValue::bytes() const noexcept { return node().bytes; }

void ViewValue::throw_other(const char* wanted) const {
    throw Error(errc::type_mismatch, memory_->file.path(), offset_, "what is stored there is a " + type() + ", not " + wanted);
}

void ViewValue::throw_unheld() const {
    throw Error(errc::type_mismatch, memory_->file.path(), offset_,
                "what is stored there is " + digits() + ", a " + type() + ", which the type that was asked for doesn't hold");
}

// ---- in place

std::size_t ViewValue::parts() const noexcept {
    switch (kind()) {
        case ShapeKind::structure:
        case ShapeKind::pair:
        case ShapeKind::tuple: return node().parts.size();
        case ShapeKind::array: return node().count;
        default: return 0;
    }
}

ViewValue ViewValue::part(std::size_t number) const {
    if (number >= parts())
        throw Error(errc::invalid_argument, memory_->file.path(), offset_, "a " + type() + " has " + std::to_string(parts()) + " parts");
    if (kind() == ShapeKind::array) {
        const std::uint32_t element = node().parts.front().node;
        return inner(element, offset_ + number * memory_->shape->nodes[element].bytes);
    }
    const ShapePart& part = node().parts[number];
    return inner(part.node, number == 1 && second_ != 0 ? second_ : offset_ + part.offset);
}

const std::string& ViewValue::part_name(std::size_t number) const {
    static const std::string none;
    static const std::string of_pairs[] = {"first", "second"};
    if (kind() == ShapeKind::pair) return number < 2 ? of_pairs[number] : none;
    return kind() == ShapeKind::structure && number < node().parts.size() ? node().parts[number].name : none;
}

std::optional<std::size_t> ViewValue::alternative() const {
    if (kind() != ShapeKind::variant) throw_other("a variant");
    std::uint64_t longest = 0;
    std::uint64_t alignment = 1;
    for (const ShapePart& part : node().parts) {
        longest = std::max(longest, memory_->shape->nodes[part.node].bytes);
        alignment = std::max<std::uint64_t>(alignment, memory_->shape->nodes[part.node].alignment);
    }
    const std::uint64_t at = offset_ + round_up(longest, alignment);
    const bool is_wide = node().parts.size() >= 256;
    const std::size_t index = is_wide ? memory_->word<std::uint16_t>(at) : memory_->word<std::uint8_t>(at);
    if (index == (is_wide ? 0xffffU : 0xffU)) return std::nullopt;
    if (index >= node().parts.size()) memory_->throw_corrupt(at, "a variant holds none of its alternatives");
    return index;
}

std::optional<ViewValue> ViewValue::target() const {
    const auto first = [&] { return node().parts.front().node; };
    if (kind() == ShapeKind::pointer) {
        const auto to = memory_->target(offset_, node().distances);
        if (!to) return std::nullopt;
        memory_->require(*to, memory_->shape->nodes[first()].bytes);
        return inner(first(), *to);
    }
    if (kind() == ShapeKind::optional) {
        const std::uint64_t at = offset_ + memory_->shape->nodes[first()].bytes;
        if (memory_->word<std::uint8_t>(at) == 0) return std::nullopt;
        return inner(first(), offset_);
    }
    const auto index = alternative();  // a variant, or it throws
    return index ? std::optional(inner(node().parts[*index].node, offset_)) : std::nullopt;
}

std::optional<std::uint64_t> ViewValue::outside() const {
    if (kind() != ShapeKind::pointer) throw_other("a pointer");
    const auto stored = memory_->word<std::uint64_t>(offset_);
    const auto to = memory_->place(offset_, stored, node().distances);
    const std::uint64_t bytes = memory_->shape->nodes[node().parts.front().node].bytes;
    return !to || memory_->holds(*to, bytes) ? std::nullopt : std::optional(stored);
}

ViewValue ViewValue::held() const {
    ViewValue here = *this;
    for (unsigned steps = 0; leads_on(here.kind()); ++steps) {
        auto to = here.target();
        if (!to || steps == 64)
            throw Error(errc::not_found, memory_->file.path(), here.offset_, "what is stored there is a " + here.type() + ", which leads to nothing");
        here = std::move(*to);
    }
    return here;
}

// ---- elements

bool ViewValue::has_elements() const noexcept { return node_ != inspect::bit_node && inspect::ViewWalk::is_known(*memory_->shape, node_); }

ViewElements ViewValue::elements() const {
    auto walk = inspect::ViewWalk::of(*this);
    if (!walk) throw_other("a container whose elements can be told");
    return ViewElements(std::move(walk));
}

std::uint64_t ViewValue::size() const {
    const auto walk = inspect::ViewWalk::of(*this);
    if (!walk) throw_other("a container whose elements can be told");
    if (const auto left = walk->left()) return *left;
    std::uint64_t count = 0;
    while (walk->next()) ++count;
    return count;
}

ViewElements::ViewElements(std::unique_ptr<inspect::ViewWalk> walk) : walk_(std::move(walk)) { advance(); }
ViewElements::ViewElements(ViewElements&&) noexcept = default;
ViewElements& ViewElements::operator=(ViewElements&&) noexcept = default;
ViewElements::~ViewElements() = default;

void ViewElements::advance() {
    std::optional<ViewValue> next = walk_->next();
    now_.reset();
    if (next) now_.emplace(std::move(*next));
}

// ---- numbers and texts

ViewNumber ViewValue::number() const {
    const ShapeNode& type = node();
    if (type.kind == ShapeKind::enumeration) return inner(type.parts.front().node, offset_).number();
    ViewNumber number;
    if (type.kind == ShapeKind::floating_point) {
        number.kind = ViewNumber::Kind::floating;
        if (type.bytes == sizeof(float))
            number.floating = memory_->word<float>(offset_);
        else if (type.bytes == sizeof(double))
            number.floating = memory_->word<double>(offset_);
        else if (type.bytes == sizeof(long double))
            memory_->read(offset_, &number.floating, 10);  // the others are padding
        else
            throw_other("a number that can be told");
        return number;
    }
    const bool is_signed = type.kind == ShapeKind::signed_integer;
    if (!is_signed && type.kind != ShapeKind::unsigned_integer && type.kind != ShapeKind::boolean && type.kind != ShapeKind::character)
        throw_other("a number");
    Wide value = 0;
    memory_->read(offset_, &value, type.bytes);
    if (node_ == inspect::bit_node) value = value >> second_ & 1U;
    const unsigned bits = static_cast<unsigned>(type.bytes) * 8;
    const bool is_negative = is_signed && (value >> (bits - 1) & 1U) != 0;
    if (is_negative && bits < 128) value |= ~Wide{0} << bits;
    if (is_negative) {
        if (~value >> 63U != 0) throw_other("a number of 64 bits");
        number.kind = ViewNumber::Kind::negative;
        number.negative = static_cast<std::int64_t>(value);
        return number;
    }
    if (value >> 64U != 0) throw_other("a number of 64 bits");
    number.natural = static_cast<std::uint64_t>(value);
    return number;
}

std::string ViewValue::digits() const {
    const ShapeNode& type = node();
    if (type.kind == ShapeKind::enumeration) return inner(type.parts.front().node, offset_).digits();
    const bool is_integer = type.kind == ShapeKind::signed_integer || type.kind == ShapeKind::unsigned_integer;
    if (is_integer && type.bytes == sizeof(Wide)) {
        const auto value = memory_->word<Wide>(offset_);
        const bool is_negative = type.kind == ShapeKind::signed_integer && value >> 127U != 0;
        return digits_of(is_negative ? -value : value, is_negative);
    }
    const ViewNumber value = number();
    if (value.kind == ViewNumber::Kind::negative) return std::to_string(value.negative);
    if (value.kind == ViewNumber::Kind::natural) return std::to_string(value.natural);
    if (type.bytes == sizeof(float)) return digits_of_floating(static_cast<float>(value.floating));
    if (type.bytes == sizeof(double)) return digits_of_floating(static_cast<double>(value.floating));
    return digits_of_floating(value.floating);
}

bool ViewValue::is_text() const noexcept {
    if (kind() == ShapeKind::character) return true;
    return inspect::ViewAccess::is_text(*memory_->shape, node_);
}

/// In UTF-8, until `take` has enough of it; a piece ends with a whole character.
void ViewValue::for_each_piece(const std::function<bool(std::string_view)>& take) const {
    constexpr std::uint64_t piece_bytes = 64_KiB;
    if (!is_text()) throw_other("a text");
    std::uint64_t at = offset_;
    std::uint64_t width = bytes();
    std::uint64_t left = 1;
    if (kind() != ShapeKind::character) {
        width = memory_->shape->nodes[node().parts.front().node].bytes;
        left = size();
        if (left != 0) at = elements().begin()->offset();
    }
    for (bool ends = left == 0; !ends;) {
        const std::uint64_t units = std::min(left, piece_bytes / width);
        std::vector<std::byte> bytes(units * width);
        memory_->read(at, bytes.data(), bytes.size());
        ends = units == left;
        if (kind() == ShapeKind::array) {
            std::size_t end = 0;
            while (end < bytes.size() && unit_at(bytes, end, width) != 0) end += width;
            ends |= end != bytes.size();
            bytes.resize(end);
        }
        if (!ends) bytes.resize(whole_bytes(bytes, width));
        at += bytes.size();
        left -= bytes.size() / width;
        if (!bytes.empty() && !take(text_of(bytes, width))) return;
    }
}

std::string ViewValue::text() const {
    std::string text;
    for_each_piece([&](std::string_view piece) {
        text += piece;
        return true;
    });
    return text;
}

// ---- heaps

std::vector<std::string> View::names() const {
    std::vector<std::string> names;
    for (StoredObject& object : stored_objects(*heap_)) names.push_back(std::move(object.name));
    return names;
}

std::optional<ViewValue> View::find(std::string_view name) const {
    std::vector<StoredObject> objects = stored_objects(*heap_);
    const auto found = std::ranges::find(objects, name, &StoredObject::name);
    if (found == objects.end()) return std::nullopt;
    return value(*found);
}

ViewValue View::value(const StoredObject& object) const {
    store::HeapFile& file = HeapAccess::file(*heap_);
    if (!object.shape) {
        throw Error(errc::not_found, file.path(), object.offset,
                    "the heap doesn't know the shape of '" + object.name + "', a " + object.type +
                        ": a program that knows the type stores it when it asks for the object and then changes the heap");
    }
    return inspect::ViewAccess::object(file, object.shape, object.offset, object.count);
}

bool inspect::ViewAccess::is_text(const Shape& shape, std::uint32_t node) noexcept {
    if (node == bit_node) return false;
    const ShapeNode& type = shape.nodes[node];
    if (type.kind == ShapeKind::character) return true;
    const bool is_row = type.kind == ShapeKind::string || type.kind == ShapeKind::array;
    return is_row && shape.nodes[type.parts.front().node].kind == ShapeKind::character && ViewWalk::is_known(shape, node);
}

bool inspect::ViewAccess::has_simple_keys(const ViewValue& map) noexcept {
    const Shape& shape = *memory(map).shape;
    const ShapeNode& pair = shape.nodes[node(map).parts.front().node];
    if (pair.kind != ShapeKind::pair) return false;
    const std::uint32_t key = pair.parts.front().node;
    const ShapeKind kind = shape.nodes[key].kind;
    return is_text(shape, key) || (kind >= ShapeKind::boolean && kind <= ShapeKind::enumeration && kind != ShapeKind::character);
}

ViewValue inspect::ViewAccess::object(store::HeapFile& heap, std::shared_ptr<const Shape> shape, std::uint64_t offset, std::uint64_t count,
                                      ViewMemory::Rot rot) {
    const ShapeNode& one = shape->nodes.front();
    const std::uint64_t bytes = std::max<std::uint64_t>(one.bytes, 1);
    std::uint32_t node = 0;
    if (count != 1) {
        if (count > heap.image().mapped() / bytes)
            ViewMemory(heap, shape).throw_corrupt(offset, "a name has more objects than the heap has room for");
        auto several = std::make_shared<Shape>(*shape);
        node = static_cast<std::uint32_t>(several->nodes.size());
        several->nodes.push_back({ShapeKind::array, false, false, one.bytes * count, one.alignment, count, {}, {{{}, 0, 0}}});
        shape = std::move(several);
    }
    auto memory = std::make_shared<const ViewMemory>(heap, std::move(shape), rot);
    memory->require(offset, memory->shape->nodes[node].bytes);
    return {std::move(memory), node, offset};
}

}  // namespace taiyen
