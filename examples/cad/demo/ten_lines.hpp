#pragma once
/// The marked lines of the demo's own sources (`//[ what they do` … `//]`), put here when the demo is built.

namespace cad::demo {

extern const char* const ten_lines;

}  // namespace cad::demo
