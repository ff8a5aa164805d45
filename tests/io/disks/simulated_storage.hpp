#pragma once
/// A disk in memory: files are memory files of the kernel, so that private mappings and page tracking work on them as on real ones.
///
/// (S1) The durability model is the one in the head of storage.hpp. With `Options::power_cuts`, `power_cut` loses what was not synced: everything, or a
///      random choice of sectors, sizes and directory entries.
/// (S2) `mark` remembers the disk as it is; `rollback` brings that back and costs only what was changed since.
/// (S3) Handles that were open at a power cut or rollback are dead: each call throws Error{io_error}. Locks are gone.
/// (S4) After a failed sync (`LosesUnsynced`) `read` shows the new bytes, `read_direct` and the next power cut the old ones.
/// A page (4 KiB) of a file is a hole, allocated (reads as zeros, counts as space) or data; only data shows in `data_extents`.
/// Thread rule: as `Storage`; `mark`, `rollback` and `power_cut` need an external lock.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "io/storage.hpp"

namespace taiyen::io {

class SimulatedStorage final : public Storage {
public:
    struct Options {
        ByteCount space_bytes = ~ByteCount{0};  ///< of all files together; beyond it Error{no_space}
        bool power_cuts = false;                ///< keep what `power_cut` needs
    };
    class Node;  ///< a file on this disk, with or without a name: simulated_node.hpp

    SimulatedStorage() : SimulatedStorage(Options{}) {}
    explicit SimulatedStorage(Options options);
    ~SimulatedStorage() override;

    /// Directories exist only if they were added; `device` says which ones lie on the same file system.
    void add_directory(const std::filesystem::path& directory, std::uint64_t device = 1);
    /// Puts something at `path` that is no regular file.
    void add_special(const std::filesystem::path& path, FileKind kind);
    void set_space(ByteCount space_bytes);
    ByteCount used_bytes() const { return used_bytes_; }

    /// Loses everything that is not durable. Requires: Options::power_cuts.
    void power_cut();
    /// Loses a random part of it.
    void power_cut(std::uint64_t seed);

    /// Handles that are open now are dead from here on; the disk keeps everything.
    void disconnect();

    void mark();
    void rollback();

    /// The files by name: what a test looks at, or puts there, past every handle, lock and recorder. What is put there is durable, name and content.
    std::map<std::filesystem::path, std::shared_ptr<Node>> files() const;
    std::shared_ptr<Node> node(const std::filesystem::path& path) const;  ///< null: none
    std::shared_ptr<Node> make_node(std::uint64_t device = 1);
    void put(const std::filesystem::path& path, std::shared_ptr<Node> node);
    void take_away(const std::filesystem::path& path);

    std::vector<std::string> list(const std::filesystem::path& directory) override;
    std::optional<FileInfo> find(const std::filesystem::path& path) override;
    std::unique_ptr<File> open(const std::filesystem::path& path, Access access) override;
    std::unique_ptr<File> create(const std::filesystem::path& path) override;
    std::unique_ptr<File> create_unnamed(const std::filesystem::path& directory) override;
    void publish(File& file, const std::filesystem::path& path) override;
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing = Existing::replaced) override;
    bool remove(const std::filesystem::path& path) override;
    void sync_directory(const std::filesystem::path& directory) override;

private:
    friend class SimulatedFile;
    using Names = std::map<std::filesystem::path, std::shared_ptr<Node>>;

    std::uint64_t device_of_directory(const std::filesystem::path& path) const;
    void check_free(const std::filesystem::path& path) const;
    void names_changed();
    void lose(const std::function<bool()>& lost);

    Options options_;
    ByteCount used_bytes_ = 0;
    std::uint64_t life_ = 1;  ///< grows with each power cut, rollback and disconnection: older handles are dead
    std::uint64_t inodes_ = 0;
    std::map<std::filesystem::path, std::uint64_t> directories_;
    std::map<std::filesystem::path, FileKind> specials_;
    Names names_;
    Names durable_names_;                ///< with power_cuts
    std::optional<Names> marked_names_;  ///< if they differ from names_
    bool marked_ = false;
    std::set<Node*> nodes_;
    std::vector<std::shared_ptr<Node>> touched_;  ///< changed since `mark`
    mutable std::recursive_mutex mutex_;
};

}  // namespace taiyen::io
