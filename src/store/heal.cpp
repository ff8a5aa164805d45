// Healing: what one copy of a heap has damaged comes back from the other one. Each page is a durable step of its own, so that a crash leaves it healed or as it was.

#include <cstring>
#include <optional>
#include <unordered_set>

#include "base/aligned_buffer.hpp"
#include "store/heap_file.hpp"
#include "store/page_copies.hpp"

namespace taiyen::store {

/// One walk over both copies. Requires: saves are held, and the files have what the ring had.
class HeapFile::Healing {
public:
    Healing(HeapFile& heap, const TellLost& lost, const TellBytes& tell)
        : heap_(heap), lost_(lost), tell_(tell), live_(heap.pages_with_live_base()) {}

    /// Returns how many pages were restored. Throws: the first loss, if nobody is told of each.
    std::uint64_t run() {
        const Extents extents = heap_.saved_extents();
        const std::uint64_t total = extents.span + extents.annex;
        std::uint64_t done = 0;
        for_each_table_page(extents, [&](std::uint64_t index) {
            const std::optional<std::uint64_t> pages = heal_covered(index, extents);
            if (!pages) {
                return;
            }
            done += *pages * page_bytes;
            if (tell_) {
                tell_(done, total);
            }
            // The table page in memory is sound; a file that holds another one gets it again.
            heal_table(*heap_.backing_, index);
            if (heap_.data_) {
                heal_table(*heap_.data_, index);
            }
        });
        heal_behind(*heap_.backing_, extents);
        if (heap_.data_) {
            heal_behind(*heap_.data_, extents);
        }
        heap_.healed_ += healed_;
        if (first_lost_) {
            throw Error(*first_lost_);
        }
        if (!tables_lost_) {
            heal_root(extents);
        }
        return healed_;
    }

private:
    /// The pages that a table page covers; how many those are. Nothing: the table page is lost.
    std::optional<std::uint64_t> heal_covered(std::uint64_t index, const Extents& extents) {
        try {
            heap_.table_.page(index);
        } catch (const Error& error) {
            if (error.code() != errc::corrupt && error.code() != errc::io_error) throw;
            lose(error);  // nothing says what its pages should be
            tables_lost_ = true;
            return std::nullopt;
        }
        PageFile* const data = heap_.data_ ? &*heap_.data_ : nullptr;
        const TableCover cover = cover_of(index);
        std::uint64_t count = 0;
        for (; count < cover.count && extents.hold({cover.first.value + count}); ++count) {
            const PageNumber page{cover.first.value + count};
            heal_page(*heap_.backing_, data, page);
            if (data != nullptr) {
                heal_page(*data, &*heap_.backing_, page);
            }
        }
        return count;
    }

    void heal_page(PageFile& file, PageFile* second, PageNumber page) {
        const std::uint64_t expected = heap_.table_.entry(page);
        const bool is_backing = &file == &*heap_.backing_;
        const bool is_live = live_.contains(page.value);
        if ((is_backing && is_live) || has_whole(file, page, bytes_, expected)) {
            return;
        }
        if (second == nullptr) {
            lose(file.corrupt_page(page, "its checksum differs and there is no second copy"));
            return;
        }
        if (!has_whole(*second, page, other_, expected)) {
            if (is_backing || is_live) {  // else it was told already
                lose(file.corrupt_page(page, "its checksum differs in both copies"));
            }
            return;
        }
        heap_.durable_step("healing", [&] {
            file.write_pages(page, other_.span());
            file.sync();
            if (!has_whole(file, page, bytes_, expected)) {
                file.throw_corrupt_page(page, "it reads back damaged after it was restored: the disk is failing");
            }
        });
        ++healed_;
    }

    /// Whether the file has the page whole. A page that the device can't read is as bad as one that it reads wrong.
    bool has_whole(const PageFile& file, PageNumber page, const AlignedBuffer& into, std::uint64_t expected) const {
        try {
            file.read_pages(page, into.span(), Via::device);
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
            return false;
        }
        return page_checksum(into.span(), page, heap_.table_.heap()) == expected;
    }

    void heal_table(PageFile& file, std::uint64_t index) {
        const TablePage& good = heap_.table_.page(index);
        TablePage found;
        bool same = false;
        try {
            file.read_table_page(index, found, Via::device);
            same = std::memcmp(&found, &good, sizeof found) == 0;
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
        }
        if (!same) {
            heap_.durable_step("healing", [&] {
                file.file().write(std::as_bytes(std::span(&good, 1)), file.layout.table_offset(index));
                file.sync();
            });
            ++healed_;
        }
    }

    /// What lies behind the extents, up to the file's end, is zero: it is the memory that the heap grows by. It needs no second copy.
    void heal_behind(PageFile& file, const Extents& extents) {
        if (clear_behind(file, extents) == 0) {
            return;
        }
        heap_.durable_step("healing", [&] {
            file.sync();
            if (clear_behind(file, extents) != 0) {
                throw Error(errc::corrupt, file.path(),
                            "what lies behind the heap's end reads back damaged after it was made zero: the disk is failing");
            }
        });
    }

    std::uint64_t clear_behind(PageFile& file, const Extents& extents) {
        const std::uint64_t size = file.file().info().size_bytes;
        // Of the last chunk that begins in the file.
        const auto end_of = [&](Sequence sequence) {
            std::uint64_t end = 0;
            for (std::size_t k = 0; file.layout.has(sequence, k) && file.layout.table_of(sequence, k) < size; ++k) {
                end = chunk_shapes[k].first + chunk_shapes[k].bytes;
            }
            return end;
        };
        const std::uint64_t cleared = file.clear_growth(extents, {end_of(Sequence::span), end_of(Sequence::annex)});
        healed_ += cleared;
        return cleared;
    }

    /// A table page that had to be rebuilt may differ from the one that the headers stand for.
    void heal_root(const Extents& extents) {
        const std::uint64_t root = table_root_of(*heap_.backing_, extents, Via::device);
        if (root != heap_.table_.root()) {
            heap_.table_.set_root(root);
            heap_.durable_step("healing", [&] { heap_.write_headers(); });
            ++healed_;
            ++heap_.healed_;
        }
    }

    /// What nobody has whole must not keep what somebody has from being restored.
    void lose(const Error& error) {
        if (lost_) {
            lost_(error);
        } else if (!first_lost_) {
            first_lost_ = error;
        }
    }

    HeapFile& heap_;
    const TellLost& lost_;
    const TellBytes& tell_;
    const std::unordered_set<std::uint64_t> live_;
    const AlignedBuffer bytes_{page_bytes};
    const AlignedBuffer other_{page_bytes};
    std::uint64_t healed_ = 0;
    std::optional<Error> first_lost_;
    bool tables_lost_ = false;
};

/// Pages whose base in the backing file, proven by nobody, is part of what the program sees. (A transactional heap saves what stands in its log on top of the file's own bytes.)
std::unordered_set<std::uint64_t> HeapFile::pages_with_live_base() const {
    std::unordered_set<std::uint64_t> live;
    const std::vector<vm::PageRun> runs = uses_log() ? std::vector<vm::PageRun>() : written_runs();
    const std::lock_guard lock(proof_mutex_);  // not before: who touches a hidden page takes its lock first
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            if (!saved_copies_.contains(page) && !proven_.contains({page})) {
                live.insert(page);
            }
        }
    }
    return live;
}

void HeapFile::heal_first_page(bool in_view_only) {
    // The engine reads the super block before anybody could call heal(): damage there is healed, or named, here.
    const PageNumber first{0};
    const AlignedBuffer found(page_bytes);
    const bool is_refused = backing_->try_read_pages(first, found.span(), Via::cache).has_value();
    if (page_checksum(found.span(), first, table_.heap()) == table_.entry(first)) {
        return;
    }
    const AlignedBuffer good = good_first_page();
    if (is_refused && in_view_only) {
        // Also a store would have the kernel fetch the page first.
        vm::map_anonymous(live_page(first).data(), page_bytes);
        vm::prepare_heap_mapping(live_page(first).data(), page_bytes);
        first_page_is_ours_ = true;
    } else if (read_only_) {
        vm::protect(live_page(first).data(), page_bytes, true);
    }
    if (in_view_only) {
        std::memcpy(live_page(first).data(), good.data(), page_bytes);
    } else {
        backing_->write_pages(first, good.span());
        backing_->sync();
    }
    if (read_only_) {
        vm::protect(live_page(first).data(), page_bytes, false);
    }
    owes_first_page_ = in_view_only && !read_only_;
    proven_.add(first);
    ++healed_;
}

AlignedBuffer HeapFile::good_first_page() const {
    AlignedBuffer good(page_bytes);
    read_whole({0}, good.span(), data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
    return good;
}

void HeapFile::read_whole(PageNumber page, std::span<std::byte> image, const char* why) const {
    const std::uint64_t expected = table_.entry(page);
    std::optional<Error> refusal;
    for (const PageFile* file : {&*backing_, data()}) {
        if (file == nullptr) {
            continue;
        }
        if (auto refused = file->try_read_pages(page, image, Via::device); refused && !refusal) {
            refusal = std::move(refused);
        }
        if (page_checksum(image, page, table_.heap()) == expected) {
            return;
        }
    }
    if (refusal) {
        throw Error(*refusal);
    }
    backing_->throw_corrupt_page(page, why);
}

std::uint64_t HeapFile::heal(const TellLost& lost, const TellBytes& tell) {
    check_usable(false);
    const auto lock = hold_saves();
    checkpoint();
    const std::uint64_t restored = restore_in_files();  // what memory alone has whole
    return restored + Healing(*this, lost, tell).run();
}

}  // namespace taiyen::store
