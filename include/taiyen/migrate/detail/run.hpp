#pragma once
/// Run: what a migration that runs knows of old values and new ones. The templates in become.hpp ask it and tell it.
///
/// (I1) Old values stay as they are, but for what was moved out of them; their blocks are freed at the end.
/// (I2) Where there are functions, which may look at any old value, nothing is moved out of one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/inspect/view.hpp>
#include <taiyen/shape/detail/builder.hpp>

namespace taiyen::migrate {

class Run;

/// Makes a new object out of an old one, in a block of its own, and destroys it.
struct Maker {
    shape::TypeShape* type;
    std::size_t bytes;
    void* (*make)(Run& run, const ViewValue& old);
    void (*destroy)(heap::HeapCore& core, void* object);
};

class TAIYEN_EXPORT Run {
public:
    struct State;

    explicit Run(State& state) : state_(&state) {}

    heap::HeapCore& core() const;
    /// The old value lies as a value of that type does, and nothing in it is to be changed.
    bool is_same(const ViewValue& old, shape::TypeShape& type);
    /// Whether old values are to stay whole.
    bool is_copying() const noexcept;
    /// Where it lies. Requires: `is_same` as a T, or `typed`.
    void* address(const ViewValue& old) const;
    /// The same of a value that is taken for one of that type by a function. Throws: Error{type_mismatch}: by its shape it is none.
    const void* typed(const ViewValue& old, shape::TypeShape& type);
    /// A value was moved or copied as it is.
    void took(const ViewValue& old, shape::TypeShape& type, const void* now);
    /// A value of that type was begun; it stays where it is.
    void begun(const ViewValue& old, shape::TypeShape& type, const void* now);
    /// Destroys what is left of an old value, at the end; null: there is nothing to be done for it.
    void destroy_at_end(const ViewValue& old, void (*destroy)(void*));
    /// Where a pointer of type `type` leads to now. `target`: the type of what it leads to; null: nobody knows. What is no longer as it was is found again among what becomes of other things, or made anew later, if `maker` can.
    void* follow(const ViewValue& pointer, shape::TypeShape& type, shape::TypeShape* target, const Maker* maker);
    /// Whether a value can become one of that type by itself, as far as their kinds tell.
    bool is_of_family(const ViewValue& old, shape::TypeShape& type) const;
    /// Whether pointers may lead to something in a value of that type, at any depth.
    bool holds_targets(shape::TypeShape& type);
    /// Of durations and points in time: throws Error{type_mismatch} if they have another unit.
    void require_same_unit(const ViewValue& old, shape::TypeShape& type);

    /// Of a structure: which old part each of its fields was, by their numbers; nothing: none. Throws: Error{invalid_argument | type_mismatch}.
    const std::vector<std::optional<std::uint32_t>>& fields(const ViewValue& old, shape::TypeShape& type);
    bool has_function(shape::TypeShape& type) const;
    /// A function will be called that may move what is made from now on. Returns what `finish` is to be told.
    std::size_t expect_function();
    /// Calls it. What isn't found again where it was made isn't led to.
    void finish(const ViewValue& old, shape::TypeShape& type, void* now, std::size_t mark);

    /// Throws: Error{type_mismatch}: it is no number.
    ViewNumber number(const ViewValue& old);
    [[noreturn]] void throw_unlike(const ViewValue& old, shape::TypeShape& type, std::string_view why = {});

    /// For messages: where in the new object we are, while it lives.
    class Place {
    public:
        Place(Run& run, shape::TypeShape& type, std::uint32_t field) : run_(run) { run_.enter(type, field); }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() { run_.leave(); }

    private:
        Run& run_;
    };
    /// While it lives, old values stay whole.
    class Copying {
    public:
        explicit Copying(Run& run) : run_(run) { run_.copy(1); }
        Copying(const Copying&) = delete;
        Copying& operator=(const Copying&) = delete;
        ~Copying() { run_.copy(-1); }

    private:
        Run& run_;
    };
    /// While it lives, new values don't stay where they are made: no pointer is led to them.
    class Passing {
    public:
        explicit Passing(Run& run) : run_(run) { run_.pass(1); }
        Passing(const Passing&) = delete;
        Passing& operator=(const Passing&) = delete;
        ~Passing() { run_.pass(-1); }

    private:
        Run& run_;
    };

    /// While it lives, values lie one deeper within each other. Throws: Error{corrupt}: that is too deep.
    class Deeper {
    public:
        Deeper(Run& run, const ViewValue& old) : run_(run) { run_.go_down(old); }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;
        ~Deeper() { run_.come_up(); }

    private:
        Run& run_;
    };

private:
    std::string where() const;
    void go_down(const ViewValue& old);
    void come_up() noexcept;
    void enter(shape::TypeShape& type, std::uint32_t field);
    void leave() noexcept;
    void copy(int more) noexcept;
    void pass(int more) noexcept;

    State* state_;
};

}  // namespace taiyen::migrate
