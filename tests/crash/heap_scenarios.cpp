#include "crash/heap_scenarios.hpp"

#include <random>

#include "base/planted.hpp"
#include "crash/scenario.hpp"

namespace taiyen::crash {
namespace {

void small_saves(HeapLife& life, int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
        change_something(life, random);
        life.save();
    }
}

void create_and_save(HeapLife& life) {
    life.create();
    small_saves(life, 2, 1);
    life.close();
}

void open_save_close(HeapLife& life) {
    life.open();
    small_saves(life, 12, 2);
    life.close();
}

void large_saves(HeapLife& life) {
    life.open();
    small_saves(life, 1, 3);
    life.put("large", 60'000, 4);
    life.save();
    small_saves(life, 1, 5);
    life.touch("large", 6);
    life.put("large", 50'000, 7);
    life.save();
    life.close();
}

void give_space_back(HeapLife& life) {
    life.open();
    life.remove("big");
    life.save();
    life.close();
    life.open();
    life.put("again", 120'000, 8);
    life.save();
    life.close();
}

void with_big_object(HeapLife& life) {
    life.create();
    life.put("big", 200'000, 9);
    life.put("small", 100, 10);
    life.save();
    life.close();
}

std::string name_of_page(int i) { return "page " + std::to_string(i); }

/// Pages that will become free one by one.
void with_pages(HeapLife& life) {
    life.create();
    for (int i = 0; i < 20; ++i) life.put(name_of_page(i), page_bytes, 50 + static_cast<std::uint64_t>(i));
    life.save();
    life.close();
}

/// The same, and they have become free in saves that are still to be brought into the files.
void with_free_pages(HeapLife& life) {
    with_pages(life);
    life.open();
    for (int i = 0; i < 20; i += 2) life.remove(name_of_page(i));
    life.save();
}

/// Each free page becomes a hole when an archive is closed, whatever kind of heap it was; later saves use them again, and they go once more.
void give_each_page_back(HeapLife& life) {
    life.open_without_annex(HeapKind::archive);
    life.give_all_back();
    life.close();
    life.open();
    life.put("again", 3 * page_bytes, 70);
    life.put(name_of_page(0), page_bytes, 71);
    life.save();
    life.remove("again");
    life.save();
    life.close();
    life.open_without_annex(HeapKind::archive);
    life.give_all_back();
    life.close();
}

/// Many pages, and saves that change a few far apart: their checksums lie in different sectors of a table page.
void with_wide_object(HeapLife& life) {
    life.create();
    life.put("wide", 800'000, 15);
    life.save();
    life.close();
}

void change_far_apart(HeapLife& life) {
    life.open();
    std::mt19937_64 random(16);
    for (int i = 0; i < 6; ++i) {
        life.touch("wide", random());
        life.touch("wide", random());
        life.save();
    }
    life.close();
}

/// A heap with an annex behind its first chunk.
void with_annex(HeapLife& life) {
    life.create();
    life.put("some", 5000, 17);
    life.write_annex(0, 9000, 18);
    life.save();
    life.close();
}

/// The same, and a save that is still to be brought into the files.
void with_annex_unclosed(HeapLife& life) {
    life.create();
    life.put("some", 5000, 17);
    life.write_annex(0, 9000, 18);
    life.save();
    life.checkpoint();
    life.touch("some", 19);
    life.save();
}

/// Over what lay behind the end, by saves that speak of fresh pages without writing them.
void grow_without_data(HeapLife& life) {
    life.open();
    life.put_sparse("sparse", 100'000);
    life.save();
    life.touch("some", 20);
    life.save();
    life.close();
}

/// A heap whose newest save has made room that it hardly writes.
void grown_unclosed(HeapLife& life) {
    life.create();
    life.put("some", 5000, 17);
    life.save();
    life.touch("some", 18);
    life.save();  // with a log: the files follow
    life.checkpoint();
    life.put_sparse("sparse", 60'000);
    life.save();
}

/// The last save made room only, and told the heap's own file alone.
void make_room_in_one_file(HeapLife& life) {
    life.create();
    small_saves(life, 2, 1);
    life.make_room_cut_short(4 * page_bytes);
}

void make_more_room(HeapLife& life) {
    life.open();
    life.make_room(3 * page_bytes);
    small_saves(life, 2, 52);
    life.close();
}

/// Nearly as large as the first chunk of its files, of which it has hardly written anything.
void nearly_fill_a_chunk(HeapLife& life) {
    life.create();
    life.put("large", 40'000, 53);
    life.heap().extend(1_MiB - 64_KiB);
    life.save();
    life.close();
}

/// Into the second chunk, of which no page is written and no page of the table, by a large save and by a small one.
void grow_into_the_next_chunk(HeapLife& life) {
    life.open();
    life.heap().extend(1_MiB + 64_KiB);
    life.put("large", 40'000, 54);
    life.save();
    life.heap().extend(1_MiB + 128_KiB);
    life.touch("large", 55);
    life.save();
    life.close();
}

/// Saves, small and large, that make room of which they hardly write anything.
void grow_sparsely(HeapLife& life) {
    life.open();
    life.put_sparse("sparse", 100'000);
    life.save();
    life.put("large", 40'000, 51);
    life.put_sparse("wide", 150'000);
    life.save();
    life.close();
}

/// Both sequences begin their second chunks in one small save, and go on.
void grow_span_and_annex(HeapLife& life) {
    life.open();
    std::mt19937_64 random(19);
    for (int i = 0; i < 2; ++i) {
        life.write_annex(random() % 20'000, 100, random());
        life.touch("some", random());
        life.save();
    }
    life.put_sparse("wide", 1'200'000);
    life.write_annex(1_MiB + 5000, 6000, random());
    life.save();
    small_saves(life, 3, 20);
    life.checkpoint();
    life.write_annex(1_MiB + 40'000, 100, random());
    life.save();
    life.close();
}

void large_saves_with_annex(HeapLife& life) {
    life.open();
    life.write_annex(100, 200, 21);
    life.save();
    life.put("large", 40'000, 22);
    life.write_annex(2 * page_bytes, 30'000, 23);
    life.save();
    small_saves(life, 1, 24);
    life.write_annex(10 * page_bytes, 40'000, 25);
    life.put("more", 30'000, 26);
    life.save();
    life.close();
}

/// A run that does not carry the annex on; then one that begins it anew.
void end_annex(HeapLife& life, HeapKind kind) {
    life.open_without_annex(kind);
    life.touch("some", 27);
    life.save();
    small_saves(life, 2, 28);
    life.close();
    life.open();
    life.write_annex(5000, 6000, 29);
    life.save();
    life.close();
    life.open_without_annex(kind);
    life.touch("some", 30);
    life.put("large", 60'000, 31);
    life.save();
}

void close_before_the_files_are_up_to_date(HeapLife& life) {
    life.open();
    small_saves(life, 2, 40);
    life.close_without_snapshot();
    life.open();
    small_saves(life, 1, 41);
    life.close();
}

/// A page rots in one copy and a scrub heals it; then it rots in the other copy, for which there is nothing but what the scrub wrote.
void rot_and_scrub(HeapLife& life) {
    life.open();
    small_saves(life, 1, 60);
    life.rot("big", true);
    life.scrub();
    small_saves(life, 1, 61);
    life.rot("big", false);
    life.scrub();
    small_saves(life, 2, 62);
    life.close();
}

/// The second copy comes and goes while the heap is in use.
void attach_and_detach(HeapLife& life) {
    life.open();
    const auto change = [&] {
        life.heap().files().data() != nullptr ? life.heap().companions().detach_data_file() : life.heap().companions().attach_data_file({}, {});
    };
    for (std::uint64_t round = 0; round < 3; ++round) {
        small_saves(life, 1, 70 + round);
        change();
        small_saves(life, 1, 74 + round);
        life.put("large", 40'000 + 4000 * round, 78 + round);
        life.save();
    }
    life.close();
    life.open();
    small_saves(life, 1, 82);
    life.close();
}

/// Lower kinds of heap come and go between runs with a transaction log, which is removed meanwhile.
void change_kinds(HeapLife& life) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::transactional, HeapKind::snapshot, HeapKind::transactional}) {
        life.open(kind);
        small_saves(life, 2, 34 + static_cast<std::uint64_t>(kind));
        if (kind != HeapKind::transactional) {
            life.heap().companions().remove_log();
            small_saves(life, 1, 40 + static_cast<std::uint64_t>(kind));
        }
        life.close();
    }
}

/// The heap goes to another address and life goes on there. Pointers lie in some pages of several, and the save that moves it is the large one of a journal's heap.
void move_away(HeapLife& life) {
    life.open_without_annex(HeapKind::archive);
    small_saves(life, 1, 42);
    life.put("middle", 20'000, 43);
    life.link();
    life.save();
    life.move(32);
    life.open();
    small_saves(life, 2, 44);
    life.close();
}

/// The heap's capacity grows and shrinks, and life goes on.
void resize(HeapLife& life) {
    for (const ByteCount capacity : {16_MiB, 4_MiB, 6_MiB}) {
        life.open();
        small_saves(life, 1, 90 + capacity / 1_MiB);
        life.resize(capacity);
    }
    life.open();
    small_saves(life, 2, 89);
    life.close();
}

/// A position-independent heap, each time elsewhere.
void go_about(HeapLife& life) {
    life.open();
    life.put("middle", 20'000, 46);
    life.save();
    life.link();
    life.save();
    small_saves(life, 2, 47);
    life.close();
    life.open();
    small_saves(life, 2, 48);
    life.close();
}

void stay_silent(const Incident&) noexcept {}

}  // namespace

SilentReports::SilentReports() : before_(set_report_handler(stay_silent)) {}

std::vector<Scenario> scenarios() {
    const HeapSetup archive{.kind = HeapKind::archive};
    const HeapSetup snapshot{.kind = HeapKind::snapshot};
    const HeapSetup transactional{.kind = HeapKind::transactional};
    const HeapSetup doubled{.kind = HeapKind::transactional, .data_file = true};
    const HeapSetup annex_archive{.kind = HeapKind::archive, .annex = true};
    const HeapSetup annex_snapshot{.kind = HeapKind::snapshot, .annex = true};
    const auto create = [](HeapLife& life) {
        life.create();
        small_saves(life, 1, 1);
        life.close();
    };
    const auto unclosed = [](HeapLife& life) {
        life.create();
        small_saves(life, 3, 11);
    };
    const auto recover = [](HeapLife& life) {
        life.open();
        small_saves(life, 2, 12);
        life.close();
    };
    const HeapSetup without{.kind = HeapKind::archive, .detach_data_file = true};
    const HeapSetup annex_without{.kind = HeapKind::archive, .annex = true, .detach_data_file = true};
    const HeapSetup log_without{.kind = HeapKind::transactional, .detach_data_file = true};
    const auto elsewhere = [](HeapSetup setup) {
        setup.elsewhere = true;
        return setup;
    };
    const auto rotting = [](HeapSetup setup) {
        setup.rots = true;
        return setup;
    };
    const auto healing = [](HeapSetup setup) {
        setup.heals = true;
        return setup;
    };
    const auto remaking = [](HeapSetup setup) {
        setup.remakes_data = true;
        return setup;
    };
    const auto missing = [](HeapSetup setup) {
        setup.misses_heap = true;
        return setup;
    };
    const auto apart = [](HeapSetup setup) {
        setup.apart = true;
        return setup;
    };
    return {
        {.name = "create-archive", .setup = archive, .before = {}, .life = create},
        {.name = "create-snapshot", .setup = snapshot, .before = {}, .life = create},
        {.name = "small-archive", .setup = archive, .before = create_and_save, .life = open_save_close},
        {.name = "small-snapshot", .setup = snapshot, .before = create_and_save, .life = open_save_close},
        {.name = "large-archive", .setup = archive, .before = create_and_save, .life = large_saves},
        {.name = "large-snapshot", .setup = snapshot, .before = create_and_save, .life = large_saves},
        {.name = "release-archive", .setup = archive, .before = with_big_object, .life = give_space_back},
        {.name = "release-snapshot", .setup = snapshot, .before = with_big_object, .life = give_space_back},
        {.name = "give-back-archive", .setup = archive, .before = with_free_pages, .life = give_each_page_back, .crashed_before = true},
        {.name = "give-back-snapshot", .setup = snapshot, .before = with_free_pages, .life = give_each_page_back, .crashed_before = true},
        {.name = "give-back-log", .setup = transactional, .before = with_free_pages, .life = give_each_page_back, .crashed_before = true},
        {.name = "give-back-log-data", .setup = doubled, .before = with_free_pages, .life = give_each_page_back, .crashed_before = true},
        {.name = "scrub-snapshot", .setup = healing(snapshot), .before = with_big_object, .life = rot_and_scrub},
        {.name = "scrub-log-data", .setup = healing(doubled), .before = with_big_object, .life = rot_and_scrub},
        {.name = "give-back-annex",
         .setup = annex_snapshot,
         .before = with_annex,
         .life =
             [](HeapLife& life) {
                 life.open();
                 for (int i = 0; i < 6; ++i) life.put(name_of_page(i), page_bytes, 80 + static_cast<std::uint64_t>(i));
                 life.save();
                 for (int i = 0; i < 6; i += 2) life.remove(name_of_page(i));
                 life.save();
                 life.give_all_back();  // nothing, as long as there is an annex
                 life.close();
                 life.open_without_annex(HeapKind::archive);
                 life.touch("some", 90);
                 life.save();
                 life.give_all_back();
                 life.close();
             }},
        {.name = "wide-archive", .setup = archive, .before = with_wide_object, .life = change_far_apart},
        {.name = "wide-snapshot", .setup = snapshot, .before = with_wide_object, .life = change_far_apart},
        {.name = "attach",
         .setup = snapshot,
         .before =
             [](HeapLife& life) {
                 life.create();
                 small_saves(life, 2, 13);
                 life.close();
             },
         .life =
             [](HeapLife& life) {
                 life.open(HeapKind::snapshot);
                 small_saves(life, 2, 14);
                 life.close();
             },
         .kind_before = HeapKind::archive},
        {.name = "recover-archive", .setup = archive, .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "recover-snapshot", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "annex-archive", .setup = annex_archive, .before = with_annex, .life = grow_span_and_annex},
        {.name = "annex-snapshot", .setup = annex_snapshot, .before = with_annex, .life = grow_span_and_annex},
        {.name = "annex-large-archive", .setup = annex_archive, .before = with_annex, .life = large_saves_with_annex},
        {.name = "annex-large-snapshot", .setup = annex_snapshot, .before = with_annex, .life = large_saves_with_annex},
        {.name = "annex-ends-archive",
         .setup = annex_archive,
         .before = with_annex,
         .life = [](HeapLife& life) { end_annex(life, HeapKind::archive); }},
        {.name = "annex-ends-snapshot",
         .setup = annex_snapshot,
         .before = with_annex,
         .life = [](HeapLife& life) { end_annex(life, HeapKind::snapshot); }},
        {.name = "create-log", .setup = transactional, .before = {}, .life = create},
        {.name = "create-log-data", .setup = doubled, .before = {}, .life = create},
        {.name = "small-log", .setup = transactional, .before = create_and_save, .life = open_save_close},
        {.name = "small-log-data", .setup = doubled, .before = create_and_save, .life = open_save_close},
        {.name = "large-log", .setup = transactional, .before = create_and_save, .life = large_saves},
        {.name = "large-log-data", .setup = doubled, .before = create_and_save, .life = large_saves},
        {.name = "release-log", .setup = transactional, .before = with_big_object, .life = give_space_back},
        {.name = "release-log-data", .setup = doubled, .before = with_big_object, .life = give_space_back},
        {.name = "wide-log", .setup = transactional, .before = with_wide_object, .life = change_far_apart},
        {.name = "wide-log-data", .setup = doubled, .before = with_wide_object, .life = change_far_apart},
        {.name = "attach-log", .setup = transactional, .before = create_and_save, .life = open_save_close, .kind_before = HeapKind::archive},
        {.name = "attach-log-data", .setup = doubled, .before = create_and_save, .life = open_save_close, .kind_before = HeapKind::archive},
        {.name = "attach-log-crashed",
         .setup = transactional,
         .before = unclosed,
         .life = recover,
         .crashed_before = true,
         .kind_before = HeapKind::archive},
        {.name = "recover-log", .setup = transactional, .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "recover-log-data", .setup = doubled, .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "recover-log-archive",
         .setup = archive,
         .before = unclosed,
         .life = recover,
         .crashed_before = true,
         .kind_before = HeapKind::transactional},
        {.name = "recover-log-snapshot",
         .setup = snapshot,
         .before = unclosed,
         .life = recover,
         .crashed_before = true,
         .kind_before = HeapKind::transactional},
        {.name = "log-unsaved", .setup = transactional, .before = create_and_save, .life = close_before_the_files_are_up_to_date},
        {.name = "log-kinds", .setup = transactional, .before = create_and_save, .life = change_kinds},
        {.name = "rebuild-log", .setup = doubled, .before = unclosed, .life = recover, .crashed_before = true, .damage_headers = true},
        {.name = "rebuild", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .damage_headers = true},
        {.name = "resize", .setup = archive, .before = create_and_save, .life = resize},
        {.name = "resize-snapshot", .setup = snapshot, .before = create_and_save, .life = resize},
        {.name = "attach-detach", .setup = archive, .before = create_and_save, .life = attach_and_detach},
        {.name = "attach-detach-snapshot", .setup = snapshot, .before = create_and_save, .life = attach_and_detach},
        {.name = "lost-heap", .setup = missing(snapshot), .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "lost-heap-log", .setup = missing(doubled), .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "cut-heap", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .left_of_heap = 2 * page_bytes},
        {.name = "blank-heap", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .left_of_heap = 0},
        {.name = "stub-heap", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .left_of_heap = 14},
        {.name = "zeroed-heap", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .zeroed_heap = true},
        {.name = "zeroed-heap-log", .setup = doubled, .before = unclosed, .life = recover, .crashed_before = true, .zeroed_heap = true},
        {.name = "cut-data", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .left_of_data = 2 * page_bytes},
        {.name = "cut-data-log", .setup = doubled, .before = unclosed, .life = recover, .crashed_before = true, .left_of_data = 2 * page_bytes},
        {.name = "blank-data", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .left_of_data = 0},
        {.name = "stub-data", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .left_of_data = 14},
        {.name = "zeroed-data", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .zeroed_data = true},
        {.name = "zeroed-data-log", .setup = doubled, .before = unclosed, .life = recover, .crashed_before = true, .zeroed_data = true},
        {.name = "lost-data", .setup = remaking(snapshot), .before = create_and_save, .life = open_save_close, .lose_data = true},
        {.name = "lost-data-archive",
         .setup = remaking(archive),
         .before = create_and_save,
         .life = open_save_close,
         .kind_before = HeapKind::snapshot,
         .lose_data = true},
        {.name = "detach",
         .setup = without,
         .before = create_and_save,
         .life = open_save_close,
         .kind_before = HeapKind::snapshot,
         .lose_data = true},
        {.name = "recover-detach",
         .setup = without,
         .before = unclosed,
         .life = recover,
         .crashed_before = true,
         .kind_before = HeapKind::snapshot,
         .lose_data = true},
        {.name = "detach-cut-save",
         .setup = annex_without,
         .before = with_annex_unclosed,
         .life = grow_without_data,
         .crashed_before = true,
         .kind_before = HeapKind::snapshot,
         .lose_data = true,
         .leftover = true},
        {.name = "rot-archive", .setup = rotting(archive), .before = create_and_save, .life = grow_sparsely},
        {.name = "rot-snapshot", .setup = rotting(snapshot), .before = create_and_save, .life = grow_sparsely},
        {.name = "rot-log-data", .setup = rotting(doubled), .before = create_and_save, .life = grow_sparsely},
        {.name = "rot-chunk-snapshot", .setup = rotting(snapshot), .before = nearly_fill_a_chunk, .life = grow_into_the_next_chunk},
        {.name = "rot-room-log-data", .setup = rotting(doubled), .before = make_room_in_one_file, .life = make_more_room, .crashed_before = true},
        {.name = "rot-recover-log", .setup = rotting(transactional), .before = grown_unclosed, .life = recover, .crashed_before = true},
        {.name = "detach-log", .setup = log_without, .before = create_and_save, .life = open_save_close, .lose_data = true},
        {.name = "recover-detach-log", .setup = log_without, .before = unclosed, .life = recover, .crashed_before = true, .lose_data = true},
        {.name = "move-archive", .setup = archive, .before = create_and_save, .life = move_away},
        {.name = "move-snapshot", .setup = snapshot, .before = create_and_save, .life = move_away},
        {.name = "move-log", .setup = transactional, .before = unclosed, .life = move_away, .crashed_before = true},
        {.name = "move-log-data", .setup = doubled, .before = create_and_save, .life = move_away},
        {.name = "move-annex",
         .setup = annex_snapshot,
         .before = with_annex,
         .life =
             [](HeapLife& life) {
                 life.open();
                 life.link();
                 life.save();
                 life.close();
                 life.open_without_annex(HeapKind::archive);
                 life.move(32);
                 life.open();
                 life.write_annex(0, 3000, 45);
                 life.save();
                 life.close();
             }},
        {.name = "elsewhere-archive", .setup = elsewhere(archive), .before = create_and_save, .life = go_about},
        {.name = "elsewhere-snapshot", .setup = elsewhere(snapshot), .before = unclosed, .life = go_about, .crashed_before = true},
        {.name = "elsewhere-log", .setup = elsewhere(transactional), .before = unclosed, .life = go_about, .crashed_before = true},
        // Heap, data file and log on three devices.
        {.name = "apart-create-snapshot", .setup = apart(snapshot), .before = {}, .life = create},
        {.name = "apart-create-log", .setup = apart(transactional), .before = {}, .life = create},
        {.name = "apart-create-log-data", .setup = apart(doubled), .before = {}, .life = create},
        {.name = "apart-large-snapshot", .setup = apart(snapshot), .before = create_and_save, .life = large_saves},
        {.name = "apart-large-log", .setup = apart(transactional), .before = create_and_save, .life = large_saves},
        {.name = "apart-large-log-data", .setup = apart(doubled), .before = create_and_save, .life = large_saves},
        {.name = "apart-attach", .setup = apart(snapshot), .before = create_and_save, .life = open_save_close, .kind_before = HeapKind::archive},
        {.name = "apart-attach-log-data",
         .setup = apart(doubled),
         .before = create_and_save,
         .life = open_save_close,
         .kind_before = HeapKind::archive},
        {.name = "apart-log-kinds", .setup = apart(transactional), .before = create_and_save, .life = change_kinds},
        {.name = "apart-recover-log-data", .setup = apart(doubled), .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "apart-rebuild", .setup = apart(snapshot), .before = unclosed, .life = recover, .crashed_before = true, .damage_headers = true},
        {.name = "apart-rebuild-log", .setup = apart(doubled), .before = unclosed, .life = recover, .crashed_before = true, .damage_headers = true},
        {.name = "apart-detach",
         .setup = apart(without),
         .before = create_and_save,
         .life = open_save_close,
         .kind_before = HeapKind::snapshot,
         .lose_data = true},
        {.name = "apart-detach-log", .setup = apart(log_without), .before = create_and_save, .life = open_save_close, .lose_data = true},
    };
}

std::vector<CrashScenario> heap_crash_scenarios() {
    std::vector<CrashScenario> all;
    for (const Scenario& scenario : scenarios()) {
        const char* const about = scenario.setup.kind == HeapKind::archive    ? "archive heaps"
                                  : scenario.setup.kind == HeapKind::snapshot ? "snapshot heaps"
                                                                              : "heap files with a transaction log";
        all.push_back({.name = scenario.name,
                       .about = about,
                       .states_per_cut = scenario.setup.apart ? 200U : 400U,
                       .record = [scenario](std::uint64_t, Bug bug) { return scenario.record(bug); }});
    }
    return all;
}

}  // namespace taiyen::crash
