#include "tool/fields.hpp"

#include <sstream>

#include <taiyen/inspect/view_text.hpp>

#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

std::optional<std::string> short_text(const std::optional<ViewValue>& value) {
    if (!value) return std::nullopt;
    std::ostringstream text;
    write_json(text, *value, {.depth = 3, .elements = 4, .text_bytes = 60});
    return text.str();
}

const char* change_of(const Fields::Field& field) { return !field.before ? "added" : !field.after ? "removed" : "changed"; }

Style style_of(const Fields::Field& field) { return !field.before ? Style::good : !field.after ? Style::bad : Style::warning; }

std::string values_of(const Fields::Field& field) {
    if (!field.before || !field.after) return field.before ? *field.before : *field.after;
    return *field.before == *field.after ? *field.before + " (differs in what isn't shown)" : *field.before + " -> " + *field.after;
}

/// Whether it concerns this comparison alone.
bool is_of_this_one(const Error& error) {
    const auto code = static_cast<errc>(error.code().value());
    return code == errc::mismatch || code == errc::missing_procedure || code == errc::history_conflict || code == errc::corrupt ||
           code == errc::not_found;
}

}  // namespace

Option fields_option(const char* of_what) { return {"fields", "N", of_what}; }

std::optional<std::uint64_t> fields_wanted(const Given& given) {
    if (!given.value("fields")) return std::nullopt;
    const std::uint64_t asked = given.number("fields", 0);
    return asked == 0 ? ~std::uint64_t{0} : asked;
}

Fields fields_of(std::uint64_t listed_max, const Compare& compare) {
    Fields fields;
    const auto take = [&](const ViewDifference& difference) {
        if (fields.listed.size() == listed_max)
            ++fields.more;
        else
            fields.listed.push_back({difference.path, short_text(difference.before), short_text(difference.after)});
        return true;
    };
    fields.unknown = compare(take);
    return fields;
}

Fields fields_if_known(std::uint64_t listed_max, const Compare& compare) {
    try {
        return fields_of(listed_max, compare);
    } catch (const Error& error) {
        if (!is_of_this_one(error)) throw;
        Fields fields;
        fields.why_not = error.what();
        fields.is_damaged = error.code() == errc::corrupt;
        return fields;
    }
}

void print_fields(const Fields& fields) {
    for (const Fields::Field& field : fields.listed) {
        const std::string change = change_of(field);
        print(styled(style_of(field), change) + std::string(9 - change.size(), ' ') + visible(field.path) + ": " + visible(values_of(field)) + "\n");
    }
    if (fields.more != 0) print("… and " + count_text(fields.more) + " more\n");
    for (const std::string& name : fields.unknown) print(visible(name) + ": what it holds is not known in both heaps\n");
    if (!fields.why_not.empty())
        print("not known: " + visible(fields.why_not) + "\n");
    else if (fields.listed.empty() && fields.unknown.empty())
        print("no field that is known differs\n");
}

void add_fields(JsonWriter& json, const Fields& fields) {
    json.key("fields").begin_array();
    for (const Fields::Field& field : fields.listed) {
        json.begin_object().member("change", change_of(field)).member("path", field.path);
        if (field.before) json.member("before", *field.before);
        if (field.after) json.member("after", *field.after);
        json.end_object();
    }
    json.end_array().member("more_fields", fields.more).key("unknown").begin_array();
    for (const std::string& name : fields.unknown) json.value(std::string_view(name));
    json.end_array();
    if (!fields.why_not.empty()) json.member("why_not", fields.why_not);
}

}  // namespace taiyen::tool
