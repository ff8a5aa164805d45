#pragma once
/// Builder: what the templates that look at a type tell node by node becomes an encoded shape.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/shape/shape_kind.hpp>

namespace taiyen::shape {

/// Longer ones aren't kept: then only the type's name, size and alignment are.
inline constexpr std::size_t encoded_bytes_max = 64 * 1024;

class TAIYEN_EXPORT Builder {
public:
    struct Entered {
        std::uint32_t node;
        bool is_new;  ///< its parts are to be told
    };
    Builder();
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;
    ~Builder();

    /// `type`: what the compiler calls a pointer to it, which it can do where the type itself isn't complete.
    Entered enter(const char* type, ShapeKind kind, std::size_t bytes, std::size_t alignment);
    /// The node of a type that nothing but the name is known of, unless it is entered, before or later.
    std::uint32_t mention(const char* type);
    void part(std::uint32_t node, std::string_view name, std::size_t offset, std::uint32_t part);
    void set_count(std::uint32_t node, std::size_t count);
    void set_links(std::uint32_t node, bool distances, bool keeps_hashes = false);
    /// What was told of the node's parts is not certain.
    void make_opaque(std::uint32_t node);
    /// Adds the node of a member's type.
    using Add = std::uint32_t (*)(Builder&);
    /// A part for each member of an object at `place()`. `texts`: what the compiler says of their addresses, which ends with their names.
    void add_fields(std::uint32_t node, std::size_t count, const char* const* texts, const volatile void* const* places, const Add* adds);
    /// An address that any type may have, where no object is: for offsets of members.
    static void* place() noexcept;
    static std::size_t offset_in_place(const volatile void* part) noexcept;
    /// The encoded shape of node 0; its name, size and alignment only, if the shape is too long or none that could be decoded.
    std::string encoded() const;

private:
    struct State;
    const std::unique_ptr<State> state_;
};

/// What a process has for each type: its shape, once it was asked for.
struct TypeShape {
    Builder::Add add;                                ///< of the type itself
    std::atomic<const std::string*> text = nullptr;  ///< encoded; stays until the process ends
    std::atomic<std::uint32_t> number = 0;           ///< from 1 on, once a heap looked at it
};
/// As heaps keep it. Complexity: constant, but for the first time. Thread rule: safe.
TAIYEN_EXPORT const std::string& encoded(TypeShape& type);

}  // namespace taiyen::shape
