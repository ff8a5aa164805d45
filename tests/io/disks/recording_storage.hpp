#pragma once
/// Notes every change that passes to another storage, in order: the raw material of crash states.
///
/// (R1) An operation is noted after it succeeded; a write or sync that threw is noted, too, as failed: what it did is unknown.
/// (R2) A file keeps its id over renames and reopenings. A file that was there before is announced by `opened` with its path.
/// Thread rule: as `Storage`.

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "io/storage.hpp"

namespace taiyen::io {

/// Number of a file in a trace, from 1. 0: none.
enum class FileId : std::uint32_t {};

struct Operation {
    enum class Kind {
        opened,            ///< an existing file was opened for the first time: `file`, `path`
        created,           ///< `file`, `path`
        created_unnamed,   ///< `file`; `path` is the directory
        published,         ///< `file`, `path`
        renamed,           ///< `path` → `to`
        removed,           ///< `path`
        directory_synced,  ///< `path`
        written,           ///< `file`, `offset`, `bytes`
        durably_written,   ///< `file`, `offset`, `bytes`
        synced,            ///< `file`
        allocated,         ///< `file`, `offset`, `length`
        punched,           ///< `file`, `offset`, `length`
        resized,           ///< `file`, `length` is the new size
        issued,            ///< mark: the test began save `number`
        acknowledged       ///< mark: the test was told that save `number` is durable
    };
    Kind kind;
    FileId file = {};
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t number = 0;
    bool failed = false;
    std::vector<std::byte> bytes = {};
    std::filesystem::path path = {};
    std::filesystem::path to = {};
};
using Trace = std::vector<Operation>;

class RecordingStorage final : public Storage {
public:
    explicit RecordingStorage(Storage& inner) : inner_(inner) {}

    const Trace& trace() const { return trace_; }
    /// Hands the trace over and begins a new one: files are announced again.
    Trace take_trace();
    void issue(std::uint64_t number);
    void acknowledge(std::uint64_t number);

    std::vector<std::string> list(const std::filesystem::path& directory) override { return inner_.list(directory); }
    std::optional<FileInfo> find(const std::filesystem::path& path) override { return inner_.find(path); }
    std::unique_ptr<File> open(const std::filesystem::path& path, Access access) override;
    std::unique_ptr<File> create(const std::filesystem::path& path) override;
    std::unique_ptr<File> create_unnamed(const std::filesystem::path& directory) override;
    void publish(File& file, const std::filesystem::path& path) override;
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing = Existing::replaced) override;
    bool remove(const std::filesystem::path& path) override;
    void sync_directory(const std::filesystem::path& directory) override;

private:
    friend class RecordingFile;
    using Identity = std::pair<std::uint64_t, std::uint64_t>;  ///< device, inode

    std::unique_ptr<File> begin(std::unique_ptr<File> file, Operation::Kind kind, const std::filesystem::path& path);
    void note(Operation operation);

    Storage& inner_;
    Trace trace_;
    std::map<Identity, FileId> ids_;
    std::uint32_t last_id_ = 0;
    std::mutex mutex_;
};

}  // namespace taiyen::io
