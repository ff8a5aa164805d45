// What a library that makes its allocators out of nothing stores in a heap, and an allocator of a program's own.
#include <taiyen/stl/durable_allocator.hpp>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "heap/memory_core.hpp"
#include "scratch_directory.hpp"
#include "throws.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using taiyen::test::throws;

namespace durable_allocator_test {

/// The way a well-known library for JSON keeps values: a tag and a pointer, and an allocator for each call.
template <template <class> class Allocator>
class Value {
public:
    using Text = std::basic_string<char, std::char_traits<char>, Allocator<char>>;
    using List = std::vector<Value, Allocator<Value>>;
    using Object = std::map<Text, Value, std::less<>, Allocator<std::pair<const Text, Value>>>;

    Value() = default;
    explicit Value(std::string_view text) : kind_(Kind::text) { content_.text = create<Text>(text); }
    Value(const Value& other) : kind_(other.kind_) {
        if (kind_ == Kind::text) content_.text = create<Text>(*other.content_.text);
        if (kind_ == Kind::list) content_.list = create<List>(*other.content_.list);
        if (kind_ == Kind::object) content_.object = create<Object>(*other.content_.object);
    }
    Value(Value&& other) noexcept { swap(other); }
    Value& operator=(Value other) noexcept {
        swap(other);
        return *this;
    }
    ~Value() {
        if (kind_ == Kind::text) destroy(content_.text);
        if (kind_ == Kind::list) destroy(content_.list);
        if (kind_ == Kind::object) destroy(content_.object);
    }
    void swap(Value& other) noexcept {
        std::swap(kind_, other.kind_);
        std::swap(content_, other.content_);
    }
    Value& operator[](std::string_view key) {
        if (kind_ == Kind::nothing) {
            content_.object = create<Object>();
            kind_ = Kind::object;
        }
        return (*content_.object)[Text(key)];
    }
    void push_back(Value value) {
        if (kind_ == Kind::nothing) {
            content_.list = create<List>();
            kind_ = Kind::list;
        }
        content_.list->push_back(std::move(value));
    }
    const Value& at(std::string_view key) const { return content_.object->find(key)->second; }
    const Value& at(std::size_t index) const { return content_.list->at(index); }
    std::string_view text() const { return *content_.text; }

private:
    enum class Kind { nothing, text, list, object };
    template <class T, class... A>
    static T* create(A&&... arguments) {
        Allocator<T> allocator;
        T* const made = std::allocator_traits<Allocator<T>>::allocate(allocator, 1);
        std::allocator_traits<Allocator<T>>::construct(allocator, made, std::forward<A>(arguments)...);
        return made;
    }
    template <class T>
    static void destroy(T* object) {
        Allocator<T> allocator;
        std::allocator_traits<Allocator<T>>::destroy(allocator, object);
        std::allocator_traits<Allocator<T>>::deallocate(allocator, object, 1);
    }
    Kind kind_ = Kind::nothing;
    union {
        Text* text;
        List* list;
        Object* object;
    } content_{};
};

using Json = Value<durable_allocator>;

/// An allocator of a program's own: of one heap for ever.
inline heap::HeapCore* of_the_program = nullptr;
template <class T>
struct Own {
    using value_type = T;
    Own() = default;
    template <class U>
    Own(const Own<U>&) {}  // NOLINT
    T* allocate(std::size_t count) { return static_cast<T*>(heap::allocate_durable(*of_the_program, count * sizeof(T), alignof(T))); }
    void deallocate(T* block, std::size_t) noexcept { heap::deallocate(block); }
    bool operator==(const Own&) const { return true; }
};
template <class T>
struct Foreign : Own<T> {};

}  // namespace durable_allocator_test

template <class T>
inline constexpr bool taiyen::is_durable_allocator<durable_allocator_test::Own<T>> = true;

BOOST_AUTO_TEST_SUITE(durable_allocators)

using namespace durable_allocator_test;

BOOST_AUTO_TEST_CASE(values_of_a_library_that_makes_its_allocators_out_of_nothing_are_stored_and_found_again) {
    const ScratchDirectory directory;
    const std::string path = directory / "values.tyn";
    const std::string long_text(100, 't');
    {
        ArchiveHeap heap(create_only, path);
        const DurableScope scope(heap);
        auto& root = heap.construct<Json>("root");
        for (int i = 0; i < 50; ++i) root["a list under a key that is long enough"].push_back(Json(long_text + std::to_string(i)));
        root["copy"] = root.at("a list under a key that is long enough");
        root["gone"] = Json("x");
        root["gone"] = Json();
        heap.snapshot();
    }
    ArchiveHeap heap(open_only, path);
    {
        auto& root = *heap.find<Json>("root");
        BOOST_TEST(root.at("copy").at(49).text() == long_text + "49");
        BOOST_TEST(heap.owns(root.at("copy").at(49).text().data()));
        const Reports reports;
        heap.destroy<Json>("root");  // frees without a scope
        BOOST_TEST(Reports::entries().empty());
    }
    BOOST_TEST(heap.core()->engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(the_innermost_scope_of_the_thread_names_the_heap) {
    MemoryCore first;
    MemoryCore second;
    durable_allocator<int> allocator;
    BOOST_TEST(throws(errc::invalid_argument, [&] { (void)allocator.allocate(1); }));
    const DurableScope outer(first);
    {
        const DurableScope inner(second);
        int* const block = allocator.allocate(10);
        BOOST_TEST(heap::in_durable(second, block));
        allocator.deallocate(block, 10);
        std::thread([&] { BOOST_TEST(throws(errc::invalid_argument, [&] { (void)allocator.allocate(1); })); }).join();
        second.close();
        BOOST_TEST(throws(errc::closed, [&] { (void)allocator.allocate(1); }));
    }
    int* const block = allocator.allocate(10);
    BOOST_TEST(heap::in_durable(first, block));
    allocator.deallocate(block, 10);
    BOOST_CHECK_THROW((void)allocator.allocate(static_cast<std::size_t>(-1) / 4), std::bad_array_new_length);
    BOOST_TEST(throws(errc::closed, [] {
        struct Closed {
            heap::HeapCore* core() const { return nullptr; }
        } closed;
        const DurableScope scope(closed);
    }));
}

BOOST_AUTO_TEST_CASE(an_allocator_of_the_program_is_accepted_where_it_says_that_it_is_durable) {
    static_assert(storable<std::vector<int, Own<int>>> && storable<std::vector<int, durable_allocator<int>>>);
    static_assert(!storable<std::vector<int, Foreign<int>>>);
    MemoryCore core;
    of_the_program = &core;
    using Numbers = std::vector<int, Own<int>>;
    Numbers& numbers = stl::construct<Numbers>(core, "numbers");
    numbers.assign(100, 7);
    BOOST_TEST(heap::in_durable(core, numbers.data()));
    BOOST_TEST((stl::find<Numbers>(core, "numbers")->at(99) == 7));
    BOOST_TEST(stl::destroy<Numbers>(core, "numbers"));
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
