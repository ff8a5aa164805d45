// Large saves: pages that one ring record has no room for, by the second copy or, without one, by a stage behind the ring. The order of steps is the protocol: FORMAT.md.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/engine_layout.hpp"
#include "heap/geometry.hpp"
#include "store/save_record.hpp"
#include "store/saves.hpp"

namespace taiyen::store {
namespace {

/// Bytes written at once by large saves.
constexpr ByteCount piece_bytes = ByteCount{1} << 20U;
/// What is cut off a stage at once.
constexpr ByteCount stage_piece_bytes = 16_MiB;

}  // namespace

void Saves::throw_changed_meanwhile(PageNumber page) const {
    throw Error(errc::invalid_argument, files_.paths().backing, offset_of(page).value,
                "a page was changed by another thread during the save; stop all stores while saving");
}

void Saves::write_changed_pages(PageFile& file, const std::vector<ChangedPage>& changed, const PageFile* fallback) {
    const AlignedBuffer batch(piece_bytes);
    std::size_t begun = 0;  // the device was asked to begin with all before
    std::size_t i = 0;
    while (i < changed.size()) {
        // A run of consecutive pages, up to a batch, goes out as one write; what is written is what the checksum was taken of.
        std::size_t count = 0;
        while (i + count < changed.size() && count < piece_bytes / page_bytes && changed[i + count].page.value == changed[i].page.value + count)
            ++count;
        if (image_.is_mapped(changed[i].page)) std::memcpy(batch.data(), image_.live_page(changed[i].page).data(), count * page_bytes);
        for (std::size_t k = 0; k < count; ++k) {
            const auto page = batch.span().subspan(k * page_bytes, page_bytes);
            if (changed[i + k].checksum == 0) {
                std::memset(page.data(), 0, page_bytes);
            } else if (page_checksum(page, changed[i + k].page, files_.table().heap()) != changed[i + k].checksum) {
                if (fallback == nullptr) throw_changed_meanwhile(changed[i + k].page);
                fallback->read_pages(changed[i + k].page, page, Via::device);
            }
        }
        file.write_pages(changed[i].page, batch.first(count * page_bytes));
        i += count;
        // Piece by piece: asked for each run, the device would get single pages.
        if (i == changed.size() || i - begun >= piece_bytes / page_bytes || sequence_of(changed[i].page) != sequence_of(changed[begun].page)) {
            file.start_writing(changed[begun].page, changed[i - 1].page.value - changed[begun].page.value + 1);
            begun = i;
        }
    }
}

Saves::LargeSave Saves::live_save(std::vector<ChangedPage> changed) const {
    return {{files_.point().serial, files_.point().log_start, image_.mapped()}, image_.annex().head(), std::move(changed), nullptr, false, {}};
}

void Saves::save_large(LargeSave& save) {
    const EventClock clock;
    saved_anything_ = true;
    condition_.durable_step("saving", [&] { files_.require_whole(); });
    files_.take_blocks(save.changed, save.images != nullptr);
    if (save.changed.empty())
        save_headers(save);
    else if (files_.data())
        save_large_with_data(save);
    else
        save_large_with_stage(save);
    files_.tell_written(EventKind::saved, clock, save.changed.size());
}

void Saves::set_saved(Generation generation, const LargeSave& save) {
    files_.move_point([&](SavedPoint& point) {
        point.generation = generation;
        point.serial = save.point.serial;
        point.log_start = save.point.log_start;
        point.extent = std::max(point.extent, save.point.extent);
        point.annex = save.annex;
        files_.for_each([&](PageFile& file) {
            if (save.place.base != 0) file.header.base = save.place.base;
            if (save.place.capacity != 0) file.header.capacity = save.place.capacity;
        });
    });
}

/// The commit point is passed: whoever asks may be told.
void Saves::tell_saved() {
    files_.move_point([](SavedPoint& point) { point.durable_serial = point.serial; });
}

/// A save that changes no page: the transactions undid each other.
void Saves::save_headers(const LargeSave& save) {
    condition_.durable_step("saving", [&] {
        // The heap may have grown.
        files_.backing().sync();
        if (files_.data()) files_.data()->sync();
        set_saved(files_.point().generation, save);
        files_.write_headers();
        tell_saved();
    });
}

/// `visit(batch, images)`, the images as they are to be saved.
template <class F>
void Saves::for_each_batch(LargeSave& save, F&& visit) {
    const ByteCount bytes = std::min(save.images_once ? batch_bytes_ : piece_bytes, save.changed.size() * page_bytes);
    const AlignedBuffer buffer(bytes);
    for (std::size_t i = 0; i < save.changed.size();) {
        const std::span<ChangedPage> batch = std::span(save.changed).subspan(i, std::min(save.changed.size() - i, bytes / page_bytes));
        const std::span<std::byte> images = buffer.first(batch.size() * page_bytes);
        if (save.images) {
            save.images(batch, images);
        } else {
            for (std::size_t k = 0; k < batch.size(); ++k) {
                const auto image = images.subspan(k * page_bytes, page_bytes);
                if (batch[k].checksum == 0) {
                    std::memset(image.data(), 0, page_bytes);
                    continue;
                }
                std::memcpy(image.data(), image_.live_page(batch[k].page).data(), page_bytes);
                if (page_checksum(image, batch[k].page, files_.table().heap()) != batch[k].checksum) throw_changed_meanwhile(batch[k].page);
            }
        }
        visit(std::span<const ChangedPage>(batch), images);
        i += batch.size();
    }
}

/// Writes batches of pages, ascending: runs of consecutive pages by one write. The device is asked to begin with each piece, and one piece more is all that waits in its queue: who commits
/// meanwhile waits behind that.
class Saves::PageWriter {
public:
    explicit PageWriter(PageFile& file) : file_(file) {}
    void write(std::span<const ChangedPage> batch, std::span<const std::byte> images) {
        for (std::size_t i = 0; i < batch.size();) {
            const std::size_t first = i;
            while (i < batch.size() && i - first < piece_bytes / page_bytes && sequence_of(batch[i].page) == sequence_of(batch[first].page)) {
                std::size_t count = 1;
                while (i + count < batch.size() && i + count - first < piece_bytes / page_bytes &&
                       batch[i + count].page.value == batch[i].page.value + count) {
                    ++count;
                }
                file_.write_pages(batch[i].page, images.subspan(i * page_bytes, count * page_bytes));
                i += count;
            }
            const std::uint64_t count = batch[i - 1].page.value - batch[first].page.value + 1;
            file_.start_writing(batch[first].page, count);
            if (count_ != 0) file_.wait_for_writing(first_, count_);
            first_ = batch[first].page;
            count_ = count;
        }
    }

private:
    PageFile& file_;
    PageNumber first_{};  ///< of the piece before
    std::uint64_t count_ = 0;
};

void Saves::write_all_images(PageFile& file, LargeSave& save) {
    PageWriter writer(file);
    for_each_batch(save, [&](std::span<const ChangedPage> batch, std::span<const std::byte> images) { writer.write(batch, images); });
}

void Saves::save_large_with_data(LargeSave& save) {
    const Generation next{files_.point().generation.value + 1};
    condition_.durable_step("saving", [&] {
        files_.data()->header.state = FileState::filling;
        files_.data()->header.filling_generation = next;
        files_.data()->write_header();
        if (planted(Bug::backing_before_data_commit)) write_all_images(files_.backing(), save);
        if (save.images)
            write_all_images(*files_.data(), save);
        else
            write_changed_pages(*files_.data(), save.changed, nullptr);
        for (const ChangedPage& page : save.changed) files_.table().set(page.page, page.checksum);
        std::vector<TablePage> tables;
        files_.table().write_changed(next, [&](const TablePage& page) {
            files_.data()->write_table_page(page);
            tables.push_back(page);
        });
        set_saved(next, save);
        if (planted(Bug::whole_before_data_sync)) {
            files_.fill_header(*files_.data(), false);
            files_.data()->write_header();
        }
        if (!planted(Bug::skip_data_sync)) files_.data()->sync();
        files_.fill_header(*files_.data(), false);
        files_.data()->write_header();  // the commit point
        tell_saved();

        if (save.images) {
            if (save.images_once)
                save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) { read_saved(*files_.data(), batch, images); };
            write_all_images(files_.backing(), save);
        } else {
            write_changed_pages(files_.backing(), save.changed, files_.data());
        }
        for (const TablePage& page : tables) files_.backing().write_table_page(page);
        if (!planted(Bug::skip_backing_sync)) files_.backing().sync();
        files_.fill_header(files_.backing(), false);
        files_.backing().write_header();
    });
}

void Saves::save_large_with_stage(LargeSave& save) {
    io::File& stage = *files_.ring_file();
    StagedSave staged;
    SaveHead& head = staged.head;
    head.generation = files_.point().generation.value + 1;
    head.serial = save.point.serial.value;
    head.extent = std::max(files_.point().extent, save.point.extent);
    head.page_count = save.changed.size();
    head.stage_offset = log::Ring::header_bytes + files_.ring_identity().capacity_bytes;
    head.flags = save.annex.extent != 0 ? save_has_annex : 0;
    staged.annex = save.annex;
    staged.base = save.place.base;
    staged.capacity = save.place.capacity;
    staged.ring_start = files_.uses_log() ? save.point.log_start : files_.journal()->next();
    const ByteCount entries_bytes = stage_entries_bytes(head.page_count);
    const std::uint64_t images_at = head.stage_offset + entries_bytes;
    const auto zero_pages = static_cast<std::uint64_t>(
        save.images ? 0 : std::count_if(save.changed.begin(), save.changed.end(), [](const ChangedPage& page) { return page.checksum == 0; }));
    try {
        stage.allocate(head.stage_offset, entries_bytes + (head.page_count - zero_pages) * page_bytes);
    } catch (...) {
        stage.resize(head.stage_offset);  // nothing happened: the heap goes on, the save can be tried again
        throw;
    }
    condition_.durable_step("saving", [&] {
        // Past the page cache: nobody reads the stage before it is cut off, unless there is a crash or it is a background save.
        for_each_batch(save, [&](std::span<const ChangedPage> batch, std::span<std::byte> images) {
            std::size_t kept = 0;
            for (std::size_t k = 0; k < batch.size(); ++k) {
                if (batch[k].checksum != 0) {
                    std::memmove(images.data() + kept * page_bytes, images.data() + k * page_bytes, kept == k ? 0 : page_bytes);
                    ++kept;
                }
            }
            if (kept != 0) stage.write_direct(images.first(kept * page_bytes), images_at + head.image_count * page_bytes);
            head.image_count += kept;
        });
        std::vector<SavedPage> entries;
        entries.reserve(save.changed.size());
        for (const ChangedPage& page : save.changed) entries.push_back({page.page.value, page.checksum});
        const AlignedBuffer listed(entries_bytes);
        std::memset(listed.data(), 0, listed.size());
        std::memcpy(listed.data(), entries.data(), entries.size() * sizeof(SavedPage));
        stage.write_direct(listed.span(), head.stage_offset);
        head.stage_digest = stage_digest(entries, files_.table().heap());
        std::uint64_t image = 0;
        const auto install = [&] {
            if (!save.images) {
                write_changed_pages(files_.backing(), save.changed, nullptr);
                return;
            }
            if (save.images_once) {
                save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
                    image += read_staged(stage, images_at + image * page_bytes, batch, images);
                };
            }
            write_all_images(files_.backing(), save);
        };
        if (planted(Bug::install_before_staged_header)) {
            install();
            image = 0;
        }
        if (!planted(Bug::stage_without_sync)) stage.sync();
        files_.backing().header.state = FileState::staged;
        files_.backing().header.staged = staged;
        files_.backing().write_header();  // the commit point
        if (planted(Bug::truncate_stage_early)) stage.resize(head.stage_offset);
        for (const ChangedPage& page : save.changed) files_.table().set(page.page, page.checksum);
        set_saved({head.generation}, save);
        tell_saved();
        install();
        files_.write_tables(files_.point().generation);
        if (!planted(Bug::skip_backing_sync)) files_.backing().sync();
        files_.write_headers();
        // By pieces: the file system gives the blocks back with the file locked, 170 ms for a gigabyte, and the log that commits wait for may lie in front of the stage.
        for (std::uint64_t end = images_at + head.image_count * page_bytes; end > head.stage_offset;) {
            end = end - head.stage_offset > stage_piece_bytes ? end - stage_piece_bytes : head.stage_offset;
            stage.resize(end);
        }
    });
}

/// The pages of a batch from the file that has them already.
void Saves::read_saved(const PageFile& file, std::span<const ChangedPage> batch, std::span<std::byte> images) const {
    for (std::size_t i = 0; i < batch.size();) {
        std::size_t count = 1;
        while (i + count < batch.size() && batch[i + count].page.value == batch[i].page.value + count) ++count;
        file.read_pages(batch[i].page, images.subspan(i * page_bytes, count * page_bytes), Via::cache);
        for (std::size_t k = i; k < i + count; ++k)
            if (page_checksum(images.subspan(k * page_bytes, page_bytes), batch[k].page, files_.table().heap()) != batch[k].checksum)
                file.throw_corrupt_page(batch[k].page, "it reads back damaged right after it was written: the disk is failing");
        i += count;
    }
}

/// The pages of a batch from the stage, images from `at` on; returns how many images those are.
std::uint64_t Saves::read_staged(const io::File& stage, std::uint64_t at, std::span<const ChangedPage> batch, std::span<std::byte> images) const {
    std::uint64_t count = 0;
    for (const ChangedPage& page : batch) count += page.checksum != 0 ? 1 : 0;
    if (count != 0) {
        if (const ByteCount got = stage.read_direct(images.first(count * page_bytes), at); got != count * page_bytes) {
            throw Error(errc::corrupt, stage.path(), at + got,
                        "the staged pages of a save end early right after they were written: the disk is failing");
        }
    }
    // From behind: each image moves to its place, over what has moved already or is zero.
    std::uint64_t from = count;
    for (std::size_t k = batch.size(); k-- > 0;) {
        std::byte* const place = images.data() + k * page_bytes;
        if (batch[k].checksum == 0) {
            std::memset(place, 0, page_bytes);
            continue;
        }
        --from;
        std::memmove(place, images.data() + from * page_bytes, page_bytes);
        if (page_checksum({place, page_bytes}, batch[k].page, files_.table().heap()) != batch[k].checksum) {
            throw Error(errc::corrupt, stage.path(), at + from * page_bytes,
                        "a staged page reads back damaged right after it was written: the disk is failing");
        }
    }
    return count;
}

void Saves::save_moved(std::uintptr_t base, std::span<const PageNumber> pages, const FillPages& patch) {
    condition_.check_usable(false);
    const auto lock = files_.hold_saves();
    TAIYEN_CHECK(!files_.uses_log() && is_base(base, files_.backing().header.capacity));
    checkpoint();
    LargeSave save = live_save({});
    save.images_once = true;
    save.place.base = base;
    save.changed.reserve(pages.size() + 2);
    for (const PageNumber page : pages) {
        TAIYEN_CHECK((save.changed.empty() || save.changed.back().page < page) && sequence_of(page) == Sequence::span);
        save.changed.push_back({page, 0});
    }
    if (save.changed.empty()) save.changed.push_back({{0}, 0});                    // a save of nothing would have no commit point for both files
    if (image_.annex().is_saved()) save.changed.push_back({annex_first_page, 0});  // what lies there speaks of the old address
    save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
        proofs_.read_bases(batch, images);
        std::vector<PageNumber> numbers;
        for (const ChangedPage& page : batch)
            if (sequence_of(page.page) == Sequence::span) numbers.push_back(page.page);
        patch(numbers, images.first(numbers.size() * page_bytes));
        if (numbers.size() != batch.size()) std::memset(images.data() + numbers.size() * page_bytes, 0, page_bytes);
        for (std::size_t k = 0; k < batch.size(); ++k)
            batch[k].checksum = page_checksum(images.subspan(k * page_bytes, page_bytes), batch[k].page, files_.table().heap());
    };
    save_large(save);
}

void Saves::save_resized(ByteCount wanted) {
    condition_.check_usable(false);
    const auto lock = files_.hold_saves();
    const Header& header = files_.backing().header;
    TAIYEN_CHECK(!files_.uses_log());
    // Where everything lies must follow from the new capacity as it does from the old one.
    const ByteCount least = heap::Geometry(header.capacity).capacity_min_at(image_.mapped());
    const ByteCount capacity = wanted != 0 ? wanted : least;
    const auto refuse = [&](const std::string& why) {
        throw Error(errc::invalid_argument, files_.paths().backing, "its capacity can't become " + std::to_string(capacity) + " bytes: " + why);
    };
    if (capacity % page_bytes != 0 || capacity < heap::Engine::capacity_min || capacity > heap::layout::capacity_max)
        refuse("a capacity is a multiple of 4 KiB between 256 KiB and 8 TiB");
    if (wanted == header.capacity) return;
    if (!std::has_single_bit(least))
        refuse("the part of the heap that its capacity cuts short is in use; taiyen convert --capacity makes a heap of another one");
    if (capacity < least) refuse("what is in use takes " + std::to_string(least));
    if (!is_base(header.base, capacity)) refuse("at its address there is no room for so much; taiyen rebase moves it");
    checkpoint();
    LargeSave save = live_save({});
    save.images_once = true;
    save.place.capacity = capacity;
    save.changed.push_back({{0}, 0});
    save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
        proofs_.read_bases(batch, images);
        std::memcpy(images.data() + offsetof(heap::layout::SuperBlock, capacity), &capacity, sizeof capacity);
        batch[0].checksum = page_checksum(images.first(page_bytes), batch[0].page, files_.table().heap());
    };
    save_large(save);
}

}  // namespace taiyen::store
