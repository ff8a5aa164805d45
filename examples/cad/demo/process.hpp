#pragma once
/// This program again, as another process with a pipe from its standard output.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cad::demo {

class Child {
public:
    /// Runs this program with `arguments`. Throws std::system_error.
    explicit Child(const std::vector<std::string>& arguments);
    /// A child that still runs is killed.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    pid_t pid() const { return pid_; }
    /// What it wrote next: at most `bytes`, fewer only at the end.
    std::string read(std::size_t bytes);
    /// All that is left.
    std::string read_all();
    void kill();
    /// Its status as waitpid tells it.
    int wait();

private:
    pid_t pid_ = -1;
    int output_ = -1;
    std::optional<int> status_;
};

/// Prints a line "key value", as children report figures.
void report(const std::string& key, double value);
void report(const std::string& key, std::uint64_t value);
/// Such lines.
std::map<std::string, std::string> parsed_report(const std::string& text);

}  // namespace cad::demo
