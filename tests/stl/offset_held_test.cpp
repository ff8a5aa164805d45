// What containers of a position-independent heap lend: pointers that are distances, and sizes that are no pointers though they would lead to a block.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <taiyen/stl/offset_ptr.hpp>

#include "txn/transaction_service.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(offset_held)

namespace {
using namespace taiyen;
using namespace taiyen::txn::test;

struct OffsetHeldFixture {
    OffsetHeldFixture() {
        options.position_independent = true;
        heap.emplace(create_only, path, options);
    }
    std::uint64_t held() { return heap->stats().held_blocks; }

    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    PersistentOptions options = small_heap();
    std::optional<TransactionalHeap> heap;
};

/// A container in a block of its own, before and behind it blocks of the same size, to which words of the heap lead that were written long ago: none of these goes out with the container, whatever its size is.
template <class Container, class Fill>
void none_but_its_own(OffsetHeldFixture& at, const char* what, const Fill& fill) {
    using Others = taiyen::offset::vector<offset_ptr<char>>;
    Others* others = nullptr;
    Container* container = nullptr;
    transact(*at.heap, [&] {
        others = at.heap->make<Others>();
        const auto more = [&] {
            for (int i = 0; i < 40; ++i) others->push_back(static_cast<char*>(at.heap->allocate(sizeof(Container))));
        };
        more();
        container = at.heap->make<Container>();
        more();
    });
    store::HeapFile& file = HeapAccess::file(*at.heap);
    for (std::size_t count = 8; count <= 640; count += 8) {
        transact(*at.heap, [&] { fill(*container, count); });
        std::optional<Container> outside;
        transact(*at.heap, [&] { outside.emplace(std::move(*container)); });
        BOOST_TEST(at.held() != 0U, what << " of " << count << " leaks if the process dies");
        const std::vector<HeapOffset> suspects = file.held().suspects();
        for (const offset_ptr<char>& other : *others) {
            const HeapOffset offset{reinterpret_cast<std::uintptr_t>(other.get()) - file.ranges().durable};
            BOOST_TEST((std::ranges::find(suspects, offset) == suspects.end()), what << " of " << count << " has taken somebody else's block along");
        }
        outside.reset();
        transact(*at.heap, [] {});
        BOOST_TEST(at.held() == 0U, what << " of " << count << " is still held");
    }
    transact(*at.heap, [&] {
        at.heap->destroy_object(container);
        for (const offset_ptr<char>& other : *others) at.heap->deallocate(other.get());
        at.heap->destroy_object(others);
    });
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_size_that_would_lead_to_a_block_is_no_pointer, OffsetHeldFixture) {
    const auto resize = [](auto& container, std::size_t count) { container.resize(count); };
    const auto insert = [](auto& container, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) container.insert(static_cast<int>(i));
    };
    none_but_its_own<taiyen::offset::vector<char>>(*this, "a vector", resize);
    none_but_its_own<taiyen::offset::vector<char>>(*this, "a vector with room", [](auto& container, std::size_t count) {
        container.reserve(count);
        container.resize(5);
    });
    none_but_its_own<taiyen::offset::string>(*this, "a string", [](auto& container, std::size_t count) { container.assign(count + 32, 'x'); });
    none_but_its_own<taiyen::offset::small_vector<char, 7>>(*this, "a small vector", resize);
    none_but_its_own<taiyen::offset::deque<char>>(*this, "a deque", resize);
    none_but_its_own<taiyen::offset::list<char>>(*this, "a list", resize);
    none_but_its_own<taiyen::offset::slist<char>>(*this, "a singly linked list", resize);
    // What links a longer one's index to the object is not looked for: so long a one may leak.
    none_but_its_own<taiyen::offset::stable_vector<char>>(*this, "a stable vector",
                                                          [](auto& container, std::size_t count) { container.resize(count % 480 + 8); });
    none_but_its_own<taiyen::offset::set<int>>(*this, "a set", insert);
    none_but_its_own<taiyen::offset::flat_set<int>>(*this, "a flat set", insert);
}

BOOST_AUTO_TEST_SUITE_END()
