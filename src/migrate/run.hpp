#pragma once
/// The state of a migration that runs: which types are as they were, what has become of old values, what is to be freed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <taiyen/inspect/objects.hpp>
#include <taiyen/migrate/migration.hpp>

#include "inspect/view_budget.hpp"
#include "inspect/view_memory.hpp"
#include "migrate/old_blocks.hpp"

namespace taiyen::migrate {

/// What was said of a type.
struct TypeRules {
    std::function<void(Run&, const ViewValue&, void*)> function;
    std::map<std::string, std::string> before;  ///< of a field's name: what it was called
    std::set<std::string> dropped;
};
using Rules = std::map<std::string, TypeRules>;  ///< by the types' names, as shapes have them

/// A type of the program.
struct TypeInfo {
    std::shared_ptr<const Shape> shape;
    std::string text;
    const TypeRules* rules = nullptr;
    bool leads_to_rules = false;  ///< in it or below there is a type of which something was said
    bool is_target = false;       ///< pointers may lead to one
    bool holds_target = false;    ///< or to something in one, or below
};

/// Where old values are now.
class Moves {
public:
    /// A value that is of another type now.
    void add(std::uint64_t before, const TypeInfo& type, std::uint64_t now) {
        values_.emplace(before, Value{&type, now});
        if (is_logging_) log_.push_back({before, {&type, now}});
    }
    /// A value that is as it was, with all that lies in it.
    void add_whole(std::uint64_t before, const TypeInfo& type, std::uint64_t now) {
        wholes_.insert_or_assign(before, Value{&type, now});
        if (is_logging_) log_.push_back({before, {&type, now}});
    }
    struct Value {
        const TypeInfo* type;  ///< of the value, or of what it lies in
        std::uint64_t now;
    };
    std::optional<Value> find(std::uint64_t before, const std::string& type) const;

    /// From now on what is added is noted. Returns how much was.
    std::size_t log() {
        is_logging_ = true;
        return log_.size();
    }
    /// Forgets what was noted since then and isn't among the values that lie in `now`, at any depth. Throws: Error{corrupt}.
    void keep_what_lies_in(const ViewValue& now, std::size_t since);

private:
    struct Added {
        std::uint64_t before;
        Value value;
    };
    std::unordered_multimap<std::uint64_t, Value> values_;
    std::map<std::uint64_t, Value> wholes_;
    bool is_logging_ = false;
    std::vector<Added> log_;
};

struct Run::State {
    State(store::HeapFile& heap, const Rules& rules, bool copies, const Progress& progress)
        : file(heap), rules(rules), copying(copies ? 1 : 0), progress(progress) {}

    /// An object is made; of an old one, which bounds what may be looked at.
    void begin(std::string name, const ViewValue& old) {
        object = std::move(name);
        budget.emplace(old);
    }

    TypeInfo& info(shape::TypeShape& type);
    std::uint64_t offset_of(const void* address) const;
    void* address_of(std::uint64_t offset) const;
    /// Pointers may lead to what is called so.
    void add_targets(const Shape& shape);
    void count(std::uint64_t& what);

    store::HeapFile& file;
    const Rules& rules;
    int copying;
    int passing = 0;
    unsigned depth = 0;
    std::optional<inspect::ViewBudget> budget;
    const Progress& progress;
    std::string object;  ///< which is made
    std::vector<std::pair<const TypeInfo*, std::uint32_t>> path;

    std::set<std::string> targets;
    std::unordered_map<const shape::TypeShape*, std::unique_ptr<TypeInfo>> types;
    using Pair = std::tuple<const Shape*, std::uint32_t, const shape::TypeShape*>;
    std::map<Pair, bool> same;
    std::map<Pair, std::vector<std::optional<std::uint32_t>>> field_parts;

    struct Waiting {
        ViewValue old;
        shape::TypeShape* type;
        const Maker* maker;  ///< null: it can't be made alone
        std::string from;    ///< the path of a pointer that leads there
    };
    std::vector<Waiting> waiting;
    std::set<std::pair<std::uint64_t, const shape::TypeShape*>> known;  ///< that wait, or did

    Moves moves;
    OldBlocks old_blocks;
    std::vector<std::pair<void*, void (*)(void*)>> to_destroy;
    std::set<std::string> unknown;  ///< types that pointers lead to, and of which the heap knows the name only
    MigrationReport report;
};

/// The type of that node, as a shape of its own.
Shape part_of(const Shape& shape, std::uint32_t node);
/// What shapes call a type.
const std::string& name_of(shape::TypeShape& type);

}  // namespace taiyen::migrate
