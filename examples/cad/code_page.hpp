#pragma once
/// Text of DXF files as UTF-8.

#include <string>
#include <string_view>

namespace cad {

/// `raw` as UTF-8. Files since version AC1021 are UTF-8 already; older ones name a Windows code page such as "ANSI_1251". What the code page does not
/// have, or the system can't convert, becomes '?'.
std::string utf8_from(std::string_view raw, std::string_view version, std::string_view code_page);

/// The characters that a TEXT or MTEXT shows: its escapes (%%d, \U+00D8, \P, \~, {\fArial;…}) read, formatting left out; a line break is '\n'.
std::u32string plain_text(std::string_view content);

}  // namespace cad
