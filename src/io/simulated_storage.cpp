#include "io/simulated_storage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include <taiyen/base/check.hpp>

#include "io/system_error.hpp"
#include "io/unsynced.hpp"

namespace taiyen::io {

namespace fs = std::filesystem;
using Node = SimulatedStorage::Node;

// ---------------------------------------------------------------------------------------------- pages

Node::SavedPages::Page& Node::SavedPages::save(std::uint64_t page, PageState state, const std::byte* bytes) {
    if (slots_.size() <= page) {
        slots_.resize(page + 1);
    }
    if (used_ == pages_.size()) {
        pages_.emplace_back();
    }
    Page& saved = pages_[used_++];
    slots_[page] = static_cast<std::uint32_t>(used_);
    saved.number = page;
    saved.state = state;
    if (state == PageState::data) {
        if (!saved.bytes) {
            saved.bytes = std::make_unique<std::array<std::byte, page_bytes>>();
        }
        std::memcpy(saved.bytes->data(), bytes, page_bytes);
    }
    return saved;
}

void Node::SavedPages::forget(std::uint64_t page) {
    if (!has(page)) {
        return;
    }
    const std::size_t hole = slots_[page] - 1;
    slots_[page] = 0;
    --used_;
    if (hole != used_) {
        std::swap(pages_[hole], pages_[used_]);
        slots_[pages_[hole].number] = static_cast<std::uint32_t>(hole + 1);
    }
}

void Node::SavedPages::clear() {
    for (const Page& page : pages()) {
        slots_[page.number] = 0;
    }
    used_ = 0;
}

// ---------------------------------------------------------------------------------------------- a file on the disk

namespace {
constexpr ByteCount smallest_window = ByteCount{16} << 20U;
}

Node::Node(SimulatedStorage& storage, std::uint64_t device, std::uint64_t inode)
    : storage_(storage), device_(device), inode_(inode), descriptor_(::memfd_create("taiyen-simulated", MFD_CLOEXEC)) {
    if (descriptor_ < 0) {
        throw_errno(errno, {}, "making a memory file for the simulated disk");
    }
    storage_.nodes_.insert(this);
}

Node::~Node() {
    storage_.nodes_.erase(this);
    storage_.used_bytes_ -= allocated_pages_ * page_bytes;
    if (data_ != nullptr) {
        ::munmap(data_, mapped_bytes_);
    }
    ::close(descriptor_);
}

FileInfo Node::info() const {
    FileInfo info;
    info.kind = FileKind::regular;
    info.size_bytes = size_bytes_;
    info.allocated_bytes = allocated_pages_ * page_bytes;
    info.device = device_;
    info.inode = inode_;
    info.mode = 0600;
    return info;
}

void Node::touch() {
    if (storage_.marked_ && !touched_) {
        touched_ = true;
        marked_size_ = size_bytes_;
        storage_.touched_.push_back(shared_from_this());
    }
}

void Node::will_change(std::uint64_t first_page, std::uint64_t last_page) {
    touch();
    for (std::uint64_t page = first_page; page < last_page; ++page) {
        const PageState state = page_state(page);
        if (storage_.marked_ && !marked_.has(page)) {
            marked_.save(page, state, data_ + page * page_bytes);
        }
        if (!storage_.options_.power_cuts || pending_.has(page)) {
            continue;
        }
        if (const SavedPages::Page* const lost = lost_.find(page)) {
            // Dirty again: the whole page goes to the disk with the next sync.
            pending_.save(page, lost->state, lost->state == PageState::data ? lost->bytes->data() : nullptr);
            lost_.forget(page);
        } else {
            pending_.save(page, state, data_ + page * page_bytes);
        }
    }
}

void Node::set_state(std::uint64_t page, PageState state) {
    if (states_.size() <= page) {
        states_.resize(page + 1, PageState::hole);
    }
    const bool had = states_[page] != PageState::hole;
    const bool has = state != PageState::hole;
    if (had != has) {
        allocated_pages_ += has ? 1 : ~ByteCount{0};
        storage_.used_bytes_ += has ? page_bytes : ~ByteCount{page_bytes} + 1;
    }
    states_[page] = state;
}

/// The memory file is exactly as long as the file, rounded up to a page: touching a mapping behind the end is SIGBUS as it is on a real disk.
void Node::set_size(ByteCount size_bytes) {
    const ByteCount old_length = round_up(size_bytes_, page_bytes);
    const ByteCount new_length = round_up(size_bytes, page_bytes);
    if (new_length > mapped_bytes_) {
        const ByteCount window = std::max<ByteCount>(smallest_window, round_up(new_length * 2, page_bytes));
        void* const mapped = data_ == nullptr ? ::mmap(nullptr, window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0)
                                              : ::mremap(data_, mapped_bytes_, window, MREMAP_MAYMOVE);
        if (mapped == MAP_FAILED) {
            throw_errno(errno, {}, "mapping a file of the simulated disk");
        }
        data_ = static_cast<std::byte*>(mapped);
        mapped_bytes_ = window;
    }
    if (size_bytes < size_bytes_ && size_bytes % page_bytes != 0) {
        std::memset(data_ + size_bytes, 0, std::min<ByteCount>(round_up(size_bytes, page_bytes), old_length) - size_bytes);
    }
    if (new_length != old_length && ::ftruncate(descriptor_, static_cast<off_t>(new_length)) != 0) {
        throw_errno(errno, {}, "changing the size of a file of the simulated disk");
    }
    size_bytes_ = size_bytes;
}

ByteCount Node::missing_space(std::uint64_t offset, ByteCount length) const {
    ByteCount missing = 0;
    for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + length; ++page) {
        missing += page_state(page) == PageState::hole ? page_bytes : 0;
    }
    return missing;
}

void Node::require_space(std::uint64_t offset, ByteCount length) const {
    const ByteCount missing = missing_space(offset, length);
    if (missing != 0 && (storage_.used_bytes_ > storage_.options_.space_bytes || missing > storage_.options_.space_bytes - storage_.used_bytes_)) {
        throw_errno(ENOSPC, {}, offset, "writing " + std::to_string(length) + " bytes to the simulated disk");
    }
}

void Node::write(std::span<const std::byte> bytes, std::uint64_t offset) {
    if (bytes.empty()) {
        return;
    }
    require_space(offset, bytes.size());
    if (offset + bytes.size() > size_bytes_) {
        resize(offset + bytes.size());
    }
    const std::uint64_t first = offset / page_bytes;
    const std::uint64_t last = round_up(offset + bytes.size(), page_bytes) / page_bytes;
    will_change(first, last);
    std::memcpy(data_ + offset, bytes.data(), bytes.size());
    for (std::uint64_t page = first; page < last; ++page) {
        set_state(page, PageState::data);
    }
}

void Node::allocate(std::uint64_t offset, ByteCount length) {
    if (length == 0) {
        return;
    }
    require_space(offset, length);
    if (offset + length > size_bytes_) {
        resize(offset + length);
    }
    for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + length; ++page) {
        if (page_state(page) == PageState::hole) {
            will_change(page, page + 1);
            set_state(page, PageState::allocated);
        }
    }
}

void Node::punch(std::uint64_t offset, ByteCount length) {
    const std::uint64_t end = std::min<std::uint64_t>(offset + length, size_bytes_);
    if (offset >= end) {
        return;
    }
    will_change(offset / page_bytes, round_up(end, page_bytes) / page_bytes);
    // A last page that the file fills only in part is a whole page on the disk.
    const std::uint64_t whole_end = offset + length >= size_bytes_ ? round_up(end, page_bytes) : round_down(end, page_bytes);
    const std::uint64_t whole_first = round_up(offset, page_bytes);
    std::memset(data_ + offset, 0, end - offset);
    for (std::uint64_t page = whole_first / page_bytes; page < whole_end / page_bytes; ++page) {
        set_state(page, PageState::hole);
    }
}

void Node::resize(ByteCount size_bytes) {
    if (size_bytes == size_bytes_) {
        return;
    }
    touch();
    if (size_bytes < size_bytes_) {
        const std::uint64_t first_gone = round_up(size_bytes, page_bytes) / page_bytes;
        const std::uint64_t end = round_up(size_bytes_, page_bytes) / page_bytes;
        will_change(size_bytes / page_bytes, end);
        for (std::uint64_t page = first_gone; page < end; ++page) {
            set_state(page, PageState::hole);
        }
    }
    set_size(size_bytes);
}

ByteCount Node::read(std::span<std::byte> bytes, std::uint64_t offset) const {
    if (offset >= size_bytes_) {
        return 0;
    }
    const ByteCount count = std::min<ByteCount>(bytes.size(), size_bytes_ - offset);
    std::memcpy(bytes.data(), data_ + offset, count);
    return count;
}

ByteCount Node::read_durable(std::span<std::byte> bytes, std::uint64_t offset) const {
    const ByteCount count = read(bytes, offset);
    if (lost_.empty()) {
        return count;
    }
    for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + count; ++page) {
        if (const SavedPages::Page* const lost = lost_.find(page)) {
            const std::uint64_t first = std::max<std::uint64_t>(offset, page * page_bytes);
            const std::uint64_t last = std::min<std::uint64_t>(offset + count, (page + 1) * page_bytes);
            if (lost->state == PageState::data) {
                std::memcpy(bytes.data() + (first - offset), lost->bytes->data() + first % page_bytes, last - first);
            } else {
                std::memset(bytes.data() + (first - offset), 0, last - first);
            }
        }
    }
    return count;
}

void Node::restore(const SavedPages::Page& page) {
    if ((page.number + 1) * page_bytes > round_up(size_bytes_, page_bytes)) {
        set_state(page.number, PageState::hole);
        return;
    }
    std::byte* const at = data_ + page.number * page_bytes;
    if (page.state == PageState::data) {
        std::memcpy(at, page.bytes->data(), page_bytes);
    } else if (page_state(page.number) == PageState::data) {
        std::memset(at, 0, page_bytes);
    }
    set_state(page.number, page.state);
}

void Node::rollback() {
    const ByteCount size = marked_size_;
    if (size_bytes_ != size) {
        // Pages behind the smaller size are among the saved ones or were holes.
        for (std::uint64_t page = round_up(size, page_bytes) / page_bytes; page < states_.size(); ++page) {
            set_state(page, PageState::hole);
        }
        set_size(size);
    }
    for (const SavedPages::Page& page : marked_.pages()) {
        restore(page);
    }
    marked_.clear();
    touched_ = false;
    pending_.clear();
    lost_.clear();
    durable_size_ = size_bytes_;
    exclusive_ = nullptr;
    shared_.clear();
}

void Node::synced() {
    pending_.clear();
    durable_size_ = size_bytes_;
}

void Node::lose(const std::function<bool()>& lost) {
    const bool size_lost = durable_size_ != size_bytes_ && lost();
    touch();
    for (std::uint64_t page = 0; storage_.marked_ && page < states_.size(); ++page) {
        if (states_[page] != PageState::hole && !marked_.has(page)) {
            marked_.save(page, states_[page], data_ + page * page_bytes);
        }
    }
    const auto lose_page = [&](const SavedPages::Page& page) {
        // By sectors: a page may come through in part.
        std::array<std::byte, page_bytes> was{};
        if (page.state == PageState::data) {
            was = *page.bytes;
        }
        if ((page.number + 1) * page_bytes > round_up(size_bytes_, page_bytes)) {
            return;
        }
        bool all_lost = true;
        const PageState now = page_state(page.number);
        for (ByteCount sector = 0; sector < page_bytes; sector += sector_bytes) {
            if (lost()) {
                std::memcpy(data_ + page.number * page_bytes + sector, was.data() + sector, sector_bytes);
            } else {
                all_lost = false;
            }
        }
        set_state(page.number, all_lost ? page.state : (now == PageState::data || page.state == PageState::data ? PageState::data : now));
    };
    if (size_lost && durable_size_ > size_bytes_) {
        set_size(durable_size_);  // a lost truncation: the bytes behind come back from the saved pages
    }
    for (const SavedPages::Page& page : pending_.pages()) {
        lose_page(page);
    }
    for (const SavedPages::Page& page : lost_.pages()) {
        restore(page);
    }
    if (size_lost && durable_size_ < size_bytes_) {
        for (std::uint64_t page = round_up(durable_size_, page_bytes) / page_bytes; page < states_.size(); ++page) {
            set_state(page, PageState::hole);
        }
        set_size(durable_size_);
    }
    if (size_bytes_ % page_bytes != 0) {
        std::memset(data_ + size_bytes_, 0, page_bytes - size_bytes_ % page_bytes);  // (N1)
    }
    pending_.clear();
    lost_.clear();
    durable_size_ = size_bytes_;
    exclusive_ = nullptr;
    shared_.clear();
}

// ---------------------------------------------------------------------------------------------- an open file

class SimulatedFile final : public File, public LosesUnsynced {
public:
    SimulatedFile(SimulatedStorage& storage, std::shared_ptr<Node> node, fs::path path, Access access)
        : storage_(storage), node_(std::move(node)), path_(std::move(path)), access_(access), life_(storage.life_) {}
    SimulatedFile(const SimulatedFile&) = delete;
    SimulatedFile& operator=(const SimulatedFile&) = delete;
    ~SimulatedFile() override {
        const std::scoped_lock lock(storage_.mutex_);
        if (life_ == storage_.life_) {
            unlock();
        }
        node_.reset();
    }

    const fs::path& path() const override { return path_; }
    FileInfo info() const override { return alive().info(); }
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override { return alive().read(bytes, offset); }
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override {
        check_direct(bytes.data(), bytes.size(), offset);
        return alive().read_durable(bytes, offset);
    }
    void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
        change("writing", offset, [&](Node& node) { node.write(bytes, offset); });
    }
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        check_direct(bytes.data(), bytes.size(), offset);
        change("writing", offset, [&](Node& node) {
            node.write(bytes, offset);
            for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes.size(); ++page) {
                node.pending_.forget(page);
            }
        });
    }
    void sync() override {
        const std::scoped_lock lock(storage_.mutex_);
        alive().synced();
    }
    void lose_unsynced() override {
        const std::scoped_lock lock(storage_.mutex_);
        Node& node = alive();
        for (const Node::SavedPages::Page& page : node.pending_.pages()) {
            node.lost_.save(page.number, page.state, page.state == Node::PageState::data ? page.bytes->data() : nullptr);
        }
        node.pending_.clear();
    }
    void allocate(std::uint64_t offset, ByteCount length) override {
        change("allocating", offset, [&](Node& node) { node.allocate(offset, length); });
    }
    void punch(std::uint64_t offset, ByteCount length) override {
        change("punching", offset, [&](Node& node) { node.punch(offset, length); });
    }
    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override {
        const Node& node = alive();
        const std::uint64_t size = node.size_bytes();
        const std::uint64_t last = offset >= size ? offset : offset + std::min<std::uint64_t>(length, size - offset);
        std::vector<Extent> extents;
        for (std::uint64_t at = offset; at < last;) {
            const std::uint64_t next = std::min<std::uint64_t>(last, round_down(at, page_bytes) + page_bytes);
            if (node.page_state(at / page_bytes) == Node::PageState::data) {
                if (!extents.empty() && extents.back().offset + extents.back().length == at) {
                    extents.back().length += next - at;
                } else {
                    extents.push_back({at, next - at});
                }
            }
            at = next;
        }
        return extents;
    }
    void resize(ByteCount size_bytes) override {
        change("changing its size", size_bytes, [&](Node& node) { node.resize(size_bytes); });
    }
    bool try_lock(Lock kind) override {
        const std::scoped_lock lock(storage_.mutex_);
        Node& node = alive();
        const bool others_share = node.shared_.size() > node.shared_.count(this);
        const bool other_excludes = node.exclusive_ != nullptr && node.exclusive_ != this;
        if (other_excludes || (kind == Lock::exclusive && others_share)) {
            return false;
        }
        unlock();
        if (kind == Lock::exclusive) {
            node.exclusive_ = this;
        } else {
            node.shared_.insert(this);
        }
        return true;
    }
    void map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const override {
        int access = PROT_NONE;
        if (protection == Protection::read) {
            access = PROT_READ;
        } else if (protection == Protection::read_write) {
            access = PROT_READ | PROT_WRITE;
        }
        if (::mmap(address, length, access, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, alive().descriptor(), static_cast<off_t>(offset)) ==
            MAP_FAILED) {
            throw_errno(errno, path_, offset, "mapping " + std::to_string(length) + " bytes");
        }
    }

    void set_path(fs::path&& path) noexcept { path_ = std::move(path); }
    const std::shared_ptr<Node>& node() const { return node_; }

private:
    static void check_direct(const void* memory, ByteCount length, std::uint64_t offset) {
        TAIYEN_CHECK(reinterpret_cast<std::uintptr_t>(memory) % direct_alignment == 0);
        TAIYEN_CHECK(length % direct_alignment == 0);
        TAIYEN_CHECK(offset % direct_alignment == 0);
    }
    Node& alive() const {
        if (life_ != storage_.life_) {
            throw Error(errc::io_error, path_, "the simulated disk lost power while this file was open; open it again");
        }
        return *node_;
    }
    template <class Change>
    void change(const char* attempt, std::uint64_t offset, const Change& change) {
        const std::scoped_lock lock(storage_.mutex_);
        if (access_ == Access::read_only) {
            throw Error(errc::read_only, path_, "was opened for reading; open it for writing");
        }
        if (offset > std::uint64_t{1} << 46U) {
            throw_errno(EFBIG, path_, offset, attempt);
        }
        try {
            change(alive());
        } catch (const Error& error) {
            if (!error.path().empty()) {
                throw;
            }
            throw Error(static_cast<errc>(error.code().value()), path_, offset, error.what());
        }
    }
    void unlock() {
        if (node_->exclusive_ == this) {
            node_->exclusive_ = nullptr;
        }
        node_->shared_.erase(this);
    }

    SimulatedStorage& storage_;
    std::shared_ptr<Node> node_;
    fs::path path_;
    Access access_;
    std::uint64_t life_;
};

// ---------------------------------------------------------------------------------------------- the disk

SimulatedStorage::SimulatedStorage(Options options) : options_(options) {}

SimulatedStorage::~SimulatedStorage() {
    // Files deregister themselves, so they go while everything is still there.
    touched_.clear();
    marked_names_.reset();
    durable_names_.clear();
    names_.clear();
}

void SimulatedStorage::add_directory(const fs::path& directory, std::uint64_t device) {
    directories_[directory.lexically_normal()] = device;
}
void SimulatedStorage::add_special(const fs::path& path, FileKind kind) { specials_[path.lexically_normal()] = kind; }
void SimulatedStorage::set_space(ByteCount space_bytes) { options_.space_bytes = space_bytes; }

std::uint64_t SimulatedStorage::device_of_directory(const fs::path& path) const {
    const auto found = directories_.find(path);
    if (found == directories_.end()) {
        throw_errno(ENOENT, path, "looking for the directory");
    }
    return found->second;
}

void SimulatedStorage::check_free(const fs::path& path) const {
    (void)device_of_directory(directory_of(path));
    if (names_.contains(path) || specials_.contains(path) || directories_.contains(path)) {
        throw_errno(EEXIST, path, "creating it");
    }
}

void SimulatedStorage::names_changed() {
    if (marked_ && !marked_names_) {
        marked_names_ = names_;
    }
}

std::optional<FileInfo> SimulatedStorage::find(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path path = given.lexically_normal();
    if (const auto named = names_.find(path); named != names_.end()) {
        return named->second->info();
    }
    FileInfo info;
    if (const auto special = specials_.find(path); special != specials_.end()) {
        info.kind = special->second;
        return info;
    }
    if (const auto directory = directories_.find(path); directory != directories_.end()) {
        info.kind = FileKind::directory;
        info.device = directory->second;
        return info;
    }
    return std::nullopt;
}

std::unique_ptr<File> SimulatedStorage::open(const fs::path& given, Access access) {
    const std::scoped_lock lock(mutex_);
    const fs::path path = given.lexically_normal();
    const auto named = names_.find(path);
    if (named == names_.end()) {
        if (specials_.contains(path) || directories_.contains(path)) {
            throw_not_regular(path);
        }
        throw_errno(ENOENT, path, "opening it");
    }
    return std::make_unique<SimulatedFile>(*this, named->second, given, access);
}

std::unique_ptr<File> SimulatedStorage::create(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path path = given.lexically_normal();
    check_free(path);
    names_changed();
    const auto node = std::make_shared<Node>(*this, device_of_directory(directory_of(path)), ++inodes_);
    names_[path] = node;
    return std::make_unique<SimulatedFile>(*this, node, given, Access::read_write);
}

std::unique_ptr<File> SimulatedStorage::create_unnamed(const fs::path& directory) {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t device = device_of_directory(directory.lexically_normal());
    return std::make_unique<SimulatedFile>(*this, std::make_shared<Node>(*this, device, ++inodes_), directory, Access::read_write);
}

void SimulatedStorage::publish(File& file, const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    auto* const simulated = dynamic_cast<SimulatedFile*>(&file);
    TAIYEN_CHECK(simulated != nullptr);
    const fs::path path = given.lexically_normal();
    check_free(path);
    if (device_of_directory(directory_of(path)) != simulated->node()->info().device) {
        throw_errno(EXDEV, path, "publishing a new file under this name");
    }
    fs::path name = given;  // nothing may fail once the file has its name
    names_changed();
    names_[path] = simulated->node();
    simulated->set_path(std::move(name));
}

void SimulatedStorage::rename(const fs::path& given_from, const fs::path& given_to) {
    const std::scoped_lock lock(mutex_);
    const fs::path from = given_from.lexically_normal();
    const fs::path to = given_to.lexically_normal();
    const auto named = names_.find(from);
    if (named == names_.end()) {
        throw_errno(ENOENT, from, "renaming it to " + to.string());
    }
    if (device_of_directory(directory_of(to)) != named->second->info().device) {
        throw_errno(EXDEV, from, "renaming it to " + to.string());
    }
    if (directories_.contains(to)) {
        throw_errno(EISDIR, from, "renaming it to " + to.string());
    }
    if (from == to) {
        return;
    }
    names_changed();
    specials_.erase(to);
    names_[to] = named->second;
    names_.erase(from);
}

bool SimulatedStorage::remove(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path path = given.lexically_normal();
    if (directories_.contains(path)) {
        throw_errno(EISDIR, path, "removing it");
    }
    if (!names_.contains(path)) {
        return specials_.erase(path) != 0;
    }
    names_changed();
    names_.erase(path);
    return true;
}

void SimulatedStorage::sync_directory(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path directory = given.lexically_normal();
    (void)device_of_directory(directory);
    if (!options_.power_cuts) {
        return;
    }
    std::erase_if(durable_names_, [&](const auto& entry) { return directory_of(entry.first) == directory; });
    for (const auto& entry : names_) {
        if (directory_of(entry.first) == directory) {
            durable_names_.insert(entry);
        }
    }
}

void SimulatedStorage::lose(const std::function<bool()>& lost) {
    const std::scoped_lock lock(mutex_);
    TAIYEN_CHECK(options_.power_cuts);
    ++life_;
    names_changed();
    // Names first: a file that comes back with its name loses its bytes like the others.
    Names after = durable_names_;
    for (const auto& [path, node] : names_) {
        const auto durable = durable_names_.find(path);
        if ((durable == durable_names_.end() || durable->second != node) && !lost()) {
            after[path] = node;
        }
    }
    for (const auto& [path, node] : durable_names_) {
        if (!names_.contains(path) && !lost()) {
            after.erase(path);
        }
    }
    names_ = std::move(after);
    std::vector<std::shared_ptr<Node>> alive;
    for (Node* const node : nodes_) {
        alive.push_back(node->shared_from_this());
    }
    for (const auto& node : alive) {
        node->lose(lost);
    }
    durable_names_ = names_;
}

void SimulatedStorage::power_cut() {
    lose([] { return true; });
}

void SimulatedStorage::power_cut(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    lose([&random] { return (random() & 1U) != 0; });
}

void SimulatedStorage::disconnect() {
    const std::scoped_lock lock(mutex_);
    ++life_;
    for (Node* const node : nodes_) {
        node->exclusive_ = nullptr;
        node->shared_.clear();
    }
}

void SimulatedStorage::mark() {
    const std::scoped_lock lock(mutex_);
    for (const auto& node : touched_) {
        node->marked_.clear();
        node->touched_ = false;
    }
    touched_.clear();
    marked_names_.reset();
    marked_ = true;
}

void SimulatedStorage::rollback() {
    const std::scoped_lock lock(mutex_);
    TAIYEN_CHECK(marked_);
    ++life_;
    if (marked_names_) {
        names_ = std::move(*marked_names_);
        marked_names_.reset();
    }
    durable_names_ = names_;
    for (const auto& node : touched_) {
        node->rollback();
    }
    touched_.clear();
    for (const auto& [path, node] : names_) {
        node->exclusive_ = nullptr;
        node->shared_.clear();
    }
}

SimulatedStorage::Names SimulatedStorage::files() const {
    const std::scoped_lock lock(mutex_);
    return names_;
}

std::shared_ptr<Node> SimulatedStorage::node(const fs::path& path) const {
    const std::scoped_lock lock(mutex_);
    const auto named = names_.find(path.lexically_normal());
    return named == names_.end() ? nullptr : named->second;
}

std::shared_ptr<Node> SimulatedStorage::make_node(std::uint64_t device) {
    const std::scoped_lock lock(mutex_);
    return std::make_shared<Node>(*this, device, ++inodes_);
}

void SimulatedStorage::put(const fs::path& path, std::shared_ptr<Node> node) {
    const std::scoped_lock lock(mutex_);
    names_changed();
    node->synced();
    durable_names_[path.lexically_normal()] = node;
    names_[path.lexically_normal()] = std::move(node);
}

void SimulatedStorage::take_away(const fs::path& path) {
    const std::scoped_lock lock(mutex_);
    names_changed();
    durable_names_.erase(path.lexically_normal());
    names_.erase(path.lexically_normal());
}

}  // namespace taiyen::io
