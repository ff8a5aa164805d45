#include "code_page.hpp"

#include <iconv.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace cad {
namespace {

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

class Converter {
public:
    Converter(const char* to, const char* from) : handle_(iconv_open(to, from)) {}
    Converter(const Converter&) = delete;
    Converter& operator=(const Converter&) = delete;
    ~Converter() {
        if (usable()) iconv_close(handle_);
    }
    bool usable() const { return handle_ != reinterpret_cast<iconv_t>(-1); }
    /// A byte that can't be converted becomes '?'.
    std::string operator()(std::string text) {
        std::string result(text.size() * 4, '\0');
        char* in = text.data();
        std::size_t in_left = text.size();
        char* out = result.data();
        std::size_t out_left = result.size();
        while (in_left > 0 && iconv(handle_, &in, &in_left, &out, &out_left) == static_cast<std::size_t>(-1)) {
            *out++ = '?';
            --out_left;
            ++in;
            --in_left;
        }
        result.resize(result.size() - out_left);
        return result;
    }

private:
    iconv_t handle_;
};

std::string question_marks(std::string text) {
    std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
    return text;
}

/// The character at the front of `text`, which is not empty; takes it away. Bytes that are no UTF-8 become U+FFFD, one each.
char32_t take_character(std::string_view& text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
    bool valid = length >= 1 && length <= text.size();
    auto character = static_cast<char32_t>(length <= 1 ? first : first & (0x7fU >> length));
    for (std::size_t i = 1; valid && i < length; ++i) {
        valid = (byte(i) & 0xc0U) == 0x80;
        character = (character << 6U) | (byte(i) & 0x3fU);
    }
    text.remove_prefix(valid ? length : 1);
    return valid ? character : U'\uFFFD';
}

/// `\U+XXXX` behind the backslash: takes "U+XXXX" away.
std::optional<char32_t> take_code_point(std::string_view& text) {
    constexpr std::size_t length = 6;
    unsigned value = 0;
    if (text.size() < length || (text[0] != 'U' && text[0] != 'u') || text[1] != '+' ||
        std::from_chars(text.data() + 2, text.data() + length, value, 16).ptr != text.data() + length) {
        return std::nullopt;
    }
    text.remove_prefix(length);
    return static_cast<char32_t>(value);
}

/// Reads what stands behind a backslash.
void take_escape(std::string_view& text, std::u32string& result) {
    if (const std::optional<char32_t> character = take_code_point(text)) {
        result += *character;
        return;
    }
    if (text.empty()) return;
    const char code = text.front();
    text.remove_prefix(1);
    switch (code) {
        case 'P': result += U'\n'; return;
        case '~': result += U'\u00A0'; return;
        case '\\':
        case '{':
        case '}': result += static_cast<char32_t>(code); return;
        case 'L':
        case 'l':
        case 'O':
        case 'o':
        case 'K':
        case 'k': return;
        default: break;
    }
    // The other codes (font, height, colour, …) have an argument up to a semicolon; a stacked fraction's argument is what is shown.
    const std::size_t end = std::min(text.find(';'), text.size());
    if (code == 'S') {
        for (std::string_view stacked = text.substr(0, end); !stacked.empty();) {
            const char32_t character = take_character(stacked);
            result += character == U'^' || character == U'#' ? U'/' : character;
        }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
}

/// Reads what stands behind two percent signs; false if it is no code.
bool take_percent(std::string_view& text, std::u32string& result) {
    if (text.empty()) return false;
    switch (text.front()) {
        case 'd':
        case 'D': result += U'\u00B0'; break;
        case 'p':
        case 'P': result += U'\u00B1'; break;
        case 'c':
        case 'C': result += U'\u2300'; break;
        case '%': result += U'%'; break;
        case 'u':
        case 'U':
        case 'o':
        case 'O': break;
        default: return false;
    }
    text.remove_prefix(1);
    return true;
}

}  // namespace

std::string utf8_from(std::string_view raw, std::string_view version, std::string_view code_page) {
    constexpr std::string_view first_utf8_version = "AC1021";
    constexpr std::string_view prefix = "ANSI_";
    if (is_ascii(raw) || version >= first_utf8_version) return std::string(raw);
    const std::string name = code_page.starts_with(prefix) ? "CP" + std::string(code_page.substr(prefix.size())) : "CP1252";
    Converter converter("UTF-8", name.c_str());
    return converter.usable() ? converter(std::string(raw)) : question_marks(std::string(raw));
}

std::u32string plain_text(std::string_view content) {
    std::u32string result;
    while (!content.empty()) {
        if (content.front() == '\\') {
            content.remove_prefix(1);
            take_escape(content, result);
        } else if (content.front() == '{' || content.front() == '}') {
            content.remove_prefix(1);
        } else if (content.starts_with("%%")) {
            std::string_view rest = content.substr(2);
            if (take_percent(rest, result))
                content = rest;
            else
                result += take_character(content);
        } else {
            result += take_character(content);
        }
    }
    return result;
}

}  // namespace cad
