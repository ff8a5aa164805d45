#pragma once
/// A transactional heap on the disk under test, crashes of it, and what tests ask about it.

#include <taiyen/taiyen.hpp>

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scratch_directory.hpp"
#include "store/heap_access.hpp"
#include "throws.hpp"

namespace taiyen::txn::test {

using taiyen::test::throws;

inline PersistentOptions small_heap(Capture capture = Capture::pages) {
    PersistentOptions options;
    options.capacity = std::size_t{64} << 20U;
    options.log_capacity = std::size_t{256} << 10U;
    options.capture = capture;
    return options;
}

struct TransactionFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    PersistentOptions options = small_heap();
    std::optional<TransactionalHeap> heap{std::in_place, create_only, path, options};
    int copies = 0;

    using Numbers = taiyen::vector<int>;
    Numbers& numbers() { return heap->find_or_construct<Numbers>("numbers"); }
    std::vector<int> values() const {
        const Numbers* const found = heap->find<Numbers>("numbers");
        return found == nullptr ? std::vector<int>{} : std::vector<int>(found->begin(), found->end());
    }
    Serial push(int value) {
        Transaction transaction(*heap);
        numbers().push_back(value);
        return transaction.commit();
    }
    void reopen() {
        heap.reset();
        heap.emplace(open_only, path, options);
    }
    /// Goes on with what a process that died now would leave behind.
    void crash() {
        const std::filesystem::path left = directory / ("crash " + std::to_string(++copies));
        std::filesystem::create_directory(left);
        auto saves = std::optional(HeapAccess::file(*heap).files().hold_saves());  // files of one moment
        for (const auto& file : std::filesystem::directory_iterator(path.parent_path()))
            if (file.is_regular_file()) std::filesystem::copy_file(file.path(), left / file.path().filename());
        saves.reset();
        heap.reset();
        path = left / "heap.tyn";
        if (!options.data_file.empty()) options.data_file = left / options.data_file.filename();
        heap.emplace(open_only, path, options);
    }
    /// A new heap with other options.
    void replace(const PersistentOptions& with) {
        heap.reset();
        options = with;
        const std::filesystem::path other = directory / ("other " + std::to_string(++copies));
        std::filesystem::create_directory(other);
        path = other / "heap.tyn";
        heap.emplace(create_only, path, options);
    }
};

/// Whether the thread of this process waits for something.
inline bool sleeps(pid_t thread) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string all;
    return std::getline(status, all) && all.find(") S ") != std::string::npos;
}

/// Keeps reports instead of printing them.
struct Silence {
    static inline std::vector<errc> told;
    ReportHandler before = set_report_handler(+[](const Incident& incident) noexcept { told.push_back(incident.code); });
    Silence() { told.clear(); }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence() { set_report_handler(before); }
};

}  // namespace taiyen::txn::test
