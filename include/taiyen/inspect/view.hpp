#pragma once
/// View: what lies in a heap, read without the program that stored it. The shapes of the types tell where everything is (taiyen/shape/shape.hpp).
///
///     const ArchiveHeap heap(open_read_only, "drawing.tyn");
///     const View view(heap);
///     const ViewValue parts = *view.find("parts");
///     for (const ViewValue& part : parts.elements()) std::cout << part.get<double>("second.weight") << "\n";
///     parts.get<std::string>("[\"bolt\"].tags[2]");
///
/// Nothing is believed: each address, length and count is compared with the heap before anything is read there, whatever the file says, and no walk is longer than the number of elements that the container claims.
/// Durability: none, it only reads. Thread rule: as reading the heap; of a transactional one under a ReadLock or within a transaction. The heap outlives the view, and its values are as long good as nothing changes.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/shape/shape.hpp>

namespace taiyen {

class ArchiveHeap;
class ViewElements;
struct StoredObject;
namespace inspect {
class ViewWalk;
struct ViewMemory;
struct ViewAccess;
}  // namespace inspect

/// A number of any kind, as far as 64 bits hold it.
struct ViewNumber {
    enum class Kind : std::uint8_t { negative, natural, floating };
    Kind kind = Kind::natural;
    std::int64_t negative = 0;
    std::uint64_t natural = 0;
    long double floating = 0;
};

/// A stored value.
class TAIYEN_EXPORT ViewValue {
public:
    ShapeKind kind() const noexcept;
    /// As a person writes it: "map<string, Part>".
    std::string type() const;
    /// In the heap, of its first byte.
    std::uint64_t offset() const noexcept { return offset_; }
    /// Of the value itself, without what lies elsewhere.
    std::uint64_t bytes() const noexcept;

    // What it consists of in place: fields by name; elements of pairs as "first" and "second"; of tuples and arrays by number; nothing of all else.
    std::size_t parts() const noexcept;
    /// Requires: `number` is below `parts()`. Complexity: constant.
    ViewValue part(std::size_t number) const;
    /// Of a field; empty for all else.
    const std::string& part_name(std::size_t number) const;

    /// What a pointer leads to, an optional holds, or the alternative that a variant holds; nothing: there is none. Throws: Error{corrupt}: it leads out of the heap; Error{type_mismatch}: it is none of these.
    std::optional<ViewValue> target() const;
    /// Of a pointer: what is stored, an address or a distance, if it leads out of the heap, as to what the program has elsewhere. Nothing: it doesn't. Throws: Error{type_mismatch}: it is none.
    std::optional<std::uint64_t> outside() const;
    /// Behind all pointers, optionals and variants; the value itself, if it is none. Throws: Error{not_found}: one of them leads to nothing, or they lead on for ever; Error{corrupt}.
    ViewValue held() const;
    /// Which alternative a variant holds; nothing: none. Throws: Error{type_mismatch | corrupt}.
    std::optional<std::size_t> alternative() const;

    /// Of a container, a string or an array: how many elements. Throws: Error{type_mismatch}: it has none, or where they lie is not known (`has_elements`); Error{corrupt}.
    /// Complexity: constant; of a `forward_list`, linear.
    std::uint64_t size() const;
    /// Whether `size` and `elements` tell of it.
    bool has_elements() const noexcept;
    /// In the container's own order; of maps, pairs. Throws: as `size`. Complexity of each step: amortized constant.
    ViewElements elements() const;

    /// Whether `text` tells of it.
    bool is_text() const noexcept;
    /// The text of a string, an array of characters (up to the first zero) or a character, in UTF-8 where its characters are wider than a byte; what is no character is U+FFFD. Throws: Error{type_mismatch | corrupt}.
    std::string text() const;
    /// Throws: Error{type_mismatch}: it is no number, enumeration, character or boolean, or one that 64 bits don't hold.
    ViewNumber number() const;
    /// What is printed of a number of any size: the shortest digits that give the same value back. Throws: Error{type_mismatch}.
    std::string digits() const;

    /// A number that T holds exactly, a boolean, or, as std::string, `text`. Throws: Error{type_mismatch}: it is something else, or T doesn't hold it; Error{corrupt}.
    template <class T>
    T get() const;
    /// The same of what `at(path)` holds (`held`).
    template <class T>
    T get(std::string_view path) const {
        return at(path).held().get<T>();
    }

    /// Where a path leads: fields (`.weight`, or `weight` at the beginning), numbers of elements (`[2]`), keys of maps that are texts or numbers (`["bolt"]`, `[7]`), pairs (`.first`). Pointers, optionals and variants
    /// on the way lead on to what they hold; of several equal keys the first one counts. In quotes, `\` stands before what JSON escapes (RFC 8259). Throws: Error{not_found}: nothing is there; Error{invalid_argument}: it is no path; Error{corrupt}. Complexity: linear in the elements that are passed, also for keys.
    ViewValue at(std::string_view path) const;
    /// Calls `take` with each value that a pattern leads to, and the path to it, until it returns false. A pattern is a path in which `[*]` stands for every element, and behind which the values that are wanted may be told:
    /// `parts[*].weight > 3`, by ==, !=, <, <=, > or >= and a number (as it is printed), a text in quotes (compared byte by byte), true or false. Behind `[*]`, and in variants, what leads to nothing is left out. A key of more than 64 KiB is cut in the path.
    /// Throws: as `at`; Error{type_mismatch}: a value is nothing that can be compared with that. Complexity: linear in the elements that are passed; memory of one path.
    void for_each(std::string_view pattern, const std::function<bool(std::string_view path, const ViewValue& value)>& take) const;
    /// Whether `for_each` may lead to more than one value, or to none.
    static bool is_pattern(std::string_view path);

private:
    class Matcher;

    friend struct inspect::ViewAccess;
    ViewValue(std::shared_ptr<const inspect::ViewMemory> memory, std::uint32_t node, std::uint64_t offset)
        : memory_(std::move(memory)), node_(node), offset_(offset) {}
    const ShapeNode& node() const noexcept;
    ViewValue inner(std::uint32_t node, std::uint64_t offset) const { return {memory_, node, offset}; }
    [[noreturn]] void throw_other(const char* wanted) const;
    [[noreturn]] void throw_unheld() const;
    void for_each_piece(const std::function<bool(std::string_view)>& take) const;
    std::optional<ViewValue> step(std::string_view name) const;
    std::optional<ViewValue> step_to(std::string_view key, bool is_text) const;

    std::shared_ptr<const inspect::ViewMemory> memory_;
    std::uint32_t node_;
    std::uint64_t offset_;
    std::uint64_t second_ =
        0;  ///< of a pair whose second part lies elsewhere, as in B-trees; of a bit of a `vector<bool>`, its number in the byte; else 0
};

/// The elements of a container, one after the other. Thread rule: as the view.
class TAIYEN_EXPORT ViewElements {
public:
    /// Of one pass.
    class iterator {
    public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = ViewValue;
        using difference_type = std::ptrdiff_t;
        const ViewValue& operator*() const noexcept { return *elements_->now_; }
        const ViewValue* operator->() const noexcept { return &*elements_->now_; }
        iterator& operator++() {
            elements_->advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const noexcept { return !elements_->now_; }

    private:
        friend class ViewElements;
        explicit iterator(ViewElements& elements) : elements_(&elements) {}
        ViewElements* elements_;
    };

    ViewElements(ViewElements&&) noexcept;
    ViewElements& operator=(ViewElements&&) noexcept;
    ~ViewElements();
    /// From the next one that was not read yet.
    iterator begin() { return iterator(*this); }
    static std::default_sentinel_t end() noexcept { return {}; }

private:
    friend class ViewValue;
    explicit ViewElements(std::unique_ptr<inspect::ViewWalk> walk);
    void advance();

    std::unique_ptr<inspect::ViewWalk> walk_;
    std::optional<ViewValue> now_;
};

/// A heap.
class TAIYEN_EXPORT View {
public:
    explicit View(const ArchiveHeap& heap) : heap_(&heap) {}
    /// Of all named objects, those without a shape too. Throws: as `stored_objects`.
    std::vector<std::string> names() const;
    /// Nothing: there is no such name. Throws: Error{not_found}: its type has no shape: open it with the program once, and change something; Error{corrupt | closed}.
    std::optional<ViewValue> find(std::string_view name) const;
    /// Of one that `stored_objects` has told of. Throws: as `find`. Complexity: constant; of several objects, linear in the shape.
    ViewValue value(const StoredObject& object) const;

private:
    const ArchiveHeap* heap_;
};

template <class T>
T ViewValue::get() const {
    if constexpr (std::is_same_v<T, std::string>) {
        return text();
    } else if constexpr (std::is_same_v<T, bool>) {
        if (kind() != ShapeKind::boolean) throw_other("a boolean");
        return number().natural != 0;
    } else {
        constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
                                      std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;
        static_assert(std::is_arithmetic_v<T> && !is_character, "taiyen: get<T> gives numbers, booleans and std::string; of a character, its text");
        const ViewNumber value = number();
        if constexpr (std::is_floating_point_v<T>) {
            const long double exact = value.kind == ViewNumber::Kind::floating   ? value.floating
                                      : value.kind == ViewNumber::Kind::negative ? static_cast<long double>(value.negative)
                                                                                 : static_cast<long double>(value.natural);
            const T held = static_cast<T>(exact);
            if (exact == exact && static_cast<long double>(held) != exact) throw_unheld();
            return held;
        } else {
            const bool is_held = value.kind == ViewNumber::Kind::natural    ? std::in_range<T>(value.natural)
                                 : value.kind == ViewNumber::Kind::negative ? std::in_range<T>(value.negative)
                                                                            : false;
            if (!is_held) throw_unheld();
            return value.kind == ViewNumber::Kind::natural ? static_cast<T>(value.natural) : static_cast<T>(value.negative);
        }
    }
}

}  // namespace taiyen
