// Files of transactional heaps as nobody writes them: header with an attached log, groups and redos in it, a save staged behind it. Opened as every kind, for reading and
// writing, replayed, worked with, saved, crashed and closed: each call must end with a result, HeapFull or a typed error; a reader and a refused opening change no byte; and what was
// committed in a heap that opened is there when it is opened again.
//
// An input is a recipe: one of a few sets {backing, data, log} (closed, with groups to replay, or in the middle of a save), edits, which checksums are made right again
// afterwards, and what is done with the result.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/change/procedure.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/txn/read_lock.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "change/recorder.hpp"
#include "fuzz/forged_files.hpp"
#include "io/disks/faulty_storage.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::fuzz;

const std::filesystem::path heap_path = "/disk/t.tyn";
const Paths paths{heap_path, "/disk/t.tyn.data", "/disk/t.tyn.log"};
constexpr const char* procedure_name = "fuzz: add to each byte";

const Tuning tuning = [] {
    Tuning small;
    small.journal_bytes = 64_KiB;
    small.batch_bytes = 32_KiB;
    return small;
}();

PersistentOptions options(bool with_data) {
    PersistentOptions small;
    small.capacity = 512_KiB;
    small.address = 0x2a00'0000'0000;
    small.log_capacity = 64_KiB;
    small.capture = Capture::declared;
    small.loss_window = std::chrono::hours(1);
    small.snapshot_log_fill = 1e9;  // saved when the input says so, or the log is full
    small.dirty_limit = 64_MiB;
    if (with_data) small.data_file = paths[data];
    return small;
}

void add(ProcedureHeap& heap, std::byte* bytes, std::uint64_t count, std::uint64_t what) {
    const auto ranges = heap.core()->ranges();
    const auto at = reinterpret_cast<std::uintptr_t>(bytes);
    if (at < ranges.durable || at - ranges.durable >= ranges.durable_bytes || count > heap.core()->engine().usable_size(bytes))
        throw Error(errc::invalid_argument, "no such bytes");
    if (change::Recorder* const recorder = change::Recorder::of(*heap.core())) recorder->touch({at - ranges.durable}, count);
    for (std::uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(bytes[i]) + what + i);
}

std::shared_ptr<HeapFile> open_file(io::Storage& disk, OpenMode mode, HeapKind kind, bool with_data = false) {
    auto file = HeapFile::open(disk, heap_path, mode, kind, options(with_data), tuning);
    if (kind == HeapKind::transactional) txn::TransactionService::join(*file, options(with_data));
    return file;
}

/// The bytes of an object, made in the open transaction.
std::byte* put_object(Transaction& transaction, HeapFile& heap, const std::string& name, ByteCount bytes, int value) {
    void* const block = heap.engine().allocate(bytes);
    transaction.touch(block, bytes);
    std::memset(block, value, bytes);
    heap.engine().add_root({name, "bytes", {reinterpret_cast<std::uintptr_t>(block) - heap.ranges().durable}, bytes, 1});
    return static_cast<std::byte*>(block);
}

enum class Left { closed, with_groups, save_half, save_synced };

FileSet make_set(bool with_data, Left left, bool calls = false) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    io::FaultyStorage faulty(disk);
    auto file = open_file(faulty, OpenMode::create_only, HeapKind::transactional, with_data);
    auto heap = HeapAccess::make<TransactionalHeap>(file);
    const auto commit = [&](const std::string& name, ByteCount bytes, int value) {
        Transaction transaction(heap);
        put_object(transaction, *file, name, bytes, value);
        transaction.commit();
    };
    commit("first", 30, 'a');
    commit("second", 3000, 'b');
    heap.snapshot();
    commit("third", 5000, 'c');
    if (calls) {
        std::byte* called = nullptr;
        {
            Transaction transaction(heap);
            called = put_object(transaction, *file, "called", 3000, 'd');
            transaction.commit();
        }
        faulty.arm({.sticky = true, .calls = io::Call::write | io::Call::sync});  // the save behind the call gets nowhere
        try {
            Transaction transaction(heap);
            transaction.call(procedure_name, called, std::uint64_t{3000}, std::uint64_t{5});
            transaction.commit();
        } catch (const Error&) {}
    } else if (left == Left::closed) {
        heap.close();
    } else {
        Transaction transaction(heap);
        void* const gone = file->engine().allocate(9000);
        put_object(transaction, *file, "fourth", 700, 'e');
        file->engine().deallocate(gone);
        transaction.commit();
    }
    if (left == Left::save_half || left == Left::save_synced) {
        // Of the syncs of a save the second one comes after its commit point, the first one before it.
        faulty.arm({.at = left == Left::save_synced ? 2U : 1U, .sticky = true, .calls = io::Call::sync});
        try {
            heap.snapshot();
            TAIYEN_CHECK(false);
        } catch (const Error&) {}
    }
    FileSet set = taken_from(disk, paths);
    TAIYEN_CHECK(left == Left::closed || !set.records.empty() || left == Left::save_synced);
    return set;
}

const std::vector<FileSet>& sets() {
    static const std::vector<FileSet> all = [] {
        register_procedure(procedure_name, &add, &add);
        return std::vector<FileSet>{
            make_set(false, Left::closed),      make_set(false, Left::with_groups), make_set(false, Left::save_half),
            make_set(false, Left::save_synced), make_set(true, Left::closed),       make_set(true, Left::with_groups),
            make_set(true, Left::save_half),    make_set(true, Left::save_synced),  make_set(false, Left::with_groups, true),
        };
    }();
    return all;
}

/// A disk with the files, and what is done with them.
class Program {
public:
    Program(const FileSet& set, bool untouched, Input& input) : untouched_(untouched), input_(input) {
        disk_.add_directory("/disk");
        disk_.set_space(256_MiB);
        for (std::size_t i = 0; i < paths.size(); ++i)
            if (set.files[i]) put(disk_, paths[i], *set.files[i]);
    }

    void run() {
        for (int i = 0; i < 3 && (i == 0 || !input_.empty()); ++i) {
            switch (input_.number(1) % 8) {
                case 0:
                case 1: read(); break;
                case 2: lower(HeapKind::archive); break;
                case 3: lower(HeapKind::snapshot); break;
                default: write(); break;
            }
        }
    }

private:
    std::shared_ptr<HeapFile> open(OpenMode mode, HeapKind kind) {
        const Files before = mode == OpenMode::read_only ? bytes_of(disk_) : Files();
        std::string why;
        try {
            return open_file(disk_, mode, kind);
        } catch (const Error& error) {
            why = error.what();
        } catch (const std::bad_alloc& error) {
            why = error.what();
        }
        disk_.disconnect();
        if (untouched_ || (mode == OpenMode::read_only && !holds(disk_, before))) {
            std::fprintf(stderr, "%s: %s\n", untouched_ ? "a whole heap was refused" : "a reader changed the files", why.c_str());
            TAIYEN_CHECK(false);
        }
        return nullptr;
    }

    /// What the program made and committed must be there.
    void expect_marks(const HeapFile& file) const {
        for (const auto& [name, bytes] : marks_) {
            const auto root = file.engine().find_root(name);
            TAIYEN_CHECK(root.has_value() && root->bytes == bytes);
            const std::byte* const at = reinterpret_cast<const std::byte*>(file.ranges().durable) + root->object.value;
            for (ByteCount i = 0; i < bytes; ++i) TAIYEN_CHECK(at[i] == std::byte{0x5A});
        }
    }

    void look(const ArchiveHeap& heap, const HeapFile& file) const {
        const auto* const begin = reinterpret_cast<const std::byte*>(file.ranges().durable);
        std::uint64_t sum = 0;
        file.engine().for_each_block([&](const heap::Block& block) {
            for (ByteCount at = 0; at < block.usable_bytes; at += 64) sum += static_cast<std::uint64_t>(begin[block.offset.value + at]);
            return true;
        });
        try {
            file.engine().roots();
        } catch (const Error&) {
            TAIYEN_CHECK(!untouched_);
        }
        const Report report = heap.verify();
        if (untouched_ && !report.ok() && !file.read_only()) std::fprintf(stderr, "%s\n", report.findings.front().what.c_str());
        TAIYEN_CHECK(!untouched_ || report.ok() || (file.read_only() && !file.files().restoration().clean) || sum == 0);
    }

    void read() {
        const Files before = bytes_of(disk_);
        if (auto file = open(OpenMode::read_only, HeapKind::transactional)) {
            {
                const auto heap = HeapAccess::make<TransactionalHeap>(file);
                const ReadLock lock(heap);
                expect_marks(*file);
                look(heap, *file);
            }
            TAIYEN_CHECK(holds(disk_, before));
        }
    }

    /// A heap of a lower kind: its saves, and the log's content behind them, must go together.
    void lower(HeapKind kind) {
        auto file = open(OpenMode::open_only, kind);
        if (!file) return;
        expect_marks(*file);
        const auto heap = HeapAccess::make<ArchiveHeap>(file);
        try {
            look(heap, *file);
            const std::string name = "mark" + std::to_string(++count_);
            const ByteCount bytes = 1 + input_.number(1) * 20;
            void* const block = file->engine().allocate(bytes);
            std::memset(block, 0x5A, bytes);
            file->engine().add_root({name, "", {reinterpret_cast<std::uintptr_t>(block) - file->ranges().durable}, bytes, 1});
            if (file->engine().check(1).empty()) {
                file->save();
                marks_[name] = bytes;
            }
            if (input_.number(1) % 2 == 0) file->close();
        } catch (const Error&) {
            TAIYEN_CHECK(!untouched_);
        } catch (const std::bad_alloc&) {}
        disk_.disconnect();
    }

    void write() {
        auto file = open(OpenMode::open_only, HeapKind::transactional);
        if (!file) return;
        {
            auto heap = HeapAccess::make<TransactionalHeap>(file);
            expect_marks(*file);
            for (std::uint64_t step = 0, steps = 1 + input_.number(1) % 24; step < steps && !input_.empty(); ++step) {
                try {
                    work(heap, *file);
                } catch (const Error& error) {
                    if (untouched_ && error.code() != errc::invalid_argument) {  // that is the procedure's
                        std::fprintf(stderr, "%s\n", error.what());
                        TAIYEN_CHECK(false);
                    }
                } catch (const std::bad_alloc&) {}
            }
            if (input_.number(1) % 2 == 0) {
                try {
                    heap.close();
                } catch (const Error&) {
                    TAIYEN_CHECK(!untouched_);
                }
            }
            disk_.disconnect();  // else it is a crash
        }
        file.reset();
        if (!marks_.empty()) {
            // Refused: a transaction changed a page that was damaged on the disk, and there is no second copy.
            file = open(OpenMode::open_only, HeapKind::transactional);
            if (!file) return;
            const auto heap = HeapAccess::make<TransactionalHeap>(file);
            expect_marks(*file);
        }
    }

    void work(TransactionalHeap& heap, HeapFile& file) {
        const std::uint64_t code = input_.number(1);
        switch (code % 12) {
            case 0:
            case 1:
            case 2:
            case 3: {
                const std::string name = "mark" + std::to_string(++count_);
                const ByteCount bytes = code < 128 ? 1 + code * 4 : (code - 120) * 500;
                Transaction transaction(heap);
                put_object(transaction, file, name, bytes, 0x5A);
                // A program goes on in a heap that holds itself to be sound.
                if (code % 12 == 3 || !file.engine().check(1).empty()) {
                    transaction.rollback();
                } else {
                    transaction.commit();
                    marks_[name] = bytes;
                }
                break;
            }
            case 4: {
                Transaction transaction(heap);
                const std::vector<heap::Root> roots = file.engine().roots();
                if (!roots.empty() && !marks_.contains(roots.front().name)) {
                    file.engine().remove_root(roots.front().name);
                    file.engine().deallocate(reinterpret_cast<void*>(file.ranges().durable + roots.front().object.value));
                    if (file.engine().check(1).empty()) transaction.commit();
                }
                break;
            }
            case 5: look(heap, file); break;
            case 6: heap.snapshot(); break;
            case 7: heap.heal(); break;
            case 8:
                heap.rebuild();
                expect_marks(file);
                break;
            case 9: {
                Transaction outer(heap);
                const bool was_there = file.engine().find_root("inner").has_value();
                {
                    Transaction inner(heap);
                    put_object(inner, file, "inner", 100, 'i');
                }
                TAIYEN_CHECK(file.engine().find_root("inner").has_value() == was_there || !untouched_);
                if (file.engine().check(1).empty()) outer.commit();
                break;
            }
            case 10: {
                const auto root = file.engine().find_root("called");
                if (!root) break;
                Transaction transaction(heap);
                transaction.call(procedure_name, reinterpret_cast<std::byte*>(file.ranges().durable + root->object.value), input_.number(2),
                                 input_.number(1));
                transaction.commit();
                break;
            }
            default: heap.wait_durable(heap.last_durable()); break;
        }
    }

    io::SimulatedStorage disk_;
    bool untouched_;
    Input& input_;
    unsigned count_ = 0;
    std::map<std::string, ByteCount> marks_;  ///< objects that must be there
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    set_report_handler([](const Incident&) noexcept {});
    Input input(bytes, size);
    FileSet set = sets()[input.number(1) % sets().size()];
    Forger forger(set, input);
    forger.run();
    Program(set, forger.untouched(), input).run();
    return 0;
}
