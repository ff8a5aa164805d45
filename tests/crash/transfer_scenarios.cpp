// Heaps that travel: compressed into a file, in the place of an older one or of none, and expanded into heaps of each kind. After any crash the old thing is there, or the new one, whole.

#include <cstring>
#include <map>
#include <random>
#include <stdexcept>

#include <taiyen/inspect/report.hpp>

#include "base/planted.hpp"
#include "crash/scenario.hpp"
#include "store/heap_access.hpp"
#include "transfer/transfer.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

const fs::path source_path = "/disk/source.tyn";
const fs::path stream_path = "/disk/stream.tyz";
const fs::path target_path = "/disk/target.tyn";

using Named = std::map<std::string, std::string>;
using Bytes = std::vector<std::byte>;

std::shared_ptr<store::HeapFile> open(io::Storage& disk, const fs::path& path, store::OpenMode mode, HeapKind kind) {
    PersistentOptions options;
    options.capacity = 2_MiB;
    options.log_capacity = 64_KiB;
    return store::HeapFile::open(disk, path, mode, kind, options, store::Tuning{32768});
}

void put(heap::HeapCore& heap, Named& model, const std::string& name, std::size_t bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string text(bytes, '\0');
    for (char& letter : text) letter = static_cast<char>(random());
    void* const block = heap.allocate_durable(bytes, 16);
    std::copy(text.begin(), text.end(), static_cast<char*>(block));
    heap::add_named(heap, name, {block, bytes, 1, "text"});
    model[name] = text;
}

/// Pointers to all named objects that are there, under the name "links"; the model has their names.
void put_links(heap::HeapCore& heap, Named& model) {
    std::vector<std::uintptr_t> links;
    std::string names;
    for (const auto& [name, text] : model) {
        links.push_back(heap.ranges().durable + heap.engine().find_root(name)->object.value);
        names += name + ";";
    }
    const std::size_t bytes = links.size() * sizeof links[0];
    void* const block = heap.allocate_durable(bytes, 16);
    std::memcpy(block, links.data(), bytes);
    heap::add_named(heap, "links", {block, bytes, links.size(), "links"});
    model["links"] = names;
}

Named content_of(const store::HeapFile& heap) {
    Named found;
    std::map<std::uintptr_t, std::string> names;
    for (const heap::Root& root : heap.engine().roots()) names[heap.ranges().durable + root.object.value] = root.name;
    for (const auto& [address, name] : names) {
        const heap::Root root = *heap.engine().find_root(name);
        std::string& content = found[name];
        content.assign(reinterpret_cast<const char*>(address), root.bytes);
        if (root.fingerprint != "links") continue;
        std::vector<std::uintptr_t> links(root.count);
        std::memcpy(links.data(), content.data(), content.size());
        content.clear();
        for (const std::uintptr_t link : links) content += (names.contains(link) ? names[link] : "astray") + ";";
    }
    return found;
}

/// A heap with something in it, closed.
Named make_source(io::Storage& disk, bool large) {
    Named model;
    const auto heap = open(disk, source_path, store::OpenMode::create_only, HeapKind::archive);
    for (unsigned i = 0; i < 5; ++i) put(*heap, model, "block " + std::to_string(i), 500 + 1500 * i, i);
    if (large) put(*heap, model, "large", 60'000, 9);
    heap->save();
    heap->close();
    return model;
}

void compress(io::Storage& from, io::Storage& to) {
    CompressOptions options;
    options.threads = 1;
    options.codec = Codec::lz4;
    transfer::compress_to(*open(from, source_path, store::OpenMode::read_only, HeapKind::archive), to, stream_path, options);
}

Bytes bytes_at(io::Storage& disk, const fs::path& path) {
    const auto file = disk.open(path, io::Access::read_only);
    Bytes bytes(file->info().size_bytes);
    bytes.resize(file->read(bytes, 0));
    return bytes;
}

/// The stream is the one of save n; before the first there may be none.
class StreamSubject final : public Subject {
public:
    explicit StreamSubject(std::vector<Bytes> streams) : streams_(std::move(streams)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        if (!disk.find(stream_path)) return 0;
        const Bytes found = bytes_at(disk, stream_path);
        for (std::size_t save = 1; save < streams_.size(); ++save)
            if (found == streams_[save]) return save;
        throw std::runtime_error("the compressed heap is neither the old one nor the new one");
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::vector<Bytes> streams_;  ///< by number; entry 0 stands for none
};

/// No heap, or all of it.
class ExpandedSubject final : public Subject {
public:
    ExpandedSubject(HeapKind kind, Named model) : kind_(kind), model_(std::move(model)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        if (!disk.find(target_path)) {
            for (const char* suffix : {".data", ".journal", ".log"})
                if (disk.find(target_path.string() + suffix)) throw std::runtime_error(std::string("a part without its heap: ") + suffix);
            return 0;
        }
        auto file = open(disk, target_path, store::OpenMode::open_only, kind_);
        if (content_of(*file) != model_) throw std::runtime_error("the expanded heap holds something else");
        const auto heap = HeapAccess::make<ArchiveHeap>(file);
        if (const Report report = heap.verify(); !report.ok()) throw std::runtime_error("verify() finds: " + report.findings.front().what);
        file->close();
        return 1;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    HeapKind kind_;
    Named model_;
};

Recording record_compress(bool again, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    std::vector<Bytes> streams(1);
    make_source(disk, !again);
    if (again) {
        compress(disk, disk);
        streams.push_back(bytes_at(disk, stream_path));
        {
            Named model;
            const auto heap = open(disk, source_path, store::OpenMode::open_only, HeapKind::archive);
            put(*heap, model, "more", 40'000, 10);
            heap->save();
            heap->close();
        }
    }
    recording.acknowledged = streams.size() - 1;
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    recorder.issue(streams.size());
    compress(disk, recorder);
    recorder.acknowledge(streams.size());
    recording.trace = recorder.take_trace();
    streams.push_back(bytes_at(disk, stream_path));
    recording.subject = std::make_unique<StreamSubject>(std::move(streams));
    return recording;
}

/// Under way to another address, its blocks laid close together.
ConvertOptions elsewhere(HeapKind kind) {
    ConvertOptions options;
    options.kind = kind;
    options.threads = 1;
    options.log_capacity = 64_KiB;
    options.address = anywhere;
    options.defragment = Defragment::by_address;
    options.pointers.types.add("text", {[](void*, PointerWalk&) {}, 1});  // bytes without pointers
    options.pointers.types.add("links", {[](void* link, PointerWalk& walk) { walk.pointer(link); }, sizeof(void*)});
    return options;
}

/// A heap and its stream lie there; `make` makes the target out of one of them.
template <class Make>
Recording record_making(HeapKind kind, Bug bug, Make make) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const Named model = make_source(disk, true);
    compress(disk, disk);
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    recorder.issue(1);
    make(recorder);
    recorder.acknowledge(1);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ExpandedSubject>(kind, model);
    return recording;
}

Recording record_move(HeapKind kind, bool from_stream, Bug bug) {
    return record_making(kind, bug, [&](io::Storage& storage) {
        if (from_stream)
            transfer::expand_to(storage, stream_path, target_path, elsewhere(kind));
        else
            transfer::convert_to(storage, source_path, target_path, elsewhere(kind));
    });
}

/// A heap that was in memory only becomes a file: where it lies, or elsewhere with its blocks laid anew.
Recording record_volatile(HeapKind kind, bool moves, Bug bug) {
    VolatileOptions in_memory;
    in_memory.capacity = 2_MiB;
    in_memory.tell_memory_tools = false;
    const VolatileHeap heap(in_memory);
    heap::HeapCore& core = *heap::VolatileCore::core_of(heap);
    Named model;
    std::vector<void*> holes;
    for (unsigned i = 0; i < 5; ++i) {
        put(core, model, "block " + std::to_string(i), 500 + 1500 * i, 20 + i);
        holes.push_back(core.allocate_durable(700 + 900 * i, 16));
    }
    put(core, model, "large", 60'000, 29);
    put_links(core, model);
    for (void* const hole : holes) core.deallocate_durable(hole);

    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    recorder.issue(1);
    ExpandOptions options = elsewhere(kind);
    if (!moves) options = {};
    options.kind = kind;
    transfer::convert_to(recorder, heap, target_path, options);
    recorder.acknowledge(1);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ExpandedSubject>(kind, std::move(model));
    return recording;
}

Recording record_expand(HeapKind kind, Bug bug) {
    return record_making(kind, bug, [&](io::Storage& storage) {
        ExpandOptions options;
        options.kind = kind;
        options.threads = 1;
        options.log_capacity = 64_KiB;
        transfer::expand_to(storage, stream_path, target_path, options);
    });
}

}  // namespace

std::vector<CrashScenario> transfer_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, std::function<Recording(std::uint64_t, Bug)> record) {
        all.push_back({.name = name, .about = "heaps that travel", .states_per_cut = 200, .record = std::move(record)});
    };
    add("compress-first", [](std::uint64_t, Bug bug) { return record_compress(false, bug); });
    add("compress-again", [](std::uint64_t, Bug bug) { return record_compress(true, bug); });
    add("expand-archive", [](std::uint64_t, Bug bug) { return record_expand(HeapKind::archive, bug); });
    add("expand-snapshot", [](std::uint64_t, Bug bug) { return record_expand(HeapKind::snapshot, bug); });
    add("expand-log", [](std::uint64_t, Bug bug) { return record_expand(HeapKind::transactional, bug); });
    add("expand-elsewhere", [](std::uint64_t, Bug bug) { return record_move(HeapKind::archive, true, bug); });
    add("convert-snapshot", [](std::uint64_t, Bug bug) { return record_move(HeapKind::snapshot, false, bug); });
    add("convert-log", [](std::uint64_t, Bug bug) { return record_move(HeapKind::transactional, false, bug); });
    add("volatile-archive", [](std::uint64_t, Bug bug) { return record_volatile(HeapKind::archive, false, bug); });
    add("volatile-elsewhere", [](std::uint64_t, Bug bug) { return record_volatile(HeapKind::archive, true, bug); });
    add("volatile-snapshot", [](std::uint64_t, Bug bug) { return record_volatile(HeapKind::snapshot, true, bug); });
    add("volatile-log", [](std::uint64_t, Bug bug) { return record_volatile(HeapKind::transactional, true, bug); });
    return all;
}

}  // namespace taiyen::crash
