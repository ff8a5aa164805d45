// Types that a program may have in a heap, or behind a pointer in one, and that are hard to look into: all of them compile as they would without shapes, and have a shape that can be read.

#include <boost/interprocess/offset_ptr.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <bitset>
#include <complex>
#include <csignal>
#include <forward_list>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <taiyen/taiyen.hpp>

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpedantic"
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#pragma clang diagnostic ignored "-Wunused-private-field"
#else
#pragma GCC diagnostic ignored "-Wpedantic"
#endif

namespace odd_types {

using namespace taiyen;

struct Forward;

struct Dollars {
    int cost_in_$;
    int $;
};
struct VolatileMembers {
    volatile int flag = 0;
    int number = 0;
};
struct VolatileArray {
    volatile long numbers[4];
    volatile std::sig_atomic_t signal;
};
struct VolatileClass {
    volatile VolatileMembers members;
};
struct ConstBitFields {
    const unsigned low : 3 = 1;
    int number = 0;
};
struct BitFields {
    int low : 3;
    int : 0;
    int high : 5;
};
struct __attribute__((packed)) Packed {
    char letter;
    double number;
};
struct __attribute__((packed)) PackedConst {
    const char letter = 'a';
    const int number = 3;
};
#pragma pack(push, 1)
struct PragmaPacked {
    char tag;
    const char magic[4] = {'a'};
    const unsigned short version = 3;
};
#pragma pack(pop)
struct FlexibleArray {
    int count;
    char data[];
};
struct TaggedFlexibleArray {
    int count;
    char data[];
};
struct ZeroArray {
    int count;
    char data[0];
};

inline int global = 0;
struct Referring {
    int number = 0;
    int& reference = global;
};
struct ReferringToConst {
    const int& reference = global;
    int number = 0;
};
struct RvalueReferring {
    int&& reference = 5;
};
struct References {
    Referring* referring;
    ReferringToConst* to_const;
    RvalueReferring* to_rvalue;
    std::pair<int&, int>* pair;
    std::tuple<int&>* tuple;
    std::reference_wrapper<int>* wrapper;
};

/// Types that are only declared, two steps behind a pointer.
struct Registry {
    std::map<std::string, Forward> by_name;
    int number;
};
struct LaterPair {
    std::pair<int, Forward>* pair;
};
struct TwoSteps {
    Registry* registry;
    LaterPair* later;
    taiyen::vector<Registry*> registries;
    Forward* forward;
};

/// Templates that lead to ever new instances of themselves.
template <int number>
struct Next {
    int value;
    Next<number + 1>* next;
};
template <class T>
struct Tree {
    T value;
    Tree<std::pair<T, T>>* below = nullptr;
};
/// A template that has no such instance.
template <class T>
struct NeverMade {
    static_assert(sizeof(T) == 4);
    T value;
};
struct Unmade {
    NeverMade<double>* pointer;
};
class HoldsUnmade {
public:
    HoldsUnmade() {}
    taiyen::vector<NeverMade<double>*> pointers;
};
struct LeadsToUnmade {
    HoldsUnmade holds;
    Unmade* pointer;
};

struct Base {
    int number;
};
struct Derived : Base {
    int other;
};
struct VirtuallyDerived : virtual Base {
    int other;
};
struct Abstract {
    virtual void act() = 0;
    int number;
};
class Secret {
public:
    Secret() = default;

private:
    int number_ = 0;
};
struct PrivatelyDerived : private Base {
    int other;
};
struct Anonymous {
    int kind;
    union {
        int number;
        float fraction;
    };
    struct {
        int first;
        int second;
    };
};
union Either {
    int number;
    float fraction;
};
struct Relatives {
    Derived derived;
    Secret secret;
    Anonymous anonymous;
    Either either;
    Derived* to_derived;
    VirtuallyDerived* virtually;
    Abstract* abstract;
    PrivatelyDerived* privately;
    Anonymous* to_anonymous;
    Either* to_either;
};

struct Empty {};
struct AlsoEmpty {};
struct NoAddresses {
    [[no_unique_address]] Empty empty;
    int number;
    [[no_unique_address]] AlsoEmpty other;
};
struct alignas(4096) Aligned {
    char letter;
};
struct TakesAll {
    TakesAll() = default;
    template <class T>
    TakesAll(T) {}
    int number = 0;
};
struct HoldsTakesAll {
    int first;
    TakesAll all;
    int last;
};
struct HidesItsAddress {
    HidesItsAddress* operator&() { return nullptr; }
    int number;
};
struct Converts {
    template <class T>
    operator T() const;
    int number;
};
struct ExplicitMember {
    struct Made {
        explicit Made(int) {}
        Made(const Made&) = delete;
    };
    int number = 0;
    Made made = Made(1);
};
struct NotCopied {
    std::atomic<int> counter;
    std::atomic<long> other{3};
};
struct Many {
    int numbers[70];
    int a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2;
};
struct Members {
    Empty empty;
    NoAddresses addresses;
    Aligned aligned;
    HoldsTakesAll takes_all;
    HidesItsAddress hides;
    Converts converts;
    NotCopied not_copied;
    Many many;
    ExplicitMember* is_explicit;
};

typedef int Vector4 __attribute__((vector_size(16)));
struct Numbers {
    Vector4 vector;
    _Complex double complex;
    __int128 large;
    long double extended;
    std::nullptr_t nothing;
    std::bitset<70> bits;
    std::string_view view;
    enum class Sized : short;
    enum class Late : char;
    Late* late;
};
struct Functions {
    void (**plain)(int) noexcept;
    int Base::* member;
    Base& (*(*chooser)[4])(Base&&);
};
struct Less {
    bool operator()(int left, int right) const { return left < right; }
};
struct Compared {
    taiyen::map<int, int, Less> map;
};
/// Of a running program: what no heap keeps, but for a pointer to it.
struct Running {
    std::mutex mutex;
    std::function<void()> call;
    std::unique_ptr<Running> next;
    std::map<std::string, std::function<void(Running&)>> handlers;
};
struct PointsToRunning {
    Running* running;
    std::FILE* file;
    std::exception* exception;
};
struct Distances {
    boost::interprocess::offset_ptr<int> usual;
    boost::interprocess::offset_ptr<void> nothing;
    boost::interprocess::offset_ptr<Forward> forward;
    boost::interprocess::offset_ptr<int, std::ptrdiff_t, std::size_t, 16> sixteen_bytes;
};

/// A class that is no template and tells its fields is looked into behind pointers, too; what it holds may be anything.
class Told {
public:
    TAIYEN_DESCRIBE(Told, names_, pair_, forward_, next_, flag_, reference_)

private:
    std::map<std::string, Forward>* names_ = nullptr;
    std::unique_ptr<int> pair_;
    taiyen::vector<Forward*> forward_;
    Told* next_ = nullptr;
    volatile int flag_ = 0;
    std::tuple<int&> reference_{global};
};
struct LeadsToTold {
    Told* told;
    int (*array)[4];
    int (*unbounded)[];
    Told (*several)[4];
};

}  // namespace odd_types

template <>
inline constexpr std::uint64_t taiyen::layout_tag<odd_types::TaggedFlexibleArray> = 1;

namespace odd_types {

struct Behind {
    FlexibleArray* flexible;
    ZeroArray* zero;
    Packed* packed;
    PackedConst* packed_const;
    PragmaPacked* pragma_packed;
    VolatileMembers* members;
    volatile VolatileClass* volatile_class;
    ConstBitFields* const_bit_fields;
};

BOOST_AUTO_TEST_SUITE(shape_odd_types)

/// What a program does with the type in a heap compiles, and the shape can be read.
template <class T>
Shape usable() {
    [[maybe_unused]] T* (*const find)(heap::HeapCore&, std::string_view, bool) = &stl::find<T>;
    [[maybe_unused]] T* (*const find_only)(const heap::HeapCore&, std::string_view) = &stl::find<T>;
    Shape shape = Shape::decode(std::as_bytes(std::span(stl::encoded_shape<T>())));
    BOOST_TEST(shape.nodes.front().bytes == sizeof(T), shape.text());
    return shape;
}
template <class T>
bool is_structure() {
    return usable<T>().nodes.front().kind == ShapeKind::structure;
}

BOOST_AUTO_TEST_CASE(what_cannot_be_bound_to_a_reference_is_opaque) {
    BOOST_TEST(!is_structure<ConstBitFields>());
    BOOST_TEST(!is_structure<BitFields>());
    BOOST_TEST(!is_structure<Packed>());
    BOOST_TEST(!is_structure<PackedConst>());
    BOOST_TEST(!is_structure<TaggedFlexibleArray>());
    usable<VolatileMembers>();
    usable<VolatileArray>();
    usable<VolatileClass>();
    usable<PragmaPacked>();
    usable<taiyen::vector<VolatileMembers>>();
}

BOOST_AUTO_TEST_CASE(what_a_pointer_leads_to_is_named_only) {
    for (const Shape& shape : {usable<Behind>(), usable<References>(), usable<TwoSteps>(), usable<Next<0>>(), usable<Tree<int>>(),
                               usable<LeadsToUnmade>(), usable<PointsToRunning>()}) {
        BOOST_TEST((shape.nodes.front().kind == ShapeKind::structure));
        for (std::size_t i = 1; i < shape.nodes.size(); ++i) BOOST_TEST((shape.nodes[i].kind != ShapeKind::structure), shape.text());
    }
}

BOOST_AUTO_TEST_CASE(what_lies_in_place_is_looked_into_behind_pointers_too) {
    const Shape shape = usable<Relatives>();
    BOOST_TEST(shape.nodes.front().parts.size() == 10U);
    BOOST_TEST(is_structure<Members>());
    BOOST_TEST(is_structure<Compared>());
    BOOST_TEST(is_structure<NoAddresses>());
    usable<Numbers>();
    usable<HoldsTakesAll>();
    usable<Functions*>();
    struct Local {
        int number;
        Local* next;
    };
    BOOST_TEST(usable<Local>().nodes.front().parts.size() == 2U);
}

BOOST_AUTO_TEST_CASE(names_may_hold_dollars) {
    BOOST_TEST(usable<Dollars>().text() ==
               "odd_types::Dollars, 8 bytes\n"
               "  0 cost_in_$: int32_t\n"
               "  4 $: int32_t\n");
}

BOOST_AUTO_TEST_CASE(a_distance_of_sixteen_bytes_is_opaque_and_spoils_nothing) {
    const Shape shape = usable<Distances>();
    BOOST_TEST(shape.nodes.front().parts.size() == 4U);
    BOOST_TEST((shape.nodes.at(shape.nodes.front().parts[0].node).kind == ShapeKind::pointer));
    BOOST_TEST((shape.nodes.at(shape.nodes.front().parts[3].node).kind == ShapeKind::opaque));
}

BOOST_AUTO_TEST_CASE(a_class_that_tells_its_fields_is_looked_into_behind_pointers) {
    const Shape shape = usable<LeadsToTold>();
    const auto target = [&](std::size_t field) {
        return shape.nodes.at(shape.nodes.at(shape.nodes.front().parts.at(field).node).parts.front().node);
    };
    BOOST_TEST((target(0).kind == ShapeKind::structure));
    BOOST_REQUIRE(target(0).parts.size() == 6U);
    BOOST_TEST((shape.nodes.at(target(0).parts[5].node).kind == ShapeKind::opaque));
    BOOST_TEST(shape.type(shape.nodes.front().parts[1].node) == "int32_t(*)[4]");
    BOOST_TEST((target(3).kind == ShapeKind::array));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace odd_types
