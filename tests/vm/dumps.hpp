#pragma once
/// is_in_dumps: whether a core dump would hold what is mapped at an address, by /proc/self/smaps.

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <boost/test/unit_test.hpp>

namespace taiyen::vm::test {

inline bool is_in_dumps(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream smaps("/proc/self/smaps");
    bool is_here = false;
    for (std::string line; std::getline(smaps, line);) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        if (word.find('-') != std::string::npos && word.back() != ':') {
            const std::uintptr_t begin = std::stoull(word, nullptr, 16);
            const std::uintptr_t end = std::stoull(word.substr(word.find('-') + 1), nullptr, 16);
            is_here = begin <= wanted && wanted < end;
        } else if (is_here && word == "VmFlags:") {
            while (words >> word)
                if (word == "dd") return false;
            return true;
        }
    }
    BOOST_ERROR("nothing is mapped there");
    return false;
}

}  // namespace taiyen::vm::test
