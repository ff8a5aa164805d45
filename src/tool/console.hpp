#pragma once
/// What the tool prints: figures that people can read, colours where a terminal shows them, progress while something takes long.
///
/// Results go to standard output; progress and errors to standard error. NO_COLOR (https://no-color.org) turns colours off, and so does an output that is no terminal.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/report.hpp>

#include "base/json.hpp"

namespace taiyen::tool {

enum class Style { plain, bold, faint, good, warning, bad };

/// The text, in that style if standard output shows styles.
std::string styled(Style style, std::string_view text);
bool shows_styles();

/// "1.50 GiB"; exact below 10 KiB.
std::string bytes_text(std::uint64_t bytes);
/// "12,345,678".
std::string count_text(std::uint64_t count);
/// "1 page", "12 pages"; `things`: where an s doesn't do.
std::string counted(std::uint64_t count, std::string_view thing, std::string_view things = {});
/// "38.2 %"; "-" of nothing.
std::string share_text(std::uint64_t part, std::uint64_t whole);
/// "0x2300_0000_0000".
std::string address_text(std::uint64_t address);
/// The text with bytes that a terminal would act on made visible.
std::string visible(std::string_view text);

/// Columns of the terminal behind that file descriptor; nothing: there is none, or it doesn't know.
std::optional<std::size_t> terminal_columns(int descriptor);
/// The text with lines as long as the terminal, at most 100; what is a line of its own stays one.
std::string wrapped(std::string_view text);

void print(std::string_view text);
/// A whole document.
void print(const JsonWriter& json);
/// "label      value" with the values under each other.
void print_fields(const std::vector<std::pair<std::string, std::string>>& fields);

enum class Align { left, right };

/// A column of a table of things: its title, and what stands in it for each of them.
template <class Thing>
struct Column {
    const char* title;
    Align align;
    std::function<std::string(const Thing& thing)> cell;
};

/// Titles, and rows below them; nothing where there are no rows. On a terminal that is narrower than the rows: each row as lines "TITLE  cell".
void print_rows(const std::vector<std::pair<std::string, Align>>& titles, const std::vector<std::vector<std::string>>& rows);

/// A table of things, a row each. Nothing is printed of none.
template <class Thing>
void print_table(std::span<const Thing> things, std::initializer_list<Column<Thing>> columns) {
    std::vector<std::pair<std::string, Align>> titles;
    for (const Column<Thing>& column : columns) titles.emplace_back(column.title, column.align);
    std::vector<std::vector<std::string>> rows;
    for (const Thing& thing : things) {
        std::vector<std::string>& row = rows.emplace_back();
        for (const Column<Thing>& column : columns) row.push_back(column.cell(thing));
    }
    print_rows(titles, rows);
}
template <class Thing>
void print_table(const std::vector<Thing>& things, std::initializer_list<Column<Thing>> columns) {
    print_table(std::span<const Thing>(things), columns);
}

/// What a list leaves out, if it does.
void print_left_out(std::uint64_t listed, std::uint64_t all, std::string_view which = "more");

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

/// "taiyen: drawing.tyn: …" on standard error.
void print_error(const std::exception& error);

}  // namespace taiyen::tool
