#include <taiyen/inspect/repair.hpp>

#include <algorithm>
#include <array>

#include <taiyen/store/archive_heap.hpp>

#include "base/sentence.hpp"
#include "store/heap_access.hpp"

namespace taiyen {
namespace {

std::uint64_t offset_of(const Error& error) { return error.offset() == Error::no_offset ? 0 : error.offset(); }

/// What verify() finds in the heap; damage that keeps it from looking is a finding, too.
template <class Open>
Report look_at(const Open& open, const Progress& progress) {
    VerifyOptions how;
    how.progress = progress;
    try {
        return verify(open(), how);
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        Report report;
        report.findings.push_back({Severity::damage, error.path(), offset_of(error), sentence_of(error)});
        return report;
    }
}

Report look_into_files(const std::filesystem::path& path, const PersistentOptions& options, const Progress& progress) {
    return look_at([&] { return ArchiveHeap(open_read_only, path, options); }, progress);
}

}  // namespace

bool is_damage(const Error& error) noexcept {
    constexpr std::array codes{errc::not_a_heap, errc::truncated, errc::corrupt, errc::mismatch, errc::log_missing, errc::io_error};
    return std::any_of(codes.begin(), codes.end(), [&](errc code) { return error.code() == code; });
}

ScrubReport scrub(ArchiveHeap& heap, const Progress& progress) {
    ScrubReport report;
    const auto lose = [&](const Error& error) {
        if (++report.pages_lost > ScrubReport::listed_max) return;
        report.lost.push_back({Severity::damage, error.path(), offset_of(error), sentence_of(error)});
    };
    report.pages_healed = HeapAccess::file(heap).healing().heal(lose, progress);
    return report;
}

RepairReport repair(const std::filesystem::path& path, const PersistentOptions& given, const Progress& progress) {
    RepairReport report;
    PersistentOptions options = given;
    options.verify = Verify::changes;  // all that is healed is healed here, and told
    report.before = look_into_files(path, options, progress);
    report.after = report.before;
    if (report.before.findings.empty()) return report;
    try {
        ArchiveHeap heap(open_only, path, options);
        report.opened = true;
        report.restoration = heap.restoration();
        bool is_usable = true;
        try {
            const ScrubReport scrubbed = scrub(heap, progress);
            report.pages_healed = scrubbed.pages_healed;
            if (!scrubbed.lost.empty()) {
                const Finding& first = scrubbed.lost.front();
                report.stopped = first.path.string() + ": at byte " + std::to_string(first.offset) + ": " + first.what;
            }
        } catch (const Error& error) {
            report.stopped = error.what();
            is_usable = !HeapAccess::file(heap).condition().is_poisoned();
        }
        // While it is ours: once it is closed, whoever waited for it may have it.
        if (is_usable) report.after = look_at([&]() -> const ArchiveHeap& { return heap; }, progress);
        heap.close();
        if (!is_usable) report.after = look_into_files(path, options, progress);
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        if (report.stopped.empty()) report.stopped = error.what();
    }
    return report;
}

}  // namespace taiyen
