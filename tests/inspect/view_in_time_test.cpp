// What a transaction of the log, or a step of the history, changed is told by paths, with the values before and behind it.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <taiyen/taiyen.hpp>

#include "file_bytes.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace view_in_time_test {
using namespace taiyen;

using Names = taiyen::map<int, taiyen::string>;
using Numbers = taiyen::vector<std::int64_t>;
/// By path, as JSON.
using Model = std::map<std::string, std::string>;
/// By path, the texts before and behind.
using Changes = std::map<std::string, std::pair<std::string, std::string>>;

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 16_MiB;
    options.log_capacity = 4_MiB;
    return options;
}

std::string text_of(const std::optional<ViewValue>& value) {
    std::ostringstream to;
    if (value) write_json(to, *value);
    return to.str();
}

Changes between(const Model& before, const Model& behind) {
    Changes changes;
    for (const auto& [path, text] : before)
        if (const auto found = behind.find(path); found == behind.end() || found->second != text)
            changes[path] = {text, found == behind.end() ? "" : found->second};
    for (const auto& [path, text] : behind)
        if (!before.contains(path)) changes[path] = {"", text};
    return changes;
}

template <class Compare>
Changes told(Compare&& compare) {
    Changes changes;
    const std::vector<std::string> unknown = compare([&](const ViewDifference& difference) {
        BOOST_TEST(!changes.contains(difference.path));
        changes[difference.path] = {text_of(difference.before), text_of(difference.after)};
        return true;
    });
    BOOST_TEST(unknown.empty());
    return changes;
}

Changes of_transaction(const std::filesystem::path& heap, std::uint64_t serial) {
    return told([&](const auto& take) { return for_each_difference_of_transaction(heap, serial, take); });
}
Changes of_step(const std::filesystem::path& heap, std::uint64_t step) {
    return told([&](const auto& take) { return for_each_difference_of_step(heap, step, take); });
}

template <class Heap>
Model model_of(const Heap& heap) {
    Model model;
    int i = 0;
    for (const std::int64_t number : *heap.template find<Numbers>("numbers")) model["numbers[" + std::to_string(i++) + "]"] = std::to_string(number);
    for (const auto& [key, name] : *heap.template find<Names>("names"))
        model["names[" + std::to_string(key) + "]"] = "\"" + std::string(name.begin(), name.end()) + "\"";
    return model;
}

/// Some of each: numbers and names that come, go and change.
template <class Heap>
void edit(Heap& heap, std::mt19937_64& random) {
    auto& numbers = *heap.template find<Numbers>("numbers");
    auto& names = *heap.template find<Names>("names");
    for (auto turns = random() % 4 + 1; turns != 0; --turns) {
        const int key = static_cast<int>(random() % 40);
        switch (random() % 5) {
            case 0: numbers.push_back(static_cast<std::int64_t>(random())); break;
            case 1:
                if (!numbers.empty()) numbers[random() % numbers.size()] = static_cast<std::int64_t>(random() % 1000);
                break;
            case 2:
                if (!numbers.empty()) numbers.pop_back();
                break;
            case 3: names[key] = std::string(random() % 60, static_cast<char>('a' + random() % 26)).c_str(); break;
            default: names.erase(key);
        }
    }
}

template <class Heap>
void begin(Heap& heap) {
    heap.template construct<Numbers>("numbers");
    heap.template construct<Names>("names");
}

void copy_as_crashed(const std::filesystem::path& heap, const std::filesystem::path& to) {
    for (const char* suffix : {"", ".data", ".journal", ".log"})
        if (std::filesystem::exists(heap.string() + suffix))
            std::filesystem::copy(heap.string() + suffix, to.string() + suffix, std::filesystem::copy_options::overwrite_existing);
}

BOOST_AUTO_TEST_SUITE(view_in_time)

BOOST_AUTO_TEST_CASE(each_transaction_of_a_log_is_told_by_what_it_changed) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    std::vector<Model> models(1);
    {
        PersistentOptions options = small();
        if (random() % 2 == 0) options.durability = Durability::async;  // then many share a group
        TransactionalHeap heap(create_only, directory / "live.tyn", options);
        transact(heap, [&] { begin(heap); });
        models.push_back(model_of(heap));
        for (int i = 0; i < 25; ++i) {
            Serial serial;
            transact(heap, serial, [&] { edit(heap, random); });
            if (serial.value == models.size()) models.push_back(model_of(heap));  // else it changed nothing
        }
        heap.wait_durable({models.size() - 1});
        copy_as_crashed(directory / "live.tyn", directory / "heap.tyn");
    }
    const auto heap = directory / "heap.tyn";
    const std::string before = taiyen::test::file_bytes(heap) + taiyen::test::file_bytes(heap.string() + ".log");
    for (std::size_t serial = 2; serial < models.size(); ++serial)
        BOOST_TEST((of_transaction(heap, serial) == between(models[serial - 1], models[serial])), "transaction " << serial);
    const Changes first = of_transaction(heap, 1);  // which made the objects
    BOOST_TEST((first == Changes{{"numbers", {"", "[]"}}, {"names", {"", "{}"}}}));
    BOOST_TEST((taiyen::test::file_bytes(heap) + taiyen::test::file_bytes(heap.string() + ".log") == before));
    BOOST_TEST(taiyen::test::throws(errc::not_found, [&] { of_transaction(heap, models.size()); }));
    BOOST_TEST(taiyen::test::throws(errc::invalid_argument, [&] { of_transaction(heap, 0); }));
    TransactionalHeap(open_only, heap).close();
    BOOST_TEST(taiyen::test::throws(errc::not_found, [&] { of_transaction(heap, models.size() - 1); }));  // the files hold it now
}

BOOST_AUTO_TEST_CASE(each_step_of_a_history_is_told_undone_or_not) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const auto run = [&](auto& heap, const std::filesystem::path& file, const auto& save) {
        begin(heap);
        heap.attach_undo();
        std::vector<Model> models;  // behind each step
        std::vector<std::uint64_t> ids;
        models.push_back(model_of(heap));
        for (int i = 0; i < 20; ++i) {
            UndoScope scope(heap, "a step");
            edit(heap, random);
            scope.commit();
            models.push_back(model_of(heap));
        }
        for (auto back = random() % 20; back != 0; --back) heap.undo();
        for (const UndoStep& step : heap.undo_steps()) ids.push_back(step.id);
        save();
        heap.close();
        BOOST_TEST_REQUIRE(ids.size() + 1 == models.size());
        const std::string before = taiyen::test::file_bytes(file);
        for (std::size_t i = 0; i != ids.size(); ++i) BOOST_TEST((of_step(file, ids[i]) == between(models[i], models[i + 1])), "step " << ids[i]);
        BOOST_TEST((taiyen::test::file_bytes(file) == before));
        BOOST_TEST(taiyen::test::throws(errc::not_found, [&] { of_step(file, ids.back() + 1); }));
    };
    const ScratchDirectory directory;
    {
        SnapshotHeap heap(create_only, directory / "s.tyn", small());
        run(heap, directory / "s.tyn", [&] { heap.snapshot(); });
    }
}

BOOST_AUTO_TEST_CASE(each_step_of_a_transactional_heap_is_told_also_from_its_log) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    std::vector<Model> models;
    std::vector<std::uint64_t> ids;
    {
        TransactionalHeap heap(create_only, directory / "t.tyn", small());
        transact(heap, [&] { begin(heap); });
        heap.attach_undo();
        models.push_back(model_of(heap));
        for (int i = 0; i < 12; ++i) {
            const std::size_t steps = heap.undo_steps().size();
            transact(heap, [&] { edit(heap, random); });
            if (heap.undo_steps().size() != steps) models.push_back(model_of(heap));
        }
        for (auto back = random() % 8; back != 0 && heap.undo(); --back) {}
        for (const UndoStep& step : heap.undo_steps()) ids.push_back(step.id);
        copy_as_crashed(directory / "t.tyn", directory / "crashed.tyn");
    }
    BOOST_TEST_REQUIRE(ids.size() + 1 == models.size());
    for (const char* name : {"t.tyn", "crashed.tyn"})
        for (std::size_t i = 0; i != ids.size(); ++i)
            BOOST_TEST((of_step(directory / name, ids[i]) == between(models[i], models[i + 1])), name << ", step " << ids[i]);
}

BOOST_AUTO_TEST_CASE(steps_grow_and_shrink_the_heap) {
    const ScratchDirectory directory;
    const auto file = directory / "s.tyn";
    {
        SnapshotHeap heap(create_only, file, small());
        begin(heap);
        heap.attach_undo();
        {
            UndoScope scope(heap, "two mebibytes");
            heap.find<Numbers>("numbers")->resize(262'144, 5);
            scope.commit();
        }
        heap.undo();
        heap.snapshot();
    }
    std::size_t added = 0;
    for_each_difference_of_step(file, 1, [&](const ViewDifference& difference) {
        added += !difference.before && text_of(difference.after) == "5" ? 1 : 0;
        return true;
    });
    BOOST_TEST(added == 262'144U);
}

BOOST_AUTO_TEST_CASE(what_only_the_program_can_take_back_is_refused) {
    register_procedure(
        "view in time", [](ProcedureHeap& heap) { std::ranges::reverse(*heap.find<Numbers>("numbers")); },
        [](ProcedureHeap& heap) { std::ranges::reverse(*heap.find<Numbers>("numbers")); });
    const ScratchDirectory directory;
    const auto file = directory / "s.tyn";
    {
        SnapshotHeap heap(create_only, file, small());
        begin(heap);
        heap.attach_undo();
        for (int i = 0; i < 3; ++i) {
            UndoScope scope(heap, "counts");
            auto& numbers = *heap.find<Numbers>("numbers");
            if (i == 0)
                for (int number = 0; number < 20'000; ++number) numbers.push_back(number);
            else if (i == 1)
                scope.call("view in time");  // of so much that the step holds the call, not its bytes
            else
                numbers[7] = 9;
            scope.commit();
        }
        heap.snapshot();
    }
    BOOST_TEST((of_step(file, 3) == Changes{{"numbers[7]", {"19992", "9"}}}));
    BOOST_TEST(taiyen::test::throws(errc::mismatch, [&] { of_step(file, 2); }));
}

BOOST_AUTO_TEST_CASE(what_no_step_knows_is_a_conflict) {
    const ScratchDirectory directory;
    const auto file = directory / "s.tyn";
    {
        PersistentOptions options = small();
        options.capture = Capture::declared;
        SnapshotHeap heap(create_only, file, options);
        int& number = heap.construct<int>("number", 1);
        heap.attach_undo();
        UndoScope scope(heap, "two");
        scope.touch(&number, sizeof number);
        number = 2;
        scope.commit();
        number = 77;  // and told nobody, but in a page that is saved
        heap.snapshot();
    }
    BOOST_TEST(taiyen::test::throws(errc::history_conflict, [&] { of_step(file, 1); }));
}

BOOST_AUTO_TEST_CASE(a_page_that_rotted_comes_from_the_second_copy) {
    for (const Verify verify : {Verify::automatic, Verify::at_first_touch}) {
        const ScratchDirectory directory;
        PersistentOptions options = small();
        options.data_file = directory / "apart";
        Model before;
        Model behind;
        {
            SnapshotHeap heap(create_only, directory / "s.tyn", options);
            begin(heap);
            heap.find<Numbers>("numbers")->resize(4096, 1);
            heap.attach_undo();
            before = model_of(heap);
            UndoScope scope(heap, "all");
            for (std::int64_t& number : *heap.find<Numbers>("numbers")) number = 2;
            scope.commit();
            behind = model_of(heap);
            heap.snapshot();
            heap.close();
        }
        // Whichever file is read: a number of the second page of numbers becomes another one.
        std::string bytes = taiyen::test::file_bytes(directory / "s.tyn");
        std::string run(9000, '\0');
        for (std::size_t at = 0; at < run.size(); at += 8) run[at] = 2;
        const std::size_t found = bytes.find(run);
        BOOST_TEST_REQUIRE(found != std::string::npos);
        bytes[found + 8000] = 3;
        std::ofstream(directory / "s.tyn", std::ios::binary) << bytes;
        options.verify = verify;
        const Changes changes = told([&](const auto& take) { return for_each_difference_of_step(directory / "s.tyn", 1, take, options); });
        BOOST_TEST((changes == between(before, behind)));
        BOOST_TEST(changes.size() == 4096U);
    }
}

BOOST_AUTO_TEST_CASE(a_save_that_lies_in_the_journal_counts) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    std::vector<Model> models;
    {
        SnapshotHeap heap(create_only, directory / "live.tyn", small());
        begin(heap);
        heap.attach_undo();
        models.push_back(model_of(heap));
        for (int i = 0; i < 6; ++i) {
            UndoScope scope(heap, "a step");
            edit(heap, random);
            heap.find<Numbers>("numbers")->push_back(i);
            scope.commit();
            models.push_back(model_of(heap));
            heap.snapshot();
        }
        copy_as_crashed(directory / "live.tyn", directory / "s.tyn");
    }
    for (std::size_t i = 1; i != models.size(); ++i) BOOST_TEST((of_step(directory / "s.tyn", i) == between(models[i - 1], models[i])), "step " << i);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace view_in_time_test
