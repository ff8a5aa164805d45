// What does a scope cost over the edit itself where instrumented code announces its stores?
//
// The edits: one insertion into a std::map of 262,144 nodes, random keys; one struct of 64 bytes written somewhere in a large array. Contenders: the same code compiled
// without hooks on a heap without capture; with hooks that nobody listens to; and scopes, with Capture::stores and, for the struct, with Capture::declared.

#include <memory>
#include <string>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "machine.hpp"
#include "stores_edits.hpp"

namespace {

using taiyen::Capture;
using taiyen::SnapshotHeap;
using taiyen::UndoScope;

enum class Scopes { none, cancellable /**< without a history */, undoable };

/// A heap with the map and the array, in one state for all contenders.
class Subject {
public:
    Subject(const std::filesystem::path& path, Capture capture, Scopes scopes, std::size_t nodes)
        : heap_(taiyen::create_only, path, options(capture)), random_(7) {
        map_ = &heap_.construct<edits::Map>("map");
        array_ = &heap_.construct<edits::Array>("array", edits::array_length);
        for (std::size_t i = 0; i < nodes; ++i) map_->emplace(random_.next(), i);
        heap_.snapshot();
        if (scopes == Scopes::undoable) {
            taiyen::UndoOptions history;
            history.persistent = false;
            heap_.attach_undo(history);
        }
        // Pages are private copies from here on: the first store to a page of the file is not what is measured.
        for (edits::Item& item : *array_) item.words[0] += 1;
    }
    SnapshotHeap& heap() { return heap_; }
    edits::Map& map() { return *map_; }
    edits::Item& item() { return (*array_)[random_.below(edits::array_length)]; }
    std::uint64_t key() { return random_.next(); }

private:
    static taiyen::PersistentOptions options(Capture capture) {
        taiyen::PersistentOptions made;
        made.capture = capture;
        return made;
    }
    SnapshotHeap heap_;
    bench::Random random_;
    edits::Map* map_ = nullptr;
    edits::Array* array_ = nullptr;
};

/// Processor time per edit in microseconds.
template <class F>
double per_edit(std::size_t count, F&& edit) {
    return bench::processor_microseconds_of([&] {
               for (std::size_t i = 0; i < count; ++i) edit();
           }) /
           static_cast<double>(count);
}

struct Row {
    std::string name;
    std::function<double()> run;
};

void compare(const bench::Options& options, const char* title, const std::vector<Row>& rows) {
    std::vector<bench::Contender> contenders;
    for (const Row& row : rows) contenders.push_back({row.name, row.run});
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({title, "µs", "over the plain edit", "ratio"});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        bench::Samples over;
        for (std::size_t round = 0; round < samples[i].size(); ++round) over.add(samples[i][round] - samples[0][round]);
        table.row({rows[i].name, bench::spread(samples[i], 2), bench::spread(over, 2), bench::spread(bench::ratio(samples[i], samples[0]), 2)});
    }
    table.print();
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "What does a scope cost over the edit itself where instrumented code announces its stores?", 31,
                                     bench::Priority::normal);
        bench::print_head(options, "Scopes of instrumented code");
        const bench::Folder folder(options.folder());
        const std::size_t nodes = options.quick() ? std::size_t{1} << 14U : std::size_t{1} << 18U;
        const std::size_t count = options.quick() ? 500 : 2000;
        Subject plain(folder / "plain.tyn", Capture::pages, Scopes::none, nodes);
        Subject unheard(folder / "unheard.tyn", Capture::pages, Scopes::none, nodes);
        Subject stores(folder / "stores.tyn", Capture::stores, Scopes::cancellable, nodes);
        Subject undoable(folder / "undoable.tyn", Capture::stores, Scopes::undoable, nodes);
        Subject declared(folder / "declared.tyn", Capture::declared, Scopes::cancellable, nodes);

        const auto scoped_insert = [&](Subject& subject) {
            return per_edit(count, [&] {
                UndoScope scope(subject.heap());
                edits::insert(subject.map(), subject.key());
                scope.commit();
            });
        };
        compare(options, "one insertion into a std::map",
                {{"no hooks, no scope", [&] { return per_edit(count, [&] { edits::plain_insert(&plain.map(), plain.key()); }); }},
                 {"hooks, no scope", [&] { return per_edit(count, [&] { edits::insert(unheard.map(), unheard.key()); }); }},
                 {"a scope", [&] { return scoped_insert(stores); }},
                 {"a scope, kept in a history", [&] { return scoped_insert(undoable); }}});

        const auto scoped_update = [&](Subject& subject, bool declares) {
            return per_edit(count, [&] {
                UndoScope scope(subject.heap());
                edits::Item& item = subject.item();
                if (declares) scope.touch(&item, sizeof item);
                edits::update(item, subject.key());
                scope.commit();
            });
        };
        compare(options, "one struct of 64 bytes",
                {{"no hooks, no scope", [&] { return per_edit(count, [&] { edits::plain_update(&plain.item(), plain.key()); }); }},
                 {"hooks, no scope", [&] { return per_edit(count, [&] { edits::update(unheard.item(), unheard.key()); }); }},
                 {"a scope, stores", [&] { return scoped_update(stores, false); }},
                 {"a scope, kept in a history, stores", [&] { return scoped_update(undoable, false); }},
                 {"a scope, declared", [&] { return scoped_update(declared, true); }}});
        return 0;
    });
}
