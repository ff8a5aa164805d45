#include "transfer/shape_types.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include <taiyen/base/error.hpp>

#include "base/text.hpp"
#include "heap/word_walk.hpp"
#include "shape/btree_form.hpp"
#include "shape/container_bytes.hpp"
#include "shape/hidden_words.hpp"
#include "shape/types_with.hpp"

namespace taiyen::transfer {
namespace {

/// Of a variant: behind the number of the alternative that it holds.
std::uint64_t index_end(const Shape& shape, const ShapeNode& variant) {
    std::uint64_t longest = 0;
    std::uint64_t alignment = 1;
    for (const ShapePart& part : variant.parts) {
        longest = std::max(longest, shape.nodes[part.node].bytes);
        alignment = std::max<std::uint64_t>(alignment, shape.nodes[part.node].alignment);
    }
    return round_up(longest, alignment) + (variant.parts.size() >= 256 ? 2 : 1);
}

/// Whether nothing of it is known but that there is something: what may hold a pointer of which nobody can say where.
bool is_unknown(const Shape& shape, std::uint32_t number) {
    const ShapeNode& node = shape.nodes[number];
    switch (node.kind) {
        case ShapeKind::array: return shape.nodes[node.parts.front().node].bytes == 0;
        case ShapeKind::structure: return shape::has_hidden_words(shape, number);
        case ShapeKind::opaque: return node.bytes == 0 || node.bytes >= sizeof(std::uint64_t);
        case ShapeKind::other_container: return true;
        case ShapeKind::pointer: return node.distances;
        case ShapeKind::optional: return shape.nodes[node.parts.front().node].bytes >= node.bytes;
        case ShapeKind::variant: return index_end(shape, node) > node.bytes;
        default: break;
    }
    if (node.kind < ShapeKind::string) return false;
    if (node.distances || !shape::is_known_container(shape, number)) return true;
    return node.kind >= ShapeKind::btree_map && node.kind <= ShapeKind::ordered_multiset && !shape::BTreeForm(shape, node).is_sound();
}

bool may_hold_pointers(const ShapeNode& node) { return node.kind == ShapeKind::pointer || node.kind >= ShapeKind::string; }

/// Of each node, whether equality of such keys is that of addresses.
std::vector<bool> addresses_in(const Shape& shape) {
    std::vector<bool> all(shape.nodes.size());
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (std::size_t i = 0; i != all.size(); ++i) {
            const ShapeNode& node = shape.nodes[i];
            if (all[i] || !holds_in_place(node.kind) || node.kind == ShapeKind::structure) {
                is_more |= !all[i] && node.kind == ShapeKind::pointer;
                all[i] = all[i] || node.kind == ShapeKind::pointer;
                continue;
            }
            all[i] = std::ranges::any_of(node.parts, [&](const ShapePart& part) { return all[part.node]; });
            is_more |= all[i];
        }
    }
    return all;
}

}  // namespace

/// A node of a shape, as steps know it.
struct ShapeTypes::Type {
    const Known* known;
    std::uint32_t node;
};

struct ShapeTypes::Known {
    explicit Known(Shape of) : shape(std::move(of)), types(shape.nodes.size()), with_pointers(shape.nodes.size()), addresses(addresses_in(shape)) {
        shape::TypesWith with(&may_hold_pointers);
        for (std::uint32_t node = 0; node != types.size(); ++node) {
            types[node] = {this, node};
            with_pointers[node] = with(shape, node);
        }
    }
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;

    const Shape shape;
    std::vector<Type> types;
    std::vector<bool> with_pointers;
    std::vector<bool> addresses;
};

/// One object, and all that lies in it or belongs to its containers.
class ShapeWalk {
public:
    static void step(void* object, PointerWalk& walk, const void* type) {
        const auto& known = *static_cast<const ShapeTypes::Type*>(type);
        ShapeWalk(*known.known, walk).value(known.node, reinterpret_cast<std::uintptr_t>(object));
    }
    static PointerWalk::Step step_of(const ShapeTypes::Known& known, std::uint32_t node) { return {&step, &known.types[node]}; }

private:
    using Address = std::uintptr_t;

    ShapeWalk(const ShapeTypes::Known& known, PointerWalk& walk) : known_(known), walk_(walk) {}

    const ShapeNode& node_of(std::uint32_t number) const { return known_.shape.nodes[number]; }
    static std::uint64_t word(Address at) { return heap::word_at(at); }
    template <class T>
    static T number(Address at) {
        T value;
        std::memcpy(&value, reinterpret_cast<const void*>(at), sizeof value);
        return value;
    }
    static const void* pointer_to(Address at) { return reinterpret_cast<const void*>(at); }
    void link(Address at) { walk_.pointer(pointer_to(at)); }
    void end(Address at, Address first) { walk_.end(pointer_to(at), pointer_to(first)); }
    void that(bool holds) const {
        if (!holds) walk_.throw_unknown_layout(container_);
    }
    void elements(Address first, std::uint64_t count, std::uint64_t bytes_each, std::uint64_t alignment) {
        walk_.count_values(1);
        walk_.reach_elements(pointer_to(first), count, bytes_each, alignment, container_);
    }
    /// A node of a container: its links, then the element.
    void element_node(Address node, std::uint64_t links_bytes, const ShapeNode& element) {
        const std::uint64_t alignment = std::max<std::uint64_t>(8, element.alignment);
        elements(node, 1, round_up(round_up(links_bytes, element.alignment) + element.bytes, alignment), alignment);
    }
    std::uint64_t distance(Address first, Address last, std::uint64_t bytes_each) const {
        that(first <= last && (last - first) % bytes_each == 0);
        return (last - first) / bytes_each;
    }

    void value(std::uint32_t number, Address at);
    void several(std::uint32_t number, Address at, std::uint64_t count) {
        if (!known_.with_pointers[number]) return;
        for (std::uint64_t i = 0; i != count; ++i) value(number, at + i * node_of(number).bytes);
    }
    void key_of(std::uint32_t number, Address at) {
        if (!known_.addresses[number] || !walk_.within_key(true)) return;
        value(number, at);
        walk_.within_key(false);
    }
    /// Of a map or a set.
    void keyed_element(const ShapeNode& container, Address at) {
        const std::uint32_t element = container.parts.front().node;
        if (is_map(container.kind))
            key_of(node_of(element).parts.front().node, at);
        else
            key_of(element, at);
        value(element, at);
    }
    void tell_keys(const ShapeNode& container, bool hashed) {
        const std::uint32_t element = container.parts.front().node;
        const std::uint32_t key = is_map(container.kind) ? node_of(element).parts.front().node : element;
        if (known_.addresses[key]) walk_.keyed_by_address(hashed);
    }

    void in_place(const ShapeNode& node, Address at);
    void pointer(const ShapeNode& node, Address at);
    void text(const ShapeNode& node, Address end_of);
    void vector(const ShapeNode& node, Address end_of);
    void bits(Address end_of);
    void deque(const ShapeNode& node, Address end_of);
    void list(const ShapeNode& node, Address end_of);
    void forward_list(const ShapeNode& node, Address end_of);
    void tree(const ShapeNode& node, Address end_of);
    void table(const ShapeNode& node, Address end_of);
    void flat_table(const ShapeNode& node, Address end_of);
    void btree(const ShapeNode& node, Address end_of);

    const ShapeTypes::Known& known_;
    PointerWalk& walk_;
    const char* container_ = "";
};

void ShapeWalk::value(std::uint32_t number, Address at) {
    if (!known_.with_pointers[number]) return;
    const ShapeNode& node = node_of(number);
    walk_.count_values(1);
    const PointerWalk::Deeper deeper(walk_);
    if (node.kind == ShapeKind::pointer) return pointer(node, at);
    if (walk_.is_deep() && !known_.addresses[number]) return walk_.later(reinterpret_cast<void*>(at), node.bytes, step_of(known_, number));
    const char* const outer = container_;
    const Address end_of = at + node.bytes;
    switch (node.kind) {
        case ShapeKind::string: text(node, end_of); break;
        case ShapeKind::vector: vector(node, end_of); break;
        case ShapeKind::bit_vector: bits(end_of); break;
        case ShapeKind::deque: deque(node, end_of); break;
        case ShapeKind::list: list(node, end_of); break;
        case ShapeKind::forward_list: forward_list(node, end_of); break;
        case ShapeKind::map:
        case ShapeKind::multimap:
        case ShapeKind::set:
        case ShapeKind::multiset: tree(node, end_of); break;
        case ShapeKind::unordered_map:
        case ShapeKind::unordered_multimap:
        case ShapeKind::unordered_set:
        case ShapeKind::unordered_multiset: table(node, end_of); break;
        case ShapeKind::flat_hash_map:
        case ShapeKind::flat_hash_set: flat_table(node, end_of); break;
        default:
            if (node.kind >= ShapeKind::btree_map)
                btree(node, end_of);
            else
                in_place(node, at);
    }
    container_ = outer;
}

void ShapeWalk::in_place(const ShapeNode& node, Address at) {
    if (node.kind == ShapeKind::array) return several(node.parts.front().node, at, node.count);
    if (node.kind == ShapeKind::optional) {
        container_ = "flag of an optional";
        const auto has_value = number<std::uint8_t>(at + node_of(node.parts.front().node).bytes);
        that(has_value <= 1);
        if (has_value != 0) value(node.parts.front().node, at);
        return;
    }
    if (node.kind != ShapeKind::variant) {
        for (const ShapePart& part : node.parts) value(part.node, at + part.offset);
        return;
    }
    container_ = "variant";
    const Address index_at = at + index_end(known_.shape, node) - (node.parts.size() >= 256 ? 2 : 1);
    const bool is_wide = node.parts.size() >= 256;
    const std::uint64_t index = is_wide ? number<std::uint16_t>(index_at) : number<std::uint8_t>(index_at);
    if (index == (is_wide ? 0xffffU : 0xffU)) return;
    that(index < node.parts.size());
    value(node.parts[index].node, at);
}

void ShapeWalk::pointer(const ShapeNode& node, Address at) {
    if (!walk_.plain_pointer(pointer_to(at))) return;
    const std::uint32_t target = node.parts.front().node;
    void* const to = reinterpret_cast<void*>(word(at));
    if (!known_.with_pointers[target]) return walk_.part(to, node_of(target).bytes);
    walk_.part(to, 0);  // whatever it is: walk_shapes looks at the rest
    if (word(at) % node_of(target).alignment == 0) walk_.later(to, node_of(target).bytes, step_of(known_, target));
}

/// {text, length, capacity, unused}, or {text, length, the text itself}.
void ShapeWalk::text(const ShapeNode& node, Address end_of) {
    container_ = "string";
    const ShapeNode& letter = node_of(node.parts.front().node);
    const Address first = word(end_of - 32);
    const std::uint64_t length = word(end_of - 24);
    link(end_of - 32);
    if (first == end_of - 16) return that(length < 16 / letter.bytes);
    const std::uint64_t room = word(end_of - 16);
    that(length <= room && room < UINT64_MAX / 16);
    elements(first, room + 1, letter.bytes, letter.alignment);
}

void ShapeWalk::vector(const ShapeNode& node, Address end_of) {
    container_ = "vector";
    const std::uint32_t number = node.parts.front().node;
    const ShapeNode& element = node_of(number);
    const Address first = word(end_of - 24);
    const std::uint64_t count = distance(first, word(end_of - 16), element.bytes);
    const std::uint64_t room = distance(first, word(end_of - 8), element.bytes);
    that(count <= room && (first != 0 || room == 0));
    if (first == 0) return;
    link(end_of - 24);
    end(end_of - 16, first);
    end(end_of - 8, first);
    elements(first, room, element.bytes, element.alignment);
    several(number, first, count);
}

/// Of bits: {first word, bit}, {last word, bit}, end of room.
void ShapeWalk::bits(Address end_of) {
    container_ = "vector<bool>";
    const Address first = word(end_of - 40);
    const std::uint64_t room = distance(first, word(end_of - 8), 8);
    that(distance(first, word(end_of - 24), 8) <= room && (first != 0 || room == 0));
    if (first == 0) return;
    link(end_of - 40);
    end(end_of - 24, first);
    end(end_of - 8, first);
    elements(first, room, 8, 8);
}

/// {map, places, first {current, begin, end, place}, last {…}}.
void ShapeWalk::deque(const ShapeNode& node, Address end_of) {
    container_ = "deque";
    const std::uint32_t number = node.parts.front().node;
    const ShapeNode& element = node_of(number);
    const std::uint64_t each = element.bytes < 512 ? 512 / element.bytes : 1;
    const Address map = word(end_of - 80);
    const std::uint64_t places = word(end_of - 72);
    struct Iterator {
        Address current, begin, end, place;
    };
    const auto iterator = [](Address at) { return Iterator{word(at), word(at + 8), word(at + 16), word(at + 24)}; };
    const Iterator first = iterator(end_of - 64);
    const Iterator last = iterator(end_of - 32);
    if (map == 0 && first.place == 0) return;
    elements(map, places, 8, 8);
    that(distance(map, first.place, 8) <= distance(map, last.place, 8) && distance(map, last.place, 8) < places);
    link(end_of - 80);
    for (Address place = first.place; place <= last.place; place += 8) {
        elements(word(place), each, element.bytes, element.alignment);
        link(place);
    }
    const auto ends = [&](const Iterator& at, Address stands) {
        that(word(at.place) == at.begin && distance(at.begin, at.end, element.bytes) == each && distance(at.begin, at.current, element.bytes) < each);
        link(stands);
        link(stands + 8);
        end(stands + 16, at.begin);
        link(stands + 24);
    };
    ends(first, end_of - 64);
    ends(last, end_of - 32);
    that(first.place != last.place || first.current <= last.current);
    if (!known_.with_pointers[number]) return;
    for (Address place = first.place; place <= last.place; place += 8) {
        const Address begin = place == first.place ? first.current : word(place);
        const Address stop = place == last.place ? last.current : word(place) + each * element.bytes;
        several(number, begin, (stop - begin) / element.bytes);
    }
}

/// {next, previous, count}; nodes alike.
void ShapeWalk::list(const ShapeNode& node, Address end_of) {
    container_ = "list";
    const std::uint32_t number = node.parts.front().node;
    const ShapeNode& element = node_of(number);
    const Address header = end_of - 24;
    link(header);
    link(header + 8);
    Address before = header;
    for (Address at = word(header); at != header; before = at, at = word(at)) {
        element_node(at, 16, element);
        that(word(at + 8) == before);  // so no node comes twice
        link(at);
        link(at + 8);
        value(number, at + round_up(16, element.alignment));
    }
    that(word(header + 8) == before);
}

void ShapeWalk::forward_list(const ShapeNode& node, Address end_of) {
    container_ = "forward_list";
    const std::uint32_t number = node.parts.front().node;
    const ShapeNode& element = node_of(number);
    link(end_of - 8);
    Address seen = 0;  // one on the way, further and further behind: a ring comes back to it
    std::uint64_t count = 0;
    for (Address at = word(end_of - 8); at != 0; at = word(at)) {
        element_node(at, 8, element);
        that(at != seen);
        if ((count & (count + 1)) == 0) seen = at;
        ++count;
        link(at);
        value(number, at + round_up(8, element.alignment));
    }
}

/// Nodes are {colour, parent, left, right}, and so is the one in the container, whose parent is the root.
void ShapeWalk::tree(const ShapeNode& node, Address end_of) {
    container_ = "tree of a map or set";
    tell_keys(node, false);
    const ShapeNode& element = node_of(node.parts.front().node);
    const Address header = end_of - 40;
    const auto links = [&](Address of) {
        link(of + 8);
        link(of + 16);
        link(of + 24);
    };
    links(header);
    constexpr std::size_t height_max = 128;
    std::vector<Address> above;  // whose left side is under way
    std::uint64_t count = 0;
    Address last = header;
    Address parent = header;
    for (Address at = word(header + 8); at != 0 || !above.empty();) {
        for (; at != 0; parent = at, at = word(at + 16)) {
            element_node(at, 32, element);
            that(word(at + 8) == parent && above.size() < height_max);  // so no node comes twice
            above.push_back(at);
        }
        const Address here = above.back();
        above.pop_back();
        that(++count != 1 || word(header + 16) == here);
        links(here);
        keyed_element(node, here + round_up(32, element.alignment));
        last = parent = here;
        at = word(here + 24);
    }
    that(word(header + 24) == last && count == word(end_of - 8) && (count != 0 || word(header + 16) == header));
}

/// {buckets, how many, first node, elements, load, next growth, a bucket of its own}: nodes begin with the next one.
void ShapeWalk::table(const ShapeNode& node, Address end_of) {
    container_ = "hash table";
    tell_keys(node, true);
    const ShapeNode& element = node_of(node.parts.front().node);
    const Address buckets = word(end_of - 56);
    const std::uint64_t bucket_count = word(end_of - 48);
    const std::uint64_t size = word(end_of - 32);
    link(end_of - 56);
    link(end_of - 40);
    if (buckets == end_of - 8)
        that(bucket_count == 1);
    else
        elements(buckets, bucket_count, 8, 8);
    walk_.count_values(bucket_count);
    for (std::uint64_t i = 0; i != bucket_count; ++i) link(buckets + 8 * i);
    std::uint64_t count = 0;
    Address seen = 0;  // as in a forward_list
    for (Address at = word(end_of - 40); at != 0; at = word(at)) {
        element_node(at, node.keeps_hashes ? round_up(8, element.alignment) + round_up(element.bytes, 8) - element.bytes + 8 : 8, element);
        that(at != seen && count < size);
        if ((count & (count + 1)) == 0) seen = at;
        ++count;
        link(at);
        keyed_element(node, at + round_up(8, element.alignment));
    }
    that(count == size);
}

/// {block, slots, elements, free}: a byte for each slot, not negative where it holds something, then the slots.
void ShapeWalk::flat_table(const ShapeNode& node, Address end_of) {
    container_ = "flat hash table";
    tell_keys(node, true);
    const ShapeNode& element = node_of(node.parts.front().node);
    const Address block = word(end_of - 32);
    const std::uint64_t slots = word(end_of - 24);
    link(end_of - 32);
    if (block == 0) return that(slots == 0 && word(end_of - 16) == 0);
    constexpr std::uint64_t control_bytes_min = 16;
    that(std::has_single_bit(slots) && slots < UINT64_MAX / 2 / std::max<std::uint64_t>(element.bytes, 2));
    const std::uint64_t unit = std::max<std::uint64_t>(control_bytes_min, element.alignment);
    const std::uint64_t first = round_up(std::max(slots, control_bytes_min), unit);
    elements(block, first + slots * element.bytes, 1, unit);
    std::uint64_t filled = 0;
    walk_.count_values(slots);
    for (std::uint64_t i = 0; i != slots; ++i) {
        if (number<std::int8_t>(block + i) < 0) continue;
        ++filled;
        keyed_element(node, block + first + i * element.bytes);
    }
    that(filled == word(end_of - 16));
}

/// {root, first, last, elements, height}: leaves, each where its neighbours say, and the nodes above them (shape/btree_form.hpp).
void ShapeWalk::btree(const ShapeNode& node, Address end_of) {
    container_ = "B-tree";
    tell_keys(node, false);
    const shape::BTreeForm form(known_.shape, node);
    const std::uint32_t element = node.parts.front().node;
    for (const unsigned place : {40U, 32U, 24U}) link(end_of - place);
    if (word(end_of - 40) == 0) return that(word(end_of - 32) == 0 && word(end_of - 24) == 0 && word(end_of - 16) == 0);
    std::vector<std::uint64_t> leaves;
    std::uint64_t size = 0;
    Address before = 0;
    constexpr std::uint64_t line = 64;
    for (Address leaf = word(end_of - 32); leaf != 0; before = leaf, leaf = word(leaf + 8)) {
        elements(leaf, 1, line, line);
        const auto count = number<std::uint16_t>(leaf + 16);
        const auto slots = number<std::uint16_t>(leaf + 18);
        const shape::BTreeForm::Leaf parts = form.leaf(slots);
        that(count != 0 && count <= slots && slots <= 255 && word(leaf) == before);  // so no leaf comes twice
        elements(leaf, parts.end, 1, line);
        link(leaf);
        link(leaf + 8);
        leaves.push_back(leaf);
        size += count;
        walk_.count_values(count);
        for (std::uint64_t i = 0; i != count; ++i) {
            const auto slot = number<std::uint8_t>(leaf + parts.order + i);
            that(slot < slots);
            const Address key = leaf + parts.keys + slot * form.key_bytes;
            if (form.is_apart) {
                link(key);
                elements(word(key), 1, node_of(element).bytes, node_of(element).alignment);
                keyed_element(node, word(key));
                continue;
            }
            key_of(form.key, key);
            value(form.key, key);
            if (form.has_values) value(form.value, leaf + parts.values + slot * form.value_bytes);
        }
    }
    that(before == word(end_of - 24) && size == word(end_of - 16));
    struct Memory {
        PointerWalk& walk;
        bool holds(std::uint64_t at, std::uint64_t bytes) const {
            return at % 8 == 0 && walk.lies_in_heap(pointer_to(at)) && at + bytes > at && walk.lies_in_heap(pointer_to(at + bytes - 1));
        }
        std::uint32_t count(std::uint64_t at) const { return ShapeWalk::number<std::uint32_t>(at); }
        std::optional<std::uint64_t> target(std::uint64_t at) const { return holds(at, 8) ? std::optional(word(at)) : std::nullopt; }
    };
    const Memory memory{walk_};
    const auto inner = shape::BTreeInnerWalk(form, memory, leaves).find(word(end_of - 40), number<std::uint32_t>(end_of - 8));
    that(inner.has_value());
    for (const std::uint64_t at : inner->nodes) elements(at, inner->node_bytes, 1, line);
    for (const std::uint64_t at : inner->pointers) link(at);
    for (const std::uint64_t key : inner->copies) {
        elements(key, 1, form.key_bytes, form.key_alignment);
        key_of(form.key, key);
        value(form.key, key);
    }
    for (const std::uint64_t key : inner->inline_keys) {
        key_of(form.key, key);
        value(form.key, key);
    }
}

ShapeTypes::ShapeTypes(const heap::Engine& engine, const DeclaredTypes& declared) : types_(declared) {
    for (const heap::Root& root : engine.roots()) {
        if (types_.find(root.fingerprint) != nullptr) continue;
        const auto tell = [&](std::initializer_list<std::string_view> why) {
            if (unknown_.empty()) unknown_ = joined({"of '", root.name, "' ", joined(why)});
        };
        const std::optional<std::string> stored = engine.shape_of(root.fingerprint);
        if (!stored) {
            tell({"the heap has no shape"});
            continue;
        }
        try {
            Shape shape = Shape::decode(std::as_bytes(std::span(*stored)));
            if (root.bytes != shape.nodes.front().bytes * root.count)
                tell({"the shape is of another size"});
            else if (const std::string why = add(root.fingerprint, std::move(shape)); !why.empty())
                tell({"the shape says too little: ", why});
        } catch (const Error&) {
            tell({"the shape can't be read"});
        }
    }
}

std::string ShapeTypes::add(const std::string& fingerprint, Shape shape) {
    for (std::uint32_t node = 0; node != shape.nodes.size(); ++node) {
        if (!is_unknown(shape, node)) continue;
        const bool hides = shape.nodes[node].kind == ShapeKind::structure;
        return joined({shape.type(node), hides ? " has more than the fields that it tells" : " is opaque in it"});
    }
    if (shape.nodes.front().bytes == 0) return "it is empty";
    auto known = std::make_unique<Known>(std::move(shape));
    types_.add(fingerprint, {ShapeWalk::step_of(*known, 0), known->shape.nodes.front().bytes});
    known_[fingerprint] = std::move(known);
    return {};
}

ShapeTypes::~ShapeTypes() = default;

}  // namespace taiyen::transfer
