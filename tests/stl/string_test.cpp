#include "stl/matrix.hpp"

using namespace taiyen::stl::test;

namespace {

template <class W>
struct Strings {
    using Container = typename W::string;
    using C = Container;
    using Op = Operation<W, C>;

    static C value(const Maker& make, int n) { return make.string<C>(n); }
    static void fill(C& c, const Maker&, int first, int count) {
        for (int n = first; n < first + count; ++n) c += long_text(n).c_str();
    }

    static std::vector<Op> operations() {
        std::vector<Op> all;
        add_common<W, C>(all);
        all.push_back({"append of a string", [](C& c, C&, const Maker& make) {
                           c += value(make, 10);
                           c.append(value(make, 11));
                           return std::string();
                       }});
        all.push_back({"append of the other",
                       [](C& c, C& o, const Maker&) {
                           c += o;
                           c.append(o, 5, 100);
                           return text_of(o);
                       },
                       true});
        all.push_back({"append of characters", [](C& c, C&, const Maker&) {
                           c.append(200, 'x');
                           c.push_back('y');
                           return std::string();
                       }});
        all.push_back({"assign of text", [](C& c, C&, const Maker&) {
                           c = long_text(12).c_str();
                           return std::string();
                       }});
        all.push_back({"assign of a view", [](C& c, C&, const Maker&) {
                           c = std::string_view(long_text(13));
                           return std::string();
                       }});
        all.push_back({"assign n", [](C& c, C&, const Maker&) {
                           c.assign(300, 'z');
                           return std::string();
                       }});
        all.push_back({"assign range",
                       [](C& c, C& o, const Maker&) {
                           c.assign(o.begin() + 1, o.end());
                           return std::string();
                       },
                       true});
        all.push_back({"insert",
                       [](C& c, C& o, const Maker&) {
                           c.insert(3, o);
                           c.insert(c.begin(), 'a');
                           c.insert(5, "text");
                           return std::string();
                       },
                       true});
        all.push_back({"replace",
                       [](C& c, C& o, const Maker&) {
                           c.replace(3, 50, o);
                           return std::string();
                       },
                       true});
        all.push_back({"erase", [](C& c, C&, const Maker&) {
                           c.erase(3, 80);
                           return std::string();
                       }});
        all.push_back({"shrunk into itself", [](C& c, C&, const Maker&) {
                           c.erase(5);
                           c.shrink_to_fit();
                           C out(std::move(c));
                           c.assign(100, 'b');
                           return text_of(out);
                       }});
        all.push_back({"resize and shrink_to_fit", [](C& c, C&, const Maker&) {
                           c.resize(1000, 'c');
                           c.resize(70);
                           c.shrink_to_fit();
                           return std::string();
                       }});
        all.push_back({"reserve", [](C& c, C&, const Maker&) {
                           c.reserve(5000);
                           return std::string();
                       }});
        all.push_back({"sums",
                       [](C& c, C& o, const Maker&) {
                           const C sum = c + o;
                           const C twice = c + "!" + o;
                           return text_of(sum) + text_of(twice);
                       },
                       true});
        all.push_back({"a sum assigned",
                       [](C& c, C& o, const Maker&) {
                           c = c + o;
                           return std::string();
                       },
                       true});
        all.push_back({"a sum with itself moved",
                       [](C& c, C& o, const Maker&) {
                           c = std::move(c) + o;
                           return std::string();
                       },
                       true});
        all.push_back({"substr", [](C& c, C&, const Maker&) { return text_of(c.substr(1, 90)); }});
        all.push_back({"substr assigned", [](C& c, C&, const Maker&) {
                           c = c.substr(1, 90);
                           return std::string();
                       }});
        all.push_back({"found by views",
                       [](C& c, C& o, const Maker&) {
                           return std::to_string(c.find(std::string_view(o).substr(5, 20))) + std::to_string(c == o) +
                                  std::to_string(c == std::string_view(c));
                       },
                       true});
        all.push_back({"swap of characters", [](C& c, C&, const Maker&) {
                           std::swap(c[0], c[1]);
                           return std::string();
                       }});
        return all;
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(string_matrix)

BOOST_AUTO_TEST_CASE(a_string_keeps_every_block_at_home) { Matrix<Strings>::run(); }

BOOST_AUTO_TEST_SUITE_END()
