#include "crash/txn_scenarios.hpp"

#include "base/planted.hpp"
#include "crash/scenario.hpp"

namespace taiyen::crash {
namespace {

void transactions(TxnLife& life, int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) life.transact(random());
}

void create(TxnLife& life) {
    life.create();
    transactions(life, 2, 1);
    life.close();
}

void create_and_commit(TxnLife& life) {
    life.create();
    transactions(life, 4, 2);
    life.close();
}

void leave_unclosed(TxnLife& life) {
    life.create();
    transactions(life, 3, 3);
    life.snapshot();
    transactions(life, 3, 4);
}

void commit(TxnLife& life) {
    life.open();
    transactions(life, 8, 5);
    life.close();
}

/// Inner transactions are kept or rolled back within outer ones that are committed.
void nested(TxnLife& life) {
    life.open();
    for (std::uint64_t seed = 110; seed < 114; ++seed) life.transact_nested(seed);
    transactions(life, 1, 114);
    life.snapshot();
    for (std::uint64_t seed = 115; seed < 118; ++seed) life.transact_nested(seed);
    life.close();
}

/// The log runs round more than once; snapshots come when the test asks, with transactions in their middle, and when the log is full.
void go_round(TxnLife& life) {
    life.open();
    std::mt19937_64 random(6);
    for (int lap = 0; lap < 3; ++lap) {
        for (int i = 0; i < 4; ++i) life.put("wide", 5000 + random() % 2000, random());
        life.snapshot_meanwhile(3, random());
    }
    for (int i = 0; i < 12; ++i) life.put("more", 7000, random());  // the log makes its own room
    life.close();
}

/// A snapshot while the log is nearly full: what is committed in its middle goes around the ring's end, and would overwrite what the files don't hold yet.
void snapshot_of_a_full_log(TxnLife& life) {
    life.open();
    std::mt19937_64 random(7);
    for (int i = 0; i < 6; ++i) life.put("wide", 6500, random());
    life.snapshot_meanwhile(6, random());
    transactions(life, 1, 8);
}

void snapshots(TxnLife& life) {
    life.open();
    transactions(life, 2, 9);
    life.snapshot();
    transactions(life, 1, 10);
    life.put_sparse("wide", 120'000);
    life.snapshot_meanwhile(2, 11);
    life.remove("wide");
    life.snapshot();
    life.close();
}

/// The second copy comes and goes, and the log is replaced by a larger and a smaller one, while transactions go on.
void change_companions(TxnLife& life) {
    life.open();
    for (std::uint64_t round = 0; round < 2; ++round) {
        transactions(life, 2, 210 + round);
        life.change_data_file();
        transactions(life, 1, 212 + round);
        life.replace_log(round == 0 ? 128_KiB : 64_KiB);
        transactions(life, 1, 214 + round);
        life.snapshot_meanwhile(1, 216 + round);
    }
    transactions(life, 1, 218);
    life.close();
}

/// After each snapshot the pages that it brought into the files are given back, but for those that were changed meanwhile.
void give_back(TxnLife& life) {
    life.open();
    for (std::uint64_t round = 0; round < 3; ++round) {
        transactions(life, 2, 60 + round);
        life.put("wide", 20'000, 70);  // the same bytes each time
        life.snapshot_meanwhile(2, 80 + round);
        life.snapshot();  // begins after the pages have been given back
        life.compare_alive();
    }
    life.close();
}

/// A page that changes and changes back beside a snapshot is what the files hold, and is given back, though the state between is in the log.
void swing(TxnLife& life) {
    life.open();
    for (std::uint64_t round = 0; round < 2; ++round) {
        transactions(life, 1, 95 + round);
        life.put("swing", 8'000, 90);
        life.snapshot_meanwhile([&] {
            life.put("swing", 8'000, 91);
            life.wait();
            life.put("swing", 8'000, 90);
        });
        life.snapshot();
        life.compare_alive();
    }
    life.close();
}

void large(TxnLife& life) {
    life.open();
    transactions(life, 1, 12);
    life.put("large", 60'000, 13);
    transactions(life, 1, 14);
    life.put("large", 50'000, 15);
    life.put("other", 40'000, 16);
    life.close();
}

/// Loading that is relaxed, made strict by waiting, by a snapshot in its middle, and by the first commit behind it.
void relaxed(TxnLife& life) {
    life.open();
    transactions(life, 2, 100);
    life.relax();
    transactions(life, 3, 101);
    life.put("wide", 20'000, 102);
    life.make_strict();
    transactions(life, 1, 103);
    life.relax();
    transactions(life, 2, 104);
    life.snapshot();
    transactions(life, 2, 105);
    life.end_relaxed();
    transactions(life, 2, 106);
    life.relax();
    transactions(life, 2, 107);
    life.close();
}

/// The same without capture: also where loading ends in the middle of a transaction, and where a rollback takes back what was loaded.
void uncaptured(TxnLife& life) {
    life.open();
    transactions(life, 2, 110);
    life.relax(RelaxedRollback::loading);
    life.load(3, 111);
    life.put("wide", 20'000, 112);
    life.make_strict();
    life.relax(RelaxedRollback::loading);
    life.end_relaxed_within(113);
    transactions(life, 1, 114);
    life.take_loading_back(3, 115);
    transactions(life, 2, 116);
    life.relax(RelaxedRollback::loading);
    life.load(2, 117);
    life.snapshot();
    life.load(2, 118);
    life.end_relaxed();
    transactions(life, 1, 119);
    life.relax(RelaxedRollback::loading);
    life.load(2, 120);
    life.close();
}

void shared(TxnLife& life) {
    life.open();
    life.share(3, 1600);
    transactions(life, 1, 17);
    life.share(2, 1800);
    life.snapshot();
    life.share(4, 1900);
    life.close();
}

void asynchronous(TxnLife& life) {
    life.open();
    for (std::uint64_t round = 0; round < 3; ++round) {
        transactions(life, 3, 20 + round);
        life.wait();
        transactions(life, 2, 30 + round);
        if (round == 1) life.snapshot_meanwhile(2, 40);
    }
    life.close();
}

void calls(TxnLife& life) {
    life.open();
    life.call(41);
    transactions(life, 1, 42);
    life.call(43);
    life.snapshot();
    life.call(44);
    life.call(45);
    life.close();
}

void lower(TxnLife& life) {
    life.open();
    life.save(46);
    life.save(47);
    life.close();
}

void attach(TxnLife& life) {
    life.open();
    transactions(life, 2, 48);
    life.close();
}

void begin_history(TxnLife& life) {
    life.create();
    transactions(life, 2, 55);
    life.attach();
    for (std::uint64_t i = 0; i < 3; ++i) life.step("step " + std::to_string(i), 56 + i);
    life.undo();
    life.close();
}

void begin_history_and_die(TxnLife& life) {
    life.create();
    life.attach();
    life.step("first", 70);
    life.snapshot();
    life.step("second", 71);
    life.undo();
}

/// Steps, undo and redo among plain transactions and snapshots; a step that is larger than the log.
void undo_steps(TxnLife& life) {
    life.open();
    life.resume();
    life.redo();
    life.step("a", 60);
    life.undo();
    life.snapshot_meanwhile(2, 61);
    life.step("b", 62);
    life.step("c", 63);
    life.squash(2, "b and c");
    life.undo();
    life.snapshot();
    life.undo();
    life.redo();
    life.redo();
    life.step("large", 64, 50'000);
    life.undo();
    transactions(life, 1, 65);
    life.close();
}

/// The history becomes smaller and larger: its steps move, the oldest are dropped, some stand behind the cursor. No room is so small that later steps drop any.
void resize_history(TxnLife& life) {
    life.open();
    life.resume();
    life.step("large", 140, 150'000);
    life.step("a", 141);
    life.step("b", 142);
    life.undo();
    life.snapshot();
    life.resize_history(128_KiB);  // the large one is dropped, and what was before it
    life.redo();
    life.step("c", 143);
    life.snapshot_meanwhile([&] { life.resize_history(1_MiB); });
    life.undo();
    life.resize_history(128_KiB);
    life.redo();
    life.close();
}

/// Steps with inner transactions, undone and redone.
void nested_steps(TxnLife& life) {
    life.open();
    life.resume();
    for (std::uint64_t seed = 120; seed < 123; ++seed) life.transact_nested(seed);
    life.undo();
    life.undo();
    life.snapshot();
    life.redo();
    life.transact_nested(123);
    life.undo();
    life.redo();
    life.close();
}

/// A program that does not attach the history ends it; another one begins a new one.
void change_unattached(TxnLife& life) {
    life.open();
    transactions(life, 2, 66);
    life.snapshot();
    transactions(life, 1, 67);
    life.attach();
    life.step("new", 68);
    life.close();
}

/// Blocks that objects outside have taken along: whenever the process dies the next one finds those, and no others, to be leaks.
void lend_and_die(TxnLife& life) {
    life.open();
    life.lend(79);
    life.abandon();
    life.open();
    life.reclaim();
    life.lend(80);
    transactions(life, 1, 81);
    life.lend(82);
    life.snapshot();
    life.take_back(83);
    transactions(life, 1, 84);
    life.let_go();
    transactions(life, 1, 85);
    life.lend(86);
    life.let_go();
    transactions(life, 1, 87);
    life.close();
}

}  // namespace

std::vector<TxnScenario> txn_scenarios() {
    const TxnSetup alone;
    const TxnSetup with_data{.data_file = true};
    const TxnSetup pages{.capture = Capture::pages};
    const TxnSetup batches{.batch_bytes = 16_KiB};
    const TxnSetup batches_with_data{.data_file = true, .batch_bytes = 16_KiB};
    const TxnSetup little_memory{.dirty_limit = 16_KiB};
    const TxnSetup little_memory_pages{.data_file = true, .capture = Capture::pages, .dirty_limit = 16_KiB};
    const TxnSetup little_memory_async{.durability = Durability::async, .dirty_limit = 16_KiB};
    const TxnSetup async{.durability = Durability::async};
    const TxnSetup history{.history = true};
    const TxnSetup history_with_data{.data_file = true, .history = true};
    const TxnSetup lends{.lends = true};
    const TxnSetup lends_with_data{.data_file = true, .lends = true};
    const TxnSetup archive{.kind = HeapKind::archive};
    const TxnSetup snapshot{.kind = HeapKind::snapshot};
    const TxnSetup without{.detach_data_file = true};
    const TxnSetup apart{.apart = true};
    const TxnSetup apart_with_data{.data_file = true, .apart = true};
    const TxnSetup apart_history{.data_file = true, .history = true, .apart = true};
    const TxnSetup apart_without{.detach_data_file = true, .apart = true};
    const auto saved = [](TxnLife& life) {
        life.create();
        life.save(50);
        life.save(51);
        life.close();
    };
    const auto closed_and_lower = [](TxnLife& life) {
        lower(life);
        life.open(HeapKind::transactional);
        transactions(life, 2, 52);
        life.close();
    };
    return {
        {.name = "txn-create", .setup = alone, .before = {}, .life = create},
        {.name = "txn-create-data", .setup = with_data, .before = {}, .life = create},
        {.name = "txn-commit", .setup = alone, .before = create_and_commit, .life = commit},
        {.name = "txn-commit-pages", .setup = pages, .before = create_and_commit, .life = commit},
        {.name = "txn-round", .setup = alone, .before = create_and_commit, .life = go_round},
        {.name = "txn-round-data", .setup = with_data, .before = create_and_commit, .life = go_round},
        {.name = "txn-full", .setup = alone, .before = create_and_commit, .life = snapshot_of_a_full_log},
        {.name = "txn-full-data", .setup = with_data, .before = create_and_commit, .life = snapshot_of_a_full_log},
        {.name = "txn-snapshot", .setup = alone, .before = create_and_commit, .life = snapshots},
        {.name = "txn-snapshot-data", .setup = with_data, .before = create_and_commit, .life = snapshots},
        {.name = "txn-companions", .setup = alone, .before = create_and_commit, .life = change_companions},
        {.name = "txn-companions-data", .setup = with_data, .before = create_and_commit, .life = change_companions},
        {.name = "txn-batches", .setup = batches, .before = create_and_commit, .life = snapshots},
        {.name = "txn-batches-data", .setup = batches_with_data, .before = create_and_commit, .life = snapshots},
        {.name = "txn-give-back", .setup = little_memory, .before = create_and_commit, .life = give_back},
        {.name = "txn-give-back-pages", .setup = little_memory_pages, .before = create_and_commit, .life = give_back},
        {.name = "txn-swing", .setup = little_memory_async, .before = create_and_commit, .life = swing},
        {.name = "txn-large", .setup = alone, .before = create_and_commit, .life = large},
        {.name = "txn-large-data", .setup = with_data, .before = create_and_commit, .life = large},
        {.name = "txn-relaxed", .setup = alone, .before = create_and_commit, .life = relaxed},
        {.name = "txn-relaxed-data", .setup = with_data, .before = create_and_commit, .life = relaxed},
        {.name = "txn-uncaptured", .setup = alone, .before = create_and_commit, .life = uncaptured},
        {.name = "txn-uncaptured-data", .setup = with_data, .before = create_and_commit, .life = uncaptured},
        {.name = "txn-inner", .setup = alone, .before = create_and_commit, .life = nested},
        {.name = "txn-inner-pages", .setup = pages, .before = create_and_commit, .life = nested},
        {.name = "txn-inner-data", .setup = with_data, .before = leave_unclosed, .life = nested, .crashed_before = true},
        {.name = "txn-inner-undo", .setup = history, .before = begin_history, .life = nested_steps},
        {.name = "txn-shared", .setup = alone, .before = create_and_commit, .life = shared},
        {.name = "txn-async", .setup = async, .before = create_and_commit, .life = asynchronous},
        {.name = "txn-calls", .setup = alone, .before = create_and_commit, .life = calls},
        {.name = "txn-recover", .setup = alone, .before = leave_unclosed, .life = commit, .crashed_before = true},
        {.name = "txn-recover-data", .setup = with_data, .before = leave_unclosed, .life = commit, .crashed_before = true},
        {.name = "txn-held", .setup = lends, .before = create_and_commit, .life = lend_and_die},
        {.name = "txn-held-data", .setup = lends_with_data, .before = create_and_commit, .life = lend_and_die},
        {.name = "txn-undo", .setup = history, .before = begin_history, .life = undo_steps},
        {.name = "txn-undo-data", .setup = history_with_data, .before = begin_history, .life = undo_steps},
        {.name = "txn-undo-recover", .setup = history, .before = begin_history_and_die, .life = undo_steps, .crashed_before = true},
        {.name = "txn-undo-resize", .setup = history, .before = begin_history, .life = resize_history},
        {.name = "txn-undo-unattached", .setup = history, .before = begin_history, .life = change_unattached},
        {.name = "txn-lower-archive",
         .setup = archive,
         .before = leave_unclosed,
         .life = closed_and_lower,
         .crashed_before = true,
         .kind_before = HeapKind::transactional},
        {.name = "txn-lower-snapshot",
         .setup = snapshot,
         .before = leave_unclosed,
         .life = lower,
         .crashed_before = true,
         .kind_before = HeapKind::transactional},
        {.name = "txn-attach-archive", .setup = alone, .before = saved, .life = attach, .kind_before = HeapKind::archive},
        {.name = "txn-attach-snapshot", .setup = alone, .before = saved, .life = attach, .kind_before = HeapKind::snapshot},
        {.name = "txn-attach-crashed",
         .setup = alone,
         .before =
             [](TxnLife& life) {
                 life.create();
                 life.save(53);
                 life.save(54);
             },
         .life = attach,
         .crashed_before = true,
         .kind_before = HeapKind::archive},
        {.name = "txn-rebuild", .setup = with_data, .before = leave_unclosed, .life = commit, .crashed_before = true, .damage_headers = true},
        {.name = "txn-detach", .setup = without, .before = create_and_commit, .life = commit, .lose_data = true},
        {.name = "txn-detach-crashed", .setup = without, .before = leave_unclosed, .life = commit, .crashed_before = true, .lose_data = true},
        // Heap, data file and log on three devices.
        {.name = "txn-apart-create", .setup = apart, .before = {}, .life = create},
        {.name = "txn-apart-create-data", .setup = apart_with_data, .before = {}, .life = create},
        {.name = "txn-apart-snapshot", .setup = apart, .before = create_and_commit, .life = snapshots},
        {.name = "txn-apart-snapshot-data", .setup = apart_with_data, .before = create_and_commit, .life = snapshots},
        {.name = "txn-apart-full-data", .setup = apart_with_data, .before = create_and_commit, .life = snapshot_of_a_full_log},
        {.name = "txn-apart-large", .setup = apart, .before = create_and_commit, .life = large},
        {.name = "txn-apart-recover-data", .setup = apart_with_data, .before = leave_unclosed, .life = commit, .crashed_before = true},
        {.name = "txn-apart-attach-data", .setup = apart_with_data, .before = saved, .life = attach, .kind_before = HeapKind::archive},
        {.name = "txn-apart-rebuild",
         .setup = apart_with_data,
         .before = leave_unclosed,
         .life = commit,
         .crashed_before = true,
         .damage_headers = true},
        {.name = "txn-apart-detach", .setup = apart_without, .before = leave_unclosed, .life = commit, .crashed_before = true, .lose_data = true},
        {.name = "txn-apart-companions", .setup = apart, .before = create_and_commit, .life = change_companions},
        {.name = "txn-apart-undo", .setup = apart_history, .before = begin_history, .life = undo_steps},
    };
}

std::vector<CrashScenario> txn_crash_scenarios() {
    std::vector<CrashScenario> all;
    for (const TxnScenario& scenario : txn_scenarios()) {
        all.push_back({.name = scenario.name,
                       .about = "transactional heaps",
                       .states_per_cut = 32,
                       .nested_one_in = 80,
                       .record = [scenario](std::uint64_t, Bug bug) { return scenario.record(bug); }});
    }
    return all;
}

}  // namespace taiyen::crash
