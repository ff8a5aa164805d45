// Events: each is told, in order, by a thread that no heap waits for, and telling it allocates nothing.

#include <taiyen/store/event.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>

#include <sys/wait.h>
#include <unistd.h>

#include <taiyen/base/report.hpp>

#include "heap_probe.hpp"
#include "io/disks/faulty_storage.hpp"
#include "scarce_memory.hpp"
#include "store/events.hpp"

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

/// What a handler heard, with what its pointers led to.
struct Heard {
    Event event;
    std::string heap;
    std::string text;
    std::optional<Restoration> restoration;
};
std::mutex heard_mutex;
std::vector<Heard> heard;

void hear(const Event& event) noexcept {
    const std::lock_guard lock(heard_mutex);
    heard.push_back({event, std::string(event.heap), std::string(event.text), std::nullopt});
    if (event.restoration != nullptr) heard.back().restoration = *event.restoration;
}

/// Hears events while it lives.
struct Hearing {
    Hearing() {
        heard.clear();
        set_event_handler(&hear);
    }
    Hearing(const Hearing&) = delete;
    Hearing& operator=(const Hearing&) = delete;
    ~Hearing() { set_event_handler(nullptr); }
    /// All that was told so far.
    std::vector<Heard> all() const {
        set_event_handler(&hear);
        const std::lock_guard lock(heard_mutex);
        return heard;
    }
    std::string kinds() const {
        std::string text;
        for (const Heard& told : all()) text += (text.empty() ? "" : " ") + std::string(name_of(told.event.kind));
        return text;
    }
};
}  // namespace

BOOST_AUTO_TEST_SUITE(events)

BOOST_AUTO_TEST_CASE(a_life_of_a_heap_is_told_in_order) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const auto before = std::chrono::system_clock::now() - std::chrono::milliseconds(1);
    const Hearing hearing;
    {
        ArchiveHeap heap(create_only, path, small_heap());
        put(heap, "text", "one");
        heap.snapshot();
        find(heap, "text")[0] = 'O';
        heap.snapshot();
        crash_copy(path, dir / "b.tyn");
        heap.close();
    }
    const std::vector<Heard> told = hearing.all();
    BOOST_TEST(hearing.kinds() == "opened saved saved checkpointed closed");
    BOOST_TEST_REQUIRE(told.size() == 5U);
    BOOST_TEST(told[0].heap == path.string());
    BOOST_TEST((told[0].restoration->cause == OpeningCause::created));
    BOOST_TEST((told[0].event.at >= before));
    BOOST_TEST(told[1].event.generation == 1U);
    BOOST_TEST(told[1].event.pages > 0U);
    BOOST_TEST(told[1].event.bytes == told[1].event.pages * 4096);
    BOOST_TEST(told[2].event.generation == 2U);
    BOOST_TEST(told[2].event.pages == 1U);
    BOOST_TEST(told[3].event.pages >= told[1].event.pages);
    BOOST_TEST(told.back().event.generation == 2U);
    BOOST_TEST(told.back().text == "");
    BOOST_TEST(told.back().event.missed == 0U);
}

BOOST_AUTO_TEST_CASE(a_recovery_is_told_before_the_heap_is_open_and_not_by_a_reader) {
    const ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "text", "one");
        heap.snapshot();
        crash_copy(dir / "a.tyn", dir / "b.tyn");
    }
    const Hearing hearing;
    { const ArchiveHeap reader(open_read_only, dir / "b.tyn"); }
    BOOST_TEST(hearing.kinds() == "opened closed");
    {
        const ArchiveHeap heap(open_only, dir / "b.tyn");
        BOOST_TEST(hearing.kinds() == "opened closed recovered opened");
    }
    const Heard recovered = hearing.all()[2];
    BOOST_TEST_REQUIRE(recovered.restoration.has_value());
    BOOST_TEST((recovered.restoration->cause == OpeningCause::crash));
    BOOST_TEST(recovered.restoration->snapshots_replayed == 1U);
    BOOST_TEST((recovered.event.took == recovered.restoration->took));
    BOOST_TEST((code_of([&] { const ArchiveHeap none(open_only, dir / "none.tyn"); }) == errc::not_found));
    BOOST_TEST(hearing.kinds() == "opened closed recovered opened closed");
}

BOOST_AUTO_TEST_CASE(pages_that_are_healed_and_large_saves_are_told) {
    const ScratchDirectory dir;
    SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
    put(heap, "text", std::string(2U << 20U, 'x'));
    const Hearing hearing;
    heap.snapshot();
    BOOST_TEST(hearing.kinds() == "saved");
    BOOST_TEST(hearing.all()[0].event.pages >= 512U);
    flip_bit(dir / "a.tyn.data", 400'000);
    BOOST_TEST(heap.heal() == 1U);
    BOOST_TEST(hearing.kinds() == "saved healed");
    BOOST_TEST(hearing.all()[1].event.pages == 1U);
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_poisoned_says_why_once) {
    const ScratchDirectory dir;
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});
    io::FaultyStorage failing(io::posix_storage());
    const Hearing hearing;
    {
        auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(failing, dir / "a.tyn", OpenMode::create_only, HeapKind::archive, small_heap()));
        put(heap, "text", "one");
        failing.arm({.at = 1, .sticky = true, .calls = io::Call::write_durable});
        BOOST_TEST(code_of([&] { heap.snapshot(); }).has_value());
        BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::poisoned));
    }
    BOOST_TEST(hearing.kinds() == "opened poisoned closed");
    BOOST_TEST(hearing.all()[1].text.starts_with("saving: "));
    set_report_handler(handler);
}

BOOST_AUTO_TEST_CASE(telling_takes_no_memory_and_waits_for_no_handler) {
    static std::mutex gate;
    static std::atomic<std::uint64_t> missed;
    static std::atomic<std::uint64_t> told;
    missed = told = 0;
    const auto source = std::make_shared<store::EventSource>("heap.tyn");
    std::unique_lock closed(gate);
    set_event_handler(+[](const Event& event) noexcept {
        const std::lock_guard lock(gate);
        missed += event.missed;
        ++told;
    });
    source->tell({.kind = EventKind::healed});  // not begun: nobody hears it
    source->begin();
    const std::string reason(1000, 'x');
    scarce_memory = {.armed = true, .sticky = true};
    for (int i = 0; i < 1000; ++i) source->tell({.kind = EventKind::poisoned, .text = reason});
    scarce_memory.armed = false;
    BOOST_TEST(scarce_memory.failed == 0U);
    closed.unlock();
    set_event_handler(&hear);
    heard.clear();
    source->tell({.kind = EventKind::poisoned, .text = reason});
    set_event_handler(nullptr);
    BOOST_TEST(told == 256U);
    BOOST_TEST(missed == 0U);
    BOOST_TEST_REQUIRE(heard.size() == 1U);
    BOOST_TEST(heard[0].event.missed == 744U);
    BOOST_TEST(heard[0].text == std::string(255, 'x'));
    source->tell({.kind = EventKind::healed});
    BOOST_TEST(heard.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_handler_may_use_heaps_and_replace_itself) {
    const ScratchDirectory dir;
    static std::filesystem::path other;
    static std::atomic<int> calls;
    other = dir / "other.tyn";
    calls = 0;
    { ArchiveHeap made(create_only, other, small_heap()); }
    BOOST_TEST((set_event_handler(+[](const Event&) noexcept {
                    if (calls++ != 0) return;
                    const ArchiveHeap heap(open_read_only, other);  // which has events itself
                    if (heap.restoration().clean) set_event_handler(&hear);
                }) == nullptr));
    heard.clear();
    { ArchiveHeap heap(create_only, dir / "a.tyn", small_heap()); }
    set_event_handler(nullptr);
    BOOST_TEST(calls == 1);
    BOOST_TEST(heard.size() >= 1U);
}

BOOST_AUTO_TEST_CASE(a_forked_child_has_no_handler_until_it_installs_one) {
    const ScratchDirectory dir;
    const Hearing hearing;
    const pid_t child = ::fork();
    if (child == 0) {
        const std::size_t before = heard.size();
        { ArchiveHeap heap(create_only, dir / "a.tyn", small_heap()); }
        const bool was_quiet = heard.size() == before;
        set_event_handler(&hear);
        { ArchiveHeap heap(open_only, dir / "a.tyn"); }
        set_event_handler(nullptr);
        ::_exit(was_quiet && heard.size() == before + 2 ? 0 : 1);
    }
    int status = 0;
    BOOST_TEST(::waitpid(child, &status, 0) == child);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    BOOST_TEST(hearing.kinds() == "");
}

BOOST_AUTO_TEST_SUITE_END()
