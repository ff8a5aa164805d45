#include <taiyen/shape/detail/builder.hpp>

#include <algorithm>

#include "shape/encoding.hpp"

namespace taiyen::shape {

Builder::Entered Builder::enter(const char* type, ShapeKind kind, std::size_t bytes, std::size_t alignment) {
    const auto index = static_cast<std::uint32_t>(shape_.nodes.size());
    std::string name(type);
    // The bytes are the same (TAIYEN_STORES_TAG, TAIYEN_CHECKED_ITERATORS).
    for (const std::string_view tag : {"B13taiyen_stores", "B14taiyen_checked"})
        for (std::size_t at = name.find(tag); at != std::string::npos; at = name.find(tag, at)) name.erase(at, tag.size());
    const auto [found, is_new] = nodes_.try_emplace(std::move(name), index);
    if (!is_new) return {found->second, false};
    ShapeNode node;
    node.kind = kind;
    node.bytes = bytes;
    node.alignment = static_cast<std::uint32_t>(std::min<std::size_t>(alignment, std::size_t{1} << 21U));
    if (kind == ShapeKind::structure || kind == ShapeKind::enumeration || kind == ShapeKind::other_container || kind == ShapeKind::opaque)
        node.name = found->first.substr(1, name_bytes_max);  // without the P of a pointer
    shape_.nodes.push_back(std::move(node));
    return {index, true};
}

void Builder::part(std::uint32_t node, std::string_view name, std::size_t offset, std::uint32_t part) {
    shape_.nodes[node].parts.push_back({std::string(name.substr(0, name_bytes_max)), offset, part});
}

void Builder::make_opaque(std::uint32_t node) {
    shape_.nodes[node].kind = ShapeKind::opaque;
    shape_.nodes[node].parts.clear();
}

void* Builder::place() noexcept { return reinterpret_cast<void*>(std::uintptr_t{1} << 30U); }

std::string Builder::encoded() const {
    std::string text = encode(shape_);
    if (text.size() <= encoded_bytes_max) return text;
    Shape root;
    root.nodes.push_back(shape_.nodes.front());
    ShapeNode& only = root.nodes.front();
    only.kind = ShapeKind::opaque;
    only.parts.clear();
    only.count = 0;
    only.distances = only.keeps_hashes = false;
    const auto first = std::find_if(nodes_.begin(), nodes_.end(), [](const auto& entry) { return entry.second == 0; });
    only.name = first->first.substr(1, name_bytes_max);
    return encode(root);
}

}  // namespace taiyen::shape
