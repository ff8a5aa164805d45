#include <cstdint>
#include <ostream>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/objects.hpp>
#include <taiyen/inspect/type_histogram.hpp>
#include <taiyen/inspect/view.hpp>
#include <taiyen/inspect/view_text.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

constexpr std::uint64_t usual_elements = 20;
constexpr std::uint64_t usual_depth = 8;
constexpr std::uint64_t usual_text_bytes = 1000;

/// To where all is printed.
class ConsoleBuffer final : public std::streambuf {
public:
    ConsoleBuffer() = default;
    ~ConsoleBuffer() override { flush(); }
    ConsoleBuffer(const ConsoleBuffer&) = delete;
    ConsoleBuffer& operator=(const ConsoleBuffer&) = delete;

private:
    static constexpr std::size_t bytes_max = 4096;

    int_type overflow(int_type c) override {
        if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
        waiting_ += traits_type::to_char_type(c);
        if (waiting_.size() >= bytes_max) flush();
        return c;
    }
    std::streamsize xsputn(const char* text, std::streamsize bytes) override {
        waiting_.append(text, static_cast<std::size_t>(bytes));
        if (waiting_.size() >= bytes_max) flush();
        return bytes;
    }
    void flush() {
        print(waiting_);
        waiting_.clear();
    }

    std::string waiting_;
};

/// The object and the path within it: the longest name that the text begins with, followed by nothing, or by what may stand behind a name.
std::pair<std::string, std::string> split(const View& view, const std::string& text, const std::string& file) {
    std::string best;
    for (const std::string& name : view.names()) {
        const bool begins =
            text.starts_with(name) && (text.size() == name.size() || std::string_view(".[ <>=!").find(text[name.size()]) != std::string_view::npos);
        if (begins && name.size() > best.size()) best = name;
    }
    if (best.empty()) throw Error(errc::not_found, file, "no object has a name that '" + text + "' begins with; 'taiyen ls' lists them");
    return {best, text.substr(best.size())};
}

/// What a pattern leads to: as an array of paths and values (keys may be equal), or below each other, so many as elements of a container.
void print_matches(std::ostream& out, const ViewValue& object, const std::string& name, const std::string& pattern, bool is_json,
                   const ViewTextOptions& options) {
    std::uint64_t count = 0;
    object.for_each(pattern, [&](std::string_view path, const ViewValue& value) {
        const std::string whole = name + (path.empty() || path.starts_with('[') ? "" : ".") + std::string(path);
        if (count++ == options.elements) {
            out << (is_json ? ",\n  {\"more\": \"…\"}" : "… and more; --elements 0 shows all\n");
            return false;
        }
        if (is_json) {
            out << (count == 1 ? "[\n  " : ",\n  ") << "{\"path\": " << JsonWriter().value(std::string_view(whole)).text() << ", \"value\": ";
            ViewTextOptions flat = options;
            flat.indent = 0;
            write_json(out, value, flat);
            out << '}';
        } else {
            write_tree(out, whole, value, options);
        }
        return true;
    });
    if (count == 0) out << (is_json ? "[]\n" : "nothing is like that\n");
    if (count != 0 && is_json) out << "\n]\n";
}

void print_types(const Given& given, const TypeHistogram& histogram, std::uint64_t listed_max) {
    const std::size_t listed = std::min<std::uint64_t>(histogram.types.size(), listed_max);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).key("types").begin_array();
        for (const TypeUse& use : std::span(histogram.types).first(listed)) {
            json.begin_object()
                .member("type", use.type)
                .member("values", use.values)
                .member("value_bytes", use.value_bytes)
                .member("blocks", use.blocks)
                .member("block_bytes", use.block_bytes)
                .end_object();
        }
        json.end_array()
            .member("more_types", histogram.types.size() - listed)
            .member("other_blocks", histogram.other_blocks)
            .member("other_bytes", histogram.other_bytes)
            .key("opaque")
            .begin_array();
        for (const std::string& type : histogram.opaque) json.value(std::string_view(type));
        json.end_array().end_object();
        print(json);
        return;
    }
    print_table(std::span(histogram.types).first(listed),
                {{"TYPE", Align::left, [](const TypeUse& use) { return visible(use.type); }},
                 {"VALUES", Align::right, [](const TypeUse& use) { return count_text(use.values); }},
                 {"IN PLACE", Align::right, [](const TypeUse& use) { return bytes_text(use.value_bytes); }},
                 {"BLOCKS", Align::right, [](const TypeUse& use) { return count_text(use.blocks); }},
                 {"IN BLOCKS", Align::right, [](const TypeUse& use) { return bytes_text(use.block_bytes); }}});
    if (listed != histogram.types.size()) print_left_out(listed, histogram.types.size(), "smaller ones");
    print("\n" +
          (histogram.other_blocks == 0
               ? "all blocks are told of by shapes"
               : counted(histogram.other_blocks, "block") + " of " + bytes_text(histogram.other_bytes) + " to which no shape leads") +
          "\n");
    for (const std::string& type : histogram.opaque) print("not looked into: " + visible(type) + "\n");
}

std::uint64_t elements_max(const Given& given) {
    const std::uint64_t wanted = given.number("elements", 0);
    return wanted == 0 ? ~std::uint64_t{0} : wanted;
}

Exit run_show(const Given& given) {
    const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
    if (given.has("types")) {
        if (!given.word.empty() || given.has("depth"))
            throw Error(errc::invalid_argument, "--types is of the whole heap: it goes without PATH and --depth");
        TypeHistogram histogram;
        {
            ProgressLine line("looking at " + given.files[0]);
            histogram = type_histogram(heap, line.progress());
        }
        print_types(given, histogram, elements_max(given));
        return Exit::ok;
    }
    const View view(heap);
    const bool is_json = given.has("json");
    ViewTextOptions options;
    options.indent = 2;
    const std::uint64_t depth = given.number("depth", is_json ? 64 : usual_depth);
    options.depth = static_cast<unsigned>(std::min<std::uint64_t>(depth == 0 ? 1 : depth, 1000));
    if (const std::uint64_t elements = given.number("elements", is_json ? 0 : usual_elements); elements != 0) options.elements = elements;
    if (!is_json && !given.has("elements")) options.text_bytes = usual_text_bytes;
    ConsoleBuffer buffer;
    std::ostream out(&buffer);
    out.exceptions(std::ios::badbit);
    if (!given.word.empty()) {
        const auto [name, path] = split(view, given.word, given.files[0]);
        if (ViewValue::is_pattern(path)) {
            print_matches(out, view.find(name).value(), name, path, is_json, options);
            return Exit::ok;
        }
        const ViewValue value = view.find(name).value().at(path);
        if (is_json)
            write_json(out, value, options), out << '\n';
        else
            write_tree(out, given.word, value, options);
        return Exit::ok;
    }
    bool is_first = true;
    if (is_json) out << '{';
    for (const StoredObject& object : stored_objects(heap)) {
        if (is_json) out << (is_first ? "\n  " : ",\n  ") << JsonWriter().value(std::string_view(object.name)).text() << ": ";
        is_first = false;
        if (!object.shape) {
            if (is_json)
                out << "{\"opaque\": " << JsonWriter().value(std::string_view(object.type)).text() << '}';
            else
                out << visible(object.name) << ": " << visible(object.type)
                    << ", whose shape is not stored: a program that has the type stores it with the next change\n";
            continue;
        }
        const ViewValue value = view.value(object);
        if (is_json)
            write_json(out, value, options);
        else
            write_tree(out, object.name, value, options);
    }
    if (is_json)
        out << (is_first ? "}\n" : "\n}\n");
    else if (is_first)
        out << "no named objects\n";
    return Exit::ok;
}

}  // namespace

Command show_command() {
    return {"show",
            "What the objects hold",
            "Prints named objects and what lies in them, or what PATH leads to: a name, then fields, numbers of elements and keys, as in "
            "parts[\"bolt\"].tags[2]; [*] is every element, and values may be compared: parts[*].weight > 3. The shapes of the types tell where it "
            "lies, so the program "
            "that stored it isn't needed.",
            {"FILE"},
            {{"depth", "NUMBER", "how many values within each other are shown (default: 8; of JSON 64)"},
             {"elements", "NUMBER",
              "how many elements of each container are shown; 0: all (default: 20; of JSON all); without it long texts are cut, too. With --types: "
              "so many types (default: all)"},
             {"types", "", "instead, how many values there are of each type, and what they hold of the heap"}},
            "",
            run_show,
            "the heap",
            "PATH"};
}

}  // namespace taiyen::tool
