#include "store/give_back.hpp"

#include <algorithm>
#include <utility>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/geometry.hpp"
#include "heap/survey.hpp"

namespace taiyen::store {

void GiveBack::take_all(TellBytes tell) {
    takes_all_ = true;
    tell_ = std::move(tell);
}

GiveBack::Runs GiveBack::release() {
    core_.engine().forget({0}, files_.backing().header.capacity);
    constexpr ByteCount shortest = 16 * page_bytes;
    return core_.engine().release_free_pages(takes_all_ ? page_bytes : shortest);
}

GiveBack::Runs GiveBack::released() const {
    Runs runs;
    const heap::Survey survey(reinterpret_cast<const std::byte*>(core_.ranges().durable), core_.ranges().durable_bytes);
    survey.visit([&](const heap::PagesInUse& pages) {
        if (pages.use == heap::PageUse::released || pages.use == heap::PageUse::zone)
            runs.push_back({offset_of(PageNumber{pages.first}), pages.count * page_bytes});
        return true;
    });
    return runs;
}

void GiveBack::punch(const Runs& runs) {
    ByteCount total = 0;
    for (const heap::FreeRun& run : runs) total += run.length;
    ByteCount done = 0;
    for (const heap::FreeRun& run : runs) {
        files_.for_each([&](PageFile& file) { file.punch_pages(page_of(run.offset), run.length / page_bytes); });
        done += run.length;
        if (tell_) tell_(done, total);
    }
}

void GiveBack::run() {
    if (image_.annex().is_saved()) return;  // a history lives there, and its steps remember what free pages hold
    Runs runs;
    std::vector<ChangedPage> changed;
    if (proofs_.metadata_is_sound()) {  // else damaged page states may call live pages free; verify() and heal() tell and repair
        runs = release();
        changed = proofs_.changed_pages(image_.written_runs(), nullptr);
        if (takes_all_) runs = released();
    }
    const ByteCount ended_annex = image_.annex().end();
    if (ended_annex != 0) runs.push_back({annex_start, ended_annex});
    if (runs.empty()) return;
    for (const heap::FreeRun& run : runs) {
        for (std::uint64_t page = run.offset.value / page_bytes; page < (run.offset.value + run.length) / page_bytes; ++page)
            if (files_.table().entry({page}) != 0) changed.push_back({{page}, 0});
    }
    std::sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) { return a.page < b.page; });
    if (planted(Bug::punch_before_checkpoint)) punch(runs);
    if (!changed.empty() || ended_annex != 0) {  // else they are said to be holes already
        try {
            saves_.save_changed(changed, true);
        } catch (const Error& error) {
            if (error.code() != errc::no_space || condition_.is_poisoned() || takes_all_) throw;
            image_.annex().reset(files_.point().annex);
            return;  // no disk blocks for the stage of such a save: a later close gives them back, and this one still is clean
        }
        saves_.checkpoint();
    }
    condition_.durable_step("giving free pages back", [&] { punch(runs); });
}

}  // namespace taiyen::store
