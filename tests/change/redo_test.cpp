#include "change/redo.hpp"
#include "seed.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(redo)

namespace {

using namespace taiyen;
using namespace taiyen::change;

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
    const auto* const first = reinterpret_cast<const std::byte*>(text.data());
    return {first, first + text.size()};
}

void apply(const Entry& entry, Bytes& memory) {
    std::byte* const at = memory.data() + entry.where.value;
    switch (entry.kind) {
        case EntryKind::bytes:
            BOOST_REQUIRE((entry.after.empty() || entry.after.size() == entry.length));
            if (entry.after.empty())
                std::memset(at, 0, entry.length);
            else
                std::memcpy(at, entry.after.data(), entry.length);
            break;
        case EntryKind::zeroed_run: std::memset(at, 0, entry.length); break;
        case EntryKind::pages_moved: std::memmove(at, memory.data() + entry.source.value, entry.length); break;
        case EntryKind::procedure: break;
    }
}

Bytes redo_of(const ChangeSet& set) {
    ByteBuffer out;
    append_redo(set, out);
    return {out.bytes().begin(), out.bytes().end()};
}

/// The view sits at the end of a heap block of just its size, so that the address sanitizer sees every step outside.
std::optional<RedoView> checked(const Bytes& redo, ByteCount capacity, std::unique_ptr<std::byte[]>& keeper) {
    keeper.reset(new std::byte[redo.size()]);
    std::copy(redo.begin(), redo.end(), keeper.get());
    return RedoView::checked({keeper.get(), redo.size()}, capacity);
}

/// Bytes as programs have them: noise, zeros, and words of which only the low bytes are used.
void scribble(std::span<std::byte> bytes, std::mt19937_64& random) {
    switch (random() % 4) {
        case 0: std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); }); break;
        case 1: std::fill(bytes.begin(), bytes.end(), std::byte{0}); break;
        case 2: std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random() % 3 == 0 ? random() : 0); }); break;
        default:
            for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
                const std::uint64_t word = random() >> random() % 64;
                std::memcpy(bytes.data() + at, &word, 8);
            }
    }
}

/// Changes memory at random and notes that in the set, as recorders do: ascending ranges with what they held before and hold now.
void change_at_random(Bytes& memory, ChangeSet& set, std::mt19937_64& random) {
    const std::size_t pages = memory.size() / page_bytes;
    for (std::uint64_t entries = random() % 20; entries > 0; --entries) {
        const std::size_t page = random() % pages;
        switch (random() % 8) {
            case 0: {
                const std::size_t count = 1 + random() % std::min<std::size_t>(3, pages - page);
                std::memset(memory.data() + page * page_bytes, 0, count * page_bytes);
                set.add_zeroed_run({page * page_bytes}, count * page_bytes);
                break;
            }
            case 1: {
                const std::size_t source = random() % pages;
                const Bytes before(memory.begin() + static_cast<std::ptrdiff_t>(page * page_bytes),
                                   memory.begin() + static_cast<std::ptrdiff_t>((page + 1) * page_bytes));
                std::memmove(memory.data() + page * page_bytes, memory.data() + source * page_bytes, page_bytes);
                set.add_pages_moved({source * page_bytes}, {page * page_bytes}, before);
                break;
            }
            case 2: {
                Bytes arguments(random() % 40);
                scribble(arguments, random);
                set.add_procedure("procedure " + std::to_string(random() % 100), arguments, random());
                break;
            }
            default: {
                const std::size_t where = random() % memory.size();
                const std::size_t length = std::min<std::size_t>(memory.size() - where, 1 + (random() % 3 == 0 ? random() % 9000 : random() % 100));
                const Bytes before(memory.begin() + static_cast<std::ptrdiff_t>(where), memory.begin() + static_cast<std::ptrdiff_t>(where + length));
                Bytes after = before;
                for (std::uint64_t parts = 1 + random() % 4; parts > 0; --parts) {
                    const std::size_t at = random() % length;
                    scribble(std::span(after).subspan(at, 1 + random() % (length - at)), random);
                }
                std::copy(after.begin(), after.end(), memory.begin() + static_cast<std::ptrdiff_t>(where));
                set.add_bytes({where}, before, after);
            }
        }
    }
}

std::vector<Entry> entries_of(const RedoView& view) {
    std::vector<Entry> entries;
    view.for_each([&](const Entry& entry) { entries.push_back(entry); });
    return entries;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_entry_comes_back) {
    ChangeSet set;
    set.add_bytes({16}, bytes_of("abcdef"), bytes_of("ghijkl"));
    set.add_bytes({8192}, Bytes(64, std::byte{9}), Bytes(64));
    set.add_zeroed_run({16384}, 8192);
    set.add_pages_moved({32768}, {65536}, Bytes(4096, std::byte{1}));
    set.add_procedure("invert", bytes_of("3 4"), 42);
    set.add_bytes({20}, bytes_of("x"), bytes_of("y"));
    const Bytes redo = redo_of(set);
    const auto view = RedoView::checked(redo, 1_MiB);
    BOOST_REQUIRE(view.has_value());
    const auto entries = entries_of(*view);
    BOOST_REQUIRE_EQUAL(entries.size(), 6U);
    BOOST_TEST((entries[0].kind == EntryKind::bytes && entries[0].where.value == 16 && entries[0].length == 6));
    BOOST_TEST(std::memcmp(entries[0].after.data(), "ghijkl", 6) == 0);
    BOOST_TEST((entries[1].kind == EntryKind::bytes && entries[1].where.value == 8192 && entries[1].length == 64 && entries[1].after.empty()));
    BOOST_TEST((entries[2].kind == EntryKind::zeroed_run && entries[2].where.value == 16384 && entries[2].length == 8192));
    BOOST_TEST((entries[3].kind == EntryKind::pages_moved && entries[3].where.value == 65536 && entries[3].source.value == 32768 &&
                entries[3].length == 4096));
    BOOST_TEST(
        (entries[4].kind == EntryKind::procedure && entries[4].name == "invert" && entries[4].arguments.size() == 3 && entries[4].digest == 42));
    BOOST_TEST((entries[5].where.value == 20 && entries[5].after.front() == std::byte{'y'}));
    for (const Entry& entry : entries) BOOST_TEST(entry.before.empty());
}

BOOST_AUTO_TEST_CASE(an_empty_set_has_no_bytes) {
    BOOST_TEST(redo_of(ChangeSet()).empty());
    const auto view = RedoView::checked({}, 0);
    BOOST_REQUIRE(view.has_value());
    BOOST_TEST(entries_of(*view).empty());
}

BOOST_AUTO_TEST_CASE(random_sets_do_forward_what_their_redo_does) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 2'000; ++round) {
        Bytes memory((1 + random() % 16) * page_bytes);
        scribble(memory, random);
        Bytes copy = memory;
        ChangeSet set;
        change_at_random(memory, set, random);
        const Bytes redo = redo_of(set);
        std::unique_ptr<std::byte[]> keeper;
        const auto view = checked(redo, memory.size(), keeper);
        BOOST_REQUIRE(view.has_value());
        std::size_t procedures = 0;
        view->for_each([&](const Entry& entry) {
            procedures += entry.kind == EntryKind::procedure ? 1 : 0;
            apply(entry, copy);
        });
        BOOST_REQUIRE(copy == memory);
        set.for_each(Direction::forward, [&](const Entry& entry) { procedures -= entry.kind == EntryKind::procedure ? 1 : 0; });
        BOOST_REQUIRE_EQUAL(procedures, 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_scattered_pointer_costs_few_bytes_beyond_its_own) {
    std::mt19937_64 random(7);
    ChangeSet set;
    std::size_t changed = 0;
    for (std::uint64_t where = 0; where < 64_MiB; where += 64_KiB + random() % 64_KiB / 8 * 8) {
        const std::uint64_t before = random() >> 16U;
        const std::uint64_t after = random() >> 16U;
        const auto words = [](const std::uint64_t& word) { return std::as_bytes(std::span(&word, 1)); };
        const auto ranges = Bytes(words(after).begin(), words(after).end());
        set.add_bytes({where}, words(before), ranges);
        for (std::size_t i = 0; i < 8; ++i) changed += words(before)[i] != words(after)[i] ? 1 : 0;
    }
    const double ratio = static_cast<double>(redo_of(set).size()) / static_cast<double>(changed);
    BOOST_TEST_MESSAGE("redo " << ratio << " × the changed bytes, set " << static_cast<double>(set.size()) / static_cast<double>(changed) << " ×");
    BOOST_TEST(ratio < 2.0);
}

BOOST_AUTO_TEST_CASE(equal_bytes_and_zeros_inside_a_range_cost_nothing) {
    Bytes before(4096, std::byte{1});
    Bytes after = before;
    after[0] = std::byte{2};
    after[4095] = std::byte{2};
    std::fill(after.begin() + 1000, after.begin() + 3000, std::byte{0});
    ChangeSet set;
    set.add_bytes({0}, before, after);
    BOOST_TEST(redo_of(set).size() < 20U);
}

BOOST_AUTO_TEST_CASE(a_short_range_comes_back_whatever_byte_of_it_is_as_before_or_zero) {
    for (std::size_t length = 1; length < 16; ++length) {
        for (std::size_t equal = 0; equal < length; ++equal) {
            for (std::size_t zero = 0; zero < length; ++zero) {
                const Bytes before(length, std::byte{3});
                Bytes after(length, std::byte{7});
                after[zero] = std::byte{0};
                after[equal] = before[equal];
                ChangeSet set;
                set.add_bytes({5}, before, after);
                Bytes memory(32, std::byte{3});
                std::unique_ptr<std::byte[]> keeper;
                const auto view = checked(redo_of(set), memory.size(), keeper);
                BOOST_REQUIRE(view);
                view->for_each([&](const Entry& entry) { apply(entry, memory); });
                BOOST_TEST((Bytes(memory.begin() + 5, memory.begin() + 5 + static_cast<std::ptrdiff_t>(length)) == after));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_short_range_that_was_zero_comes_back_with_the_zeros_inside_it) {
    for (std::size_t length = 1; length < 16; ++length) {
        for (std::size_t zero = 0; zero < length; ++zero) {
            const Bytes before(length);
            Bytes after(length, std::byte{7});
            after[zero] = std::byte{0};
            ChangeSet set;
            set.add_bytes({5}, before, after);
            Bytes memory(32);
            std::unique_ptr<std::byte[]> keeper;
            const auto view = checked(redo_of(set), memory.size(), keeper);
            BOOST_REQUIRE(view);
            view->for_each([&](const Entry& entry) { apply(entry, memory); });
            BOOST_TEST((Bytes(memory.begin() + 5, memory.begin() + 5 + static_cast<std::ptrdiff_t>(length)) == after));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_redo_is_never_much_longer_than_what_changed) {
    // The worst case of cutting at equal runs: each cut must save at least what it costs.
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 500; ++round) {
        Bytes before(1 + random() % 3000);
        scribble(before, random);
        Bytes after = before;
        for (std::byte& byte : after)
            if (random() % 4 != 0) byte = static_cast<std::byte>(random());
        ChangeSet set;
        set.add_bytes({1'000'000}, before, after);
        BOOST_REQUIRE_LE(redo_of(set).size(), after.size() + 16);
    }
}

BOOST_AUTO_TEST_CASE(entries_outside_the_heap_are_refused) {
    const auto refused = [](const ChangeSet& set, ByteCount capacity) {
        const Bytes redo = redo_of(set);
        BOOST_TEST(RedoView::checked(redo, capacity).has_value());
        BOOST_TEST(!RedoView::checked(redo, capacity - 1).has_value());
    };
    ChangeSet bytes;
    bytes.add_bytes({8190}, bytes_of("ab"), bytes_of("cd"));
    refused(bytes, 8192);
    ChangeSet run;
    run.add_zeroed_run({4096}, 4096);
    refused(run, 8192);
    ChangeSet moved;
    moved.add_pages_moved({8192}, {0}, Bytes(4096));
    refused(moved, 12288);
}

BOOST_AUTO_TEST_CASE(every_prefix_that_ends_inside_an_entry_is_refused) {
    ChangeSet set;
    set.add_bytes({16}, bytes_of("abcdef"), bytes_of("ghijkl"));
    set.add_procedure("invert", bytes_of("3 4"), 42);
    set.add_pages_moved({32768}, {65536}, Bytes(4096, std::byte{1}));
    const Bytes redo = redo_of(set);
    std::size_t sound = 0;
    for (std::size_t size = 0; size <= redo.size(); ++size) {
        std::unique_ptr<std::byte[]> keeper;
        sound += checked(Bytes(redo.begin(), redo.begin() + static_cast<std::ptrdiff_t>(size)), 1_MiB, keeper).has_value() ? 1 : 0;
    }
    BOOST_TEST(sound == 4U);
}

BOOST_AUTO_TEST_CASE(hostile_bytes_are_refused_or_stay_inside) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::size_t accepted = 0;
    for (int round = 0; round < 20'000; ++round) {
        Bytes redo;
        if (round % 4 == 0) {
            redo.resize(random() % 60);
            std::generate(redo.begin(), redo.end(), [&] { return static_cast<std::byte>(random() >> random() % 8); });
        } else {
            Bytes memory(4 * page_bytes);
            ChangeSet set;
            change_at_random(memory, set, random);
            redo = redo_of(set);
            for (std::uint64_t edits = 1 + random() % 3; edits > 0 && !redo.empty(); --edits) {
                const auto at = static_cast<std::ptrdiff_t>(random() % redo.size());
                switch (random() % 3) {
                    case 0: redo[static_cast<std::size_t>(at)] = static_cast<std::byte>(random()); break;
                    case 1: redo.erase(redo.begin() + at); break;
                    default: redo.insert(redo.begin() + at, static_cast<std::byte>(random()));
                }
            }
        }
        std::unique_ptr<std::byte[]> keeper;
        const auto view = checked(redo, 4 * page_bytes, keeper);
        if (!view) continue;
        ++accepted;
        Bytes memory(4 * page_bytes);
        view->for_each([&](const Entry& entry) {
            if (entry.kind != EntryKind::procedure) {
                BOOST_REQUIRE(entry.length > 0 && entry.where.value + entry.length <= memory.size());
                BOOST_REQUIRE(entry.source.value + (entry.kind == EntryKind::pages_moved ? entry.length : 0) <= memory.size());
            }
            apply(entry, memory);
        });
    }
    BOOST_TEST_MESSAGE(accepted << " accepted");
    BOOST_TEST(accepted > 100U);
}

BOOST_AUTO_TEST_CASE(the_bytes_are_those_of_the_format) {
    ChangeSet set;
    set.add_bytes({0x1000}, bytes_of("\x01\x02\x03\x04"), bytes_of("\x11\x12\x13\x14"));
    set.add_zeroed_run({0x800}, 0x100);
    set.add_pages_moved({0x1000}, {0x3000}, Bytes(0x1000, std::byte{5}));
    set.add_procedure("p", bytes_of("ab"), 0x0807060504030201);
    const unsigned char expected[] = {
        4 << 3 | 0, 0x80, 0x40, 0x11, 0x12, 0x13, 0x14,        // 4 bytes at 0x1000: zigzag(0x1000) = 0x2000
        0x82,       0x10, 0x87, 0x20,                          // 0x100 zeroed at 0x800: zigzag(-0x804) = 0x1007
        0x83,       0x80, 0x02, 0x80, 0x9c, 0x01, 0xff, 0x7f,  // 0x1000 moved to 0x3000 = 0x900 + 0x2700: zigzag 0x4e00; from -0x2000: zigzag = 0x3fff
        2 << 3 | 4, 1,    'p',  'a',  'b',  1,    2,    3,    4, 5, 6, 7, 8};
    const Bytes redo = redo_of(set);
    const auto* const first = reinterpret_cast<const unsigned char*>(redo.data());
    BOOST_TEST(std::vector<unsigned>(first, first + redo.size()) == std::vector<unsigned>(std::begin(expected), std::end(expected)),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
