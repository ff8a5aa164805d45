#include "auditor.hpp"

#include <numeric>

#include "world.hpp"

namespace outside {
namespace {

taiyen::ArchiveHeap opened(const std::filesystem::path& path, Auditor::As who) {
    if (who == Auditor::As::reader) return taiyen::ArchiveHeap(taiyen::open_read_only, path);
    return taiyen::ArchiveHeap(taiyen::open_only, path);
}

/// Headers and the state of a second copy wait for the next writer; a damaged page doesn't.
bool waits_for_a_writer(const taiyen::Finding& finding) {
    constexpr std::uint64_t headers_bytes = 8192;
    return finding.severity == taiyen::Severity::healable && finding.offset < headers_bytes;
}

}  // namespace

std::string Auditor::audit(const std::filesystem::path& heap, const Told& told, As who) {
    found_ = {};
    try {
        return compare(heap, told, who);
    } catch (const taiyen::Error& error) {
        // A creation that did not end may have left nothing; what it left must not be half a heap.
        if (error.code() == taiyen::errc::not_found && !told.opened && told.acknowledgements == 0 && told.order == 0) return {};
        return std::string("the heap does not open: ") + error.what();
    } catch (const std::exception& error) {
        return std::string("untyped: ") + error.what();
    }
}

std::string Auditor::compare(const std::filesystem::path& path, const Told& told, As who) {
    const taiyen::ArchiveHeap heap = opened(path, who);
    found_.exists = true;
    const taiyen::Restoration restored = heap.restoration();
    found_.clean = restored.clean;
    found_.transactions_replayed = restored.transactions_replayed;
    found_.snapshots_replayed = restored.snapshots_replayed;
    found_.records_cut = restored.records_cut;
    for (const taiyen::Finding& finding : heap.verify().findings) {
        if (finding.severity == taiyen::Severity::note || (who == As::reader && waits_for_a_writer(finding))) continue;
        return "verify: " + finding.path.string() + " at offset " + std::to_string(finding.offset) + ": " + finding.what;
    }
    const World* const world = heap.find<World>(world_name);
    if (world == nullptr) return told.order == 0 ? std::string() : "lost: nothing of " + std::to_string(told.order) + " acknowledged steps is there";
    found_.order = world->order;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const Lane& is = world->lane[lane];
        found_.step[lane] = is.step;
        if (is.step < told.step[lane]) {
            return "lost: lane " + std::to_string(lane) + " is at step " + std::to_string(is.step) + ", acknowledged was step " +
                   std::to_string(told.step[lane]);
        }
        LaneModel& model = models_[lane];
        if (is.step > model.step + 50'000'000) return "lane " + std::to_string(lane) + " claims an impossible step " + std::to_string(is.step);
        if (model.step > is.step) model = {};
        while (model.step < is.step) model.advance(shape_, lane);
        if (std::string wrong = difference(is, model, shape_, lane); !wrong.empty()) return wrong;
    }
    if (std::accumulate(found_.step.begin(), found_.step.end(), std::uint64_t{0}) != world->order) return "the lanes do not add up: a hole";
    if (world->order < told.order)
        return "lost: " + std::to_string(world->order) + " steps are there, acknowledged were " + std::to_string(told.order);
    return {};
}

}  // namespace outside
