#include <taiyen/object/check_outs.hpp>

#include <algorithm>
#include <string>

#include <taiyen/base/error.hpp>

#include "object/check_out_engine.hpp"

namespace taiyen::object {

Holding::Holding(std::span<const std::int64_t> ids, Access access) : access_(access) {
    if (ids.size() > items_inside) more_ = std::make_unique<Item[]>(ids.size());
    Item* const items = data();
    std::size_t count = 0;
    for (const std::int64_t id : ids) {
        if (ids.size() > items_inside) {
            items[count++].id = id;
            continue;
        }
        // A few are put in order while they come.
        std::size_t at = count;
        while (at != 0 && items[at - 1].id > id) --at;
        if (at != 0 && items[at - 1].id == id) continue;
        for (std::size_t i = count; i != at; --i) items[i].id = items[i - 1].id;
        items[at].id = id;
        ++count;
    }
    if (ids.size() > items_inside) {
        std::sort(items, items + count, [](const Item& a, const Item& b) { return a.id < b.id; });
        count = static_cast<std::size_t>(std::unique(items, items + count, [](const Item& a, const Item& b) { return a.id == b.id; }) - items);
    }
    for (std::size_t i = 0; i < count; ++i) items[i].entry = nullptr;
    count_ = static_cast<std::uint32_t>(count);
}

void Holding::release() noexcept {
    if (owner_ != nullptr) owner_->give_back(*this);
}

void Holding::take(Holding& from) noexcept {
    owner_ = std::exchange(from.owner_, nullptr);
    count_ = from.count_;
    stripe_ = from.stripe_;
    access_ = from.access_;
    more_ = std::move(from.more_);
    if (!more_) std::copy_n(from.inside_.begin(), count_, inside_.begin());
    missing_ = std::move(from.missing_);
    from.count_ = 0;
}

void* Holding::find(std::int64_t id) const noexcept {
    const std::span<const Item> all = items();
    const auto found = std::lower_bound(all.begin(), all.end(), id, [](const Item& item, std::int64_t wanted) { return item.id < wanted; });
    return found != all.end() && found->id == id ? found->object : nullptr;
}

std::unique_ptr<CheckOuts> make_check_outs(CheckOuts::Options options) { return std::make_unique<CheckOutEngine>(std::move(options)); }

void throw_not_checked_out(std::int64_t id) {
    throw Error(errc::invalid_argument, "object " + std::to_string(id) + " isn't checked out here; ask for its id, too");
}

void throw_only_shared(std::int64_t id) {
    throw Error(errc::invalid_argument, "object " + std::to_string(id) + " is checked out for reading; check it out exclusively to change it");
}

}  // namespace taiyen::object
