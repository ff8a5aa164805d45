/// Threads that come and go, hand blocks to each other, and fork while others allocate. Prints sums that don't depend on who was when.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

std::mutex mutex;
std::vector<std::string*> box;
std::atomic<std::uint64_t> total{0};

std::uint64_t sum(const std::string& text) {
    std::uint64_t value = 0;
    for (const char c : text) value = value * 31 + static_cast<unsigned char>(c);
    return value;
}

void work(unsigned number) {
    std::map<unsigned, std::string> own;
    for (unsigned i = 0; i < 20'000; ++i) {
        own[i * 7919 % 500] = std::string(i * 13 % 400 + 1, static_cast<char>('a' + (number + i) % 26));
        auto* const text = new std::string(i % 3000 + 1, static_cast<char>('A' + i % 26));
        std::string* taken = nullptr;
        {
            const std::lock_guard lock(mutex);
            box.push_back(text);
            if (box.size() > 100) {
                taken = box.front();
                box.front() = box.back();
                box.pop_back();
            }
        }
        if (taken != nullptr) {
            total += sum(*taken);
            delete taken;
        }
        if (i % 1000 == 0) std::free(std::realloc(std::malloc(i * 50 + 1), i * 100 + 1));
    }
    for (const auto& [key, text] : own) total += key * sum(text);
}

/// What a child does with memory that it inherited and memory of its own.
int child(std::map<int, std::string>& inherited) {
    std::vector<std::string> more;
    for (int i = 0; i < 2'000; ++i) {
        more.emplace_back(static_cast<std::size_t>(i % 5'000 + 1), 'x');
        inherited.erase(i);
    }
    std::thread([&] { more.clear(); }).join();
    return inherited.empty() ? 0 : 1;
}

}  // namespace

int main() {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number) threads.emplace_back(work, number);
    std::map<int, std::string> inherited;
    for (int i = 0; i < 2'000; ++i) inherited[i] = std::string(static_cast<std::size_t>(i % 100 + 1), 'y');
    int failed = 0;
    for (int round = 0; round < 20; ++round) {
        const pid_t pid = ::fork();
        if (pid == 0) ::_exit(child(inherited));
        int status = 0;
        if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
    }
    for (std::thread& thread : threads) thread.join();
    for (std::string* text : box) {
        total += sum(*text);
        delete text;
    }
    for (int i = 0; i < 2'000; ++i) std::thread([i] { std::free(std::malloc(static_cast<std::size_t>(i))); }).join();
    std::printf("%llu, %d children failed\n", static_cast<unsigned long long>(total), failed);
    return failed;
}
