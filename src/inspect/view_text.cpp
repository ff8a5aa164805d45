#include <taiyen/inspect/view_text.hpp>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_memory.hpp"

namespace taiyen {
namespace {

void write_text(std::ostream& to, std::string_view text) { to << JsonWriter().value(text).text(); }

/// In quotes, as it is read; behind so many bytes `…`. Returns whether that is all.
bool write_text(std::ostream& to, const ViewValue& value, std::uint64_t bytes_max) {
    to << '"';
    const bool is_all = inspect::ViewAccess::for_each_piece(value, bytes_max, [&](std::string_view piece) {
        std::string escaped;
        append_escaped(escaped, piece, true);
        to << escaped;
    });
    to << (is_all ? "\"" : "…\"");
    return is_all;
}

class ViewJson {
public:
    ViewJson(std::ostream& to, const ViewValue& whole, const ViewTextOptions& options) : to_(to), options_(options), budget_(whole) {}

    void write(const ViewValue& value, unsigned depth = 0) {
        budget_.take(value, depth);
        if (value.is_text()) {
            write_text(to_, value, options_.text_bytes);
            return;
        }
        if (depth >= std::min(options_.depth, inspect::view_depth_max) && value.kind() > ShapeKind::enumeration) return write_text(to_, "…");
        switch (value.kind()) {
            case ShapeKind::opaque: return write_opaque(value);
            case ShapeKind::boolean: to_ << (value.get<bool>() ? "true" : "false"); return;
            case ShapeKind::signed_integer:
            case ShapeKind::unsigned_integer:
            case ShapeKind::enumeration: to_ << value.digits(); return;
            case ShapeKind::floating_point: return write_floating(value);
            case ShapeKind::structure: return write_structure(value, depth);
            case ShapeKind::pointer: return write_pointer(value);
            case ShapeKind::pair:
            case ShapeKind::tuple: return write_parts(value, depth);
            case ShapeKind::optional:
            case ShapeKind::variant: {
                const auto held = value.target();
                if (!held)
                    to_ << "null";
                else
                    write(*held, depth + 1);
                return;
            }
            default: return write_container(value, depth);
        }
    }

private:
    void line(unsigned depth) {
        if (options_.indent != 0) to_ << '\n' << std::string(std::size_t{depth} * options_.indent, ' ');
    }
    /// Between what comes and what came.
    void separate(bool& is_first, unsigned depth) {
        if (!is_first) to_ << (options_.indent == 0 ? ", " : ",");
        is_first = false;
        line(depth + 1);
    }
    void end(bool is_empty, char bracket, unsigned depth) {
        if (!is_empty) line(depth);
        to_ << bracket;
    }
    void write_opaque(const ViewValue& value) {
        to_ << "{\"opaque\": ";
        write_text(to_, value.type());
        to_ << '}';
    }
    void write_floating(const ViewValue& value) {
        const std::string digits = value.digits();
        if (digits.find_first_of("fn") != std::string::npos)
            write_text(to_, digits);
        else
            to_ << digits;
    }
    void write_structure(const ViewValue& value, unsigned depth) {
        to_ << '{';
        bool is_first = true;
        for (std::size_t i = 0; i != value.parts(); ++i) {
            separate(is_first, depth);
            write_text(to_, value.part_name(i));
            to_ << ": ";
            write(value.part(i), depth + 1);
        }
        end(is_first, '}', depth);
    }
    void write_parts(const ViewValue& value, unsigned depth) {
        to_ << '[';
        bool is_first = true;
        for (std::size_t i = 0; i != value.parts(); ++i) {
            separate(is_first, depth);
            write(value.part(i), depth + 1);
        }
        end(is_first, ']', depth);
    }
    void write_pointer(const ViewValue& value) {
        if (const auto elsewhere = value.outside()) {
            to_ << "{\"outside\": " << *elsewhere << '}';
            return;
        }
        const auto to = value.target();
        if (to)
            to_ << "{\"at\": " << to->offset() << '}';
        else
            to_ << "null";
    }
    void write_container(const ViewValue& value, unsigned depth) {
        if (!value.has_elements()) return write_opaque(value);
        std::uint64_t number = 0;
        bool is_first = true;
        const bool is_object = is_map(value.kind()) && !has_equal_keys(value.kind()) && inspect::ViewAccess::has_simple_keys(value);
        to_ << (is_object ? '{' : '[');
        for (const ViewValue& element : value.elements()) {
            separate(is_first, depth);
            if (number++ == options_.elements) {
                to_ << (is_object ? "\"more\": " : "{\"more\": ") << budget_.take_size(value, depth) - options_.elements << (is_object ? "" : "}");
                break;
            }
            if (is_object) {
                const ViewValue key = element.part(0);
                budget_.take(key, depth + 1);
                if (key.is_text())
                    write_text(to_, key, options_.text_bytes);
                else
                    write_text(to_, key.digits());
                to_ << ": ";
                write(element.part(1), depth + 1);
            } else {
                write(element, depth + 1);
            }
        }
        end(is_first, is_object ? '}' : ']', depth);
    }

    std::ostream& to_;
    const ViewTextOptions& options_;
    inspect::ViewBudget budget_;
};

/// A line for each value, those within it below it, indented.
class ViewTree {
public:
    ViewTree(std::ostream& to, const ViewValue& whole, const ViewTextOptions& options) : to_(to), options_(options), budget_(whole) {}

    void write(std::string_view label, const ViewValue& value, unsigned depth = 0) {
        budget_.take(value, depth);
        std::string shown;
        append_escaped(shown, label, false);
        to_ << std::string(std::size_t{depth} * options_.indent, ' ') << shown << ": ";
        if (value.kind() == ShapeKind::optional || value.kind() == ShapeKind::variant) {
            ViewValue held = value;
            for (unsigned steps = 0; held.kind() == ShapeKind::optional || held.kind() == ShapeKind::variant; ++steps) {
                auto inner = steps < options_.depth ? held.target() : std::nullopt;
                if (!inner) {
                    to_ << "nothing (" << value.type() << ")\n";
                    return;
                }
                held = std::move(*inner);
            }
            return write_here(held, depth);
        }
        write_here(value, depth);
    }

private:
    void write_here(const ViewValue& value, unsigned depth) {
        if (value.is_text()) {
            if (!write_text(to_, value, options_.text_bytes)) to_ << ", " << value.size() << " characters";
            to_ << '\n';
            return;
        }
        switch (value.kind()) {
            case ShapeKind::opaque: to_ << "opaque (" << value.type() << ", " << value.bytes() << " bytes)\n"; return;
            case ShapeKind::boolean: to_ << (value.get<bool>() ? "true\n" : "false\n"); return;
            case ShapeKind::signed_integer:
            case ShapeKind::unsigned_integer:
            case ShapeKind::floating_point:
            case ShapeKind::enumeration: to_ << value.digits() << '\n'; return;
            case ShapeKind::pointer: return write_pointer(value);
            case ShapeKind::structure:
            case ShapeKind::pair:
            case ShapeKind::tuple: return write_parts(value, depth);
            default: return write_container(value, depth);
        }
    }
    void write_pointer(const ViewValue& value) {
        if (value.outside()) {
            to_ << "out of the heap (" << value.type() << ")\n";
            return;
        }
        const auto to = value.target();
        if (to)
            to_ << "-> " << to->type() << " at " << to->offset() << '\n';
        else
            to_ << "null (" << value.type() << ")\n";
    }
    void write_parts(const ViewValue& value, unsigned depth) {
        to_ << value.type() << (depth + 1 >= options_.depth && value.parts() != 0 ? " …\n" : "\n");
        if (depth + 1 >= options_.depth) return;
        for (std::size_t i = 0; i != value.parts(); ++i) {
            const std::string& name = value.part_name(i);
            write(name.empty() ? joined({"[", std::to_string(i), "]"}) : name, value.part(i), depth + 1);
        }
    }
    void write_container(const ViewValue& value, unsigned depth) {
        if (!value.has_elements()) {
            to_ << "opaque (" << value.type() << ", " << value.bytes() << " bytes)\n";
            return;
        }
        const std::uint64_t size = budget_.take_size(value, depth);
        to_ << value.type() << ", " << (size == 0 ? "empty" : std::to_string(size) + (size == 1 ? " element" : " elements"));
        to_ << (depth + 1 >= options_.depth && size != 0 ? " …\n" : "\n");
        if (depth + 1 >= options_.depth) return;
        std::uint64_t number = 0;
        const bool has_labels = is_map(value.kind()) && inspect::ViewAccess::has_simple_keys(value);
        for (const ViewValue& element : value.elements()) {
            if (number == options_.elements) {
                to_ << std::string((std::size_t{depth} + 1) * options_.indent, ' ') << "… and " << size - number << " more\n";
                return;
            }
            if (has_labels) {
                const ViewValue key = element.part(0);
                budget_.take(key, depth + 1);
                write(inspect::ViewAccess::label(key, options_.text_bytes), element.part(1), depth + 1);
            } else {
                write(joined({"[", std::to_string(number), "]"}), element, depth + 1);
            }
            ++number;
        }
    }
    std::ostream& to_;
    const ViewTextOptions& options_;
    inspect::ViewBudget budget_;
};

}  // namespace

void write_json(std::ostream& to, const ViewValue& value, const ViewTextOptions& options) { ViewJson(to, value, options).write(value); }

void write_tree(std::ostream& to, std::string_view label, const ViewValue& value, const ViewTextOptions& options) {
    ViewTree(to, value, options).write(label, value);
}

}  // namespace taiyen
