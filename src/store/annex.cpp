#include "store/annex.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {

std::byte* Annex::open(ByteCount capacity) {
    heap_.check_usable(heap_.read_only_);
    const ByteCount wanted = round_up(std::max({capacity, mapped_, page_bytes}), page_bytes);
    if (place_) {
        if (wanted > place_.size()) {
            throw Error(errc::invalid_argument, heap_.paths_.backing,
                        "its annex is open with a capacity of " + std::to_string(place_.size()) + " bytes already, ask for no more");
        }
        return place_.data();
    }
    if (wanted > sequence_bytes_max) {
        throw HeapFull(wanted, 0, HeapFull::Cause::address_space, heap_.name());
    }
    if (!heap_.read_only_) {
        heap_.checkpoint();  // a save that ended the annex may stand in the ring only
    }
    try {
        place_ = vm::Reservation::anywhere(wanted);
        heap_.grow(wanted, [&] {
            heap_.map(annex_start, mapped_, heap_.read_only_ && overlay_.empty() ? io::Protection::read : io::Protection::read_write);
        });
        heap_.prove_annex();
    } catch (...) {
        place_ = {};
        throw;
    }
    overlay(place_.data(), !heap_.read_only_);
    return place_.data();
}

void Annex::overlay(std::byte* annex, bool writable) const {
    if (overlay_.empty()) {
        return;
    }
    for (const auto& [number, image] : overlay_) {
        std::byte* const page = annex + (number - annex_first_page.value) * page_bytes;
        image.empty() ? std::memset(page, 0, page_bytes) : std::memcpy(page, image.data(), page_bytes);
    }
    if (!writable) {
        vm::protect(annex, mapped_, false);
    }
}

Annex::View Annex::view() const {
    heap_.check_usable(true);
    if (place_) {
        return {{}, {place_.data(), used_}};
    }
    if (used_ == 0 || (!heap_.read_only_ && !is_saved())) {
        return {};
    }
    View view{vm::Reservation::anywhere(mapped_), {}};
    heap_.map_at(view.own.data(), annex_start, mapped_, overlay_.empty() ? io::Protection::read : io::Protection::read_write);
    overlay(view.own.data(), false);
    view.bytes = {view.own.data(), used_};
    return view;
}

void Annex::extend(ByteCount bytes) {
    heap_.check_usable(false);
    TAIYEN_CHECK(is_open());
    const ByteCount wanted = round_up(bytes, page_bytes);
    if (wanted <= used_) {
        return;
    }
    if (wanted > place_.size()) {
        throw HeapFull(wanted - used_, 0, HeapFull::Cause::address_space, heap_.name());
    }
    std::unique_lock<std::mutex> background;
    if (heap_.uses_log() && chunks_for(wanted) > heap_.backing_->layout.annex_chunks()) {
        background = heap_.hold_saves();  // a save that runs looks up where pages lie
    }
    const FileLayout before = heap_.backing_->layout;
    const auto lay_out = [&](const FileLayout& layout) {
        if (layout.places() == heap_.backing_->layout.places()) {
            return;
        }
        const std::lock_guard lock(heap_.layout_mutex_);
        heap_.backing_->layout = layout;
        if (heap_.data_) {
            heap_.data_->layout = layout;
        }
    };
    try {
        lay_out(before.with_annex(wanted, heap_.mapped_));
        heap_.grow(wanted - used_, [&] {
            if (wanted > mapped_) {
                heap_.clear_growth({0, mapped_}, {0, wanted});
            }
            if (wanted > mapped_) {
                heap_.make_long_enough({0, wanted});
                heap_.map({annex_start.value + mapped_}, wanted - mapped_, io::Protection::read_write);
            }
        });
    } catch (...) {
        lay_out(before);
        throw;
    }
    mapped_ = std::max(mapped_, wanted);
    used_ = wanted;
}

bool Annex::is_saved() const { return used_ != 0 && heap_.table_.entry(annex_first_page) != 0; }

void Annex::reset(const AnnexHead& saved) {
    place_ = {};
    mapped_ = saved.extent;
    used_ = saved.used;
}

ByteCount Annex::end() { return std::exchange(used_, 0); }

void Annex::replayed() {
    place_ = {};
    overlay_.clear();
}

AnnexHead Annex::head() const { return {mapped_, used_, heap_.backing_->layout.places_for(mapped_)}; }

void Annex::replay(const AnnexHead& annex) {
    if (!heap_.replaying_) {
        return;
    }
    if (!grows_from(head(), annex)) {
        throw Error(errc::corrupt, heap_.paths_.log, "the transaction log speaks of another annex than the heap has; restore the files from a copy");
    }
    for (std::optional<PageFile>* file : {&heap_.backing_, &heap_.data_}) {
        if (*file) {
            (*file)->layout = FileLayout(annex.places);
        }
    }
    mapped_ = annex.extent;
    used_ = annex.used;
}

void Annex::read_reader_base(PageNumber page, std::span<std::byte> image) const {
    const auto refusal = heap_.view().try_read_pages(page, image, Via::cache);
    if (!refusal && page_checksum(image, page, heap_.table_.heap()) == heap_.table_.entry(page)) {
        return;
    }
    try {
        heap_.read_whole(page, image, "its checksum differs");
    } catch (const Error&) {
        // Nobody has it by the checksums at hand; who opens the annex proves it where that is asked for.
        heap_.view().read_pages(page, image, Via::cache);
    }
}

std::span<std::byte> Annex::replay_page(PageNumber page) {
    if (!heap_.replaying_) {
        return {};
    }
    const auto [at, is_new] = overlay_.try_emplace(page.value);
    std::vector<std::byte>& image = at->second;
    if (image.empty()) {
        image.resize(page_bytes);
        if (is_new) {
            const AlignedBuffer base(page_bytes);
            const HeapFile::ChangedPage asked{page, 0};
            if (!heap_.read_only_) {
                heap_.read_bases({&asked, 1}, base.span());
            } else if (heap_.saved_extents().hold(page)) {
                read_reader_base(page, base.span());
            } else {
                std::memset(base.data(), 0, page_bytes);
            }
            std::memcpy(image.data(), base.data(), page_bytes);
        }
    }
    return image;
}

}  // namespace taiyen::store
