// verify() of a volatile heap: there is no file, so its metadata are all that can be proven.

#include <taiyen/inspect/report.hpp>

#include <chrono>
#include <string>

#include "inspect/volatile_access.hpp"

namespace taiyen {

Report verify(const VolatileHeap& heap) {
    const heap::VolatileCore& core = inspect::volatile_core(heap);
    const heap::HeapCore& as_any = core;
    const auto begun = std::chrono::steady_clock::now();
    Report report;
    for (const heap::Damage& damage : core.check()) report.findings.push_back({Severity::damage, core.path(), damage.where.value, damage.what});
    if (report.ok())
        for (const heap::Damage& bad : as_any.engine().bad_shapes())
            report.findings.push_back({Severity::note, core.path(), bad.where.value, bad.what});
    if (const std::size_t blocks = core.check_guards(); blocks != 0) {
        report.findings.push_back(
            {Severity::damage, core.path(), 0, "guards are damaged, of " + std::to_string(blocks) + " blocks; the report handler was told which"});
    }
    if (report.ok()) report.blocks_checked = core.blocks().size();  // else nobody knows what they are
    report.pages_checked = core.durable_extent() / page_bytes;
    report.took = std::chrono::steady_clock::now() - begun;
    return report;
}

}  // namespace taiyen
