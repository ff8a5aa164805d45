// What goes wrong around a heap that travels, at every place where it can: no memory, a call that fails, somebody who says stop, a stream that takes no more. Nothing is left behind: no file, no descriptor, no mapping.

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <random>
#include <sstream>
#include <streambuf>

#include "containers/declared_document.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/heap_access.hpp"
#include "store/scarce_memory.hpp"
#include "transfer/transfer.hpp"
#include "transfer/transfer_fixture.hpp"

namespace taiyen::transfer::test {
namespace {

namespace fs = std::filesystem;

/// Open files and mappings of this process.
struct Held {
    std::ptrdiff_t files = 0;
    std::ptrdiff_t mappings = 0;
    static Held now() {
        Held held;
        held.files = std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            held.mappings += line.find("taiyen") != std::string::npos || line.find("/#") != std::string::npos ? 1 : 0;
        return held;
    }
    bool operator==(const Held&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Held& held) { return out << held.files << " files, " << held.mappings << " mappings"; }

std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// A heap of several chunks, with a stream of it.
struct Travellers {
    ScratchDirectory directory;
    Document<InMemory> model;
    std::optional<ArchiveHeap> heap{std::in_place, create_only, directory / "a.tyn", small_heap()};
    std::vector<std::byte> stream;
    std::size_t files = 0;  ///< of the heap as long as it is open

    explicit Travellers(std::size_t words = 700'000) {
        auto& numbers = heap->construct<taiyen::vector<std::uint64_t>>("numbers");
        numbers.reserve(words);
        std::mt19937_64 random(1);
        for (std::size_t i = 0; i < words; ++i) numbers.push_back(random() >> 40U);
        edit_and_save(*heap, model, 1, 2);
        stream = compress(*heap, how(1));
        files = names_in(directory.path()).size();
    }
    static CompressOptions how(unsigned threads) {
        CompressOptions options;
        options.codec = Codec::lz4;
        options.threads = threads;
        return options;
    }
    void expect_whole(const fs::path& path) const {
        expand_file(path, directory / "check.tyn");
        expect_sound(directory / "check.tyn");
        fs::remove(directory / "check.tyn");
    }
    static void expect_sound(const fs::path& path) {
        ArchiveHeap other(open_read_only, path);
        BOOST_TEST(other.verify().ok());
    }
};

/// One of a single chunk, for what is done hundreds of times.
struct SmallTravellers : Travellers {
    SmallTravellers() : Travellers(100) {}
};

/// One thread does it all: oneTBB, when it lacks memory for its first arena, waits for itself for ever.
/// `action` once more for each allocation that it makes, which fails, alone or with all behind it: then std::bad_alloc, and `left` says what must hold.
template <class F, class Left>
void with_scarce_memory(F&& action, Left&& left, std::int64_t stride = 1) {
    for (const bool sticky : {false, true}) {
        std::size_t refused = 0;
        for (std::int64_t k = 0;; k += stride) {
            BOOST_TEST_REQUIRE(k < 2000);
            const Held before = Held::now();
            bool thrown = false;
            scarce_memory = {k, true, sticky, 0};
            try {
                action();
            } catch (const std::bad_alloc&) {
                scarce_memory.armed = false;
                thrown = true;
            } catch (const std::exception& error) {
                scarce_memory.armed = false;
                thrown = true;
                BOOST_ERROR("allocation " << k << (sticky ? " and all behind it: " : ": ") << error.what());
            }
            scarce_memory.armed = false;
            const bool failed = scarce_memory.failed != 0;
            BOOST_TEST_CONTEXT("allocation " << k << (sticky ? " and all behind it" : "")) {
                BOOST_TEST(Held::now() == before);
                left(thrown);
            }
            refused += thrown ? 1 : 0;
            if (!failed) {
                BOOST_TEST(!thrown);
                break;
            }
        }
        BOOST_TEST(refused * static_cast<std::size_t>(stride) > 10U);
    }
}

BOOST_AUTO_TEST_SUITE(transfer_misfortunes)

BOOST_FIXTURE_TEST_CASE(without_memory_compressing_leaves_nothing_and_the_heap_goes_on, SmallTravellers) {
    // Afterwards the files are up to date: a save that lacks memory in its middle is another matter, and poisons the heap.
    compress(*heap, [](std::span<const std::byte>) {});
    with_scarce_memory([&] { compress(*heap, directory / "a.tyz", how(1)); },
                       [&](bool thrown) {
                           BOOST_TEST(fs::exists(directory / "a.tyz") == !thrown);
                           BOOST_TEST(names_in(directory.path()).size() == files + (thrown ? 0U : 1U));
                           if (!thrown) fs::remove(directory / "a.tyz");
                       });
    edit_and_save(*heap, model, 10, 1);
    BOOST_TEST(content_of(*heap) == describe(model));
    compress(*heap, directory / "a.tyz");
    heap.reset();
    expect_whole(directory / "a.tyz");
}

/// Where all live blocks lie.
std::vector<std::uint64_t> places_of_blocks(const ArchiveHeap& heap) {
    std::vector<std::uint64_t> places;
    HeapAccess::file(heap).engine().for_each_block([&](const heap::Block& block) {
        places.push_back(block.offset.value);
        return true;
    });
    return places;
}

/// A document in a heap full of holes; closed.
Document<InMemory> make_with_holes(const fs::path& path) {
    Document<InMemory> model;
    ArchiveHeap heap(create_only, path, small_heap());
    std::vector<void*> blocks;
    for (unsigned round = 1; round < 6; ++round) {
        edit(heap, model, round, 1);
        for (int n = 0; n < 100; ++n) blocks.push_back(heap.allocate(200));
    }
    for (void* const block : blocks) heap.deallocate(block);
    heap.snapshot();
    heap.close();
    return model;
}

/// Steps of compact(), each with one allocation more that succeeds.
template <class Heap>
void compact_without_memory(Capture capture, bool with_undo, bool sticky) {
    const ScratchDirectory directory;
    const std::string content = describe(make_with_holes(directory / "a.tyn"));
    PersistentOptions files = small_heap();
    files.capture = capture;
    {
        Heap heap(open_only, directory / "a.tyn", files);
        if constexpr (!std::is_same_v<Heap, ArchiveHeap>) {
            if (with_undo) heap.attach_undo();
        }
        CompactOptions options;
        options.types.add<Document<InHeap>>();
        options.bytes_max = 4096;
        std::size_t refused = 0;
        for (std::int64_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 5000);
            const std::vector<std::uint64_t> before = places_of_blocks(heap);
            std::optional<CompactReport> report;
            scarce_memory = {k, true, sticky, 0};
            try {
                report = compact(heap, options);
            } catch (const std::bad_alloc&) {}
            scarce_memory.armed = false;
            BOOST_TEST_CONTEXT("allocation " << k << (sticky ? " and all behind it" : "")) {
                BOOST_TEST_REQUIRE((content_of(heap) == content));
                BOOST_TEST_REQUIRE((places_of_blocks(heap) != before) == report.has_value());
            }
            refused += report ? 0 : 1;
            if (scarce_memory.failed == 0) break;
        }
        BOOST_TEST(refused > 10U);
        while (!compact(heap, options).done()) {}
        BOOST_TEST(content_of(heap) == content);
        for (const Finding& finding : heap.verify().findings) BOOST_ERROR(finding.path << " at " << finding.offset << ": " << finding.what);
        heap.snapshot();
        heap.close();
    }
    const ArchiveHeap heap(open_read_only, directory / "a.tyn");
    BOOST_TEST(content_of(heap) == content);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(without_memory_a_step_of_compact_moves_nothing) {
    for (const bool sticky : {false, true}) {
        compact_without_memory<ArchiveHeap>(Capture::pages, false, sticky);
        for (const Capture capture : {Capture::pages, Capture::declared}) {
            compact_without_memory<SnapshotHeap>(capture, true, sticky);
            compact_without_memory<TransactionalHeap>(capture, false, sticky);
            compact_without_memory<TransactionalHeap>(capture, true, sticky);
        }
    }
}

BOOST_FIXTURE_TEST_CASE(stopped_at_any_step_both_ways_leave_nothing, Travellers) {
    // Asked to stop at its first step, its second, … until it comes to its end.
    const auto stop_at_each_step = [&](auto options, auto&& act) {
        for (std::size_t stop_at = 1;; ++stop_at) {
            BOOST_TEST_REQUIRE(stop_at < 100U);
            std::size_t steps = 0;
            std::stop_source stop;
            options.cancel = stop.get_token();
            options.progress = [&](std::uint64_t, std::uint64_t) {
                if (++steps == stop_at) stop.request_stop();
            };
            const Held before = Held::now();
            bool cancelled = false;
            try {
                act(options);
            } catch (const Error& error) {
                cancelled = error.code() == errc::cancelled;
            }
            BOOST_TEST(cancelled == (steps >= stop_at));
            BOOST_TEST(names_in(directory.path()).size() == files + (cancelled ? 0U : 1U));
            BOOST_TEST(Held::now() == before);
            if (!cancelled) {
                BOOST_TEST(stop_at > 5U);
                break;
            }
        }
    };
    for (const unsigned threads : {1U, 2U}) {
        stop_at_each_step(how(threads), [&](const CompressOptions& options) { compress(*heap, directory / "a.tyz", options); });
        fs::remove(directory / "a.tyz");
        ExpandOptions as;
        as.threads = threads;
        stop_at_each_step(as, [&](const ExpandOptions& options) { expand(std::span<const std::byte>(stream), directory / "b.tyn", options); });
        fs::remove(directory / "b.tyn");
    }
}

/// Takes so many pieces, then refuses, or throws.
class FailingBuffer final : public std::streambuf {
public:
    struct Thrown {};
    FailingBuffer(std::size_t pieces, bool throws) : left_(pieces), throws_(throws) {}

protected:
    std::streamsize xsputn(const char*, std::streamsize count) override {
        if (left_ == 0) {
            if (throws_) throw Thrown();
            return 0;
        }
        --left_;
        return count;
    }
    int_type overflow(int_type) override { return traits_type::eof(); }
    int sync() override { return left_ == 0 ? -1 : 0; }

private:
    std::size_t left_;
    bool throws_;
};

BOOST_FIXTURE_TEST_CASE(a_stream_that_fails_at_any_piece_ends_compressing_with_an_error, Travellers) {
    for (const unsigned threads : {1U, 2U}) {
        for (const bool throws : {false, true}) {
            for (const bool exceptions : {false, true}) {
                std::size_t refused = 0;
                for (std::size_t pieces = 0;; ++pieces) {
                    BOOST_TEST_REQUIRE(pieces < 100U);
                    FailingBuffer buffer(pieces, throws);
                    std::ostream out(&buffer);
                    if (exceptions) out.exceptions(std::ios::badbit);
                    bool failed = false;
                    try {
                        compress(*heap, out, how(threads));
                    } catch (const Error& error) {
                        failed = error.code() == errc::io_error;
                        BOOST_TEST(failed);
                    } catch (const std::ios::failure&) {
                        failed = exceptions;
                    } catch (const FailingBuffer::Thrown&) {
                        failed = exceptions && throws;
                    }
                    if (!failed) break;
                    ++refused;
                }
                BOOST_TEST(refused > 12U);
            }
        }
        for (std::size_t at = 1;; ++at) {
            struct Mine {};
            std::size_t pieces = 0;
            try {
                compress(
                    *heap,
                    [&](std::span<const std::byte>) {
                        if (++pieces == at) throw Mine();
                    },
                    how(threads));
                break;
            } catch (const Mine&) {
                BOOST_TEST(pieces == at);  // nothing comes behind it
            }
        }
    }
    edit_and_save(*heap, model, 20, 1);
    BOOST_TEST(content_of(*heap) == describe(model));
}

BOOST_FIXTURE_TEST_CASE(a_source_that_fails_at_any_piece_leaves_nothing, Travellers) {
    for (const unsigned threads : {1U, 2U}) {
        for (std::size_t at = 1;; ++at) {
            BOOST_TEST_REQUIRE(at < 200U);
            struct Mine {};
            std::size_t pieces = 0;
            ExpandOptions options;
            options.threads = threads;
            const auto source = [&, rest = std::span<const std::byte>(stream)](std::span<std::byte> bytes) mutable {
                if (++pieces == at) throw Mine();
                const std::size_t count = std::min(bytes.size(), rest.size());
                std::copy_n(rest.begin(), count, bytes.begin());
                rest = rest.subspan(count);
                return count;
            };
            try {
                expand(ByteSource(source), directory / "b.tyn", options);
                BOOST_TEST(at > 12U);
                break;
            } catch (const Mine&) {
                BOOST_TEST(names_in(directory.path()).size() == files);
            }
        }
        fs::remove(directory / "b.tyn");
    }
}

BOOST_FIXTURE_TEST_CASE(the_device_writes_a_heap_while_more_of_it_comes_and_is_asked_for_its_blocks_at_once, Travellers) {
    heap.reset();
    io::FaultyStorage storage(io::posix_storage());
    storage.arm({.at = 1000, .calls = io::Call::allocate});
    ByteCount begun_before_the_end = 0;
    const ByteSource source = [&, rest = std::span<const std::byte>(stream)](std::span<std::byte> bytes) mutable {
        begun_before_the_end = storage.begun_bytes();
        const std::size_t count = std::min(bytes.size(), rest.size());
        std::copy_n(rest.begin(), count, bytes.begin());
        rest = rest.subspan(count);
        return count;
    };
    ExpandOptions options;
    options.threads = 1;
    expand_to(storage, source, {}, false, directory / "b.tyn", options);
    BOOST_TEST(storage.calls() >= 1U);
    BOOST_TEST(storage.calls() <= 2U);  // the table of the newest chunk is not used to its end
    BOOST_TEST(begun_before_the_end >= 4_MiB);
    BOOST_TEST(storage.begun_bytes() >= 700'000 * sizeof(std::uint64_t));
    const auto made = io::posix_storage().find(directory / "b.tyn");
    BOOST_TEST(made->allocated_bytes >= made->size_bytes - 64_KiB);
    expect_sound(directory / "b.tyn");

    storage.arm({.at = 1000});
    options.address = anywhere;
    options.pointers.conservative = true;
    expand_to(storage, source_of(stream), {}, true, directory / "c.tyn", options);
    const auto moved = io::posix_storage().find(directory / "c.tyn");
    BOOST_TEST(storage.begun_bytes() <= moved->size_bytes);  // nothing of the draft
    BOOST_TEST(storage.begun_bytes() >= 4_MiB);
}

/// What one is compressed into or expanded to, on a disk where the k-th call fails.
struct SimulatedTravellers {
    io::SimulatedStorage disk;
    io::FaultyStorage faulty{disk};
    std::vector<std::byte> stream;
    SimulatedTravellers() {
        disk.add_directory("/disk");
        PersistentOptions options;
        options.capacity = 2_MiB;
        const auto heap = store::HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::create_only, HeapKind::archive, options, store::Tuning{32768});
        for (unsigned i = 0; i < 4; ++i) {
            void* const block = heap->allocate_durable(5000 * (i + 1), 16);
            std::memset(block, static_cast<int>(i + 1), 5000 * (i + 1));
            heap::add_named(*heap, "block " + std::to_string(i), {block, 5000 * (i + 1), 1, "text"});
        }
        heap->save();
        CompressOptions plain;
        plain.threads = 1;
        compress_to(*heap, [&](std::span<const std::byte> bytes) { stream.insert(stream.end(), bytes.begin(), bytes.end()); }, plain);
        heap->close();
    }
    std::vector<std::byte> bytes_at(const fs::path& path) {
        const auto file = disk.open(path, io::Access::read_only);
        std::vector<std::byte> bytes(file->info().size_bytes);
        bytes.resize(file->read(bytes, 0));
        return bytes;
    }
};

BOOST_FIXTURE_TEST_CASE(a_call_that_fails_leaves_the_old_compressed_heap_or_the_new_one, SimulatedTravellers) {
    const auto source = store::HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::read_only, HeapKind::archive, {}, store::Tuning{32768});
    CompressOptions options;
    options.threads = 1;
    for (const bool again : {false, true}) {
        for (const bool sticky : {false, true}) {
            std::size_t refused = 0;
            for (std::uint64_t at = 1;; ++at) {
                BOOST_TEST_REQUIRE(at < 200U);
                if (again) {
                    disk.take_away("/disk/a.tyz");
                    compress_to(*source, disk, "/disk/a.tyz", options);
                } else if (disk.find("/disk/a.tyz")) {
                    disk.take_away("/disk/a.tyz");
                }
                const std::size_t files = disk.files().size();
                faulty.arm({.at = at, .sticky = sticky});
                bool failed = false;
                try {
                    compress_to(*source, faulty, "/disk/a.tyz", options);
                } catch (const Error&) {
                    failed = true;
                }
                const bool fired = faulty.fired() != 0;
                faulty.disarm();
                BOOST_TEST_CONTEXT("call " << at << (sticky ? " and all behind it" : "") << (again ? ", again" : "")) {
                    // Nothing half: where the name is, it is whole. Only a name beside the old one may be left, if removing it fails, too.
                    if (disk.find("/disk/a.tyz")) {
                        BOOST_TEST((bytes_at("/disk/a.tyz") == stream));
                    } else {
                        BOOST_TEST(!again);
                        BOOST_TEST(failed);
                    }
                    const std::size_t more = disk.files().size() - files;
                    BOOST_TEST(more <= (again ? (sticky ? 1U : 0U) : 1U));
                    for (const auto& [path, node] : disk.files())
                        if (path.string().ends_with(".new")) disk.take_away(path);
                }
                refused += failed ? 1 : 0;
                if (!fired) break;
            }
            BOOST_TEST(refused > 5U);
        }
    }
}

BOOST_FIXTURE_TEST_CASE(a_call_that_fails_leaves_no_heap_or_a_whole_one, SimulatedTravellers) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        std::size_t refused = 0;
        for (std::uint64_t at = 1;; ++at) {
            BOOST_TEST_REQUIRE(at < 500U);
            ExpandOptions options;
            options.threads = 1;
            options.kind = kind;
            options.log_capacity = 64_KiB;
            const auto source = [rest = std::span<const std::byte>(stream)](std::span<std::byte> bytes) mutable {
                const std::size_t count = std::min(bytes.size(), rest.size());
                std::copy_n(rest.begin(), count, bytes.begin());
                rest = rest.subspan(count);
                return count;
            };
            faulty.arm({.at = at});
            bool failed = false;
            try {
                expand_to(faulty, source, {}, true, "/disk/b.tyn", options);
            } catch (const Error&) {
                failed = true;
            }
            const bool fired = faulty.fired() != 0;
            faulty.disarm();
            BOOST_TEST_CONTEXT("call " << at) {
                if (!disk.find("/disk/b.tyn")) {
                    BOOST_TEST(failed);
                    BOOST_TEST(disk.files().size() == 1U);
                } else {  // also if the sync of its name is what failed
                    const auto heap =
                        store::HeapFile::open(disk, "/disk/b.tyn", store::OpenMode::read_only, HeapKind::archive, {}, store::Tuning{32768});
                    BOOST_TEST(heap->engine().check(1).empty());
                    BOOST_TEST(heap->engine().roots().size() == 4U);
                    heap->close();
                }
            }
            for (const char* const name : {"b.tyn", "b.tyn.data", "b.tyn.log", "b.tyn.journal"})
                if (disk.find(std::string("/disk/") + name)) disk.take_away(std::string("/disk/") + name);
            refused += failed ? 1 : 0;
            if (!fired) break;
        }
        BOOST_TEST(refused > 8U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
