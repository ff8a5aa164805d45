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
#include "store/heap_files.hpp"
#include "store/image.hpp"

namespace taiyen::store {

std::byte* Annex::open(ByteCount capacity, const std::function<void()>& prove) {
    const ByteCount wanted = round_up(std::max({capacity, mapped_, page_bytes}), page_bytes);
    if (place_) {
        if (wanted > place_.size()) {
            throw Error(errc::invalid_argument, files_.paths().backing,
                        "its annex is open with a capacity of " + std::to_string(place_.size()) + " bytes already, ask for no more");
        }
        return place_.data();
    }
    if (wanted > sequence_bytes_max) throw HeapFull(wanted, 0, HeapFull::Cause::address_space, files_.name());
    try {
        place_ = vm::Reservation::anywhere(wanted);
        files_.grow(wanted, [&] {
            image_.map(annex_start, mapped_, files_.is_read_only() && overlay_.empty() ? io::Protection::read : io::Protection::read_write);
        });
        prove();
    } catch (...) {
        place_ = {};
        throw;
    }
    overlay(place_.data(), !files_.is_read_only());
    return place_.data();
}

void Annex::overlay(std::byte* annex, bool writable) const {
    if (overlay_.empty()) return;
    for (const auto& [number, image] : overlay_) {
        std::byte* const page = annex + (number - annex_first_page.value) * page_bytes;
        image.empty() ? std::memset(page, 0, page_bytes) : std::memcpy(page, image.data(), page_bytes);
    }
    if (!writable) vm::protect(annex, mapped_, false);
}

Annex::View Annex::view() const {
    if (place_) return {{}, {place_.data(), used_}};
    if (used_ == 0 || (!files_.is_read_only() && !is_saved())) return {};
    View view{vm::Reservation::anywhere(mapped_), {}};
    image_.map_at(view.own.data(), annex_start, mapped_, overlay_.empty() ? io::Protection::read : io::Protection::read_write);
    overlay(view.own.data(), false);
    view.bytes = {view.own.data(), used_};
    return view;
}

void Annex::extend(ByteCount bytes) {
    TAIYEN_CHECK(is_open());
    const ByteCount wanted = round_up(bytes, page_bytes);
    if (wanted <= used_) return;
    if (wanted > place_.size()) throw HeapFull(wanted - used_, 0, HeapFull::Cause::address_space, files_.name());
    std::unique_lock<std::mutex> background;
    if (files_.uses_log() && chunks_for(wanted) > files_.backing().layout.annex_chunks())
        background = files_.hold_saves();  // a save that runs looks up where pages lie
    const FileLayout before = files_.backing().layout;
    const auto lay_out = [&](const FileLayout& layout) {
        if (layout.places() == files_.backing().layout.places()) return;
        files_.lay_out(layout);
    };
    try {
        lay_out(before.with_annex(wanted, image_.mapped()));
        files_.grow(wanted - used_, [&] {
            if (wanted > mapped_) files_.clear_growth({0, mapped_}, {0, wanted});
            if (wanted > mapped_) {
                files_.make_long_enough({0, wanted});
                image_.map({annex_start.value + mapped_}, wanted - mapped_, io::Protection::read_write);
            }
        });
    } catch (...) {
        lay_out(before);
        throw;
    }
    mapped_ = std::max(mapped_, wanted);
    used_ = wanted;
}

bool Annex::is_saved() const { return used_ != 0 && files_.table().entry(annex_first_page) != 0; }

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

AnnexHead Annex::head() const { return {mapped_, used_, files_.backing().layout.places_for(mapped_)}; }

void Annex::replay(const AnnexHead& annex) {
    if (!files_.is_replaying()) return;
    if (!grows_from(head(), annex)) {
        throw Error(errc::corrupt, files_.paths().log,
                    "the transaction log speaks of another annex than the heap has; restore the files from a copy");
    }
    files_.lay_out(FileLayout(annex.places));
    mapped_ = annex.extent;
    used_ = annex.used;
}

void Annex::follow(const AnnexHead& annex) {
    TAIYEN_CHECK(!is_open());
    if (!grows_from(head(), annex)) {
        throw Error(errc::mismatch, files_.paths().backing,
                    "the heap that this file follows has its undo history elsewhere now; remove this file, and follow again");
    }
    const FileLayout layout(annex.places);
    if (layout.places() != files_.backing().layout.places()) {
        const auto saves = files_.hold_saves();  // one that runs looks up where pages lie
        files_.lay_out(layout);
    }
    if (annex.extent > mapped_) {
        files_.grow(annex.extent - mapped_, [&] {
            files_.clear_growth({0, mapped_}, {0, annex.extent});
            files_.make_long_enough({0, annex.extent});
        });
    }
    mapped_ = annex.extent;
    used_ = annex.used;
}

void Annex::read_reader_base(PageNumber page, std::span<std::byte> image) const {
    const auto refusal = files_.view().try_read_pages(page, image, Via::cache);
    if (!refusal && page_checksum(image, page, files_.table().heap()) == files_.table().entry(page)) return;
    try {
        files_.read_whole(page, image, "its checksum differs");
    } catch (const Error&) {
        // Nobody has it by the checksums at hand; who opens the annex proves it where that is asked for.
        files_.view().read_pages(page, image, Via::cache);
    }
}

std::span<std::byte> Annex::replay_page(PageNumber page, const ReadBase& read_base) {
    if (!files_.is_replaying()) return {};
    const auto [at, is_new] = overlay_.try_emplace(page.value);
    std::vector<std::byte>& image = at->second;
    if (image.empty()) {
        image.resize(page_bytes);
        if (is_new) {
            const AlignedBuffer base(page_bytes);
            if (!files_.is_read_only())
                read_base(page, base.span());
            else if (files_.extents().hold(page))
                read_reader_base(page, base.span());
            else
                std::memset(base.data(), 0, page_bytes);
            std::memcpy(image.data(), base.data(), page_bytes);
        }
    }
    return image;
}

}  // namespace taiyen::store
