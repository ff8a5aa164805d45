#pragma once
/// Keys "key0", "key1", … with decimal values: set, got and deleted by any number of threads, as the programs of llds do that (a kernel's tree behind set, get and delete).
///
/// The store is a taiyen::OrderedStore in a volatile heap with huge pages: no kernel module, and a set overwrites.

#include <cstdint>
#include <string>
#include <vector>

#include <taiyen/taiyen.hpp>

namespace llds {

struct Load {
    std::uint64_t keys = 1'000'000;
    unsigned threads = 1;
    std::uint64_t seed = 1;  ///< of the order in which keys come
};

struct Phase {
    std::string name;
    double seconds = 0;
    std::uint64_t calls = 0;
    std::uint64_t wrong = 0;  ///< answers that are not as they should be
};

std::string key_of(std::uint64_t number);
/// The value that the key is given first; later ones are greater.
std::string value_of(std::uint64_t number);

/// All keys are set, got, set again, got again, and deleted, each time in a random order; the store is as it was then. Each thread has its own keys.
std::vector<Phase> run(taiyen::OrderedStore& store, const Load& load);

}  // namespace llds
