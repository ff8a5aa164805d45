#pragma once
/// The files of a heap as an attacker would leave them: a set of files, edits of fields and bytes, and checksums that are made right again afterwards.
///
/// The ring of a set is the heap's journal, or the log of a transactional heap: what differs is what its records hold.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/input.hpp"
#include "io/disks/simulated_node.hpp"
#include "log/group.hpp"
#include "log/memory_file.hpp"
#include "log/ring_forgery.hpp"
#include "store/heap_forgery.hpp"
#include "store/save_record.hpp"
#include "txn/record_layout.hpp"

namespace taiyen::fuzz {

using namespace store;

using Bytes = std::vector<std::byte>;

enum Which : std::size_t { backing, data, ring };
using Paths = std::array<std::filesystem::path, 3>;

/// The files of a heap, and what its ring held.
struct FileSet {
    std::array<std::optional<Bytes>, 3> files;
    log::RingIdentity ring_identity;
    log::RingStart ring_start;
    std::vector<log::Record> records;
    ByteCount extent = 0;
};

inline FileSet taken_from(const io::SimulatedStorage& disk, const Paths& paths) {
    FileSet set;
    for (std::size_t i = 0; i < 3; ++i)
        if (const auto node = disk.node(paths[i])) set.files[i].emplace(node->data(), node->data() + node->size_bytes());
    log::test::MemoryFile file;
    file.bytes = *set.files[backing];
    const Header header = *read_slots(file).newest();
    set.extent = header.extent;
    set.ring_identity = header.ring_identity();
    set.ring_start = header.ring_start;
    if (set.files[ring] && set.ring_identity.capacity_bytes != 0) {
        file.bytes = *set.files[ring];
        log::Ring::scan(file, set.ring_identity, set.ring_start, [&](const log::Record& record) {
            set.records.push_back(record);
            return true;
        });
    }
    return set;
}

/// Which checksums are made right again after the edits.
enum Fix : std::uint64_t { headers = 1, entries = 2, tables = 4, root = 8, ring_identity = 16, ring_records = 32, payloads = 64, stage = 128 };

/// Where a field of a header lies.
struct Field {
    std::size_t offset;
    unsigned bytes;
};
constexpr Field header_fields[] = {
    {offsetof(HeaderBlock, magic), 8},
    {offsetof(HeaderBlock, version), 4},
    {offsetof(HeaderBlock, byte_order), 4},
    {offsetof(HeaderBlock, page_size), 4},
    {offsetof(HeaderBlock, reserved0), 4},
    {offsetof(HeaderBlock, compatible_features), 8},
    {offsetof(HeaderBlock, incompatible_features), 8},
    {offsetof(HeaderBlock, heap_uuid), 8},
    {offsetof(HeaderBlock, file_uuid), 8},
    {offsetof(HeaderBlock, data_uuid), 8},
    {offsetof(HeaderBlock, ring_uuid), 8},
    {offsetof(HeaderBlock, role), 4},
    {offsetof(HeaderBlock, state), 4},
    {offsetof(HeaderBlock, sequence), 8},
    {offsetof(HeaderBlock, flags), 8},
    {offsetof(HeaderBlock, base), 8},
    {offsetof(HeaderBlock, capacity), 8},
    {offsetof(HeaderBlock, extent), 8},
    {offsetof(HeaderBlock, generation), 8},
    {offsetof(HeaderBlock, filling_generation), 8},
    {offsetof(HeaderBlock, serial), 8},
    {offsetof(HeaderBlock, ring_kind), 4},
    {offsetof(HeaderBlock, reserved1), 4},
    {offsetof(HeaderBlock, ring_capacity), 8},
    {offsetof(HeaderBlock, ring_epoch), 8},
    {offsetof(HeaderBlock, ring_position), 8},
    {offsetof(HeaderBlock, ring_sequence), 8},
    {offsetof(HeaderBlock, ring_chain_seed), 8},
    {offsetof(HeaderBlock, table_root), 8},
    {offsetof(HeaderBlock, annex_extent), 8},
    {offsetof(HeaderBlock, annex_used), 8},
    {offsetof(HeaderBlock, checksum), 8},
};

class Forger {
public:
    Forger(FileSet& set, Input& input) : set_(set), input_(input) {}

    void run() {
        fixes_ = input_.number(1);
        edits_ = input_.number(1) % 12;
        for (std::uint64_t i = 0; i < edits_; ++i) edit();
        if ((fixes_ & payloads) != 0)
            for (log::Record& record : set_.records) record.kind == log::record_transactions ? fix_group(record) : fix_save(record);
        if ((fixes_ & ring_records) != 0) write_ring_anew();
        if ((fixes_ & ring_identity) != 0) fix_ring_identity();
        if ((fixes_ & stage) != 0) fix_stage();
        for (const Which which : {backing, data})
            if (set_.files[which]) fix_file(*set_.files[which]);
    }
    bool untouched() const { return edits_ == 0 && fixes_ == 0; }

private:
    static constexpr std::uint64_t first_redo =
        sizeof(log::layout::GroupHead) + sizeof(log::layout::GroupRecordHead) + sizeof(txn::layout::RecordHead);

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
            case 5:
            case 6: edit_record(where / 8); break;
            default:
                if (where / 96 == 1)
                    edit_stage(where / 8);
                else
                    edit_file(where / 8);
        }
    }

    /// Both slots as a rule: a single bad one is repaired from the other.
    void edit_header(Bytes& file, std::uint64_t slots) {
        const std::uint64_t choice = input_.number(1);
        const Field field = choice < 248   ? header_fields[choice % std::size(header_fields)]
                            : choice < 250 ? Field{offsetof(HeaderBlock, annex_places), 8}
                                           : Field{offsetof(HeaderBlock, log_uuid) + input_.number(1) % 21 * 8, 8};  // log and stage
        if (file.size() < chunks_offset) return;
        if (slots != 1) change(file, field.offset, field.bytes);
        if (slots == 2)
            std::memcpy(file.data() + header_slot_bytes + field.offset, file.data() + field.offset, field.bytes);
        else if (slots != 0)
            change(file, header_slot_bytes + field.offset, field.bytes);
    }

    void edit_ring(std::uint64_t what) {
        if (!set_.files[ring]) return;
        constexpr std::size_t identity_fields[] = {0, 8, 12, 16, 24, 32, 48, 64, 72};
        const bool identity = what % 2 == 0;
        change(*set_.files[ring], identity ? identity_fields[input_.number(1) % std::size(identity_fields)] + what / 2 % 2 * 4096 : input_.number(3),
               8);
    }

    void edit_record(std::uint64_t what) {
        if (set_.records.empty()) return;
        log::Record& record = set_.records[input_.number(1) % set_.records.size()];
        switch (what % 8) {
            case 0: record.kind = static_cast<std::uint32_t>(changed(record.kind)); break;
            case 1: record.number = changed(record.number); break;
            case 2: record.payload.resize(changed(record.payload.size()) % 33_KiB); break;
            case 3: set_.records.push_back(record); break;
            case 4: set_.records.erase(set_.records.begin()); break;
            case 5: change(record.payload, input_.number(2), 8); break;
            case 6: change(record.payload, input_.number(1) * 8, 8); break;
            default:
                if (record.kind == log::record_transactions)
                    edit_redo(record.payload);
                else
                    change(record.payload, input_.number(1) * 8, 8);
                break;
        }
    }

    /// Other bytes from somewhere in the first transaction's redo on, or one of them changed.
    void edit_redo(Bytes& payload) {
        const std::uint64_t at = first_redo + input_.number(1);
        const std::uint64_t how = input_.number(1);
        if (how >= 128) {
            change(payload, at, 1);
        } else {
            payload.resize(std::min<std::size_t>(payload.size(), at));
            const auto bytes = input_.bytes(how);
            payload.insert(payload.end(), bytes.begin(), bytes.end());
        }
    }

    /// Entries and images behind the record area.
    void edit_stage(std::uint64_t what) {
        if (!set_.files[ring]) return;
        const std::uint64_t begin = log::Ring::header_bytes + set_.ring_identity.capacity_bytes;
        change(*set_.files[ring], begin + (what % 4 == 0 ? input_.number(3) : input_.number(1) * 8), 8);
    }

    void edit_file(std::uint64_t what) {
        const std::size_t which = what % 3;
        std::optional<Bytes>& file = set_.files[which];
        switch (what / 3 % 4) {
            case 0: file.reset(); break;
            case 1:
                if (file) file->resize(changed(file->size()) % 512_KiB);
                break;
            case 2: file = set_.files[input_.number(1) % 3]; break;
            default:
                if (file) {
                    const std::uint64_t from = input_.number(3);
                    for (std::uint64_t i = from; i < std::min<std::uint64_t>(from + 512, file->size()); ++i) (*file)[i] = std::byte{0};
                }
        }
    }

    std::uint64_t changed(std::uint64_t value) { return input_.changed(value); }
    void change(Bytes& bytes, std::uint64_t offset, unsigned count) { input_.change(bytes, offset, count); }

    Uuid heap_uuid(const Bytes& file) const {
        Uuid uuid;
        std::memcpy(uuid.bytes.data(), file.data() + offsetof(HeaderBlock, heap_uuid), 16);
        return uuid;
    }

    void fix_file(Bytes& file) {
        if (file.size() < chunks_offset + page_bytes) return;
        const Uuid heap = heap_uuid(file);
        if ((fixes_ & entries) != 0) test::forge_entries(file, 0, heap);
        std::uint64_t sum = 0;
        if ((fixes_ & tables) != 0) sum = test::forge_table_page(file, 0, heap);
        for (const std::uint64_t slot : {0U, 1U}) {
            if ((fixes_ & root) != 0 && sum != 0) {
                const std::uint64_t table_root = mix(0, sum);
                std::memcpy(file.data() + slot * header_slot_bytes + offsetof(HeaderBlock, table_root), &table_root, sizeof table_root);
            }
            if ((fixes_ & headers) != 0) test::forge_header(file, slot);
        }
    }

    /// Sizes of a group: what stands behind the head of its first transaction is that one's redo.
    static void fix_group(log::Record& record) {
        if (record.payload.size() < first_redo) return;
        const auto redo_bytes = static_cast<std::uint32_t>(record.payload.size() - first_redo);
        const log::layout::GroupHead group{1, 0};
        const log::layout::GroupRecordHead head{static_cast<std::uint32_t>(sizeof(txn::layout::RecordHead)) + redo_bytes, 0};
        std::memcpy(record.payload.data(), &group, sizeof group);
        std::memcpy(record.payload.data() + sizeof group, &head, sizeof head);
        std::memcpy(record.payload.data() + sizeof group + sizeof head + offsetof(txn::layout::RecordHead, redo_bytes), &redo_bytes,
                    sizeof redo_bytes);
        record.payload.resize(round_up(record.payload.size(), 8));
    }

    /// Checksums of the pages in the stage, and its digest in the headers.
    void fix_stage() {
        if (!set_.files[ring] || !set_.files[backing] || set_.files[backing]->size() < chunks_offset) return;
        Bytes& file = *set_.files[ring];
        Bytes& heap_file = *set_.files[backing];
        for (const std::uint64_t slot : {0U, 1U}) {
            SaveHead head;
            std::byte* const at = heap_file.data() + slot * header_slot_bytes + offsetof(HeaderBlock, stage);
            std::memcpy(&head, at, sizeof head);
            if (head.page_count > 64 || head.stage_offset > file.size() || file.size() - head.stage_offset < stage_entries_bytes(head.page_count))
                continue;
            std::vector<SavedPage> pages(head.page_count);
            if (pages.empty()) continue;
            std::memcpy(pages.data(), file.data() + head.stage_offset, pages.size() * sizeof(SavedPage));
            std::uint64_t image_at = head.stage_offset + stage_entries_bytes(head.page_count);
            for (SavedPage& page : pages) {
                if (page.checksum == 0) continue;
                if (image_at + page_bytes > file.size()) break;
                page.checksum = page_checksum({file.data() + image_at, page_bytes}, {page.page}, heap_uuid(heap_file));
                image_at += page_bytes;
            }
            std::memcpy(file.data() + head.stage_offset, pages.data(), pages.size() * sizeof(SavedPage));
            head.stage_digest = stage_digest(pages, heap_uuid(heap_file));
            std::memcpy(at, &head, sizeof head);
        }
    }

    /// Checksums of the pages in a save.
    void fix_save(log::Record& record) {
        SaveHead head;
        if (record.payload.size() < sizeof head) return;
        std::memcpy(&head, record.payload.data(), sizeof head);
        std::byte* const at = record.payload.data() + sizeof head;
        const std::byte* const end = record.payload.data() + record.payload.size();
        std::uint64_t image_at = sizeof head + head.page_count * sizeof(SavedPage);
        const auto room = static_cast<std::uint64_t>(end - at);
        if (head.page_count == 0 || head.page_count > 64 || head.page_count * sizeof(SavedPage) > room) return;
        const std::byte* const begin = record.payload.data();
        std::vector<SavedPage> pages(head.page_count);
        std::memcpy(pages.data(), at, pages.size() * sizeof(SavedPage));
        for (SavedPage& page : pages) {
            if (page.checksum == 0) continue;
            if (image_at + page_bytes > static_cast<std::uint64_t>(end - begin)) break;
            page.checksum = page_checksum({begin + image_at, page_bytes}, {page.page}, set_.ring_identity.heap);
            image_at += page_bytes;
        }
        std::memcpy(at, pages.data(), pages.size() * sizeof(SavedPage));
    }

    /// The journal as if the changed records had been written one after the other.
    void write_ring_anew() {
        if (!set_.files[ring] || set_.ring_identity.capacity_bytes == 0 ||
            set_.files[ring]->size() < log::Ring::header_bytes + set_.ring_identity.capacity_bytes)
            return;
        const auto file = std::make_shared<log::test::MemoryFile>();
        file->bytes = std::move(*set_.files[ring]);
        log::Ring writer(file, set_.ring_identity, set_.ring_start, set_.ring_start.position);
        for (const log::Record& record : set_.records) {
            const std::span<const std::byte> piece(record.payload);
            if (!writer.fits(piece.size())) break;
            writer.append(record.kind, record.number, {&piece, 1});
        }
        set_.files[ring] = std::move(file->bytes);
    }

    void fix_ring_identity() {
        for (unsigned index = 0; set_.files[ring] && index < log::layout::identity_slots; ++index) {
            Bytes& bytes = *set_.files[ring];
            log::layout::IdentitySlot slot;
            if (bytes.size() < log::Ring::header_bytes) return;
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

inline Files bytes_of(const io::SimulatedStorage& disk) {
    Files all;
    for (const auto& [path, node] : disk.files()) all[path].assign(node->data(), node->data() + node->size_bytes());
    return all;
}

/// As a whole: byte by byte, and watched, it would be most of what a fuzzer does.
inline bool same(const Bytes& before, const std::byte* now, std::size_t size) {
    return before.size() == size && (size == 0 || std::memcmp(before.data(), now, size) == 0);
}

/// Whether the disk holds the files that it held, no others, and the same bytes.
inline bool holds(const io::SimulatedStorage& disk, const Files& before) {
    const auto files = disk.files();
    return files.size() == before.size() && std::all_of(files.begin(), files.end(), [&](const auto& file) {
               const auto found = before.find(file.first);
               return found != before.end() && same(found->second, file.second->data(), file.second->size_bytes());
           });
}

inline void put(io::SimulatedStorage& disk, const std::filesystem::path& path, const Bytes& bytes) {
    const auto node = disk.make_node();
    node->write(bytes, 0);
    node->resize(bytes.size());
    disk.put(path, node);
}

}  // namespace taiyen::fuzz
