#include <taiyen/inspect/log_report.hpp>

#include <deque>
#include <iterator>

#include <taiyen/base/error.hpp>

#include "store/opening_record.hpp"
#include "store/recovery.hpp"
#include "store/save_record.hpp"
#include "txn/record.hpp"
#include "txn/record_layout.hpp"

namespace taiyen {
namespace {

using store::FileRole;
using store::FileState;
using store::Header;
using store::HeapPaths;
using store::RingKind;

constexpr ByteCount told_bytes_step = 1_MiB;

class LogLook {
public:
    LogLook(const HeapPaths& paths, const LogOptions& options) : paths_(paths), options_(options) {}

    LogReport run() {
        const Header header = newest_header();
        report_.last_restoration = store::restoration_of(header.opening);
        report_.files_contain = header.ring_kind == RingKind::journal ? header.generation.value : header.serial.value;
        report_.durable_up_to = report_.files_contain;
        if (header.ring_kind == RingKind::none) {
            look_at_unused(header);
            return std::move(report_);
        }
        report_.kind = header.ring_kind == RingKind::log ? LogKind::log : LogKind::journal;
        report_.path = header.ring_kind == RingKind::log ? paths_.log : paths_.journal;
        report_.capacity_bytes = header.ring_capacity;
        const std::shared_ptr<io::File> file = open_ring(header);
        read(*file, header);
        if (report_.ending == LogEnding::whole || report_.ending == LogEnding::torn)
            report_.durable_up_to = std::max(report_.durable_up_to, report_.kind == LogKind::log ? last_ : generation_);
        report_.listed.assign(std::make_move_iterator(listed_.begin()), std::make_move_iterator(listed_.end()));
        report_.saves.assign(saves_.begin(), saves_.end());
        return std::move(report_);
    }

private:
    /// The header that recovery would go by: the data file's if its save is the newer one, or if the heap's own are damaged.
    Header newest_header() {
        backing_ = store::open_locked(io::posix_storage(), paths_.backing, true);
        const store::Slots slots = store::read_slots(*backing_);
        const Header* const own = slots.newest();
        if (own == nullptr && slots.verdict().code != errc::corrupt) throw_problem(slots);
        if (own != nullptr && own->role != FileRole::backing)
            throw Error(errc::mismatch, paths_.backing, "this is the data file of a heap; name the heap's own file instead");
        Header newest = own != nullptr ? *own : Header{};
        if ((own == nullptr || !own->data.is_nil()) && io::posix_storage().find(paths_.data)) {
            data_ = store::open_locked(io::posix_storage(), paths_.data, true);
            const store::Slots data_slots = store::read_slots(*data_);
            const Header* const other = data_slots.newest();
            const bool belongs = other != nullptr && other->role == FileRole::data && other->state == FileState::whole &&
                                 (own == nullptr || (other->heap == own->heap && other->file == own->data));
            if (belongs && (own == nullptr || other->generation > own->generation)) return *other;
        }
        if (own == nullptr) throw_problem(slots);
        if (newest.state == FileState::staged) {
            report_.staged = newest.staged.head.generation;
            return newest.after_stage();
        }
        return newest;
    }
    [[noreturn]] void throw_problem(const store::Slots& slots) const {
        const store::SlotProblem problem = slots.verdict();
        throw Error(problem.code, paths_.backing, 0,
                    problem.what + (problem.code == errc::corrupt ? "; where its log begins is not known: restore the file from a copy" : ""));
    }

    /// A heap that was closed may keep its log for the next time.
    void look_at_unused(const Header& header) {
        if (header.log.is_nil()) return;
        report_.kind = LogKind::log;
        report_.path = paths_.log;
        report_.capacity_bytes = header.log_capacity;
        report_.missing = !io::posix_storage().find(paths_.log).has_value();
    }

    std::shared_ptr<io::File> open_ring(const Header& header) const {
        const std::string name = report_.kind == LogKind::log ? "transaction log" : "journal";
        if (!io::posix_storage().find(report_.path)) {
            throw Error(errc::log_missing, report_.path,
                        "the heap was not closed and its " + name +
                            " is missing: put it beside the heap, or name it in the options; it may hold the newest changes");
        }
        std::shared_ptr<io::File> file = store::open_locked(io::posix_storage(), report_.path, true);
        const log::RingIdentity found = log::Ring::read_identity(*file);
        if (found.ring != header.ring || found.heap != header.heap || found.capacity_bytes != header.ring_capacity) {
            throw Error(errc::mismatch, report_.path,
                        "this " + name + " belongs to another heap or to an earlier opening; put the right one beside " + paths_.backing.string());
        }
        return file;
    }

    void read(const io::File& file, const Header& header) {
        const log::RingIdentity identity = header.ring_identity();
        const log::RingStart& start = header.ring_start;
        report_.epoch = start.epoch.value;
        report_.position = report_.end_position = start.position;
        last_ = header.serial.value;
        generation_ = header.generation.value;
        txn::LogWalk walk(report_.path, header.capacity, header.serial);
        std::uint64_t at = log::Ring::file_offset(identity, start.position);
        std::uint64_t told = start.position;
        try {
            const log::ScanResult found = log::Ring::scan(file, identity, start, [&](const log::Record& record) {
                at = record.file_offset;
                const ByteCount bytes = log::Ring::record_bytes(record.payload.size());
                report_.kind == LogKind::log ? look_at(record, walk) : look_at_save(record, bytes, header);
                ++report_.records;
                report_.end_position = record.position + bytes;
                if (options_.progress && report_.end_position - told >= told_bytes_step) {
                    told = report_.end_position;
                    options_.progress(told - start.position, identity.capacity_bytes);
                }
                return true;
            });
            report_.end_position = found.next.position;
            judge(found, identity);
        } catch (const Error& error) {
            // The records before it are right all the same, and worth a look.
            if (error.code() != errc::corrupt && error.code() != errc::mismatch) throw;
            report_.ending = LogEnding::damaged;
            report_.damaged_at = at;
            report_.what = "its checksums are right, but what it holds can't follow what stands before it; restore the files from a copy";
        }
        report_.used_bytes = report_.end_position - report_.position;
        report_.laps = report_.end_position / identity.capacity_bytes;
    }

    void judge(const log::ScanResult& found, const log::RingIdentity& identity) {
        const std::uint64_t offset = log::Ring::file_offset(identity, found.next.position);
        switch (found.how) {
            case log::ScanEnd::end: report_.ending = LogEnding::whole; return;
            case log::ScanEnd::torn:
                report_.ending = LogEnding::torn;
                report_.damaged_at = offset;
                report_.what = "a write was interrupted here; nobody was told that it is durable, and the next opening cuts it off";
                return;
            case log::ScanEnd::corrupt:
                report_.ending = LogEnding::damaged;
                report_.damaged_at = offset;
                report_.what = "a record that may have been acknowledged is damaged; restore the files from a copy";
        }
    }

    void look_at(const log::Record& group, txn::LogWalk& walk) {
        // The walk calls with pieces of a group that may turn out wrong further on: then the whole group is forgotten.
        std::vector<LoggedWork> works;
        walk.walk(
            group,
            [&](const txn::LoggedTransaction& transaction) {
                LoggedWork& work = works.emplace_back();
                work.serial = transaction.serial.value;
                work.position = group.position;
                work.bytes = sizeof(txn::layout::RecordHead) + transaction.redo.size() +
                             (transaction.annex ? sizeof(txn::layout::AnnexPart) + transaction.annex_redo.size() : 0);
                work.extent_bytes = transaction.extent;
            },
            [&](const change::Entry& entry) { add(works.back(), entry); });
        for (LoggedWork& work : works) {
            ++report_.transactions;
            report_.changed_bytes += work.changed_bytes;
            last_ = work.serial;
            if (is_listed(work.serial)) keep(listed_, std::move(work));
        }
    }

    bool is_listed(std::uint64_t serial) const { return serial >= options_.first && serial <= options_.last; }

    template <class T>
    void keep(std::deque<T>& list, T&& item) const {
        if (options_.listed_max == 0) return;
        if (list.size() == options_.listed_max) list.pop_front();
        list.push_back(std::move(item));
    }

    void add(LoggedWork& work, const change::Entry& entry) const {
        const bool of_history = entry.kind != change::EntryKind::procedure && entry.where >= store::annex_start;
        if (entry.kind == change::EntryKind::procedure) {
            ++work.calls;
        } else if (of_history) {
            ++work.history_ranges;
        } else {
            ++work.ranges;
            work.changed_bytes += entry.length;
        }
        if (!options_.ranges || !is_listed(work.serial)) return;
        LoggedRange& range = work.changes.emplace_back();
        range.of_history = of_history;
        range.offset = entry.where.value - (of_history ? store::annex_start.value : 0);
        range.bytes = entry.length;
        switch (entry.kind) {
            case change::EntryKind::bytes: break;
            case change::EntryKind::zeroed_run: range.kind = LoggedRange::Kind::zeros; break;
            case change::EntryKind::pages_moved:
                range.kind = LoggedRange::Kind::moved;
                range.source = entry.source.value;
                break;
            case change::EntryKind::procedure:
                range.kind = LoggedRange::Kind::procedure;
                range.offset = range.bytes = 0;
                range.name = entry.name;
        }
    }

    void look_at_save(const log::Record& record, ByteCount bytes, const Header& header) {
        const auto save = store::decode_save(record, header.capacity);
        if (!save || record.number != generation_ + 1)
            throw Error(errc::corrupt, report_.path, record.file_offset, "this is no save that can follow");
        generation_ = record.number;
        keep(saves_, LoggedSave{record.number, record.position, bytes, save->head.page_count, save->head.page_count - save->head.image_count});
    }

    const HeapPaths& paths_;
    const LogOptions& options_;
    LogReport report_;
    std::shared_ptr<io::File> backing_;  ///< both hold their locks: nobody writes meanwhile
    std::shared_ptr<io::File> data_;
    std::uint64_t last_ = 0;
    std::uint64_t generation_ = 0;
    std::deque<LoggedWork> listed_;
    std::deque<LoggedSave> saves_;
};

}  // namespace

LogReport look_at_log(const std::filesystem::path& path, const PersistentOptions& options, const LogOptions& how) {
    const HeapPaths paths = store::heap_paths(path, options);
    return LogLook(paths, how).run();
}

}  // namespace taiyen
