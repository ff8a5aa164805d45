// What does a 100-byte update cost per transaction where nobody waits for the disk?
//
// Random updates of a million keys, each a transaction of its own, taiyen with Durability::async and LMDB with NOSYNC|WRITEMAP. Page mode by its working set: the keys of so
// many pages. And the window of loss: how long after its commit a transaction is durable, while commits come as fast as they can.
//
// The contenders do not promise the same: taiyen is durable some milliseconds after the commit and whole after a power cut whenever that comes; LMDB never syncs, and its file may be
// damaged by a power cut.

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"

namespace {

struct Subject {
    std::string name;
    bench::KeyValues* store;
    bench::Keys keys;
    std::size_t transactions;
    bench::Random random;
    bench::Samples processor;  ///< microseconds of the committing thread's processor time
};

void compare(const bench::Options& options, std::vector<Subject>& subjects, std::size_t first_of_taiyen) {
    std::vector<bench::Contender> contenders;
    for (Subject& one : subjects) {
        contenders.push_back({one.name, [&] {
                                  one.store->update(one.random, one.keys, 200);  // its pages, not its predecessor's, are in the caches
                                  double wall = 0;
                                  const double processor = bench::processor_microseconds_of(
                                      [&] { wall = bench::microseconds_of([&] { one.store->update(one.random, one.keys, one.transactions); }); });
                                  one.processor.add(processor / static_cast<double>(one.transactions));
                                  return wall / static_cast<double>(one.transactions);
                              }});
    }
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({"one update per transaction", "µs", "rate ÷ LMDB's", "µs of processor time", "transactions per round"});
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        const bool compared = first_of_taiyen > 0;
        table.row({subjects[i].name, bench::spread(samples[i], 2), compared ? bench::spread(bench::ratio(samples[0], samples[i]), 2) : "",
                   bench::spread(subjects[i].processor, 2), std::to_string(subjects[i].transactions)});
    }
    table.print();
}

#ifdef TAIYEN_BENCH_TXN
/// How long the newest transaction at some moment takes until it is durable, at full speed.
void loss_window(const bench::Options& options, bench::HeapKeyValues& store, const bench::Keys& keys) {
    std::atomic<bool> stop{false};
    std::uint64_t committed = 0;
    std::thread writer([&] {
        bench::Random random(99);
        while (!stop.load(std::memory_order_relaxed)) {
            store.update(random, keys, 10);
            committed += 10;
        }
    });
    const taiyen::TransactionalHeap& heap = store.heap();
    bench::Samples lag;
    const auto start = std::chrono::steady_clock::now();
    const double duration = options.quick() ? 0.3e6 : 3e6;
    for (taiyen::Serial before; bench::microseconds_since(start) < duration;) {
        const taiyen::Serial newest = taiyen::ReadLock(heap).serial();
        if (newest <= before) continue;
        before = newest;
        const auto from = std::chrono::steady_clock::now();
        while (heap.last_durable() < newest) ::usleep(20);
        lag.add(bench::microseconds_since(from) / 1e3);
    }
    stop.store(true);
    writer.join();
    const double window = std::chrono::duration<double, std::milli>(taiyen::PersistentOptions().loss_window).count();
    std::size_t late = 0;
    for (std::size_t i = 0; i < lag.size(); ++i) late += lag[i] > window ? 1 : 0;
    std::printf(
        "Window of loss, %s: %.0f transactions per second; one of them is durable %s ms after its commit; %zu of %zu samples later than the window "
        "of %.0f ms\n",
        store.name().c_str(), static_cast<double>(committed) / duration * 1e6, bench::spread(lag, 2).c_str(), late, lag.size(), window);
    std::printf(
        "(commits wait while the window is full: a write that the device takes longer for delays what came before it, and nothing is added)\n\n");
    std::fflush(stdout);
}
#endif

int run(const bench::Options& options) {
    bench::print_head(options, "One 100-byte update per transaction, nobody waits for the disk");
    const bench::Folder folder(options.folder());
    const std::size_t count = options.quick() ? 50'000 : 1'000'000;
    const bench::Keys all(count);
    const auto setup = [&](const char* name) { return bench::Setup{folder / name, count, bench::Commit::async}; };
    const std::string only = options.text("--only");
    const auto wanted = [&](const char* name) { return only.empty() || only == name; };
    taiyen::PersistentOptions pages;
    taiyen::PersistentOptions declared;
    declared.capture = taiyen::Capture::declared;
    std::vector<std::unique_ptr<bench::KeyValues>> stores;
    std::unique_ptr<bench::HeapKeyValues> hashed_pages;
    const auto add = [&](std::unique_ptr<bench::KeyValues> one) {
        if (one != nullptr) stores.push_back(std::move(one));
    };
    if (wanted("lmdb")) add(bench::make_if_possible("lmdb", [&] { return bench::make_lmdb(setup("lmdb")); }));
    const std::size_t first_of_taiyen = stores.size();
    if (wanted("stores"))
        add(bench::make_if_possible("taiyen_stores",
                                    [&] { return bench::make_taiyen_stores(setup("stores-unordered"), bench::Container::unordered_map, pages); }));
    if (wanted("stores"))
        add(bench::make_if_possible("taiyen_stores", [&] { return bench::make_taiyen_stores(setup("stores-map"), bench::Container::map, pages); }));
    if (wanted("stores"))
        add(bench::make_if_possible("taiyen_stores",
                                    [&] { return bench::make_taiyen_stores(setup("stores-btree"), bench::Container::btree_map, pages); }));
    if (wanted("declared"))
        add(bench::make_if_possible("taiyen",
                                    [&] { return bench::make_taiyen(setup("declared-unordered"), bench::Container::unordered_map, declared); }));
    if (wanted("declared"))
        add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("declared-map"), bench::Container::map, declared); }));
    if (wanted("declared"))
        add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("declared-btree"), bench::Container::btree_map, declared); }));
    if (wanted("pages"))
        hashed_pages =
            bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("pages-unordered"), bench::Container::unordered_map, pages); });
    std::vector<const bench::KeyValues*> list;
    for (const auto& store : stores) list.push_back(store.get());
    list.push_back(hashed_pages.get());
    bench::print_contenders(list);
    for (const bench::KeyValues* store : list)
        if (auto* const heap = dynamic_cast<const bench::HeapKeyValues*>(store)) const_cast<bench::HeapKeyValues*>(heap)->warm_up();
    bench::settle(folder / "settle");

    const std::size_t many = options.quick() ? 2'000 : 20'000;
    if (!stores.empty()) {
        std::vector<Subject> subjects;
        for (std::size_t i = 0; i < stores.size(); ++i) subjects.push_back({stores[i]->name(), stores[i].get(), all, many, bench::Random(3 + i), {}});
        std::printf("Random updates of %zu keys\n", count);
        compare(options, subjects, first_of_taiyen);
    }
    if (hashed_pages != nullptr) {
        std::vector<Subject> subjects;
        if (first_of_taiyen > 0) subjects.push_back({stores[0]->name() + ", all keys", stores[0].get(), all, many, bench::Random(31), {}});
        for (const std::size_t working_set : {std::size_t{1}, std::size_t{16}, std::size_t{64}, std::size_t{1000}}) {
            subjects.push_back({"pages, the keys of " + std::to_string(working_set) + (working_set == 1 ? " page" : " pages"),
                                hashed_pages.get(),
                                bench::Keys(hashed_pages->keys_on_pages(working_set)),
                                many / 4,
                                bench::Random(37 + working_set),
                                {}});
        }
        subjects.push_back({"pages, all keys: one of " + std::to_string(hashed_pages->pages()) + " pages each time",
                            hashed_pages.get(),
                            all,
                            many / 10,
                            bench::Random(41),
                            {}});
        std::printf("Page mode, %s\n", hashed_pages->name().c_str());
        compare(options, subjects, first_of_taiyen);
    }
#ifdef TAIYEN_BENCH_TXN
    if (first_of_taiyen < stores.size()) {
        if (auto* const heap = dynamic_cast<bench::HeapKeyValues*>(stores[first_of_taiyen].get())) loss_window(options, *heap, all);
    }
#endif
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "What does a 100-byte update cost per transaction where nobody waits for the disk?", 15,
                                  bench::Priority::real_time, {{"--only", "", "one contender alone: stores, declared, pages, lmdb"}},
                                  bench::Processors::all));
    });
}
