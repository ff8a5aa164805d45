#pragma once
/// What the golden heaps hold: written by write_golden.cpp, expected by ../golden_test.cpp. Never changed; a new format version gets files of its own.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace golden {

struct Named {
    std::string name;
    std::string bytes;
};

/// Bytes that differ by place and by `salt`.
inline std::string pattern(std::size_t count, unsigned salt) {
    std::string bytes(count, '\0');
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>((i * 7 + i / 251 + salt) % 251);
    return bytes;
}

/// Contents of a packed size lie in packed blocks.
inline std::size_t alignment_of(const Named& named) { return named.bytes.size() == 40 ? 8 : 16; }

inline constexpr char fingerprint[] = "golden bytes";
inline constexpr std::uint64_t capacity = 256 * 1024;
inline constexpr std::uint64_t archive_address = 0x2b00'0000'0000;
inline constexpr std::uint64_t snapshot_address = 0x2b10'0000'0000;

/// The closed archive heap: blocks of one granule, of a small page, of pages and a rest, of whole pages, of a packed page.
inline std::vector<Named> archive_content() {
    return {{"greeting", "hello"},
            {"gr\xC3\xB6\xC3\x9F"
             "e",
             pattern(16, 1)},
            {"line", pattern(700, 2)},
            {"run with a rest", pattern(5000, 3)},
            {"two pages", pattern(8192, 4)},
            {"node", pattern(40, 5)},
            {"another node", pattern(40, 6)}};
}

/// The snapshot heap after save 1, 2 or 3: the files hold the first save, the journal the two others.
inline std::vector<Named> snapshot_content(unsigned save) {
    std::vector<Named> content{{"changes", std::string(100, static_cast<char>('0' + save))}};
    for (unsigned i = 1; i <= save; ++i) content.push_back({"added by save " + std::to_string(i), pattern(100, i)});
    return content;
}

}  // namespace golden
