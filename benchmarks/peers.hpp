#pragma once
/// Persistent heaps behind one small interface: `Handle allocate(bytes)`, `deallocate(Handle)`, `void* address(Handle)`.
///
/// All of them keep their blocks in a file on the same file system. What they promise differs: taiyen and Boost.Interprocess change memory only, and taiyen makes
/// everything durable in one step by snapshot(); libpmemobj makes each single call failure-atomic, which is what its instructions buy.

#include <taiyen/taiyen.hpp>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#ifdef TAIYEN_BENCH_BOOST
#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#endif
#ifdef TAIYEN_BENCH_PMEMOBJ
#include <libpmemobj.h>
#endif

namespace bench {

/// Which peers are in, with versions and settings.
inline void print_peers() {
    std::printf("taiyen: ArchiveHeap, default options; blocks become durable with the next snapshot()\n");
#ifdef TAIYEN_BENCH_BOOST
    std::printf(
        "Boost.Interprocess %s: managed_mapped_file, rbtree_best_fit; \"no lock\" with null_mutex_family, its fastest setting (taiyen's heap takes "
        "no lock either); "
        "never synced\n",
        TAIYEN_BENCH_BOOST);
#else
    std::printf("Boost.Interprocess: built without it (libboost1.81-dev)\n");
#endif
#ifdef TAIYEN_BENCH_PMEMOBJ
    std::printf(
        "libpmemobj %s: atomic API (no transactions), destination in volatile memory, PMEM_IS_PMEM_FORCE=1: cache lines are flushed, msync is never "
        "called, its "
        "fastest setting on a disk\n",
        TAIYEN_BENCH_PMEMOBJ);
#else
    std::printf("libpmemobj: built without it (libpmemobj-dev)\n");
#endif
    std::printf("\n");
    std::fflush(stdout);
}

class TaiyenBlocks {
public:
    using Handle = void*;
    static constexpr const char* name = "taiyen ArchiveHeap";

    explicit TaiyenBlocks(const std::filesystem::path& path) : heap_(taiyen::create_only, path) {}
    Handle allocate(std::size_t bytes) { return heap_.allocate(bytes); }
    void deallocate(Handle block) { heap_.deallocate(block); }
    static void* address(Handle block) { return block; }
    taiyen::ArchiveHeap& heap() { return heap_; }

private:
    taiyen::ArchiveHeap heap_;
};

#ifdef TAIYEN_BENCH_BOOST
namespace ipc = boost::interprocess;

/// With the locks that managed_mapped_file takes by default.
using BoostFile = ipc::managed_mapped_file;
using BoostFileNoLock = ipc::basic_managed_mapped_file<char, ipc::rbtree_best_fit<ipc::null_mutex_family>, ipc::iset_index>;

template <class File>
class BoostBlocks {
public:
    using Handle = void*;
    static constexpr const char* name = std::is_same_v<File, BoostFile> ? "Boost.Interprocess" : "Boost.Interprocess, no lock";

    BoostBlocks(const std::filesystem::path& path, std::size_t capacity) : file_(ipc::create_only, path.c_str(), capacity) {}
    Handle allocate(std::size_t bytes) { return file_.allocate(bytes); }
    void deallocate(Handle block) { file_.deallocate(block); }
    static void* address(Handle block) { return block; }
    File& file() { return file_; }

private:
    File file_;
};
#endif

#ifdef TAIYEN_BENCH_PMEMOBJ
class PmemobjBlocks {
public:
    using Handle = PMEMoid;
    static constexpr const char* name = "libpmemobj";

    PmemobjBlocks(const std::filesystem::path& path, std::size_t capacity) {
        ::setenv("PMEM_IS_PMEM_FORCE", "1", 1);
        pool_ = ::pmemobj_create(path.c_str(), "bench", capacity, 0600);
        if (pool_ == nullptr) throw std::runtime_error(path.string() + ": pmemobj_create: " + ::pmemobj_errormsg());
    }
    PmemobjBlocks(const PmemobjBlocks&) = delete;
    PmemobjBlocks& operator=(const PmemobjBlocks&) = delete;
    ~PmemobjBlocks() { ::pmemobj_close(pool_); }

    Handle allocate(std::size_t bytes) {
        PMEMoid block{};
        if (::pmemobj_alloc(pool_, &block, bytes, 0, nullptr, nullptr) != 0) throw std::bad_alloc();
        return block;
    }
    void deallocate(Handle block) { ::pmemobj_free(&block); }
    static void* address(Handle block) { return ::pmemobj_direct(block); }
    PMEMobjpool* pool() { return pool_; }

private:
    PMEMobjpool* pool_;
};
#endif

}  // namespace bench
