#include "command/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace wordnet::command {

std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

std::string time_text(Clock::duration time) {
    const double microseconds = std::chrono::duration<double, std::micro>(time).count();
    if (microseconds >= 1e6) return fmt::format("{:.2f} s", microseconds / 1e6);
    return microseconds >= 1e3 ? fmt::format("{:.1f} ms", microseconds / 1e3) : fmt::format("{:.0f} µs", microseconds);
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
    // Columns are counted, not bytes: in UTF-8 a character's later bytes begin with the bits 10.
    const auto columns = [](std::string_view word) {
        return std::ranges::count_if(word, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; });
    };
    const std::string margin(indent, ' ');
    std::string result;
    std::size_t used = 0;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        const auto needed = static_cast<std::size_t>(columns(word));
        if (used != 0 && used + 1 + needed > width) {
            result += '\n';
            used = 0;
        }
        result += used == 0 ? margin : " ";
        used += needed + (used == 0 ? indent : 1);
        result += word;
        text.remove_prefix(std::min(word.size() + 1, text.size()));
    }
    return result + '\n';
}

ProgressLine::ProgressLine() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
    if (on_terminal_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(std::uint64_t done, std::uint64_t all, std::string_view what) {
    constexpr auto often = std::chrono::milliseconds(50);
    const auto now = Clock::now();
    if (!on_terminal_ || now - shown_ < often) return;
    shown_ = now;
    constexpr std::size_t width = 30;
    const std::size_t full = all == 0 ? width : static_cast<std::size_t>(done * width / all);
    fmt::print(stderr, "\r\033[K[{:<{}}] {}", std::string(full, '#'), width, what);
    std::fflush(stderr);
}

}  // namespace wordnet::command
