#include "io/disks/simulated_storage.hpp"

#include <cerrno>
#include <functional>
#include <random>
#include <utility>

#include <taiyen/base/check.hpp>

#include "base/system_error.hpp"
#include "io/disks/simulated_file.hpp"

namespace taiyen::io {

namespace fs = std::filesystem;
using Node = SimulatedStorage::Node;

SimulatedStorage::SimulatedStorage(Options options) : options_(options) {}

SimulatedStorage::~SimulatedStorage() {
    // Files deregister themselves, so they go while everything is still there.
    touched_.clear();
    marked_names_.reset();
    durable_names_.clear();
    names_.clear();
}

void SimulatedStorage::add_directory(const fs::path& directory, std::uint64_t device) { directories_[directory.lexically_normal()] = device; }
void SimulatedStorage::add_special(const fs::path& path, FileKind kind) { specials_[path.lexically_normal()] = kind; }
void SimulatedStorage::set_space(ByteCount space_bytes) { options_.space_bytes = space_bytes; }

std::uint64_t SimulatedStorage::device_of_directory(const fs::path& path) const {
    const auto found = directories_.find(path);
    if (found == directories_.end()) throw_errno(ENOENT, path, "looking for the directory");
    return found->second;
}

void SimulatedStorage::check_free(const fs::path& path) const {
    (void)device_of_directory(directory_of(path));
    if (names_.contains(path) || specials_.contains(path) || directories_.contains(path)) throw_errno(EEXIST, path, "creating it");
}

void SimulatedStorage::names_changed() {
    if (marked_ && !marked_names_) marked_names_ = names_;
}

std::vector<std::string> SimulatedStorage::list(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path directory = given.lexically_normal();
    if (!directories_.contains(directory)) throw Error(errc::not_found, directory, "there is no such directory");
    std::vector<std::string> names;
    for (const auto& [path, node] : names_)
        if (path.parent_path() == directory) names.push_back(path.filename().string());
    return names;
}

std::optional<FileInfo> SimulatedStorage::find(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path path = given.lexically_normal();
    if (const auto named = names_.find(path); named != names_.end()) return named->second->info();
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
        if (specials_.contains(path) || directories_.contains(path)) throw_not_regular(path);
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
    if (device_of_directory(directory_of(path)) != simulated->node()->info().device)
        throw_errno(EXDEV, path, "publishing a new file under this name");
    fs::path name = given;  // nothing may fail once the file has its name
    names_changed();
    names_[path] = simulated->node();
    simulated->set_path(std::move(name));
}

void SimulatedStorage::rename(const fs::path& given_from, const fs::path& given_to, Existing existing) {
    const std::scoped_lock lock(mutex_);
    const fs::path from = given_from.lexically_normal();
    const fs::path to = given_to.lexically_normal();
    const auto named = names_.find(from);
    if (named == names_.end()) throw_errno(ENOENT, from, "renaming it to " + to.string());
    if (device_of_directory(directory_of(to)) != named->second->info().device) throw_errno(EXDEV, from, "renaming it to " + to.string());
    if (directories_.contains(to)) throw_errno(EISDIR, from, "renaming it to " + to.string());
    if (existing == Existing::refused) check_free(to);
    if (from == to) return;
    names_changed();
    specials_.erase(to);
    names_[to] = named->second;
    names_.erase(from);
}

bool SimulatedStorage::remove(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path path = given.lexically_normal();
    if (directories_.contains(path)) throw_errno(EISDIR, path, "removing it");
    if (!names_.contains(path)) return specials_.erase(path) != 0;
    names_changed();
    names_.erase(path);
    return true;
}

void SimulatedStorage::sync_directory(const fs::path& given) {
    const std::scoped_lock lock(mutex_);
    const fs::path directory = given.lexically_normal();
    (void)device_of_directory(directory);
    if (!options_.power_cuts) return;
    std::erase_if(durable_names_, [&](const auto& entry) { return directory_of(entry.first) == directory; });
    for (const auto& entry : names_)
        if (directory_of(entry.first) == directory) durable_names_.insert(entry);
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
        if ((durable == durable_names_.end() || durable->second != node) && !lost()) after[path] = node;
    }
    for (const auto& [path, node] : durable_names_)
        if (!names_.contains(path) && !lost()) after.erase(path);
    names_ = std::move(after);
    std::vector<std::shared_ptr<Node>> alive;
    for (Node* const node : nodes_) alive.push_back(node->shared_from_this());
    for (const auto& node : alive) node->lose(lost);
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
    for (const auto& node : touched_) node->rollback();
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
