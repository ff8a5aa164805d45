// Heap files as nobody writes them. Opening them for reading or writing, recovery, verify(), heal(), work in what opens, saving and closing: each call must end with
// a result, HeapFull or a typed error; a reader and a refused opening change no byte of any file; and what opens and saves opens again with what was saved.
//
// An input is a recipe: one of a few sets {backing, data, journal} (closed, or as a crash leaves them in the middle of a save), edits of fields and bytes, which
// checksums are made right again afterwards, and what is done with the result.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/inspect/heap_map.hpp>
#include <taiyen/inspect/leaks.hpp>
#include <taiyen/inspect/objects.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/snapshot_heap.hpp>

#include "fuzz/forged_files.hpp"
#include "heap/engine_layout.hpp"
#include "io/disks/faulty_storage.hpp"
#include "store/heap_access.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::fuzz;

const std::filesystem::path heap_path = "/disk/a.tyn";
const Paths paths{heap_path, "/disk/a.tyn.data", "/disk/a.tyn.journal"};

constexpr std::uintptr_t address = 0x2a00'0000'0000;
const Tuning small_journal = [] {
    Tuning tuning;
    tuning.journal_bytes = 64_KiB;
    return tuning;
}();

PersistentOptions options() {
    PersistentOptions small;
    small.capacity = 256_KiB;
    small.address = address;
    return small;
}

void fill(HeapFile& heap, const std::string& name, ByteCount bytes, int value) {
    void* block = heap.engine().allocate(bytes);
    std::memset(block, value, bytes);
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(block) - heap.ranges().durable;
    heap.engine().add_root({name, "bytes", {offset}, bytes, 1});
}

enum class Left { closed, after_small_saves, large_save_synced, large_save_half };

constexpr ByteCount annex_room = 1_MiB;

FileSet make_set(HeapKind kind, Left left, bool annex = false) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    io::FaultyStorage faulty(disk);
    auto heap = HeapFile::open(faulty, heap_path, OpenMode::create_only, kind, options(), small_journal);
    const auto write_annex = [&](ByteCount bytes, int value) {
        if (annex) {
            std::byte* const at = heap->open_annex(annex_room);
            heap->extend_annex(bytes);
            std::memset(at, value, bytes);
        }
    };
    write_annex(5000, 'h');
    fill(*heap, "first", 30, 'a');
    fill(*heap, "second", 3000, 'b');
    heap->save();
    fill(*heap, "run", 40'000, 'c');
    void* gone = heap->engine().allocate(20'000);
    std::memset(gone, 'd', 20'000);
    heap->save();
    heap->engine().deallocate(gone);
    fill(*heap, "third", 500, 'e');
    heap->save();
    if (left == Left::closed) {
        heap->close();
        return taken_from(disk, paths);
    }
    heap->saves().checkpoint();
    if (left == Left::after_small_saves) {
        faulty.arm({.sticky = true, .calls = io::Call::write});  // a checkpoint gets no further than its first write
        for (const char* name : {"x", "y"}) {
            fill(*heap, name, 100, 'f');
            write_annex(9000, 'i');
            try {
                heap->save();
            } catch (const Error&) {
                break;
            }
        }
        FileSet set = taken_from(disk, paths);
        TAIYEN_CHECK(!set.records.empty());
        return set;
    }
    std::memset(heap->engine().allocate(50'000), 'g', 50'000);
    write_annex(20'000, 'j');
    // Of the syncs of a large save the second one comes after its commit point, the first one before it.
    faulty.arm({.at = left == Left::large_save_synced ? 2U : 1U, .sticky = true, .calls = io::Call::sync});
    try {
        heap->save();
        TAIYEN_CHECK(false);
    } catch (const Error&) {}
    return taken_from(disk, paths);
}

const std::vector<FileSet>& sets() {
    static const std::vector<FileSet> all{
        make_set(HeapKind::archive, Left::closed),
        make_set(HeapKind::archive, Left::after_small_saves),
        make_set(HeapKind::archive, Left::large_save_synced),
        make_set(HeapKind::snapshot, Left::closed),
        make_set(HeapKind::snapshot, Left::after_small_saves),
        make_set(HeapKind::snapshot, Left::large_save_synced),
        make_set(HeapKind::snapshot, Left::large_save_half),
        make_set(HeapKind::archive, Left::after_small_saves, true),
        make_set(HeapKind::snapshot, Left::after_small_saves, true),
        make_set(HeapKind::snapshot, Left::large_save_half, true),
    };
    return all;
}
constexpr std::size_t plain_sets = 7;

/// Inputs from before there was an annex mean what they meant.
std::size_t set_for(std::uint64_t choice) { return choice < 224 ? choice % plain_sets : plain_sets + choice % (sets().size() - plain_sets); }

/// What a reader sees: the generation and every byte.
struct Seen {
    std::uint64_t generation;
    Bytes bytes;
    bool operator==(const Seen& other) const { return generation == other.generation && same(bytes, other.bytes.data(), other.bytes.size()); }
};

/// In these files, with what one copy has damaged taken from the other one, as an opening for writing restores it; nullopt: it is refused.
std::optional<Seen> seen_in(const Files& files) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    for (const auto& [path, bytes] : files) put(disk, path, bytes);
    PersistentOptions all = options();
    all.verify = Verify::at_opening;
    try {
        const auto heap = HeapFile::open(disk, heap_path, OpenMode::read_only, HeapKind::archive, all, small_journal);
        const auto* const begin = reinterpret_cast<const std::byte*>(heap->ranges().durable);
        return Seen{heap->files().point().generation.value, Bytes(begin, begin + heap->image().mapped())};
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// A disk with the files, and what is done with them.
class Program {
public:
    Program(const FileSet& set, bool untouched, Input& input) : untouched_(untouched), input_(input) {
        disk_.add_directory("/disk");
        disk_.set_space(256_MiB);  // what a save speaks of is allocated
        for (std::size_t i = 0; i < 3; ++i)
            if (set.files[i]) put(disk_, paths[i], *set.files[i]);
    }

    void run() {
        for (int i = 0; i < 3 && (i == 0 || !input_.empty()); ++i) {
            const std::uint64_t how = input_.number(1);
            if (how % 4 == 0)
                read();
            else if (how % 16 == 1)
                create();
            else
                write(how % 4 == 1 ? HeapKind::archive : HeapKind::snapshot);
        }
    }

private:
    /// Null: refused. Then nothing was changed, or recovery had begun and a reader sees what it saw before.
    std::shared_ptr<HeapFile> open(OpenMode mode, HeapKind kind) {
        const Files before = bytes_of(disk_);
        std::string why;
        try {
            return HeapFile::open(disk_, heap_path, mode, kind, options(), small_journal);
        } catch (const Error& error) {
            why = error.what();
        } catch (const std::bad_alloc& error) {
            why = error.what();
        }
        const bool harmless = holds(disk_, before) || (mode != OpenMode::read_only && seen_in(bytes_of(disk_)) == seen_in(before));
        if (untouched_ || !harmless) {
            std::fprintf(stderr, "%s: %s\n", untouched_ ? "a whole heap was refused" : "a refused opening changed the files", why.c_str());
            TAIYEN_CHECK(false);
        }
        return nullptr;
    }

    void read() {
        const Files before = bytes_of(disk_);
        if (auto file = open(OpenMode::read_only, HeapKind::archive)) {
            look(HeapAccess::make<ArchiveHeap>(file), *file);
            file->close();
        }
        TAIYEN_CHECK(holds(disk_, before));
    }

    void create() {
        untouched_ = false;
        try {
            disk_.remove(heap_path);
            HeapFile::open(disk_, heap_path, OpenMode::open_or_create, HeapKind::snapshot, options(), small_journal);
        } catch (const Error&) {
        } catch (const std::bad_alloc&) {}
    }

    void write(HeapKind kind) {
        auto file = open(OpenMode::open_only, kind);
        if (!file) return;
        const ArchiveHeap heap = HeapAccess::make<ArchiveHeap>(file);
        std::string saved_name;  // of the newest mark that was saved
        std::string name;
        for (std::uint64_t step = 0, steps = 1 + input_.number(1) % 24; step < steps; ++step) {
            try {
                work(*file, heap, name);
                if (file->engine().check(1).empty() && name != saved_name && step % 2 == 1) {
                    file->save();
                    saved_name = name;
                }
            } catch (const Error&) {
                TAIYEN_CHECK(!untouched_);
            } catch (const std::bad_alloc&) {}
        }
        try {
            file->close();
        } catch (const Error&) {
            TAIYEN_CHECK(!untouched_);
            return;
        }
        if (!saved_name.empty()) {
            const auto again = HeapFile::open(disk_, heap_path, OpenMode::open_only, kind, options(), small_journal);
            const auto root = again->engine().find_root(saved_name);
            TAIYEN_CHECK(root.has_value());
            const std::byte* const bytes = reinterpret_cast<const std::byte*>(again->ranges().durable) + root->object.value;
            TAIYEN_CHECK(std::all_of(bytes, bytes + root->bytes, [](std::byte byte) { return byte == std::byte{0x5A}; }));
        }
    }

    void work(HeapFile& file, const ArchiveHeap& heap, std::string& name) {
        heap::Engine& engine = file.engine();
        switch (const std::uint64_t code = input_.number(1); code % 12) {
            case 0:
            case 1:
            case 2: {
                file.check_usable(false);
                const ByteCount bytes = code < 128 ? 1 + code * 4 : (code - 120) * 500;
                void* const block = engine.allocate(bytes);
                std::memset(block, 0x5A, bytes);
                const std::string fresh = "mark" + std::to_string(++marks_);
                engine.add_root({fresh, "", {reinterpret_cast<std::uintptr_t>(block) - file.ranges().durable}, bytes, 1});
                name = fresh;
                break;
            }
            case 3: {
                file.check_usable(false);
                const std::vector<heap::Root> roots = engine.roots();
                if (!roots.empty() && roots.front().name != name) {
                    engine.remove_root(roots.front().name);
                    engine.deallocate(reinterpret_cast<void*>(file.ranges().durable + roots.front().object.value));
                }
                break;
            }
            case 4: look(heap, file); break;
            case 5: file.healing().heal(); break;
            case 6: file.save(); break;
            case 7: file.saves().checkpoint(); break;
            case 8: file.written_ranges(); break;
            case 10: {
                std::byte* const annex = file.open_annex(annex_room);
                file.extend_annex(std::min<ByteCount>(file.image().annex().used() + code * 16, annex_room));
                std::memset(annex, 0x5A, file.image().annex().used());
                break;
            }
            case 9: {
                file.check_usable(false);
                std::byte* const at = reinterpret_cast<std::byte*>(file.ranges().durable) + input_.number(3) % file.ranges().durable_bytes;
                engine.deallocate(at);
                break;
            }
            default: break;
        }
    }

    void look(const ArchiveHeap& heap, HeapFile& file) {
        const heap::Engine& engine = file.engine();
        const auto* const begin = reinterpret_cast<const std::byte*>(file.ranges().durable);
        std::uint64_t sum = 0;
        engine.for_each_block([&](const heap::Block& block) {
            for (ByteCount at = 0; at < block.usable_bytes; at += 64) sum += static_cast<std::uint64_t>(begin[block.offset.value + at]);
            return true;
        });
        try {
            engine.roots();
        } catch (const Error&) {
            TAIYEN_CHECK(!untouched_);
        }
        if (file.read_only()) {
            const std::byte* const annex = file.open_annex(0);
            for (ByteCount at = 0; at < file.image().annex().used(); at += 64) sum += static_cast<std::uint64_t>(annex[at]);
        }
        VerifyOptions everything;
        everything.threads = 1;
        everything.program_pointers = ProgramSearch::any_process;
        const Report report = verify(heap, everything);
        try {
            LeakOptions options;
            options.program_pointers = ProgramSearch::any_process;
            find_leaks(heap, options);
            map_of(heap);
            stored_objects(heap);
        } catch (const Error&) {}  // they believe what they read, and must come to an end with any of it
        // What the steps leave in the annex is no history, and verify() says so.
        TAIYEN_CHECK(!untouched_ || report.ok() || !file.files().restoration().clean || sum == 0 || file.image().annex().used() != 0);
    }

    io::SimulatedStorage disk_;
    bool untouched_;
    Input& input_;
    unsigned marks_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    set_report_handler([](const Incident&) noexcept {});
    Input input(bytes, size);
    FileSet set = sets()[set_for(input.number(1))];
    Forger forger(set, input);
    forger.run();
    Program(set, forger.untouched(), input).run();
    return 0;
}
