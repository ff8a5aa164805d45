#pragma once
/// What the demo prints: headings, aligned rows, a progress bar that shows on terminals only.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cad::demo {

using Clock = std::chrono::steady_clock;

/// Microseconds since `start`.
double microseconds_since(Clock::time_point start);
double median(std::vector<double> samples);

/// 12345678 → "12,345,678".
std::string grouped(std::uint64_t number);
/// "17.8 MiB", "36 KiB", "96 bytes".
std::string bytes_text(std::uint64_t bytes);
/// "63 µs", "2.1 ms", "1.56 s".
std::string time_text(double microseconds);

void heading(std::string_view text);
/// One line, indented.
void say(std::string_view text);
/// A label, a value and, if it is not empty, a remark in a dimmer colour.
void row(std::string_view label, std::string_view value, std::string_view remark = {});
/// A value that must hold: "ok" or "FAILED"; returns `holds`.
bool verdict(std::string_view label, bool holds, std::string_view remark = {});

/// Redraws one line on a terminal and removes it at the end; prints nothing elsewhere.
class ProgressBar {
public:
    explicit ProgressBar(std::string_view label);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;
    void show(std::size_t done, std::size_t all, std::string_view what);

private:
    std::string label_;
    bool on_terminal_;
    Clock::time_point shown_{};
};

}  // namespace cad::demo
