#pragma once
/// A piece of the life of a heap of any kind, with what went before it: what crash states and injected faults are about.
///
/// `Life` lives it and keeps the states that its model went through, `Setup` says on what, `Subject` judges what a crash left.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/store/options.hpp>

#include "crash/scenario.hpp"

namespace taiyen::crash {

/// Pages where the heap has none yet, behind the end of its span, in the file or at its end, as a large save leaves them that was cut short before it wrote anything else there.
void leave_behind_the_end(io::SimulatedStorage& disk, const std::filesystem::path& heap);

/// Noise there, and in the data file, up to the end of each.
void rot_behind_the_end(io::SimulatedStorage& disk, const std::filesystem::path& heap, const std::filesystem::path& data);

/// All bytes of that file.
void make_zero(io::SimulatedStorage& disk, const std::filesystem::path& path);

template <class Life, class Setup, class States, class Judge>
struct PieceOfLife {
    const char* name;
    Setup setup;
    std::function<void(Life&)> before;  ///< empty: nothing, there is no heap yet
    std::function<void(Life&)> life;    ///< the piece
    bool crashed_before = false;        ///< `before` ends without closing
    std::optional<HeapKind> kind_before = std::nullopt;
    bool damage_headers = false;                           ///< both header slots of the heap's own file are lost in between
    std::optional<ByteCount> left_of_heap = std::nullopt;  ///< so many of its bytes
    std::optional<ByteCount> left_of_data = std::nullopt;  ///< so many bytes of the data file
    bool zeroed_heap = false;                              ///< the heap's own file has zeros in the place of all its bytes
    bool zeroed_data = false;                              ///< the data file has
    bool lose_data = false;                                ///< the data file is lost in between
    bool leftover =
        false;  ///< the crash was within a large save that only the data file knew of: pages of it lie behind the end of the heap's own file

    /// What went before: the states, and the data file if it was lost.
    struct Past {
        States states;  ///< by number; entry 0 stands for no heap
        std::optional<LostFile> lost = std::nullopt;
    };

    /// Lives what went before, unrecorded, and leaves the empty disk as the piece finds it.
    Past live_before(io::SimulatedStorage& disk) const {
        add_directories(disk);
        Past past;
        if (!before) return past;
        Setup earlier = setup;
        earlier.kind = kind_before.value_or(setup.kind);
        earlier.data_file = setup.data_file || lose_data;
        {
            Life lived(disk, nullptr, earlier);
            before(lived);
            TAIYEN_CHECK(lived.is_open() == crashed_before);
            disk.disconnect();
            lived.abandon();
            past.states = lived.history();
        }
        if (damage_headers)
            for (const std::uint64_t slot : {std::uint64_t{0}, std::uint64_t{page_bytes}})
                disk.node(setup.path())->write(std::vector<std::byte>(io::sector_bytes, std::byte{0x5a}), slot + io::sector_bytes);
        if constexpr (requires { setup.misses_heap; }) {
            if (setup.misses_heap) disk.take_away(setup.path());
        }
        if (left_of_heap) disk.node(setup.path())->resize(*left_of_heap);
        if (left_of_data) disk.node(earlier.data_path())->resize(*left_of_data);
        if (zeroed_heap) make_zero(disk, setup.path());
        if (zeroed_data) make_zero(disk, earlier.data_path());
        if (leftover) leave_behind_the_end(disk, setup.path());
        if constexpr (requires { setup.rots; }) {
            if (setup.rots) rot_behind_the_end(disk, setup.path(), earlier.data_path());
        }
        if (lose_data) {
            const std::filesystem::path path = earlier.data_path();
            const auto node = disk.node(path);
            past.lost = LostFile{{node->data(), node->data() + node->size_bytes()}, past.states.size() - 1};
            if (leftover) past.lost->bytes.clear();  // this one is older than the save that was cut short: it can't come back
            disk.take_away(path);
        }
        return past;
    }

    /// Lives all of it; the bug is planted from the piece on.
    Recording record(Bug bug) const {
        Recording recording;
        io::SimulatedStorage disk;
        Past past = live_before(disk);
        recording.acknowledged = past.states.size() - 1;
        recording.base = image_of(disk);
        planted_bug = bug;
        io::RecordingStorage recorder(disk);
        Life lived(recorder, &recorder, setup, past.states);
        life(lived);
        recording.trace = recorder.take_trace();
        recording.subject = std::make_unique<Judge>(setup, lived.history(), std::move(past.lost));
        disk.disconnect();
        lived.abandon();
        return recording;
    }
};

}  // namespace taiyen::crash
