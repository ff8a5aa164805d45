#pragma once
/// Migration: stored objects become objects of changed types, in one step of the heap.
///
///     struct Part { std::string name; double mass; int grade = 1; };      // was { name, weight }, in grams
///
///     SnapshotHeap heap(open_only, "drawing.tyn");
///     Migration change(heap);
///     change.with<Part>([](const ViewValue& old, Part& part) { part.mass = old.get<double>("weight") / 1000; });
///     change.object<map<string, Part>>("parts");
///     std::cout << change.dry_run().text();                               // says what differs, and changes nothing
///     change.run();
///     heap.snapshot();
///
/// The heap's own shapes tell how the old objects lie in it (`View`); the old types need not be there. What is of the same type as before, down to the names of its fields, is moved, however much it is; where there are
/// functions, it is copied, so that they find every old value whole. All else becomes, without a function:
///
/// | of | what |
/// |---|---|
/// | structures | each field what the field of that name was; new ones are what the default constructor makes of them |
/// | numbers, booleans, enumerations | the same number, if the new type holds it |
/// | texts | any text |
/// | vectors, deques, lists, arrays | any sequence, element by element |
/// | maps, sets | any map or set, alike; with the default comparison and hash |
/// | pairs, tuples, optionals, variants | the same parts, alternatives by their number; an optional, the value itself |
/// | pointers | where they led to, or what became of that; it is made anew if it isn't as before |
///
/// A field that is gone ends the migration unless it has another name now (`renamed`), is given up (`dropped`), or its structure has a function (`with`).
/// Thread rule: as changing the heap.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/inspect/view.hpp>
#include <taiyen/migrate/detail/become.hpp>
#include <taiyen/shape/shape.hpp>
#include <taiyen/store/snapshot_heap.hpp>

namespace taiyen {

/// What became of one named object.
struct MigratedObject {
    std::string name;
    std::string type;                  ///< that it has now
    bool is_changed = false;           ///< false: it was of that type already, and nothing happened to it
    std::vector<ShapeChange> changes;  ///< field by field
};

/// What a migration did, or would do.
struct MigrationReport {
    std::vector<MigratedObject> objects;
    std::uint64_t rebuilt = 0;   ///< values of changed types
    std::uint64_t taken = 0;     ///< values that were moved or copied as they are, with all that they hold
    std::uint64_t pointers = 0;  ///< that lead to what has moved, and were set anew
    std::uint64_t freed_blocks = 0;
    std::uint64_t freed_bytes = 0;
    std::vector<std::string> left;     ///< types of which old values are gone, and nobody knows whether they held blocks: `find_leaks` tells
    std::vector<std::string> unknown;  ///< named objects whose pointers nobody knows: they have no shape

    /// For people, some lines.
    TAIYEN_EXPORT std::string text() const;
};

/// A change of types, told once and run once. Durability: none of its own; `run` is a step of undo, or a transaction, which ends with the heap as it was if anything fails.
class TAIYEN_EXPORT Migration {
public:
    /// `run` is one UndoScope, or a part of the one that is open. The heap outlives the migration.
    explicit Migration(SnapshotHeap& heap);
    /// Of an archive, which has no steps: all is copied, so that the heap is as it was if anything fails before the names change. Then `snapshot` it, or close it without.
    explicit Migration(ArchiveHeap& heap);
    Migration(const Migration&) = delete;
    Migration& operator=(const Migration&) = delete;
    ~Migration();

    /// The object of that name becomes a T. Objects that point to each other's insides belong into one migration. Throws: Error{invalid_argument}: it was named already.
    template <class T>
    Migration& object(std::string name) {
        stl::check_object<T>();
        add_object(std::move(name), migrate::maker<T>, stl::fingerprint<T>());
        return *this;
    }
    /// Functions run whenever the migration does, also if the stored objects are of the new types already.
    /// Each T is finished by `function`: (const ViewValue& old, T& now), or (const Old& old, T& now), where Old is a type as the T was; it is compared with what is stored.
    /// Before that, fields of the same name that can become what they are now have done so; `old` is whole. T: a class whose shape tells its name, that is none of the standard library.
    /// Throws: Error{invalid_argument}: it has one.
    template <class T, class F>
    Migration& with(F function) {
        static_assert(std::is_invocable_v<F&, const ViewValue&, T&>, "taiyen: Migration::with<T> takes a function of (const ViewValue& old, T& now)");
        add_function(stl::type_shape<T>, [function = std::move(function)](migrate::Run&, const ViewValue& old, void* now) mutable {
            function(old, *static_cast<T*>(now));
        });
        return *this;
    }
    template <class Old, class T, class F>
    Migration& with(F function) {
        static_assert(std::is_invocable_v<F&, const Old&, T&>, "taiyen: Migration::with<Old, T> takes a function of (const Old& old, T& now)");
        add_function(stl::type_shape<T>, [function = std::move(function)](migrate::Run& run, const ViewValue& old, void* now) mutable {
            function(*static_cast<const Old*>(run.typed(old, stl::type_shape<Old>)), *static_cast<T*>(now));
        });
        return *this;
    }
    /// The field of T that is called `now` was called `before`.
    template <class T>
    Migration& renamed(std::string before, std::string now) {
        add_renamed(stl::type_shape<T>, std::move(before), std::move(now));
        return *this;
    }
    /// What the field of T that was called `before` held is not wanted any more, or taken over by the function alone.
    template <class T>
    Migration& dropped(std::string before) {
        add_dropped(stl::type_shape<T>, std::move(before));
        return *this;
    }
    /// Told how many values have been taken or rebuilt; how many there are is not known: the total is 0.
    Migration& progress(Progress progress);

    /// Does everything and takes it back. Throws: as `run`.
    MigrationReport dry_run();
    /// Once. Throws: Error{invalid_argument}: it was run, or the heap's capture is Capture::declared; Error{not_found}: no such object, or the heap doesn't know its shape; Error{type_mismatch}: something can't become what it is to be, naming it by its path; Error{invalid_argument}: a field is gone, or
    /// something else leads into what is rebuilt and nobody knows where to now; Error{corrupt | read_only | closed | …}, HeapFull, and what functions throw. Then nothing has happened.
    /// Complexity: linear in the values that aren't taken as they are, and in the pointers of the heap. Memory: 8 bytes for each block that is freed, 24 for each value that pointers may lead to.
    MigrationReport run();

private:
    void add_object(std::string name, const migrate::Maker& maker, std::string fingerprint);
    void add_function(shape::TypeShape& type, std::function<void(migrate::Run&, const ViewValue&, void*)> function);
    void add_renamed(shape::TypeShape& type, std::string before, std::string now);
    void add_dropped(shape::TypeShape& type, std::string before);

    struct State;
    const std::unique_ptr<State> state_;
};

}  // namespace taiyen
