#pragma once
/// Operations of vector, deque, list and forward_list for the matrix.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "stl/matrix.hpp"

namespace taiyen::stl::test {

template <class W, class V, template <class> class Of>
struct Sequence {
    using Container = Of<V>;
    using Op = Operation<W, Container>;
    using C = Container;
    static V value(const Maker& make, int n) { return make.template value<W, V>(n); }

    static void fill(C& c, const Maker& make, int first, int count) {
        if constexpr (requires { c.push_back(std::declval<V>()); })
            for (int n = first; n < first + count; ++n) c.push_back(value(make, n));
        else
            for (int n = first + count; n-- > first;) c.push_front(value(make, n));
    }

    static std::vector<Op> operations() {
        std::vector<Op> all;
        add_common<W, C>(all);
        // One element out, in, over another.
        all.push_back({"front moved out", [](C& c, C&, const Maker&) {
                           V out(std::move(c.front()));
                           return text_of(out);
                       }});
        all.push_back({"front copied out", [](C& c, C&, const Maker&) {
                           const V out(c.front());
                           return text_of(out);
                       }});
        all.push_back({"front assigned by copy from outside", [](C& c, C&, const Maker& make) {
                           const V from = value(make, 50);
                           c.front() = from;
                           return text_of(from);
                       }});
        all.push_back({"front assigned by copy from the other",
                       [](C& c, C& o, const Maker&) {
                           c.front() = o.front();
                           return text_of(o);
                       },
                       true});
        all.push_back({"an element swapped with the next", [](C& c, C&, const Maker&) {
                           std::swap(*c.begin(), *std::next(c.begin()));
                           return std::string();
                       }});
        all.push_back({"an element moved over the next", [](C& c, C&, const Maker& make) {
                           *std::next(c.begin()) = std::move(*c.begin());
                           c.front() = value(make, 7);
                           return std::string();
                       }});
        all.push_back({"reversed by swaps", [](C& c, C&, const Maker&) {
                           std::vector<V*> elements;
                           for (V& element : c) elements.push_back(&element);
                           for (std::size_t i = 0, j = elements.size() - 1; i < j; ++i, --j) std::swap(*elements[i], *elements[j]);
                           return std::string();
                       }});
        all.push_back({"assign n", [](C& c, C&, const Maker& make) {
                           c.assign(7, value(make, 60));
                           return std::string();
                       }});
        all.push_back({"assign n of its own element", [](C& c, C&, const Maker&) {
                           const V own(c.front());
                           c.assign(3, own);
                           return std::string();
                       }});
        all.push_back({"assign range of the other",
                       [](C& c, C& o, const Maker&) {
                           c.assign(o.begin(), o.end());
                           return std::string();
                       },
                       true});
        all.push_back({"assign moved range of the other",
                       [](C& c, C& o, const Maker&) {
                           c.assign(std::make_move_iterator(o.begin()), std::make_move_iterator(o.end()));
                           return std::string();
                       },
                       true});
        all.push_back({"assign list", [](C& c, C&, const Maker& make) {
                           c = {value(make, 61), value(make, 62)};
                           return std::string();
                       }});
        all.push_back({"resized up", [](C& c, C&, const Maker& make) {
                           c.resize(9, value(make, 63));
                           return std::string();
                       }});
        all.push_back({"resized up with fresh values", [](C& c, C&, const Maker& make) {
                           c.resize(6);
                           c.resize(5);
                           c.resize(6, value(make, 64));
                           return std::string();
                       }});
        all.push_back({"resized down", [](C& c, C&, const Maker&) {
                           c.resize(2);
                           return std::string();
                       }});
        all.push_back({"constructed from a range",
                       [](C& c, C& o, const Maker&) {
                           const C made(o.begin(), o.end(), c.get_allocator());
                           return text_of(made);
                       },
                       true});
        all.push_back({"constructed from n", [](C& c, C&, const Maker& make) {
                           const C made(4, value(make, 65), c.get_allocator());
                           return text_of(made);
                       }});
        all.push_back({"kept outside by default", [](C& c, C&, const Maker& make) {
                           C made;
                           made.assign(c.begin(), c.end());
                           c.clear();
                           c = std::move(made);
                           made.clear();
                           c.front() = value(make, 66);
                           return std::string();
                       }});
        if constexpr (requires(C& c) { c.push_back(c.front()); }) with_back(all);
        if constexpr (requires(C& c) { c.push_front(c.front()); }) with_front(all);
        if constexpr (requires(C& c) { c.insert(c.begin(), c.front()); }) with_insert(all);
        if constexpr (requires(C& c) { c.capacity(); } || requires(C& c) { c.shrink_to_fit(); }) with_capacity(all);
        if constexpr (requires(C& c) { c[0]; }) with_random_access(all);
        if constexpr (requires(C& c, C& o) { c.merge(o, std::less<>()); }) with_lists(all);
        return all;
    }

    static bool before(const V& left, const V& right) { return text_of(left) < text_of(right); }

    static void with_back(std::vector<Op>& all) {
        all.push_back({"push_back of a copy", [](C& c, C&, const Maker& make) {
                           const V v = value(make, 10);
                           c.push_back(v);
                           return text_of(v);
                       }});
        all.push_back({"push_back of a moved value", [](C& c, C&, const Maker& make) {
                           V v = value(make, 11);
                           c.push_back(std::move(v));
                           return std::string();
                       }});
        all.push_back({"push_back of its own front", [](C& c, C&, const Maker&) {
                           c.push_back(c.front());
                           return std::string();
                       }});
        all.push_back({"push_back of the other's front",
                       [](C& c, C& o, const Maker&) {
                           c.push_back(o.front());
                           return text_of(o);
                       },
                       true});
        all.push_back({"push_back of the other's moved front",
                       [](C& c, C& o, const Maker&) {
                           c.push_back(std::move(o.front()));
                           return std::string();
                       },
                       true});
        all.push_back({"front moved out and pushed back", [](C& c, C&, const Maker& make) {
                           V out(std::move(c.front()));
                           c.push_back(std::move(out));
                           c.front() = value(make, 12);
                           return std::string();
                       }});
        all.push_back({"many push_backs", [](C& c, C&, const Maker& make) {
                           for (int n = 0; n < 60; ++n) c.push_back(value(make, n));
                           return std::string();
                       }});
        all.push_back({"emplace_back of a moved value", [](C& c, C&, const Maker& make) {
                           V v = value(make, 13);
                           c.emplace_back(std::move(v));
                           return std::string();
                       }});
        // A variant that changes its alternative by assignment moves a temporary in, which no allocator sees: the scan's matter (smuggling_test.cpp).
        if constexpr (!std::is_same_v<V, Rich<W>>)
            all.push_back({"emplace_back of nothing, then assigned", [](C& c, C&, const Maker& make) {
                               c.emplace_back();
                               const V v = value(make, 14);
                               c.back() = v;
                               return std::string();
                           }});
        all.push_back({"pop_back", [](C& c, C&, const Maker&) {
                           c.pop_back();
                           return std::string();
                       }});
    }
    static void with_front(std::vector<Op>& all) {
        all.push_back({"push_front of a copy", [](C& c, C&, const Maker& make) {
                           const V v = value(make, 20);
                           c.push_front(v);
                           return text_of(v);
                       }});
        all.push_back({"push_front of a moved value", [](C& c, C&, const Maker& make) {
                           V v = value(make, 21);
                           c.push_front(std::move(v));
                           return std::string();
                       }});
        all.push_back({"push_front of the other's moved front",
                       [](C& c, C& o, const Maker&) {
                           c.push_front(std::move(o.front()));
                           return std::string();
                       },
                       true});
        all.push_back({"emplace_front", [](C& c, C&, const Maker& make) {
                           c.emplace_front(value(make, 22));
                           return std::string();
                       }});
        all.push_back({"many push_fronts", [](C& c, C&, const Maker& make) {
                           for (int n = 0; n < 60; ++n) c.push_front(value(make, n));
                           return std::string();
                       }});
        all.push_back({"pop_front", [](C& c, C&, const Maker&) {
                           c.pop_front();
                           return std::string();
                       }});
    }
    static void with_insert(std::vector<Op>& all) {
        const auto second = [](C& c) { return std::next(c.begin()); };
        all.push_back({"insert of a copy", [=](C& c, C&, const Maker& make) {
                           const V v = value(make, 30);
                           c.insert(second(c), v);
                           return text_of(v);
                       }});
        all.push_back({"insert of a moved value", [=](C& c, C&, const Maker& make) {
                           c.insert(second(c), value(make, 31));
                           return std::string();
                       }});
        all.push_back({"insert of its own last", [=](C& c, C&, const Maker&) {
                           c.insert(second(c), c.back());
                           return std::string();
                       }});
        all.push_back({"insert with room to spare", [=](C& c, C&, const Maker& make) {
                           c.pop_back();
                           c.insert(second(c), value(make, 32));
                           const V v = value(make, 33);
                           c.pop_back();
                           c.insert(second(c), v);
                           return std::string();
                       }});
        all.push_back({"insert n", [=](C& c, C&, const Maker& make) {
                           c.insert(second(c), 4, value(make, 34));
                           return std::string();
                       }});
        all.push_back({"insert range of the other",
                       [=](C& c, C& o, const Maker&) {
                           c.insert(second(c), o.begin(), o.end());
                           return text_of(o);
                       },
                       true});
        all.push_back({"insert moved range of the other",
                       [=](C& c, C& o, const Maker&) {
                           c.insert(second(c), std::make_move_iterator(o.begin()), std::make_move_iterator(o.end()));
                           return std::string();
                       },
                       true});
        all.push_back({"insert list", [=](C& c, C&, const Maker& make) {
                           c.insert(second(c), {value(make, 35), value(make, 36)});
                           return std::string();
                       }});
        all.push_back({"emplace", [=](C& c, C&, const Maker& make) {
                           c.emplace(second(c), value(make, 37));
                           return std::string();
                       }});
        all.push_back({"emplace of the other's moved front",
                       [=](C& c, C& o, const Maker&) {
                           c.emplace(second(c), std::move(o.front()));
                           return std::string();
                       },
                       true});
        all.push_back({"erase one", [=](C& c, C&, const Maker&) {
                           c.erase(second(c));
                           return std::string();
                       }});
        all.push_back({"erase range", [=](C& c, C&, const Maker&) {
                           c.erase(second(c), std::next(c.begin(), 3));
                           return std::string();
                       }});
        all.push_back({"std::erase_if", [](C& c, C&, const Maker&) {
                           const std::string front = text_of(c.front());
                           std::erase_if(c, [&](const V& v) { return text_of(v) == front; });
                           return std::string();
                       }});
    }
    static void with_capacity(std::vector<Op>& all) {
        all.push_back({"shrink_to_fit", [](C& c, C&, const Maker& make) {
                           for (int n = 0; n < 40; ++n) c.push_back(value(make, n));
                           c.resize(6, value(make, 1));
                           c.shrink_to_fit();
                           c.push_back(value(make, 40));
                           return std::string();
                       }});
        if constexpr (requires(C& c) { c.reserve(1); }) {
            all.push_back({"reserve", [](C& c, C&, const Maker& make) {
                               c.reserve(100);
                               c.push_back(value(make, 41));
                               return std::string();
                           }});
        }
    }
    static void with_random_access(std::vector<Op>& all) {
        all.push_back({"std::sort", [](C& c, C&, const Maker& make) {
                           for (int n = 40; n > 0; --n) c.push_back(value(make, n));
                           std::sort(c.begin(), c.end(), before);
                           return std::string();
                       }});
        all.push_back({"std::sort_heap", [](C& c, C&, const Maker& make) {
                           for (int n = 40; n > 0; --n) c.push_back(value(make, n % 7));
                           std::make_heap(c.begin(), c.end(), before);
                           std::sort_heap(c.begin(), c.end(), before);
                           return std::string();
                       }});
        all.push_back({"std::rotate", [](C& c, C&, const Maker&) {
                           std::rotate(c.begin(), c.begin() + 2, c.end());
                           return std::string();
                       }});
        all.push_back({"std::swap_ranges",
                       [](C& c, C& o, const Maker&) {
                           std::swap_ranges(o.begin(), o.end(), c.begin());
                           return text_of(o);
                       },
                       true, true});
        all.push_back({"std::copy from the other",
                       [](C& c, C& o, const Maker&) {
                           std::copy(o.begin(), o.end(), c.begin());
                           return text_of(o);
                       },
                       true});
    }
    static void with_lists(std::vector<Op>& all) {
        all.push_back({"merge",
                       [](C& c, C& o, const Maker&) {
                           c.merge(o, before);
                           return text_of(o);
                       },
                       true, true});
        all.push_back({"sort", [](C& c, C&, const Maker&) {
                           c.reverse();
                           c.sort(before);
                           return std::string();
                       }});
        all.push_back({"remove_if", [](C& c, C&, const Maker&) {
                           const std::string front = text_of(c.front());
                           c.remove_if([&](const V& v) { return text_of(v) == front; });
                           return std::string();
                       }});
        all.push_back({"unique", [](C& c, C&, const Maker&) {
                           c.push_front(c.front());
                           c.unique([](const V& l, const V& r) { return text_of(l) == text_of(r); });
                           return std::string();
                       }});
        if constexpr (requires(C& c, C& o) { c.splice(c.begin(), o); }) {
            all.push_back({"splice all",
                           [](C& c, C& o, const Maker&) {
                               c.splice(std::next(c.begin()), o);
                               return text_of(o);
                           },
                           true, true});
            all.push_back({"splice one",
                           [](C& c, C& o, const Maker&) {
                               c.splice(std::next(c.begin()), o, std::next(o.begin()));
                               return text_of(o);
                           },
                           true, true});
            all.push_back({"splice range",
                           [](C& c, C& o, const Maker&) {
                               c.splice(c.end(), o, o.begin(), std::next(o.begin(), 2));
                               return text_of(o);
                           },
                           true, true});
        } else {
            all.push_back({"splice_after",
                           [](C& c, C& o, const Maker&) {
                               c.splice_after(c.begin(), o);
                               return text_of(o);
                           },
                           true, true});
            all.push_back({"insert_after of a copy", [](C& c, C&, const Maker& make) {
                               const V v = value(make, 30);
                               c.insert_after(c.begin(), v);
                               return std::string();
                           }});
            all.push_back({"insert_after of a moved value", [](C& c, C&, const Maker& make) {
                               c.insert_after(c.begin(), value(make, 31));
                               return std::string();
                           }});
            all.push_back({"insert_after n", [](C& c, C&, const Maker& make) {
                               c.insert_after(c.begin(), 3, value(make, 32));
                               return std::string();
                           }});
            all.push_back({"insert_after range",
                           [](C& c, C& o, const Maker&) {
                               c.insert_after(c.begin(), o.begin(), o.end());
                               return std::string();
                           },
                           true});
            all.push_back({"emplace_after", [](C& c, C&, const Maker& make) {
                               c.emplace_after(c.begin(), value(make, 33));
                               return std::string();
                           }});
            all.push_back({"erase_after", [](C& c, C&, const Maker&) {
                               c.erase_after(c.begin());
                               return std::string();
                           }});
        }
    }
};

}  // namespace taiyen::stl::test
