#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <taiyen/base/error.hpp>
#include <taiyen/seal/sealed_target.hpp>

namespace taiyen {
namespace {

constexpr const char* remedy = "; make one: head -c 32 /dev/urandom > KEY; chmod 600 KEY";

[[noreturn]] void throw_unread(const std::filesystem::path& path, int why) {
    if (why == ENOENT) throw Error(errc::not_found, path, std::string("there is no such file of a key") + remedy);
    const errc code = why == EACCES || why == EPERM ? errc::permission : errc::io_error;
    throw Error(code, path, std::string("the key can't be read: ") + std::strerror(why) + "; let this program's user read it, and nobody else");
}

/// A file that is read, and closed.
class KeyFile {
public:
    // What is no file, such as a pipe, isn't waited for.
    explicit KeyFile(const std::filesystem::path& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (descriptor_ < 0) throw_unread(path_, errno);
    }
    KeyFile(const KeyFile&) = delete;
    KeyFile& operator=(const KeyFile&) = delete;
    ~KeyFile() { ::close(descriptor_); }

    struct stat status() const {
        struct stat found{};
        if (::fstat(descriptor_, &found) != 0) throw_unread(path_, errno);
        return found;
    }
    /// How many bytes there were.
    std::size_t read(std::span<std::byte> bytes) const {
        std::size_t got = 0;
        while (got < bytes.size()) {
            const ssize_t count = ::read(descriptor_, bytes.data() + got, bytes.size() - got);
            if (count == 0) break;
            if (count < 0 && errno != EINTR) throw_unread(path_, errno);
            if (count > 0) got += static_cast<std::size_t>(count);
        }
        return got;
    }

private:
    const std::filesystem::path& path_;
    const int descriptor_;
};

}  // namespace

SealingKey::~SealingKey() { ::sodium_memzero(bytes.data(), bytes.size()); }

SealingKey read_sealing_key(const std::filesystem::path& path) {
    const KeyFile file(path);
    const auto status = file.status();
    if (!S_ISREG(status.st_mode)) throw Error(errc::not_a_regular_file, path, std::string("it is no file of a key") + remedy);
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        throw Error(errc::permission, path, "others than its owner may read or change this key; chmod 600, or make another one if they have");
    SealingKey key;
    if (status.st_size != static_cast<off_t>(key.bytes.size()) || file.read(key.bytes) != key.bytes.size())
        throw Error(errc::invalid_argument, path, "a key has 32 bytes, this file has " + std::to_string(status.st_size) + remedy);
    return key;
}

}  // namespace taiyen
