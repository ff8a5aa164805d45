#include "tool/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/sentence.hpp"

namespace taiyen::tool {
namespace {

/// How many columns a terminal shows it in, roughly: one for each UTF-8 sequence, none for styles.
std::size_t width_of(std::string_view text) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\033')
            i = std::min(text.find('m', i), text.size());
        else
            width += (static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80 ? 1 : 0;
    return width;
}

}  // namespace

bool shows_styles() {
    static const bool shows = [] {
        const char* const refused = std::getenv("NO_COLOR");
        const char* const terminal = std::getenv("TERM");
        return (refused == nullptr || *refused == '\0') && ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr &&
               std::string_view(terminal) != "dumb";
    }();
    return shows;
}

std::string styled(Style style, std::string_view text) {
    if (style == Style::plain || !shows_styles()) return std::string(text);
    static constexpr std::array<std::string_view, 6> codes{"0", "1", "2", "32", "33", "31"};
    return "\033[" + std::string(codes[static_cast<std::size_t>(style)]) + "m" + std::string(text) + "\033[0m";
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 10'240) return count_text(bytes) + " B";
    static constexpr std::array<const char*, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    char text[40];
    std::snprintf(text, sizeof text, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

std::string count_text(std::uint64_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
    return digits;
}

std::string counted(std::uint64_t count, std::string_view thing, std::string_view things) {
    return count_text(count) + " " + (count == 1 ? std::string(thing) : things.empty() ? std::string(thing) + "s" : std::string(things));
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "-";
    char text[24];
    std::snprintf(text, sizeof text, "%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
    return text;
}

std::string address_text(std::uint64_t address) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%llx", static_cast<unsigned long long>(address));
    std::string text = digits;
    for (std::size_t at = text.size(); at > 4;) text.insert(at -= 4, 1, '_');
    return "0x" + text;
}

std::string visible(std::string_view text) {
    std::string shown;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const auto code_of = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
        const bool is_c1 = (code_of(i) == 0xc2 && code_of(i + 1) >= 0x80 && code_of(i + 1) < 0xa0) ||
                           (i != 0 && code_of(i - 1) == 0xc2 && code_of(i) >= 0x80 && code_of(i) < 0xa0);
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || is_c1) {
            char code[8];
            std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            shown += code;
        } else {
            shown += c;
        }
    }
    return shown;
}

std::optional<std::size_t> terminal_columns(int descriptor) {
    winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return size.ws_col;
}

void print(const JsonWriter& json) { print(json.text() + "\n"); }

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_fields(const std::vector<std::pair<std::string, std::string>>& fields) {
    std::size_t width = 0;
    for (const auto& field : fields) width = std::max(width, field.first.size());
    for (const auto& [label, value] : fields) print(styled(Style::faint, label) + std::string(width + 2 - label.size(), ' ') + value + "\n");
}

namespace {

/// Rows that are wider than the terminal, the cells of each below each other.
void print_stacked(const std::vector<std::pair<std::string, Align>>& titles, const std::vector<std::vector<std::string>>& rows) {
    std::size_t width = 0;
    for (const auto& title : titles) width = std::max(width, width_of(title.first));
    for (const auto& row : rows) {
        if (&row != &rows.front()) print("\n");
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (width_of(row[i]) == 0) continue;
            print(styled(Style::faint, titles[i].first) + std::string(width + 2 - width_of(titles[i].first), ' ') + row[i] + "\n");
        }
    }
}

}  // namespace

void print_rows(const std::vector<std::pair<std::string, Align>>& titles, const std::vector<std::vector<std::string>>& rows) {
    if (rows.empty()) return;
    std::vector<std::size_t> widths;
    for (const auto& title : titles) widths.push_back(width_of(title.first));
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
    std::size_t whole = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) whole += width;
    if (const auto columns = terminal_columns(STDOUT_FILENO); columns && whole > *columns) {
        print_stacked(titles, rows);
        return;
    }
    const auto print_line = [&](const std::vector<std::string>& cells) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::string padding(widths[i] - width_of(cells[i]), ' ');
            line += (i == 0 ? "" : "  ") + (titles[i].second == Align::right ? padding + cells[i] : cells[i] + padding);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        print(line + "\n");
    };
    std::vector<std::string> head;
    for (const auto& title : titles) head.push_back(styled(Style::faint, title.first));
    print_line(head);
    for (const auto& row : rows) print_line(row);
}

void print_left_out(std::uint64_t listed, std::uint64_t all, std::string_view which) {
    if (all > listed) print("… and " + count_text(all - listed) + " " + std::string(which) + " (--list N lists more)\n");
}

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)), shown_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
    if (shown_ && last_ >= 0) std::fputs("\r\033[K", stderr);
}

Progress ProgressLine::progress() {
    if (!shown_) return {};
    return [this](std::uint64_t done, std::uint64_t total) {
        const int percent = total == 0 ? 100 : static_cast<int>(static_cast<double>(done) / static_cast<double>(total) * 100);
        if (percent == last_) return;
        last_ = percent;
        // A line that is longer than the terminal can't be taken back.
        constexpr std::size_t bar_max = 30;
        constexpr std::size_t beside = 9;  // " [] 100 %"
        const std::size_t columns = std::max<std::size_t>(terminal_columns(STDERR_FILENO).value_or(80), beside + 2) - 1;
        const std::string what = what_.size() + beside > columns ? what_.substr(0, columns - beside) : what_;
        const std::size_t bar = std::min(bar_max, columns - beside - what.size());
        const auto filled = static_cast<std::size_t>(percent) * bar / 100;
        std::fprintf(stderr, "\r%s [%s%s] %d %%", what.c_str(), std::string(filled, '#').c_str(), std::string(bar - filled, '.').c_str(), percent);
        std::fflush(stderr);
    };
}

std::string wrapped(std::string_view text) {
    const std::size_t columns = std::min<std::size_t>(terminal_columns(STDOUT_FILENO).value_or(100), 100);
    std::string made;
    std::size_t column = 0;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == '\n') {
            made += '\n';
            column = 0;
            ++at;
            continue;
        }
        std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (column != 0 && column + 1 + width_of(word) > columns) {
            made += '\n';
            column = 0;
        }
        if (column != 0) {
            made += ' ';
            ++column;
        }
        made += word;
        column += width_of(word);
        at = end + (end < text.size() && text[end] == ' ' ? 1 : 0);
    }
    return made;
}

void print_error(const std::exception& error) {
    const auto* const ours = dynamic_cast<const Error*>(&error);
    std::string text = ours != nullptr ? text_of(*ours) : error.what();
    // The library names files by their whole path; people mostly name them from where they are.
    std::error_code none;
    const std::string here = (std::filesystem::current_path(none) / "").string();
    if (here.size() > 1 && text.starts_with(here)) text.erase(0, here.size());
    std::fprintf(stderr, "taiyen: %s\n", visible(text).c_str());
}

}  // namespace taiyen::tool
