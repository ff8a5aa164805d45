// Ordered maps in memory: what do insertions, look-ups, scans and erasures cost, and how many bytes a key, in taiyen::btree_map, std::map, absl::btree_map and tbb::concurrent_map, on 4 KiB pages and on huge ones?
//
// Each contender runs in a process of its own, one after the other in each round, with the same keys: hashed numbers, or their decimal digits as text, with values of eight bytes. Figures are nanoseconds of
// processor time for each operation, the making of the key included.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "machine.hpp"

#if defined(TAIYEN_BENCH_ABSL)
#include <absl/container/btree_map.h>
#endif
#if defined(TAIYEN_BENCH_TBB)
#include <oneapi/tbb/concurrent_map.h>
#endif

#if defined(TAIYEN_BENCH_ABSL)
/// It is never saved.
template <class... A>
inline constexpr bool taiyen::points_to_constant<absl::btree_map<A...>> = false;
#endif

/// The same order, in leaves of another size.
template <std::size_t Bytes>
struct InLeavesOf : std::less<> {};
template <std::size_t Bytes>
struct taiyen::ordered::OrderOf<InLeavesOf<Bytes>> {
    using type = std::less<>;
};
template <std::size_t Bytes>
inline constexpr std::size_t taiyen::ordered::leaf_bytes_of<InLeavesOf<Bytes>> = Bytes;

namespace {

using bench::Random;
using bench::Samples;
using Value = std::uint64_t;

enum Operation { insert, hit, miss, zipf, many, overwrite, scan, iterate, erase, bytes, huge, operations };
constexpr std::array<const char*, operations> names{
    "insert, in random order",   "find, there",   "find, missing",    "find, zipf .99", "find 1,000 at once, each", "overwrite",
    "100 from a lower_bound on", "iterate, each", "erase half, each", "bytes a key",    "% in huge pages"};
using Figures = std::array<double, operations>;

/// What text begins with.
std::string prefix;

/// Numbers that look random, all different: the rounds of MurmurHash3's finaliser are invertible.
std::uint64_t hashed(std::uint64_t number) {
    number ^= number >> 33U;
    number *= 0xff51'afd7'ed55'8ccdULL;
    number ^= number >> 33U;
    number *= 0xc4ce'b9fe'1a85'ec53ULL;
    return number ^ number >> 33U;
}

/// Ranks by Zipf's law (Gray and others, "Quickly generating billion-record synthetic databases", SIGMOD 1994).
class Zipf {
public:
    Zipf(std::uint64_t count, double theta) : count_(static_cast<double>(count)), theta_(theta) {
        for (std::uint64_t i = 1; i <= count; ++i) zeta_ += std::pow(static_cast<double>(i), -theta);
        eta_ = (1 - std::pow(2 / count_, 1 - theta)) / (1 - (1 + std::pow(2, -theta)) / zeta_);
    }
    std::uint64_t next(Random& random) const {
        const double u = random.unit();
        if (u * zeta_ < 1) return 0;
        if (u * zeta_ < 1 + std::pow(.5, theta_)) return 1;
        return static_cast<std::uint64_t>(std::min(count_ - 1, count_ * std::pow(eta_ * u - eta_ + 1, 1 / (1 - theta_))));
    }

private:
    double count_;
    double theta_;
    double zeta_ = 0;
    double eta_ = 0;
};

/// Key number i; those from the count on are missing.
template <class Key>
Key made(std::uint64_t number) {
    if constexpr (std::is_same_v<Key, std::uint64_t>) {
        return hashed(number);
    } else {
        std::array<char, 80> digits{};
        const int length =
            std::snprintf(digits.data(), digits.size(), "%.50s%020llu", prefix.c_str(), static_cast<unsigned long long>(hashed(number)));
        return Key(digits.data(), static_cast<std::size_t>(length));
    }
}

/// Where keys are looked up from: no contender builds a key of its own for that.
template <class Key>
using Wanted = std::conditional_t<std::is_same_v<Key, std::uint64_t>, std::uint64_t, std::string>;

/// One container, alone in its process.
template <class Map>
struct Alone {
    Map map;
    Map& get() { return map; }
};
template <class Map, taiyen::PageSize Pages>
struct InHeap {
    taiyen::VolatileHeap heap{[] {
        taiyen::VolatileOptions options;
        options.pages = Pages;
        return options;
    }()};
    Map* map = &heap.construct<Map>("map");
    Map& get() { return *map; }
};

struct Resident {
    double bytes = 0;
    double huge = 0;
    static Resident now() {
        const auto kilobytes = [](const char* key) { return std::atof(bench::value_in("/proc/self/smaps_rollup", key).c_str()) * 1024; };
        return {kilobytes("Rss"), kilobytes("AnonHugePages")};
    }
};

volatile std::uint64_t sink = 0;

template <class Home>
Figures measure(std::uint64_t count, std::uint64_t seed) {
    using Map = std::remove_reference_t<decltype(std::declval<Home&>().get())>;
    using Key = typename Map::key_type;
    using Question = Wanted<Key>;
    Figures figures{};
    Random random(seed);
    const Zipf zipfian(count, .99);
    const std::uint64_t questions = std::min<std::uint64_t>(count, 2'000'000);
    std::uint64_t sum = 0;
    const auto time = [&](Operation operation, std::uint64_t each, auto&& action) {
        figures[operation] = bench::processor_microseconds_of(action) * 1000 / static_cast<double>(each);
    };
    const Resident before = Resident::now();
    Home home;
    Map& map = home.get();
    time(insert, count, [&] {
        for (std::uint64_t i = 0; i < count; ++i) map.emplace(made<Key>(i), i);
    });
    const Resident after = Resident::now();
    figures[bytes] = (after.bytes - before.bytes) / static_cast<double>(count);
    figures[huge] = std::min(100.0, 100 * (after.huge - before.huge) / std::max(1.0, after.bytes - before.bytes));
    time(hit, questions, [&] {
        for (std::uint64_t i = 0; i < questions; ++i) sum += map.find(made<Question>(random.below(count)))->second;
    });
    time(miss, questions, [&] {
        for (std::uint64_t i = 0; i < questions; ++i) sum += map.find(made<Question>(count + random.below(count))) == map.end() ? 1 : 0;
    });
    time(zipf, questions, [&] {
        for (std::uint64_t i = 0; i < questions; ++i) sum += map.find(made<Question>(zipfian.next(random)))->second;
    });
    time(many, questions, [&] {
        std::vector<Question> asked(1000);
        for (std::uint64_t i = 0; i < questions; i += asked.size()) {
            for (Question& question : asked) question = made<Question>(random.below(count));
            if constexpr (requires { map.for_each_found(std::span<const Question>(asked), [](std::size_t, const auto&) {}); })
                map.for_each_found(std::span<const Question>(asked), [&](std::size_t, const auto& element) { sum += element.second; });
            else
                for (const Question& question : asked) sum += map.find(question)->second;
        }
    });
    time(overwrite, questions, [&] {
        for (std::uint64_t i = 0; i < questions; ++i) map.find(made<Question>(random.below(count)))->second = i;
    });
    const std::uint64_t scans = std::max<std::uint64_t>(1, questions / 100);
    time(scan, scans, [&] {
        for (std::uint64_t i = 0; i < scans; ++i) {
            auto at = map.lower_bound(made<Question>(random.below(count)));
            for (int k = 0; k < 100 && at != map.end(); ++k, ++at) sum += at->second;
        }
    });
    time(iterate, count, [&] {
        for (auto&& [key, value] : map) sum += value;
    });
    if constexpr (requires { map.erase(made<Key>(0)); }) {
        time(erase, count / 2, [&] {
            for (std::uint64_t i = 0; i < count; i += 2) map.erase(made<Key>(i));
        });
    }
    sink = sink + sum;
    return figures;
}

struct Subject {
    std::string name;
    std::function<Figures(std::uint64_t count, std::uint64_t seed)> measure;
    std::string preload;   ///< a library, by LD_PRELOAD
    std::string tunables;  ///< of malloc, by GLIBC_TUNABLES
};

/// `Heaped` is the key in a heap, `Key` elsewhere.
template <class Heaped, class Key>
std::vector<Subject> subjects() {
    using Pair = std::pair<const Key, Value>;
    std::vector<Subject> all;
    constexpr auto automatic = taiyen::PageSize::automatic;
    const auto add = [&]<class Home>(const char* name, std::type_identity<Home>, const char* preload = "", const char* tunables = "") {
        all.push_back({name, &measure<Home>, preload, tunables});
    };
    using Ours = taiyen::btree_map<Heaped, Value>;
    using Plain = taiyen::btree_map<Key, Value, std::less<>, std::allocator<Pair>>;
    add("taiyen::btree_map, VolatileHeap", std::type_identity<InHeap<Ours, automatic>>());
    add("taiyen::btree_map, VolatileHeap of 4 KiB pages", std::type_identity<InHeap<Ours, taiyen::PageSize::base>>());
    add("taiyen::btree_map, malloc", std::type_identity<Alone<Plain>>());
    add("taiyen::ordered_map, VolatileHeap", std::type_identity<InHeap<taiyen::ordered_map<Heaped, Value>, automatic>>());
    add("taiyen::map, VolatileHeap", std::type_identity<InHeap<taiyen::map<Heaped, Value>, automatic>>());
    add("std::map, malloc", std::type_identity<Alone<std::map<Key, Value, std::less<>>>>());
#if defined(TAIYEN_BENCH_ABSL)
    using Absl = absl::btree_map<Key, Value, std::less<>>;
    add("absl::btree_map, VolatileHeap",
        std::type_identity<
            InHeap<absl::btree_map<Heaped, Value, std::less<>, taiyen::persistent_allocator<std::pair<const Heaped, Value>>>, automatic>>());
    add("absl::btree_map, malloc", std::type_identity<Alone<Absl>>());
    add("absl::btree_map, malloc, huge pages", std::type_identity<Alone<Absl>>(), "", "glibc.malloc.hugetlb=1");
    add("absl::btree_map, mimalloc, huge pages", std::type_identity<Alone<Absl>>(), "libmimalloc.so.2.0", "");
#endif
#if defined(TAIYEN_BENCH_TBB)
    add("tbb::concurrent_map, malloc", std::type_identity<Alone<tbb::concurrent_map<Key, Value, std::less<>>>>());
#endif
    return all;
}
/// The same tree with leaves of different sizes.
template <class Heaped>
std::vector<Subject> leaf_sizes() {
    std::vector<Subject> all;
    const auto add = [&]<std::size_t Bytes>(std::integral_constant<std::size_t, Bytes>) {
        using Home = InHeap<taiyen::btree_map<Heaped, Value, InLeavesOf<Bytes>>, taiyen::PageSize::automatic>;
        all.push_back({"leaves of " + std::to_string(Bytes) + " bytes", &measure<Home>, "", ""});
    };
    using Standard = InHeap<taiyen::btree_map<Heaped, Value>, taiyen::PageSize::automatic>;
    all.push_back({"leaves as they are", &measure<Standard>, "", ""});
    add(std::integral_constant<std::size_t, 256>());
    add(std::integral_constant<std::size_t, 512>());
    add(std::integral_constant<std::size_t, 1024>());
    add(std::integral_constant<std::size_t, 2048>());
    add(std::integral_constant<std::size_t, 4096>());
    return all;
}
std::vector<Subject> subjects_of(const std::string& keys, bool of_leaf_sizes) {
    if (of_leaf_sizes && keys == "numbers") return leaf_sizes<std::uint64_t>();
    if (of_leaf_sizes && keys == "text") return leaf_sizes<taiyen::string>();
    if (keys == "numbers") return subjects<std::uint64_t, std::uint64_t>();
    if (keys == "text") return subjects<taiyen::string, std::string>();
    throw std::runtime_error("--keys: numbers or text, not " + keys);
}

/// One contender in a process of its own, which is this program again; nothing if it couldn't run.
std::optional<Figures> in_process(const std::vector<std::string>& arguments, const Subject& subject) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[0]);
        if (!subject.tunables.empty()) ::setenv("GLIBC_TUNABLES", subject.tunables.c_str(), 1);
        if (!subject.preload.empty()) {
            ::setenv("LD_PRELOAD", subject.preload.c_str(), 1);
            ::setenv("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1", 1);
        }
        std::vector<char*> pointers;
        for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
        pointers.push_back(nullptr);
        ::execv("/proc/self/exe", pointers.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    Figures figures{};
    std::size_t got = 0;
    while (got < sizeof figures) {
        const ssize_t more = ::read(ends[0], reinterpret_cast<std::byte*>(figures.data()) + got, sizeof figures - got);
        if (more <= 0) break;
        got += static_cast<std::size_t>(more);
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (got == sizeof figures && status == 0) return figures;
    return std::nullopt;
}

/// Whether the name has one of the texts in it, which `|` parts.
bool is_wanted(const std::string& name, const std::string& texts) {
    for (std::size_t at = 0; at <= texts.size();) {
        const std::size_t end = std::min(texts.find('|', at), texts.size());
        if (name.find(texts.substr(at, end - at)) != std::string::npos) return true;
        at = end + 1;
    }
    return false;
}

void compare(const bench::Options& options, const std::string& keys, std::uint64_t count, const std::string& program) {
    std::vector<Subject> all = subjects_of(keys, !options.text("--node-bytes").empty());
    const std::string only = options.text("--only");
    std::erase_if(all, [&](const Subject& subject) { return !only.empty() && !is_wanted(subject.name, only); });
    std::vector<std::array<Samples, operations>> samples(all.size());
    for (int round = 0; round < options.rounds(); ++round) {
        for (std::size_t k = 0; k < all.size(); ++k) {
            const std::size_t i = (static_cast<std::size_t>(round) + k) % all.size();
            const std::vector<std::string> arguments{program,
                                                     "--keys",
                                                     keys,
                                                     "--sizes",
                                                     std::to_string(count),
                                                     "--subject",
                                                     all[i].name,
                                                     "--prefix",
                                                     options.text("--prefix"),
                                                     "--seed",
                                                     std::to_string(round + 1),
                                                     "--processor",
                                                     std::to_string(options.processor())};
            const auto figures = in_process(arguments, all[i]);
            if (!figures) {
                std::printf("%s: not measured: it ended early\n", all[i].name.c_str());
                continue;
            }
            for (std::size_t operation = 0; operation < operations; ++operation) samples[i][operation].add((*figures)[operation]);
        }
    }
    std::printf("%llu keys, %s; ns, and the ratio to the first\n\n", static_cast<unsigned long long>(count), keys.c_str());
    std::vector<std::string> head{""};
    for (const char* name : names) head.emplace_back(name);
    bench::Table table(head);
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<std::string> row{all[i].name};
        for (std::size_t operation = 0; operation < operations; ++operation) {
            if (operation == erase && samples[i][operation].median() == 0) {  // tbb's takes only iterators, and isn't meant to be called much
                row.emplace_back();
                continue;
            }
            std::string cell = bench::fixed(samples[i][operation].median(), operation == iterate || operation == bytes ? 1 : 0);
            if (i != 0 && operation < bytes && !samples[i][operation].empty())
                cell += " (" + bench::fixed(bench::ratio(samples[i][operation], samples[0][operation]).median(), 2) + ")";
            row.push_back(cell);
        }
        table.row(row);
    }
    table.print();
}

int run(const bench::Options& options, const std::string& program) {
    if (const std::string wanted = options.text("--subject"); !wanted.empty()) {
        for (const Subject& subject : subjects_of(options.text("--keys"), wanted.starts_with("leaves"))) {
            if (subject.name != wanted) continue;
            prefix = options.text("--prefix");
            const Figures figures = subject.measure(options.number("--sizes"), options.number("--seed"));
            return ::write(STDOUT_FILENO, figures.data(), sizeof figures) == static_cast<ssize_t>(sizeof figures) ? 0 : 1;
        }
        throw std::runtime_error("--subject: there is none of that name: " + wanted);
    }
    bench::print_head(options, "Ordered maps in memory");
    std::vector<std::string> kinds{"numbers", "text"};
    if (!options.text("--keys").empty()) kinds = {options.text("--keys")};
    std::string sizes = options.quick() ? "10000" : options.text("--sizes");
    for (const std::string& keys : kinds) {
        for (std::size_t at = 0; at < sizes.size();) {
            const std::size_t end = std::min(sizes.find(',', at), sizes.size());
            compare(options, keys, std::stoull(sizes.substr(at, end - at)), program);
            at = end + 1;
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "What do ordered maps cost in memory?", 5, bench::Priority::normal,
                                     {{"--sizes", "10000,1000000,10000000", "numbers of keys, with commas between them"},
                                      {"--keys", "", "numbers or text; nothing: both"},
                                      {"--prefix", "", "what text begins with"},
                                      {"--node-bytes", "", "yes: leaves of different sizes side by side"},
                                      {"--only", "", "contenders whose name has this in it, or one of several texts with | between them"},
                                      {"--subject", "", "run this contender here and write bare figures: what the program calls itself with"},
                                      {"--seed", "1", "of the questions"}});
        return run(options, argv[0]);
    });
}
