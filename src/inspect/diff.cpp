#include <taiyen/inspect/diff.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include "inspect/block_walk.hpp"
#include "inspect/heap_image.hpp"
#include "inspect/type_text.hpp"
#include "store/heap_access.hpp"

namespace taiyen {
namespace {

using inspect::block_of;
using inspect::BlockSet;
using inspect::BlockWalk;
using inspect::id_of;

constexpr std::size_t told_step = std::size_t{1} << 20U;

/// Which blocks live in a heap, and who holds them: what is kept of it when it is closed.
class Holdings {
public:
    struct Object {
        heap::Root root;
        BlockSet held;
    };

    Holdings(const store::HeapFile& file, const std::function<void(std::size_t)>& tell) {
        file.engine().for_each_block([&](const heap::Block& block) {
            begins_.insert(id_of(block.offset));
            ends_.insert(id_of({round_up(block.offset.value + block.usable_bytes, 8)}));
            bytes_ += block.usable_bytes;
            return true;
        });
        BlockWalk walk(file);
        for (heap::Root& root : file.engine().roots()) objects_.push_back({std::move(root), {}});
        std::sort(objects_.begin(), objects_.end(), [](const Object& a, const Object& b) { return a.root.name < b.root.name; });
        for (Object& object : objects_) {
            Collector collector(object.held, tell);
            walk.from(object.root.object, collector);
        }
        unheld_ = begins_;
        unheld_ -= walk.visited();
    }

    std::vector<Object>& objects() { return objects_; }
    const BlockSet& unheld() const { return unheld_; }
    std::uint64_t blocks() const { return begins_.size(); }
    std::size_t bytes() const { return bytes_; }
    bool has(std::int64_t block) const { return begins_.contains(block); }
    /// Requires: has. Blocks don't overlap, so its end is the next one.
    std::size_t size_of(std::int64_t block) const { return static_cast<std::size_t>(*ends_.upper_bound(block) - block) * 8; }

private:
    struct Collector final : BlockWalk::Listener {
        Collector(BlockSet& set, const std::function<void(std::size_t)>& teller) : held(set), tell(teller) {}
        void reached(const heap::Block& block) override {
            held.insert(id_of(block.offset));
            tell(block.usable_bytes);
        }
        BlockSet& held;
        const std::function<void(std::size_t)>& tell;
    };

    std::vector<Object> objects_;
    BlockSet unheld_;
    BlockSet begins_;
    BlockSet ends_;
    std::size_t bytes_ = 0;
};

class Differ {
public:
    explicit Differ(const DiffOptions& options) : options_(options) {}

    void look_at_first(const store::HeapFile& file) {
        uuid_ = file.files().backing().header.heap;
        base_ = file.ranges().durable;
        diff_.extent_before = file.engine().extent();
        total_ = 3 * file.engine().stats().live_bytes;  // a guess: the second one is about as large, and compared besides
        first_.emplace(file, [this](std::size_t bytes) { tell(bytes); });
        diff_.live_blocks_before = first_->blocks();
        image_.emplace(file);
    }

    HeapDiff compare_with(const store::HeapFile& file) {
        diff_.same_heap = file.files().backing().header.heap == uuid_;
        diff_.same_address = file.ranges().durable == base_ || file.links() == heap::Links::distances;
        diff_.extent_after = file.engine().extent();
        second_.emplace(file, [this](std::size_t bytes) { tell(bytes); });
        diff_.live_blocks_after = second_->blocks();
        live_ = reinterpret_cast<const std::byte*>(file.ranges().durable);

        std::map<std::string, std::pair<Holdings::Object*, Holdings::Object*>> names;
        for (Holdings::Object& object : first_->objects()) names[object.root.name].first = &object;
        for (Holdings::Object& object : second_->objects()) names[object.root.name].second = &object;
        const BlockSet none;
        for (const auto& [name, both] : names) {
            ObjectDiff& object = diff_.objects.emplace_back();
            object.name = name;
            if (both.first != nullptr) object.type_before = inspect::type_text(both.first->root.fingerprint);
            if (both.second != nullptr) object.type_after = inspect::type_text(both.second->root.fingerprint);
            compare(both.first != nullptr ? both.first->held : none, both.second != nullptr ? both.second->held : none, object);
            judge(object, both.first, both.second);
            add_to_sum(object);
        }
        compare(first_->unheld(), second_->unheld(), diff_.unheld);
        if (has_differences(diff_.unheld)) diff_.unheld.change = ObjectChange::changed;
        add_to_sum(diff_.unheld);
        diff_.pages_changed = pages_.size();
        if (options_.pages) list_pages();
        return std::move(diff_);
    }

private:
    static bool has_differences(const ObjectDiff& object) { return object.blocks_added + object.blocks_removed + object.blocks_changed != 0; }

    static void judge(ObjectDiff& object, const Holdings::Object* before, const Holdings::Object* after) {
        if (before == nullptr) {
            object.change = ObjectChange::added;
        } else if (after == nullptr) {
            object.change = ObjectChange::removed;
        } else if (before->root.fingerprint != after->root.fingerprint || before->root.count != after->root.count ||
                   before->root.bytes != after->root.bytes) {
            object.change = ObjectChange::retyped;
        } else if (has_differences(object) || before->root.object != after->root.object) {
            object.change = ObjectChange::changed;
        }
    }

    void add_to_sum(const ObjectDiff& object) {
        ObjectDiff& sum = diff_.sum;
        if (object.change != ObjectChange::same) sum.change = ObjectChange::changed;
        sum.blocks_added += object.blocks_added;
        sum.blocks_removed += object.blocks_removed;
        sum.blocks_changed += object.blocks_changed;
        sum.bytes_added += object.bytes_added;
        sum.bytes_removed += object.bytes_removed;
        sum.bytes_changed += object.bytes_changed;
    }

    /// What was held before and lives no more, and what is held now against what stood there. A block that another object holds now is compared there.
    void compare(const BlockSet& before, const BlockSet& after, ObjectDiff& object) {
        for (const std::int64_t block : before) {
            if (second_->has(block)) continue;
            const std::size_t bytes = first_->size_of(block);
            ++object.blocks_removed;
            object.bytes_removed += bytes;
            note(ObjectChange::removed, block, bytes, bytes, object.name);
            note_pages(block_of(block).value, bytes);
        }
        for (const std::int64_t block : after) {
            const std::size_t bytes = second_->size_of(block);
            tell(bytes);
            if (!first_->has(block)) {
                ++object.blocks_added;
                object.bytes_added += bytes;
                note(ObjectChange::added, block, bytes, bytes, object.name);
                note_pages(block_of(block).value, bytes);
            } else if (const std::size_t changed = compare_bytes(block, bytes); changed != 0) {
                ++object.blocks_changed;
                object.bytes_changed += changed;
                note(ObjectChange::changed, block, bytes, changed, object.name);
            }
        }
    }

    /// How many bytes differ, of a block that both heaps have.
    std::size_t compare_bytes(std::int64_t block, std::size_t bytes) {
        const std::uint64_t begin = block_of(block).value;
        const std::size_t before = first_->size_of(block);
        const std::size_t common = std::min(before, bytes);
        const std::size_t longer = std::max(before, bytes) - common;
        std::size_t changed = longer;
        if (longer != 0) note_pages(begin + common, longer);
        for (std::uint64_t at = begin; at < begin + common;) {
            const std::uint64_t end = std::min<std::uint64_t>(round_up(at + 1, page_bytes), begin + common);
            if (std::memcmp(image_->data() + at, live_ + at, end - at) != 0) {
                pages_.insert(static_cast<std::int64_t>(at / page_bytes));
                for (std::uint64_t i = at; i < end; ++i) changed += image_->data()[i] != live_[i] ? 1 : 0;
            }
            at = end;
        }
        return changed;
    }

    void note(ObjectChange change, std::int64_t block, std::size_t bytes, std::size_t changed, const std::string& holder) {
        if (diff_.blocks.size() < options_.listed_max) diff_.blocks.push_back({change, block_of(block).value, bytes, changed, holder});
    }
    void note_pages(std::uint64_t begin, std::size_t bytes) {
        for (std::uint64_t page = begin / page_bytes; page <= (begin + bytes - 1) / page_bytes; ++page)
            pages_.insert(static_cast<std::int64_t>(page));
    }

    void list_pages() {
        for (const std::int64_t page : pages_) {
            const std::uint64_t offset = static_cast<std::uint64_t>(page) * page_bytes;
            if (!diff_.pages.empty() && diff_.pages.back().offset + diff_.pages.back().bytes == offset)
                diff_.pages.back().bytes += page_bytes;
            else
                diff_.pages.push_back({offset, page_bytes});
        }
    }

    void tell(std::size_t bytes) {
        done_ += bytes;
        if (options_.progress && done_ - told_ >= told_step) {
            told_ = done_;
            options_.progress(std::min(done_, total_), total_);
        }
    }

    const DiffOptions& options_;
    HeapDiff diff_;
    Uuid uuid_;
    std::uintptr_t base_ = 0;
    std::optional<Holdings> first_;
    std::optional<inspect::HeapImage> image_;
    std::optional<Holdings> second_;
    const std::byte* live_ = nullptr;
    BlockSet pages_;
    std::size_t done_ = 0;
    std::size_t told_ = 0;
    std::size_t total_ = 0;
};

}  // namespace

HeapDiff diff_heaps(const std::filesystem::path& before, const std::filesystem::path& after, const PersistentOptions& options_before,
                    const PersistentOptions& options_after, const DiffOptions& how) {
    Differ differ(how);
    const auto open = [](const std::filesystem::path& path, const PersistentOptions& options) {
        return HeapAccess::open(path, store::OpenMode::read_only, HeapKind::archive, options);
    };
    differ.look_at_first(*open(before, options_before));  // closed again: copies of a heap have one address
    return differ.compare_with(*open(after, options_after));
}

}  // namespace taiyen
