// Pages that stay hidden until they are touched: proven then, before anybody sees them (Verify::at_first_touch).

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <taiyen/base/report.hpp>

#include "heap/fault_handler.hpp"
#include "store/proofs.hpp"

namespace taiyen::store {
namespace {

/// Whether the same access has faulted so often, one time after the other, that no other thread can be the reason.
bool comes_back(const void* address) noexcept {
    constexpr unsigned often = 10'000;
    __attribute__((tls_model("initial-exec"))) thread_local constinit const void* last = nullptr;
    __attribute__((tls_model("initial-exec"))) thread_local constinit unsigned times = 0;
    times = address == last ? times + 1 : 1;
    last = address;
    sched_yield();
    return times > often;
}

}  // namespace

void Proofs::hide_until_touched() {
    heap::ensure_fault_handler();
    if (!condition_.is_read_only()) make_joinable();
    image_.hide(std::make_unique<FirstTouch>(
        image_.begin(), image_.mapped(), [this](PageNumber first, std::uint64_t count) { return prove_hidden(first, count); },
        [this] { return opens_writable(); }));
}

/// As PageRecorder does it, which can't touch what is hidden.
void Proofs::make_joinable() {
    const auto first = reinterpret_cast<std::uintptr_t>(image_.begin());
    for (const vm::Mapping& mapping : vm::mappings()) {
        const std::uintptr_t end = std::min(mapping.end, first + image_.mapped());
        for (std::uintptr_t at = std::max(mapping.begin, first); at < end; at += page_bytes) {
            if (is_proven(page_of({at - first}))) {
                volatile std::byte* const place = image_.begin() + (at - first);
                *place = *place;
                break;
            }
        }
    }
}

heap::Touched Proofs::on_touch(void* address, bool writes) noexcept {
    if (!image_.first_touch() || core_.in_forked_child()) return heap::Touched::not_taken;
    try {
        const HeapOffset where{reinterpret_cast<std::uintptr_t>(address) - core_.ranges().durable};
        const auto touch = image_.first_touch()->touch(page_of(where));
        if (touch == FirstTouch::Touch::opened) return heap::Touched::opened;
        // Visible meanwhile, by another thread: then only a store that isn't allowed may still be in question, or a page that the program itself has protected.
        const bool is_allowed = touch == FirstTouch::Touch::was_open && (!writes || opens_writable());
        return is_allowed && !comes_back(address) ? heap::Touched::opened : heap::Touched::not_taken;
    } catch (const HeapFull&) {
        report({errc::out_of_address_space, address,
                "an access to the heap can't go on: the system refuses to make its page readable (mprotect(2)); raise vm.max_map_count"});
    } catch (const Error& error) {
        report({static_cast<errc>(error.code().value()), address, error.what()});
    } catch (const std::exception& error) {
        report({errc::io_error, address, error.what()});
    }
    return heap::Touched::refused;
}

std::vector<FirstTouch::LostPage> Proofs::prove_hidden(PageNumber first, std::uint64_t count) {
    try {
        find_proven(first, count);
    } catch (const Error&) {
        // A part of the table is lost, perhaps not all that is asked for.
    }
    std::vector<FirstTouch::LostPage> lost;
    for (PageNumber page = first; page.value < first.value + count; ++page.value) {
        try {
            if (!is_proven(page, true)) replace_hidden(page);
        } catch (const Error& error) {
            lost.push_back({page, error});  // whatever keeps it from being restored, its neighbours have nothing to do with it
        } catch (const HeapFull& full) {
            lost.push_back({page, Error(errc::out_of_address_space, files_.paths().backing,
                                        text_of(page) + " of the heap is damaged and can't be restored in memory: " + full.what())});
        }
    }
    return lost;
}

/// The page that is mapped there gives way to a private copy of it that is whole, in one step: other threads may be about to touch it.
void Proofs::replace_hidden(PageNumber page) {
    const AlignedBuffer good(page_bytes);
    const AlignedBuffer found(page_bytes);
    files_.read_whole(page, good.span());
    if (const auto refusal = files_.view().try_read_pages(page, found.span(), Via::cache)) {
        if (condition_.is_read_only()) throw Error(*refusal);
        restore_in_file(page, good.span());  // what the device doesn't give can't be mapped
    } else {
        vm::Reservation place = vm::Reservation::anywhere(page_bytes);
        image_.map_at(place.data(), offset_of(page), page_bytes, io::Protection::read_write);
        std::memcpy(place.data(), good.data(), page_bytes);
        vm::hide(place.data(), page_bytes);
        vm::replace_mapping(place.data(), image_.live_page(page).data(), page_bytes);
        place.leak();  // nothing is mapped there any more
        files_.note_healed();
    }
    const std::lock_guard lock(mutex_);
    restored_.insert(page.value);
    proven_.add(page);
}

}  // namespace taiyen::store
