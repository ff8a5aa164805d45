#include "heap/system_view.hpp"

#include <charconv>
#include <fstream>
#include <string>

namespace taiyen::heap {

SystemView system_view(std::uintptr_t begin, std::uintptr_t end) {
    SystemView view;
    std::ifstream file("/proc/thread-self/smaps");
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        std::uintptr_t address = 0;
        const auto [rest, bad] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
        if (bad == std::errc{} && rest != line.data() + line.size() && *rest == '-') {
            inside = address >= begin && address < end;
            if (inside) ++view.mappings;
        } else if (inside && (line.starts_with("AnonHugePages:") || line.starts_with("FilePmdMapped:"))) {
            const char* at = line.data() + line.find(':') + 1;
            while (*at == ' ') ++at;
            std::size_t kilobytes = 0;
            std::from_chars(at, line.data() + line.size(), kilobytes);
            view.huge_bytes += kilobytes << 10U;
        }
    }
    return view;
}

}  // namespace taiyen::heap
