#include <taiyen/migrate/migration.hpp>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <taiyen/base/units.hpp>
#include <taiyen/inspect/objects.hpp>
#include <taiyen/undo/scope.hpp>

#include "base/planted.hpp"
#include "base/text.hpp"
#include "heap/core.hpp"
#include "migrate/links.hpp"
#include "migrate/run.hpp"
#include "store/heap_access.hpp"

namespace taiyen {
namespace {

struct Target {
    std::string name;
    const migrate::Maker* maker;
    std::string fingerprint;
};

/// A named object on its way.
struct Moving {
    const Target* target;
    StoredObject before;
    ViewValue old;
    void* now = nullptr;  ///< null: it stays where it is
    bool is_other_type = false;
};

}  // namespace

struct Migration::State {
    ArchiveHeap* heap;
    SnapshotHeap* with_steps;  ///< null: the heap has none
    std::vector<Target> targets;
    migrate::Rules rules;
    Progress progress;

    bool has_run = false;

    MigrationReport run(bool is_dry);

private:
    /// Of a heap that has steps: the one in which all happens.
    MigrationReport run_within(bool is_dry, std::optional<UndoScope>& step);
};

namespace migrate {
namespace {

/// New objects that don't belong to the heap's names yet.
class Made {
public:
    explicit Made(heap::HeapCore& core) : core_(core) {}
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    ~Made() {
        for (const auto& [object, maker] : objects_) maker->destroy(core_, object);
    }
    void add(void* object, const Maker& maker) { objects_.emplace_back(object, &maker); }
    void release() noexcept { objects_.clear(); }

private:
    heap::HeapCore& core_;
    std::vector<std::pair<void*, const Maker*>> objects_;
};

/// Throws: Error{not_found | invalid_argument}.
std::vector<Moving> find_objects(const std::vector<Target>& targets, const ArchiveHeap& heap, std::vector<StoredObject>& others) {
    std::vector<StoredObject> objects = stored_objects(heap);
    std::vector<Moving> moving;
    for (const Target& target : targets) {
        const auto found = std::ranges::find(objects, target.name, &StoredObject::name);
        if (found == objects.end())
            throw Error(errc::not_found, heap.path(), joined({"there is no object named '", target.name, "' to be migrated"}));
        if (found->count != 1)
            throw Error(errc::invalid_argument, heap.path(), found->offset,
                        joined({"'", target.name, "' is ", std::to_string(found->count), " objects side by side, which can't be migrated"}));
        const ViewValue old = View(heap).value(*found);
        moving.push_back({&target, *found, old});
        objects.erase(found);
    }
    others = std::move(objects);
    return moving;
}

/// What pointers lead to is made anew, one after the other, and what pointers in there lead to. Returns whether there was any.
bool make_waiting(Run& run, Run::State& state, Made& made, const std::vector<StoredObject>& others) {
    bool has_made = false;
    std::unordered_map<std::uint64_t, std::string> names;
    for (const StoredObject& other : others) names.emplace(other.offset, other.name);
    while (!state.waiting.empty()) {
        const Run::State::Waiting next = std::move(state.waiting.back());
        state.waiting.pop_back();
        const std::uint64_t offset = next.old.offset();
        const TypeInfo& info = state.info(*next.type);
        if (state.moves.find(offset, info.text)) continue;
        const auto refuse = [&](std::initializer_list<std::string_view> why) {
            throw Error(errc::invalid_argument, state.file.path(), offset,
                        joined({"at ", next.from, ": a pointer leads to a ", next.old.type(), " that is to be made anew, but ", joined(why)}));
        };
        const auto named = names.find(offset);
        if (named != names.end()) refuse({"it has the name '", named->second, "': let that be migrated, too (Migration::object)"});
        if (next.maker == nullptr)
            refuse(
                {"it is no structure with a default constructor, and part of nothing that is migrated: let the object that holds it be migrated, too "
                 "(Migration::object)"});
        const std::size_t usable = heap::usable_size(state.file, state.address_of(offset));
        if (usable < next.old.bytes())
            refuse({"it is part of something that isn't migrated: let the object that holds it be migrated, too (Migration::object)"});
        constexpr std::size_t smallest_block = 16;
        if (usable >= 2 * next.old.bytes() && usable > smallest_block)
            refuse({"its block of ", std::to_string(usable),
                    " bytes may hold several of them: give the structure that has the pointer a function (Migration::with)"});
        state.begin(joined({"*", next.from}), next.old);
        void* const now = next.maker->make(run, next.old);
        made.add(now, *next.maker);
        if (!state.moves.find(offset, info.text)) state.moves.add(offset, info, state.offset_of(now));
        state.old_blocks.add(next.old);
        has_made = true;
    }
    return has_made;
}

/// A fingerprint stands for one layout.
void check_fingerprints(const std::vector<Moving>& moving, const std::vector<StoredObject>& others, Run::State& state) {
    for (const Moving& object : moving) {
        const Shape& now = *state.info(*object.target->maker->type).shape;
        for (const StoredObject& other : others) {
            if (other.fingerprint != object.target->fingerprint || !other.shape || changes(*other.shape, now).empty()) continue;
            throw Error(errc::invalid_argument, state.file.path(), other.offset,
                        joined({"'", other.name, "' is of the same type as '", object.before.name,
                                "' becomes, and as large, and lies otherwise: let it be migrated, too (Migration::object)"}));
        }
    }
}

}  // namespace
}  // namespace migrate

MigrationReport Migration::State::run(bool is_dry) {
    if (has_run) throw Error(errc::invalid_argument, heap->path(), "the migration has been run; make another one");
    if (with_steps != nullptr && HeapAccess::file(*heap).capture() == Capture::declared)
        throw Error(errc::invalid_argument, heap->path(),
                    "with Capture::declared nobody hears of what moves within the objects: open the heap with Capture::pages to migrate it");
    std::optional<UndoScope> step;
    if (with_steps != nullptr) step.emplace(*with_steps, "migrate");
    MigrationReport report = run_within(is_dry, step);
    if (step && is_dry) step->cancel();
    if (step && !is_dry) step->commit();
    has_run |= !is_dry;
    return report;
}

MigrationReport Migration::State::run_within(bool is_dry, std::optional<UndoScope>& step) {
    store::HeapFile& file = HeapAccess::file(*heap);
    file.check_changeable();
    std::vector<StoredObject> others;
    std::vector<Moving> moving = migrate::find_objects(targets, *heap, others);
    const bool has_functions = std::ranges::any_of(rules, [](const auto& rule) { return static_cast<bool>(rule.second.function); });
    migrate::Run::State state(file, rules, with_steps == nullptr || has_functions, progress);
    migrate::Run run(state);
    for (const StoredObject& other : others)
        if (other.shape) state.add_targets(*other.shape);
    for (const Target& target : targets) state.add_targets(Shape::decode(std::as_bytes(std::span(shape::encoded(*target.maker->type)))));

    migrate::Made made(file);
    for (Moving& object : moving) {
        const migrate::TypeInfo& info = state.info(*object.target->maker->type);
        object.is_other_type = object.before.fingerprint != object.target->fingerprint;
        const bool is_same = run.is_same(object.old, *object.target->maker->type);
        state.report.objects.push_back({object.before.name, info.text, !is_same || object.is_other_type, changes(*object.before.shape, *info.shape)});
        if (is_same) continue;
        state.begin(object.before.name, object.old);
        object.now = object.target->maker->make(run, object.old);
        made.add(object.now, *object.target->maker);
        state.old_blocks.add(object.old);
    }
    const bool has_made_targets = migrate::make_waiting(run, state, made, others);
    migrate::check_fingerprints(moving, others, state);
    state.old_blocks.close(file);
    for (const StoredObject& other : others)
        if (has_made_targets && other.shape) state.old_blocks.refuse_others(other.name, View(*heap).value(other));

    migrate::Links links(state.old_blocks, state.moves);
    for (const Moving& object : moving) {
        const void* const place = object.now != nullptr ? object.now : state.address_of(object.before.offset);
        links.look(object.before.name, inspect::ViewAccess::object(file, state.info(*object.target->maker->type).shape, state.offset_of(place), 1));
    }
    for (const StoredObject& other : others)
        if (other.shape)
            links.look(other.name, View(*heap).value(other));
        else
            state.report.unknown.push_back(joined({"'", other.name, "', which has no shape"}));

    MigrationReport& report = state.report;
    if (!state.old_blocks.all().empty()) report.unknown.insert(report.unknown.end(), links.unknown().begin(), links.unknown().end());
    report.pointers = links.patches().size();
    report.freed_blocks = state.old_blocks.all().size();
    report.freed_bytes = state.old_blocks.bytes();
    report.left.assign(state.old_blocks.left().begin(), state.old_blocks.left().end());
    for (const std::string& type : state.unknown) report.unknown.push_back(joined({"what is led to as a ", type}));
    if (progress) progress(report.taken + report.rebuilt, report.taken + report.rebuilt);
    if (is_dry) return std::move(report);

    std::vector<heap::NewlyNamed> named;
    for (const Moving& object : moving) {
        if (object.now == nullptr && !object.is_other_type) continue;
        const migrate::Maker& maker = *object.target->maker;
        void* const place = object.now != nullptr ? object.now : state.address_of(object.before.offset);
        named.push_back({object.before.name, {place, maker.bytes, 1, object.target->fingerprint}, maker.type});
    }
    heap::replace_named(file, named);
    made.release();
    if (planted(Bug::migrated_in_two_steps) && step) {
        step->commit();
        step.emplace(*with_steps);
    }
    for (const migrate::Patch& patch : links.patches()) {
        auto* const pointer = static_cast<std::uint64_t*>(state.address_of(patch.pointer));
        if (step) step->touch(pointer, sizeof *pointer);
        *pointer = patch.is_distance ? patch.target - patch.pointer : reinterpret_cast<std::uint64_t>(state.address_of(patch.target));
    }
    for (const auto& [object, destroy] : state.to_destroy) destroy(object);
    for (const std::uint64_t block : state.old_blocks.all()) heap::deallocate(state.address_of(block));
    return std::move(report);
}

Migration::Migration(SnapshotHeap& heap) : state_(std::make_unique<State>(State{&heap, &heap, {}, {}, {}})) {}
Migration::Migration(ArchiveHeap& heap) : state_(std::make_unique<State>(State{&heap, nullptr, {}, {}, {}})) {}
Migration::~Migration() = default;

MigrationReport Migration::dry_run() { return state_->run(true); }
MigrationReport Migration::run() { return state_->run(false); }

Migration& Migration::progress(Progress progress) {
    state_->progress = std::move(progress);
    return *this;
}

void Migration::add_object(std::string name, const migrate::Maker& maker, std::string fingerprint) {
    if (std::ranges::find(state_->targets, name, &Target::name) != state_->targets.end())
        throw Error(errc::invalid_argument, state_->heap->path(), joined({"'", name, "' is to become two things"}));
    state_->targets.push_back({std::move(name), &maker, std::move(fingerprint)});
}

void Migration::add_function(shape::TypeShape& type, std::function<void(migrate::Run&, const ViewValue&, void*)> function) {
    const Shape shape = Shape::decode(std::as_bytes(std::span(shape::encoded(type))));
    if (shape.nodes.front().name.empty())
        throw Error(errc::invalid_argument, state_->heap->path(),
                    joined({"a ", shape.type(), " has no function of its own: give the structure that has one a function"}));
    auto& rule = state_->rules[shape.nodes.front().name];
    if (rule.function) throw Error(errc::invalid_argument, state_->heap->path(), joined({"a ", shape.type(), " has a function already"}));
    rule.function = std::move(function);
}

void Migration::add_renamed(shape::TypeShape& type, std::string before, std::string now) {
    const Shape shape = Shape::decode(std::as_bytes(std::span(shape::encoded(type))));
    const ShapeNode& structure = shape.nodes.front();
    if (structure.kind != ShapeKind::structure || std::ranges::find(structure.parts, now, &ShapePart::name) == structure.parts.end())
        throw Error(errc::invalid_argument, state_->heap->path(),
                    joined({"a ", shape.type(), " has no field '", now, "' that could have been called '", before, "'"}));
    state_->rules[structure.name].before[std::move(now)] = std::move(before);
}

void Migration::add_dropped(shape::TypeShape& type, std::string before) {
    const Shape shape = Shape::decode(std::as_bytes(std::span(shape::encoded(type))));
    state_->rules[shape.nodes.front().name].dropped.insert(std::move(before));
}

std::string MigrationReport::text() const {
    std::ostringstream text;
    for (const MigratedObject& object : objects) {
        text << object.name << ": " << (object.is_changed ? "becomes a " : "is a ") << object.type << (object.is_changed ? "\n" : " already\n");
        for (const ShapeChange& change : object.changes) text << "  " << change.text << '\n';
    }
    text << rebuilt << " values rebuilt, " << taken << " taken as they are, " << pointers << " pointers set, " << freed_blocks << " blocks of "
         << freed_bytes << " bytes freed\n";
    for (const std::string& type : left) text << "What a " << type << " held may be left: 'taiyen leaks' tells\n";
    for (const std::string& what : unknown) text << "Not known whether it leads to what moved, or has changed: " << what << '\n';
    return text.str();
}

}  // namespace taiyen
