#pragma once
/// The matrix: every operation of a container × where the container lies × where the other container of the operation lies × what values made outside are given.
///
/// After each operation: the contents equal those of the standard container after the same operation; no word of any live durable block of either heap points out of
/// its heap; no bad free was reported; and when the containers are gone, as many blocks live as before.

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/heap/volatile_heap.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "campaign_factor.hpp"
#include "heap/memory_core.hpp"
#include "heap/scratch.hpp"
#include "stl/values.hpp"

namespace taiyen::stl::test {

using heap::test::MemoryCore;
using heap::test::Reports;

enum class Where { inside, outside, given };            ///< in the heap; outside; outside with a volatile heap given
enum class Given { nothing, a_file, a_volatile_heap };  ///< what values that are made outside are given

inline const char* name_of(Where where) {
    return where == Where::inside ? "inside" : where == Where::outside ? "outside" : "outside, volatile heap given";
}
inline const char* name_of(Given given) {
    return given == Given::nothing ? "values given nothing" : given == Given::a_file ? "values given the heap" : "values given a volatile heap";
}

/// One operation: changes `container`, may use up `other`; what it returns is compared too.
template <class W, class C>
struct Operation {
    std::string name;
    std::function<std::string(C& container, C& other, const Maker& make)> run;
    bool binary = false;          ///< uses `other`
    bool same_home_only = false;  ///< undefined by the standard, or refused, between different homes
};

/// What the operation "load factor" sets. libstdc++ keeps it in a word of its own, whose other half is padding that has whatever the stack had: no address, although it may look like one.
constexpr float some_load_factor = 0.25F;

/// Words of live blocks that point into scratch memory or into another heap.
inline std::size_t foreign_words(MemoryCore& core) {
    std::size_t found = 0;
    core.engine().for_each_block([&](const heap::Block& block) {
        const auto* words = reinterpret_cast<const std::uintptr_t*>(core.ranges().durable + block.offset.value);
        for (std::size_t i = 0; i < block.usable_bytes / sizeof(std::uintptr_t); ++i) {
            if (static_cast<std::uint32_t>(words[i]) == std::bit_cast<std::uint32_t>(some_load_factor)) continue;
            const auto* const target = reinterpret_cast<const void*>(words[i]);
            const heap::HeapCore* const owner = heap::core_at(target);
            if ((owner != nullptr && owner != &core) || heap::in_scratch(target)) ++found;
        }
        return true;
    });
    return found;
}

/// Two heaps, a volatile one, scratch memory, and how much lives in them.
struct World {
    MemoryCore first{4U << 20U};
    MemoryCore second{4U << 20U};
    VolatileHeap volatile_heap{{.capacity = 16U << 20U, .tell_memory_tools = false}};  // guards take ten times as long

    struct Counts {
        std::uint64_t first_durable, second_durable, in_volatile, in_scratch;
        bool operator==(const Counts&) const = default;
    };
    Counts counts() {
        return {first.engine().stats().live_blocks, second.engine().stats().live_blocks, volatile_heap.live_blocks(0).count,
                heap::scratch_live_blocks()};
    }
};

/// A container of ours at one of the places.
template <class C>
class Placed {
public:
    Placed(Where where, MemoryCore& core, World& world) : where_(where), core_(core) {
        switch (where) {
            case Where::inside: object_ = stl::make<C>(core); break;
            case Where::outside: object_ = new C(); break;
            case Where::given: object_ = new C(typename C::allocator_type(world.volatile_heap)); break;
        }
    }
    ~Placed() {
        if (where_ == Where::inside)
            stl::destroy_object(core_, object_);
        else
            delete object_;
    }
    Placed(const Placed&) = delete;
    Placed& operator=(const Placed&) = delete;
    C& operator*() { return *object_; }

private:
    Where where_;
    MemoryCore& core_;
    C* object_ = nullptr;
};

/// `Suite<W>` has: Container; fill(container, make, first number, count); operations().
template <template <class> class Suite>
class Matrix {
    using C = typename Suite<Ours>::Container;
    using Reference = typename Suite<Theirs>::Container;

public:
    static void run() {
        const auto ours = Suite<Ours>::operations();
        const auto theirs = Suite<Theirs>::operations();
        BOOST_REQUIRE(ours.size() == theirs.size());
        std::size_t cases = 0;
        for (std::size_t i = 0; i < ours.size(); ++i) {
            const std::string expected = reference(theirs[i]);
            World world;
            std::size_t place = i;  // under a sanitizer every third: another third for each operation
            for (const Given given : {Given::nothing, Given::a_file, Given::a_volatile_heap}) {
                for (const Where where : {Where::inside, Where::outside, Where::given}) {
                    for (const Where other : {Where::inside, Where::outside, Where::given}) {
                        for (const bool other_heap : {false, true}) {
                            if (!ours[i].binary && (other != Where::inside || other_heap)) continue;
                            if (other != Where::inside && other_heap) continue;
                            if (taiyen::test::under_sanitizer && ++place % 3 != 0) continue;
                            cases += one(world, ours[i], expected, given, where, other, other_heap);
                        }
                    }
                }
            }
        }
        BOOST_TEST_MESSAGE(ours.size() << " operations, " << cases << " cases");
        BOOST_TEST(cases > ours.size());
    }

private:
    static std::string reference(const Operation<Theirs, Reference>& operation) {
        Reference container;
        Reference other;
        const Maker make;
        Suite<Theirs>::fill(container, make, 0, 5);
        Suite<Theirs>::fill(other, make, 100, 3);
        const std::string extra = operation.run(container, other, make);
        return text_of(container).append(" | ").append(extra);
    }

    static std::size_t one(World& world, const Operation<Ours, C>& operation, const std::string& expected, Given given, Where where,
                           Where other_where, bool other_heap) {
        const Reports reports;
        const std::string title = operation.name + "; container " + name_of(where) + "; other " + name_of(other_where) +
                                  (other_heap ? " (another heap)" : "") + "; " + name_of(given);
        const auto before = world.counts();
        bool ran = true;
        std::string found;
        try {
            const Maker make{given == Given::nothing ? nullptr : given == Given::a_file ? &world.first : world.volatile_heap.core()};
            Placed<C> container(where, world.first, world);
            Placed<C> other(other_where, other_heap ? world.second : world.first, world);
            Suite<Ours>::fill(*container, make, 0, 5);
            Suite<Ours>::fill(*other, make, 100, 3);
            // Swaps of containers outside have no restriction.
            const bool both_outside = where != Where::inside && other_where != Where::inside;
            ran = !operation.same_home_only || !operation.binary || (*container).get_allocator() == (*other).get_allocator() ||
                  (both_outside && operation.name.starts_with("swapped"));
            if (ran) {
                const std::string extra = operation.run(*container, *other, make);
                found = text_of(*container).append(" | ").append(extra);
                BOOST_TEST(foreign_words(world.first) == 0U, title << ": a word of the first heap points out of it");
                BOOST_TEST(foreign_words(world.second) == 0U, title << ": a word of the second heap points out of it");
                if (where == Where::inside) BOOST_TEST(world.first.engine().stats().live_blocks > before.first_durable, title << ": nothing durable");
            }
        } catch (const std::exception& error) {
            BOOST_ERROR(title << ": " << error.what());
            return 1;
        }
        if (ran) BOOST_TEST(found == expected, title << ":\n  found    " << found << "\n  expected " << expected);
        BOOST_TEST((world.counts() == before), title << ": blocks are left or missing");
        BOOST_TEST(Reports::entries().empty(), title << ": a bad free was reported");
        return ran ? 1 : 0;
    }
};

/// Operations that every container with iterators of values has.
template <class W, class C>
void add_common(std::vector<Operation<W, C>>& all) {
    all.push_back({"copied to the outside", [](C& c, C&, const Maker&) {
                       const C copy(c);
                       return text_of(copy);
                   }});
    all.push_back({"copied within its allocator", [](C& c, C&, const Maker&) {
                       const C copy(c, c.get_allocator());
                       return text_of(copy);
                   }});
    all.push_back({"copied with the other's allocator",
                   [](C& c, C& o, const Maker&) {
                       const C copy(c, o.get_allocator());
                       return text_of(copy);
                   },
                   true});
    all.push_back({"moved out", [](C& c, C&, const Maker&) {
                       C out(std::move(c));
                       c.clear();
                       return text_of(out);
                   }});
    all.push_back({"moved out and back", [](C& c, C&, const Maker&) {
                       C out(std::move(c));
                       c.clear();
                       c = std::move(out);
                       return std::string();
                   }});
    all.push_back({"moved out with its allocator", [](C& c, C&, const Maker&) {
                       C out(std::move(c), c.get_allocator());
                       c.clear();
                       return text_of(out);
                   }});
    all.push_back({"moved with the other's allocator",
                   [](C& c, C& o, const Maker&) {
                       C out(std::move(c), o.get_allocator());
                       c.clear();
                       return text_of(out);
                   },
                   true});
    all.push_back({"moved out, changed, and filled again",
                   [](C& c, C& o, const Maker&) {
                       C out(std::move(c));
                       c.clear();
                       out.clear();
                       c = o;
                       return text_of(out);
                   },
                   true});
    all.push_back({"copy-assigned",
                   [](C& c, C& o, const Maker&) {
                       c = o;
                       return text_of(o);
                   },
                   true});
    all.push_back({"move-assigned",
                   [](C& c, C& o, const Maker&) {
                       c = std::move(o);
                       o.clear();
                       return std::string();
                   },
                   true});
    all.push_back({"assigned to itself", [](C& c, C&, const Maker&) {
                       C& same = c;
                       c = same;
                       return std::string();
                   }});
    all.push_back({"swapped",
                   [](C& c, C& o, const Maker&) {
                       c.swap(o);
                       return text_of(o);
                   },
                   true, true});
    all.push_back({"swapped by std::swap",
                   [](C& c, C& o, const Maker&) {
                       std::swap(c, o);
                       return text_of(o);
                   },
                   true, true});
    all.push_back({"cleared", [](C& c, C&, const Maker&) {
                       c.clear();
                       return std::string();
                   }});
    all.push_back({"cleared and filled from a copy", [](C& c, C&, const Maker&) {
                       const C copy(c);
                       c.clear();
                       c = copy;
                       return std::string();
                   }});
    all.push_back({"copied out, then back",
                   [](C& c, C& o, const Maker&) {
                       C copy(o);
                       c = std::move(copy);
                       return std::string();
                   },
                   true});
}

}  // namespace taiyen::stl::test
