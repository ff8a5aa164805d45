#pragma once
/// TAIYEN_DESCRIBE: the fields of a class whose fields the compiler doesn't tell.
///
/// Aggregates of at most 32 fields, none of them a bit-field or without a name, and without bases, need no line, unless pointers alone lead to them, they are packed or have a `layout_tag`, or no empty braces make
/// them. For all others, and to give a field the name under which a heap knows it, one
/// line in the namespace of the class, behind it; for private fields, in a public part of the class itself:
///
///     class Part {
///     public:
///         TAIYEN_DESCRIBE(Part, name_, tags_, weight_)
///     private:
///         …
///     };
///
/// Fields of bases can be named, too, but for virtual and private ones. What is not named is not shown, and lies in the heap all the same. Bit-fields can't be named.

namespace taiyen::shape {

/// What TAIYEN_DESCRIBE is found by.
template <class T>
struct Described {};

}  // namespace taiyen::shape

#define TAIYEN_SHAPE_PARENTHESES ()
#define TAIYEN_SHAPE_EXPAND(...) TAIYEN_SHAPE_EXPAND3(TAIYEN_SHAPE_EXPAND3(TAIYEN_SHAPE_EXPAND3(TAIYEN_SHAPE_EXPAND3(__VA_ARGS__))))
#define TAIYEN_SHAPE_EXPAND3(...) TAIYEN_SHAPE_EXPAND2(TAIYEN_SHAPE_EXPAND2(TAIYEN_SHAPE_EXPAND2(TAIYEN_SHAPE_EXPAND2(__VA_ARGS__))))
#define TAIYEN_SHAPE_EXPAND2(...) TAIYEN_SHAPE_EXPAND1(TAIYEN_SHAPE_EXPAND1(TAIYEN_SHAPE_EXPAND1(TAIYEN_SHAPE_EXPAND1(__VA_ARGS__))))
#define TAIYEN_SHAPE_EXPAND1(...) __VA_ARGS__
#define TAIYEN_SHAPE_FIELDS(Type, field, ...) \
    taiyen_field(#field, &Type::field);       \
    __VA_OPT__(TAIYEN_SHAPE_MORE TAIYEN_SHAPE_PARENTHESES(Type, __VA_ARGS__))
#define TAIYEN_SHAPE_MORE() TAIYEN_SHAPE_FIELDS

/// Names the fields of a class, at most 64 of them. It needs no semicolon.
#define TAIYEN_DESCRIBE(Type, ...)                                                              \
    template <class TaiyenField>                                                                \
    static void taiyen_describe(::taiyen::shape::Described<Type>, TaiyenField&& taiyen_field) { \
        TAIYEN_SHAPE_EXPAND(TAIYEN_SHAPE_FIELDS(Type, __VA_ARGS__))                             \
    }
