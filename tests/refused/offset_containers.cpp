// Not one of these may compile, and each must say why. CMakeLists.txt looks for the sentences.
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/offset_ptr.hpp>

namespace {

template <class T>
using to = taiyen::offset_allocator<T>;

struct WithPointer {
    int number;
    WithPointer* next;
};
struct WithString {
    int number;
    taiyen::string name;
};

}  // namespace

#if defined(TAIYEN_REFUSED)
#include <functional>
std::basic_string<char, std::char_traits<char>, to<char>> string;
std::vector<bool, to<bool>> bits;
std::list<int, to<int>> list;
std::forward_list<int, to<int>> forward_list;
std::map<int, int, std::less<>, to<std::pair<const int, int>>> map;
std::multimap<int, int, std::less<>, to<std::pair<const int, int>>> multimap;
std::set<int, std::less<>, to<int>> set;
std::multiset<int, std::less<>, to<int>> multiset;
std::unordered_map<int, int, std::hash<int>, std::equal_to<>, to<std::pair<const int, int>>> unordered_map;
std::unordered_multimap<int, int, std::hash<int>, std::equal_to<>, to<std::pair<const int, int>>> unordered_multimap;
std::unordered_set<int, std::hash<int>, std::equal_to<>, to<int>> unordered_set;
std::unordered_multiset<int, std::hash<int>, std::equal_to<>, to<int>> unordered_multiset;

void put_in() {
    taiyen::offset::vector<int*>().push_back(nullptr);
    taiyen::offset::vector<taiyen::string>().emplace_back();
    taiyen::offset::deque<WithPointer>().push_back({});
    taiyen::offset::map<int, WithString>()[0];
}
#else
// With the right ones the same file compiles.
taiyen::offset::string string;
taiyen::offset::vector<bool> bits;
taiyen::offset::list<int> list;
taiyen::offset::map<int, int> map;
std::vector<int, to<int>> numbers;
std::deque<int, to<int>> queue;
void put_in() { taiyen::offset::vector<taiyen::offset_ptr<int>>().push_back(nullptr); }
#endif
