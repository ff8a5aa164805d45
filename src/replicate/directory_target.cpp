#include <taiyen/replicate/directory_target.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "replicate/directory_files.hpp"
#include "replicate/frame_layout.hpp"

namespace taiyen {
namespace {

/// What says which frame is the first that is needed: two words.
struct FirstFrame {
    std::uint64_t number;
    std::uint64_t checksum;
};

std::uint64_t checksum_of(const FirstFrame& first) { return checksum(std::as_bytes(std::span(&first.number, 1)), 1); }

}  // namespace

std::filesystem::path DirectoryTarget::Files::path_of(std::uint64_t number) const {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "%016llx.frame", static_cast<unsigned long long>(number));
    return directory / name.data();
}

bool DirectoryTarget::Files::is_there(std::uint64_t number) { return storage.find(path_of(number)).has_value(); }

std::uint64_t DirectoryTarget::Files::first() {
    const std::filesystem::path path = directory / first_name;
    if (!storage.find(path)) return 1;
    FirstFrame found{};
    const ByteCount got = storage.open(path, io::Access::read_only)->read(std::as_writable_bytes(std::span(&found, 1)), 0);
    if (got != sizeof found || found.number == 0 || found.checksum != checksum_of(found))
        throw Error(errc::corrupt, path, "what says which frame is the first is damaged; write the frames into a new directory, with a new base");
    return found.number;
}

std::vector<std::uint64_t> DirectoryTarget::Files::numbers() {
    std::vector<std::uint64_t> found;
    for (const std::string& name : storage.list(directory)) {
        std::uint64_t number = 0;
        const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
        if (wrong == std::errc() && number != 0 && number < replicate::layout::frame_numbers_end && directory / name == path_of(number))
            found.push_back(number);
    }
    return found;
}

std::uint64_t DirectoryTarget::Files::find_last() {
    const std::uint64_t begin = first();
    if (last == 0 || (last >= begin && !is_there(last))) {  // nothing is known, or frames have gone
        last = begin - 1;
        for (const std::uint64_t number : numbers()) last = std::max(last, number);
    }
    while (is_there(last + 1)) ++last;
    return last;
}

DirectoryTarget::DirectoryTarget(std::unique_ptr<Files> files) : files_(std::move(files)) {
    const auto found = files_->storage.find(files_->directory);
    if (!found || found->kind != io::FileKind::directory)
        throw Error(errc::not_found, files_->directory, "there is no such directory; make it, for this program's user alone");
}

DirectoryTarget::DirectoryTarget(const std::filesystem::path& directory)
    : DirectoryTarget(std::make_unique<Files>(io::posix_storage(), std::filesystem::weakly_canonical(directory))) {}

DirectoryTarget::~DirectoryTarget() = default;

std::string DirectoryTarget::name() const { return files_->directory.string(); }

std::chrono::milliseconds DirectoryTarget::linger() const { return std::chrono::seconds(1); }

DirectoryTarget::Range DirectoryTarget::range() {
    const std::lock_guard lock(files_->mutex);
    return {files_->first(), files_->find_last()};
}

bool DirectoryTarget::append(std::uint64_t number, std::span<const std::byte> frame) {
    const std::lock_guard lock(files_->mutex);
    const std::filesystem::path path = files_->path_of(number);
    const auto is_ours = [&] {
        if (!files_->is_there(number)) return false;
        const std::vector<std::byte> there = files_->read(number);
        return std::ranges::equal(there, frame);
    };
    const auto make_name_durable = [&] { files_->storage.sync_directory(files_->directory); };
    if (files_->is_there(number)) {
        if (!is_ours()) return false;
        make_name_durable();
        return true;
    }
    if (number != files_->find_last() + 1) return false;
    const std::unique_ptr<io::File> file = files_->storage.create_unnamed(files_->directory);
    file->write(frame, 0);
    const auto name = [&] {
        try {
            files_->storage.publish(*file, path);
            return true;
        } catch (const Error& error) {
            if (error.code() != errc::already_exists) throw;
            return is_ours();
        }
    };
    if (planted(Bug::frame_named_before_sync)) {
        const bool named = name();
        file->sync();
        if (named) make_name_durable();
        return named;
    }
    file->sync();
    if (!name()) return false;
    if (!planted(Bug::frame_name_unsynced)) make_name_durable();
    return true;
}

std::vector<std::byte> DirectoryTarget::Files::read(std::uint64_t number) {
    const std::unique_ptr<io::File> file = storage.open(path_of(number), io::Access::read_only);
    const ByteCount size = file->info().size_bytes;
    if (size > replicate::layout::frame_bytes_max)
        throw Error(errc::corrupt, file->path(), "a frame of " + std::to_string(size) + " bytes is none; restore what comes before it");
    std::vector<std::byte> bytes(size);
    bytes.resize(file->read(bytes, 0));
    return bytes;
}

std::vector<std::byte> DirectoryTarget::read(std::uint64_t number) {
    const std::lock_guard lock(files_->mutex);
    try {
        return files_->read(number);
    } catch (const Error& error) {
        if (error.code() != errc::not_found) throw;
        throw Error(errc::not_found, files_->directory, "frame " + std::to_string(number) + " is not there: it was trimmed, or lost");
    }
}

void DirectoryTarget::trim(std::uint64_t first) {
    const std::lock_guard lock(files_->mutex);
    if (first <= files_->first()) return;
    // Who reads the directory believes what this file says, so it is durable before a frame goes.
    FirstFrame now{first, 0};
    now.checksum = checksum_of(now);
    const std::unique_ptr<io::File> file = files_->storage.create_unnamed(files_->directory);
    file->write(std::as_bytes(std::span(&now, 1)), 0);
    file->sync();
    const std::filesystem::path made = files_->directory / (std::string(Files::first_name) + ".new");
    files_->storage.remove(made);
    files_->storage.publish(*file, made);
    files_->storage.rename(made, files_->directory / Files::first_name);
    if (!planted(Bug::trimmed_before_said)) files_->storage.sync_directory(files_->directory);
    for (const std::uint64_t number : files_->numbers())  // also what an interrupted call has left
        if (number < first) files_->storage.remove(files_->path_of(number));
    files_->storage.sync_directory(files_->directory);
}

}  // namespace taiyen
