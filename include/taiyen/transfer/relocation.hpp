#pragma once
/// Relocation: where everything of a heap lies after it was moved.
///
/// It maps each old address to the new one: of objects, of places within them, and of the end of a block. What was not moved stays as it is, and so does a null pointer.
/// A heap that was moved as a whole is one range; a heap whose blocks were moved one by one has one range a block.
/// Thread rule: a value; concurrent reads are fine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// Which pointers an object of the program's own type holds, for its own roots and for objects in a heap alike. Specialise it, and name each member that is a pointer or holds some:
/// `template <> struct taiyen::pointers_of<Node> { template <class Visit> static void describe(Node& node, Visit visit) { visit(node.next, node.children); } };`
template <class T>
struct pointers_of {};

/// For types that hold none: `template <> struct taiyen::pointers_of<Point> : taiyen::no_pointers {};`
struct no_pointers {
    template <class T, class Visit>
    static void describe(T&, Visit) {}
};

/// A pointer that leads to an array of this many elements; `visit(taiyen::elements(table.first, table.count))`.
template <class T>
struct Elements {
    T*& first;
    std::size_t count;
};
template <class T>
Elements<T> elements(T*& first, std::size_t count) {
    return {first, count};
}

/// Two pointers, to the first element of an array and behind its last one.
template <class T>
struct ElementRange {
    T*& first;
    T*& last;
};
template <class T>
ElementRange<T> range(T*& first, T*& last) {
    return {first, last};
}

namespace transfer {

/// Takes whatever a type describes: to ask whether it does.
struct AnyVisit {
    template <class... T>
    void operator()(T&&...) const {}
};
template <class T>
concept describes_pointers = requires(T& object) { pointers_of<T>::describe(object, AnyVisit{}); };

template <class T>
inline constexpr bool is_text = false;
template <class C, class Traits, class A>
inline constexpr bool is_text<std::basic_string<C, Traits, A>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_elements = false;
template <class T>
inline constexpr bool is_elements<Elements<T>> = true;
template <class T>
inline constexpr bool is_element_range = false;
template <class T>
inline constexpr bool is_element_range<ElementRange<T>> = true;
template <class T>
concept like_tuple = requires { std::tuple_size<T>::value; };

/// Types without a pointer that anybody has to correct.
template <class T>
concept holds_no_pointer = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_null_pointer_v<T> || is_text<T>;

template <class T>
inline constexpr bool never = false;

}  // namespace transfer

class TAIYEN_EXPORT Relocation {
public:
    /// [from, from + bytes) lies at `to` now.
    struct Range {
        std::uintptr_t from = 0;
        std::size_t bytes = 0;
        std::uintptr_t to = 0;
        bool operator==(const Range&) const = default;
    };

    /// Nothing was moved.
    Relocation() noexcept = default;
    Relocation(std::uintptr_t from, std::size_t bytes, std::uintptr_t to) : Relocation(std::vector<Range>{{from, bytes, to}}) {}
    /// In any order. Throws: Error{invalid_argument}: two of them overlap, one is empty or goes beyond the end of memory.
    explicit Relocation(std::vector<Range> ranges);

    /// The new address. One that ends a range and begins another belongs to the one that it begins (`end` asks for the other).
    /// Complexity: logarithmic in the number of ranges.
    std::uintptr_t map(std::uintptr_t address) const noexcept;
    /// The same of an address known to be the end of something: of the range that it ends or lies in.
    std::uintptr_t map_end(std::uintptr_t address) const noexcept;
    /// Whether the byte there was moved.
    bool moves(std::uintptr_t address) const noexcept;

    template <class T>
    T* operator()(T* pointer) const noexcept {
        static_assert(!std::is_function_v<T>, "taiyen: functions don't lie in a heap");
        return reinterpret_cast<T*>(map(reinterpret_cast<std::uintptr_t>(pointer)));
    }
    template <class T>
    T* end(T* pointer) const noexcept {
        return reinterpret_cast<T*>(map_end(reinterpret_cast<std::uintptr_t>(pointer)));
    }

    /// Corrects pointers of the program in place: pointers, ranges, pairs, tuples and optionals of them, nested, and types that `pointers_of` describes. What they
    /// point to is not looked at.
    template <class... T>
    void visit(T&&... objects) const {
        (visit_one(objects), ...);
    }

    /// Ascending.
    const std::vector<Range>& ranges() const noexcept { return ranges_; }

private:
    template <class T>
    void visit_range(ElementRange<T>& range) const {
        range.last = range.last == range.first ? (*this)(range.last) : end(range.last);
        range.first = (*this)(range.first);
    }
    template <class T>
    void visit_one(T& object) const {
        using Plain = std::remove_cv_t<T>;
        if constexpr (transfer::holds_no_pointer<Plain>) {
            return;
        } else if constexpr (std::is_const_v<T>) {
            static_assert(transfer::never<T>, "taiyen: a pointer that can't be changed in place, such as a key; take it out and put the new one in");
        } else if constexpr (std::is_pointer_v<T>) {
            object = (*this)(object);
        } else if constexpr (transfer::describes_pointers<T>) {
            pointers_of<T>::describe(object, [this](auto&&... parts) { this->visit(parts...); });
        } else if constexpr (transfer::is_elements<T>) {
            object.first = (*this)(object.first);
        } else if constexpr (transfer::is_element_range<T>) {
            visit_range(object);
        } else if constexpr (transfer::is_optional<T>) {
            if (object) visit_one(*object);
        } else if constexpr (std::ranges::range<T>) {
            for (auto&& element : object) visit_one(element);
        } else if constexpr (transfer::like_tuple<T>) {
            std::apply([this](auto&... parts) { this->visit(parts...); }, object);
        } else {
            static_assert(transfer::never<T>, "taiyen: nothing says which pointers this type holds; specialise taiyen::pointers_of for it");
        }
    }

    std::vector<Range> ranges_;
};

}  // namespace taiyen
