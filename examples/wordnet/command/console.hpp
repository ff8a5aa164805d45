#pragma once
/// Figures for people, and a line that shows how far something is.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace wordnet::command {

using Clock = std::chrono::steady_clock;

/// 12345678 → "12,345,678".
std::string grouped(std::uint64_t number);
/// "63 µs", "2.1 ms", "1.56 s".
std::string time_text(Clock::duration time);
/// The text in lines of at most `width` columns, each behind `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 100);

/// Redraws one line of standard error on a terminal and removes it at the end; prints nothing elsewhere.
class ProgressLine {
public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(std::uint64_t done, std::uint64_t all, std::string_view what);

private:
    bool on_terminal_;
    Clock::time_point shown_{};
};

}  // namespace wordnet::command
