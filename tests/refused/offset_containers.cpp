// Not one of these may compile, and each must say why:
// says: taiyen: std::string keeps raw pointers and would break in a heap that is mapped elsewhere. use taiyen::offset::string
// says: taiyen: std::vector<bool> keeps raw pointers and would break in a heap that is mapped elsewhere. use taiyen::offset::vector<bool>
// says: taiyen: std::list links .* use taiyen::offset::list
// says: taiyen: std::forward_list links .* use taiyen::offset::slist
// says: taiyen: std::map links its nodes by raw pointers and would break in a heap that is mapped elsewhere. use taiyen::offset::map
// says: taiyen: std::multimap links .* use taiyen::offset::multimap
// says: taiyen: std::set links .* use taiyen::offset::set
// says: taiyen: std::multiset links .* use taiyen::offset::multiset
// says: taiyen: std::unordered_map links .* use taiyen::offset::flat_hash_map or taiyen::offset::map
// says: taiyen: std::unordered_multimap links .* use taiyen::offset::multimap
// says: taiyen: std::unordered_set links .* use taiyen::offset::flat_hash_set or taiyen::offset::set
// says: taiyen: std::unordered_multiset links .* use taiyen::offset::multiset
// says: taiyen: a raw pointer would lead nowhere in a heap that is mapped elsewhere. use taiyen::offset_ptr
// says: taiyen: a container of persistent_allocator keeps raw pointers, which would lead nowhere in a heap that is mapped elsewhere
// says: taiyen: a member of the type holds a raw pointer, which would lead nowhere in a heap that is mapped elsewhere

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
