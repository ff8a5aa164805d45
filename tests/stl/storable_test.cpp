// Most of it is decided by the compiler: that this file compiles is the test.
#include <taiyen/stl/storable.hpp>

#include <any>
#include <complex>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/detail/fingerprint.hpp>

namespace storable_test {

using taiyen::storable;

struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double x, y;
};
struct Node {
    int value;
    taiyen::vector<Node> children;
    taiyen::map<taiyen::string, Node> named;
    Node* parent;
};
struct WithArrays {
    int matrix[3][3];
    char label[16];
    Part parts[2];
    std::optional<int> number;
    std::optional<taiyen::string> text;
    std::variant<int, Part> either;
    unsigned bits : 3;
    unsigned more_bits : 5;
};
struct WithBase : Part {
    enum class Kind { line } kind;
    std::array<double, 3> at;
    std::pair<int, taiyen::string> pair;
    std::tuple<int, Part> tuple;
    union {
        int i;
        float f;
    };
};
struct Large {
    char bytes[4096];
    Part part;
};
struct Constant {
    std::optional<double> number;
    const int constant;
    int Part::* member;
};
struct TakesAnything {
    template <class T>
    TakesAnything(T&&);  // NOLINT
    TakesAnything(const TakesAnything&);
};
struct Mixed {
    std::variant<int, Part, taiyen::string> either;
    std::tuple<Part> tuple;
    std::optional<Part> perhaps;
    TakesAnything any;
    std::optional<TakesAnything> perhaps_any;
    char32_t letter;
};
class Believed {
public:
    Believed();

private:
    taiyen::string text_;
};
static_assert(storable<int> && storable<const double> && storable<int*> && storable<Part*> && storable<int[3]>);
static_assert(storable<Part> && storable<Node> && storable<WithArrays> && storable<WithBase> && storable<Large> && storable<Constant> &&
              storable<Mixed> && storable<Believed>);
static_assert(storable<taiyen::map<taiyen::string, taiyen::vector<std::pair<Part, std::optional<Node>>>>>);
static_assert(storable<taiyen::unordered_map<taiyen::string, taiyen::deque<taiyen::list<taiyen::set<int>>>>>);

struct Virtual {
    virtual ~Virtual();
};
static_assert(!storable<int&> && !storable<int&&> && !storable<void()> && !storable<void (*)()> && !storable<void (Part::*)()> && !storable<void>);
static_assert(!storable<Virtual> && !storable<std::function<void()>> && !storable<std::any> && !storable<std::unique_ptr<int>> &&
              !storable<std::shared_ptr<int>>);
static_assert(!storable<std::string> && !storable<std::vector<int>> && !storable<std::filesystem::path>);
static_assert(!storable<taiyen::vector<std::string>> && !storable<taiyen::map<int, taiyen::vector<std::vector<int>>>> &&
              !storable<std::vector<taiyen::string>>);
static_assert(!storable<std::pair<int, std::string>> && !storable<std::optional<std::string>> && !storable<std::variant<int, std::string>> &&
              !storable<std::tuple<std::string>>);
static_assert(!storable<taiyen::map<int, int, std::function<bool(int, int)>>>);
static_assert(!storable<std::weak_ptr<int>> && !storable<std::error_code> && !storable<const std::any> && !storable<std::unique_ptr<int[]>>);
static_assert(storable<std::complex<double>> && storable<std::reference_wrapper<int>> && storable<std::variant<int, std::complex<float>>>);
// By the names in std, and by whole names.
struct any {};
template <class>
struct function {};
static_assert(storable<any> && storable<function<void()>> && storable<std::in_place_t> && storable<std::variant<std::monostate, any>>);

// Members, one by one.
struct String {
    int a;
    std::string b;
};
struct Vector {
    Part a;
    std::vector<int> b;
};
struct ReferenceFirst {
    int& a;
    int b;
};
struct ReferenceLast {
    int a;
    int& b;
};
struct Deep {
    taiyen::vector<String> a;
};
struct Arrays {
    int a[3];
    std::string b[2];
};
struct Optional {
    int a;
    std::optional<std::string> b;
};
struct Variant {
    int a;
    std::variant<int, std::string> b;
};
struct VariantOfPart {
    int a;
    std::variant<Part, std::string> b;
    int c;
};
struct CodePointer {
    int a;
    void (*b)(int);
};
struct Smart {
    std::unique_ptr<int> a;
};
struct Function {
    int a;
    std::function<void()> b;
};
struct Base : Part {
    std::string b;
};
struct BadBase : String {
    int c;
};
struct BehindArrays {
    Part a[2];
    std::shared_ptr<int> b;
};
struct VirtualMember {
    int a;
    Virtual b;
};
struct OptionalFunction {
    int a;
    std::optional<std::function<void()>> b;
    std::tuple<Part> c;
};
struct Tuple {
    std::tuple<std::string> a;
};
struct Deeper {
    taiyen::map<int, Deep> a;
};
template <class... T>
inline constexpr bool none_storable = (!storable<T> && ...);
static_assert(none_storable<String, Vector, ReferenceFirst, ReferenceLast, Deep, Arrays, Optional, Variant, VariantOfPart>);
static_assert(none_storable<CodePointer, Smart, Function, Base, BadBase, BehindArrays, VirtualMember, OptionalFunction, Tuple, Deeper>);

namespace {
struct Nameless {};
}  // namespace
static_assert(taiyen::stl::is_nameless<Nameless>() && taiyen::stl::is_nameless<taiyen::vector<Nameless>>());
static_assert(!taiyen::stl::is_nameless<Part>() && !taiyen::stl::is_nameless<taiyen::map<taiyen::string, Node>>());

}  // namespace storable_test

BOOST_AUTO_TEST_SUITE(storable_types)

BOOST_AUTO_TEST_CASE(the_walk_counts_members) {
    BOOST_TEST(taiyen::stl::initialisers<storable_test::Part>() == 4U);
    BOOST_TEST(taiyen::stl::initialisers<storable_test::Constant>() == 3U);
    BOOST_TEST(taiyen::stl::initialisers<storable_test::Mixed>() == 6U);
    BOOST_TEST(taiyen::stl::initialisers<storable_test::Large>() == taiyen::stl::walked_members_max);
}

BOOST_AUTO_TEST_SUITE_END()
