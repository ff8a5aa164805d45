#pragma once
/// JSON, written as it goes: objects, arrays, values; indented by two. No reading.
///
/// (I1) Whatever the strings hold, the output is valid: bytes that are no UTF-8 become U+FFFD.
/// Thread rule: one thread.

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace taiyen {

/// Of the UTF-8 sequence of several bytes that the text begins with; 0: it is none (RFC 3629).
inline std::size_t utf8_sequence_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(0);
    const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0U) != 0x80) return 0;
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    return overlong || surrogate || (first == 0xf4 && byte(1) >= 0x90) ? 0 : length;
}

/// In UTF-8; what is no character is U+FFFD.
inline void append_utf8(std::string& text, std::uint32_t c) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    const auto put_rest = [&](int pieces) {
        while (pieces-- > 0) put(0x80U | (c >> (6U * static_cast<unsigned>(pieces)) & 0x3fU));
    };
    if (c < 0x80) return put(c);
    put(c < 0x800 ? 0xc0U | c >> 6U : c < 0x10000 ? 0xe0U | c >> 12U : 0xf0U | c >> 18U);
    put_rest(c < 0x800 ? 1 : c < 0x10000 ? 2 : 3);
}

/// In UTF-8, and nothing that a terminal obeys: controls as \u00xx, with quotes as a JSON string has them; bytes that are no UTF-8 as U+FFFD.
inline void append_escaped(std::string& to, std::string_view text, bool with_quotes) {
    const auto put_code = [&](unsigned c) {
        constexpr char digits[] = "0123456789abcdef";
        to += "\\u00";
        to += digits[c >> 4U];
        to += digits[c & 0xfU];
    };
    for (std::size_t i = 0; i < text.size();) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (with_quotes && (c == '"' || c == '\\')) {
            to += '\\';
            to += text[i++];
        } else if (c < 0x20 || c == 0x7f) {
            put_code(c);
            ++i;
        } else if (c < 0x80) {
            to += text[i++];
        } else {
            const std::size_t length = utf8_sequence_bytes(text.substr(i));
            const unsigned second = length == 2 ? static_cast<unsigned char>(text[i + 1]) : 0U;
            if (c == 0xc2 && second < 0xa0)  // C1 controls
                put_code(second);
            else
                to += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(i, length);
            i += length == 0 ? 1 : length;
        }
    }
}

class JsonWriter {
public:
    const std::string& text() const { return text_; }

    JsonWriter& begin_object() { return begin('{'); }
    JsonWriter& end_object() { return end('}'); }
    JsonWriter& begin_array() { return begin('['); }
    JsonWriter& end_array() { return end(']'); }
    JsonWriter& key(std::string_view name) {
        separate();
        write_string(name);
        text_ += ": ";
        follows_key_ = true;
        return *this;
    }

    JsonWriter& value(std::string_view string) {
        separate();
        write_string(string);
        return *this;
    }
    JsonWriter& value(const char* string) { return value(std::string_view(string)); }
    JsonWriter& value(bool flag) {
        separate();
        text_ += flag ? "true" : "false";
        return *this;
    }
    template <std::integral Number>
        requires(!std::same_as<Number, bool>)
    JsonWriter& value(Number number) {
        separate();
        text_ += std::to_string(number);
        return *this;
    }
    JsonWriter& value(double number) {
        separate();
        char digits[32];
        const auto written = std::to_chars(digits, digits + sizeof digits, std::isfinite(number) ? number : 0.0);
        text_.append(digits, written.ptr);
        return *this;
    }
    template <class Value>
    JsonWriter& member(std::string_view name, const Value& content) {
        return key(name).value(content);
    }

private:
    JsonWriter& begin(char bracket) {
        separate();
        text_ += bracket;
        ++depth_;
        is_first_ = true;
        return *this;
    }
    JsonWriter& end(char bracket) {
        --depth_;
        if (!is_first_) new_line();
        text_ += bracket;
        is_first_ = false;
        return *this;
    }
    void separate() {
        if (std::exchange(follows_key_, false)) return;
        if (!is_first_) text_ += ',';
        if (depth_ != 0) new_line();
        is_first_ = false;
    }
    void new_line() {
        text_ += '\n';
        text_.append(2 * depth_, ' ');
    }

    void write_string(std::string_view string) {
        text_ += '"';
        append_escaped(text_, string, true);
        text_ += '"';
    }

    std::string text_;
    std::size_t depth_ = 0;
    bool is_first_ = true;
    bool follows_key_ = false;
};

}  // namespace taiyen
