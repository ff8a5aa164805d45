#include "demo/console.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace cad::demo {
namespace {

bool colours() {
    static const bool wanted = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    return wanted;
}

const char* style(const char* sequence) { return colours() ? sequence : ""; }

constexpr const char* bold = "\033[1m";
constexpr const char* dim = "\033[2m";
constexpr const char* green = "\033[32m";
constexpr const char* red = "\033[1;31m";
constexpr const char* plain = "\033[0m";

/// Columns that UTF-8 text takes, if each of its characters takes one.
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

std::string padded(std::string_view text, std::size_t width) {
    std::string result(text);
    result.append(width - std::min(width, columns(text)), ' ');
    return result;
}

std::string format(const char* pattern, double value) {
    char text[48];
    std::snprintf(text, sizeof text, pattern, value);
    return text;
}

constexpr std::size_t label_width = 33;
constexpr std::size_t value_width = 18;

}  // namespace

double microseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

double median(std::vector<double> samples) {
    if (samples.empty()) return 0;
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

std::string grouped(std::uint64_t number) {
    const std::string digits = std::to_string(number);
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr double kib = 1024;
    const auto value = static_cast<double>(bytes);
    if (value >= 10 * kib * kib) return format("%.1f MiB", value / kib / kib);
    return value >= kib ? grouped(static_cast<std::uint64_t>(value / kib + 0.5)) + " KiB" : grouped(bytes) + " bytes";
}

std::string time_text(double microseconds) {
    if (microseconds >= 1e6) return format("%.2f s", microseconds / 1e6);
    if (microseconds >= 1e4) return format("%.0f ms", microseconds / 1e3);
    return microseconds >= 1e3 ? format("%.1f ms", microseconds / 1e3) : format("%.0f µs", microseconds);
}

void heading(std::string_view text) {
    std::printf("\n%s%.*s%s\n", style(bold), static_cast<int>(text.size()), text.data(), style(plain));
    std::fflush(stdout);
}

void say(std::string_view text) {
    std::printf("  %.*s\n", static_cast<int>(text.size()), text.data());
    std::fflush(stdout);
}

void row(std::string_view label, std::string_view value, std::string_view remark) {
    const std::string left = padded(label, label_width);
    if (remark.empty()) {
        std::printf("  %s %.*s\n", left.c_str(), static_cast<int>(value.size()), value.data());
    } else {
        std::printf("  %s %s %s%.*s%s\n", left.c_str(), padded(value, value_width).c_str(), style(dim), static_cast<int>(remark.size()),
                    remark.data(), style(plain));
    }
    std::fflush(stdout);
}

bool verdict(std::string_view label, bool holds, std::string_view remark) {
    std::printf("  %s %s%s%s %s%.*s%s\n", padded(label, label_width).c_str(), style(holds ? green : red),
                padded(holds ? "ok" : "FAILED", value_width).c_str(), style(plain), style(dim), static_cast<int>(remark.size()), remark.data(),
                style(plain));
    std::fflush(stdout);
    return holds;
}

ProgressBar::ProgressBar(std::string_view label) : label_(label), on_terminal_(isatty(STDOUT_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (on_terminal_) {
        std::printf("\r\033[K");
        std::fflush(stdout);
    }
}

void ProgressBar::show(std::size_t done, std::size_t all, std::string_view what) {
    constexpr std::size_t width = 30;
    constexpr auto interval = std::chrono::milliseconds(40);
    const Clock::time_point now = Clock::now();
    if (!on_terminal_ || all == 0 || (done < all && now - shown_ < interval)) return;
    shown_ = now;
    constexpr std::size_t name_max = 32;
    std::string bar;
    for (std::size_t i = 0; i < width; ++i) bar += i * all < done * width ? "█" : "░";
    std::printf("\r\033[K  %s %s %3zu %%  %.*s", label_.c_str(), bar.c_str(), done * 100 / all, static_cast<int>(std::min(what.size(), name_max)),
                what.data());
    std::fflush(stdout);
}

}  // namespace cad::demo
