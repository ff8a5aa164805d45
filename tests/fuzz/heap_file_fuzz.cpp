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
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/snapshot_heap.hpp>

#include "heap/engine_layout.hpp"
#include "io/faulty_storage.hpp"
#include "io/simulated_node.hpp"
#include "log/memory_file.hpp"
#include "log/ring_forgery.hpp"
#include "store/heap_access.hpp"
#include "store/heap_forgery.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::store;

using Bytes = std::vector<std::byte>;

const std::filesystem::path heap_path = "/disk/a.tyn";
const std::array<std::filesystem::path, 3> paths{heap_path, "/disk/a.tyn.data", "/disk/a.tyn.journal"};
enum Which : std::size_t { backing, data, journal };

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

/// The files of a heap, and what its journal held.
struct FileSet {
    std::array<std::optional<Bytes>, 3> files;
    log::RingIdentity ring;
    log::RingStart start;
    std::vector<log::Record> records;
    ByteCount extent = 0;
};

FileSet taken_from(const io::SimulatedStorage& disk) {
    FileSet set;
    for (std::size_t i = 0; i < 3; ++i)
        if (const auto node = disk.node(paths[i]))
            set.files[i].emplace(node->data(), node->data() + node->size_bytes());
    log::test::MemoryFile file;
    file.bytes = *set.files[backing];
    const Header header = *read_slots(file).newest();
    set.extent = header.extent;
    set.ring = header.ring_identity();
    set.start = header.ring_start;
    if (set.files[journal]) {
        file.bytes = *set.files[journal];
        log::Ring::scan(file, set.ring, set.start, [&](const log::Record& record) {
            set.records.push_back(record);
            return true;
        });
    }
    return set;
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
        return taken_from(disk);
    }
    heap->checkpoint();
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
        FileSet set = taken_from(disk);
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
    } catch (const Error&) {
    }
    return taken_from(disk);
}

const std::vector<FileSet>& sets() {
    static const std::vector<FileSet> all{
        make_set(HeapKind::archive, Left::closed),           make_set(HeapKind::archive, Left::after_small_saves), make_set(HeapKind::archive, Left::large_save_synced),
        make_set(HeapKind::snapshot, Left::closed),          make_set(HeapKind::snapshot, Left::after_small_saves), make_set(HeapKind::snapshot, Left::large_save_synced),
        make_set(HeapKind::snapshot, Left::large_save_half),
        make_set(HeapKind::archive, Left::after_small_saves, true), make_set(HeapKind::snapshot, Left::after_small_saves, true),
        make_set(HeapKind::snapshot, Left::large_save_half, true),
    };
    return all;
}
constexpr std::size_t plain_sets = 7;

/// Inputs from before there was an annex mean what they meant.
std::size_t set_for(std::uint64_t choice) { return choice < 224 ? choice % plain_sets : plain_sets + choice % (sets().size() - plain_sets); }

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
    std::uint64_t number(unsigned bytes) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes && at_ != end_; ++i)
            value |= std::uint64_t{*at_++} << (8 * i);
        return value;
    }
    bool empty() const { return at_ == end_; }

private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

/// Which checksums are made right again after the edits.
enum Fix : std::uint64_t { headers = 1, entries = 2, tables = 4, root = 8, ring_identity = 16, ring_records = 32, save_checksums = 64 };

/// Where a field of a header lies.
struct Field {
    std::size_t offset;
    unsigned bytes;
};
constexpr Field header_fields[] = {
    {offsetof(HeaderBlock, magic), 8},         {offsetof(HeaderBlock, version), 4},         {offsetof(HeaderBlock, byte_order), 4},
    {offsetof(HeaderBlock, page_size), 4},     {offsetof(HeaderBlock, reserved0), 4},       {offsetof(HeaderBlock, compatible_features), 8},
    {offsetof(HeaderBlock, incompatible_features), 8},
    {offsetof(HeaderBlock, heap_uuid), 8},     {offsetof(HeaderBlock, file_uuid), 8},       {offsetof(HeaderBlock, data_uuid), 8},
    {offsetof(HeaderBlock, ring_uuid), 8},     {offsetof(HeaderBlock, role), 4},            {offsetof(HeaderBlock, state), 4},
    {offsetof(HeaderBlock, sequence), 8},      {offsetof(HeaderBlock, flags), 8},           {offsetof(HeaderBlock, base), 8},
    {offsetof(HeaderBlock, capacity), 8},      {offsetof(HeaderBlock, extent), 8},          {offsetof(HeaderBlock, generation), 8},
    {offsetof(HeaderBlock, filling_generation), 8}, {offsetof(HeaderBlock, serial), 8},     {offsetof(HeaderBlock, ring_kind), 4},
    {offsetof(HeaderBlock, reserved1), 4},     {offsetof(HeaderBlock, ring_capacity), 8},   {offsetof(HeaderBlock, ring_epoch), 8},
    {offsetof(HeaderBlock, ring_position), 8}, {offsetof(HeaderBlock, ring_sequence), 8},   {offsetof(HeaderBlock, ring_chain_seed), 8},
    {offsetof(HeaderBlock, table_root), 8},    {offsetof(HeaderBlock, annex_extent), 8},    {offsetof(HeaderBlock, annex_used), 8},
    {offsetof(HeaderBlock, checksum), 8},
};

class Forger {
public:
    Forger(FileSet& set, Input& input) : set_(set), input_(input) {}

    void run() {
        fixes_ = input_.number(1);
        edits_ = input_.number(1) % 12;
        for (std::uint64_t i = 0; i < edits_; ++i)
            edit();
        if ((fixes_ & save_checksums) != 0)
            for (log::Record& record : set_.records)
                fix_save(record);
        if ((fixes_ & ring_records) != 0)
            write_ring_anew();
        if ((fixes_ & ring_identity) != 0)
            fix_ring_identity();
        for (const Which which : {backing, data})
            if (set_.files[which])
                fix_file(*set_.files[which]);
    }
    bool untouched() const { return edits_ == 0 && fixes_ == 0; }

private:
    void edit() {
        const std::uint64_t where = input_.number(1);
        std::optional<Bytes>& file = set_.files[where / 8 % 4 == 3 && set_.files[data] ? data : backing];
        Bytes& pages = file ? *file : empty_;
        switch (where % 8) {
        case 0: edit_header(pages, where / 32); break;
        case 1: change(pages, FileLayout().file_offset({input_.number(2) * 8 % (2 * page_bytes)}), 8); break;
        case 2: change(pages, FileLayout().file_offset({input_.number(3) % 256_KiB}), 8); break;
        case 3: change(pages, chunks_offset + input_.number(1) * 8, 8); break;
        case 4: edit_ring(where / 8); break;
        case 5: case 6: edit_record(where / 8); break;
        default: edit_file(where / 8); break;
        }
    }

    /// Both slots as a rule: a single bad one is repaired from the other.
    void edit_header(Bytes& file, std::uint64_t slots) {
        const std::uint64_t choice = input_.number(1);
        const Field field = choice < 248   ? header_fields[choice % std::size(header_fields)]
                            : choice < 250 ? Field{offsetof(HeaderBlock, annex_places), 8}
                                           : Field{offsetof(HeaderBlock, log_uuid) + input_.number(1) % 21 * 8, 8};  // log and stage
        if (file.size() < chunks_offset)
            return;
        if (slots != 1)
            change(file, field.offset, field.bytes);
        if (slots == 2)
            std::memcpy(file.data() + header_slot_bytes + field.offset, file.data() + field.offset, field.bytes);
        else if (slots != 0)
            change(file, header_slot_bytes + field.offset, field.bytes);
    }

    void edit_ring(std::uint64_t what) {
        if (!set_.files[journal])
            return;
        constexpr std::size_t identity_fields[] = {0, 8, 12, 16, 24, 32, 48, 64, 72};
        const bool identity = what % 2 == 0;
        change(*set_.files[journal], identity ? identity_fields[input_.number(1) % std::size(identity_fields)] + what / 2 % 2 * 4096 : input_.number(3), 8);
    }

    void edit_record(std::uint64_t what) {
        if (set_.records.empty())
            return;
        log::Record& record = set_.records[input_.number(1) % set_.records.size()];
        switch (what % 8) {
        case 0: record.kind = static_cast<std::uint32_t>(changed(record.kind)); break;
        case 1: record.number = changed(record.number); break;
        case 2: record.payload.resize(changed(record.payload.size()) % 33_KiB); break;
        case 3: set_.records.push_back(record); break;
        case 4: set_.records.erase(set_.records.begin()); break;
        case 5: change(record.payload, input_.number(2), 8); break;
        default: change(record.payload, input_.number(1) * 8, 8); break;
        }
    }

    void edit_file(std::uint64_t what) {
        const std::size_t which = what % 3;
        std::optional<Bytes>& file = set_.files[which];
        switch (what / 3 % 4) {
        case 0: file.reset(); break;
        case 1:
            if (file)
                file->resize(changed(file->size()) % 512_KiB);
            break;
        case 2: file = set_.files[input_.number(1) % 3]; break;
        default:
            if (file) {
                const std::uint64_t from = input_.number(3);
                for (std::uint64_t i = from; i < std::min<std::uint64_t>(from + 512, file->size()); ++i)
                    (*file)[i] = std::byte{0};
            }
        }
    }

    std::uint64_t changed(std::uint64_t value) {
        constexpr std::uint64_t telling[] = {0, 1, 2, 3, 4096, 4095, 8192, 256_KiB, 1_MiB, 1ULL << 31U, 1ULL << 32U, 1ULL << 40U, 1ULL << 43U, 1ULL << 46U, 1ULL << 47U, 1ULL << 63U, ~0ULL, ~0ULL << 12U};
        const std::uint64_t how = input_.number(1);
        switch (how % 4) {
        case 0: return value ^ 1ULL << (how / 4 % 64);
        case 1: return telling[how / 4 % std::size(telling)];
        case 2: return value + (how / 4 % 2 == 0 ? 1 : ~0ULL) * (how / 8 % 2 == 0 ? 1 : page_bytes) * (1 + how / 16);
        default: return input_.number(8);
        }
    }
    void change(Bytes& bytes, std::uint64_t offset, unsigned count) {
        if (offset >= bytes.size())
            return;
        const std::size_t length = std::min<std::size_t>(count, bytes.size() - offset);
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + offset, length);
        value = changed(value);
        std::memcpy(bytes.data() + offset, &value, length);
    }

    Uuid heap_uuid(const Bytes& file) const {
        Uuid uuid;
        std::memcpy(uuid.bytes.data(), file.data() + offsetof(HeaderBlock, heap_uuid), 16);
        return uuid;
    }

    void fix_file(Bytes& file) {
        if (file.size() < chunks_offset + page_bytes)
            return;
        const Uuid heap = heap_uuid(file);
        if ((fixes_ & entries) != 0)
            test::forge_entries(file, 0, heap);
        std::uint64_t sum = 0;
        if ((fixes_ & tables) != 0)
            sum = test::forge_table_page(file, 0, heap);
        for (const std::uint64_t slot : {0U, 1U}) {
            if ((fixes_ & root) != 0 && sum != 0) {
                const std::uint64_t table_root = mix(0, sum);
                std::memcpy(file.data() + slot * header_slot_bytes + offsetof(HeaderBlock, table_root), &table_root, sizeof table_root);
            }
            if ((fixes_ & headers) != 0)
                test::forge_header(file, slot);
        }
    }

    /// Checksums of the pages in a save.
    void fix_save(log::Record& record) {
        SaveHead head;
        if (record.payload.size() < sizeof head)
            return;
        std::memcpy(&head, record.payload.data(), sizeof head);
        std::byte* const at = record.payload.data() + sizeof head;
        const std::byte* const end = record.payload.data() + record.payload.size();
        std::uint64_t image_at = sizeof head + head.page_count * sizeof(SavedPage);
        const auto room = static_cast<std::uint64_t>(end - at);
        if (head.page_count > 64 || head.page_count * sizeof(SavedPage) > room)
            return;
        const std::byte* const begin = record.payload.data();
        std::vector<SavedPage> pages(head.page_count);
        std::memcpy(pages.data(), at, pages.size() * sizeof(SavedPage));
        for (SavedPage& page : pages) {
            if (page.checksum == 0)
                continue;
            if (image_at + page_bytes > static_cast<std::uint64_t>(end - begin))
                break;
            page.checksum = page_checksum({begin + image_at, page_bytes}, {page.page}, set_.ring.heap);
            image_at += page_bytes;
        }
        std::memcpy(at, pages.data(), pages.size() * sizeof(SavedPage));
    }

    /// The journal as if the changed records had been written one after the other.
    void write_ring_anew() {
        if (!set_.files[journal] || set_.ring.capacity_bytes == 0 || set_.files[journal]->size() < log::Ring::header_bytes + set_.ring.capacity_bytes)
            return;
        const auto file = std::make_shared<log::test::MemoryFile>();
        file->bytes = std::move(*set_.files[journal]);
        log::Ring ring(file, set_.ring, set_.start, set_.start.position);
        for (const log::Record& record : set_.records) {
            const std::span<const std::byte> piece(record.payload);
            if (!ring.fits(piece.size()))
                break;
            ring.append(record.kind, record.number, {&piece, 1});
        }
        set_.files[journal] = std::move(file->bytes);
    }

    void fix_ring_identity() {
        for (unsigned index = 0; set_.files[journal] && index < log::layout::identity_slots; ++index) {
            Bytes& bytes = *set_.files[journal];
            log::layout::IdentitySlot slot;
            if (bytes.size() < log::Ring::header_bytes)
                return;
            std::byte* const at = bytes.data() + index * sizeof slot;
            std::memcpy(static_cast<void*>(&slot), at, sizeof slot);
            log::test::forge_identity({at, sizeof slot}, index, slot);
        }
    }

    FileSet& set_;
    Input& input_;
    std::uint64_t fixes_ = 0;
    std::uint64_t edits_ = 0;
    Bytes empty_;
};

using Files = std::map<std::filesystem::path, Bytes>;

Files bytes_of(const io::SimulatedStorage& disk) {
    Files all;
    for (const auto& [path, node] : disk.files())
        all[path].assign(node->data(), node->data() + node->size_bytes());
    return all;
}

void put(io::SimulatedStorage& disk, const std::filesystem::path& path, const Bytes& bytes) {
    const auto node = disk.make_node();
    node->write(bytes, 0);
    node->resize(bytes.size());
    disk.put(path, node);
}

/// What a reader sees in these files: the generation and every byte; nullopt: it is refused.
std::optional<std::pair<std::uint64_t, Bytes>> seen_in(const Files& files) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    for (const auto& [path, bytes] : files)
        put(disk, path, bytes);
    try {
        const auto heap = HeapFile::open(disk, heap_path, OpenMode::read_only, HeapKind::archive, options(), small_journal);
        const auto* const begin = reinterpret_cast<const std::byte*>(heap->ranges().durable);
        return std::pair(heap->generation().value, Bytes(begin, begin + heap->mapped_bytes()));
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
            if (set.files[i])
                put(disk_, paths[i], *set.files[i]);
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
        const Files after = bytes_of(disk_);
        const bool harmless = after == before || (mode != OpenMode::read_only && seen_in(after) == seen_in(before));
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
        TAIYEN_CHECK(bytes_of(disk_) == before);
    }

    void create() {
        untouched_ = false;
        try {
            disk_.remove(heap_path);
            HeapFile::open(disk_, heap_path, OpenMode::open_or_create, HeapKind::snapshot, options(), small_journal);
        } catch (const Error&) {
        } catch (const std::bad_alloc&) {
        }
    }

    void write(HeapKind kind) {
        auto file = open(OpenMode::open_only, kind);
        if (!file)
            return;
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
            } catch (const std::bad_alloc&) {
            }
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
        case 0: case 1: case 2: {
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
        case 5: file.heal(); break;
        case 6: file.save(); break;
        case 7: file.checkpoint(); break;
        case 8: file.written_ranges(); break;
        case 10: {
            std::byte* const annex = file.open_annex(annex_room);
            file.extend_annex(std::min<ByteCount>(file.annex_bytes() + code * 16, annex_room));
            std::memset(annex, 0x5A, file.annex_bytes());
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
            for (ByteCount at = 0; at < block.usable_bytes; at += 64)
                sum += static_cast<std::uint64_t>(begin[block.offset.value + at]);
            return true;
        });
        try {
            engine.roots();
        } catch (const Error&) {
            TAIYEN_CHECK(!untouched_);
        }
        if (file.read_only()) {
            const std::byte* const annex = file.open_annex(0);
            for (ByteCount at = 0; at < file.annex_bytes(); at += 64)
                sum += static_cast<std::uint64_t>(annex[at]);
        }
        const Report report = heap.verify();
        TAIYEN_CHECK(!untouched_ || report.ok() || !file.restoration().clean || sum == 0);
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
