// A heap that nobody can open, since its journal or log is lost or damaged: what its last save is worth.

#include <boost/test/unit_test.hpp>

#include <functional>
#include <map>
#include <numeric>

#include <taiyen/inspect/last_resort.hpp>
#include <taiyen/taiyen.hpp>

#include "store/header.hpp"
#include "store/heap_probe.hpp"

namespace {
using namespace probe;
using Numbers = taiyen::vector<int>;

enum class Harm { removed, damaged, identity_lost, another };
constexpr Harm harms[]{Harm::removed, Harm::damaged, Harm::identity_lost, Harm::another};

std::ostream& operator<<(std::ostream& out, Harm harm) {
    constexpr const char* names[]{"removed", "damaged", "identity lost", "another"};
    return out << names[static_cast<int>(harm)];
}

constexpr int in_files = 5;  // commits or saves that the files contain
constexpr int all = 12;

store::Header header_of(const std::filesystem::path& heap) {
    return *store::read_slots(*io::posix_storage().open(heap, io::Access::read_only)).newest();
}

/// Where the n-th record of the heap's ring begins in the ring's file.
std::uint64_t record_at(const std::filesystem::path& heap, const std::filesystem::path& ring, std::uint64_t n) {
    const store::Header header = header_of(heap);
    std::uint64_t at = 0;
    (void)log::Ring::scan(*io::posix_storage().open(ring, io::Access::read_only), header.ring_identity(), header.ring_start,
                          [&](const log::Record& record) {
                              at = record.file_offset;
                              return n-- != 0;
                          });
    return at;
}

void harm(const std::filesystem::path& heap, const std::filesystem::path& ring, Harm how, std::uint64_t record) {
    switch (how) {
        case Harm::removed: std::filesystem::remove(ring); break;
        case Harm::damaged: flip_bit(ring, record_at(heap, ring, record) + 200); break;
        case Harm::identity_lost: {
            const auto file = io::posix_storage().open(ring, io::Access::read_write);
            const std::vector<std::byte> noise(log::Ring::header_bytes, std::byte{7});
            file->write(noise, 0);
            break;
        }
        case Harm::another: {
            const auto file = io::posix_storage().open(ring, io::Access::read_write);
            file->resize(0);
            log::Ring::format(*file, {random_uuid(), random_uuid(), 65536, false});
        }
    }
}

/// A transactional heap with commits 1 … `all` (serial 1 makes the vector), of which the files contain `in_files`.
struct LeftLog {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "left.tyn";
    std::filesystem::path log = path.string() + ".log";

    explicit LeftLog(bool with_data = false) {
        const auto live = dir / "live.tyn";
        PersistentOptions options = small_heap();
        options.log_capacity = 512U << 10U;
        if (with_data) options.data_file = live.string() + ".data";
        const auto push = [](TransactionalHeap& heap, int value) {
            Transaction transaction(heap);
            heap.find_or_construct<Numbers>("numbers").push_back(value);
            return transaction.commit();
        };
        {
            TransactionalHeap heap(create_only, live, options);
            for (int value = 1; value <= in_files; ++value) push(heap, value);
            heap.close();
        }
        TransactionalHeap heap(open_only, live, options);
        for (int value = in_files + 1; value <= all; ++value) push(heap, value);
        crash_copy(live, path);
        heap.close();
        std::filesystem::remove(live);
    }
};

int length_of(const std::filesystem::path& path) {
    const TransactionalHeap heap(open_read_only, path);
    const Numbers* const numbers = heap.find<Numbers>("numbers");
    if (numbers == nullptr) return 0;
    Numbers expected = *numbers;
    std::iota(expected.begin(), expected.end(), 1);
    BOOST_TEST((expected == *numbers));
    return static_cast<int>(numbers->size());
}

/// It can be used as if nothing had been, and nothing of the old log comes back.
void require_goes_on(const std::filesystem::path& path, int from) {
    BOOST_TEST(length_of(path) == from);
    {
        TransactionalHeap heap(open_only, path);
        BOOST_TEST(heap.verify().ok());
        for (int value = from + 1; value <= from + 3; ++value) {
            Transaction transaction(heap);
            heap.find_or_construct<Numbers>("numbers").push_back(value);
            transaction.commit();
        }
        const auto left = path.string() + ".again";
        crash_copy(path, left);
        heap.close();
        std::filesystem::rename(path, path.string() + ".gone");
        BOOST_TEST(length_of(left) == from + 3);
        BOOST_TEST(TransactionalHeap(open_only, left).verify().ok());
        std::filesystem::rename(path.string() + ".gone", path);
    }
    BOOST_TEST(length_of(path) == from + 3);
    BOOST_TEST(ArchiveHeap(open_only, path).verify().ok());
}

std::map<std::string, std::vector<char>> files_of(const std::filesystem::path& folder) {
    std::map<std::string, std::vector<char>> files;
    for (const auto& file : std::filesystem::directory_iterator(folder)) files[file.path().filename()] = bytes_of(file.path());
    return files;
}

void require_refused(const std::filesystem::path& path) {
    for (const auto& open : std::initializer_list<std::function<void()>>{
             [&] { TransactionalHeap heap(open_only, path); }, [&] { TransactionalHeap heap(open_read_only, path); },
             [&] { ArchiveHeap heap(open_only, path); }, [&] { ArchiveHeap heap(open_read_only, path); },
             [&] { TransactionalHeap heap(open_or_create, path); }}) {
        try {
            open();
            BOOST_TEST(false, "it opens");
        } catch (const Error& error) {
            BOOST_TEST(is_damage(error));
            BOOST_TEST(std::string(error.what()).find("taiyen repair --accept-last-save " + path.string()) != std::string::npos, error.what());
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(a_last_resort)

BOOST_AUTO_TEST_CASE(a_lost_or_damaged_log_leaves_the_last_save) {
    for (const bool with_data : {false, true}) {
        for (const Harm how : harms) {
            BOOST_TEST_CONTEXT(how << ", data file " << with_data) {
                const LeftLog left(with_data);
                harm(left.path, left.log, how, 3);
                require_refused(left.path);
                const auto before = files_of(left.dir.path());
                const LastResort look = look_at_last_resort(left.path);
                BOOST_TEST((files_of(left.dir.path()) == before));
                BOOST_TEST(look.needed);
                BOOST_TEST(!look.done);
                BOOST_TEST(look.has_log);
                BOOST_TEST(look.last_save == look.goes_on_from);
                BOOST_TEST(look.known_lost == (how == Harm::damaged ? static_cast<std::uint64_t>(all) - in_files : 0U));
                if (how == Harm::damaged) BOOST_TEST(look.intact_up_to == look.last_save + 3);
                const LastResort done = last_resort(left.path);
                BOOST_TEST(done.done);
                BOOST_TEST((read_parameters(left.path).last_restoration.value().cause == OpeningCause::last_resort));
                BOOST_TEST(done.kept.size() == (how == Harm::removed ? 1U : 2U) + (with_data ? 1U : 0U));
                for (const KeptFile& kept : done.kept) BOOST_TEST((bytes_of(kept.kept) == before.at(kept.file.filename())));
                require_goes_on(left.path, in_files);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_damaged_log_is_replayed_up_to_each_serial_in_front_of_the_damage) {
    for (int more = 0; more <= 4; ++more) {
        BOOST_TEST_CONTEXT(more << " more") {
            const LeftLog left(more % 2 == 1);
            harm(left.path, left.log, Harm::damaged, 4);
            LastResortOptions options;
            const std::uint64_t last_save = look_at_last_resort(left.path).last_save;
            options.up_to_serial = last_save + 5;
            BOOST_TEST((code_of([&] { last_resort(left.path, options); }) == errc::invalid_argument));
            options.up_to_serial = last_save + static_cast<std::uint64_t>(more);
            const LastResort done = last_resort(left.path, options);
            BOOST_TEST(done.goes_on_from == *options.up_to_serial);
            BOOST_TEST(done.known_lost == static_cast<std::uint64_t>(all - in_files - more));
            require_goes_on(left.path, in_files + more);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_lost_or_damaged_journal_leaves_the_last_save_that_can_be_read) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        for (const Harm how : harms) {
            BOOST_TEST_CONTEXT(how << ", kind " << static_cast<int>(kind)) {
                const ScratchDirectory dir;
                const auto live = dir / "live.tyn";
                const auto path = dir / "left.tyn";
                const auto use = [&](ArchiveHeap& heap) {
                    for (int i = 0; i < 6; ++i) {
                        put(heap, "x" + std::to_string(i), "some text");
                        heap.snapshot();
                    }
                    crash_copy(live, path);
                    heap.close();
                };
                if (kind == HeapKind::archive) {
                    ArchiveHeap heap(create_only, live, small_heap());
                    use(heap);
                } else {
                    SnapshotHeap heap(create_only, live, small_heap());
                    use(heap);
                }
                std::filesystem::remove(live);
                harm(path, path.string() + ".journal", how, 2);
                const LastResort look = look_at_last_resort(path);
                BOOST_TEST(!look.has_log);
                BOOST_TEST(look.known_lost == (how == Harm::damaged ? 4U : 0U));
                const LastResort done = last_resort(path);
                BOOST_TEST(done.done);
                BOOST_TEST((read_parameters(path).last_restoration.value().cause == OpeningCause::last_resort));
                ArchiveHeap heap(open_only, path);
                BOOST_TEST(heap.verify().ok());
                for (int i = 0; i < 6; ++i)
                    BOOST_TEST(get(heap, "x" + std::to_string(i)) == (how == Harm::damaged && i < 2 ? "some text" : "(none)"));
                put(heap, "after", "more");
                heap.snapshot();
                heap.close();
                BOOST_TEST(get(ArchiveHeap(open_read_only, path), "after") == "more");
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_heap_whose_last_save_is_not_whole_is_refused_and_not_touched) {
    const LeftLog left;
    std::filesystem::remove(left.log);
    flip_bit(left.path, store::FileLayout().file_offset({6 * page_bytes + 9}));
    const auto before = files_of(left.dir.path());
    BOOST_TEST((code_of([&] { look_at_last_resort(left.path); }) == errc::corrupt));
    BOOST_TEST((code_of([&] { last_resort(left.path); }) == errc::corrupt));
    BOOST_TEST((files_of(left.dir.path()) == before));
}

BOOST_AUTO_TEST_CASE(a_second_copy_heals_the_last_save) {
    const LeftLog left(true);
    std::filesystem::remove(left.log);
    flip_bit(left.path, store::FileLayout().file_offset({6 * page_bytes + 9}));
    flip_bit(left.path.string() + ".data", store::FileLayout().file_offset({9 * page_bytes + 9}));
    BOOST_TEST(last_resort(left.path).done);
    require_goes_on(left.path, in_files);
}

BOOST_AUTO_TEST_CASE(a_heap_that_opens_is_not_touched) {
    const LeftLog left;
    const auto before = files_of(left.dir.path());
    const LastResort done = last_resort(left.path);
    BOOST_TEST(!done.needed);
    BOOST_TEST(!done.done);
    BOOST_TEST((files_of(left.dir.path()) == before));
    BOOST_TEST(length_of(left.path) == all);
}

BOOST_AUTO_TEST_CASE(copies_of_an_earlier_time_are_kept_too) {
    const LeftLog left;
    std::filesystem::remove(left.log);
    std::ofstream(left.path.string() + ".before-repair") << "earlier";
    const LastResort done = last_resort(left.path);
    BOOST_TEST_REQUIRE(done.kept.size() == 1U);
    BOOST_TEST(done.kept[0].kept.string() == left.path.string() + ".before-repair-2");
    BOOST_TEST(file_bytes(left.path.string() + ".before-repair") == "earlier");
}

BOOST_AUTO_TEST_CASE(with_the_copies_renamed_back_and_the_log_found_again_everything_is_there) {
    for (const bool with_data : {false, true}) {
        const LeftLog left(with_data);
        const auto elsewhere = left.dir / "found later";
        std::filesystem::rename(left.log, elsewhere);
        const LastResort done = last_resort(left.path);
        require_goes_on(left.path, in_files);
        for (const KeptFile& kept : done.kept) std::filesystem::rename(kept.kept, kept.file);
        std::filesystem::rename(elsewhere, left.log);
        BOOST_TEST(length_of(left.path) == all);
    }
}

BOOST_AUTO_TEST_CASE(the_old_log_put_back_is_not_believed) {
    const LeftLog left;
    const auto elsewhere = left.dir / "found later";
    std::filesystem::rename(left.log, elsewhere);
    (void)last_resort(left.path);
    std::filesystem::rename(elsewhere, left.log);
    BOOST_TEST(length_of(left.path) == in_files);
    require_goes_on(left.path, in_files);
}

BOOST_AUTO_TEST_CASE(an_undo_history_is_as_of_the_serial_and_the_steps_behind_it_are_gone) {
    const ScratchDirectory dir;
    const auto live = dir / "live.tyn";
    const auto path = dir / "left.tyn";
    {
        TransactionalHeap heap(create_only, live, small_heap());
        heap.attach_undo();
        {
            Transaction transaction(heap);
            heap.find_or_construct<Numbers>("numbers");
            transaction.commit();
        }
        for (int value = 1; value <= 8; ++value) {
            UndoScope scope(heap);
            heap.find_or_construct<Numbers>("numbers").push_back(value);
            scope.commit();
        }
        crash_copy(live, path);
        heap.close();
    }
    std::filesystem::remove(live);
    std::filesystem::remove(live.string() + ".log");
    harm(path, path.string() + ".log", Harm::damaged, 7);
    LastResortOptions options;
    options.up_to_serial = look_at_last_resort(path).intact_up_to;
    BOOST_TEST(last_resort(path, options).known_lost != 0U);
    const int length = length_of(path);
    BOOST_TEST(length > 2);
    BOOST_TEST(length < 8);
    TransactionalHeap heap(open_only, path);
    BOOST_TEST(heap.verify().ok());
    heap.attach_undo();
    int undone = 0;
    while (heap.undo()) ++undone;
    BOOST_TEST(undone == length + 1);  // the first one made the vector
    BOOST_TEST((heap.find<Numbers>("numbers") == nullptr));
    while (heap.redo()) --undone;
    BOOST_TEST(undone == 0);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()
