#include "inspect/view_diff.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <taiyen/inspect/objects.hpp>
#include <taiyen/inspect/view_text.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/text.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_memory.hpp"
#include "store/heap_access.hpp"

namespace taiyen {
namespace {

using inspect::ViewAccess;

constexpr std::uint64_t name_bytes_max = 200;
constexpr std::size_t unknown_max = 100;

/// What a key is called in a path, as far as it can.
std::string name_of(const ViewValue& key) {
    const bool is_simple = key.is_text() || (key.kind() >= ShapeKind::boolean && key.kind() <= ShapeKind::enumeration);
    if (is_simple) return ViewAccess::label(key, name_bytes_max);
    std::ostringstream text;
    write_json(text, key, {.elements = 100, .text_bytes = name_bytes_max});
    return joined({"[", text.str(), "]"});
}

/// So many bytes of where the elements of a text lie, which are side by side.
struct TextPlace {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint64_t width;
};
TextPlace place_of(const ViewValue& text) {
    if (text.kind() == ShapeKind::character) return {text.offset(), text.bytes(), text.bytes()};
    const std::uint64_t size = text.size();
    if (size == 0) return {text.offset(), 0, 1};
    ViewElements elements = text.elements();
    const ViewValue first = *elements.begin();
    return {first.offset(), size * first.bytes(), first.bytes()};
}

bool have_same_bytes(const ViewValue& a, std::uint64_t at_a, const ViewValue& b, std::uint64_t at_b, std::uint64_t bytes) {
    std::array<std::byte, 4096> of_a;
    std::array<std::byte, 4096> of_b;
    for (std::uint64_t done = 0; done < bytes; done += of_a.size()) {
        const std::uint64_t part = std::min<std::uint64_t>(of_a.size(), bytes - done);
        ViewAccess::memory(a).read(at_a + done, of_a.data(), part);
        ViewAccess::memory(b).read(at_b + done, of_b.data(), part);
        if (std::memcmp(of_a.data(), of_b.data(), part) != 0) return false;
    }
    return true;
}

bool have_same_text(const ViewValue& a, const ViewValue& b) {
    const TextPlace of_a = place_of(a);
    const TextPlace of_b = place_of(b);
    return of_a.bytes == of_b.bytes && of_a.width == of_b.width && have_same_bytes(a, of_a.offset, b, of_b.offset, of_a.bytes);
}

/// Of a long double ten bytes count, the others are anything.
std::uint64_t float_bytes(const ViewValue& value) { return value.bytes() == 16 ? 10 : value.bytes(); }

bool has_no_order(ShapeKind kind) {
    return (kind >= ShapeKind::unordered_map && kind <= ShapeKind::unordered_multiset) || kind == ShapeKind::flat_hash_map ||
           kind == ShapeKind::flat_hash_set;
}

bool lead_to_the_same(const ViewValue& a, const ViewValue& b) {
    const auto out_of_a = a.outside();
    const auto out_of_b = b.outside();
    if (out_of_a || out_of_b) return out_of_a == out_of_b;
    const auto to_a = a.target();
    const auto to_b = b.target();
    return to_a.has_value() == to_b.has_value() && (!to_a || to_a->offset() == to_b->offset());
}

/// False of each function: no more differences are wanted.
class Comparer {
public:
    Comparer(const ViewValue& before, const ViewValue& after, const std::function<bool(const ViewDifference&)>& take)
        : budget_before_(before), budget_after_(after), take_(take) {}

    bool compare(const std::string& path, const ViewValue& a, const ViewValue& b, unsigned depth) {
        if (depth > inspect::view_depth_max) ViewAccess::memory(a).throw_corrupt(a.offset(), "values lie deeper within each other than 1,000");
        budget_before_.take(a, depth);
        budget_after_.take(b, depth);
        const ShapeKind kind = a.kind();
        if (kind != b.kind()) return differ(path, a, b);
        if (a.is_text() && b.is_text()) return have_same_text(a, b) || differ(path, a, b);
        switch (kind) {
            case ShapeKind::boolean:
            case ShapeKind::signed_integer:
            case ShapeKind::unsigned_integer:
            case ShapeKind::character:
            case ShapeKind::enumeration: return a.digits() == b.digits() || differ(path, a, b);
            case ShapeKind::floating_point:
                return (a.bytes() == b.bytes() ? have_same_bytes(a, a.offset(), b, b.offset(), float_bytes(a)) : a.digits() == b.digits()) ||
                       differ(path, a, b);
            case ShapeKind::pointer: return lead_to_the_same(a, b) || differ(path, a, b);
            case ShapeKind::structure: return compare_fields(path, a, b, depth);
            case ShapeKind::pair:
            case ShapeKind::tuple: return compare_parts(path, a, b, depth);
            case ShapeKind::optional:
            case ShapeKind::variant: return compare_held(path, a, b, depth);
            default: break;
        }
        if (!a.has_elements() || !b.has_elements()) {
            note_unknown(path, a);
            return (a.bytes() == b.bytes() && have_same_bytes(a, a.offset(), b, b.offset(), a.bytes())) || differ(path, a, b);
        }
        return is_map(kind) || is_set(kind) ? compare_keys(path, a, b, depth) : compare_rows(path, a, b, depth);
    }

    /// Paths to values of which only the bytes in place were compared.
    std::vector<std::string> take_unknown() { return std::move(unknown_); }

private:
    /// What is opaque may be a class that holds pointers.
    void note_unknown(const std::string& path, const ViewValue& value) {
        const bool holds_all = value.kind() == ShapeKind::opaque && value.bytes() < sizeof(void*);
        if (!holds_all && unknown_.size() < unknown_max && (unknown_.empty() || unknown_.back() != path)) unknown_.push_back(path);
    }
    bool differ(const std::string& path, const std::optional<ViewValue>& a, const std::optional<ViewValue>& b) { return take_({path, a, b}); }

    bool compare_held(const std::string& path, const ViewValue& a, const ViewValue& b, unsigned depth) {
        const bool is_variant = a.kind() == ShapeKind::variant;
        if (is_variant && a.alternative() != b.alternative()) return differ(path, a, b);
        const auto in_a = a.target();
        const auto in_b = b.target();
        if (in_a.has_value() != in_b.has_value()) return differ(path, a, b);
        return !in_a || compare(path, *in_a, *in_b, depth + 1);
    }

    bool compare_fields(const std::string& path, const ViewValue& a, const ViewValue& b, unsigned depth) {
        const auto find = [](const ViewValue& in, const std::string& name) {
            std::optional<ViewValue> found;
            for (std::size_t i = 0; i != in.parts() && !found; ++i)
                if (in.part_name(i) == name) found = in.part(i);
            return found;
        };
        for (std::size_t i = 0; i != a.parts(); ++i) {
            const std::string& name = a.part_name(i);
            const std::string to = joined({path, path.empty() ? "" : ".", name});
            // Mostly they are of one type.
            auto other = i < b.parts() && b.part_name(i) == name ? std::optional(b.part(i)) : find(b, name);
            if (!(other ? compare(to, a.part(i), *other, depth + 1) : differ(to, a.part(i), std::nullopt))) return false;
        }
        for (std::size_t i = 0; i != b.parts(); ++i) {
            const std::string& name = b.part_name(i);
            const bool is_known = (i < a.parts() && a.part_name(i) == name) || find(a, name);
            if (!is_known && !differ(joined({path, path.empty() ? "" : ".", name}), std::nullopt, b.part(i))) return false;
        }
        return true;
    }

    bool compare_parts(const std::string& path, const ViewValue& a, const ViewValue& b, unsigned depth) {
        for (std::size_t i = 0; i != std::max(a.parts(), b.parts()); ++i) {
            const bool is_pair = a.kind() == ShapeKind::pair;
            const std::string to = is_pair ? joined({path, path.empty() ? "" : ".", a.part_name(i)}) : joined({path, "[", std::to_string(i), "]"});
            const auto in_a = i < a.parts() ? std::optional(a.part(i)) : std::nullopt;
            const auto in_b = i < b.parts() ? std::optional(b.part(i)) : std::nullopt;
            if (!(in_a && in_b ? compare(to, *in_a, *in_b, depth + 1) : differ(to, in_a, in_b))) return false;
        }
        return true;
    }

    bool compare_rows(const std::string& path, const ViewValue& a, const ViewValue& b, unsigned depth) {
        ViewElements of_a = a.elements();
        ViewElements of_b = b.elements();
        auto in_a = of_a.begin();
        auto in_b = of_b.begin();
        for (std::uint64_t number = 0;; ++number) {
            const bool has_a = in_a != of_a.end();
            const bool has_b = in_b != of_b.end();
            if (!has_a && !has_b) return true;
            const std::string to = joined({path, "[", std::to_string(number), "]"});
            if (has_a && has_b ? !compare(to, *in_a, *in_b, depth + 1)
                               : !differ(to, has_a ? std::optional(*in_a) : std::nullopt, has_b ? std::optional(*in_b) : std::nullopt))
                return false;
            if (has_a) ++in_a;
            if (has_b) ++in_b;
        }
    }

    /// An element of a map or a set.
    struct Keyed {
        std::string identity;  ///< of the key; where several may be equal, of the whole element
        ViewValue key;
        ViewValue value;  ///< of a set, the element
    };
    Keyed keyed(const std::string& path, const ViewValue& element, bool are_pairs, bool is_whole, inspect::ViewBudget& budget, unsigned depth) {
        const ViewValue key = are_pairs ? element.part(0) : element;
        std::string identity;
        add_identity(identity, path, is_whole ? element : key, budget, depth + 1);
        return {std::move(identity), key, are_pairs ? element.part(1) : element};
    }
    static std::string path_to(const std::string& path, const Keyed& element) { return joined({path, name_of(element.key)}); }

    /// A bit becomes three bytes, and no more becomes of anything else.
    static void require_possible(std::uint64_t identity_bytes, const ViewValue& value) {
        if (identity_bytes / 32 > ViewAccess::memory(value).end())
            ViewAccess::memory(value).throw_corrupt(value.offset(), "a key is larger than the heap");
    }
    /// Bytes that only equal values have in common.
    void add_identity(std::string& to, const std::string& path, const ViewValue& value, inspect::ViewBudget& budget, unsigned depth) {
        if (depth > inspect::view_depth_max)
            ViewAccess::memory(value).throw_corrupt(value.offset(), "values lie deeper within each other than 1,000");
        require_possible(to.size(), value);
        budget.take(value, depth);
        const auto add_number = [&](std::uint64_t number) { to.append(reinterpret_cast<const char*>(&number), sizeof number); };
        const auto add_bytes = [&](std::uint64_t offset, std::uint64_t bytes) {
            ViewAccess::memory(value).require(offset, bytes);
            add_number(bytes);
            to.resize(to.size() + bytes);
            if (bytes != 0) ViewAccess::memory(value).read(offset, to.data() + to.size() - bytes, bytes);
        };
        to.push_back(static_cast<char>(value.kind()));
        if (value.is_text()) {
            const TextPlace place = place_of(value);
            return add_bytes(place.offset, place.bytes);
        }
        switch (value.kind()) {
            case ShapeKind::boolean:
            case ShapeKind::signed_integer:
            case ShapeKind::unsigned_integer:
            case ShapeKind::character:
            case ShapeKind::enumeration: to.append(value.digits()).push_back('\0'); return;
            case ShapeKind::floating_point: return add_bytes(value.offset(), float_bytes(value));
            case ShapeKind::pointer: {
                const auto outside = value.outside();
                const auto target = outside ? std::nullopt : value.target();
                add_number(outside ? 2 : target ? 1 : 0);
                return add_number(outside ? *outside : target ? target->offset() : 0);
            }
            case ShapeKind::optional:
            case ShapeKind::variant: {
                const auto held = value.target();
                add_number(!held ? 0 : value.kind() == ShapeKind::variant ? 1 + *value.alternative() : 1);
                if (held) add_identity(to, path, *held, budget, depth + 1);
                return;
            }
            case ShapeKind::structure:
            case ShapeKind::pair:
            case ShapeKind::tuple:
                add_number(value.parts());
                for (std::size_t i = 0; i != value.parts(); ++i) add_identity(to, path, value.part(i), budget, depth + 1);
                return;
            default: break;
        }
        if (!value.has_elements()) {
            note_unknown(path, value);
            return add_bytes(value.offset(), value.bytes());
        }
        if (has_no_order(value.kind())) return add_unordered(to, path, value, budget, depth);
        std::uint64_t count = 0;
        for (const ViewValue& element : value.elements()) {
            add_identity(to, path, element, budget, depth + 1);
            ++count;
        }
        add_number(count);
    }
    /// The order of its elements says nothing.
    void add_unordered(std::string& to, const std::string& path, const ViewValue& value, inspect::ViewBudget& budget, unsigned depth) {
        std::vector<std::string> elements;
        std::uint64_t bytes = 0;
        for (const ViewValue& element : value.elements()) {
            add_identity(elements.emplace_back(), path, element, budget, depth + 1);
            require_possible(bytes += elements.back().size(), value);
        }
        std::ranges::sort(elements);
        for (const std::string& element : elements) to += element;
        const std::uint64_t count = elements.size();
        to.append(reinterpret_cast<const char*>(&count), sizeof count);
    }

    bool compare_keys(const std::string& path, const ViewValue& a, const ViewValue& b, unsigned depth) {
        const bool are_pairs = is_map(a.kind());
        const bool is_whole = has_equal_keys(a.kind());
        const auto of_a = [&](const ViewValue& element) { return keyed(path, element, are_pairs, is_whole, budget_before_, depth); };
        const auto of_b = [&](const ViewValue& element) { return keyed(path, element, are_pairs, is_whole, budget_after_, depth); };
        const auto compare_values = [&](const Keyed& in_a, const Keyed& in_b) {
            return !are_pairs || is_whole || compare(path_to(path, in_a), in_a.value, in_b.value, depth + 1);
        };
        ViewElements elements_a = a.elements();
        ViewElements elements_b = b.elements();
        auto at_a = elements_a.begin();
        auto at_b = elements_b.begin();
        std::optional<Keyed> here_a;
        std::optional<Keyed> here_b;
        for (; at_a != elements_a.end() && at_b != elements_b.end(); ++at_a, ++at_b) {
            here_a = of_a(*at_a);
            here_b = of_b(*at_b);
            if (here_a->identity != here_b->identity) break;
            if (!compare_values(*here_a, *here_b)) return false;
            here_a.reset();
            here_b.reset();
        }
        // From here on one of them has what the other hasn't got there.
        std::deque<std::optional<Keyed>> rest;  // of the second one; nothing: the first one has it, too
        std::unordered_map<std::string, std::deque<std::size_t>> places;
        for (; at_b != elements_b.end(); ++at_b) {
            rest.emplace_back(here_b ? std::move(here_b) : of_b(*at_b));
            here_b.reset();
            places[std::move(rest.back()->identity)].push_back(rest.size() - 1);
        }
        for (; at_a != elements_a.end(); ++at_a) {
            const Keyed element = here_a ? *std::move(here_a) : of_a(*at_a);
            here_a.reset();
            const auto found = places.find(element.identity);
            if (found == places.end() || found->second.empty()) {
                if (!differ(path_to(path, element), element.value, std::nullopt)) return false;
                continue;
            }
            const std::size_t place = found->second.front();
            found->second.pop_front();
            const Keyed other = *std::exchange(rest[place], std::nullopt);
            if (!compare_values(element, other)) return false;
        }
        return std::ranges::all_of(rest, [&](const auto& left) { return !left || differ(path_to(path, *left), std::nullopt, left->value); });
    }

    inspect::ViewBudget budget_before_;
    inspect::ViewBudget budget_after_;
    const std::function<bool(const ViewDifference&)>& take_;
    std::vector<std::string> unknown_;
};

}  // namespace

std::vector<std::string> for_each_difference(const ViewValue& before, const ViewValue& after,
                                             const std::function<bool(const ViewDifference&)>& take) {
    Comparer comparer(before, after, take);
    comparer.compare({}, before, after, 0);
    return comparer.take_unknown();
}

store::Tuning inspect::elsewhere() {
    store::Tuning tuning;
    tuning.elsewhere = true;
    return tuning;
}

ArchiveHeap inspect::open_elsewhere(const std::filesystem::path& path, const PersistentOptions& options, const store::Tuning& tuning) {
    return HeapAccess::make<ArchiveHeap>(HeapAccess::open(path, store::OpenMode::read_only, HeapKind::archive, options, tuning));
}

std::vector<std::string> for_each_difference(const std::filesystem::path& before, const std::filesystem::path& after,
                                             const std::function<bool(const ViewDifference&)>& take, const PersistentOptions& options_before,
                                             const PersistentOptions& options_after) {
    return inspect::for_each_difference(inspect::open_elsewhere(before, options_before), inspect::open_elsewhere(after, options_after), take);
}

std::vector<std::string> inspect::for_each_difference(const ArchiveHeap& heap_before, const ArchiveHeap& heap_after,
                                                      const std::function<bool(const ViewDifference&)>& take) {
    struct Both {
        const StoredObject* before = nullptr;
        const StoredObject* after = nullptr;
    };
    const std::vector<StoredObject> objects_before = stored_objects(heap_before);
    const std::vector<StoredObject> objects_after = stored_objects(heap_after);
    std::map<std::string, Both> names;
    for (const StoredObject& object : objects_before) names[object.name].before = &object;
    for (const StoredObject& object : objects_after) names[object.name].after = &object;
    std::vector<std::string> unknown;
    bool goes_on = true;
    for (const auto& [name, both] : names) {
        if ((both.before != nullptr && !both.before->shape) || (both.after != nullptr && !both.after->shape)) {
            unknown.push_back(name);
            continue;
        }
        if (!goes_on) continue;
        const auto value_of = [](const ArchiveHeap& heap, const StoredObject* object) {
            return object == nullptr ? std::nullopt : std::optional(View(heap).value(*object));
        };
        const auto a = value_of(heap_before, both.before);
        const auto b = value_of(heap_after, both.after);
        const auto whole = [&](const std::string& path) { return joined({name, path.empty() || path.starts_with('[') ? "" : ".", path}); };
        const auto under_name = [&](const ViewDifference& difference) {
            goes_on = take({whole(difference.path), difference.before, difference.after});
            return goes_on;
        };
        if (a && b)
            for (const std::string& path : taiyen::for_each_difference(*a, *b, under_name)) unknown.push_back(whole(path));
        else
            under_name({{}, a, b});
    }
    return unknown;
}

}  // namespace taiyen
