#pragma once
/// Numbers and times for people.

#include <chrono>
#include <cstdint>
#include <string>

namespace bank::command {

using Clock = std::chrono::steady_clock;

/// 12345678 → "12,345,678".
std::string grouped(std::uint64_t number);
/// "63 µs", "2.1 ms", "1.56 s".
std::string time_text(std::chrono::nanoseconds time);
/// "1 kill", "2 kills".
std::string counted(std::uint64_t number, const char* thing);

}  // namespace bank::command
