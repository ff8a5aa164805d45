// Making heap files: creating a heap, and opening one. What lies beside it, and comes and goes: companions.cpp.
//
// Files are built without a name, complete and synced, the backing file last; so a killed creation leaves either nothing that counts or the empty heap.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>

#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/engine_layout.hpp"
#include "store/companion_files.hpp"
#include "store/heap_file.hpp"
#include "store/opening_record.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {
namespace {

constexpr ByteCount capacity_default = 64_GiB;

/// The span of a heap being formatted: anonymous memory inside the range that was reserved for it.
class FormatHost final : public heap::SpanHost {
public:
    explicit FormatHost(std::byte* span) : span_(span) {}
    void extend(ByteCount extent_bytes) override {
        vm::map_anonymous(span_ + extent_, extent_bytes - extent_);
        extent_ = extent_bytes;
    }
    ByteCount extent() const { return extent_; }

private:
    std::byte* span_;
    ByteCount extent_ = 0;
};

/// Address space for a heap with that much in use: at `wanted`, else at a place that its uuid chooses, so that two heaps rarely meet, with room behind it for the whole capacity if there is such a place.
vm::Reservation reserve_somewhere(std::uintptr_t wanted, ByteCount extent, ByteCount capacity, const Uuid& heap,
                                  std::uintptr_t within_slot = heap::base_alignment, Placement placement = Placement::automatic) {
    const ByteCount bytes = heap::CoreRanges::reserved_bytes(extent, capacity);
    if (wanted != 0) return vm::Reservation(wanted, bytes);
    const vm::Zone zone = vm::default_zone();
    const ByteCount total = round_up(within_slot + capacity, heap::slot_bytes);
    if (total > zone.last - zone.first) {
        throw Error(errc::out_of_address_space,
                    "a heap of " + std::to_string(capacity) + " bytes does not fit into the address zone for heaps; ask for less capacity");
    }
    const std::uint64_t places = (zone.last - zone.first - total) / heap::slot_bytes + 1;
    std::uint64_t hash = 0;
    std::memcpy(&hash, heap.bytes.data(), sizeof hash);
    for (int attempt = 0; attempt < 64 && placement == Placement::automatic; ++attempt) {
        hash = mix(hash, static_cast<std::uint64_t>(attempt));
        const std::uintptr_t base = zone.first + hash % places * heap::slot_bytes + within_slot;
        if (!vm::mapping_in(base, capacity) && !heap::is_claimed(base, capacity)) {
            try {
                return vm::Reservation(base, bytes);
            } catch (const Error& error) {
                if (error.code() != errc::address_in_use) throw;
            }
        }
    }
    const vm::Placement end = placement == Placement::high ? vm::Placement::high : vm::Placement::low;
    while (const auto free =
               vm::find_free(placement == Placement::automatic ? within_slot + bytes : total, heap::slot_bytes, end, zone.first, zone.last)) {
        try {
            return vm::Reservation(*free + within_slot, bytes);
        } catch (const Error& error) {
            if (error.code() != errc::address_in_use)  // else another thread was faster
                throw;
        }
    }
    throw Error(errc::out_of_address_space, "no room for " + std::to_string(bytes) + " bytes in the address zone for heaps; close other heaps");
}

/// Where a heap lies that exists.
vm::Reservation reserve_for(const Header& header, const std::filesystem::path& path) {
    const ByteCount bytes = heap::CoreRanges::reserved_bytes(header.extent, header.capacity);
    try {
        if (!heap::has_free_slots(header.base, bytes))
            throw Error(errc::address_in_use, "a heap that is open in this process has a part of these 4 GiB");
        return vm::Reservation(header.base, bytes);
    } catch (const Error& error) {
        if (header.position_independent) return reserve_somewhere(0, header.extent, header.capacity, header.heap);
        throw Error(static_cast<errc>(error.code().value()), path,
                    heap::who_takes_address(header.base, bytes, error) +
                        "; close what is mapped there, open the heap in a process of its own, or move it: taiyen rebase");
    }
}

/// Where it is in nobody's way, nor in that of the heap itself.
vm::Reservation reserve_elsewhere(const Header& header) {
    vm::Reservation own;
    try {
        const std::uintptr_t begin = round_down(header.base, heap::slot_bytes);
        own = vm::Reservation(begin, round_up(header.base + header.capacity, heap::slot_bytes) - begin);
    } catch (const Error&) {
        // Something lies there already, so it is not chosen.
    }
    return reserve_somewhere(0, header.extent, header.capacity, random_uuid());
}

/// Only who knows may write into a file that isn't its heap's owner.
void refuse_role(const Header& header, RoleWanted wanted, const std::filesystem::path& path) {
    if (wanted == RoleWanted::any) return;
    const bool follows = wanted == RoleWanted::follower;
    const ReplicaRole role = header.replica.role;
    if (role == ReplicaRole::deposed) {
        throw Error(errc::fenced, path,
                    "another file has taken this one's place where it was replicated; open that one. What this one holds can be read; "
                    "taiyen copy makes another heap of it, taiyen follow --replace a follower in its place");
    }
    if (role == ReplicaRole::follower && !follows) {
        throw Error(errc::follower, path,
                    "this file follows another one of the same heap, and is only read; promote it to change it (taiyen promote), or copy it "
                    "(taiyen copy)");
    }
    if (role == ReplicaRole::owner && follows)
        throw Error(errc::already_exists, path,
                    "this heap follows nobody: it may be opened and changed, or was promoted; name another file to follow into");
}

/// Removes published files again if creation fails. The heap goes first: without its parts it could not be opened, and they alone are orphans that the next
/// creation removes.
class Undo {
public:
    /// `mark_new` says durably again that the parts are new.
    Undo(io::Storage& storage, std::function<void()> mark_new) : storage_(storage), mark_new_(std::move(mark_new)) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() {
        try {
            if (count_ != 0) mark_new_();
            while (count_ != 0) {
                const std::filesystem::path& path = *published_[--count_];
                storage_.remove(path);
                storage_.sync_directory(io::directory_of(path));
            }
        } catch (const std::exception&) {  // what is left is an empty heap or orphans
        }
    }
    /// `path` must outlive this object: what was published is noted without needing memory.
    void add(const std::filesystem::path& path) noexcept { published_[count_++] = &path; }
    void keep() noexcept { count_ = 0; }

private:
    io::Storage& storage_;
    std::function<void()> mark_new_;
    std::array<const std::filesystem::path*, 3> published_{};
    std::size_t count_ = 0;
};

PersistentOptions with_defaults(const PersistentOptions& given) {
    PersistentOptions options = given;
    if (options.capacity == 0) options.capacity = capacity_default;
    if (options.log_capacity == 0) options.log_capacity = log_capacity_default;
    return options;
}

void check_options(const PersistentOptions& options, const std::filesystem::path& path) {
    if (options.capacity < heap::Engine::capacity_min || options.capacity > heap::layout::capacity_max)
        throw Error(errc::invalid_argument, path, "capacity must be between 256 KiB and 8 TiB, not " + std::to_string(options.capacity) + " bytes");
    if (options.address % heap::base_alignment != 0 || (options.address != 0 && options.address < heap::slot_bytes) ||
        options.address >= address_end - round_up(options.capacity, page_bytes)) {
        throw Error(errc::invalid_argument, path,
                    "the address of a heap must be a multiple of 2 GiB from 4 GiB on, and the heap must end below 128 TiB");
    }
}

}  // namespace

std::uintptr_t HeapFile::find_place(ByteCount extent, ByteCount capacity, std::uintptr_t within_slot) {
    return reserve_somewhere(0, extent, capacity, random_uuid(), within_slot).address();
}

void HeapFile::require_room_at_address() const {
    const auto lock = files_.hold_saves();
    Header header = files_.backing().header;
    header.extent = std::max(header.extent, image_.mapped());
    (void)reserve_for(header, path());
}

std::shared_ptr<HeapFile> HeapFile::create(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& given,
                                           const Tuning& tuning) {
    const PersistentOptions options = with_defaults(given);
    check_options(options, paths.backing);
    const bool with_log = kind == HeapKind::transactional;
    const std::filesystem::path& ring_path = with_log ? paths.log : paths.journal;
    if (with_log) check_log_capacity(options.log_capacity, paths.log);
    // Asked again with each part locked that stands there: without it no other creation can have published its heap later, and with a heap the part is its own.
    const auto refuse_heap = [&] {
        if (const auto there = storage.find(paths.backing)) {
            throw Error(there->kind == io::FileKind::regular ? errc::already_exists : errc::not_a_regular_file, paths.backing,
                        "something of that name exists; open it, or choose another name");
        }
    };
    refuse_heap();
    if (paths.data_is_beside && is_restorable(storage, paths)) {
        throw Error(
            errc::mismatch, paths.data,
            "this data file belongs to a heap whose own file is missing; open it with open_only, which brings that file back, or move the data "
            "file away");
    }
    clear_orphan_data(storage, paths.data, refuse_heap);
    clear_orphan_journal(storage, paths.journal, refuse_heap, {});
    if (with_log) clear_orphan_log(storage, paths.log, refuse_heap, {});

    Header header;
    header.heap = random_uuid();
    header.file = random_uuid();
    header.capacity = round_up(options.capacity, page_bytes);
    vm::Reservation reservation = reserve_somewhere(options.address, 0, header.capacity, header.heap, heap::base_alignment, options.placement);
    header.base = reservation.address();
    header.position_independent = options.position_independent;
    header.ring_kind = with_log ? RingKind::log : RingKind::journal;
    header.ring = random_uuid();
    header.ring_capacity = with_log ? round_up(options.log_capacity, page_bytes) : tuning.journal_bytes;
    header.ring_start = fresh_start();
    if (with_log) {
        header.log = header.ring;
        header.log_capacity = header.ring_capacity;
    }
    const bool with_data = kind == HeapKind::snapshot || (with_log && !options.data_file.empty());
    if (with_data) header.data = random_uuid();

    FormatHost host(reservation.data());
    heap::Engine::format(reservation.data(), header.capacity, host);
    header.extent = host.extent();
    PageTable table(header.heap, [](std::uint64_t, TablePage& page) { page = {}; }, 0);
    for (std::uint64_t page = 0; page < header.extent / page_bytes; ++page)
        table.set({page}, page_checksum({reservation.data() + page * page_bytes, page_bytes}, {page}, header.heap));
    std::vector<TablePage> tables;
    table.write_changed({0}, [&](const TablePage& page) { tables.push_back(page); });
    header.table_root = table.root();
    const auto build = [&](const std::filesystem::path& path, const Header& of) {
        PageFile file(storage.create_unnamed(io::directory_of(path)), of);
        lock_new(file.file());
        file.allocate({0}, header.extent);
        file.write_pages({0}, {reservation.data(), header.extent});
        for (const TablePage& page : tables) file.write_table_page(page);
        write_first_headers(file.file(), file.header);
        file.file().prepare_durable();  // a limit of open files is met before anybody can see the file
        file.sync();
        return file;
    };

    OpenFiles files;
    files.restoration.opened_at = time_now();
    if (with_data) {
        Header of = header;
        of.role = FileRole::data;
        of.file = header.data;
        of.is_new = true;
        files.data.emplace(build(paths.data, of));
    }
    log::RingIdentity identity = header.ring_identity();
    identity.is_new = true;
    files.ring = storage.create_unnamed(io::directory_of(ring_path));
    lock_new(*files.ring);
    log::Ring::format(*files.ring, identity);
    files.backing.emplace(build(paths.backing, header));
    vm::unmap_to_reservation(reservation.data(), header.extent);

    // The heap is open before anybody can see its files: what fails later undoes names only, while the locks are still held.
    const heap::CoreRanges ranges = heap::CoreRanges::at(header.base, header.capacity);
    std::shared_ptr<HeapFile> heap(new HeapFile(storage, paths, kind, options, tuning, std::move(reservation), ranges, std::move(files), false));
    if (tuning.join) tuning.join(*heap);
    const auto set_new = [&](bool is_new) {
        if (with_data) {
            heap->files_.data()->header.is_new = is_new;
            heap->files_.data()->write_header();
        }
        identity.is_new = is_new;
        log::Ring::write_identity(*heap->files_.ring_file(), identity);
    };
    bool new_cleared = false;
    Undo undo(storage, [&] {
        // Nobody asks it any more, and where the limit of open files is reached, its descriptor is the one that the directories need.
        { const vm::PageTracker last = std::move(heap->image_.tracker()); }
        if (new_cleared) set_new(true);
    });
    heap->condition_.durable_step("creating the heap", [&] {
        const auto publish = [&](io::File& file, const std::filesystem::path& path) {
            storage.publish(file, path);
            undo.add(path);
        };
        if (planted(Bug::publish_backing_first)) publish(heap->files_.backing().file(), paths.backing);
        if (with_data) publish(heap->files_.data()->file(), paths.data);
        publish(*heap->files_.ring_file(), ring_path);
        if (!planted(Bug::skip_directory_sync)) {
            if (with_data) sync_directory_of(storage, paths.data, paths.backing);
            sync_directory_of(storage, ring_path, paths.backing);
        }
        if (!planted(Bug::publish_backing_first)) publish(heap->files_.backing().file(), paths.backing);
        if (!planted(Bug::skip_directory_sync)) storage.sync_directory(io::directory_of(paths.backing));
        // From here on the heap exists; that its files are no longer new is durable before the first save.
        new_cleared = true;
        set_new(false);
    });
    undo.keep();
    heap->tell_opened();
    return heap;
}

std::shared_ptr<HeapFile> HeapFile::open_existing(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options,
                                                  const Tuning& tuning, bool read_only) {
    const auto begun = std::chrono::steady_clock::now();
    vm::Reservation reservation;
    std::uintptr_t home = 0;
    heap::CoreRanges ranges;
    // The address is taken before recovery writes anything: a heap that can't be mapped here is left as it is.
    OpenFiles files = open_files(
        storage, paths, read_only, options.detach_data_file, tuning.log_replay,
        [&](const Header& header) {
            if (!read_only) refuse_role(header, tuning.role, paths.backing);
            home = header.base;
            reservation = tuning.elsewhere ? reserve_elsewhere(header) : reserve_for(header, paths.backing);
        },
        tuning.ring_use);
    ranges = heap::CoreRanges::at(reservation.address(), files.backing->header.capacity);
    if (tuning.elsewhere && planted(Bug::elsewhere_kept)) files.backing->header.base = reservation.address();
    const std::optional<LogTail> tail = files.tail;
    std::shared_ptr<HeapFile> heap;
    try {
        heap.reset(new HeapFile(storage, paths, kind, options, tuning, std::move(reservation), ranges, std::move(files), read_only));
        if (tuning.elsewhere) heap->home_ = home;
        if (tail) heap->replay_log(*tail);
    } catch (const HeapFull& full) {
        if (full.cause() != HeapFull::Cause::neighbor) throw full.about(paths.backing.native());
        throw Error(errc::address_in_use, paths.backing,
                    "the heap has grown, and what lies behind its address now has no room for it; close what is mapped there, open the heap in a "
                    "process of its own, or move it: taiyen rebase");
    }
    heap->proofs_.verify_at_opening(options.verify);
    heap->files_.found().took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
    if (!read_only) heap->writing_->companions.begin_writing();
    if (tuning.join) tuning.join(*heap);
    if (!read_only) heap->tell_ignored(options);
    heap->tell_opened();
    return heap;
}

std::shared_ptr<HeapFile> HeapFile::open(io::Storage& storage, const std::filesystem::path& path, OpenMode mode, HeapKind kind,
                                         const PersistentOptions& options, const Tuning& tuning) {
    const HeapPaths paths = heap_paths(path, options);
    check_paths(paths);
    switch (mode) {
        case OpenMode::create_only: return create(storage, paths, kind, options, tuning);
        case OpenMode::open_only: return open_existing(storage, paths, kind, options, tuning, false);
        case OpenMode::read_only: return open_existing(storage, paths, kind, options, tuning, true);
        case OpenMode::open_or_create: break;
    }
    // Others may create it, or give up creating it, at the same time: who finds it otherwise than it was a moment ago looks again.
    constexpr int looks_max = 100;
    for (int looks = 1;; ++looks) {
        const bool there = storage.find(path).has_value() || (paths.data_is_beside && is_restorable(storage, paths));
        try {
            return there ? open_existing(storage, paths, kind, options, tuning, false) : create(storage, paths, kind, options, tuning);
        } catch (const Error& error) {
            if (error.code() != (there ? errc::not_found : errc::already_exists)) throw;
            if (looks == looks_max)
                throw Error(errc::busy, path, "the heap comes and goes while it is being opened; try again when others don't create it");
        }
    }
}

void HeapFile::tell_ignored(const PersistentOptions& given) const {
    const auto tell = [&](const std::string& what) { report({errc::invalid_argument, nullptr, path().string() + ": " + what}); };
    const auto bytes = [](ByteCount count) { return std::to_string(count) + " bytes"; };
    const auto place = [](std::uintptr_t address) {
        std::array<char, 24> text;
        std::snprintf(text.data(), text.size(), "%#llx", static_cast<unsigned long long>(address));
        return std::string(text.data());
    };
    const Header& header = files_.backing().header;
    if (given.capacity != 0 && round_up(given.capacity, page_bytes) != header.capacity) {
        tell("its capacity is " + bytes(header.capacity) + ", not the " + bytes(given.capacity) +
             " that were asked for; taiyen resize gives it another one");
    }
    if (given.address != 0 && given.address != header.base)
        tell("it lies at " + place(header.base) + ", not at " + place(given.address) + " as was asked for; taiyen rebase moves it");
    if (uses_log() && given.log_capacity != 0 && round_up(given.log_capacity, page_bytes) != files_.ring_identity().capacity_bytes) {
        tell("its log has " + bytes(files_.ring_identity().capacity_bytes) + ", not the " + bytes(given.log_capacity) +
             " that were asked for; replace_log() makes one of another size");
    }
}

}  // namespace taiyen::store
