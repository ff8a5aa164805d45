#pragma once
/// Procedures: an undo step that remembers a call instead of the bytes that it changed.
///
///   taiyen::register_procedure("invert", [](ProcedureHeap& heap, const std::string& name) {…}, …inverse…);
///   UndoScope scope(heap, "invert"); scope.call("invert", "matrix");
///
/// Both functions take a ProcedureHeap& and then the same arguments: trivially copyable values, std::string, and pointers to objects in the heap.
/// Both must be deterministic, and the inverse must restore every byte: undo and redo check that and refuse what doesn't (errc::history_conflict, nothing changes).
/// A procedure that allocates or frees is recorded as bytes, like any other edit. Registered once per process, by name: a persistent history finds it again in the next one.
/// Thread rule: registering is safe; calls obey the heap's rule.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <taiyen/base/export.hpp>
#include <taiyen/heap/access.hpp>

namespace taiyen {

/// The heap as a procedure sees it.
class TAIYEN_EXPORT ProcedureHeap {
public:
    explicit ProcedureHeap(heap::HeapCore& core) noexcept : core_(&core) {}
    heap::HeapCore* core() const noexcept { return core_; }
    /// The named object, null if there is none; defined in taiyen/stl/named.hpp. Throws: Error{type_mismatch}.
    template <class T>
    T* find(std::string_view name) const;

private:
    heap::HeapCore* core_;
};

namespace change {

/// Argument bytes in and out. Throws: Error{invalid_argument} (bytes of another signature; a pointer that leads out of the heap).
class TAIYEN_EXPORT ArgumentWriter {
public:
    explicit ArgumentWriter(const heap::HeapCore& core) : core_(core) {}
    void put(const void* bytes, std::size_t size);
    void put_text(std::string_view text);
    void put_pointer(const void* object);
    std::vector<std::byte> bytes;

private:
    const heap::HeapCore& core_;
};

class TAIYEN_EXPORT ArgumentReader {
public:
    ArgumentReader(const heap::HeapCore& core, std::span<const std::byte> bytes) : core_(core), rest_(bytes) {}
    void get(void* bytes, std::size_t size);
    std::string get_text();
    void* get_pointer();

private:
    const heap::HeapCore& core_;
    std::span<const std::byte> rest_;
};

/// The type that an argument is stored as.
template <class A>
using stored_t = std::conditional_t<std::is_convertible_v<const A&, std::string_view>, std::string, std::decay_t<A>>;

template <class T>
inline constexpr bool is_argument =
    std::is_same_v<T, std::string> || (std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_member_pointer_v<T> &&
                                       !(std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>));

template <class T>
void put_argument(ArgumentWriter& out, const T& value) {
    static_assert(is_argument<T>, "taiyen: arguments of procedures are trivially copyable values, texts, and pointers to objects in the heap");
    if constexpr (std::is_same_v<T, std::string>) {
        out.put_text(value);
    } else if constexpr (std::is_pointer_v<T>) {
        out.put_pointer(value);
    } else {
        out.put(&value, sizeof value);
    }
}

template <class T>
T get_argument(ArgumentReader& in) {
    if constexpr (std::is_same_v<T, std::string>) {
        return in.get_text();
    } else if constexpr (std::is_pointer_v<T>) {
        return static_cast<T>(in.get_pointer());
    } else {
        T value{};
        in.get(&value, sizeof value);
        return value;
    }
}

/// The stored types of a list of arguments, as text: both supported compilers give a type the same name.
template <class... T>
std::string signature() {
    return typeid(void (*)(T...)).name();
}

using ErasedProcedure = std::function<void(ProcedureHeap&, std::span<const std::byte>)>;
/// Throws: Error{name_taken | invalid_argument}.
TAIYEN_EXPORT void register_erased(std::string_view name, std::string signature, ErasedProcedure forward, ErasedProcedure inverse);

template <class F>
struct Callable : Callable<decltype(&F::operator())> {};
template <class R, class... A>
struct Callable<R (*)(ProcedureHeap&, A...)> {
    using result = R;
    using arguments = std::tuple<stored_t<std::remove_cvref_t<A>>...>;
    static std::string signature() { return change::signature<stored_t<std::remove_cvref_t<A>>...>(); }
};
template <class R, class C, class... A>
struct Callable<R (C::*)(ProcedureHeap&, A...) const> : Callable<R (*)(ProcedureHeap&, A...)> {};
template <class R, class C, class... A>
struct Callable<R (C::*)(ProcedureHeap&, A...)> : Callable<R (*)(ProcedureHeap&, A...)> {};
template <class R, class... A>
struct Callable<R (*)(ProcedureHeap&, A...) noexcept> : Callable<R (*)(ProcedureHeap&, A...)> {};
template <class R, class C, class... A>
struct Callable<R (C::*)(ProcedureHeap&, A...) const noexcept> : Callable<R (*)(ProcedureHeap&, A...)> {};

template <class F, class... T>
ErasedProcedure erased(F function, std::tuple<T...>* /*types*/) {
    return [function](ProcedureHeap& heap, std::span<const std::byte> bytes) {
        ArgumentReader in(*heap.core(), bytes);
        std::tuple<T...> arguments{get_argument<T>(in)...};  // braces: read from left to right
        std::apply([&](T&... argument) { function(heap, argument...); }, arguments);
    };
}

}  // namespace change

/// Makes `name` callable by UndoScope::call, in this process. Throws: Error{name_taken | invalid_argument}.
template <class Forward, class Inverse>
void register_procedure(std::string_view name, Forward forward, Inverse inverse) {
    static_assert(std::is_void_v<typename change::Callable<Forward>::result> && std::is_void_v<typename change::Callable<Inverse>::result>,
                  "taiyen: a procedure returns nothing; what it finds out belongs into the heap");
    using Types = typename change::Callable<Forward>::arguments;
    static_assert(std::is_same_v<Types, typename change::Callable<Inverse>::arguments>,
                  "taiyen: a procedure and its inverse take the same arguments");
    Types* const types = nullptr;
    change::register_erased(name, change::Callable<Forward>::signature(), change::erased(std::move(forward), types),
                            change::erased(std::move(inverse), types));
}

}  // namespace taiyen
