#pragma once
/// What the benchmarks share: options, a folder for their files, interleaved rounds, medians with their spread.
///
/// (I1) Contenders run in turns within each round, in rotating order: what the machine does meanwhile hits all of them alike. Ratios are medians of the ratios
///      within one round, so drift cancels out.
/// (I2) Every figure is printed with its smallest and largest value.
/// (I3) The process stays on one processor, unless what is measured has threads of its own. Programs that time synchronous writes ask for real-time priority: on a busy machine a finished write otherwise waits for
///      the scheduler's next tick, up to 4 ms, and that is all one would see.

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "random.hpp"

namespace bench {

enum class Priority { normal, real_time };
/// `all`: the contenders have threads.
enum class Processors { one, all };

/// What the command line said.
class Options {
public:
    /// `extra`: this program's own options with their default values and meanings.
    struct Extra {
        std::string name;
        std::string value;
        std::string meaning;
    };

    Options(int argc, char** argv, std::string_view question, int rounds, Priority priority, const std::vector<Extra>& extra = {},
            Processors processors = Processors::one)
        : rounds_(rounds) {
        for (const Extra& option : extra) values_[option.name] = option.value;
        for (int i = 1; i < argc; ++i) {
            const std::string argument = argv[i];
            if (argument == "--help" || argument == "-h") {
                print_help(argv[0], question, extra);
                std::exit(0);
            }
            if (argument == "--quick") {
                quick_ = true;
                continue;
            }
            const bool known = argument == "--rounds" || argument == "--folder" || argument == "--processor" || values_.contains(argument);
            if (!known || i + 1 == argc) {
                std::fprintf(stderr, "%s: %s %s; see --help\n", argv[0], argument.c_str(), known ? "needs a value" : "is unknown");
                std::exit(2);
            }
            set(argument, argv[++i]);
        }
        if (quick_) rounds_ = std::min(rounds_, 3);
        if (processors == Processors::one || processor_ >= 0) pin();
        if (priority == Priority::real_time) {
            sched_param parameter{};
            parameter.sched_priority = 1;
            real_time_ = ::sched_setscheduler(0, SCHED_FIFO, &parameter) == 0 ? "with real-time priority" : "real-time priority was refused";
        }
    }

    int rounds() const { return rounds_; }
    bool quick() const { return quick_; }
    const std::filesystem::path& folder() const { return folder_; }
    int processor() const { return processor_; }  ///< -1: not bound to one
    const char* real_time() const { return real_time_; }
    const std::string& text(const std::string& name) const { return values_.at(name); }
    std::uint64_t number(const std::string& name) const { return std::stoull(values_.at(name)); }

private:
    void set(const std::string& name, const std::string& value) {
        if (name == "--rounds")
            rounds_ = std::max(1, std::stoi(value));
        else if (name == "--folder")
            folder_ = value;
        else if (name == "--processor")
            processor_ = std::stoi(value);
        else
            values_[name] = value;
    }

    void pin() {
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        ::sched_getaffinity(0, sizeof allowed, &allowed);
        if (processor_ < 0) {
            for (int i = 0; i < CPU_SETSIZE; ++i)
                if (CPU_ISSET(i, &allowed)) processor_ = i;  // the last one: the first one serves most interrupts
        }
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(processor_, &one);
        if (::sched_setaffinity(0, sizeof one, &one) != 0) processor_ = -1;
    }

    static void print_help(const char* program, std::string_view question, const std::vector<Extra>& extra) {
        std::printf("usage: %s [options]\n\n%.*s\n\n", program, static_cast<int>(question.size()), question.data());
        std::printf("  %-22s %s\n", "--rounds N", "rounds; each contender runs once in each");
        std::printf("  %-22s %s\n", "--quick", "fewer rounds, smaller data: does it run at all?");
        std::printf("  %-22s %s\n", "--folder DIR", "where the files go (default: here); the file system is what is measured");
        std::printf("  %-22s %s\n", "--processor N", "the processor to stay on (default: the last one)");
        for (const Extra& option : extra) {
            std::printf("  %-22s %s (default: %s)\n", (option.name + " X").c_str(), option.meaning.c_str(),
                        option.value.empty() ? "none" : option.value.c_str());
        }
        std::printf("  %-22s %s\n", "--help", "this text");
    }

    int rounds_;
    bool quick_ = false;
    int processor_ = -1;
    const char* real_time_ = "with normal priority";
    std::filesystem::path folder_ = ".";
    std::map<std::string, std::string> values_;
};

/// A folder that goes with its object.
class Folder {
public:
    explicit Folder(const std::filesystem::path& parent) {
        std::string name = (parent / "taiyen-bench-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw std::runtime_error(name + ": can't be made: " + std::strerror(errno) + "; name another folder with --folder");
        path_ = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

inline double microseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// Runs it and tells how long it took.
template <class F>
double microseconds_of(F&& action) {
    const auto start = std::chrono::steady_clock::now();
    std::forward<F>(action)();
    return microseconds_since(start);
}

/// The same in processor time of this thread, the kernel's share included: for work that never waits, on a machine that others use too.
template <class F>
double processor_microseconds_of(F&& action) {
    const auto now = [] {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
    };
    const double start = now();
    std::forward<F>(action)();
    return now() - start;
}

/// Figures of one contender, one per round.
class Samples {
public:
    void add(double value) { values_.push_back(value); }
    bool empty() const { return values_.empty(); }
    std::size_t size() const { return values_.size(); }
    double operator[](std::size_t round) const { return values_[round]; }
    double median() const {
        if (values_.empty()) return 0;
        std::vector<double> sorted = values_;
        std::sort(sorted.begin(), sorted.end());
        const std::size_t half = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }
    double min() const { return values_.empty() ? 0 : *std::min_element(values_.begin(), values_.end()); }
    double max() const { return values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end()); }

private:
    std::vector<double> values_;
};

/// Median of this ÷ that within each round.
inline Samples ratio(const Samples& numerator, const Samples& denominator) {
    Samples result;
    for (std::size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i)
        result.add(denominator[i] != 0 ? numerator[i] / denominator[i] : 0);
    return result;
}

struct Contender {
    std::string name;
    std::function<double()> run;  ///< one round's figure
};

/// Runs all contenders in each round, starting with another one each time. The result is in the order of the contenders.
inline std::vector<Samples> interleave(int rounds, const std::vector<Contender>& contenders) {
    std::vector<Samples> samples(contenders.size());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t k = 0; k < contenders.size(); ++k) {
            const std::size_t which = (static_cast<std::size_t>(round) + k) % contenders.size();
            samples[which].add(contenders[which].run());
        }
    }
    return samples;
}

/// "12.3 (11.9 – 15.0)"
inline std::string spread(const Samples& samples, int digits = 1) {
    char text[96];
    std::snprintf(text, sizeof text, "%.*f (%.*f \u2013 %.*f)", digits, samples.median(), digits, samples.min(), digits, samples.max());
    return text;
}
inline std::string fixed(double value, int digits = 1) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/// A table of text: the first column to the left, the others to the right.
class Table {
public:
    explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
    void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    void print() const {
        std::vector<std::size_t> width;
        for (const auto& row : rows_) {
            width.resize(std::max(width.size(), row.size()));
            for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns(row[i]));
        }
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            std::string line;
            for (std::size_t i = 0; i < rows_[r].size(); ++i) {
                const std::string& cell = rows_[r][i];
                const std::string pad(width[i] - columns(cell), ' ');
                line += i == 0 ? cell + pad : "  " + pad + cell;
            }
            std::printf("%s\n", line.c_str());
            if (r == 0) {
                std::size_t total = 0;
                for (std::size_t i = 0; i < width.size(); ++i) total += width[i] + (i == 0 ? 0 : 2);
                std::printf("%s\n", std::string(total, '-').c_str());
            }
        }
        std::printf("\n");
        std::fflush(stdout);
    }

private:
    /// Characters, not bytes.
    static std::size_t columns(const std::string& text) {
        return static_cast<std::size_t>(
            std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
    }
    std::vector<std::vector<std::string>> rows_;
};

/// A main function that says what failed.
inline int guarded(const std::function<int()>& body) {
    try {
        return body();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "failed: %s\n", error.what());
        return 1;
    }
}

}  // namespace bench
