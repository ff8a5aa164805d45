#include <taiyen/inspect/view_text.hpp>

#include <ostream>
#include <string_view>

#include "base/json.hpp"
#include "inspect/view_memory.hpp"

namespace taiyen {
namespace {

void write_text(std::ostream& to, std::string_view text) { to << JsonWriter().value(text).text(); }

std::string bracketed(std::string_view text) {
    std::string all(1, '[');
    all += text;
    return all += ']';
}

bool is_text(ShapeKind kind) { return kind == ShapeKind::string || kind == ShapeKind::character; }
bool is_plain_number(ShapeKind kind) {
    return kind == ShapeKind::signed_integer || kind == ShapeKind::unsigned_integer || kind == ShapeKind::floating_point ||
           kind == ShapeKind::enumeration;
}

/// Of a map: numbers or texts.
bool has_simple_keys(const ViewValue& map) {
    const Shape& shape = *inspect::ViewAccess::memory(map).shape;
    const ShapeNode& pair = shape.nodes[inspect::ViewAccess::node(map).parts.front().node];
    if (pair.kind != ShapeKind::pair) return false;
    const ShapeKind key = shape.nodes[pair.parts.front().node].kind;
    return is_text(key) || is_plain_number(key);
}

class ViewJson {
public:
    ViewJson(std::ostream& to, const ViewTextOptions& options) : to_(to), options_(options) {}

    void write(const ViewValue& value, unsigned depth = 0) {
        if (depth >= options_.depth && value.kind() > ShapeKind::enumeration && value.kind() != ShapeKind::string) return write_text(to_, "…");
        switch (value.kind()) {
            case ShapeKind::opaque: return write_opaque(value);
            case ShapeKind::boolean: to_ << (value.get<bool>() ? "true" : "false"); return;
            case ShapeKind::signed_integer:
            case ShapeKind::unsigned_integer:
            case ShapeKind::enumeration: to_ << value.digits(); return;
            case ShapeKind::floating_point: return write_floating(value);
            case ShapeKind::character: return write_text(to_, value.text());
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
        const auto to = value.target();
        if (to)
            to_ << "{\"at\": " << to->offset() << '}';
        else
            to_ << "null";
    }
    void write_container(const ViewValue& value, unsigned depth) {
        if (!value.has_elements()) return write_opaque(value);
        const bool is_unique = value.kind() != ShapeKind::multimap && value.kind() != ShapeKind::unordered_multimap &&
                               value.kind() != ShapeKind::btree_multimap && value.kind() != ShapeKind::ordered_multimap;
        if (value.kind() == ShapeKind::string) return write_text(to_, value.text());
        std::uint64_t number = 0;
        bool is_first = true;
        const bool is_object = is_map(value.kind()) && is_unique && has_simple_keys(value);
        for (const ViewValue& element : value.elements()) {
            if (is_first) {
                if (element.kind() == ShapeKind::character && value.kind() == ShapeKind::array) return write_text(to_, value.text());
                to_ << (is_object ? '{' : '[');
            }
            separate(is_first, depth);
            if (number++ == options_.elements) {
                to_ << (is_object ? "\"more\": " : "{\"more\": ") << value.size() - options_.elements << (is_object ? "" : "}");
                break;
            }
            if (is_object) {
                const ViewValue key = element.part(0);
                write_text(to_, is_text(key.kind()) ? key.text() : key.digits());
                to_ << ": ";
                write(element.part(1), depth + 1);
            } else {
                write(element, depth + 1);
            }
        }
        if (is_first) to_ << (is_object ? '{' : '[');
        end(is_first, is_object ? '}' : ']', depth);
    }

    std::ostream& to_;
    const ViewTextOptions& options_;
};

/// A line for each value, those within it below it, indented.
class ViewTree {
public:
    ViewTree(std::ostream& to, const ViewTextOptions& options) : to_(to), options_(options) {}

    void write(std::string_view label, const ViewValue& value, unsigned depth = 0) {
        to_ << std::string(std::size_t{depth} * options_.indent, ' ') << label << ": ";
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
        switch (value.kind()) {
            case ShapeKind::opaque: to_ << "opaque (" << value.type() << ", " << value.bytes() << " bytes)\n"; return;
            case ShapeKind::boolean: to_ << (value.get<bool>() ? "true\n" : "false\n"); return;
            case ShapeKind::signed_integer:
            case ShapeKind::unsigned_integer:
            case ShapeKind::floating_point:
            case ShapeKind::enumeration: to_ << value.digits() << '\n'; return;
            case ShapeKind::character: write_text(to_, value.text()); break;
            case ShapeKind::pointer: return write_pointer(value);
            case ShapeKind::structure:
            case ShapeKind::pair:
            case ShapeKind::tuple: return write_parts(value, depth);
            default: return write_container(value, depth);
        }
        to_ << '\n';
    }
    void write_pointer(const ViewValue& value) {
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
            write(name.empty() ? bracketed(std::to_string(i)) : name, value.part(i), depth + 1);
        }
    }
    void write_container(const ViewValue& value, unsigned depth) {
        if (!value.has_elements()) {
            to_ << "opaque (" << value.type() << ", " << value.bytes() << " bytes)\n";
            return;
        }
        const bool is_row = value.kind() == ShapeKind::string || value.kind() == ShapeKind::array;
        if (is_row) {
            ViewElements elements = value.elements();
            const bool is_empty = elements.begin() == elements.end();
            if (value.kind() == ShapeKind::string || (!is_empty && elements.begin()->kind() == ShapeKind::character)) {
                write_text(to_, value.text());
                to_ << '\n';
                return;
            }
        }
        const std::uint64_t size = value.size();
        to_ << value.type() << ", " << (size == 0 ? "empty" : std::to_string(size) + (size == 1 ? " element" : " elements"));
        to_ << (depth + 1 >= options_.depth && size != 0 ? " …\n" : "\n");
        if (depth + 1 >= options_.depth) return;
        std::uint64_t number = 0;
        for (const ViewValue& element : value.elements()) {
            if (number == options_.elements) {
                to_ << std::string((std::size_t{depth} + 1) * options_.indent, ' ') << "… and " << size - number << " more\n";
                return;
            }
            if (is_map(value.kind()) && has_simple_keys(value))
                write(label_of(element.part(0)), element.part(1), depth + 1);
            else
                write(bracketed(std::to_string(number)), element, depth + 1);
            ++number;
        }
    }
    static std::string label_of(const ViewValue& key) {
        return bracketed(is_text(key.kind()) ? JsonWriter().value(std::string_view(key.text())).text() : key.digits());
    }

    std::ostream& to_;
    const ViewTextOptions& options_;
};

}  // namespace

void write_json(std::ostream& to, const ViewValue& value, const ViewTextOptions& options) { ViewJson(to, options).write(value); }

void write_tree(std::ostream& to, std::string_view label, const ViewValue& value, const ViewTextOptions& options) {
    ViewTree(to, options).write(label, value);
}

}  // namespace taiyen
