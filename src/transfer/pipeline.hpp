#pragma once
/// run_pipeline: read, work, write: reading and writing in order, one at a time; the work between them on several threads. By oneTBB's parallel_pipeline.
///
/// (I1) No more is under way than there are slots, so memory is bounded whatever passes.
/// (I2) What one of the three throws ends the pipeline and is thrown to the caller, once nothing runs any more.
/// (I3) One thread is the caller's: nobody else is asked.

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

namespace taiyen::transfer {

inline unsigned processors() { return std::max(1U, std::thread::hardware_concurrency()); }

/// What a caller's wish for threads comes to.
inline unsigned threads_for(unsigned wanted) { return std::min(wanted != 0 ? wanted : processors(), 8U); }

/// `read(slot)` fills a slot, or returns false: that was all. `work(slot)`, `write(slot)`.
template <class Slot, class Read, class Work, class Write>
void run_pipeline(std::vector<Slot>& slots, unsigned threads, Read&& read, Work&& work, Write&& write) {
    threads = std::min(threads, processors());  // oneTBB has no more, and prints a warning when it is asked for them
    if (threads == 1) {
        for (Slot& slot = slots.front(); read(slot);) {
            work(slot);
            write(slot);
        }
        return;
    }
    std::mutex mutex;
    std::vector<Slot*> free;
    for (Slot& slot : slots) free.push_back(&slot);
    const auto take = [&](tbb::flow_control& control) -> Slot* {
        Slot* slot = nullptr;
        {
            const std::lock_guard lock(mutex);
            slot = free.back();  // there are as many as tokens
            free.pop_back();
        }
        if (!read(*slot)) control.stop();
        return slot;
    };
    const auto give_back = [&](Slot* slot) {
        write(*slot);
        const std::lock_guard lock(mutex);
        free.push_back(slot);
    };
    // An arena of its own: a thread that waits here takes no work of the program's, which might wait for what the caller holds.
    tbb::task_arena arena(static_cast<int>(threads));
    arena.execute([&] {
        tbb::parallel_pipeline(slots.size(), tbb::make_filter<void, Slot*>(tbb::filter_mode::serial_in_order, take) &
                                                 tbb::make_filter<Slot*, Slot*>(tbb::filter_mode::parallel,
                                                                                [&](Slot* slot) {
                                                                                    work(*slot);
                                                                                    return slot;
                                                                                }) &
                                                 tbb::make_filter<Slot*, void>(tbb::filter_mode::serial_in_order, give_back));
    });
}

}  // namespace taiyen::transfer
