#pragma once
/// Restorer: a heap's file out of the frames of a target.
///
/// (T1) Each frame continues the one before; each page has the checksum that its table says, each table its own, all tables together that of the base.
/// (T2) Transactions go through the heap's own recovery: they are laid into a log beside the file, and opening it replays them.
/// (T3) The heap gets its name at last.
/// Thread rule: one thread.

#include <map>
#include <optional>
#include <vector>

#include <taiyen/replicate/restore.hpp>

#include "io/storage.hpp"
#include "replicate/bases.hpp"
#include "store/page_file.hpp"

namespace taiyen::replicate {

class Restorer {
public:
    Restorer(io::Storage& storage, ReplicationTarget& target, std::filesystem::path to, const RestoreOptions& options);
    Restored run();
    /// The same, for a file that goes on following: it is opened as a follower only, and knows up to which frame it has everything.
    Restored run_for_follower();

private:
    /// Frames from `first` to `last`, each compared with the one before: `visit(const Frame&)`; false ends it.
    template <class F>
    void for_each_frame(std::uint64_t first, std::uint64_t last, F&& visit);
    bool is_wanted(const FrameHead& head) const;
    Base choose_base();
    void remove_unfinished(const Uuid& heap);
    void write_pages(const Base& base, store::PageFile& file);
    void write_page_frame(const Frame& frame, store::PageFile& file);
    template <class F>
    void for_each_group(const Base& base, F&& visit);
    void lay_log(const Base& base, store::PageFile& file);
    void recover();

    io::Storage& storage_;
    ReplicationTarget& target_;
    const std::filesystem::path to_;
    const std::filesystem::path working_;
    const RestoreOptions& options_;
    ReplicationTarget::Range range_;
    bool is_follower_ = false;
    FrameHead newest_used_{};                        ///< up to which everything is in the file
    std::map<std::uint64_t, std::uint64_t> tables_;  ///< checksums of the table pages in the file
    Restored restored_;
};

}  // namespace taiyen::replicate
