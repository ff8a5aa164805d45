// Heaps in processes whose memory is limited or locked. Each case runs in a child, whose limits are its own.

#include <csignal>
#include <cstdio>
#include <functional>
#include <tuple>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/heap/scratch.hpp>

#include "base/sanitizers.hpp"
#include "store/heap_probe.hpp"
#include "vm/dumps.hpp"

namespace {
using namespace probe;

using Kinds = std::tuple<ArchiveHeap, SnapshotHeap>;

constexpr std::size_t block_bytes = 1U << 20U;

/// Runs `action` in a child. The text that it returns or throws, empty if all is well; "skipped: …" if this machine doesn't let it look.
std::string in_child(const std::function<std::string()>& action) {
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        std::string said;
        try {
            said = action();
        } catch (const std::exception& error) {
            said = std::string("threw ") + error.what();
        }
        const ssize_t written = ::write(ends[1], said.data(), said.size());
        ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string said;
    char buffer[512];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : "the child died; " + said;
}

void expect_well(const std::string& said) {
    if (said.starts_with("skipped"))
        BOOST_TEST_MESSAGE(said);
    else
        BOOST_TEST(said == "");
}

/// A figure of /proc/self/status in bytes.
std::size_t status_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
    return 0;
}

/// Leaves the process `more` bytes above what it uses; what it gets back lifts the limit.
class Limit {
public:
    Limit(__rlimit_resource kind, const char* used, std::size_t more) : kind_(kind) {
        ::getrlimit(kind, &before_);
        const rlimit limit{status_bytes(used) + more, before_.rlim_max};
        ::setrlimit(kind, &limit);
    }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;
    ~Limit() { ::setrlimit(kind_, &before_); }

private:
    __rlimit_resource kind_;
    rlimit before_{};
};

void limit_descriptors_to(int more) {
    const int lowest = ::dup(0);  // the descriptors below are in use
    ::close(lowest);
    const rlimit limit{.rlim_cur = static_cast<rlim_t>(lowest + more), .rlim_max = 1024};
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

#if defined(TAIYEN_ADDRESS_SANITIZER)
constexpr bool sanitized = true;  // its shadow memory leaves no room for limits
#else
constexpr bool sanitized = false;
#endif

}  // namespace

BOOST_AUTO_TEST_SUITE(limited_processes)

BOOST_AUTO_TEST_CASE(a_limit_of_address_space_is_named_at_opening_and_leaves_nothing_behind) {
    if (sanitized) return;
    const ScratchDirectory dir;
    expect_well(in_child([&]() -> std::string {
        const auto path = dir / "a.tyn";
        {
            const Limit limit(RLIMIT_AS, "VmSize", 4U << 20U);
            const auto refused = code_of([&] { ArchiveHeap(create_only, path, small_heap()); });
            if (refused != errc::out_of_address_space) return "creation was not refused as it should be";
        }
        if (!std::filesystem::is_empty(dir.path())) return "a refused creation left files";
        {
            ArchiveHeap heap(create_only, path, small_heap());
            put(heap, "text", "saved");
            heap.snapshot();
        }
        const auto before = bytes_of(path);
        {
            const Limit limit(RLIMIT_AS, "VmSize", 4U << 20U);
            const auto refused = code_of([&] { ArchiveHeap(open_only, path); });
            if (refused != errc::out_of_address_space) return "opening was not refused as it should be";
        }
        if (bytes_of(path) != before) return "a refused opening changed the file";
        return get(ArchiveHeap(open_only, path), "text") == "saved" ? "" : "the heap is not whole";
    }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_creation_that_runs_out_of_descriptors_leaves_nothing_behind, Heap, Kinds) {
    const ScratchDirectory dir;
    expect_well(in_child([&]() -> std::string {
        for (int more = 0;; ++more) {
            limit_descriptors_to(more);
            const auto failure = code_of([&] {
                Heap heap(create_only, dir / "a.tyn", small_heap());
                put(heap, "x", "y");
                heap.snapshot();
                heap.close();
            });
            limit_descriptors_to(100);
            const bool there = !std::filesystem::is_empty(dir.path());
            if (!failure) return more > 3 ? "" : "the limit had no effect";
            if (failure != errc::too_many_files) return std::to_string(more) + ": another error, " + std::to_string(static_cast<int>(*failure));
            if (there) return std::to_string(more) + ": something is left behind";
        }
    }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_opening_that_runs_out_of_descriptors_can_be_repeated, Heap, Kinds) {
    const ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "y");
        heap.snapshot();
    }
    expect_well(in_child([&]() -> std::string {
        for (int more = 0;; ++more) {
            limit_descriptors_to(more);
            const auto failure = code_of([&] { Heap(open_only, dir / "a.tyn").close(); });
            limit_descriptors_to(100);
            if (!failure) return more > 3 ? "" : "the limit had no effect";
            if (failure != errc::too_many_files) return std::to_string(more) + ": another error, " + std::to_string(static_cast<int>(*failure));
            Heap heap(open_only, dir / "a.tyn");
            if (get(heap, "x") != "y" || heap.heal() != 0) return std::to_string(more) + ": something is lost";
        }
    }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_heap_that_was_opened_is_saved_without_another_descriptor, Heap, Kinds) {
    const ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "y");
        heap.snapshot();
    }
    expect_well(in_child([&]() -> std::string {
        Heap heap(open_only, dir / "a.tyn");
        put(heap, "more", "z");
        limit_descriptors_to(0);
        const auto failure = code_of([&] { heap.snapshot(); });
        limit_descriptors_to(100);
        if (failure) return "saving failed with " + std::to_string(static_cast<int>(*failure));
        heap.close();
        return get(Heap(open_only, dir / "a.tyn"), "more") == "z" ? "" : "something is lost";
    }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_limit_of_file_sizes_makes_the_heap_full_and_ends_no_process, Heap, Kinds) {
    const ScratchDirectory dir;
    expect_well(in_child([&]() -> std::string {
        std::signal(SIGXFSZ, SIG_DFL);
        const auto limit_to = [](rlim_t bytes) {
            const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
            ::setrlimit(RLIMIT_FSIZE, &limit);
        };
        limit_to(64U << 10U);
        if (code_of([&] { Heap(create_only, dir / "a.tyn", small_heap()); }) != errc::no_space) return "creation was not refused as it should be";
        if (!std::filesystem::is_empty(dir.path())) return "a refused creation left files";
        limit_to(4U << 20U);
        Heap heap(create_only, dir / "a.tyn", small_heap(32U << 20U));
        put(heap, "text", "saved");
        heap.snapshot();
        bool full = false;
        try {
            for (int i = 0; i < 20; ++i) std::memset(heap.allocate(block_bytes), 1, block_bytes);
        } catch (const HeapFull& error) {
            full = error.cause() == HeapFull::Cause::disk && names_heap(error, dir / "a.tyn");
        }
        if (!full) return "the heap grew beyond the limit";
        heap.snapshot();
        limit_to(RLIM_INFINITY);
        heap.allocate(8 * block_bytes);
        heap.snapshot();
        heap.close();
        const Heap again(open_only, dir / "a.tyn");
        return get(again, "text") == "saved" ? "" : "the heap is not whole";
    }));
}

BOOST_AUTO_TEST_CASE(a_heap_that_the_process_may_not_grow_is_full_and_goes_on_when_it_may) {
    if (sanitized) return;
    const ScratchDirectory dir;
    expect_well(in_child([&]() -> std::string {
        const auto path = dir / "a.tyn";
        SnapshotHeap heap(create_only, path, small_heap(256U << 20U));
        put(heap, "text", "saved");
        unsigned blocks = 0;
        {
            const Limit limit(RLIMIT_DATA, "VmData", 20 * block_bytes);
            try {
                for (; blocks < 200; ++blocks) static_cast<char*>(heap.allocate(block_bytes))[5] = 'x';
                return "skipped: this kernel doesn't count private mappings as data";
            } catch (const HeapFull& full) {
                if (full.cause() != HeapFull::Cause::address_space || !names_heap(full, path))
                    return std::string("the cause or the heap is another: ") + full.what();
            }
            if (blocks == 0) return "nothing could be allocated below the limit";
            put(heap, "small", "still fits");
        }
        static_cast<char*>(heap.allocate(100 * block_bytes))[5] = 'x';
        heap.snapshot();
        heap.close();
        const SnapshotHeap again(open_only, path);
        return get(again, "text") == "saved" && get(again, "small") == "still fits" ? "" : "the heap is not whole";
    }));
}

BOOST_AUTO_TEST_CASE(a_process_that_locks_all_its_memory_does_not_lock_its_heaps) {
    if (sanitized) return;
    const ScratchDirectory dir;
    expect_well(in_child([&]() -> std::string {
        const auto path = dir / "a.tyn";
        {
            ArchiveHeap heap(create_only, path, small_heap(256U << 20U));
            for (int i = 0; i < 40; ++i) static_cast<char*>(heap.allocate(block_bytes))[7] = 'x';
            put(heap, "text", "saved");
            heap.snapshot();
        }
        if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return "skipped: mlockall(2) is not permitted here";
        std::optional<ArchiveHeap> heap;
        if (const auto refused = code_of([&] { heap.emplace(open_only, path); }))
            return *refused == errc::out_of_address_space ? "skipped: the limit of locked memory is too low" : "opening failed otherwise";
        for (int i = 0; i < 10; ++i) static_cast<char*>(heap->allocate(block_bytes))[7] = 'y';
        put(*heap, "more", "text");
        // Of the span, what is mapped must not be locked (the address space reserved behind it holds no memory).
        const std::uintptr_t begin = heap->core()->ranges().durable;
        std::ifstream maps("/proc/self/smaps");
        bool ours = false;
        bool seen = false;
        for (std::string line; std::getline(maps, line);) {
            unsigned long first = 0;
            unsigned long last = 0;
            if (std::sscanf(line.c_str(), "%lx-%lx", &first, &last) == 2) {
                ours = first >= begin && last <= begin + (256U << 20U) && line.find("a.tyn") != std::string::npos;
                seen = seen || ours;
            } else if (ours && line.starts_with("Locked:") && std::stoul(line.substr(7)) != 0) {
                return "pages of the heap are locked: " + line;
            } else if (ours && line.starts_with("VmFlags:") && line.find(" lo") != std::string::npos) {
                return "a mapping of the heap is locked";
            }
        }
        if (!seen) return "the heap's mapping was not found";
        heap->snapshot();
        if (heap->dirty_bytes() != 0) return "saved pages were not dropped";
        heap->close();
        return "";
    }));
}

BOOST_AUTO_TEST_CASE(a_core_dump_holds_the_heap_and_not_the_room_that_it_may_grow_into) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap(std::size_t{1} << 30U));
    const char* const block = put(heap, "text", std::string(3 * page_bytes, 'x'));
    BOOST_TEST(vm::test::is_in_dumps(block));
    BOOST_TEST(!vm::test::is_in_dumps(reinterpret_cast<const void*>(heap.core()->ranges().durable + heap.core()->reserved_bytes() - 1)));
    const void* const scratch = heap::allocate_scratch(100, 16);
    BOOST_TEST(vm::test::is_in_dumps(scratch));
    heap::deallocate(const_cast<void*>(scratch));
}

BOOST_AUTO_TEST_SUITE_END()
