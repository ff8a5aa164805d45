// What a transaction or a step changed: the heap before it and the heap behind it, each opened for reading and brought to its place in memory.

#include "base/text.hpp"
#include "inspect/view_diff.hpp"
#include "undo/view_at_step.hpp"

namespace taiyen {
namespace {

/// As it was behind that transaction.
ArchiveHeap open_behind(const std::filesystem::path& path, const PersistentOptions& options, Serial serial) {
    store::Tuning tuning = inspect::elsewhere();
    tuning.log_replay = store::replay_up_to(tuning.log_replay, serial);
    ArchiveHeap heap = inspect::open_elsewhere(path, options, tuning);
    const store::HeapFile& file = HeapAccess::file(heap);
    if (file.files().point().serial != serial)
        throw Error(errc::not_found, file.files().paths().log,
                    joined({"the log doesn't tell how the heap was behind transaction ", std::to_string(serial.value),
                            ": 'taiyen log' lists the transactions that it holds"}));
    return heap;
}

ArchiveHeap open_at_step(const std::filesystem::path& path, const PersistentOptions& options, std::uint64_t step, undo::StepSide side) {
    PersistentOptions shown = options;
    if (shown.verify == Verify::at_first_touch) shown.verify = Verify::changes;  // what is changed to go there is proven before
    ArchiveHeap heap = inspect::open_elsewhere(path, shown);
    undo::view_at_step(HeapAccess::file(heap), step, side);
    return heap;
}

}  // namespace

std::vector<std::string> for_each_difference_of_transaction(const std::filesystem::path& path, std::uint64_t serial,
                                                            const std::function<bool(const ViewDifference&)>& take,
                                                            const PersistentOptions& options) {
    if (serial == 0) throw Error(errc::invalid_argument, path, "transactions are numbered from 1");
    return inspect::for_each_difference(open_behind(path, options, {serial - 1}), open_behind(path, options, {serial}), take);
}

std::vector<std::string> for_each_difference_of_step(const std::filesystem::path& path, std::uint64_t step,
                                                     const std::function<bool(const ViewDifference&)>& take, const PersistentOptions& options) {
    return inspect::for_each_difference(open_at_step(path, options, step, undo::StepSide::before),
                                        open_at_step(path, options, step, undo::StepSide::behind), take);
}

}  // namespace taiyen
