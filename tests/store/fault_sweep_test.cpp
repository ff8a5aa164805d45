#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstdint>
#include <new>

#include <taiyen/base/report.hpp>
#include <taiyen/store/event.hpp>

#include "heap_probe.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_node.hpp"
#include "scarce_memory.hpp"

// Each call on the storage seam, and each allocation, fails once in every scenario of a heap's life: k = 1, 2, 3 … until nothing fails any more, alone and
// with everything behind it. What was acknowledged must be there afterwards, and every failure must be a typed one.

BOOST_AUTO_TEST_SUITE(fault_sweep)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

const std::filesystem::path heap_path = "/disk/a.tyn";
constexpr std::size_t big_bytes = 24 * page_bytes;  // a large save with the small ring of these tests
const store::Tuning small_ring{32768};

/// Reports of heaps that are closed after a fault are part of the game; and events are told under each fault.
class Silence {
public:
    Silence() : before_(set_report_handler([](const Incident&) noexcept {})) {
        set_event_handler([](const Event&) noexcept {});
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence() {
        set_event_handler(nullptr);
        set_report_handler(before_);
    }

private:
    ReportHandler before_;
};

/// A heap on a pretended disk behind a fault injector, and what is known of its saves: save number n fills the first bytes of two blocks with n.
class Life {
public:
    explicit Life(HeapKind kind) : faults(disk), kind_(kind) { disk.add_directory("/disk"); }

    void create() { adopt(OpenMode::create_only); }
    void open() { adopt(OpenMode::open_only); }
    void make_content() {
        ++next_;
        for (const auto& [name, bytes] :
             {std::pair{"small", 2 * page_bytes}, std::pair{"big", ByteCount{big_bytes}}, std::pair{"spare", ByteCount{200 * page_bytes}}}) {
            void* block = heap->allocate(bytes);
            std::memset(block, next_, bytes);
            heap::add_named(*heap->core(), name, {block, bytes, 1, "bytes"});
        }
        save();
    }
    void change_small() { std::memset(find(*heap, "small"), ++next_, 2 * page_bytes); }
    void change_big() {
        change_small();
        std::memset(find(*heap, "big"), next_, big_bytes);
    }
    void save() {
        issued = next_;
        heap->snapshot();
        acknowledged = next_;
    }
    void save_small() {
        change_small();
        save();
    }
    void save_large() {
        change_big();
        save();
    }
    void free_spare() {
        heap->deallocate(find(*heap, "spare"));
        heap::remove_named(*heap->core(), "spare");
        save_small();
    }
    void close() { heap->close(); }
    /// Requires: not poisoned.
    bool has_content() const { return find(*heap, "small") != nullptr; }
    /// The process dies: nothing that its objects do reaches the disk any more.
    void die() {
        disk.disconnect();
        heap.reset();
    }

    /// After everything: the newest acknowledged save, or one that was under way, is there, whole, in every copy; and the heap goes on.
    void check_content(bool created = true) {
        faults.disarm();
        heap.reset();
        adopt(created ? OpenMode::open_only : OpenMode::open_or_create);
        const char* small = find(*heap, "small");
        const int found = small != nullptr ? *small : 0;
        BOOST_TEST_REQUIRE(found >= acknowledged);
        BOOST_TEST_REQUIRE(found <= issued);
        const char* big = find(*heap, "big");
        BOOST_TEST_REQUIRE((small == nullptr || std::memcmp(small, small + 1, 2 * page_bytes - 1) == 0));  // all bytes alike
        BOOST_TEST_REQUIRE((big == nullptr || std::memcmp(big, big + 1, big_bytes - 1) == 0));
        BOOST_TEST_REQUIRE(heap->heal() == 0U);
        BOOST_TEST_REQUIRE(HeapAccess::file(*heap).engine().check().empty());
        if (small != nullptr) {
            next_ = found;
            save_small();
        }
        heap->close();
        heap.reset();
    }

    io::SimulatedStorage disk;
    io::FaultyStorage faults;
    std::optional<ArchiveHeap> heap;
    int acknowledged = 0;
    int issued = 0;

private:
    void adopt(OpenMode mode) {
        PersistentOptions options = small_heap(4U << 20U);
        options.dirty_limit = 1U << 30U;
        heap.emplace(HeapAccess::make<ArchiveHeap>(HeapFile::open(faults, heap_path, mode, kind_, options, small_ring)));
    }

    HeapKind kind_;
    int next_ = 0;
};

/// A step of a heap's life under faults, and what was before.
struct Scenario {
    const char* name;
    void (*before)(Life&);
    void (*act)(Life&);
};

void make_closed(Life& life) {
    life.create();
    life.make_content();
    life.close();
    life.heap.reset();
}
void make_open(Life& life) {
    make_closed(life);
    life.open();
}
void make_crashed(Life& life) {
    make_open(life);
    life.save_small();
    life.save_small();
    life.die();
}
/// The large save was under way when the process died, at its call number `at`.
void make_crashed_in_large_save(Life& life, std::uint64_t at) {
    make_open(life);
    life.faults.arm({at, EIO, true});
    try {
        life.save_large();
    } catch (const Error&) {}
    life.die();
    life.faults.disarm();
}

const Scenario scenarios[] = {
    {"open", make_closed, [](Life& life) { life.open(); }},
    {"save small", make_open, [](Life& life) { life.save_small(); }},
    {"save large", make_open, [](Life& life) { life.save_large(); }},
    {"grow", make_open, [](Life& life) { life.heap->allocate(900'000); }},
    {"checkpoint", make_open,
     [](Life& life) {
         for (int i = 0; i < 4; ++i) life.save_small();
     }},
    {"close",
     [](Life& life) {
         make_open(life);
         life.save_small();
         life.free_spare();
     },
     [](Life& life) { life.close(); }},
    {"recover", make_crashed, [](Life& life) { life.open(); }},
};

/// Runs the step; every failure must be one of the promised ones. Returns whether it succeeded.
bool run(Life& life, void (*act)(Life&), int error) {
    try {
        act(life);
        return true;
    } catch (const HeapFull& full) {
        BOOST_TEST((error == ENOSPC || error == ENOMEM));
        BOOST_TEST((full.cause() == HeapFull::Cause::disk || full.cause() == HeapFull::Cause::address_space));
    } catch (const std::bad_alloc&) {
        BOOST_TEST(error == ENOMEM);
    } catch (const Error& failure) {
        const bool right = failure.code() == errc::poisoned || failure.code() == (error == ENOSPC ? errc::no_space : errc::io_error);
        BOOST_TEST(right, "unexpected: " << failure.what());
    }
    return false;
}

/// A heap that lived through a fault either works or says that it is poisoned.
void check_usable_or_poisoned(Life& life) {
    if (!life.heap || !life.heap->is_open()) return;
    const auto code = code_of([&] {
        if (life.has_content())
            life.save_small();
        else
            life.heap->snapshot();
    });
    BOOST_TEST((!code || code == errc::poisoned));
    if (code) BOOST_TEST((code_of([&] { life.heap->allocate(16); }) == errc::poisoned));
}

constexpr std::uint64_t calls_max = 2000;

std::uint64_t sweep(HeapKind kind, const Scenario& scenario) {
    std::uint64_t struck = 0;
    for (const int error : {EIO, ENOSPC}) {
        for (const bool sticky : {false, true}) {
            // A fault that lasts differs only by where it begins: every third place is enough there.
            for (std::uint64_t k = 1;; k += sticky ? 3 : 1) {
                BOOST_TEST_REQUIRE(k < calls_max);
                Life life(kind);
                scenario.before(life);
                life.faults.arm({k, error, sticky});
                BOOST_TEST_CONTEXT(scenario.name << ", kind " << name_of(kind) << ", error " << error << (sticky ? ", sticky" : "")
                                                 << ", k = " << k) {
                    run(life, scenario.act, error);
                    const bool fired = life.faults.fired() != 0;
                    life.faults.disarm();
                    if (struck % 2 == 0)
                        life.die();
                    else
                        check_usable_or_poisoned(life);
                    life.check_content();
                    if (!fired) break;
                }
                ++struck;
            }
        }
    }
    return struck;
}

/// Dies in the middle of a creation: whatever stands on the disk, the next one gets a heap.
void check_creation_goes_on(Life& life) {
    life.faults.disarm();
    life.die();
    Life& again = life;
    again.check_content(false);
}
}  // namespace

BOOST_AUTO_TEST_CASE(every_storage_call_that_fails_leaves_what_was_acknowledged) {
    const Silence silence;
    std::uint64_t struck = 0;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot})
        for (const Scenario& scenario : scenarios) struck += sweep(kind, scenario);
    BOOST_TEST_MESSAGE(struck << " faults");
    BOOST_TEST(struck > 500U);
}

BOOST_AUTO_TEST_CASE(a_recovery_that_fails_anywhere_can_be_repeated) {
    const Silence silence;
    std::uint64_t struck = 0;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        for (std::uint64_t at = 4;; at += 7) {
            Life dry(kind);
            make_open(dry);
            dry.faults.arm({at, EIO, true});
            try {
                dry.save_large();
                break;
            } catch (const Error&) {}
            for (std::uint64_t k = 1;; k += 2) {
                Life life(kind);
                make_crashed_in_large_save(life, at);
                life.faults.arm({k, EIO, true});
                BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", died at call " << at << " of the save and at call " << k << " of the recovery") {
                    const bool opened = run(life, [](Life& l) { l.open(); }, EIO);
                    life.die();
                    life.check_content();
                    if (opened) break;
                }
                ++struck;
            }
        }
    }
    BOOST_TEST_MESSAGE(struck << " faults");
    BOOST_TEST(struck > 100U);
}

BOOST_AUTO_TEST_CASE(a_creation_that_fails_leaves_nothing_behind) {
    const Silence silence;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        for (const int error : {EIO, ENOSPC}) {
            for (std::uint64_t k = 1;; ++k) {
                Life life(kind);
                life.faults.arm({k, error, false});
                BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", error " << error << ", k = " << k) {
                    const bool created = run(life, [](Life& l) { l.create(); }, error);
                    const bool fired = life.faults.fired() != 0;
                    life.faults.disarm();
                    BOOST_TEST((created || life.disk.files().empty()));
                    BOOST_TEST((created || life.disk.used_bytes() == 0U));
                    life.check_content(created);
                    if (!fired) break;
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_creation_that_dies_anywhere_does_not_stand_in_the_way) {
    const Silence silence;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        for (std::uint64_t k = 1;; ++k) {
            Life life(kind);
            life.faults.arm({k, EIO, true});
            BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", k = " << k) {
                const bool created = run(life, [](Life& l) { l.create(); }, EIO);
                check_creation_goes_on(life);
                if (created) break;
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_creation_that_fails_and_dies_while_it_tidies_up_does_not_stand_in_the_way_either) {
    const Silence silence;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        bool created = false;
        for (std::uint64_t k = 1; !created; ++k) {
            for (std::uint64_t more = 1; more < 12; ++more) {
                Life life(kind);
                io::Storage& inner = life.faults;
                io::FaultyStorage once(inner);
                once.arm({k, EIO, false});
                std::uint64_t dies_at = 0;
                {
                    // How many calls there are up to the fault; then the second life dies `more` calls behind it.
                    Life dry(kind);
                    dry.faults.arm({~std::uint64_t{0}, EIO, false});
                    io::Storage& dry_inner = dry.faults;
                    io::FaultyStorage counted(dry_inner);
                    counted.arm({k, EIO, true});
                    try {
                        HeapFile::open(counted, heap_path, OpenMode::create_only, kind, small_heap(4U << 20U), small_ring);
                        created = true;
                    } catch (const Error&) {}
                    dies_at = dry.faults.calls() + more;
                }
                life.faults.arm({dies_at, EIO, true});
                BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", k = " << k << ", died " << more << " calls later") {
                    try {
                        const auto heap = HeapFile::open(once, heap_path, OpenMode::create_only, kind, small_heap(4U << 20U), small_ring);
                    } catch (const Error&) {}
                    check_creation_goes_on(life);
                }
                if (created) break;
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_small_save_and_a_checkpoint_that_run_out_of_memory_leave_a_heap_that_goes_on) {
    // On real files: the pretended disk takes memory itself, in the middle of its writes.
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        const ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        std::optional<ArchiveHeap> heap(
            HeapAccess::make<ArchiveHeap>(HeapFile::open(io::posix_storage(), path, OpenMode::create_only, kind, small_heap(4U << 20U), small_ring)));
        char* const bytes = put(*heap, "bytes", std::string(4 * page_bytes, 'a'));
        heap->snapshot();
        std::uint64_t failed = 0;
        std::uint64_t saves = 0;
        for (std::int64_t k = 0; k < 60; ++k) {
            for (const bool sticky : {false, true}) {
                // Some saves are followed by a checkpoint, whose ring is half full.
                for (int round = 0; round < 3; ++round) {
                    ++saves;
                    std::memset(bytes, static_cast<int>('b' + saves % 20), 3 * page_bytes);
                    scarce_memory = {k, true, sticky, 0};
                    try {
                        heap->snapshot();
                    } catch (const std::bad_alloc&) {
                        ++failed;
                    }
                    scarce_memory.armed = false;
                    BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", allocation " << k << (sticky ? ", sticky" : "")) {
                        BOOST_TEST_REQUIRE(!HeapAccess::file(*heap).condition().is_poisoned());
                        heap->snapshot();
                    }
                }
            }
        }
        BOOST_TEST(failed > 30U);
        crash_copy(path, dir / "crashed.tyn");
        const std::string saved(bytes, 4 * page_bytes);
        heap->close();
        {
            const ArchiveHeap crashed(open_read_only, dir / "crashed.tyn");
            BOOST_TEST(HeapAccess::file(crashed).engine().check(1).empty());
            BOOST_TEST((std::string(find(crashed, "bytes"), saved.size()) == saved));
        }
        heap.emplace(HeapAccess::make<ArchiveHeap>(HeapFile::open(io::posix_storage(), path, OpenMode::open_only, kind, small_heap(4U << 20U))));
        BOOST_TEST(heap->heal() == 0U);
        BOOST_TEST(HeapAccess::file(*heap).engine().check(1).empty());
    }
}

BOOST_AUTO_TEST_CASE(a_full_disk_gives_heap_full_or_no_space_and_the_heap_opens_again) {
    const Silence silence;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        Life measured(kind);
        make_open(measured);
        const ByteCount full = measured.disk.used_bytes();
        measured.heap.reset();
        for (ByteCount space = 0; space < full + 64 * page_bytes; space += 5 * page_bytes) {
            Life life(kind);
            life.disk.set_space(space);
            BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", " << space << " bytes of space") {
                const bool done = run(
                    life,
                    [](Life& l) {
                        make_open(l);
                        l.save_large();
                        l.heap->allocate(500'000);
                        l.save_large();
                        l.save_small();
                        l.close();
                    },
                    ENOSPC);
                life.disk.set_space(~ByteCount{0});
                if (life.disk.files().empty()) {
                    BOOST_TEST(!done);
                    continue;
                }
                check_usable_or_poisoned(life);
                life.check_content();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out_anywhere_costs_nothing_acknowledged) {
    const Silence silence;
    std::uint64_t struck = 0;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        for (const Scenario& scenario : scenarios) {
            for (const bool sticky : {false, true}) {
                for (std::int64_t k = 0;; k += sticky ? 3 : 1) {
                    BOOST_TEST_REQUIRE(k < 5000);
                    Life life(kind);
                    scenario.before(life);
                    BOOST_TEST_CONTEXT(scenario.name << ", kind " << name_of(kind) << (sticky ? ", sticky" : "") << ", allocation " << k) {
                        scarce_memory = {k, true, sticky, 0};
                        try {
                            scenario.act(life);
                        } catch (const std::bad_alloc&) {
                        } catch (const Error&) {}
                        scarce_memory.armed = false;
                        const bool fired = scarce_memory.failed != 0;
                        if (struck % 2 == 0)
                            life.die();
                        else
                            check_usable_or_poisoned(life);
                        life.check_content();
                        if (!fired) break;
                    }
                    ++struck;
                }
            }
        }
    }
    BOOST_TEST_MESSAGE(struck << " failed allocations");
    BOOST_TEST(struck > 500U);
}

BOOST_AUTO_TEST_CASE(a_creation_that_runs_out_of_memory_leaves_nothing_behind) {
    const Silence silence;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        for (std::int64_t k = 0;; ++k) {
            Life life(kind);
            BOOST_TEST_CONTEXT("kind " << name_of(kind) << ", allocation " << k) {
                scarce_memory = {k, true, false, 0};
                bool created = false;
                try {
                    life.create();
                    created = true;
                } catch (const std::bad_alloc&) {
                } catch (const Error&) {}
                scarce_memory.armed = false;
                const bool fired = scarce_memory.failed != 0;
                BOOST_TEST((created || life.disk.files().empty()));
                life.check_content(created);
                if (!fired) break;
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
