// Heaps that get objects of new types, and the shape of a type whose objects were there before heaps knew shapes. After any crash a name has its type's shape, whole, or there is neither.

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>

#include <taiyen/inspect/objects.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "base/planted.hpp"
#include "crash/scenario.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::crash {

// Named objects, so of no anonymous namespace.
struct ShapedPoint {
    double east = 0;
    double north = 0;
};
struct ShapedPart {
    ShapedPoint place;
    std::uint64_t serials[4] = {};
    ShapedPart* next = nullptr;
};
/// Its shape takes more than one entry of the directory.
template <int number>
struct ShapedPiece {
    ShapedPart* the_part_that_this_piece_belongs_to_and_that_tells_what_it_is_made_of_and_by_whom_and_where_to_find_it = nullptr;
    ShapedPiece<number - 1>* the_piece_below_this_one_which_has_nearly_as_long_a_name_for_its_members_as_this_one_has_itself = nullptr;
};
template <>
struct ShapedPiece<0> {
    int bottom = 0;
};

namespace {

const std::filesystem::path shaped_path = "/disk/shaped.tyn";

PersistentOptions shaped_options() {
    PersistentOptions options;
    options.capacity = 1_MiB;
    options.log_capacity = 64_KiB;
    options.capture = Capture::pages;
    options.loss_window = std::chrono::hours(1);  // nothing is written by the clock
    options.snapshot_log_fill = 1e9;              // nothing but a full log asks for snapshots
    return options;
}

std::shared_ptr<store::HeapFile> open_shaped(io::Storage& disk, store::OpenMode mode, HeapKind kind) {
    auto file = store::HeapFile::open(disk, shaped_path, mode, kind, shaped_options(), store::Tuning{32768});
    if (kind == HeapKind::transactional && mode != store::OpenMode::read_only) txn::TransactionService::join(*file, shaped_options());
    return file;
}

/// Each name with its type's shape, empty: it has none.
using Shaped = std::map<std::string, std::string>;

Shaped shaped_in(const store::HeapFile& heap) {
    Shaped found;
    for (const heap::Root& root : heap.engine().roots()) {
        std::string shape = heap.engine().shape_of(root.fingerprint).value_or("");
        if (!shape.empty()) Shape::decode(std::as_bytes(std::span(shape)));
        found.emplace(root.name, std::move(shape));
    }
    return found;
}

/// A heap with one name, whose type has no shape; closed.
void make_shapeless(io::Storage& disk) {
    const auto heap = open_shaped(disk, store::OpenMode::create_only, HeapKind::archive);
    auto* const part = new (heap->allocate_durable(sizeof(ShapedPart), alignof(ShapedPart))) ShapedPart();
    heap::add_named(*heap, "part", {part, sizeof *part, 1, stl::fingerprint<ShapedPart>()});
    heap->save();
    heap->close();
}

/// Names and shapes as behind one of the steps.
class ShapedSubject final : public Subject {
public:
    explicit ShapedSubject(std::vector<Shaped> states) : states_(std::move(states)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        auto file = open_shaped(disk, store::OpenMode::open_only, HeapKind::archive);
        const Shaped now = shaped_in(*file);
        for (const auto& [name, shape] : now)
            if (shape.empty() && name != "part") throw std::runtime_error("the name '" + name + "' is there without its type's shape");
        const auto found = std::find(states_.begin(), states_.end(), now);
        if (found == states_.end()) throw std::runtime_error("names and shapes are neither as before a step nor as behind it");
        const auto heap = HeapAccess::make<ArchiveHeap>(file);
        if (const Report report = heap.verify(); !report.ok()) throw std::runtime_error("verify() finds: " + report.findings.front().what);
        file->close();
        return static_cast<std::uint64_t>(found - states_.begin());
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::vector<Shaped> states_;
};

template <class Heap>
Recording record_shapes(HeapKind kind, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    make_shapeless(disk);
    if (kind != HeapKind::archive) open_shaped(disk, store::OpenMode::open_only, kind)->close();  // its files are attached
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    std::vector<Shaped> states;
    {
        auto file = open_shaped(recorder, store::OpenMode::open_only, kind);
        auto heap = HeapAccess::make<Heap>(file);
        states.push_back(shaped_in(*file));
        const auto step = [&](const std::function<void()>& change) {
            const std::uint64_t number = states.size();
            recorder.issue(number);
            if constexpr (std::is_same_v<Heap, TransactionalHeap>) {
                transact(heap, change);
            } else {
                change();
                heap.snapshot();
            }
            states.push_back(shaped_in(*file));
            recorder.acknowledge(number);
        };
        if (heap.template find<ShapedPart>("part") == nullptr) throw std::runtime_error("the part is gone");
        step([&] { heap.template construct<ShapedPoint>("point"); });
        if (bug == Bug::none && states.back().at("part").empty()) throw std::runtime_error("the part hasn't got its shape with what came next");
        step([&] { heap.template construct<ShapedPiece<16>>("pile"); });
        step([&] { heap.template construct<std::uint64_t>("number"); });
        step([&] { heap.template construct<ShapedPoint>("another"); });
        heap.close();
    }
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ShapedSubject>(std::move(states));
    return recording;
}

}  // namespace

std::vector<CrashScenario> shape_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, std::function<Recording(std::uint64_t, Bug)> record) {
        all.push_back({.name = name, .about = "shapes of types", .states_per_cut = 200, .record = std::move(record)});
    };
    add("shape-archive", [](std::uint64_t, Bug bug) { return record_shapes<ArchiveHeap>(HeapKind::archive, bug); });
    add("shape-snapshot", [](std::uint64_t, Bug bug) { return record_shapes<SnapshotHeap>(HeapKind::snapshot, bug); });
    add("shape-log", [](std::uint64_t, Bug bug) { return record_shapes<TransactionalHeap>(HeapKind::transactional, bug); });
    return all;
}

}  // namespace taiyen::crash
