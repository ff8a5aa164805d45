#include <taiyen/shape/shape.hpp>

#include <string>
#include <string_view>

#include "base/json.hpp"

namespace taiyen {
namespace shape {
namespace {

constexpr std::size_t type_bytes_max = 2000;
constexpr unsigned type_depth_max = 24;

/// "N4shop4PartE" is shop::Part; what is more than a name in namespaces stays as it is.
std::string plain_name(const std::string& mangled) {
    if (mangled == "v") return "void";
    std::string_view rest = mangled;
    const bool is_nested = rest.starts_with('N');
    if (is_nested) rest.remove_prefix(1);
    std::string text;
    if (rest.starts_with("St")) {
        text = "std";
        rest.remove_prefix(2);
    }
    while (!rest.empty() && rest.front() >= '1' && rest.front() <= '9') {
        std::size_t length = 0;
        while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9' && length <= mangled.size()) {
            length = length * 10 + static_cast<std::size_t>(rest.front() - '0');
            rest.remove_prefix(1);
        }
        if (length > rest.size()) return mangled;
        if (!text.empty()) text += "::";
        text.append(rest.substr(0, length));
        rest.remove_prefix(length);
        if (!is_nested) break;
    }
    return rest == (is_nested ? "E" : "") && !text.empty() ? text : mangled;
}

/// The bytes of a shape may be anybody's.
std::string printable(std::string_view text) {
    std::string escaped;
    append_escaped(escaped, text, false);
    return escaped;
}

const char* word_of(ShapeKind kind) {
    switch (kind) {
        case ShapeKind::pair: return "pair";
        case ShapeKind::tuple: return "tuple";
        case ShapeKind::optional: return "optional";
        case ShapeKind::variant: return "variant";
        case ShapeKind::string: return "basic_string";
        case ShapeKind::vector: return "vector";
        case ShapeKind::bit_vector: return "vector<bool>";
        case ShapeKind::deque: return "deque";
        case ShapeKind::list: return "list";
        case ShapeKind::forward_list: return "forward_list";
        case ShapeKind::map: return "map";
        case ShapeKind::multimap: return "multimap";
        case ShapeKind::set: return "set";
        case ShapeKind::multiset: return "multiset";
        case ShapeKind::unordered_map: return "unordered_map";
        case ShapeKind::unordered_multimap: return "unordered_multimap";
        case ShapeKind::unordered_set: return "unordered_set";
        case ShapeKind::unordered_multiset: return "unordered_multiset";
        case ShapeKind::btree_map: return "btree_map";
        case ShapeKind::btree_multimap: return "btree_multimap";
        case ShapeKind::btree_set: return "btree_set";
        case ShapeKind::btree_multiset: return "btree_multiset";
        case ShapeKind::ordered_map: return "ordered_map";
        case ShapeKind::ordered_multimap: return "ordered_multimap";
        case ShapeKind::ordered_set: return "ordered_set";
        case ShapeKind::ordered_multiset: return "ordered_multiset";
        case ShapeKind::flat_hash_map: return "flat_hash_map";
        case ShapeKind::flat_hash_set: return "flat_hash_set";
        default: return "";
    }
}

class Writer {
public:
    explicit Writer(const Shape& shape) : nodes_(shape.nodes) {}

    std::string all() {
        std::string all = one(0) + ", " + std::to_string(nodes_.front().bytes) + " bytes\n";
        for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
            const ShapeNode& node = nodes_[i];
            if (node.kind != ShapeKind::structure || node.parts.empty()) continue;
            if (i != 0) all += one(i) + ", " + std::to_string(node.bytes) + " bytes\n";
            for (const ShapePart& part : node.parts)
                all += "  " + std::to_string(part.offset) + " " + printable(part.name) + ": " + one(part.node) + "\n";
        }
        return all;
    }

    std::string one(std::uint32_t index) {
        text_.clear();
        type(index);
        return std::move(text_);
    }

private:
    /// `declarator`: what stands behind it in a declaration, as of arrays and pointers.
    void type(std::uint32_t index, unsigned depth = 0, const std::string& declarator = {}) {
        if (depth == type_depth_max || text_.size() > type_bytes_max) {
            text_ += "…";
            return;
        }
        const ShapeNode& node = nodes_[index];
        if (node.kind == ShapeKind::array) {
            const std::string held = declarator.starts_with('*') ? "(" + declarator + ")" : declarator;
            type(node.parts.front().node, depth + 1, held + "[" + std::to_string(node.count) + "]");
        } else if (node.kind == ShapeKind::pointer && !node.distances) {
            type(node.parts.front().node, depth + 1, "*" + declarator);
        } else {
            plain(node, depth);
            text_ += declarator;
        }
    }

    /// Neither an array nor a pointer.
    void plain(const ShapeNode& node, unsigned depth) {
        switch (node.kind) {
            case ShapeKind::opaque:
            case ShapeKind::enumeration:
            case ShapeKind::structure:
            case ShapeKind::other_container: text_ += printable(plain_name(node.name)); return;
            case ShapeKind::boolean: text_ += "bool"; return;
            case ShapeKind::signed_integer: number("int", node); return;
            case ShapeKind::unsigned_integer: number("uint", node); return;
            case ShapeKind::floating_point: text_ += node.bytes == 4 ? "float" : node.bytes == 8 ? "double" : "long double"; return;
            case ShapeKind::character:
                if (node.bytes == 1)
                    text_ += "char";
                else
                    number("char", node);
                return;
            case ShapeKind::pointer: text_ += "offset_ptr"; return arguments(node, depth);
            case ShapeKind::bit_vector: text_ += word_of(node.kind); return;
            case ShapeKind::string:
                if (const ShapeNode& character = nodes_[node.parts.front().node]; character.kind == ShapeKind::character && character.bytes == 1) {
                    text_ += "string";
                    return;
                }
                break;
            default: break;
        }
        text_ += word_of(node.kind);
        const ShapeNode* const element = node.kind >= ShapeKind::string ? &nodes_[node.parts.front().node] : nullptr;
        arguments(element != nullptr && element->kind == ShapeKind::pair && std::string_view(word_of(node.kind)).ends_with("map") ? *element : node,
                  depth);
    }

    void number(const char* word, const ShapeNode& node) { text_.append(word).append(std::to_string(node.bytes * 8)).append("_t"); }

    void arguments(const ShapeNode& node, unsigned depth) {
        text_ += "<";
        for (std::size_t i = 0; i < node.parts.size(); ++i) {
            if (i != 0) text_ += ", ";
            if (text_.size() > type_bytes_max) {
                text_ += "…";
                break;
            }
            type(node.parts[i].node, depth + 1);
        }
        text_ += ">";
    }

    const std::vector<ShapeNode>& nodes_;
    std::string text_;
};

}  // namespace
}  // namespace shape

std::string Shape::type(std::uint32_t node) const { return shape::Writer(*this).one(node); }

std::string Shape::text() const { return shape::Writer(*this).all(); }

}  // namespace taiyen
