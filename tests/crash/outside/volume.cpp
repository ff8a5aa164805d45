#include "volume.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>

#include "campaign.hpp"
#include "child.hpp"

namespace outside {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }
[[noreturn]] void unavailable(const std::string& what) { throw Unavailable(what + ": " + std::strerror(errno)); }

// EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are the same number and take the same flags; the kernel's public headers have neither.
constexpr unsigned long ioctl_shutdown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t shutdown_journal_first = 1;
constexpr std::uint32_t shutdown_at_once = 2;

}  // namespace

const std::vector<FileSystem>& file_systems() {
    static const std::vector<FileSystem> all{
        {"ext4", std::uint64_t{128} << 20U, {"mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-b", "4096"}},
        {"xfs", std::uint64_t{304} << 20U, {"mkfs.xfs", "-q", "-f", "-K"}},
        {"btrfs", std::uint64_t{160} << 20U, {"mkfs.btrfs", "-q", "-f", "-K"}},
    };
    return all;
}

std::string missing_for(const FileSystem& kind) {
    std::ifstream known("/proc/filesystems");
    bool has = false;
    for (std::string word; known >> word;) has |= word == kind.name;
    if (!has) return "the kernel has no " + std::string(kind.name) + " (/proc/filesystems)";
    return has_tool(kind.format[0]) ? "" : kind.format[0] + " is not installed";
}

void enter_private_mounts() {
    if (geteuid() != 0) throw Unavailable("mounting needs root");
    if (access("/dev/loop-control", R_OK | W_OK) != 0) unavailable("no loop devices (/dev/loop-control)");
    if (unshare(CLONE_NEWNS) != 0) unavailable("no mount namespace of its own");
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) unavailable("no private mounts");
}

Descriptor::~Descriptor() {
    if (number_ >= 0) close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

Descriptor memory_image(std::uint64_t bytes) {
    Descriptor image(memfd_create("taiyen-outside", MFD_CLOEXEC));
    if (image.get() < 0 || ftruncate(image.get(), static_cast<off_t>(bytes)) != 0) refuse("an image in memory");
    return image;
}

LoopDevice::LoopDevice(int image) {
    const Descriptor control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (control.get() < 0) unavailable("/dev/loop-control");
    // Another process may take the free device first.
    for (int tries = 0; tries < 1000; ++tries) {
        const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
        if (number < 0) unavailable("a free loop device");
        path_ = "/dev/loop" + std::to_string(number);
        device_ = Descriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC));
        if (device_.get() < 0) unavailable(path_);
        loop_config config{};
        config.fd = static_cast<std::uint32_t>(image);
        config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        if (ioctl(device_.get(), LOOP_CONFIGURE, &config) == 0) return;
        if (errno != EBUSY) unavailable("attaching " + path_);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    unavailable("a free loop device");
}

void format(const FileSystem& kind, const LoopDevice& device, const std::filesystem::path& log) {
    std::vector<std::string> words = kind.format;
    words.push_back(device.path());
    run_tool(words, log.string());
}

Mounted::Mounted(const FileSystem& kind, const LoopDevice& device, std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    if (mount(device.path().c_str(), folder_.c_str(), std::string(kind.name).c_str(), MS_NOATIME, nullptr) != 0) {
        if (errno == EPERM) unavailable("mounting");
        refuse("mounting " + std::string(kind.name));
    }
}

Mounted::~Mounted() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
}

void Mounted::pull_the_plug(bool journal_first) {
    const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::uint32_t how = journal_first ? shutdown_journal_first : shutdown_at_once;
    if (folder.get() < 0 || ioctl(folder.get(), ioctl_shutdown, &how) != 0) unavailable("shutting a file system down by ioctl");
}

void Mounted::unmount() {
    // A process that was killed lets go of its mappings a moment after it was waited for.
    for (int tries = 0; umount2(folder_.c_str(), 0) != 0; ++tries) {
        if (errno != EBUSY || tries == 5000) refuse("unmounting " + folder_.string());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    mounted_ = false;
}

}  // namespace outside
