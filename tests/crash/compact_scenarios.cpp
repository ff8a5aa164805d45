// Heaps whose blocks move while they are open, a step at a time. After any crash all blocks and the pointers to them lie as before a step, or as behind it.

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <taiyen/inspect/report.hpp>
#include <taiyen/transfer/compact.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "base/planted.hpp"
#include "crash/scenario.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

const fs::path chain_path = "/disk/chain.tyn";
constexpr std::uint64_t chain_links = 60;
constexpr std::uint64_t steps = 3;

struct ChainLink {
    ChainLink* next;
    std::uint64_t number;
    std::byte more[96];
};

void walk_chain(void* object, PointerWalk& walk) {
    auto& link = *static_cast<ChainLink*>(object);
    if (walk.pointer(&link.next)) walk.later(link.next, sizeof link, &walk_chain);
}

/// Where the links of the chain lie, one after the other.
using Places = std::vector<std::uintptr_t>;

PersistentOptions chain_options() {
    PersistentOptions options;
    options.capacity = 2_MiB;
    options.log_capacity = 64_KiB;
    options.capture = Capture::declared;
    options.loss_window = std::chrono::hours(1);  // nothing is written by the clock
    options.snapshot_log_fill = 1e9;              // nothing but a full log asks for snapshots
    return options;
}

std::shared_ptr<store::HeapFile> open_chain(io::Storage& disk, store::OpenMode mode, HeapKind kind) {
    auto file = store::HeapFile::open(disk, chain_path, mode, kind, chain_options(), store::Tuning{32768});
    if (kind == HeapKind::transactional && mode != store::OpenMode::read_only) txn::TransactionService::join(*file, chain_options());
    return file;
}

/// Throws std::runtime_error: there is no such chain.
Places places_in(const store::HeapFile& heap) {
    const auto root = heap.engine().find_root("chain");
    if (!root) throw std::runtime_error("the chain has no name");
    Places places;
    std::uintptr_t at = heap.ranges().durable + root->object.value;
    while (at != 0) {
        if (heap.engine().usable_size(reinterpret_cast<const void*>(at)) < sizeof(ChainLink)) throw std::runtime_error("a link is no live block");
        const auto& link = *reinterpret_cast<const ChainLink*>(at);
        if (link.number != places.size() || places.size() == chain_links) throw std::runtime_error("a link is another one");
        if (std::any_of(std::begin(link.more), std::end(link.more), [&](std::byte byte) { return byte != static_cast<std::byte>(link.number); }))
            throw std::runtime_error("a link holds something else");
        places.push_back(at);
        at = reinterpret_cast<std::uintptr_t>(link.next);
    }
    if (places.size() != chain_links) throw std::runtime_error("the chain ends early");
    return places;
}

/// A chain whose links lie far from one another; closed.
void make_chain(io::Storage& disk) {
    const auto heap = open_chain(disk, store::OpenMode::create_only, HeapKind::archive);
    std::vector<void*> between;
    ChainLink* last = nullptr;
    for (std::uint64_t number = 0; number < chain_links; ++number) {
        auto* const link = static_cast<ChainLink*>(heap->allocate_durable(sizeof(ChainLink), 16));
        link->next = nullptr;
        link->number = number;
        std::fill(std::begin(link->more), std::end(link->more), static_cast<std::byte>(number));
        if (last == nullptr)
            heap::add_named(*heap, "chain", {link, sizeof *link, 1, "chain"});
        else
            last->next = link;
        last = link;
        for (unsigned i = 0; i < 5; ++i) between.push_back(heap->allocate_durable(60 + 40 * i, 16));
    }
    for (void* const block : between) heap->deallocate_durable(block);
    heap->save();
    heap->close();
}

CompactOptions chain_step() {
    CompactOptions options;
    options.types.add("chain", {&walk_chain, sizeof(ChainLink)});
    options.bytes_max = 2500;
    return options;
}

/// The chain, as it lay behind one of the steps.
class ChainSubject final : public Subject {
public:
    explicit ChainSubject(std::vector<Places> states) : states_(std::move(states)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        auto file = open_chain(disk, store::OpenMode::open_only, HeapKind::archive);
        const auto found = std::find(states_.begin(), states_.end(), places_in(*file));
        if (found == states_.end()) throw std::runtime_error("the chain lies neither as before a step nor as behind it");
        const auto heap = HeapAccess::make<ArchiveHeap>(file);
        if (const Report report = heap.verify(); !report.ok()) throw std::runtime_error("verify() finds: " + report.findings.front().what);
        std::uint64_t blocks = 0;
        file->engine().for_each_block([&](const heap::Block&) { return ++blocks != 0; });
        if (blocks != chain_links) throw std::runtime_error("there are " + std::to_string(blocks) + " blocks");
        file->close();
        return static_cast<std::uint64_t>(found - states_.begin());
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::vector<Places> states_;
};

template <class Heap>
Recording record_compact(HeapKind kind, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    make_chain(disk);
    if (kind != HeapKind::archive) open_chain(disk, store::OpenMode::open_only, kind)->close();  // its files are attached
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    std::vector<Places> states;
    {
        auto file = open_chain(recorder, store::OpenMode::open_only, kind);
        auto heap = HeapAccess::make<Heap>(file);
        states.push_back(places_in(*file));
        for (std::uint64_t step = 1; step <= steps; ++step) {
            recorder.issue(step);
            if (compact(heap, chain_step()).moved_blocks == 0) throw std::runtime_error("nothing has moved");
            if (kind != HeapKind::transactional) heap.snapshot();
            states.push_back(places_in(*file));
            recorder.acknowledge(step);
        }
        heap.close();
    }
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ChainSubject>(std::move(states));
    return recording;
}

}  // namespace

std::vector<CrashScenario> compact_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, std::function<Recording(std::uint64_t, Bug)> record) {
        all.push_back({.name = name, .about = "heaps that are compacted", .states_per_cut = 200, .record = std::move(record)});
    };
    add("compact-archive", [](std::uint64_t, Bug bug) { return record_compact<ArchiveHeap>(HeapKind::archive, bug); });
    add("compact-snapshot", [](std::uint64_t, Bug bug) { return record_compact<SnapshotHeap>(HeapKind::snapshot, bug); });
    add("compact-log", [](std::uint64_t, Bug bug) { return record_compact<TransactionalHeap>(HeapKind::transactional, bug); });
    return all;
}

}  // namespace taiyen::crash
