#pragma once
/// Jobs in processes of their own, several at a time: one that dies or hangs takes nothing with it, and says where it was.
/// Thread rule: one thread, and no others in the process.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace taiyen::crash {

struct JobEnd {
    std::string answer;
    std::string died;   ///< empty: it ended well; else by what: "killed by signal 11 (Segmentation fault)"
    std::string state;  ///< what it had noted last (`note_current_state`)
};

/// Runs job(0) … job(count - 1), each in a child that ends with it, at most `workers` at a time, in order of their numbers; `done` hears of each end, here. No job begins once `stop` says so.
void run_jobs(std::size_t count, unsigned workers, const std::function<std::string(std::size_t)>& job,
              const std::function<void(std::size_t, const JobEnd&)>& done, const std::function<bool()>& stop = {});

/// As many workers as there are processors that this process may use.
unsigned processors();

/// Numbers and texts in a row: what a child tells its parent.
class Packet {
public:
    Packet() = default;
    explicit Packet(std::string bytes) : bytes_(std::move(bytes)) {}
    void put(std::uint64_t number);
    void put(std::string_view text);
    /// Throws std::runtime_error: there is nothing more.
    std::uint64_t number();
    std::string text();
    bool at_end() const { return at_ == bytes_.size(); }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
    std::size_t at_ = 0;
};

}  // namespace taiyen::crash
