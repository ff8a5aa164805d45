#pragma once
/// Builder: what the templates that look at a type tell node by node becomes an encoded shape.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/shape/shape.hpp>

namespace taiyen::shape {

/// Longer ones aren't kept: then only the type's name, size and alignment are.
inline constexpr std::size_t encoded_bytes_max = 64 * 1024;

class TAIYEN_EXPORT Builder {
public:
    struct Entered {
        std::uint32_t node;
        bool is_new;  ///< its parts are to be told
    };
    /// `type`: what the compiler calls a pointer to it, which it can do where the type itself isn't complete.
    Entered enter(const char* type, ShapeKind kind, std::size_t bytes, std::size_t alignment);
    void part(std::uint32_t node, std::string_view name, std::size_t offset, std::uint32_t part);
    ShapeNode& node(std::uint32_t index) { return shape_.nodes[index]; }
    /// What is known of the node is not certain.
    void make_opaque(std::uint32_t node);
    /// An address that any type may have, where no object is: for offsets of members.
    static void* place() noexcept;
    /// The encoded shape of node 0.
    std::string encoded() const;

private:
    Shape shape_;
    std::map<std::string, std::uint32_t, std::less<>> nodes_;
};

}  // namespace taiyen::shape
