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
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/change/arguments.hpp>

namespace taiyen {
namespace change {

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
