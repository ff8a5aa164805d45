// Heap files with guards: what is written behind a block is told when it is freed, saved or asked for, and never where nothing was; the files are those of any heap.

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

#include <taiyen/base/report.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/transfer/compact.hpp>

#include "seed.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(guarded_files)

namespace {
using namespace taiyen;
using namespace taiyen::txn::test;

struct Told {
    errc code;
    const void* address;
    std::string text;
};
std::vector<Told> told_here;

struct Heard {
    ReportHandler before = set_report_handler(
        [](const Incident& incident) noexcept { told_here.push_back({incident.code, incident.address, std::string(incident.text)}); });
    Heard() { told_here.clear(); }
    Heard(const Heard&) = delete;
    Heard& operator=(const Heard&) = delete;
    ~Heard() { set_report_handler(before); }
};

PersistentOptions guarded(Capture capture = Capture::pages) {
    PersistentOptions options = small_heap(capture);
    options.guarded = true;
    return options;
}

/// The compiler must not know that the access is wrong.
[[gnu::no_sanitize_address]] void poke(volatile char* address) { *address = 1; }

/// That a byte behind a block of `bytes` was told, `distance` behind its end.
void require_told(const char* block, std::size_t bytes, std::size_t distance, const std::filesystem::path& path) {
    BOOST_TEST_REQUIRE(told_here.size() == 1U);
    BOOST_TEST((told_here[0].code == errc::stray_write));
    BOOST_TEST(told_here[0].address == block + bytes + distance);
    for (const std::string& words :
         {path.string(), "a block of " + std::to_string(bytes) + " bytes", "at offset " + std::to_string(bytes + distance)})
        BOOST_TEST((told_here[0].text.find(words) != std::string::npos), told_here[0].text);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_write_behind_a_block_is_told_when_it_is_freed_or_resized) {
    const Heard heard;
    const ScratchDirectory folder;
    ArchiveHeap heap(create_only, folder / "x.tyn", guarded());
    for (const bool resized : {false, true}) {
        for (const std::size_t bytes : {1U, 15U, 16U, 24U, 100U, 2048U, 5000U, 70'000U}) {
            for (const std::size_t distance : {0U, 1U, 15U}) {
                told_here.clear();
                auto* const block = static_cast<char*>(heap.allocate(bytes));
                BOOST_TEST(heap.usable_size(block) == bytes);
                std::memset(block, 7, bytes);
                BOOST_TEST(heap.check_guards() == 0U);
                poke(block + bytes + distance);
                if (resized)
                    heap.deallocate(heap.resize(block, bytes * 2));
                else
                    heap.deallocate(block);
                require_told(block, bytes, distance, folder / "x.tyn");
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(by_a_save_by_asking_and_at_close_and_each_once) {
    const Heard heard;
    const ScratchDirectory folder;
    ArchiveHeap heap(create_only, folder / "x.tyn", guarded());
    auto* const block = static_cast<char*>(heap.allocate(40));
    const auto damage = [&](auto&& action) {
        auto* const another = static_cast<char*>(heap.allocate(40));
        poke(another + 40);
        told_here.clear();
        action();
        require_told(another, 40, 0, folder / "x.tyn");
    };
    damage([&] { heap.snapshot(); });
    damage([&] { BOOST_TEST(heap.check_guards() == 1U); });
    BOOST_TEST(heap.check_guards() == 0U);
    damage([&] {
        const Report report = heap.verify();
        BOOST_TEST_REQUIRE(report.findings.size() == 1U);
        BOOST_TEST((report.findings[0].severity == Severity::damage));
        BOOST_TEST(report.findings[0].path == folder / "x.tyn");
        BOOST_TEST(report.findings[0].what.starts_with("something wrote behind 1 blocks of the open heap"), report.findings[0].what);
    });
    BOOST_TEST(heap.verify().ok());
    damage([&] { BOOST_TEST(!verify(heap, {.level = VerifyLevel::structure}).ok()); });
    damage([&] { heap.close(); });
    BOOST_CHECK_EXCEPTION(static_cast<void>(heap.check_guards()), Error, [](const Error& error) { return error.code() == errc::closed; });
    BOOST_TEST(block != nullptr);
}

BOOST_AUTO_TEST_CASE(with_and_without_guards_it_is_the_same_heap) {
    const Heard heard;
    const ScratchDirectory folder;
    for (const bool first : {true, false}) {
        const auto path = folder / (first ? "a.tyn" : "b.tyn");
        PersistentOptions options = guarded();
        options.guarded = first;
        {
            ArchiveHeap heap(create_only, path, options);
            heap.construct<taiyen::vector<taiyen::string>>("texts").assign(100, "a text that is longer than any small one");
            heap.snapshot();
        }
        options.guarded = !first;
        ArchiveHeap heap(open_only, path, options);
        auto& texts = *heap.find<taiyen::vector<taiyen::string>>("texts");
        for (taiyen::string& text : texts) text += text;
        texts.resize(200, "another one, which is just as long as others");
        texts.erase(texts.begin(), texts.begin() + 50);
        heap.snapshot();
        BOOST_TEST(heap.check_guards() == 0U);
        BOOST_TEST(heap.verify().ok());
        BOOST_TEST(heap.destroy<taiyen::vector<taiyen::string>>("texts"));
        heap.snapshot();
    }
    BOOST_TEST(told_here.empty());
}

BOOST_AUTO_TEST_CASE(a_reader_has_none) {
    const ScratchDirectory folder;
    ArchiveHeap(create_only, folder / "x.tyn", guarded()).close();
    const ArchiveHeap heap(open_read_only, folder / "x.tyn", guarded());
    BOOST_TEST(heap.check_guards() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_rolled_back_undone_and_redone_is_no_damage_and_damage_is_told_afterwards) {
    const Heard heard;
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        const ScratchDirectory folder;
        TransactionalHeap heap(create_only, folder / "x.tyn", guarded(capture));
        std::mt19937_64 random(taiyen::test::seed_of_run());
        heap.attach_undo();
        std::vector<char*> blocks;
        const auto change = [&](auto& step, std::vector<char*>& now) {
            for (int i = 0; i < 8; ++i) {
                if (now.empty() || random() % 2 == 0) {
                    now.push_back(static_cast<char*>(heap.allocate(random() % 300 + 1)));
                } else {
                    std::swap(now[random() % now.size()], now.back());
                    heap.deallocate(now.back());
                    now.pop_back();
                }
            }
            if (!now.empty()) {
                step.touch(now.back(), 1);
                *now.back() = 'x';
            }
        };
        for (int round = 0; round < 60; ++round) {
            std::vector<char*> now = blocks;
            if (random() % 3 == 0) {
                Transaction transaction(heap);
                change(transaction, now);
                if (random() % 2 == 0) {
                    transaction.commit();
                    blocks = now;
                }  // else it is rolled back
            } else {
                UndoScope scope(heap);
                change(scope, now);
                scope.commit();
                if (random() % 2 == 0) {
                    heap.undo();
                    if (random() % 2 == 0 && heap.redo()) blocks = now;
                } else {
                    blocks = now;
                }
            }
            BOOST_TEST(heap.check_guards() == 0U);
        }
        BOOST_TEST_REQUIRE(told_here.empty(), (told_here.empty() ? std::string() : told_here[0].text));
        char* block = nullptr;
        {
            Transaction transaction(heap);
            block = static_cast<char*>(heap.allocate(40));
            transaction.commit();
        }
        {
            Transaction transaction(heap);
            static_cast<void>(heap.allocate(40));
        }  // rolled back
        BOOST_TEST(heap.check_guards() == 0U);
        {
            Transaction transaction(heap);
            transaction.touch(block + 40, 1);
            poke(block + 40);
            transaction.commit();
        }
        BOOST_TEST(heap.check_guards() == 1U);
        require_told(block, 40, 0, folder / "x.tyn");
        told_here.clear();
        heap.close();
        TransactionalHeap again(open_only, folder / "x.tyn", guarded(capture));
        BOOST_TEST(again.verify().ok());
    }
    BOOST_TEST(told_here.empty());
}

BOOST_AUTO_TEST_CASE(blocks_that_were_moved_together_are_no_damage) {
    const Heard heard;
    const ScratchDirectory folder;
    ArchiveHeap heap(create_only, folder / "x.tyn", guarded());
    auto& texts = heap.construct<taiyen::vector<taiyen::string>>("texts");
    for (int i = 0; i < 3000; ++i) texts.emplace_back("a text that is longer than any small one");
    for (std::size_t i = 0; i < texts.size(); ++i)
        if (i % 7 != 0) texts[i].clear(), texts[i].shrink_to_fit();
    heap.snapshot();
    CompactOptions options;
    options.types.add<taiyen::vector<taiyen::string>>();
    const CompactReport report = compact(heap, options);
    BOOST_TEST(report.moved_blocks != 0U);
    BOOST_TEST(heap.check_guards() == 0U);
    BOOST_TEST(heap.destroy<taiyen::vector<taiyen::string>>("texts"));
    heap.snapshot();
    BOOST_TEST(heap.verify().ok());
    BOOST_TEST(told_here.empty());
}

BOOST_AUTO_TEST_SUITE_END()
