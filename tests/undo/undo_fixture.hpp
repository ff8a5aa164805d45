#pragma once
/// A heap with a history on the disk under test, and what tests ask about it.

#include <taiyen/taiyen.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scratch_directory.hpp"
#include "throws.hpp"
#include "undo/copy_recorder.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::undo::test {

using taiyen::test::names_heap;
using taiyen::test::throws;

/// Recorders that need nothing of the machine; put back afterwards.
struct WithCopyRecorder {
    UndoService::RecorderMaker before = std::exchange(UndoService::make_recorder, &make_copy_recorder);
    WithCopyRecorder() = default;
    WithCopyRecorder(const WithCopyRecorder&) = delete;
    WithCopyRecorder& operator=(const WithCopyRecorder&) = delete;
    ~WithCopyRecorder() { UndoService::make_recorder = before; }
};

inline PersistentOptions small_heap(std::size_t capacity = std::size_t{16} << 20U) {
    PersistentOptions options;
    options.capacity = capacity;
    return options;
}

struct UndoFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    std::optional<SnapshotHeap> heap{std::in_place, create_only, path, small_heap()};

    using Numbers = taiyen::vector<int>;
    Numbers& numbers() { return heap->find_or_construct<Numbers>("numbers"); }
    std::vector<int> values() {
        const Numbers* const found = heap->find<Numbers>("numbers");
        return found == nullptr ? std::vector<int>{} : std::vector<int>(found->begin(), found->end());
    }
    void push(int value, std::string_view name = {}) {
        UndoScope scope(*heap, name);
        numbers().push_back(value);
    }
    void reopen() {
        heap.reset();
        heap.emplace(open_only, path, small_heap());
    }
};

inline std::vector<std::string> names_of(const std::vector<UndoStep>& steps) {
    std::vector<std::string> names;
    for (const UndoStep& step : steps)
        names.push_back((step.undone ? "(" : "") + (step.implicit ? std::string("*") : step.name) + (step.undone ? ")" : ""));
    return names;
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

}  // namespace taiyen::undo::test
