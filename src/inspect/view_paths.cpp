// Where paths and patterns lead.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <limits>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/view.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_memory.hpp"

namespace taiyen {
namespace {

/// Pieces of a path, from the front.
struct PathPiece {
    enum class What { name, number, key, every };
    What what;
    std::string text;  ///< what was written, without dots, brackets and quotes
};

[[noreturn]] void throw_bad_path(std::string_view path, const char* why) {
    throw Error(errc::invalid_argument, "'" + std::string(path) + "' is no path: " + why + "; write it like parts[\"bolt\"].tags[2]");
}

/// What stands behind a backslash at `at`, which is moved to its end.
std::string escaped_at(std::string_view path, std::size_t& at) {
    if (++at >= path.size()) return {};
    switch (path[at]) {
        case 'b': return "\b";
        case 'f': return "\f";
        case 'n': return "\n";
        case 'r': return "\r";
        case 't': return "\t";
        case 'u': break;
        default: return {path[at]};
    }
    const auto unit = [&] {
        std::uint32_t code = 0;
        const std::string_view digits = path.substr(std::min(at + 1, path.size()), 4);
        const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() != 4 || parsed.ptr != digits.data() + 4) throw_bad_path(path, "\\u stands before four hexadecimal digits");
        at += 4;
        return code;
    };
    std::uint32_t code = unit();
    if (code >= 0xd800 && code < 0xdc00 && path.substr(at + 1).starts_with("\\u")) {
        at += 2;
        code = 0x10000 + ((code - 0xd800) << 10U) + ((unit() - 0xdc00) & 0x3ffU);
    }
    std::string text;
    append_utf8(text, code);
    return text;
}

std::vector<PathPiece> pieces_of(std::string_view path) {
    std::vector<PathPiece> pieces;
    std::size_t at = 0;
    while (at != path.size()) {
        if (path[at] == '[') {
            ++at;
            PathPiece piece{PathPiece::What::number, {}};
            if (at != path.size() && path[at] == '"') {
                piece.what = PathPiece::What::key;
                for (++at; at < path.size() && path[at] != '"'; ++at)
                    piece.text += path[at] == '\\' ? escaped_at(path, at) : std::string(1, path[at]);
                if (at >= path.size()) throw_bad_path(path, "a quote isn't closed");
                ++at;
            } else {
                while (at != path.size() && path[at] != ']') piece.text += path[at++];
                if (piece.text.empty()) throw_bad_path(path, "brackets hold nothing");
                if (piece.text == "*") piece.what = PathPiece::What::every;
            }
            if (at == path.size() || path[at] != ']') throw_bad_path(path, "a bracket isn't closed");
            ++at;
            pieces.push_back(std::move(piece));
            continue;
        }
        if (path[at] == '.')
            ++at;
        else if (!pieces.empty())
            throw_bad_path(path, "a dot is missing");
        PathPiece piece{PathPiece::What::name, {}};
        while (at != path.size() && path[at] != '.' && path[at] != '[') piece.text += path[at++];
        if (piece.text.empty()) throw_bad_path(path, "a name is missing");
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

}  // namespace

namespace {

/// Longer ones are cut in the paths that a pattern leads along: many keys may be one long text.
constexpr std::uint64_t key_bytes_max = 64_KiB;

/// Stops where they differ.
bool has_text(const ViewValue& value, std::string_view text) {
    bool is_same = true;
    const bool is_all = inspect::ViewAccess::for_each_piece(value, text.size(), [&](std::string_view piece) {
        is_same = is_same && text.starts_with(piece);
        text.remove_prefix(std::min(piece.size(), text.size()));
    });
    return is_all && is_same && text.empty();
}

}  // namespace

std::optional<ViewValue> ViewValue::step(std::string_view name) const {
    if (kind() != ShapeKind::structure && kind() != ShapeKind::pair) return std::nullopt;
    for (std::size_t i = 0; i != parts(); ++i)
        if (part_name(i) == name) return part(i);
    return std::nullopt;
}

std::optional<ViewValue> ViewValue::step_to(std::string_view key, bool is_text) const {
    if (is_map(kind()) && has_elements() && inspect::ViewAccess::has_simple_keys(*this)) {
        for (const ViewValue& element : elements()) {
            const ViewValue its = element.part(0);
            if (its.is_text() == is_text && (is_text ? has_text(its, key) : its.digits() == key)) return element.part(1);
        }
        return std::nullopt;
    }
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
    if (is_text || parsed.ec != std::errc() || parsed.ptr != key.data() + key.size()) return std::nullopt;
    if (parts() != 0) return number < parts() ? std::optional(part(number)) : std::nullopt;
    if (!has_elements()) return std::nullopt;
    for (const ViewValue& element : elements())
        if (number-- == 0) return element;
    return std::nullopt;
}

ViewValue ViewValue::at(std::string_view path) const {
    if (is_pattern(path)) throw_bad_path(path, "it stands for many values, or for none");
    std::optional<ViewValue> found;
    for_each(path, [&](std::string_view, const ViewValue& value) {
        found = value;
        return false;
    });
    return std::move(found).value();  // else it was thrown
}

// ---- patterns

namespace {

/// What a value is compared with.
struct Comparison {
    enum class Kind { none, number, text, boolean };
    Kind kind = Kind::none;
    std::string_view sign;  ///< of the pattern: "==", "!=", "<", "<=", ">" or ">="
    std::string text;
    ViewNumber number;
    bool flag = false;

    bool holds(std::partial_ordering order) const {
        if (sign == "==") return order == 0;
        if (sign == "!=") return order != 0;
        if (sign == "<") return order < 0;
        if (sign == "<=") return order <= 0;
        return sign == ">" ? order > 0 : order >= 0;
    }
};

std::partial_ordering order_of(const ViewNumber& a, const ViewNumber& b) {
    using Kind = ViewNumber::Kind;
    if (a.kind == Kind::floating || b.kind == Kind::floating) {
        const auto as_floating = [](const ViewNumber& number) {
            return number.kind == Kind::floating   ? number.floating
                   : number.kind == Kind::negative ? static_cast<long double>(number.negative)
                                                   : static_cast<long double>(number.natural);
        };
        return as_floating(a) <=> as_floating(b);
    }
    if (a.kind != b.kind) return a.kind == Kind::negative ? std::partial_ordering::less : std::partial_ordering::greater;
    return a.kind == Kind::negative ? std::partial_ordering(a.negative <=> b.negative) : std::partial_ordering(a.natural <=> b.natural);
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

/// Where it begins in a pattern: the first sign outside of brackets; the end: there is none.
std::size_t find_comparison(std::string_view pattern) {
    bool is_quoted = false;
    bool is_within = false;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        const char c = pattern[at];
        if (is_quoted && c == '\\')
            ++at;
        else if (c == '"')
            is_quoted = !is_quoted && is_within;
        else if (!is_quoted && (c == '[' || c == ']'))
            is_within = c == '[';
        else if (!is_within && (c == '<' || c == '>' || c == '=' || c == '!'))
            return at;
    }
    return pattern.size();
}

Comparison comparison_of(std::string_view pattern, std::size_t at) {
    Comparison comparison;
    if (at == pattern.size()) return comparison;
    const std::size_t length = at + 1 < pattern.size() && pattern[at + 1] == '=' ? 2 : 1;
    comparison.sign = pattern.substr(at, length);
    if (comparison.sign == "=" || comparison.sign == "!") throw_bad_path(pattern, "values are compared by ==, !=, <, <=, > and >=");
    const std::string_view literal = trimmed(pattern.substr(at + length));
    if (literal == "true" || literal == "false") {
        comparison.kind = Comparison::Kind::boolean;
        comparison.flag = literal == "true";
        return comparison;
    }
    if (literal.starts_with('"')) {
        comparison.kind = Comparison::Kind::text;
        std::size_t end = 1;
        for (; end < literal.size() && literal[end] != '"'; ++end)
            comparison.text += literal[end] == '\\' ? escaped_at(literal, end) : std::string(1, literal[end]);
        if (end + 1 != literal.size()) throw_bad_path(pattern, "a quote isn't closed");
        return comparison;
    }
    comparison.kind = Comparison::Kind::number;
    const char* const end = literal.data() + literal.size();
    const auto is_all = [&](auto& number) {
        const auto parsed = std::from_chars(literal.data(), end, number);
        return !literal.empty() && parsed.ec == std::errc() && parsed.ptr == end;
    };
    ViewNumber& number = comparison.number;
    if (literal.starts_with('-') && is_all(number.negative)) {
        if (number.negative != 0) number.kind = ViewNumber::Kind::negative;
    } else if (!is_all(number.natural)) {
        number.kind = ViewNumber::Kind::floating;
        if (!is_all(number.floating)) throw_bad_path(pattern, "behind the sign stands a number, a text in quotes, true or false");
    }
    return comparison;
}

}  // namespace

/// What a pattern leads to, step by step.
class ViewValue::Matcher {
public:
    Matcher(const ViewValue& whole, std::string_view pattern, const std::function<bool(std::string_view, const ViewValue&)>& take)
        : budget_(whole), pattern_(pattern), end_(find_comparison(pattern)), pieces_(pieces_of(trimmed(pattern.substr(0, end_)))),
          comparison_(comparison_of(pattern, end_)), take_(take) {}

    /// False: no more are wanted. `may_lack`: others have what this one hasn't got. `is_choice`: it lies in a variant.
    bool visit(const ViewValue& value, const std::string& path, std::size_t step, bool may_lack, bool is_choice = false) {
        budget_.take(value, static_cast<unsigned>(step));
        if (is_pointer_within(value)) {  // many may lead to one value, which counts each time
            inspect::ViewBudget before = std::exchange(budget_, inspect::ViewBudget(value));
            const bool goes_on = step_from(value, path, step, may_lack, is_choice);
            budget_ = std::move(before);
            return goes_on;
        }
        return step_from(value, path, step, may_lack, is_choice);
    }

private:
    static bool is_pointer_within(const ViewValue& value) {
        std::optional<ViewValue> here = value;
        while (here && (here->kind() == ShapeKind::optional || here->kind() == ShapeKind::variant)) here = here->target();
        return here && here->kind() == ShapeKind::pointer;
    }
    bool step_from(const ViewValue& value, const std::string& path, std::size_t step, bool may_lack, bool is_choice) {
        if (step == pieces_.size()) return end(value, path, may_lack);
        const PathPiece& piece = pieces_[step];
        std::optional<ViewValue> here = inside(value, may_lack);
        if (!here) return true;
        take_held(value, *here, step);
        is_choice = is_choice || value.kind() == ShapeKind::variant;
        may_lack = may_lack || is_choice;
        if (piece.what == PathPiece::What::every) return visit_every(*here, path, step, may_lack, is_choice);
        if (piece.what != PathPiece::What::name) budget_.take_search(*here, static_cast<unsigned>(step));
        std::optional<ViewValue> to =
            piece.what == PathPiece::What::name ? here->step(piece.text) : here->step_to(piece.text, piece.what == PathPiece::What::key);
        const std::string text = piece.what == PathPiece::What::key ? JsonWriter().value(std::string_view(piece.text)).text() : piece.text;
        const bool is_name = piece.what == PathPiece::What::name;
        const std::string written = is_name ? joined({path.empty() ? "" : ".", text}) : joined({"[", text, "]"});
        if (to) return visit(*to, joined({path, written}), step + 1, may_lack, is_choice);
        const bool is_misspelt = piece.what == PathPiece::What::name && here->kind() == ShapeKind::structure && !is_choice;
        if (may_lack && !is_misspelt) return true;
        throw Error(
            errc::not_found, here->memory_->file.path(), here->offset_,
            joined({path.empty() ? "the object" : "'", path, path.empty() ? "" : "'", " is a ", here->type(), ", which has no '", written, "'"}));
    }

    /// Behind pointers, optionals and variants.
    static std::optional<ViewValue> inside(const ViewValue& value, bool may_lack) {
        if (!may_lack) return value.held();
        try {
            return value.held();
        } catch (const Error& error) {
            if (error.code() != errc::not_found) throw;
            return std::nullopt;
        }
    }
    void take_held(const ViewValue& value, const ViewValue& held, std::size_t step) {
        if (held.kind() != value.kind()) budget_.take(held, static_cast<unsigned>(step));
    }
    bool visit_every(const ViewValue& here, const std::string& path, std::size_t step, bool may_lack, bool is_choice) {
        std::size_t number = 0;
        const auto numbered = [&](const ViewValue& element) {
            return visit(element, joined({path, "[", std::to_string(number++), "]"}), step + 1, true, is_choice);
        };
        if (here.kind() == ShapeKind::tuple) {
            while (number != here.parts())
                if (!numbered(here.part(number))) return false;
            return true;
        }
        if (may_lack && !here.has_elements()) return true;
        const bool has_labels = is_map(here.kind()) && inspect::ViewAccess::has_simple_keys(here);
        for (const ViewValue& element : here.elements()) {
            if (!has_labels) {
                if (!numbered(element)) return false;
                continue;
            }
            budget_.take(element.part(0), static_cast<unsigned>(step + 1));
            const std::string to = joined({path, inspect::ViewAccess::label(element.part(0), key_bytes_max)});
            if (!visit(element.part(1), to, step + 1, true, is_choice)) return false;
        }
        return true;
    }
    bool end(const ViewValue& value, const std::string& path, bool may_lack) {
        if (comparison_.kind == Comparison::Kind::none) return take_(path, value);
        const std::optional<ViewValue> held = inside(value, may_lack);
        if (held) take_held(value, *held, pieces_.size());
        return !held || !is_wanted(*held) || take_(path, value);
    }
    bool is_wanted(const ViewValue& value) const {
        switch (comparison_.kind) {
            case Comparison::Kind::number: return comparison_.holds(order_of(as_written(value), comparison_.number));
            case Comparison::Kind::boolean: return comparison_.holds(value.get<bool>() <=> comparison_.flag);
            default: return comparison_.holds(value.text() <=> comparison_.text);
        }
    }

    /// What is written of a value of fewer digits is another number than it is: 1.98 of the float next to it.
    static ViewNumber as_written(const ViewValue& value) {
        ViewNumber number = value.number();
        if (number.kind != ViewNumber::Kind::floating) return number;
        const std::string digits = value.digits();
        std::from_chars(digits.data(), digits.data() + digits.size(), number.floating);
        return number;
    }

    inspect::ViewBudget budget_;
    const std::string_view pattern_;
    const std::size_t end_;
    const std::vector<PathPiece> pieces_;
    const Comparison comparison_;
    const std::function<bool(std::string_view, const ViewValue&)>& take_;
};

void ViewValue::for_each(std::string_view pattern, const std::function<bool(std::string_view path, const ViewValue& value)>& take) const {
    Matcher(*this, pattern, take).visit(*this, {}, 0, false);
}

bool ViewValue::is_pattern(std::string_view path) {
    const std::size_t end = find_comparison(path);
    return end != path.size() || std::ranges::any_of(pieces_of(path), [](const PathPiece& piece) { return piece.what == PathPiece::What::every; });
}

std::string inspect::ViewAccess::label(const ViewValue& key, std::uint64_t bytes_max) {
    if (!key.is_text()) return joined({"[", key.digits(), "]"});
    std::string label = "[\"";
    if (!for_each_piece(key, bytes_max, [&](std::string_view piece) { append_escaped(label, piece, true); })) label += "…";
    return label += "\"]";
}

}  // namespace taiyen
