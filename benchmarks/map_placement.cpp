// What could a heap gain for reading a std::map by placing its nodes better?
//
// The same red-black tree of a million keys with values of 100 bytes, its nodes at planned addresses: an allocator that hands out places in the order of insertion (as a heap does), of the keys, of the levels, or in
// van Emde Boas order (each subtree of half the height together, recursively: the fewest cache lines and pages per way down, for any cache). In small pages and in huge ones. Nobody can allocate like
// that while a tree grows; it bounds what any allocator could do. Then the cost of a find that can't overlap with the one before it.

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <stdexcept>
#include <vector>

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"

namespace {

using Map = std::pmr::map<std::uint64_t, bench::Value>;
using Node = std::_Rb_tree_node_base;
using Places = std::vector<std::uint32_t>;  ///< of the nodes, by the order of their insertion

constexpr std::size_t node_bytes = 144;

/// The node that is allocated as the n-th gets the n-th place.
class PlannedPlaces final : public std::pmr::memory_resource {
public:
    PlannedPlaces(std::byte* first, const Places& places) : first_(first), places_(places) {}

private:
    void* do_allocate(std::size_t bytes, std::size_t) override {
        if (bytes > node_bytes || next_ == places_.size()) throw std::bad_alloc();
        return first_ + node_bytes * places_[next_++];
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    std::byte* first_;
    const Places& places_;
    std::size_t next_ = 0;
};

class Arena {
public:
    static constexpr std::size_t huge_bytes = std::size_t{2} << 20U;

    Arena(std::size_t nodes, bool huge) : bytes_(nodes * node_bytes + 2 * huge_bytes) {
        memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory_ == MAP_FAILED) throw std::bad_alloc();
        ::madvise(memory_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    ~Arena() { ::munmap(memory_, bytes_); }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    std::byte* first() const {
        return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory_) + huge_bytes - 1) & ~(huge_bytes - 1));
    }

private:
    std::size_t bytes_;
    void* memory_;
};

void fill(Map& map, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) map.emplace(bench::key_of(i), bench::Value{});
}

struct Plan {
    const char* name;
    Places places;
};

/// The places of a tree that has been built in the order of insertion.
std::vector<Plan> plans(std::size_t count) {
    Places insertion(count);
    for (std::size_t i = 0; i < count; ++i) insertion[i] = static_cast<std::uint32_t>(i);
    const Arena arena(count, true);
    PlannedPlaces resource(arena.first(), insertion);
    Map map(&resource);
    fill(map, count);
    const auto number = [&](const Node* node) {
        return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(node) - arena.first()) / node_bytes;
    };
    const Node* root = map.begin()._M_node;
    while (root->_M_parent->_M_parent != root) root = root->_M_parent;

    Places keys(count);
    std::uint32_t next = 0;
    for (auto at = map.begin(); at != map.end(); ++at) keys[number(at._M_node)] = next++;

    Places levels(count);
    std::vector<const Node*> queue{root};
    for (std::size_t i = 0; i < queue.size(); ++i) {
        levels[number(queue[i])] = static_cast<std::uint32_t>(i);
        for (const Node* const child : {queue[i]->_M_left, queue[i]->_M_right})
            if (child != nullptr) queue.push_back(child);
    }

    Places recursive(count);
    next = 0;
    const std::function<void(const Node*, unsigned, std::vector<const Node*>&)> lay = [&](const Node* tree, unsigned height,
                                                                                          std::vector<const Node*>& below) {
        if (height == 1) {
            recursive[number(tree)] = next++;
            for (const Node* const child : {tree->_M_left, tree->_M_right})
                if (child != nullptr) below.push_back(child);
            return;
        }
        std::vector<const Node*> middle;
        lay(tree, height / 2, middle);
        for (const Node* const subtree : middle) lay(subtree, height - height / 2, below);
    };
    std::vector<const Node*> rest;
    lay(root, 64, rest);
    if (next != count || !rest.empty()) throw std::runtime_error("the tree is higher than was thought");
    return {{"in the order of insertion", std::move(insertion)},
            {"in the order of keys", std::move(keys)},
            {"by levels", std::move(levels)},
            {"in van Emde Boas order", std::move(recursive)}};
}

struct Subject {
    Subject(std::string subject_name, std::size_t count, const Places& places, bool huge)
        : name(std::move(subject_name)), arena(count, huge), resource(arena.first(), places), map(&resource) {
        fill(map, count);
    }
    std::string name;
    Arena arena;
    PlannedPlaces resource;
    Map map;
};

int run(const bench::Options& options) {
    bench::print_head(options, "What the places of a map's nodes are worth");
    const std::size_t count = options.quick() ? 50'000 : 1'000'000;
    const std::size_t reads = options.quick() ? 10'000 : 200'000;
    const bench::Keys keys(count);
    const std::vector<Plan> all = plans(count);
    std::vector<std::unique_ptr<Subject>> subjects;
    for (const Plan& plan : all)
        for (const bool huge : {false, true})
            subjects.push_back(std::make_unique<Subject>(std::string(plan.name) + (huge ? ", huge pages" : ""), count, plan.places, huge));
    std::vector<bench::Contender> contenders;
    std::vector<bench::Samples> apart(subjects.size());
    std::uint64_t sum = 0;
    bench::Random random(17);
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        contenders.push_back({subjects[i]->name, [&, i] {
                                  const Map& map = subjects[i]->map;
                                  const auto per_read = [&](auto&& read) {
                                      return bench::processor_microseconds_of([&] {
                                                 for (std::size_t k = 0; k < reads; ++k) read();
                                             }) *
                                             1e3 / static_cast<double>(reads);
                                  };
                                  const auto read = [&] { sum += map.find(keys.pick(random))->second[7]; };
                                  per_read(read);  // its nodes, not its predecessor's, are in the caches
                                  const double time = per_read(read);
                                  apart[i].add(per_read([&] {
                                      std::atomic_thread_fence(std::memory_order_seq_cst);
                                      read();
                                  }));
                                  return time;
                              }});
    }
    const auto samples = bench::interleave(options.rounds(), contenders);
    std::printf("Finding random ones of %zu keys, %zu in each round\n", count, reads);
    bench::Table table({"nodes", "ns of processor time", "speed relative to the first", "ns with a fence before each"});
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        table.row(
            {subjects[i]->name, bench::spread(samples[i], 0), bench::spread(bench::ratio(samples[0], samples[i]), 2), bench::spread(apart[i], 0)});
    }
    table.print();
    return sum == 1 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(
            bench::Options(argc, argv, "What could a heap gain for reading a std::map by placing its nodes better?", 9, bench::Priority::normal));
    });
}
