#pragma once
/// A random program over a heap with a history: edits and steps of compact(), undone, done again, saved, and cut off by crashes; held against a model.
///
/// The model is a list of contents, one for each step of the history, and where the cursor stands. Each capture mode, and both kinds of heap that have a history, can run it. Failures are thrown
/// with the seed and the turn.

#include <taiyen/taiyen.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace taiyen::transfer::test {

template <class Heap>
class RandomMoves {
public:
    using Texts = taiyen::map<int, taiyen::string>;
    using Model = std::map<int, std::string>;

    RandomMoves(std::filesystem::path directory, PersistentOptions files, std::uint64_t seed)
        : directory_(std::move(directory)), files_(std::move(files)), seed_(seed), random_(seed) {
        std::filesystem::create_directories(directory_);
        heap_.emplace(create_only, path(), files_);
        heap_->attach_undo();
        {
            UndoScope scope(*heap_, "begin");
            heap_->template construct<Texts>("texts");
            scope.commit();
        }
        course_ = {{Model()}, 0};
        for (int i = 0; i < 3; ++i) edit();
        save();
    }

    void run(int turns) {
        for (turn_ = 1; turn_ <= turns; ++turn_) {
            switch (random_() % 10) {
                case 0:
                case 1:
                case 2: edit(); break;
                case 3:
                case 4:
                case 5: move(); break;
                case 6:
                case 7: go(true); break;
                case 8: go(false); break;
                default: random_() % 2 == 0 ? save() : crash(); break;
            }
            expect();
            if (turn_ % 16 == 0) check(heap_->verify().ok(), "verify() finds damage");
        }
        while (course_.at != 0) go(true);
        while (course_.at + 1 != course_.contents.size()) go(false);
        expect();
        check(heap_->verify().ok(), "verify() finds damage");
    }
    std::uint64_t moved() const { return moved_; }
    int crashes() const { return crashes_; }

private:
    struct Course {
        std::vector<Model> contents;
        std::size_t at;
    };

    std::filesystem::path path() const { return directory_ / ("life " + std::to_string(crashes_) + ".tyn"); }
    void check(bool holds, const std::string& what) const {
        if (!holds) throw std::runtime_error(what + " (TAIYEN_SEED=" + std::to_string(seed_) + ", turn " + std::to_string(turn_) + ")");
    }
    void expect() const {
        Model found;
        for (const auto& [number, text] : *std::as_const(*heap_).template find<Texts>("texts")) found[number].assign(text.data(), text.size());
        check(found == course_.contents[course_.at], "the content is another one");
    }
    void add(Model content) {
        course_.contents.resize(course_.at + 1);
        course_.contents.push_back(std::move(content));
        ++course_.at;
    }

    void edit() {
        Model now = course_.contents[course_.at];
        {
            UndoScope scope(*heap_, "edit");
            Texts& texts = *heap_->template find<Texts>("texts");
            std::vector<void*> between;
            for (int i = 0; i < 60; ++i) {
                const int number = static_cast<int>(random_() % 150);
                if (random_() % 2 == 0) {
                    texts.erase(number);
                    now.erase(number);
                } else {
                    now[number] = std::string(random_() % 120, static_cast<char>('a' + random_() % 26));
                    texts[number] = now[number].c_str();
                }
                for (int n = 0; n < 3; ++n) between.push_back(heap_->allocate(random_() % 12 == 0 ? random_() % 9000 : random_() % 300));
            }
            for (void* const block : between) heap_->deallocate(block);
            scope.commit();
        }
        add(std::move(now));
    }
    void move() {
        CompactOptions options;
        options.types.add<Texts>();
        options.bytes_max = random_() % 20'000;
        const CompactReport report = compact(*heap_, options);
        check(report.undeclared_blocks + report.suspected_blocks == 0, "blocks are pinned");
        if (report.moved_blocks == 0) return;
        moved_ += report.moved_blocks;
        check(heap_->undo_name() == "compact", "the step has another name");
        add(course_.contents[course_.at]);
    }
    void go(bool back) {
        for (auto steps = 1 + random_() % 3; steps != 0; --steps) {
            const bool is_possible = back ? course_.at != 0 : course_.at + 1 != course_.contents.size();
            if (back && course_.at == 0) return;  // the step before made the map
            check((back ? heap_->undo() : heap_->redo()) == is_possible, back ? "undo is another one" : "redo is another one");
            if (!is_possible) return;
            back ? --course_.at : ++course_.at;
            expect();
        }
    }
    void save() {
        heap_->snapshot();
        saved_ = course_;
    }
    void crash() {
        const std::filesystem::path left = path();
        ++crashes_;
        for (const char* const suffix : {"", ".data", ".log", ".journal"})
            if (std::filesystem::exists(left.string() + suffix)) std::filesystem::copy_file(left.string() + suffix, path().string() + suffix);
        heap_.reset();
        for (const char* const suffix : {"", ".data", ".log", ".journal"}) std::filesystem::remove(left.string() + suffix);
        heap_.emplace(open_only, path(), files_);
        heap_->attach_undo();
        if constexpr (!std::is_same_v<Heap, TransactionalHeap>) course_ = saved_;
    }

    std::filesystem::path directory_;
    PersistentOptions files_;
    std::uint64_t seed_;
    std::mt19937_64 random_;
    std::optional<Heap> heap_;
    Course course_;
    Course saved_;
    std::uint64_t moved_ = 0;
    int turn_ = 0;
    int crashes_ = 0;
};

}  // namespace taiyen::transfer::test
