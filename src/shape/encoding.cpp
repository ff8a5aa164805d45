#include "shape/encoding.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/shape/detail/builder.hpp>

#include "base/checksum.hpp"

namespace taiyen::shape {
namespace {

constexpr std::uint8_t distances_flag = 1;
constexpr std::uint8_t keeps_hashes_flag = 2;
constexpr unsigned alignment_log_max = 21;
constexpr std::size_t node_bytes_min = 7;
constexpr std::uint64_t heap_bytes_max = std::uint64_t{1} << 47U;
constexpr ShapeKind last_kind = ShapeKind::other_container;

std::uint64_t checksum_of(const EncodedHead& head, std::span<const std::byte> body) {
    std::uint64_t seed = mix(std::uint64_t{head.magic} << 32U | head.version, head.zero);
    seed = mix(seed, std::uint64_t{head.body_bytes} << 32U | head.nodes);
    return checksum(body, seed);
}

void put_number(std::string& text, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7U) text.push_back(static_cast<char>(number | 0x80U));
    text.push_back(static_cast<char>(number));
}

void put_name(std::string& text, std::string_view name) {
    name = name.substr(0, name_bytes_max);
    put_number(text, name.size());
    text.append(name);
}

[[noreturn]] void throw_bad(std::size_t offset, const char* what) {
    throw Error(
        errc::corrupt, {}, offset,
        std::string("the shape of a stored type is damaged: ") + what +
            "; 'taiyen verify' tells what else is, and a program that opens the heap for writing and asks for the object stores its shape again");
}

class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::size_t at() const { return at_; }
    bool is_at_end() const { return at_ == bytes_.size(); }
    std::uint8_t byte() {
        if (is_at_end()) throw_bad(at_, "it ends early");
        return static_cast<std::uint8_t>(bytes_[at_++]);
    }
    /// One way to write each number.
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint64_t piece = byte();
            if (shift == 63 && piece > 1) break;
            value |= (piece & 0x7FU) << shift;
            if (piece < 0x80) {
                if (piece == 0 && shift != 0) break;
                return value;
            }
        }
        throw_bad(at_, "a number that is too long");
    }
    std::string name() {
        const std::uint64_t length = number();
        if (length > name_bytes_max || length > bytes_.size() - at_) throw_bad(at_, "a name that is too long");
        std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
        at_ += length;
        return text;
    }

private:
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
};

/// Behind a checksum that is right.
[[noreturn]] void throw_newer(std::size_t at, const char* what) {
    throw Error(errc::unsupported_version, {}, sizeof(EncodedHead) + at,
                std::string("the shape of a stored type has ") + what + " that this library doesn't know; use the library that wrote it");
}

ShapeNode read_node(Reader& reader, std::uint32_t nodes) {
    ShapeNode node;
    const std::size_t begin = reader.at();
    const std::uint8_t kind = reader.byte();
    if (kind > static_cast<std::uint8_t>(last_kind)) throw_newer(begin, "a kind of type");
    node.kind = static_cast<ShapeKind>(kind);
    const std::uint8_t flags = reader.byte();
    if (flags > (distances_flag | keeps_hashes_flag)) throw_newer(begin, "flags");
    node.distances = (flags & distances_flag) != 0;
    node.keeps_hashes = (flags & keeps_hashes_flag) != 0;
    node.bytes = reader.number();
    const std::uint8_t alignment = reader.byte();
    if (alignment > alignment_log_max) throw_bad(begin, "an alignment that no heap gives");
    node.alignment = 1U << alignment;
    node.count = reader.number();
    node.name = reader.name();
    const std::uint64_t parts = reader.number();
    for (std::uint64_t i = 0; i < parts; ++i) {  // ends with the bytes, at the latest
        ShapePart part;
        part.name = reader.name();
        part.offset = reader.number();
        const std::uint64_t index = reader.number();
        if (index >= nodes) throw_bad(reader.at(), "a part that is no node");
        part.node = static_cast<std::uint32_t>(index);
        node.parts.push_back(std::move(part));
    }
    return node;
}

/// How many parts a node of that kind has; ~0: any number.
constexpr std::size_t any_number = ~std::size_t{0};
std::size_t parts_of(ShapeKind kind) {
    switch (kind) {
        case ShapeKind::structure:
        case ShapeKind::tuple:
        case ShapeKind::variant: return any_number;
        case ShapeKind::pair: return 2;
        case ShapeKind::opaque:
        case ShapeKind::boolean:
        case ShapeKind::signed_integer:
        case ShapeKind::unsigned_integer:
        case ShapeKind::floating_point:
        case ShapeKind::character:
        case ShapeKind::bit_vector: return 0;
        default: return 1;
    }
}

constexpr bool is_number(ShapeKind kind) { return kind >= ShapeKind::boolean && kind <= ShapeKind::character; }

bool has_size_of_kind(const ShapeNode& node) {
    const bool is_power = std::has_single_bit(node.bytes);
    switch (node.kind) {
        case ShapeKind::boolean: return node.bytes == 1;
        case ShapeKind::character: return is_power && node.bytes <= 4;
        case ShapeKind::floating_point: return is_power && node.bytes >= 4 && node.bytes <= 16;
        case ShapeKind::signed_integer:
        case ShapeKind::unsigned_integer: return is_power && node.bytes <= 16;
        default: return true;
    }
}

/// (I2), and that each kind is what it is called.
void check_node(const Shape& shape, const ShapeNode& node) {
    if (node.bytes > heap_bytes_max) throw_bad(0, "a type that is larger than any heap");
    if (node.distances && node.kind != ShapeKind::pointer && node.kind < ShapeKind::string) throw_bad(0, "distances where there are no links");
    if (node.keeps_hashes && (node.kind < ShapeKind::unordered_map || node.kind > ShapeKind::unordered_multiset))
        throw_bad(0, "hashes where there are none");
    if (const std::size_t wanted = parts_of(node.kind); wanted != any_number && node.parts.size() != wanted)
        throw_bad(0, "a type with another number of parts than its kind has");
    if (!has_size_of_kind(node)) throw_bad(0, "a number of a size that there isn't");
    if (node.kind == ShapeKind::pointer && node.bytes != 8) throw_bad(0, "a pointer of a size that there isn't");
    const bool is_tree = node.kind >= ShapeKind::btree_map && node.kind <= ShapeKind::ordered_multiset;
    if (is_tree ? node.count < 256 || node.count >= 256 + 4 * 17 : (node.kind == ShapeKind::array) != (node.count != 0))
        throw_bad(0, "a count where there is none, or none where there is one");
    for (const ShapePart& part : node.parts) {
        const ShapeNode& inner = shape.nodes[part.node];
        if (!holds_in_place(node.kind)) {
            if (part.offset != 0) throw_bad(0, "an offset of what lies elsewhere");
            if (is_map(node.kind) && inner.kind != ShapeKind::pair) throw_bad(0, "a map of something else than pairs");
            continue;
        }
        const bool is_whole = is_number(inner.kind) && inner.kind != ShapeKind::floating_point;
        if (node.kind == ShapeKind::enumeration && (!is_whole || inner.bytes != node.bytes))
            throw_bad(0, "an enumeration of something else than numbers");
        if (part.offset > node.bytes || inner.bytes > node.bytes - part.offset) throw_bad(0, "a part that ends behind what holds it");
        if (node.kind == ShapeKind::array && (part.offset != 0 || (inner.bytes != 0 && node.count > node.bytes / inner.bytes)))
            throw_bad(0, "an array that is smaller than its elements");
    }
}

/// (I1): nothing lies within itself.
void check_nesting(const Shape& shape) {
    enum class Mark : std::uint8_t { fresh, entered, left };
    struct Step {
        std::uint32_t node;
        std::size_t part;
    };
    std::vector<Mark> marks(shape.nodes.size(), Mark::fresh);
    std::vector<Step> path;
    for (std::uint32_t start = 0; start < shape.nodes.size(); ++start) {
        if (marks[start] != Mark::fresh) continue;
        path.push_back({start, 0});
        marks[start] = Mark::entered;
        while (!path.empty()) {
            Step& step = path.back();
            const ShapeNode& node = shape.nodes[step.node];
            if (!holds_in_place(node.kind) || step.part == node.parts.size()) {
                marks[step.node] = Mark::left;
                path.pop_back();
                continue;
            }
            const std::uint32_t next = node.parts[step.part++].node;
            if (marks[next] == Mark::entered) throw_bad(0, "a type that lies within itself");
            if (marks[next] == Mark::fresh) {
                marks[next] = Mark::entered;
                path.push_back({next, 0});
            }
        }
    }
}

}  // namespace

std::string encode(const Shape& shape) {
    std::string text(sizeof(EncodedHead), '\0');
    for (const ShapeNode& node : shape.nodes) {
        text.push_back(static_cast<char>(node.kind));
        text.push_back(static_cast<char>((node.distances ? distances_flag : 0) | (node.keeps_hashes ? keeps_hashes_flag : 0)));
        put_number(text, node.bytes);
        text.push_back(static_cast<char>(std::countr_zero(node.alignment)));
        put_number(text, node.count);
        put_name(text, node.name);
        put_number(text, node.parts.size());
        for (const ShapePart& part : node.parts) {
            put_name(text, part.name);
            put_number(text, part.offset);
            put_number(text, part.node);
        }
    }
    const EncodedHead head{magic, version, 0, 0, static_cast<std::uint32_t>(shape.nodes.size()), 0};
    std::memcpy(text.data(), &head, sizeof head);
    seal(std::as_writable_bytes(std::span(text)));
    return text;
}

bool is_wanted(std::string_view encoded, const std::optional<std::string>& stored) {
    if (!stored) return true;
    if (*stored == encoded) return false;
    const auto known = [](const Shape& shape) {
        std::size_t count = 0;
        for (const ShapeNode& node : shape.nodes) count += node.kind == ShapeKind::opaque ? 0 : 1 + node.parts.size();
        return count;
    };
    const Shape fresh = Shape::decode(std::as_bytes(std::span(encoded)));
    try {
        const Shape old = Shape::decode(std::as_bytes(std::span(*stored)));
        return known(old) <= known(fresh) || contradict(old, fresh);
    } catch (const Error& error) {
        return error.code() != errc::unsupported_version;
    }
}

void seal(std::span<std::byte> bytes) {
    EncodedHead head{};
    std::memcpy(&head, bytes.data(), sizeof head);
    head.body_bytes = static_cast<std::uint32_t>(bytes.size() - sizeof head);
    head.checksum = checksum_of(head, bytes.subspan(sizeof head));
    std::memcpy(bytes.data(), &head, sizeof head);
}

}  // namespace taiyen::shape

namespace taiyen {

Shape Shape::decode(std::span<const std::byte> bytes) {
    using namespace shape;
    EncodedHead head{};
    if (bytes.size() < sizeof head) throw_bad(bytes.size(), "it ends early");
    std::memcpy(&head, bytes.data(), sizeof head);
    const std::span<const std::byte> body = bytes.subspan(sizeof head);
    if (head.magic != magic) throw_bad(0, "it doesn't begin as one");
    if (head.version != version)
        throw Error(errc::unsupported_version, {}, 4,
                    "the shape of a stored type has version " + std::to_string(head.version) + ", and this library reads version " +
                        std::to_string(version) + "; use the library that wrote it");
    if (head.zero != 0 || head.body_bytes != body.size() || body.size() > encoded_bytes_max) throw_bad(8, "its length");
    if (head.checksum != checksum_of(head, body)) throw_bad(16, "its checksum");
    if (head.nodes == 0 || head.nodes > body.size() / node_bytes_min) throw_bad(12, "its number of types");
    Shape shape;
    Reader reader(body);
    shape.nodes.reserve(head.nodes);
    for (std::uint32_t i = 0; i < head.nodes; ++i) shape.nodes.push_back(read_node(reader, head.nodes));
    if (!reader.is_at_end()) throw_bad(reader.at(), "more bytes than types");
    for (const ShapeNode& node : shape.nodes) check_node(shape, node);
    check_nesting(shape);
    return shape;
}

}  // namespace taiyen
