// Shapes as no library writes them, also behind a checksum that is right: refused, or every part is a node, what lies in place lies within, the text is short, and what was read is written alike.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/shape/detail/builder.hpp>
#include <taiyen/shape/shape.hpp>

#include "shape/encoding.hpp"

namespace {

using namespace taiyen;

void look_at(std::span<const std::byte> bytes) {
    try {
        const Shape shape = Shape::decode(bytes);
        TAIYEN_CHECK(!shape.nodes.empty() && shape.nodes.size() <= bytes.size());
        for (const ShapeNode& node : shape.nodes)
            for (const ShapePart& part : node.parts) {
                TAIYEN_CHECK(part.node < shape.nodes.size());
                TAIYEN_CHECK(!holds_in_place(node.kind) || (part.offset <= node.bytes && shape.nodes[part.node].bytes <= node.bytes - part.offset));
            }
        TAIYEN_CHECK(shape.type().size() < 10'000);
        TAIYEN_CHECK(shape.text().size() < 10'000 * bytes.size());
        const std::string again = shape::encode(shape);
        TAIYEN_CHECK(Shape::decode(std::as_bytes(std::span(again))) == shape);
    } catch (const Error& error) {
        TAIYEN_CHECK(error.code() == errc::corrupt || error.code() == errc::unsupported_version);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    look_at(bytes);
    if (size < sizeof(shape::EncodedHead)) return 0;
    std::vector<std::byte> sealed(bytes.begin(), bytes.end());
    shape::seal(sealed);
    look_at(sealed);
    return 0;
}
