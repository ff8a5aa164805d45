// How many requests for objects per second, how long they wait, and how long a pause takes: ObjectManager against sorted std::mutexes, striped tbb::spin_rw_mutexes, accessors of a
// tbb::concurrent_hash_map in ascending order, and one mutex with a condition variable.
//
// Ids are 64-bit numbers without order, as in a program whose objects come and go. The peers find their objects by a table that is only read here, with linear probing, the best that they can do
// (concurrent_hash_map is a table itself). With --dense 1 ids are 0, 1, 2 …, and the peers index an array.
//
// Every request locks its objects exclusively, adds one to each, stays busy for the critical section, and gives them back; at the end the sum must be right. Zipf's ranks are spread over the ids, so that hot
// objects don't share cache lines.

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/object/object_manager.hpp>

#include "harness.hpp"

#if defined(TAIYEN_BENCH_TBB)
#include <tbb/concurrent_hash_map.h>
#include <tbb/spin_rw_mutex.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;
using Id = std::int64_t;

constexpr std::size_t ids_max = 16;

struct Request {
    std::array<Id, ids_max> ids;
    std::size_t count;
    std::size_t distinct;
    std::span<const Id> span() const { return {ids.data(), count}; }
    /// Sorted, each once.
    std::size_t sorted(std::array<Id, ids_max>& out) const {
        std::size_t have = 0;
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t at = have;
            while (at != 0 && out[at - 1] > ids[i]) --at;
            if (at != 0 && out[at - 1] == ids[i]) continue;
            for (std::size_t k = have; k != at; --k) out[k] = out[k - 1];
            out[at] = ids[i];
            ++have;
        }
        return have;
    }
};

bool dense_ids = false;

/// The id of the object with that number.
Id id_of(std::size_t number) { return dense_ids ? static_cast<Id>(number) : static_cast<Id>((number + 1) * 0x9e37'79b9'7f4a'7c15ULL); }

/// Where the peers have their objects.
template <class Locked>
class Found {
public:
    explicit Found(std::size_t count) : objects_(count) {
        if (dense_ids) return;
        while (mask_ + 1 < count * 2) mask_ = mask_ * 2 + 1;
        slots_.resize(mask_ + 1);
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t at = home(id_of(i));
            while (slots_[at].object != nullptr) at = (at + 1) & mask_;
            slots_[at] = {id_of(i), &objects_[i]};
        }
    }
    Locked& operator[](Id id) {
        if (dense_ids) return objects_[static_cast<std::size_t>(id)];
        std::size_t at = home(id);
        while (slots_[at].id != id) at = (at + 1) & mask_;
        return *slots_[at].object;
    }
    std::uint64_t sum() const {
        std::uint64_t sum = 0;
        for (const Locked& object : objects_) sum += object.value;
        return sum;
    }

private:
    struct Slot {
        Id id = 0;
        Locked* object = nullptr;
    };
    std::size_t home(Id id) const {
        const std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0xbf58'476d'1ce4'e5b9ULL;
        return static_cast<std::size_t>(mixed ^ mixed >> 32U) & mask_;
    }
    std::vector<Locked> objects_;
    std::vector<Slot> slots_;
    std::size_t mask_ = 1;
};

/// What a thread asks for, made before the clock runs.
class Requests {
public:
    Requests(std::size_t objects, std::size_t ids, double skew, std::uint64_t seed) : made_(1U << 15U) {
        bench::Random random(seed);
        // Gray et al., "Quickly generating billion-record synthetic databases", 1994.
        double zeta = 0;
        if (skew > 0)
            for (std::size_t i = 1; i <= objects; ++i) zeta += 1 / std::pow(static_cast<double>(i), skew);
        const double alpha = 1 / (1 - skew);
        const double two = 1 + std::pow(0.5, skew);
        const double eta = skew > 0 ? (1 - std::pow(2.0 / static_cast<double>(objects), 1 - skew)) / (1 - two / zeta) : 0;
        for (Request& request : made_) {
            request.count = ids;
            for (std::size_t i = 0; i < ids; ++i) {
                std::uint64_t rank = 0;
                if (skew > 0) {
                    const double u = random.unit();
                    const double uz = u * zeta;
                    rank = uz < 1 ? 0 : uz < two ? 1 : static_cast<std::uint64_t>(static_cast<double>(objects) * std::pow(eta * u - eta + 1, alpha));
                } else {
                    rank = random.below(objects);
                }
                request.ids[i] = id_of(rank % objects * 0x9e37'79b1ULL % objects);
            }
            std::array<Id, ids_max> sorted;
            request.distinct = request.sorted(sorted);
        }
    }
    const Request& operator[](std::size_t i) const { return made_[i % made_.size()]; }

private:
    std::vector<Request> made_;
};

void busy(std::chrono::nanoseconds time) {
    if (time.count() == 0) return;
    const auto end = Clock::now() + time;
    while (Clock::now() < end) {}
}

struct alignas(64) Object {
    std::uint64_t value = 0;
};

class Peer {
public:
    virtual ~Peer() = default;
    virtual void run(const Request& request, std::chrono::nanoseconds section) = 0;
    virtual std::uint64_t sum() const = 0;
    std::uint64_t expected = 0;  ///< of the sum
};

class Manager final : public Peer {
public:
    explicit Manager(std::size_t count) : objects_(count), manager_({.objects = count}) {
        for (std::size_t i = 0; i < count; ++i) manager_.add(id_of(i), objects_[i]);
    }
    void run(const Request& request, std::chrono::nanoseconds section) override {
        auto held = manager_.checkout(request.span());
        held.edit_each([](Id, Object& object) { ++object.value; });
        busy(section);
    }
    std::uint64_t sum() const override {
        std::uint64_t sum = 0;
        for (const Object& object : objects_) sum += object.value;
        return sum;
    }
    taiyen::ObjectManager<Object>& manager() { return manager_; }

private:
    std::vector<Object> objects_;
    taiyen::ObjectManager<Object> manager_;
};

class Mutexes final : public Peer {
public:
    explicit Mutexes(std::size_t count) : objects_(count) {}
    void run(const Request& request, std::chrono::nanoseconds section) override {
        std::array<Id, ids_max> ids;
        std::array<Locked*, ids_max> locked;
        const std::size_t count = request.sorted(ids);
        for (std::size_t i = 0; i < count; ++i) {
            locked[i] = &objects_[ids[i]];
            locked[i]->mutex.lock();
        }
        for (std::size_t i = 0; i < count; ++i) ++locked[i]->value;
        busy(section);
        for (std::size_t i = count; i-- != 0;) locked[i]->mutex.unlock();
    }
    std::uint64_t sum() const override { return objects_.sum(); }

private:
    struct alignas(64) Locked {
        std::mutex mutex;
        std::uint64_t value = 0;
    };
    Found<Locked> objects_;
};

class OneMutex final : public Peer {
public:
    explicit OneMutex(std::size_t count) : objects_(count) {}
    void run(const Request& request, std::chrono::nanoseconds section) override {
        std::array<Id, ids_max> ids;
        std::array<Locked*, ids_max> locked;
        const std::size_t count = request.sorted(ids);
        for (std::size_t i = 0; i < count; ++i) locked[i] = &objects_[ids[i]];
        {
            std::unique_lock lock(mutex_);
            const auto free = [](const Locked* object) { return !object->taken; };
            changed_.wait(lock, [&] { return std::all_of(locked.begin(), locked.begin() + static_cast<std::ptrdiff_t>(count), free); });
            for (std::size_t i = 0; i < count; ++i) locked[i]->taken = true;
        }
        for (std::size_t i = 0; i < count; ++i) ++locked[i]->value;
        busy(section);
        {
            const std::lock_guard lock(mutex_);
            for (std::size_t i = 0; i < count; ++i) locked[i]->taken = false;
        }
        changed_.notify_all();
    }
    std::uint64_t sum() const override { return objects_.sum(); }

private:
    struct alignas(64) Locked {
        std::uint64_t value = 0;
        bool taken = false;
    };
    std::mutex mutex_;
    std::condition_variable changed_;
    Found<Locked> objects_;
};

#if defined(TAIYEN_BENCH_TBB)
class Stripes final : public Peer {
public:
    explicit Stripes(std::size_t count) : objects_(count) {}
    void run(const Request& request, std::chrono::nanoseconds section) override {
        std::array<Id, ids_max> stripes;
        Request by_stripe = request;
        for (std::size_t i = 0; i < request.count; ++i) by_stripe.ids[i] = (request.ids[i] ^ request.ids[i] >> 32) & (stripe_count - 1);
        const std::size_t count = by_stripe.sorted(stripes);
        std::array<Id, ids_max> ids;
        const std::size_t id_count = request.sorted(ids);
        for (std::size_t i = 0; i < count; ++i) stripes_[static_cast<std::size_t>(stripes[i])].mutex.lock();
        for (std::size_t i = 0; i < id_count; ++i) ++objects_[ids[i]].value;
        busy(section);
        for (std::size_t i = count; i-- != 0;) stripes_[static_cast<std::size_t>(stripes[i])].mutex.unlock();
    }
    std::uint64_t sum() const override { return objects_.sum(); }

private:
    static constexpr Id stripe_count = 4096;
    struct alignas(64) Stripe {
        tbb::spin_rw_mutex mutex;
    };
    Found<Object> objects_;
    std::array<Stripe, stripe_count> stripes_;
};

class Accessors final : public Peer {
public:
    explicit Accessors(std::size_t count) : map_(count * 2) {
        for (std::size_t i = 0; i < count; ++i) map_.insert({id_of(i), Object{}});
    }
    void run(const Request& request, std::chrono::nanoseconds section) override {
        std::array<Id, ids_max> ids;
        const std::size_t count = request.sorted(ids);
        std::array<Map::accessor, ids_max> held;
        for (std::size_t i = 0; i < count; ++i) map_.find(held[i], ids[i]);
        for (std::size_t i = 0; i < count; ++i) ++held[i]->second.value;
        busy(section);
    }
    std::uint64_t sum() const override {
        std::uint64_t sum = 0;
        for (const auto& entry : map_) sum += entry.second.value;
        return sum;
    }

private:
    using Map = tbb::concurrent_hash_map<Id, Object>;
    Map map_;
};
#endif

struct Figures {
    double per_second = 0;
    double p50 = 0;  ///< microseconds from asking to giving back
    double p99 = 0;
    double p999 = 0;
    double longest = 0;
};

struct Cell {
    std::size_t ids;
    double skew;
    unsigned threads;
    std::chrono::nanoseconds section;
};

/// Every 8th request is timed; the longest of all would take two clock readings each.
Figures measure(Peer& peer, const std::vector<Requests>& requests, const Cell& cell, std::chrono::milliseconds time) {
    std::vector<std::vector<float>> times(cell.threads);
    std::vector<std::uint64_t> counts(cell.threads);
    std::vector<std::uint64_t> added(cell.threads);
    std::atomic<bool> stop{false};
    std::barrier start(static_cast<std::ptrdiff_t>(cell.threads) + 1);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < cell.threads; ++number) {
        threads.emplace_back([&, number] {
            times[number].reserve(1U << 20U);
            start.arrive_and_wait();
            std::size_t i = number * 4099;
            std::uint64_t count = 0;
            std::uint64_t sum = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                const Request& request = requests[number][i++];
                sum += request.distinct;
                if (count++ % 8 != 0) {
                    peer.run(request, cell.section);
                    continue;
                }
                const auto begin = Clock::now();
                peer.run(request, cell.section);
                times[number].push_back(std::chrono::duration<float, std::micro>(Clock::now() - begin).count());
            }
            counts[number] = count;
            added[number] = sum;
        });
    }
    start.arrive_and_wait();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(time);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::vector<float> all;
    std::uint64_t count = 0;
    for (unsigned number = 0; number < cell.threads; ++number) {
        all.insert(all.end(), times[number].begin(), times[number].end());
        count += counts[number];
        peer.expected += added[number];
    }
    if (peer.sum() != peer.expected) throw std::runtime_error("changes were lost");
    std::sort(all.begin(), all.end());
    const auto at = [&](double part) {
        return all.empty() ? 0.0 : static_cast<double>(all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))]);
    };
    return {static_cast<double>(count) / seconds, at(0.5), at(0.99), at(0.999), at(1)};
}

void pauses(std::size_t objects, unsigned thread_count, int count) {
    Manager peer(objects);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < thread_count; ++number) {
        threads.emplace_back([&, number] {
            const Requests requests(objects, 4, 0.99, number + 1);
            for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) peer.run(requests[i], std::chrono::microseconds(2));
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
        times.push_back(bench::microseconds_of([&] { (void)peer.manager().pause(); }));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) { return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))]; };
    std::printf("pause, %u threads, 4 ids, zipf .99, sections of 2 us, %d pauses: p50 %.0f us, p99 %.0f us, longest %.0f us\n", thread_count, count,
                at(0.5), at(0.99), at(1));
}

int run(int argc, char** argv) {
    const bench::Options options(argc, argv,
                                 "How many requests for several objects at once per second, how long do they wait, and how long does a pause take?",
                                 3, bench::Priority::normal,
                                 {{"--objects", "1000000", "objects"},
                                  {"--milliseconds", "150", "of each contender in each round"},
                                  {"--dense", "0", "1: ids are 0, 1, 2 …, and the peers index an array"},
                                  {"--full", "0", "1: all numbers of ids and threads, all critical sections"},
                                  {"--pauses", "500", "how many"}},
                                 bench::Processors::all);
    const std::size_t objects = options.quick() ? 100'000 : options.number("--objects");
    const auto time = std::chrono::milliseconds(options.quick() ? 60 : options.number("--milliseconds"));
    dense_ids = options.number("--dense") != 0;
    const bool full = options.number("--full") != 0;
    std::printf("taiyen %s, %s; %zu objects, %u processors\n\n", TAIYEN_BENCH_VERSION, TAIYEN_BENCH_COMPILER, objects,
                std::thread::hardware_concurrency());

    std::vector<std::pair<std::string, std::unique_ptr<Peer>>> peers;
    peers.emplace_back("ObjectManager", std::make_unique<Manager>(objects));
    peers.emplace_back("sorted std::mutex", std::make_unique<Mutexes>(objects));
#if defined(TAIYEN_BENCH_TBB)
    peers.emplace_back("4096 spin_rw_mutex", std::make_unique<Stripes>(objects));
    peers.emplace_back("concurrent_hash_map", std::make_unique<Accessors>(objects));
#endif
    peers.emplace_back("mutex + condition", std::make_unique<OneMutex>(objects));

    const std::vector<std::size_t> id_counts = full ? std::vector<std::size_t>{1, 2, 4, 8, 16} : std::vector<std::size_t>{1, 4, 16};
    const std::vector<unsigned> thread_counts = full ? std::vector<unsigned>{1, 2, 4, 8} : std::vector<unsigned>{1, 8};
    const std::vector<std::chrono::nanoseconds> sections =
        full ? std::vector<std::chrono::nanoseconds>{std::chrono::nanoseconds(0), std::chrono::nanoseconds(200), std::chrono::nanoseconds(2000)}
             : std::vector<std::chrono::nanoseconds>{std::chrono::nanoseconds(0), std::chrono::nanoseconds(2000)};
    for (const double skew : {0.0, 0.99}) {
        for (const std::size_t ids : id_counts) {
            std::vector<Requests> requests;
            for (unsigned number = 0; number < 8; ++number) requests.emplace_back(objects, ids, skew, number + 1);
            for (const unsigned thread_count : thread_counts) {
                for (const std::chrono::nanoseconds section : sections) {
                    const Cell cell{ids, skew, thread_count, section};
                    std::vector<std::vector<Figures>> figures(peers.size());
                    std::vector<bench::Contender> contenders;
                    for (std::size_t i = 0; i < peers.size(); ++i) {
                        contenders.push_back({peers[i].first, [&, i] {
                                                  figures[i].push_back(measure(*peers[i].second, requests, cell, time));
                                                  return figures[i].back().per_second;
                                              }});
                    }
                    const std::vector<bench::Samples> rates = bench::interleave(options.rounds(), contenders);
                    std::size_t best = 1;
                    for (std::size_t i = 2; i < peers.size(); ++i) best = rates[i].median() > rates[best].median() ? i : best;
                    std::printf("%zu ids, %s, %u threads, sections of %lld ns: %s x the best peer\n", ids, skew > 0 ? "zipf .99" : "uniform",
                                thread_count, static_cast<long long>(section.count()), bench::spread(bench::ratio(rates[0], rates[best]), 2).c_str());
                    bench::Table table({"", "thousand requests/s", "p50 us", "p99", "p99.9", "longest", "longest / p50"});
                    for (std::size_t i = 0; i < peers.size(); ++i) {
                        const auto median = [&](double Figures::* figure) {
                            bench::Samples samples;
                            for (const Figures& each : figures[i]) samples.add(each.*figure);
                            return samples.median();
                        };
                        bench::Samples thousands;
                        for (const Figures& each : figures[i]) thousands.add(each.per_second / 1000);
                        table.row({peers[i].first, bench::spread(thousands, 0), bench::fixed(median(&Figures::p50), 2),
                                   bench::fixed(median(&Figures::p99), 1), bench::fixed(median(&Figures::p999), 1),
                                   bench::fixed(median(&Figures::longest), 0),
                                   bench::fixed(median(&Figures::longest) / std::max(median(&Figures::p50), 0.001), 0)});
                    }
                    table.print();
                }
            }
        }
    }
    const taiyen::CheckoutStatistics told = static_cast<Manager&>(*peers[0].second).manager().statistics();
    std::printf("ObjectManager: %llu granted, %llu waited, %llu went first, longest wait %.1f ms\n", static_cast<unsigned long long>(told.granted),
                static_cast<unsigned long long>(told.waited), static_cast<unsigned long long>(told.went_first),
                std::chrono::duration<double, std::milli>(told.longest_wait).count());
    pauses(objects, 8, static_cast<int>(options.quick() ? 100 : options.number("--pauses")));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] { return run(argc, argv); });
}
