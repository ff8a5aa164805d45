#include <taiyen/inspect/repair.hpp>

#include <algorithm>
#include <array>

#include <taiyen/store/archive_heap.hpp>

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
            report.pages_healed = heap.heal();
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
