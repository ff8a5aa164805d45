// Reads the part of the Itanium C++ ABI's mangling (section 5.1) that names types: namespaces, templates, built-in types, pointers, qualifiers, literals and substitutions.
// Types are nodes that refer to earlier nodes, so a substitution costs nothing; text comes into being at the end, within a budget.

#include "inspect/type_text.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace taiyen::inspect {
namespace {

constexpr std::size_t nodes_max = 2000;
constexpr std::size_t text_max = 600;
constexpr unsigned depth_max = 60;

using NodeId = std::uint32_t;

struct Node {
    enum class Kind { name, instance, suffixed, pack } kind;
    std::string_view text;      ///< name: its own part; suffixed: what follows
    std::optional<NodeId> of;   ///< name: the scope; instance: the template; suffixed: the type
    std::vector<NodeId> parts;  ///< arguments of an instance or a pack
};

/// Not understood.
struct Unknown {};

class Reader {
public:
    explicit Reader(std::string_view mangled) : rest_(mangled) {}

    std::string read() {
        const NodeId whole = type(0);
        if (!rest_.empty()) throw Unknown{};
        std::string text;
        print(whole, text, 0);
        return text;
    }

private:
    NodeId make(Node node) {
        if (nodes_.size() == nodes_max) throw Unknown{};
        nodes_.push_back(std::move(node));
        return static_cast<NodeId>(nodes_.size() - 1);
    }
    NodeId named(std::string_view text, std::optional<NodeId> scope = std::nullopt) { return make({Node::Kind::name, text, scope, {}}); }
    NodeId remembered(NodeId node) {
        substitutions_.push_back(node);
        return node;
    }
    bool take(std::string_view prefix) {
        if (!rest_.starts_with(prefix)) return false;
        rest_.remove_prefix(prefix.size());
        return true;
    }
    bool at_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
    std::size_t number() {
        std::size_t value = 0;
        if (!at_digit()) throw Unknown{};
        for (; at_digit() && value < 100'000; rest_.remove_prefix(1)) value = value * 10 + static_cast<std::size_t>(rest_.front() - '0');
        return value;
    }
    std::string_view source_name() {
        const std::size_t length = number();
        if (length == 0 || length > rest_.size()) throw Unknown{};
        const std::string_view name = rest_.substr(0, length);
        rest_.remove_prefix(length);
        while (take("B")) source_name();  // tags of the binary interface
        return name;
    }

    NodeId substitution() {
        if (take("_")) return known(0);
        std::size_t index = 0;
        while (!rest_.empty() && rest_.front() != '_') {
            const char c = rest_.front();
            if (c >= '0' && c <= '9')
                index = index * 36 + static_cast<std::size_t>(c - '0');
            else if (c >= 'A' && c <= 'Z')
                index = index * 36 + static_cast<std::size_t>(c - 'A') + 10;
            else
                throw Unknown{};
            if (index > nodes_max) throw Unknown{};
            rest_.remove_prefix(1);
        }
        if (!take("_")) throw Unknown{};
        return known(index + 1);
    }
    NodeId known(std::size_t index) const {
        if (index >= substitutions_.size()) throw Unknown{};
        return substitutions_[index];
    }

    NodeId arguments(NodeId of, unsigned depth) {
        Node instance{Node::Kind::instance, {}, of, {}};
        while (!take("E")) instance.parts.push_back(argument(depth + 1));
        return make(std::move(instance));
    }

    NodeId argument(unsigned depth) {
        if (depth > depth_max || rest_.empty()) throw Unknown{};
        if (take("J")) {
            Node pack{Node::Kind::pack, {}, std::nullopt, {}};
            while (!take("E")) pack.parts.push_back(argument(depth + 1));
            return make(std::move(pack));
        }
        if (take("L")) {
            const bool is_bool = rest_.starts_with("b");
            type(depth + 1);
            const std::size_t end = rest_.find('E');
            if (end == std::string_view::npos) throw Unknown{};
            const std::string_view value = rest_.substr(0, end);
            rest_.remove_prefix(end + 1);
            return named(is_bool ? value == "1" ? "true" : "false" : value);
        }
        return type(depth + 1);
    }

    NodeId nested(unsigned depth) {
        while (take("K") || take("V") || take("r")) {}
        std::optional<NodeId> prefix;
        bool remember_last = false;
        while (!take("E")) {
            if (prefix && remember_last) substitutions_.push_back(*prefix);
            remember_last = true;
            if (take("I")) {
                if (!prefix) throw Unknown{};
                prefix = arguments(*prefix, depth);
            } else if (take("St")) {
                prefix = named("std");
                remember_last = false;
            } else if (take("S")) {
                prefix = abbreviated();
                remember_last = false;
            } else {
                prefix = named(source_name(), prefix);
            }
        }
        if (!prefix) throw Unknown{};
        return remembered(*prefix);
    }

    /// What stands behind an S: one of the standard library's own abbreviations, or what was there before.
    NodeId abbreviated() {
        if (take("a")) return named("allocator", named("std"));
        if (take("b")) return named("basic_string", named("std"));
        if (take("s")) return named("string", named("std"));
        return substitution();
    }

    NodeId suffixed(std::string_view text, unsigned depth) { return remembered(make({Node::Kind::suffixed, text, type(depth + 1), {}})); }

    NodeId type(unsigned depth) {
        if (depth > depth_max || rest_.empty()) throw Unknown{};
        static constexpr std::array<std::pair<std::string_view, std::string_view>, 28> builtin{{{"Dn", "std::nullptr_t"},
                                                                                                {"Du", "char8_t"},
                                                                                                {"Ds", "char16_t"},
                                                                                                {"Di", "char32_t"},
                                                                                                {"v", "void"},
                                                                                                {"w", "wchar_t"},
                                                                                                {"b", "bool"},
                                                                                                {"c", "char"},
                                                                                                {"a", "signed char"},
                                                                                                {"h", "unsigned char"},
                                                                                                {"s", "short"},
                                                                                                {"t", "unsigned short"},
                                                                                                {"i", "int"},
                                                                                                {"j", "unsigned int"},
                                                                                                {"l", "long"},
                                                                                                {"m", "unsigned long"},
                                                                                                {"x", "long long"},
                                                                                                {"y", "unsigned long long"},
                                                                                                {"n", "__int128"},
                                                                                                {"o", "unsigned __int128"},
                                                                                                {"f", "float"},
                                                                                                {"d", "double"},
                                                                                                {"e", "long double"},
                                                                                                {"g", "__float128"},
                                                                                                {"z", "..."},
                                                                                                {"Dh", "half"},
                                                                                                {"Df", "decimal32"},
                                                                                                {"Dd", "decimal64"}}};
        for (const auto& [code, text] : builtin)
            if (take(code)) return named(text);
        if (take("P")) return suffixed("*", depth);
        if (take("R")) return suffixed("&", depth);
        if (take("O")) return suffixed("&&", depth);
        if (take("K")) return suffixed(" const", depth);
        if (take("V")) return suffixed(" volatile", depth);
        if (take("A")) {
            const std::string_view before = rest_;
            const std::size_t digits = (number(), before.size() - rest_.size());
            if (!take("_")) throw Unknown{};
            const NodeId element = type(depth + 1);
            return remembered(make({Node::Kind::instance, "[]", element, {named(before.substr(0, digits))}}));
        }
        if (take("N")) return nested(depth);
        NodeId found = 0;
        if (take("St")) {
            found = remembered(named(source_name(), named("std")));
        } else if (take("S")) {
            found = abbreviated();
            if (!rest_.starts_with("I")) return found;
        } else if (at_digit()) {
            found = remembered(named(source_name()));
        } else {
            throw Unknown{};
        }
        return take("I") ? remembered(arguments(found, depth)) : found;
    }

    // Text.

    /// The whole name of a plain name or of an instance's template.
    std::string name_of(NodeId id, unsigned depth) const {
        std::string text;
        if (nodes_[id].kind == Node::Kind::name) print(id, text, depth);
        return text;
    }
    std::string template_of(NodeId id, unsigned depth) const {
        return nodes_[id].kind == Node::Kind::instance && nodes_[id].of ? name_of(*nodes_[id].of, depth) : std::string();
    }

    void print(NodeId id, std::string& text, unsigned depth) const {
        if (depth > depth_max || text.size() > text_max) throw Unknown{};
        const Node& node = nodes_[id];
        switch (node.kind) {
            case Node::Kind::name:
                if (node.of) {
                    std::string scope;
                    print(*node.of, scope, depth + 1);
                    text += scope == "std::__cxx11" || scope == "std::__debug" ? "std" : scope;
                    text += "::";
                }
                text += node.text;
                break;
            case Node::Kind::suffixed:
                print(*node.of, text, depth + 1);
                text += node.text;
                break;
            case Node::Kind::pack: print_list(node.parts, text, depth); break;
            case Node::Kind::instance: print_instance(node, text, depth); break;
        }
    }

    void print_list(const std::vector<NodeId>& parts, std::string& text, unsigned depth) const {
        const char* between = "";
        for (const NodeId part : parts) {
            text += between;
            print(part, text, depth + 1);
            between = ", ";
        }
    }

    void print_instance(const Node& node, std::string& text, unsigned depth) const {
        if (node.text == "[]") {
            print(*node.of, text, depth + 1);
            text += "[";
            print_list(node.parts, text, depth);
            text += "]";
            return;
        }
        // What every container of a heap has, and what it has where nothing else was said, says nothing.
        std::vector<NodeId> told;
        bool in_heap = false;
        for (const NodeId part : node.parts) {
            const std::string of = template_of(part, depth + 1);
            in_heap = in_heap || of == "taiyen::persistent_allocator";
            if (of != "taiyen::persistent_allocator" && of != "taiyen::hash" && of != "std::less" && of != "std::equal_to" &&
                of != "std::char_traits") {
                told.push_back(part);
            }
        }
        std::string name;
        print(*node.of, name, depth + 1);
        if (in_heap && name.starts_with("std::")) name.replace(0, 5, "taiyen::");
        std::string inner;
        print_list(told, inner, depth);
        if (name == "taiyen::basic_string" && inner == "char")
            text += "taiyen::string";
        else if (told.empty() && !in_heap)
            text += name + "<>";
        else
            text += name + "<" + inner + ">";
        if (text.size() > text_max) throw Unknown{};
    }

    std::string_view rest_;
    std::vector<Node> nodes_;
    std::vector<NodeId> substitutions_;
};

}  // namespace

std::string type_text(std::string_view fingerprint) {
    // "<mangled name> 48 bytes aligned to 8, cxx11"; tests and programs may store other texts.
    const std::string_view name = fingerprint.substr(0, fingerprint.find(' '));
    try {
        return Reader(name).read();
    } catch (const Unknown&) {
        return std::string(name);
    }
}

}  // namespace taiyen::inspect
