#include <taiyen/inspect/repair.hpp>

#include <algorithm>
#include <array>

#include <taiyen/store/archive_heap.hpp>

#include "store/heap_access.hpp"

namespace taiyen {
namespace {

Report look_at(const std::filesystem::path& path, const PersistentOptions& options, const Progress& progress) {
    VerifyOptions how;
    how.progress = progress;
    try {
        const ArchiveHeap heap(open_read_only, path, options);
        return verify(heap, how);
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        Report report;
        report.findings.push_back({Severity::damage, error.path(), error.offset() == Error::no_offset ? 0 : error.offset(), error.what()});
        return report;
    }
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
        std::string what = error.what();
        const std::uint64_t offset = error.offset() == Error::no_offset ? 0 : error.offset();
        for (const std::string& prefix : {error.path().string() + ": ", "at byte " + std::to_string(offset) + ": "}) {
            if (what.starts_with(prefix)) what.erase(0, prefix.size());
        }
        report.lost.push_back({Severity::damage, error.path(), offset, std::move(what)});
    };
    report.pages_healed = HeapAccess::file(heap).heal(lose, progress);
    return report;
}

RepairReport repair(const std::filesystem::path& path, const PersistentOptions& options, const Progress& progress) {
    RepairReport report;
    report.before = look_at(path, options, progress);
    if (report.before.findings.empty()) {
        report.after = report.before;
        return report;
    }
    try {
        ArchiveHeap heap(open_only, path, options);
        report.opened = true;
        report.restoration = heap.restoration();
        try {
            const ScrubReport scrubbed = scrub(heap, progress);
            report.pages_healed = scrubbed.pages_healed;
            if (!scrubbed.lost.empty()) {
                const Finding& first = scrubbed.lost.front();
                report.stopped = first.path.string() + ": at byte " + std::to_string(first.offset) + ": " + first.what;
            }
        } catch (const Error& error) {
            report.stopped = error.what();
        }
        heap.close();
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        if (report.stopped.empty()) report.stopped = error.what();
    }
    report.after = report.opened ? look_at(path, options, progress) : report.before;
    return report;
}

}  // namespace taiyen
