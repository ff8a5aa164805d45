#include "store/give_back.hpp"

#include <algorithm>
#include <utility>

#include "base/planted.hpp"
#include "heap/geometry.hpp"
#include "heap/survey.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {

void GiveBack::take_all(TellBytes tell) {
    takes_all_ = true;
    tell_ = std::move(tell);
}

bool GiveBack::metadata_is_sound() const {
    const heap::Geometry geometry(heap_.backing_->header.capacity);
    heap_.will_read_metadata();
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        const std::uint64_t end = std::min<std::uint64_t>((region.lines + page_bytes - 1) / page_bytes, heap_.saved_extent_ / page_bytes);
        for (std::uint64_t page = region.first; page < end; ++page) {
            if (heap_.is_lost({page})) {
                return false;
            }
            if (page_checksum(heap_.live_page({page}), {page}, heap_.table_.heap()) != heap_.table_.entry({page})) {
                return false;
            }
        }
    }
    return true;
}

GiveBack::Runs GiveBack::release() {
    heap_.engine_->forget({0}, heap_.backing_->header.capacity);
    constexpr ByteCount shortest = 16 * page_bytes;
    return heap_.engine_->release_free_pages(takes_all_ ? page_bytes : shortest);
}

GiveBack::Runs GiveBack::released() const {
    Runs runs;
    const heap::Survey survey(reinterpret_cast<const std::byte*>(heap_.ranges().durable), heap_.ranges().durable_bytes);
    survey.visit([&](const heap::PagesInUse& pages) {
        if (pages.use == heap::PageUse::released || pages.use == heap::PageUse::zone)
            runs.push_back({offset_of(PageNumber{pages.first}), pages.count * page_bytes});
        return true;
    });
    return runs;
}

void GiveBack::punch(const Runs& runs) {
    ByteCount total = 0;
    for (const heap::FreeRun& run : runs) {
        total += run.length;
    }
    ByteCount done = 0;
    for (const heap::FreeRun& run : runs) {
        heap_.backing_->punch_pages(page_of(run.offset), run.length / page_bytes);
        if (heap_.data_) {
            heap_.data_->punch_pages(page_of(run.offset), run.length / page_bytes);
        }
        done += run.length;
        if (tell_) {
            tell_(done, total);
        }
    }
}

void GiveBack::run() {
    // What was saved is all that counts from here on: unsaved changes are dropped, then free pages lose their disk blocks.
    heap_.checkpoint();
    heap_.drop_unsaved();
    if (heap_.annex_.is_saved()) {
        return;  // a history lives there, and its steps remember what free pages hold
    }
    Runs runs;
    std::vector<HeapFile::ChangedPage> changed;
    if (metadata_is_sound()) {  // else damaged page states may call live pages free; verify() and heal() tell and repair
        runs = release();
        changed = heap_.changed_pages(heap_.written_runs(), nullptr);
        if (takes_all_) {
            runs = released();
        }
    }
    const ByteCount ended_annex = heap_.annex_.end();
    if (ended_annex != 0) {
        runs.push_back({annex_start, ended_annex});
    }
    if (runs.empty()) {
        return;
    }
    for (const heap::FreeRun& run : runs) {
        for (std::uint64_t page = run.offset.value / page_bytes; page < (run.offset.value + run.length) / page_bytes; ++page) {
            if (heap_.table_.entry({page}) != 0) {
                changed.push_back({{page}, 0});
            }
        }
    }
    std::sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) { return a.page < b.page; });
    if (planted(Bug::punch_before_checkpoint)) {
        punch(runs);
    }
    if (!changed.empty() || ended_annex != 0) {  // else they are said to be holes already
        try {
            heap_.save_changed(changed, true);
        } catch (const Error& error) {
            if (error.code() != errc::no_space || heap_.is_poisoned() || takes_all_) {
                throw;
            }
            heap_.annex_.reset(heap_.saved_annex_);
            return;  // no disk blocks for the stage of such a save: a later close gives them back, and this one still is clean
        }
        heap_.checkpoint();
    }
    heap_.durable_step("giving free pages back", [&] { punch(runs); });
}

}  // namespace taiyen::store
