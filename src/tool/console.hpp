#pragma once
/// What the tool prints: figures that people can read, colours where a terminal shows them, progress while something takes long.
///
/// Results go to standard output; progress and errors to standard error. NO_COLOR (https://no-color.org) turns colours off, and so does an output that is no terminal.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/report.hpp>

namespace taiyen::tool {

enum class Style { plain, bold, faint, good, warning, bad };

/// The text, in that style if standard output shows styles.
std::string styled(Style style, std::string_view text);
bool shows_styles();

/// "1.50 GiB"; exact below 10 KiB.
std::string bytes_text(std::uint64_t bytes);
/// "12,345,678".
std::string count_text(std::uint64_t count);
/// "38.2 %"; "-" of nothing.
std::string share_text(std::uint64_t part, std::uint64_t whole);
/// "0x2300_0000_0000".
std::string address_text(std::uint64_t address);
/// The text with bytes that a terminal would act on made visible.
std::string visible(std::string_view text);

/// The text with lines of at most `columns`; what is a line of its own stays one.
std::string wrapped(std::string_view text, std::size_t columns = 100);

void print(std::string_view text);
/// "label      value" with the values under each other.
void print_fields(const std::vector<std::pair<std::string, std::string>>& fields);

/// A table; numbers to the right.
class Table {
public:
    struct Column {
        std::string title;
        bool to_right = false;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    std::string text() const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// A line on standard error that shows how far something is; quiet where that is no terminal. The line is gone when it ends.
class ProgressLine {
public:
    explicit ProgressLine(std::string what);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine();
    /// For the library's long calls; good as long as this object lives. Empty where nothing is shown.
    Progress progress();

private:
    std::string what_;
    bool shown_;
    int last_ = -1;
};

/// What an error says, without the file and place that it begins with.
std::string sentence_of(const Error& error);
/// "taiyen: drawing.tyn: …" on standard error.
void print_error(const std::exception& error);

}  // namespace taiyen::tool
