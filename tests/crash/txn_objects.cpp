#include "crash/txn_objects.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/checksum.hpp"
#include "crash/heap_life.hpp"

namespace taiyen::crash {

std::byte* TxnObjects::find(const std::string& name) const {
    const auto root = file_->engine().find_root(name);
    return root ? reinterpret_cast<std::byte*>(file_->ranges().durable + root->object.value) : nullptr;
}

void TxnObjects::touch(void* address, ByteCount bytes) const {
    if (transaction_ != nullptr && declares_) transaction_->touch(address, bytes);
}

std::byte* TxnObjects::own_block(const std::string& name, ByteCount size) {
    heap::Engine& engine = file_->engine();
    std::byte* const before = find(name);
    auto* const block = static_cast<std::byte*>(before == nullptr ? engine.allocate(size) : engine.resize(before, size));
    if (before != nullptr) engine.remove_root(name);
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(block) - file_->ranges().durable);
    engine.add_root({.name = name, .fingerprint = "bytes", .object = {offset}, .bytes = size, .count = 1});
    return block;
}

void TxnObjects::set(const std::string& name, ByteCount size, std::uint64_t seed) {
    std::byte* const block = own_block(name, size);
    model_[name] = bytes_for(size, seed);
    touch(block, size);
    std::memcpy(block, model_[name].data(), size);
}

void TxnObjects::set_sparse(const std::string& name, ByteCount size) {
    std::byte* const block = own_block(name, size);
    std::vector<std::byte>& expected = model_[name];
    expected.assign(size, std::byte{0});
    expected.back() = std::byte{1};
    // A block that was never used is zero.
    if (!is_zero({block, size - 1})) throw std::runtime_error("the heap's fresh end is not zero");
    touch(block + size - 1, 1);
    block[size - 1] = std::byte{1};
}

void TxnObjects::change(const std::string& name, std::uint64_t seed) {
    std::vector<std::byte>& expected = model_.at(name);
    const std::size_t at = seed % expected.size();
    const std::size_t count = std::min<std::size_t>(expected.size() - at, 1 + seed / 7 % 64);
    const auto bytes = bytes_for(count, seed);
    std::memcpy(expected.data() + at, bytes.data(), count);
    touch(find(name) + at, count);
    std::memcpy(find(name) + at, bytes.data(), count);
}

void TxnObjects::drop(const std::string& name) {
    std::byte* const block = find(name);
    file_->engine().remove_root(name);
    file_->engine().deallocate(block);
    model_.erase(name);
}

void TxnObjects::change_something(std::mt19937_64& random) {
    const std::string name(1, static_cast<char>('a' + random() % 4));
    const std::uint64_t what = random() % 8;
    if (!model_.contains(name) || what == 0)
        set(name, 1 + random() % 3000, random());
    else if (what == 1)
        drop(name);
    else
        change(name, random());
}

void TxnObjects::set_number(std::uint64_t number) {
    std::byte* block = find(number_name);
    if (block == nullptr) block = own_block(number_name, sizeof number);
    touch(block, sizeof number);
    std::memcpy(block, &number, sizeof number);
    std::vector<std::byte>& expected = model_[number_name];
    expected.resize(sizeof number);
    std::memcpy(expected.data(), &number, sizeof number);
}

std::uint64_t TxnObjects::number() const {
    std::uint64_t number = 1;
    if (const std::byte* const block = find(number_name)) std::memcpy(&number, block, sizeof number);
    return number;
}

std::byte* TxnObjects::owned() const {
    std::byte* block = nullptr;
    if (const std::byte* const owner = find("owner")) std::memcpy(&block, owner + sizeof block, sizeof block);
    return block;
}

void TxnObjects::set_owner(const std::byte* block) {
    constexpr ByteCount size = 4 * sizeof block;
    std::byte* const owner = find("owner") != nullptr ? find("owner") : own_block("owner", size);
    touch(owner, size);
    std::memset(owner, 0, size);
    std::memcpy(owner + sizeof block, &block, sizeof block);
    model_["owner"].assign(owner, owner + size);
}

void TxnObjects::compare(const Model& expected, const std::string& what) const {
    const auto roots = file_->engine().roots();
    if (roots.size() != expected.size())
        throw std::runtime_error(what + " has " + std::to_string(expected.size()) + " objects, the heap " + std::to_string(roots.size()));
    for (const heap::Root& root : roots) {
        const auto found = expected.find(root.name);
        if (found == expected.end() || found->second.size() != root.bytes)
            throw std::runtime_error(what + " has no object '" + root.name + "' of " + std::to_string(root.bytes) + " bytes");
        if (std::memcmp(reinterpret_cast<const std::byte*>(file_->ranges().durable + root.object.value), found->second.data(), root.bytes) != 0)
            throw std::runtime_error("object '" + root.name + "' differs from " + what);
    }
}

}  // namespace taiyen::crash
