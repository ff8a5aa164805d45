// All ways of capture give the same change set for the same program: two heaps that live one after the other at the same place get the same bytes, and the same sets.
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "change/captured_core.hpp"
#include "containers/document.hpp"
#include "heap/test_span.hpp"
#include "instrumented/captured_scopes.hpp"

namespace {

using taiyen::Audit;
using taiyen::Capture;
using taiyen::change::ChangeSet;
using taiyen::change::Direction;
using taiyen::change::Recorder;
using taiyen::change::test::CapturedCore;
using taiyen::change::test::same_bytes;

struct Course {
    std::uintptr_t address = 0;
    std::vector<ChangeSet> sets;
    std::string content;
};

/// Runs `scope(core, number)` in many scopes. (None is taken back: that makes the engine forget where it looked last, page by page or line by line, and so changes
/// where it puts the next block.) Then everything is undone, set by set, and done again.
template <class Prepare, class Scope, class Describe>
Course course(Capture mode, std::uintptr_t address, int scopes, Prepare&& prepare, Scope&& scope, Describe&& describe) {
    Course result;
    CapturedCore core(taiyen::ByteCount{8} << 20U, address);
    result.address = core.ranges().durable;
    prepare(core);
    Recorder& recorder = core.capture(mode, Audit::scope);
    for (int number = 0; number < scopes; ++number) {
        recorder.begin_scope();
        scope(core, number);
        recorder.cut(result.sets.emplace_back());
        recorder.end_scope();
    }
    result.content = describe(core);
    const auto last = core.image();
    for (std::size_t i = result.sets.size(); i > 0; --i) recorder.apply(result.sets[i - 1], Direction::backward);
    for (const ChangeSet& set : result.sets) recorder.apply(set, Direction::forward);
    BOOST_TEST((core.image() == last), "undone and done again, the heap differs");
    recorder.audit();
    BOOST_TEST(taiyen::heap::test::damage_text(core.engine()) == "");
    return result;
}

void same_sets(const Course& one, const Course& other) {
    BOOST_REQUIRE(one.address == other.address);
    BOOST_TEST(one.content == other.content);
    BOOST_REQUIRE(one.sets.size() == other.sets.size());
    for (std::size_t i = 0; i < one.sets.size(); ++i) BOOST_REQUIRE(same_bytes(one.sets[i], other.sets[i]));
}

using Document = taiyen::test::Document<taiyen::test::InHeap>;

Course document_course(Capture mode, std::uintptr_t address, unsigned seed, int scopes) {
    Document* document = nullptr;
    return course(
        mode, address, scopes, [&](CapturedCore& core) { document = taiyen::stl::make<Document>(core); },
        [&](CapturedCore&, int number) { taiyen::test::change(*document, seed + static_cast<unsigned>(number)); },
        [&](CapturedCore&) { return taiyen::test::describe(*document); });
}

/// Allocations, and writes that are declared besides being instrumented: a program for every mode.
Course declared_course(Capture mode, std::uintptr_t address, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return course(
        mode, address, 150, [](CapturedCore&) {},
        [&](CapturedCore& core, int) {
            for (std::uint64_t step = random() % 20; step > 0; --step) {
                std::vector<std::byte*> blocks;
                core.engine().for_each_block(
                    [&](const taiyen::heap::Block& block) { return blocks.push_back(core.base() + block.offset.value), true; });
                if (blocks.size() < 5 || random() % 3 == 0) {
                    core.engine().allocate(1 + (random() % 10 == 0 ? random() % 30000 : random() % 300));
                    continue;
                }
                std::byte* const block = blocks[random() % blocks.size()];
                const std::uint64_t usable = core.engine().usable_size(block);
                if (random() % 6 == 0) {
                    core.engine().deallocate(block);
                    continue;
                }
                const std::uint64_t from = random() % usable;
                const std::uint64_t length = 1 + random() % (usable - from);
                core.recorder().touch(core.offset_of(block + from), length);
                for (std::uint64_t i = 0; i < length; i += 1 + random() % 40) block[from + i] = static_cast<std::byte>(random());
            }
        },
        [](CapturedCore&) { return std::string(); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(modes)

BOOST_AUTO_TEST_CASE(a_document_of_all_containers_gives_the_same_sets_by_stores_and_by_pages) {
    const auto seed = static_cast<unsigned>(taiyen::test::seed_of_run());
    const Course stores = document_course(Capture::stores, 0, seed, 25);
    same_sets(stores, document_course(Capture::pages, stores.address, seed, 25));
}

BOOST_AUTO_TEST_CASE(a_program_that_declares_its_writes_gives_the_same_sets_in_all_modes) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    const Course declared = declared_course(Capture::declared, 0, seed);
    same_sets(declared, declared_course(Capture::stores, declared.address, seed));
    same_sets(declared, declared_course(Capture::pages, declared.address, seed));
}

BOOST_AUTO_TEST_SUITE_END()
