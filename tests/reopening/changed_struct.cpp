// A struct in a container gets a new member, and the program is built again: the build with TAIYEN_NEW_MEMBER must not be given what the other one stored.
//
//   taiyen_changed_struct_{before,after} {make,refused,accepted,use} FILE
#include <cstdio>
#include <string_view>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

struct Item {
    taiyen::string name;
    long price = 1;
#if defined(TAIYEN_NEW_MEMBER)
    long stock = 0;
#endif
};
using Shop = taiyen::map<int, Item>;

int main(int count, char** arguments) try {
    if (count != 3) return 2;
    const std::string_view what = arguments[1];
    taiyen::ArchiveHeap heap(taiyen::open_or_create, arguments[2]);
    if (what == "make") {
        heap.construct<Shop>("shop").try_emplace(1).first->second.price = 7;
        heap.snapshot();
        return 0;
    }
    if (what == "use") return heap.find<Shop>("shop")->at(1).price == 7 ? 0 : 1;
    if (what == "accepted") return heap.find<Shop>("shop", taiyen::accept_layout) != nullptr ? 0 : 1;
    try {
        heap.find<Shop>("shop");
    } catch (const taiyen::Error& error) {
        std::puts(error.what());
        return error.code() == taiyen::errc::type_mismatch ? 0 : 1;
    }
    std::puts("an object of another layout was given out");
    return 1;
} catch (const std::exception& error) {
    std::puts(error.what());
    return 1;
}
