#include <taiyen/inspect/heap_map.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "heap/survey.hpp"
#include "inspect/block_walk.hpp"
#include "inspect/type_walk.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {
namespace {

using heap::PagesInUse;
using heap::PageUse;

struct SizeKey {
    ByteCount bytes_max;
    const char* label;
};
constexpr std::array<SizeKey, 9> size_keys{{{32, "up to 32 B"},
                                            {64, "up to 64 B"},
                                            {128, "up to 128 B"},
                                            {256, "up to 256 B"},
                                            {1_KiB, "up to 1 KiB"},
                                            {4_KiB - 1, "below 4 KiB"},
                                            {64_KiB - 1, "4 KiB and more"},
                                            {1_MiB - 1, "64 KiB and more"},
                                            {~ByteCount{0}, "1 MiB and more"}}};
constexpr std::array<ByteCount, 4> available_sizes{64, 4_KiB, 64_KiB, 1_MiB};
/// Named objects, or types, that have a colour of their own; the rest share one.
constexpr std::size_t owners_max = 9;

std::size_t size_key_of(ByteCount bytes) {
    std::size_t key = 0;
    while (bytes > size_keys[key].bytes_max) ++key;
    return key;
}

class MapMaker {
public:
    MapMaker(const ArchiveHeap& heap, store::HeapFile& file, const MapOptions& options) : heap_(heap), file_(file), options_(options) {
        if (options.cells_max == 0) throw Error(errc::invalid_argument, "a map has at least one cell");
    }

    HeapMap run() {
        const heap::Engine& engine = file_.engine();
        file_.image().will_read_metadata();
        map_.path = file_.path();
        map_.capacity_bytes = engine.capacity();
        map_.extent_bytes = engine.extent();
        map_.colour = options_.colour;
        map_.cell_bytes = std::max(page_bytes, std::bit_ceil((map_.extent_bytes + options_.cells_max - 1) / options_.cells_max));
        map_.cells.resize((map_.extent_bytes + map_.cell_bytes - 1) / map_.cell_bytes);
        for (const SizeKey& key : size_keys) map_.colours.push_back({key.label, 0, 0});
        best_.resize(map_.cells.size());
        add_pages();
        for (const WrittenRange& range : heap_.written_ranges())
            for_each_part(range.offset, range.bytes, [&](MapCell& cell, std::uint64_t bytes) { cell.dirty_bytes += bytes; });
        if (options_.colour == MapColour::owner) colour_by_owner();
        if (options_.colour == MapColour::type) colour_by_type();
        for (const MapCell& cell : map_.cells) {
            map_.sum.live_bytes += cell.live_bytes;
            map_.sum.free_bytes += cell.free_bytes;
            map_.sum.released_bytes += cell.released_bytes;
            map_.sum.metadata_bytes += cell.metadata_bytes;
            map_.sum.growth_bytes += cell.growth_bytes;
            map_.sum.dirty_bytes += cell.dirty_bytes;
        }
        map_.page_efficiency = block_pages_ == 0 ? 1 : static_cast<double>(map_.sum.live_bytes) / static_cast<double>(block_pages_ * page_bytes);
        const std::uint64_t free = map_.sum.free_bytes + map_.sum.released_bytes + map_.sum.growth_bytes;
        for (std::size_t i = 0; i < available_sizes.size(); ++i)
            map_.availability.push_back({available_sizes[i], free == 0 ? 1 : static_cast<double>(fitting_[i]) / static_cast<double>(free)});
        return std::move(map_);
    }

private:
    template <class Visit>
    void for_each_part(std::uint64_t offset, std::uint64_t bytes, Visit visit) {
        for (const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, map_.extent_bytes); offset < end;) {
            const std::uint64_t cell = offset / map_.cell_bytes;
            const std::uint64_t part = std::min(end, (cell + 1) * map_.cell_bytes) - offset;
            visit(map_.cells[cell], part);
            offset += part;
        }
    }

    void add_pages() {
        const heap::Survey survey(reinterpret_cast<const std::byte*>(file_.ranges().durable), map_.capacity_bytes);
        ByteCount free_run = 0;
        survey.visit([&](const PagesInUse& pages) {
            if (heap::is_nobodys(pages.use))
                free_run += pages.count * page_bytes;
            else
                add_fitting(std::exchange(free_run, 0));
            add(pages);
            return true;
        });
        add_fitting(free_run);
    }

    /// A stretch of free space, for availability.
    void add_fitting(ByteCount bytes) {
        for (std::size_t i = 0; i < available_sizes.size(); ++i) fitting_[i] += bytes / available_sizes[i] * available_sizes[i];
    }

    void add(const PagesInUse& pages) {
        const std::uint64_t offset = std::uint64_t{pages.first} * page_bytes;
        const std::uint64_t bytes = std::uint64_t{pages.count} * page_bytes;
        switch (pages.use) {
            case PageUse::metadata:
            case PageUse::directory: for_each_part(offset, bytes, [](MapCell& cell, std::uint64_t part) { cell.metadata_bytes += part; }); return;
            case PageUse::available: for_each_part(offset, bytes, [](MapCell& cell, std::uint64_t part) { cell.free_bytes += part; }); return;
            case PageUse::zone:
            case PageUse::released: for_each_part(offset, bytes, [](MapCell& cell, std::uint64_t part) { cell.released_bytes += part; }); return;
            case PageUse::growth: for_each_part(offset, bytes, [](MapCell& cell, std::uint64_t part) { cell.growth_bytes += part; }); return;
            case PageUse::small:
            case PageUse::packed:
            case PageUse::run: break;
        }
        block_pages_ += pages.count;
        map_.live_blocks += pages.blocks;
        fitting_[0] += pages.free_pieces * available_sizes[0];
        std::uint64_t live = pages.live_bytes;
        for_each_part(offset, bytes, [&](MapCell& cell, std::uint64_t part) {
            const std::uint64_t taken = std::min(part, live);  // a run is taken from its beginning, a page lies in one cell
            cell.live_bytes += taken;
            cell.free_bytes += part - taken;
            live -= taken;
        });
        const ByteCount block = pages.block_bytes != 0 ? pages.block_bytes : pages.live_bytes / std::max<std::uint64_t>(1, pages.blocks);
        const std::size_t key = size_key_of(block);
        map_.colours[key].bytes += pages.live_bytes;
        map_.colours[key].blocks += pages.blocks;
        if (options_.colour == MapColour::size) count_size(key, offset, pages.live_bytes);
    }

    /// Pages come in ascending order, so the sums of one cell at a time suffice.
    void count_size(std::size_t key, std::uint64_t offset, std::uint64_t bytes) {
        for_each_part(offset, bytes, [&](MapCell& cell, std::uint64_t part) {
            if (&cell != counted_) {
                counted_ = &cell;
                sizes_here_ = {};
            }
            sizes_here_[key] += part;
            if (sizes_here_[key] >= sizes_here_[cell.colour]) cell.colour = static_cast<std::uint32_t>(key);
        });
    }

    // By owner: walks one after the other, so each cell needs the foremost owner only.

    struct Best {
        std::uint64_t bytes = 0;
        std::uint32_t owner = 0;
        std::uint64_t here = 0;  ///< of the owner that is being counted
    };

    struct Owner final : inspect::BlockWalk::Listener {
        explicit Owner(MapMaker& whole) : maker(whole) {}
        void reached(const heap::Block& block) override {
            key.bytes += block.usable_bytes;
            ++key.blocks;
            maker.for_each_part(block.offset.value, block.usable_bytes, [&](MapCell& cell, std::uint64_t part) {
                maker.best_[static_cast<std::size_t>(&cell - maker.map_.cells.data())].here += part;
            });
            maker.tell(block.usable_bytes, maker.map_.sum.live_bytes);
        }
        MapMaker& maker;
        MapKey key;
    };

    void settle(Owner& owner, std::vector<MapKey>& keys) {
        for (Best& best : best_) {
            if (best.here > best.bytes) {
                best.bytes = best.here;
                best.owner = static_cast<std::uint32_t>(keys.size());
            }
            best.here = 0;
        }
        keys.push_back(owner.key);
    }

    void colour_by_owner() {
        for (const MapCell& cell : map_.cells) map_.sum.live_bytes += cell.live_bytes;  // for the progress
        inspect::BlockWalk walk(file_);
        std::vector<MapKey> keys;
        std::vector<heap::Root> roots = file_.engine().roots();
        std::sort(roots.begin(), roots.end(), [](const heap::Root& a, const heap::Root& b) { return a.name < b.name; });
        for (const heap::Root& root : roots) {
            Owner owner(*this);
            owner.key.label = root.name;
            walk.from(root.object, owner);
            settle(owner, keys);
        }
        Owner nobody(*this);
        nobody.key.label = "nothing holds it";
        file_.engine().for_each_block([&](const heap::Block& block) {
            if (!walk.visited().contains(inspect::id_of(block.offset))) nobody.reached(block);
            return true;
        });
        settle(nobody, keys);
        map_.sum = {};
        std::vector<std::uint32_t> key_of(best_.size());
        std::ranges::transform(best_, key_of.begin(), &Best::owner);
        set_colours(std::move(keys), key_of, "other objects");
    }

    void colour_by_type() {
        std::vector<std::map<std::uint32_t, std::uint64_t>> bytes_of(map_.cells.size());  // by type
        const auto take = [&](const heap::Block& block, std::uint32_t type) {
            for_each_part(block.offset.value, block.usable_bytes,
                          [&](MapCell& cell, std::uint64_t part) { bytes_of[static_cast<std::size_t>(&cell - map_.cells.data())][type] += part; });
        };
        inspect::TypeWalk walk(file_, take, options_.progress);
        walk.run(stored_objects(heap_));
        std::vector<MapKey> keys;
        for (const TypeUse& use : walk.uses()) keys.push_back({use.type, use.block_bytes, use.blocks});
        keys.push_back({"no shape tells of it", 0, 0});
        file_.engine().for_each_block([&](const heap::Block& block) {
            if (walk.is_known(block.offset)) return true;
            keys.back().bytes += block.usable_bytes;
            ++keys.back().blocks;
            take(block, static_cast<std::uint32_t>(keys.size() - 1));
            return true;
        });
        std::vector<std::uint32_t> key_of;
        for (const auto& types : bytes_of) {
            const auto most = std::ranges::max_element(types, {}, [](const auto& of_type) { return of_type.second; });
            key_of.push_back(most == types.end() ? 0 : most->first);
        }
        set_colours(std::move(keys), key_of, "other types");
    }

    /// The largest ones in front, then the rest in one, then the last key, which is nobody's. `key_of`: of each cell.
    void set_colours(std::vector<MapKey> keys, const std::vector<std::uint32_t>& key_of, const char* others) {
        std::vector<std::uint32_t> order;
        for (std::uint32_t i = 0; i + 1 < keys.size(); ++i)
            if (keys[i].blocks != 0 || options_.colour == MapColour::owner) order.push_back(i);
        std::sort(order.begin(), order.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return keys[a].bytes != keys[b].bytes ? keys[a].bytes > keys[b].bytes : a < b; });
        std::vector<std::uint32_t> colour_of(keys.size(), 0);
        map_.colours.clear();
        for (std::size_t i = 0; i < order.size(); ++i) {
            if (i < owners_max) {
                colour_of[order[i]] = static_cast<std::uint32_t>(i);
                map_.colours.push_back(keys[order[i]]);
                continue;
            }
            if (i == owners_max) map_.colours.push_back({others, 0, 0});
            colour_of[order[i]] = owners_max;
            map_.colours.back().bytes += keys[order[i]].bytes;
            map_.colours.back().blocks += keys[order[i]].blocks;
        }
        colour_of.back() = static_cast<std::uint32_t>(map_.colours.size());
        map_.colours.push_back(keys.back());
        for (std::size_t i = 0; i < map_.cells.size(); ++i) map_.cells[i].colour = colour_of[key_of[i]];
    }

    void tell(std::uint64_t bytes, std::uint64_t of_bytes) {
        done_ += bytes;
        if (!options_.progress || done_ - told_ < 1_MiB) return;
        told_ = done_;
        options_.progress(done_, of_bytes);
    }

    const ArchiveHeap& heap_;
    store::HeapFile& file_;
    const MapOptions& options_;
    HeapMap map_;
    std::uint64_t block_pages_ = 0;
    std::array<std::uint64_t, available_sizes.size()> fitting_{};
    const MapCell* counted_ = nullptr;
    std::array<std::uint64_t, size_keys.size()> sizes_here_{};
    std::vector<Best> best_;
    std::uint64_t done_ = 0;
    std::uint64_t told_ = 0;
};

}  // namespace

HeapMap map_of(const ArchiveHeap& heap, const MapOptions& options) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    return MapMaker(heap, file, options).run();
}

}  // namespace taiyen
