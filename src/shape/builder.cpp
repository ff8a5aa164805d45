#include <taiyen/shape/detail/builder.hpp>

#include <algorithm>
#include <map>

#include <taiyen/base/error.hpp>
#include <taiyen/shape/shape.hpp>

#include "shape/encoding.hpp"

namespace taiyen::shape {

struct Builder::State {
    Shape shape;
    std::map<std::string, std::uint32_t, std::less<>> nodes;
    std::vector<bool> entered;  ///< the others were only mentioned
    std::string root;           ///< name of node 0, whatever it is
};

namespace {

/// Without what instrumented code adds to it, since the bytes are the same (TAIYEN_STORES_TAG, TAIYEN_CHECKED_ITERATORS), and without the P of a pointer.
std::string name_of(const char* type) {
    std::string name(type + 1);
    for (const std::string_view tag : {"B13taiyen_stores", "B14taiyen_checked"})
        for (std::size_t at = name.find(tag); at != std::string::npos; at = name.find(tag, at)) name.erase(at, tag.size());
    return name;
}

/// The last identifier of "[with auto address = (& …::name)]" or "[address = &….name]".
std::string_view last_identifier(std::string_view text) {
    while (text.ends_with(']') || text.ends_with(')')) text.remove_suffix(1);
    const auto is_inside = [](char c) {
        return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               static_cast<unsigned char>(c) >= 0x80;
    };
    std::size_t begin = text.size();
    while (begin != 0 && is_inside(text[begin - 1])) --begin;
    return text.substr(begin);
}

bool has_name(ShapeKind kind) {
    return kind == ShapeKind::structure || kind == ShapeKind::enumeration || kind == ShapeKind::other_container || kind == ShapeKind::opaque;
}

}  // namespace

Builder::Builder() : state_(std::make_unique<State>()) {}
Builder::~Builder() = default;

std::uint32_t Builder::mention(const char* type) {
    State& s = *state_;
    std::string name = name_of(type);
    if (s.nodes.empty()) s.root = name.substr(0, name_bytes_max);
    const auto [found, is_new] = s.nodes.try_emplace(std::move(name), static_cast<std::uint32_t>(s.shape.nodes.size()));
    if (is_new) {
        s.shape.nodes.emplace_back().name = found->first.substr(0, name_bytes_max);
        s.entered.push_back(false);
    }
    return found->second;
}

Builder::Entered Builder::enter(const char* type, ShapeKind kind, std::size_t bytes, std::size_t alignment) {
    const std::uint32_t index = mention(type);
    if (state_->entered[index]) return {index, false};
    state_->entered[index] = true;
    ShapeNode& node = state_->shape.nodes[index];
    node.kind = kind;
    node.bytes = bytes;
    node.alignment = static_cast<std::uint32_t>(std::min<std::size_t>(alignment, std::size_t{1} << 21U));
    if (!has_name(kind)) node.name.clear();
    return {index, true};
}

void Builder::part(std::uint32_t node, std::string_view name, std::size_t offset, std::uint32_t part) {
    state_->shape.nodes[node].parts.push_back({std::string(name.substr(0, name_bytes_max)), offset, part});
}

void Builder::add_fields(std::uint32_t node, std::size_t count, const char* const* texts, const volatile void* const* places, const Add* adds) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t type = adds[i](*this);
        part(node, last_identifier(texts[i]), offset_in_place(places[i]), type);
    }
}

void Builder::set_count(std::uint32_t node, std::size_t count) { state_->shape.nodes[node].count = count; }

void Builder::set_links(std::uint32_t node, bool distances, bool keeps_hashes) {
    state_->shape.nodes[node].distances = distances;
    state_->shape.nodes[node].keeps_hashes = keeps_hashes;
}

void Builder::make_opaque(std::uint32_t node) {
    state_->shape.nodes[node].kind = ShapeKind::opaque;
    state_->shape.nodes[node].parts.clear();
}

void* Builder::place() noexcept { return reinterpret_cast<void*>(std::uintptr_t{1} << 30U); }

std::size_t Builder::offset_in_place(const volatile void* part) noexcept {
    return static_cast<std::size_t>(static_cast<const volatile std::byte*>(part) - static_cast<const std::byte*>(place()));
}

std::string Builder::encoded() const {
    std::string text = encode(state_->shape);
    try {
        Shape::decode(std::as_bytes(std::span(text)));
        return text;
    } catch (const Error&) {
        const ShapeNode& whole = state_->shape.nodes.front();
        ShapeNode root;
        root.bytes = whole.bytes;
        root.alignment = whole.alignment;
        root.name = state_->root;
        return encode({{std::move(root)}});
    }
}

const std::string& encoded(TypeShape& type) {
    if (const std::string* const text = type.text.load(std::memory_order_acquire)) return *text;
    Builder builder;
    type.add(builder);
    auto mine = std::make_unique<const std::string>(builder.encoded());
    const std::string* first = nullptr;
    return type.text.compare_exchange_strong(first, mine.get(), std::memory_order_acq_rel) ? *mine.release() : *first;
}

}  // namespace taiyen::shape
