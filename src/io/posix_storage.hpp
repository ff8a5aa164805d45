#pragma once
/// The real file system behind the storage seam.
///
/// (P1) Every descriptor is O_CLOEXEC and none a standard one (`Descriptor`); opening never blocks (O_NONBLOCK), follows no link in the last component (O_NOFOLLOW) and yields regular files only.
/// (P2) Direct transfers use descriptors of their own (O_DIRECT, O_DIRECT|O_DSYNC), opened when first needed. Where the file system refuses O_DIRECT (tmpfs), a
///      durable write is a buffered one plus fdatasync(2), and a direct read first asks the page cache to forget the range.
/// (P3) A forked child closes its copy of each locked file at once: locks die with their owner, not with its last child. One that no handler of pthread_atfork(3) sees
///      (_Fork(3), clone(2)) closes it with the object. Either neither unlocks nor removes anything, and calls on such a file throw Error{forked}.
/// (P4) No call meets SIGXFSZ: beyond the limit of file sizes (RLIMIT_FSIZE), as it was when the file was opened or grew last, it throws Error{no_space}.
/// Thread rule: the storage is safe; files as `File` says.

#include "io/storage.hpp"

namespace taiyen::io {

/// What is asked of the system; a test turns them off one by one to run the ways that other file systems need.
struct PosixFeatures {
    bool direct = true;     ///< O_DIRECT
    bool unnamed = true;    ///< O_TMPFILE
    bool allocate = true;   ///< fallocate(2)
    bool punch = true;      ///< FALLOC_FL_PUNCH_HOLE
    bool seek_data = true;  ///< SEEK_DATA, SEEK_HOLE
};

class PosixStorage final : public Storage {
public:
    explicit PosixStorage(PosixFeatures features = {}) : features_(features) {}

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
    PosixFeatures features_;
};

}  // namespace taiyen::io
