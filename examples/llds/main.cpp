/// taiyen_llds [KEYS [THREADS [SEED]]]: how fast keys are set, got and deleted.

#include <cstdlib>
#include <exception>
#include <iostream>

#include "llds.hpp"

int main(int count, char** words) {
    try {
        llds::Load load;
        if (count > 1) load.keys = std::strtoull(words[1], nullptr, 10);
        if (count > 2) load.threads = static_cast<unsigned>(std::strtoul(words[2], nullptr, 10));
        if (count > 3) load.seed = std::strtoull(words[3], nullptr, 10);
        if (count > 4 || load.keys == 0 || load.threads == 0) {
            std::cerr << "taiyen_llds [KEYS [THREADS [SEED]]]\n";
            return 2;
        }
        taiyen::VolatileHeap heap({.pages = taiyen::PageSize::huge});
        taiyen::OrderedStore store(heap);
        std::uint64_t wrong = 0;
        for (const llds::Phase& phase : llds::run(store, load)) {
            std::cout << phase.name << ": " << static_cast<std::uint64_t>(static_cast<double>(phase.calls) / phase.seconds) << " a second\n";
            wrong += phase.wrong;
        }
        std::cout << load.keys << " keys, " << load.threads << " threads, " << wrong << " wrong answers\n";
        return wrong == 0 && store.empty() ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
