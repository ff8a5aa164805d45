#include <taiyen/ordered/ordered_store.hpp>
#include <taiyen/ordered/ordered_store_view.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

#include <taiyen/base/error.hpp>

#include "ordered/store_cursor.hpp"
#include "ordered/store_tree.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen {

void ordered::throw_other_length(std::size_t expected, std::size_t found) {
    throw Error(errc::type_mismatch, "a view of an ordered store expects " + std::to_string(expected) + " bytes and found " + std::to_string(found) +
                                         "; give each type of keys and values a store of its own");
}

namespace {

heap::VolatileCore& core_of(const VolatileHeap& heap) {
    heap::VolatileCore* const core = heap::VolatileCore::core_of(heap);
    if (core == nullptr) heap::throw_closed();
    return *core;
}

void check_key(std::string_view key) {
    if (key.size() > OrderedStore::key_bytes_max)
        throw Error(errc::invalid_argument, "a key of an ordered store has at most 65536 bytes, not " + std::to_string(key.size()) +
                                                "; take a hash of it, and keep the key with the value");
}

}  // namespace

OrderedStore::OrderedStore(VolatileHeap& heap) : tree_(std::make_unique<ordered::StoreTree>(core_of(heap))) {}
OrderedStore::OrderedStore(OrderedStore&&) noexcept = default;
OrderedStore& OrderedStore::operator=(OrderedStore&&) noexcept = default;
OrderedStore::~OrderedStore() = default;

// Views.

OrderedStore::View::View(View&& from) noexcept : slot_(std::exchange(from.slot_, nullptr)), block_(from.block_), bytes_(from.bytes_) {
    if (block_ == nullptr) std::memcpy(inside_, from.inside_, bytes_);
}
OrderedStore::View& OrderedStore::View::operator=(View&& from) noexcept {
    if (this != &from) {
        this->~View();
        ::new (this) View(std::move(from));
    }
    return *this;
}
OrderedStore::View::~View() {
    if (slot_ != nullptr) epochs::leave(*slot_);
}

OrderedStore::View OrderedStore::view(std::string_view key) const {
    static_assert(sizeof View::inside_ == ordered::StoreNode::value_inside);
    View view;
    const EpochGuard guard;
    ordered::StoreTree::Value value;
    if (!tree_->find(key, value)) return view;
    view.slot_ = &epochs::enter();
    view.bytes_ = value.text().size();
    if (value.block != nullptr)
        view.block_ = value.block->data();
    else
        std::memcpy(view.inside_, value.inside, view.bytes_);
    return view;
}

// One key.

std::optional<std::string> OrderedStore::get(std::string_view key) const {
    const EpochGuard guard;
    ordered::StoreTree::Value value;
    if (!tree_->find(key, value)) return std::nullopt;
    return std::string(value.text());
}

std::optional<std::size_t> OrderedStore::get(std::string_view key, std::span<char> buffer) const {
    const EpochGuard guard;
    ordered::StoreTree::Value value;
    if (!tree_->find(key, value)) return std::nullopt;
    const std::string_view text = value.text();
    const std::size_t copied = std::min(text.size(), buffer.size());
    if (copied != 0) std::memcpy(buffer.data(), text.data(), copied);
    return text.size();
}

bool OrderedStore::contains(std::string_view key) const {
    const EpochGuard guard;
    ordered::StoreTree::Value value;
    return tree_->find(key, value);
}

bool OrderedStore::set(std::string_view key, std::string_view value) {
    check_key(key);
    return tree_->put(key, value, true);
}

bool OrderedStore::insert(std::string_view key, std::string_view value) {
    check_key(key);
    return tree_->put(key, value, false);
}

bool OrderedStore::erase(std::string_view key) { return tree_->erase(key); }

bool OrderedStore::compare_exchange(std::string_view key, std::optional<std::string_view> expected, std::optional<std::string_view> desired) {
    check_key(key);
    if (expected) return tree_->compare_exchange(key, *expected, desired);
    return desired ? tree_->put(key, *desired, false) : !contains(key);
}

std::int64_t OrderedStore::fetch_add(std::string_view key, std::int64_t added) {
    check_key(key);
    return static_cast<std::int64_t>(tree_->fetch_add(key, static_cast<std::uint64_t>(added)));
}

void OrderedStore::apply(const Batch& batch) {
    const std::vector<Batch::Operation>& operations = batch.operations_;
    for (const Batch::Operation& operation : operations) check_key(operation.key);
    std::vector<std::size_t> order(operations.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
        const int sign = operations[one].key.compare(operations[other].key);
        return sign != 0 ? sign < 0 : one < other;
    });
    for (const std::size_t i : order) {
        const Batch::Operation& operation = operations[i];
        if (operation.value)
            tree_->put(operation.key, *operation.value, true);
        else
            tree_->erase(operation.key);
    }
}

// Many keys.

OrderedStore::Cursor::Cursor(std::unique_ptr<ordered::StoreCursor> cursor) noexcept : cursor_(std::move(cursor)) {}
OrderedStore::Cursor::Cursor(Cursor&&) noexcept = default;
OrderedStore::Cursor& OrderedStore::Cursor::operator=(Cursor&&) noexcept = default;
OrderedStore::Cursor::~Cursor() = default;
bool OrderedStore::Cursor::seek(std::string_view key) { return cursor_->seek(key); }
bool OrderedStore::Cursor::seek_at_most(std::string_view key) { return cursor_->seek_at_most(key); }
bool OrderedStore::Cursor::seek_last() { return cursor_->seek_last(); }
bool OrderedStore::Cursor::next() { return cursor_->next(); }
bool OrderedStore::Cursor::previous() { return cursor_->previous(); }
OrderedStore::Cursor::operator bool() const noexcept { return cursor_->is_there(); }
std::string_view OrderedStore::Cursor::key() const noexcept { return cursor_->key(); }
std::string_view OrderedStore::Cursor::value() const noexcept { return cursor_->value(); }

OrderedStore::Cursor OrderedStore::cursor() const { return Cursor(std::make_unique<ordered::StoreCursor>(*tree_)); }

std::vector<OrderedStore::Element> OrderedStore::scan(std::string_view from, std::size_t count) const {
    std::vector<Element> found;
    ordered::StoreCursor cursor(*tree_);
    for (bool is_there = count != 0 && cursor.seek(from); is_there; is_there = found.size() != count && cursor.next())
        found.emplace_back(cursor.key(), cursor.value());
    return found;
}

std::vector<OrderedStore::Element> OrderedStore::scan_reverse(std::optional<std::string_view> from, std::size_t count) const {
    std::vector<Element> found;
    ordered::StoreCursor cursor(*tree_);
    for (bool is_there = count != 0 && (from ? cursor.seek_at_most(*from) : cursor.seek_last()); is_there;
         is_there = found.size() != count && cursor.previous())
        found.emplace_back(cursor.key(), cursor.value());
    return found;
}

std::uint64_t OrderedStore::count(std::string_view from, std::optional<std::string_view> to) const {
    ordered::StoreCursor cursor(*tree_);
    cursor.seek(from);
    return cursor.count_before(to);
}

// The whole.

std::uint64_t OrderedStore::size() const noexcept { return tree_->memory().keys(); }

OrderedStoreStats OrderedStore::stats() const {
    const ordered::StoreMemory& memory = tree_->memory();
    return {memory.keys(), memory.nodes(), memory.slab_bytes(), memory.retired(), tree_->height()};
}

void OrderedStore::trim() noexcept { tree_->memory().collect(); }

bool OrderedStore::is_sound() const { return tree_->is_sound(); }

}  // namespace taiyen
