#include "command/words.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace cad::command {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// All of `text` as a number, or nothing.
template <class Number>
bool parse(std::string_view text, Number& number) {
    const char* const end = text.data() + text.size();
    const auto [stopped, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc() && stopped == end && !text.empty();
}

/// Steps to turn one word into the other: insert, drop or replace a letter, or swap two neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::vector<std::size_t> next(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            next[j] = std::min({next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row.back();
}

}  // namespace

std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < line.size();) {
        if (is_blank(line[i])) {
            ++i;
            continue;
        }
        if (line[i] == '#') break;
        std::string& word = words.emplace_back();
        bool inside = false;
        for (; i < line.size() && (inside || !is_blank(line[i])); ++i) {
            if (line[i] == '"') {
                inside = !inside;
            } else {
                i += inside && line[i] == '\\' && i + 1 < line.size() ? 1 : 0;
                word += line[i];
            }
        }
        if (inside) throw CommandError("a quotation has no end: a second \" is missing behind " + word);
    }
    return words;
}

std::string as_typed(std::string_view word) {
    if (!word.empty() && word.find_first_of(" \t\"#") == std::string_view::npos) return std::string(word);
    std::string text = "\"";
    for (const char c : word) text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    return text + '"';
}

double number_in(std::string_view word, std::string_view expected) {
    double number = 0;
    if (!parse(word.starts_with('+') ? word.substr(1) : word, number) || !std::isfinite(number))
        throw CommandError("expected " + std::string(expected) + ", a number, not '" + std::string(word) + "'");
    return number;
}

Point2 point_in(std::string_view word, std::string_view expected) {
    const std::size_t comma = word.find(',');
    Point2 point;
    if (comma == std::string_view::npos || !parse(word.substr(0, comma), point.x) || !parse(word.substr(comma + 1), point.y) ||
        !std::isfinite(point.x) || !std::isfinite(point.y)) {
        throw CommandError("expected " + std::string(expected) + " as X,Y (like 10,2.5), not '" + std::string(word) + "'");
    }
    return point;
}

void append_ids(std::string_view word, std::vector<EntityId>& ids) {
    constexpr EntityId many = 1'000'000;
    const std::size_t dash = word.find('-');
    EntityId first = 0;
    EntityId last = 0;
    const bool read = parse(word.substr(0, dash), first) && (dash == std::string_view::npos || parse(word.substr(dash + 1), last));
    last = dash == std::string_view::npos ? first : last;
    if (!read || first == 0 || last < first || last - first >= many)
        throw CommandError("expected an entity's id (like 17) or a range (like 17-20), not '" + std::string(word) + "'");
    for (EntityId id = first; id <= last; ++id) ids.push_back(id);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
    std::string best;
    std::size_t best_distance = 1 + std::min<std::size_t>(2, word.size() / 2);
    for (const std::string& candidate : candidates) {
        if (const std::size_t steps = distance(word, candidate); steps < best_distance) {
            best = candidate;
            best_distance = steps;
        }
    }
    return best;
}

std::string Arguments::next(std::string_view expected) {
    if (empty()) misused("expected " + std::string(expected) + ", but the line ends");
    return words_[at_++];
}

double Arguments::length(std::string_view expected) {
    const std::string word = next(expected);
    const double value = number_in(word, expected);
    if (value <= 0) throw CommandError("expected " + std::string(expected) + " above 0, not " + word);
    return value;
}

bool Arguments::take(std::string_view word) {
    const bool taken = peek() == word;
    at_ += taken ? 1 : 0;
    return taken;
}

std::size_t Arguments::count_or(std::size_t otherwise, std::string_view expected) {
    if (empty()) return otherwise;
    const std::string word = next(expected);
    std::size_t value = 0;
    if (!parse(std::string_view(word), value) || value == 0)
        throw CommandError("expected " + std::string(expected) + ", a count from 1, not '" + word + "'");
    return value;
}

void Arguments::end() const {
    if (!empty()) misused("'" + words_[at_] + "' is too much");
}

void Arguments::misused(const std::string& why) const { throw CommandError(why + "; usage: " + usage_); }

}  // namespace cad::command
