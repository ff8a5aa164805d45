#include "heap/program_memory.hpp"

#include <gnu/libc-version.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "heap/memory_core.hpp"
#include "heap/scratch.hpp"

using namespace taiyen;
using heap::ProgramMemory;
using heap::test::MemoryCore;

namespace {

const char a_constant[64] = {1};
int a_variable;
std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

BOOST_AUTO_TEST_SUITE(program_memory)

BOOST_AUTO_TEST_CASE(images_malloc_and_stacks_are_the_programs_memory) {
    const auto small = std::make_unique<int>(1);
    const std::vector<char> large(8U << 20U, 'x');
    const int local = 0;
    const ProgramMemory memory;
    for (const void* const each :
         {static_cast<const void*>(a_constant), static_cast<const void*>(&a_variable), static_cast<const void*>("a literal"),
          reinterpret_cast<const void*>(&::gnu_get_libc_version), reinterpret_cast<const void*>(&number), static_cast<const void*>(small.get()),
          static_cast<const void*>(large.data() + large.size() / 2), static_cast<const void*>(&local)})
        BOOST_TEST(memory.holds(number(each)), each);
    BOOST_TEST(memory.describe(number(a_constant)) == "the program");
    BOOST_TEST(memory.describe(number(&local)) == "a stack of the program");
    BOOST_TEST(memory.describe(number(reinterpret_cast<const void*>(&::gnu_get_libc_version))).find(".so") != std::string::npos);
    BOOST_TEST(!memory.describe(number(small.get())).empty());
}

BOOST_AUTO_TEST_CASE(what_other_threads_have_is_the_programs_memory) {
    std::thread([] {
        const auto theirs = std::make_unique<int>(1);
        const int local = 0;
        const ProgramMemory memory;
        BOOST_TEST(memory.holds(number(theirs.get())));
        BOOST_TEST(memory.describe(number(&local)) == "a stack of the program");
    }).join();
}

BOOST_AUTO_TEST_CASE(heaps_numbers_and_free_addresses_are_not) {
    MemoryCore core;
    void* const block = heap::allocate_durable(core, 100, 16);
    void* const scratch = heap::allocate_scratch(100, 16);
    constexpr std::size_t length = 1U << 20U;
    void* const nothing = ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(nothing != MAP_FAILED);
    const ProgramMemory memory;
    for (const std::uintptr_t each : {number(block), number(scratch), number(nothing) + 4096, std::uintptr_t{0}, std::uintptr_t{100'000},
                                      ~std::uintptr_t{0}, std::uintptr_t{0x8000'0000'0000}, std::uintptr_t{0x4fff'ffff'ffff}})
        BOOST_TEST(!memory.holds(each), each);
    ::munmap(nothing, length);
    heap::deallocate(block);
    heap::deallocate(scratch);
}

BOOST_AUTO_TEST_SUITE_END()
