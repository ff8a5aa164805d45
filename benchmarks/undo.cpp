// What do undo and redo cost, compared with commands written by hand for the same edits: time and memory?

#include <malloc.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

// Named: the types of named objects must be recognisable in another program.
namespace undo_benchmark {

struct Point {
    double x;
    double y;
};

/// The containers of the C++ library.
struct Ordinary {
    using String = std::string;
    template <class T>
    using Vector = std::vector<T>;
    template <class K, class T>
    using Map = std::map<K, T>;
};

/// The same ones in a heap.
struct Durable {
    using String = taiyen::string;
    template <class T>
    using Vector = taiyen::vector<T>;
    template <class K, class T>
    using Map = taiyen::map<K, T>;
};

template <class Family>
struct Part {
    typename Family::String name;
    typename Family::template Vector<Point> outline;
    Point at;
};

/// What every edit acts on: parts of a drawing by number.
template <class Family>
using Parts = typename Family::template Map<std::uint32_t, Part<Family>>;

enum class Kind { move, rename, add, remove, append };

/// An edit as data, so that every contender makes the same ones.
struct Edit {
    Kind kind;
    std::uint32_t part;
    Point point;
    std::string name;
};

template <class Family>
void add_part(Parts<Family>& parts, const Edit& edit) {
    Part<Family>& part = parts[edit.part];
    part.name = edit.name;
    part.at = edit.point;
    for (int i = 0; i < 8; ++i) part.outline.push_back({edit.point.x + i, edit.point.y - i});
}

template <class Family>
void make(Parts<Family>& parts, const Edit& edit) {
    switch (edit.kind) {
        case Kind::move: parts.find(edit.part)->second.at = edit.point; break;
        case Kind::rename: parts.find(edit.part)->second.name = edit.name; break;
        case Kind::add: add_part<Family>(parts, edit); break;
        case Kind::remove: parts.erase(edit.part); break;
        case Kind::append: parts.find(edit.part)->second.outline.push_back(edit.point); break;
    }
}

/// `count` edits that can be made one after the other on a drawing of `parts` parts. `spread`: how many neighbouring parts the user works on at a time.
std::vector<Edit> edits_for(std::uint32_t parts, std::size_t count, std::uint32_t spread, std::uint64_t seed) {
    bench::Random random(seed);
    std::vector<char> alive(parts + count, 0);
    std::fill(alive.begin(), alive.begin() + parts, char{1});
    std::uint32_t next = parts;
    std::uint32_t around = 0;
    std::vector<Edit> edits;
    while (edits.size() < count) {
        if (edits.size() % 50 == 0) around = static_cast<std::uint32_t>(random.below(parts - spread + 1));
        const auto part = static_cast<std::uint32_t>(around + random.below(spread));
        const Point point{random.unit(), random.unit()};
        const std::string name = "part with a name too long to lie inside a string " + std::to_string(random.below(1'000'000));
        const auto die = random.below(10);
        if (die == 0) {
            alive[next] = 1;
            edits.push_back({Kind::add, next++, point, name});
        } else if (alive[part] != 0) {
            const Kind kind = die == 1 ? Kind::remove : die < 4 ? Kind::rename : die < 6 ? Kind::append : Kind::move;
            alive[part] = kind == Kind::remove ? char{0} : char{1};
            edits.push_back({kind, part, point, name});
        }
    }
    return edits;
}

template <class Family>
void fill(Parts<Family>& parts, std::uint32_t count) {
    bench::Random random(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        add_part<Family>(parts,
                         {Kind::add, i, {random.unit(), random.unit()}, "part number " + std::to_string(i) + " of the drawing as it was made"});
    }
}

/// A number that two equal drawings share.
template <class Family>
std::uint64_t digest(const Parts<Family>& parts) {
    std::uint64_t sum = 0;
    const auto add = [&sum](std::uint64_t value) { sum = (sum ^ value) * 0x100'0000'01b3ULL; };
    const auto add_point = [&add](const Point& point) {
        add(static_cast<std::uint64_t>(point.x * 1e9));
        add(static_cast<std::uint64_t>(point.y * 1e9));
    };
    for (const auto& [number, part] : parts) {
        add(number);
        add_point(part.at);
        for (const char c : part.name) add(static_cast<unsigned char>(c));
        for (const Point& point : part.outline) add_point(point);
    }
    return sum;
}

/// The obvious alternative: each edit is an object that can take itself back (the command pattern of Gamma et al., "Design Patterns", 1994).
class Commands {
public:
    explicit Commands(Parts<Ordinary>& parts) : parts_(parts) {}

    void make(const Edit& edit) {
        commands_.resize(done_);  // a new edit discards what could be redone
        commands_.push_back(command_for(edit));
        commands_.back()->redo(parts_);
        ++done_;
    }
    bool undo() {
        if (done_ == 0) return false;
        commands_[--done_]->undo(parts_);
        return true;
    }
    bool redo() {
        if (done_ == commands_.size()) return false;
        commands_[done_++]->redo(parts_);
        return true;
    }

private:
    struct Command {
        virtual ~Command() = default;
        virtual void undo(Parts<Ordinary>& parts) = 0;
        virtual void redo(Parts<Ordinary>& parts) = 0;
    };
    struct Move final : Command {
        Move(std::uint32_t which, const Point& where) : part(which), other(where) {}
        void undo(Parts<Ordinary>& parts) override { std::swap(parts.find(part)->second.at, other); }
        void redo(Parts<Ordinary>& parts) override { undo(parts); }
        std::uint32_t part;
        Point other;
    };
    struct Rename final : Command {
        Rename(std::uint32_t which, const std::string& name) : part(which), other(name) {}
        void undo(Parts<Ordinary>& parts) override { std::swap(parts.find(part)->second.name, other); }
        void redo(Parts<Ordinary>& parts) override { undo(parts); }
        std::uint32_t part;
        std::string other;
    };
    struct Add final : Command {
        explicit Add(const Edit& what) : edit(what) {}
        void undo(Parts<Ordinary>& parts) override { node = parts.extract(edit.part); }
        void redo(Parts<Ordinary>& parts) override {
            if (node)
                parts.insert(std::move(node));
            else
                add_part<Ordinary>(parts, edit);
        }
        Edit edit;
        Parts<Ordinary>::node_type node;
    };
    struct Remove final : Command {
        explicit Remove(std::uint32_t which) : part(which) {}
        void undo(Parts<Ordinary>& parts) override { parts.insert(std::move(node)); }
        void redo(Parts<Ordinary>& parts) override { node = parts.extract(part); }
        std::uint32_t part;
        Parts<Ordinary>::node_type node;
    };
    struct Append final : Command {
        Append(std::uint32_t which, const Point& what) : part(which), point(what) {}
        void undo(Parts<Ordinary>& parts) override { parts.find(part)->second.outline.pop_back(); }
        void redo(Parts<Ordinary>& parts) override { parts.find(part)->second.outline.push_back(point); }
        std::uint32_t part;
        Point point;
    };

    static std::unique_ptr<Command> command_for(const Edit& edit) {
        switch (edit.kind) {
            case Kind::move: return std::make_unique<Move>(edit.part, edit.point);
            case Kind::rename: return std::make_unique<Rename>(edit.part, edit.name);
            case Kind::add: return std::make_unique<Add>(edit);
            case Kind::remove: return std::make_unique<Remove>(edit.part);
            case Kind::append: return std::make_unique<Append>(edit.part, edit.point);
        }
        throw std::logic_error("no such edit");
    }

    Parts<Ordinary>& parts_;
    std::vector<std::unique_ptr<Command>> commands_;
    std::size_t done_ = 0;
};

double history_bytes(const taiyen::SnapshotHeap& heap) {
    double bytes = 0;
    for (const taiyen::UndoStep& step : heap.undo_steps()) bytes += static_cast<double>(step.bytes);
    return bytes;
}

struct Figures {
    double edit = 0;  ///< µs each
    double undo = 0;
    double redo = 0;
    double bytes = 0;  ///< of history per step
};

/// Makes all edits, takes all back, makes all again; every state that two contenders share must be equal.
template <class Make, class Undo, class Redo, class Bytes, class Digest>
Figures run_session(const std::vector<Edit>& edits, Make&& make_one, Undo&& undo, Redo&& redo, Bytes&& bytes, Digest&& state, std::uint64_t& after) {
    const auto count = static_cast<double>(edits.size());
    Figures figures;
    const std::uint64_t before = state();
    const double bytes_before = bytes();
    figures.edit = bench::processor_microseconds_of([&] {
                       for (const Edit& edit : edits) make_one(edit);
                   }) /
                   count;
    figures.bytes = (bytes() - bytes_before) / count;
    const std::uint64_t made = state();
    const auto all = [&](auto&& step) {
        return bench::processor_microseconds_of([&] {
                   for (std::size_t i = 0; i < edits.size(); ++i)
                       if (!step()) throw std::runtime_error("a step is missing from the history");
               }) /
               count;
    };
    figures.undo = all(undo);
    if (state() != before) throw std::runtime_error("undone is not as before");
    figures.redo = all(redo);
    if (state() != made || (after != 0 && after != made)) throw std::runtime_error("redone is not as it was");
    after = made;
    return figures;
}

/// A registered procedure on a large matrix: the step remembers the call.
void run_procedure(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t side = options.quick() ? 512 : 2896;  // of doubles: 64 MiB
    const auto path = folder / "matrix.tyn";
    const auto negate = [](taiyen::ProcedureHeap& heap, const std::string& name) {
        for (double& value : *heap.find<taiyen::vector<double>>(name)) value = -value;
    };
    taiyen::register_procedure("negate", negate, negate);
    taiyen::SnapshotHeap heap(taiyen::create_only, path);
    auto& matrix = heap.construct<taiyen::vector<double>>("matrix");
    matrix.resize(side * side);
    bench::Random random(3);
    for (double& value : matrix) value = random.unit();
    heap.snapshot();
    heap.attach_undo();
    bench::Samples alone;
    bench::Samples call;
    bench::Samples undo;
    double bytes = 0;
    for (int round = 0; round < options.rounds(); ++round) {
        std::vector<double> copy(matrix.begin(), matrix.end());
        alone.add(bench::processor_microseconds_of([&] {
                      for (double& value : copy) value = -value;
                  }) /
                  1000);
        call.add(bench::processor_microseconds_of([&] {
                     taiyen::UndoScope scope(heap, "negate");
                     scope.call("negate", "matrix");
                     scope.commit();
                 }) /
                 1000);
        bytes = static_cast<double>(heap.undo_steps().back().bytes);
        const double first = matrix.front();
        undo.add(bench::processor_microseconds_of([&] { heap.undo(); }) / 1000);
        if (matrix.front() != -first) throw std::runtime_error("undoing the procedure changed nothing");
    }
    bench::Table table({"a procedure on a matrix of " + std::to_string(side * side * sizeof(double) >> 20U) + " MiB", "ms", "bytes a step"});
    table.row({"the loop alone, on ordinary memory", bench::spread(alone, 1), ""});
    table.row({"called in an UndoScope, page mode", bench::spread(call, 1), bench::fixed(bytes, 0)});
    table.row({"undone", bench::spread(undo, 1), ""});
    table.print();
    heap.close();
}

int run(const bench::Options& options) {
    const auto parts = static_cast<std::uint32_t>(options.quick() ? 2'000 : options.number("--parts"));
    const std::size_t count = options.quick() ? 200 : options.number("--edits");
    bench::print_head(options, "Undo and redo");
    const bench::Folder folder(options.folder());
    std::uint64_t after = 0;
    for (const std::uint32_t spread : {std::uint32_t{50}, parts}) {
        after = 0;
        const std::vector<Edit> edits = edits_for(parts, count, spread, 7);
        const auto plain = [&] {
            Parts<Ordinary> document;
            fill<Ordinary>(document, parts);
            Figures figures;
            figures.edit = bench::processor_microseconds_of([&] {
                               for (const Edit& edit : edits) make<Ordinary>(document, edit);
                           }) /
                           static_cast<double>(count);
            return figures;
        };
        const auto commands = [&] {
            Parts<Ordinary> document;
            fill<Ordinary>(document, parts);
            Commands history(document);
            return run_session(
                edits, [&](const Edit& edit) { history.make(edit); }, [&] { return history.undo(); }, [&] { return history.redo(); },
                [] { return static_cast<double>(::mallinfo2().uordblks); }, [&] { return digest<Ordinary>(document); }, after);
        };
        const auto scopes = [&] {
            const auto path = folder / "drawing.tyn";
            Figures figures;
            {
                taiyen::SnapshotHeap heap(taiyen::create_only, path);
                auto& document = heap.construct<Parts<Durable>>("parts");
                fill<Durable>(document, parts);
                heap.attach_undo();
                figures = run_session(
                    edits,
                    [&](const Edit& edit) {
                        taiyen::UndoScope scope(heap, "edit");
                        make<Durable>(document, edit);
                        scope.commit();
                    },
                    [&] { return heap.undo(); }, [&] { return heap.redo(); }, [&] { return history_bytes(heap); },
                    [&] { return digest<Durable>(document); }, after);
                heap.close();
            }
            std::filesystem::remove_all(path);
            std::filesystem::remove(path.string() + ".data");
            return figures;
        };
        struct Row {
            const char* name;
            std::function<Figures()> figures;
            bench::Samples edit, undo, redo, bytes;
        };
        std::vector<Row> rows{{"edits alone, no undo", plain, {}, {}, {}, {}},
                              {"commands by hand, in memory only", commands, {}, {}, {}, {}},
                              {"UndoScope, page mode", scopes, {}, {}, {}, {}}};
        for (int round = -1; round < options.rounds(); ++round) {
            for (std::size_t k = 0; k < rows.size(); ++k) {
                Row& row = rows[(static_cast<std::size_t>(round + 1) + k) % rows.size()];
                const Figures figures = row.figures();
                if (round >= 0) {
                    row.edit.add(figures.edit);
                    row.undo.add(figures.undo);
                    row.redo.add(figures.redo);
                    row.bytes.add(figures.bytes);
                }
            }
        }
        const std::string which = spread == parts ? "any part of " : "50 neighbouring parts of ";
        bench::Table table(
            {std::to_string(count) + " edits of " + which + std::to_string(parts), "µs an edit", "µs an undo", "µs a redo", "bytes a step"});
        for (const Row& row : rows) {
            const bool kept = row.undo.median() != 0;
            table.row({row.name, bench::spread(row.edit, 2), kept ? bench::spread(row.undo, 2) : "", kept ? bench::spread(row.redo, 2) : "",
                       kept ? bench::fixed(row.bytes.median(), 0) : ""});
        }
        table.print();
    }
    run_procedure(options, folder);
    return 0;
}

}  // namespace undo_benchmark

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return undo_benchmark::run(
            bench::Options(argc, argv, "What do undo and redo cost, compared with commands written by hand for the same edits: time and memory?", 9,
                           bench::Priority::normal, {{"--parts", "20000", "parts of the drawing"}, {"--edits", "2000", "edits of a session"}}));
    });
}
