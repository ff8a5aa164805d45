#include "io/disks/simulated_file.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include <sys/mman.h>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/system_error.hpp"

namespace taiyen::io {

using Node = SimulatedStorage::Node;

namespace {

void check_direct(const void* memory, ByteCount length, std::uint64_t offset) {
    TAIYEN_CHECK(reinterpret_cast<std::uintptr_t>(memory) % direct_alignment == 0);
    TAIYEN_CHECK(length % direct_alignment == 0);
    TAIYEN_CHECK(offset % direct_alignment == 0);
}

}  // namespace

SimulatedFile::SimulatedFile(SimulatedStorage& storage, std::shared_ptr<Node> node, std::filesystem::path path, Access access)
    : storage_(storage), node_(std::move(node)), path_(std::move(path)), access_(access), life_(storage.life_) {}

SimulatedFile::~SimulatedFile() {
    const std::scoped_lock lock(storage_.mutex_);
    if (life_ == storage_.life_) unlock();
    node_.reset();
}

FileInfo SimulatedFile::info() const { return alive().info(); }

ByteCount SimulatedFile::read(std::span<std::byte> bytes, std::uint64_t offset) const { return alive().read(bytes, offset); }

ByteCount SimulatedFile::read_direct(std::span<std::byte> bytes, std::uint64_t offset) const {
    check_direct(bytes.data(), bytes.size(), offset);
    return alive().read_durable(bytes, offset);
}

void SimulatedFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
    change("writing", offset, [&](Node& node) { node.write(bytes, offset); });
}

void SimulatedFile::write_durable(std::span<const std::byte> bytes, std::uint64_t offset) {
    check_direct(bytes.data(), bytes.size(), offset);
    change("writing", offset, [&](Node& node) {
        node.write(bytes, offset);
        for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes.size(); ++page) node.pending_.forget(page);
    });
}

void SimulatedFile::sync() {
    const std::scoped_lock lock(storage_.mutex_);
    alive().synced();
}

void SimulatedFile::lose_unsynced() {
    const std::scoped_lock lock(storage_.mutex_);
    Node& node = alive();
    for (const Node::SavedPages::Page& page : node.pending_.pages())
        node.lost_.save(page.number, page.state, page.state == Node::PageState::data ? page.bytes->data() : nullptr);
    node.pending_.clear();
}

void SimulatedFile::allocate(std::uint64_t offset, ByteCount length) {
    change("allocating", offset, [&](Node& node) { node.allocate(offset, length); });
}

void SimulatedFile::punch(std::uint64_t offset, ByteCount length) {
    change("punching", offset, [&](Node& node) { node.punch(offset, length); });
}

std::vector<File::Extent> SimulatedFile::data_extents(std::uint64_t offset, ByteCount length) const {
    const Node& node = alive();
    const std::uint64_t size = node.size_bytes();
    const std::uint64_t last = offset >= size ? offset : offset + std::min<std::uint64_t>(length, size - offset);
    std::vector<Extent> extents;
    for (std::uint64_t at = offset; at < last;) {
        const std::uint64_t next = std::min<std::uint64_t>(last, round_down(at, page_bytes) + page_bytes);
        if (node.page_state(at / page_bytes) == Node::PageState::data) {
            if (!extents.empty() && extents.back().offset + extents.back().length == at)
                extents.back().length += next - at;
            else
                extents.push_back({at, next - at});
        }
        at = next;
    }
    return extents;
}

void SimulatedFile::resize(ByteCount size_bytes) {
    change("changing its size", size_bytes, [&](Node& node) { node.resize(size_bytes); });
}

bool SimulatedFile::try_lock(Lock kind) {
    const std::scoped_lock lock(storage_.mutex_);
    Node& node = alive();
    const bool others_share = node.shared_.size() > node.shared_.count(this);
    const bool other_excludes = node.exclusive_ != nullptr && node.exclusive_ != this;
    if (other_excludes || (kind == Lock::exclusive && others_share)) return false;
    unlock();
    if (kind == Lock::exclusive)
        node.exclusive_ = this;
    else
        node.shared_.insert(this);
    return true;
}

void SimulatedFile::map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const {
    int access = PROT_NONE;
    if (protection == Protection::read)
        access = PROT_READ;
    else if (protection == Protection::read_write)
        access = PROT_READ | PROT_WRITE;
    if (::mmap(address, length, access, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, alive().descriptor(), static_cast<off_t>(offset)) == MAP_FAILED)
        throw_errno(errno, path_, offset, "mapping " + std::to_string(length) + " bytes");
}

Node& SimulatedFile::alive() const {
    if (life_ != storage_.life_) throw Error(errc::io_error, path_, "the simulated disk lost power while this file was open; open it again");
    return *node_;
}

void SimulatedFile::change(const char* attempt, std::uint64_t offset, const std::function<void(Node&)>& change) {
    const std::scoped_lock lock(storage_.mutex_);
    if (access_ == Access::read_only) throw Error(errc::read_only, path_, "was opened for reading; open it for writing");
    if (offset > std::uint64_t{1} << 46U) throw_errno(EFBIG, path_, offset, attempt);
    try {
        change(alive());
    } catch (const Error& error) {
        if (!error.path().empty()) throw;
        throw Error(static_cast<errc>(error.code().value()), path_, offset, error.what());
    }
}

void SimulatedFile::unlock() {
    if (node_->exclusive_ == this) node_->exclusive_ = nullptr;
    node_->shared_.erase(this);
}

}  // namespace taiyen::io
