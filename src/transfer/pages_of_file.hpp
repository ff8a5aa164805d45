#pragma once
/// PagesOfFile: what the newest save of a heap that nobody has open for writing holds, for whoever makes another heap of it.
///
/// The heap is opened twice, for a look and for its pages: in between its address is free for whatever has to be tried there. Thread rule: one thread.

#include <memory>

#include <taiyen/base/progress.hpp>

#include "transfer/heap_maker.hpp"
#include "transfer/rebase_file.hpp"

namespace taiyen::transfer {

/// How pages are copied.
struct CopyOptions {
    const Progress& progress;
    const std::stop_token& cancel;
};

class PagesOfFile {
public:
    /// Throws: as opening for reading; Error{history_conflict}.
    PagesOfFile(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& files, bool drop_history);

    const CompressedHeap& found() const { return found_; }
    HeapShape shape() const;
    /// Throws: as opening for reading; Error{busy}: the heap has changed since the look; Error{cancelled}; and as the target.
    void copy(PageTarget& target, const RewritePages& rewrite, const CopyOptions& options) const;

private:
    std::shared_ptr<store::HeapFile> open() const;

    io::Storage& storage_;
    const std::filesystem::path& path_;
    const PersistentOptions& files_;
    CompressedHeap found_;
};

}  // namespace taiyen::transfer
