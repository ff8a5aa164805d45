#pragma once
/// A heap that is replicated, restored, and compared.

#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "replicate/pretended_target.hpp"
#include "replicate/restorer.hpp"
#include "scratch_directory.hpp"
#include "store/heap_access.hpp"
#include "throws.hpp"

namespace taiyen::replicate::test {

using Map = taiyen::map<std::uint64_t, taiyen::string>;
using Model = std::map<std::uint64_t, std::string>;

inline Model model_of(const ArchiveHeap& heap) {
    Model model;
    if (const Map* const found = heap.find<Map>("map"))
        for (const auto& [key, value] : *found) model.emplace(key, std::string(value));
    return model;
}

/// What the heap in that file holds. It is closed again.
inline Model model_in(const std::filesystem::path& path) {
    const ArchiveHeap heap(open_read_only, path);
    for (const Finding& finding : heap.verify().findings)
        if (finding.severity != Severity::note) throw std::runtime_error(finding.what);
    return model_of(heap);
}

/// Retries at once.
inline ReplicationOptions quick() {
    ReplicationOptions options;
    options.retry = std::chrono::milliseconds(2);
    return options;
}

/// Keeps reports instead of printing them.
struct Quiet {
    ReportHandler before = set_report_handler(+[](const Incident&) noexcept {});
    Quiet() = default;
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
    ~Quiet() { set_report_handler(before); }
};

/// That bug is in the library while it lives.
struct Planted {
    explicit Planted(Bug bug) { planted_bug = bug; }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;
    ~Planted() {
        planted_bug = Bug::none;
        at_planted_step = nullptr;
    }
};

struct ReplicatedFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    PersistentOptions options = [] {
        PersistentOptions options;
        options.capacity = std::size_t{64} << 20U;
        options.log_capacity = std::size_t{256} << 10U;
        return options;
    }();
    std::optional<TransactionalHeap> heap{std::in_place, create_only, path, options};
    std::shared_ptr<PretendedTarget> target = std::make_shared<PretendedTarget>();
    std::map<std::uint64_t, Model> states;  ///< by serial
    int restored = 0;

    Serial put(std::uint64_t key, const std::string& value) {
        Transaction transaction(*heap);
        heap->find_or_construct<Map>("map").insert_or_assign(key, taiyen::string(value.c_str()));
        const Serial serial = transaction.commit();
        note(serial, key, value);
        return serial;
    }
    void note(Serial serial, std::uint64_t key, const std::string& value) {
        Model model = states.empty() ? Model{} : states.rbegin()->second;
        model.insert_or_assign(key, value);
        states[serial.value] = std::move(model);
    }
    /// Many keys in one transaction.
    void fill(std::uint64_t keys) {
        Transaction transaction(*heap);
        auto& map = heap->find_or_construct<Map>("map");
        Model model;
        for (std::uint64_t key = 0; key < keys; ++key) {
            const std::string value(100, static_cast<char>('a' + key % 26));
            map.insert_or_assign(key, taiyen::string(value.c_str()));
            model.insert_or_assign(key, value);
        }
        states[transaction.commit().value] = std::move(model);
    }
    void reopen() {
        heap.reset();
        heap.emplace(open_only, path, options);
    }
    Serial newest() const { return {states.rbegin()->first}; }
    /// Restores while the heap is closed: it has the same address. Opens it again if it was open.
    Model restore_it(const RestoreOptions& how = {}) {
        const bool was_open = heap.has_value();
        heap.reset();
        const std::filesystem::path to = directory / ("restored " + std::to_string(++restored) + ".tyn");
        const auto open_again = [&] {
            if (was_open) heap.emplace(open_only, path, options);
        };
        try {
            (void)taiyen::restore(*target, to, how);
            Model model = model_in(to);
            open_again();
            return model;
        } catch (...) {
            open_again();
            throw;
        }
    }
    /// Waits until the target has everything, and ends.
    void end(Replication& replication) const {
        if (!replication.wait_replicated(newest(), std::chrono::seconds(60))) throw std::runtime_error("the target doesn't get it");
        replication.stop();
    }
};

}  // namespace taiyen::replicate::test
