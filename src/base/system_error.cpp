#include "base/system_error.hpp"

#include <cerrno>
#include <string>
#include <system_error>

namespace taiyen {

errc code_of_errno(int error) noexcept {
    switch (error) {
        case ENOENT:
        case ENOTDIR: return errc::not_found;
        case EEXIST:
        case ENOTEMPTY: return errc::already_exists;
        case ELOOP:
        case EISDIR:
        case ENXIO:   // a socket, or a FIFO without a reader
        case ENODEV:  // a device file without a device
            return errc::not_a_regular_file;
        case EACCES:
        case EPERM: return errc::permission;
        case EROFS: return errc::read_only;
        case EMFILE:
        case ENFILE: return errc::too_many_files;
        case ENOSPC:
        case EDQUOT:
        case EFBIG: return errc::no_space;
        case EWOULDBLOCK:
        case ETXTBSY:
        case EBUSY: return errc::busy;
        case ENOMEM: return errc::out_of_address_space;
        case EINVAL:
        case ENAMETOOLONG:
        case EXDEV:
        case EOVERFLOW: return errc::invalid_argument;
        default: return errc::io_error;
    }
}

namespace {

std::string_view remedy_of(errc code) {
    switch (code) {
        case errc::not_found: return "; check the path";
        case errc::already_exists: return "; choose another name or open what is there";
        case errc::not_a_regular_file: return "; only regular files can be used, links are not followed";
        case errc::permission: return "; check owner and mode of the file and its directory";
        case errc::read_only: return "; the file system is mounted read-only: open read-only or remount it";
        case errc::too_many_files: return "; raise the limit of open files (ulimit -n)";
        case errc::no_space: return "; free disk space, or raise the quota or file size limit";
        case errc::busy: return "; somebody else uses the file";
        case errc::out_of_address_space: return "; raise the limits of memory and mappings";
        case errc::io_error: return "; check the device, then reopen";
        default: return "";
    }
}

}  // namespace

Error error_of_errno(int error, const std::filesystem::path& path, std::string_view attempt, std::uint64_t offset) {
    const errc code = code_of_errno(error);
    std::string what(attempt);
    what += ": ";
    what += std::generic_category().message(error);
    what += remedy_of(code);
    return {code, path, offset, what};
}

void throw_errno(int error, const std::filesystem::path& path, std::uint64_t offset, std::string_view attempt) {
    throw error_of_errno(error, path, attempt, offset);
}

void throw_errno(int error, const std::filesystem::path& path, std::string_view attempt) { throw error_of_errno(error, path, attempt); }

void throw_not_regular(const std::filesystem::path& path) {
    throw Error(errc::not_a_regular_file, path, std::string("is not a regular file") + std::string(remedy_of(errc::not_a_regular_file)));
}

}  // namespace taiyen
