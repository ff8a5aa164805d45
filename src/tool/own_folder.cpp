#include "tool/own_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <taiyen/base/error.hpp>
#include <taiyen/base/system_error.hpp>

namespace taiyen::tool {
namespace {

/// Tells the watcher that there is nothing to watch any more.
constexpr int over = SIGUSR1;

bool is_ignored(int signal) {
    struct sigaction now{};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// A new folder within `parent`. Its name follows mkdtemp(3).
std::filesystem::path make_folder(const std::filesystem::path& parent) {
    std::error_code failure;
    if (!std::filesystem::is_directory(parent, failure))
        throw Error(errc::not_found, parent, "there is no such folder; name one on the disk to be measured");
    std::string name = (parent / "taiyen-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw error_of_errno(errno, parent, "making a folder in it");
    return name;
}

}  // namespace

OwnFolder::OwnFolder(const std::filesystem::path& parent) : path_(make_folder(parent)) {
    ::sigemptyset(&ends_);
    ::sigaddset(&ends_, over);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (!is_ignored(signal)) ::sigaddset(&ends_, signal);
    ::pthread_sigmask(SIG_BLOCK, &ends_, &before_);
    try {
        watcher_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);  // no thread to be had: then Ctrl-C leaves files
    }
}

OwnFolder::~OwnFolder() {
    if (watcher_.joinable()) {
        ::pthread_kill(watcher_.native_handle(), over);
        watcher_.join();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    remove();
}

void OwnFolder::watch() const {
    int signal = 0;
    if (::sigwait(&ends_, &signal) != 0 || signal == over) return;
    remove();  // what is made in it from now on fails
    std::signal(signal, SIG_DFL);
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    ::raise(signal);
}

void OwnFolder::remove() const noexcept {
    std::error_code ignored;
    // Twice: a file may come between what was listed and the end.
    for (int attempt = 0; attempt < 2; ++attempt) std::filesystem::remove_all(path_, ignored);
}

}  // namespace taiyen::tool
