#pragma once
/// Types with every kind of part, and what they are called.

#include <array>
#include <chrono>
#include <complex>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include <taiyen/taiyen.hpp>

namespace shape_test {

enum class Colour : std::uint8_t { red, green };

struct Bolt {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double weight = 0;
};

struct Leaf;

struct Node {
    Node* next = nullptr;
    Leaf* leaf = nullptr;  // never complete here
    std::array<Bolt, 2> bolts;
    short thread[3] = {};
    Colour colour = Colour::red;
    bool is_done = false;
};

struct Values {
    std::optional<std::int64_t> optional;
    std::variant<std::monostate, std::int32_t, taiyen::string> variant;
    std::pair<char, float> pair;
    std::tuple<std::uint16_t, long double> tuple;
    std::complex<float> complex;
    std::chrono::milliseconds time;
    const char32_t letter = U'x';
};

struct Containers {
    taiyen::vector<bool> bits;
    taiyen::deque<int> deque;
    taiyen::list<int> list;
    taiyen::forward_list<int> forward_list;
    taiyen::map<taiyen::string, Bolt> map;
    taiyen::multimap<int, int> multimap;
    taiyen::set<int> set;
    taiyen::multiset<int> multiset;
    taiyen::unordered_map<int, int> unordered_map;
    taiyen::unordered_multimap<int, int> unordered_multimap;
    taiyen::unordered_set<taiyen::string> unordered_set;
    taiyen::unordered_multiset<int> unordered_multiset;
    taiyen::btree_map<int, int> btree_map;
    taiyen::btree_multimap<int, int> btree_multimap;
    taiyen::btree_set<int> btree_set;
    taiyen::btree_multiset<int> btree_multiset;
    taiyen::ordered_map<int, int> ordered_map;
    taiyen::ordered_multimap<int, int> ordered_multimap;
    taiyen::ordered_set<int> ordered_set;
    taiyen::ordered_multiset<int> ordered_multiset;
    taiyen::flat_hash_map<int, int> flat_hash_map;
    taiyen::flat_hash_set<int> flat_hash_set;
};

struct Arrays {
    int rows[2][3];
    std::array<std::array<char, 2>, 5> pairs;
    int* pointers[2];
    int (*to_array)[4];
    int (**twice)[2][3];
};

struct BitFields {
    int low : 3;
    int high : 5;
    char letter;
};

class Hidden {
public:
    Hidden() = default;
    int number() const { return number_; }

private:
    int number_ = 0;
};

class Base {
public:
    explicit Base(int number) : serial(number) {}
    int serial;
};

class Told : public Base {
public:
    Told() : Base(1) {}
    TAIYEN_DESCRIBE(Told, serial, first_, second_)
    double sum() const { return first_ + second_; }

private:
    double first_ = 0;
    float second_ = 0;
};

struct ToldOutside {
    explicit ToldOutside(int number) : count(number) {}
    int count;
    taiyen::vector<ToldOutside*> others;
};
TAIYEN_DESCRIBE(ToldOutside, count, others)

/// What nothing of may be stored, where a pointer leads to it all the same.
struct Foreign {
    std::string name;
    std::unique_ptr<int> number;
    std::function<void()> call;
    std::map<int, std::unique_ptr<Foreign>> children;
    Foreign* (*make)(int) = nullptr;
    Foreign& operator&() { return *this; }
};
struct Abstract {
    virtual ~Abstract() = default;
    virtual void act() = 0;
};
struct AllocatorOnly {
    using allocator_type = std::allocator<int>;
    int number;
};
struct Referring {
    int& number;
};
union Either {
    int number;
    float fraction;
};
struct Pointers {
    Foreign* foreign;
    Abstract* abstract;
    AllocatorOnly* allocator_only;
    Referring* referring;
    Either* either;
    void* nothing;
    const char* text;
    Pointers** twice;
    Told* told;
    int Foreign::* member;
};

}  // namespace shape_test
