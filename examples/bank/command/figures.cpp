#include "command/figures.hpp"

#include <fmt/format.h>

namespace bank::command {

std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

std::string time_text(std::chrono::nanoseconds time) {
    const double microseconds = std::chrono::duration<double, std::micro>(time).count();
    if (microseconds >= 1e6) return fmt::format("{:.2f} s", microseconds / 1e6);
    if (microseconds >= 1e3) return fmt::format("{:.1f} ms", microseconds / 1e3);
    return fmt::format("{:.{}f} µs", microseconds, microseconds < 10 ? 1 : 0);
}

std::string counted(std::uint64_t number, const char* thing) { return fmt::format("{} {}{}", grouped(number), thing, number == 1 ? "" : "s"); }

}  // namespace bank::command
