#pragma once
/// A contender in a process of its own, with a page cache that knows nothing of its files.

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "machine.hpp"

namespace bench {

/// Runs it in a process of its own, and gets what it returns.
template <class Result, class F>
std::optional<Result> in_child(F&& action) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        int status = 1;
        try {
            const Result result = action();
            status = ::write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result) ? 0 : 1;
        } catch (const std::exception& error) {
            std::printf("%s\n", error.what());
        }
        std::fflush(nullptr);
        ::_exit(status);
    }
    ::close(ends[1]);
    Result result{};
    const bool whole = ::read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::printf("ended by signal %d (9: it needed more memory than there is)\n", WTERMSIG(status));
    return whole ? std::optional(result) : std::nullopt;
}

inline void forget_folder(const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) forget_cached(entry.path());
}

}  // namespace bench
