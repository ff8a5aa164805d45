#include "transfer/file_target.hpp"

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "base/uuid.hpp"

namespace taiyen::transfer {

void FileTarget::look(const std::function<bool(const io::File&)>& may_replace) {
    if (const auto found = storage_.find(path_)) {
        if (found->kind != io::FileKind::regular)
            throw Error(errc::not_a_regular_file, path_, "something that is no file has that name; choose another one");
        if (!may_replace(*storage_.open(path_, io::Access::read_only)))
            throw Error(errc::already_exists, path_, "something else has that name; move it away or choose another one");
        replaces_ = true;
    }
    file_ = storage_.create_unnamed(io::directory_of(path_));
    writer_.emplace(*file_);
}

void FileTarget::write(std::span<const std::byte> bytes) { writer_->append(bytes); }

void FileTarget::publish() {
    const std::filesystem::path directory = io::directory_of(path_);
    writer_->finish();
    if (!planted(Bug::transfer_named_before_sync)) file_->sync();
    if (replaces_) {
        const std::filesystem::path beside = path_.string().append(".").append(random_uuid().text()).append(".new");
        storage_.publish(*file_, beside);
        try {
            storage_.rename(beside, path_);
        } catch (...) {
            storage_.remove(beside);
            throw;
        }
    } else {
        storage_.publish(*file_, path_);
    }
    if (planted(Bug::transfer_named_before_sync)) file_->sync();
    storage_.sync_directory(directory);
}

}  // namespace taiyen::transfer
