// Several openers of one heap that isn't there yet: each opens it, or is told that it is busy.

#include <array>
#include <functional>
#include <memory>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "heap_probe.hpp"
#include "log/forwarding_file.hpp"
#include "store/recovery.hpp"
#include "threads.hpp"

BOOST_AUTO_TEST_SUITE(racing_creation)

namespace {
using namespace probe;

/// The real storage, where something happens before the call of a number: of the storage itself, or for a lock.
class MeddledStorage final : public io::Storage {
public:
    MeddledStorage(unsigned call, std::function<void()> action) : call_(call), action_(std::move(action)) {}
    bool has_acted() const { return calls_ > call_; }

    std::vector<std::string> list(const std::filesystem::path& directory) override { return inner_.list(directory); }
    std::optional<io::FileInfo> find(const std::filesystem::path& path) override {
        step();
        return inner_.find(path);
    }
    std::unique_ptr<io::File> open(const std::filesystem::path& path, io::Access access) override {
        step();
        return std::make_unique<MeddledFile>(*this, inner_.open(path, access));
    }
    std::unique_ptr<io::File> create(const std::filesystem::path& path) override { return inner_.create(path); }
    std::unique_ptr<io::File> create_unnamed(const std::filesystem::path& directory) override {
        step();
        return inner_.create_unnamed(directory);
    }
    void publish(io::File& file, const std::filesystem::path& path) override {
        step();
        inner_.publish(file, path);
    }
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, io::Existing existing) override {
        inner_.rename(from, to, existing);
    }
    bool remove(const std::filesystem::path& path) override {
        step();
        return inner_.remove(path);
    }
    void sync_directory(const std::filesystem::path& directory) override {
        step();
        inner_.sync_directory(directory);
    }

private:
    class MeddledFile final : public log::test::ForwardingFile {
    public:
        MeddledFile(MeddledStorage& storage, std::shared_ptr<io::File> inner) : ForwardingFile(std::move(inner)), storage_(storage) {}
        bool try_lock(io::Lock lock) override {
            storage_.step();
            return ForwardingFile::try_lock(lock);
        }

    private:
        MeddledStorage& storage_;
    };

    void step() {
        if (calls_++ == call_) action_();
    }

    io::Storage& inner_ = io::posix_storage();
    unsigned call_;
    unsigned calls_ = 0;
    std::function<void()> action_;
};

std::optional<ArchiveHeap> open_heap(io::Storage& storage, const std::filesystem::path& path, HeapKind kind) {
    try {
        return HeapAccess::make<ArchiveHeap>(store::HeapFile::open(storage, path, store::OpenMode::open_or_create, kind, small_heap()));
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::busy), error.what());
        return std::nullopt;
    }
}

/// Opens the heap if it can, and saves something there.
std::optional<ArchiveHeap> save_there(io::Storage& storage, const std::filesystem::path& path, HeapKind kind, const char* name) {
    std::optional<ArchiveHeap> heap = open_heap(storage, path, kind);
    if (heap) {
        put(*heap, name, "saved");
        heap->snapshot();
    }
    return heap;
}

enum class End { saved, busy, killed };

/// Saves in a process of its own, which is killed then, or before.
End save_in_a_process(io::Storage& storage, const std::filesystem::path& path, HeapKind kind) {
    const pid_t child = ::fork();
    if (child == 0) {
        const auto heap = save_there(storage, path, kind, "other");
        ::_exit(static_cast<int>(heap ? End::saved : End::busy));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return static_cast<End>(WEXITSTATUS(status));
}

/// Nobody waits for a lock that doesn't go: everything here runs in one order.
struct NoPatience {
    std::chrono::milliseconds before = store::lock_goes_within.exchange(std::chrono::milliseconds(0));
    ~NoPatience() { store::lock_goes_within = before; }
};

using Kinds = std::pair<HeapKind, HeapKind>;
constexpr std::array all_kinds{Kinds{HeapKind::archive, HeapKind::archive}, Kinds{HeapKind::snapshot, HeapKind::snapshot},
                               Kinds{HeapKind::archive, HeapKind::snapshot}, Kinds{HeapKind::snapshot, HeapKind::archive}};

/// Runs `other`, which says whether its save is acknowledged, before each call of one who opens or creates a heap.
template <class Other>
void meddle_everywhere(Other&& other, std::span<const Kinds> kinds = all_kinds) {
    const NoPatience now;
    for (const auto& [kind, others_kind] : kinds) {
        bool acted = true;
        for (unsigned call = 0; acted; ++call) {
            BOOST_TEST_CONTEXT("kinds " << static_cast<int>(kind) << " and " << static_cast<int>(others_kind) << ", before call " << call) {
                const ScratchDirectory dir;
                std::optional<ArchiveHeap> kept;
                bool saved = false;
                MeddledStorage storage(call, [&, of = others_kind] { saved = other(dir / "a.tyn", of, kept); });
                const bool ours = save_there(storage, dir / "a.tyn", kind, "ours").has_value();
                acted = storage.has_acted();
                kept.reset();
                const auto after = open_heap(io::posix_storage(), dir / "a.tyn", kind);
                BOOST_REQUIRE(after.has_value());
                BOOST_TEST((find(*after, "ours") != nullptr) == ours);
                BOOST_TEST((find(*after, "other") != nullptr) == saved);
            }
        }
    }
}
}  // namespace

BOOST_AUTO_TEST_CASE(one_who_creates_and_closes_the_heap_meanwhile_disturbs_no_opener) {
    meddle_everywhere([](const std::filesystem::path& path, HeapKind kind, std::optional<ArchiveHeap>&) {
        return save_there(io::posix_storage(), path, kind, "other").has_value();
    });
}

BOOST_AUTO_TEST_CASE(one_who_creates_and_keeps_the_heap_meanwhile_makes_it_busy) {
    meddle_everywhere([](const std::filesystem::path& path, HeapKind kind, std::optional<ArchiveHeap>& kept) {
        kept = save_there(io::posix_storage(), path, kind, "other");
        return kept.has_value();
    });
}

BOOST_AUTO_TEST_CASE(one_who_creates_the_heap_meanwhile_and_is_killed_disturbs_no_opener) {
    meddle_everywhere([](const std::filesystem::path& path, HeapKind kind, std::optional<ArchiveHeap>&) {
        return save_in_a_process(io::posix_storage(), path, kind) == End::saved;
    });
}

BOOST_AUTO_TEST_CASE(one_who_is_killed_while_creating_the_heap_disturbs_no_opener) {
    bool killed = true;
    for (unsigned last = 0; killed; ++last) {
        BOOST_TEST_CONTEXT("killed before its call " << last) {
            killed = false;
            const auto other = [&](const std::filesystem::path& path, HeapKind kind, std::optional<ArchiveHeap>&) {
                MeddledStorage storage(last, [] { ::_exit(static_cast<int>(End::killed)); });
                const End end = save_in_a_process(storage, path, kind);
                killed = killed || end == End::killed;
                return end == End::saved;
            };
            meddle_everywhere(other, {&all_kinds[1], 1});
        }
    }
}

BOOST_AUTO_TEST_CASE(of_openers_that_race_each_opens_the_heap_or_is_told_that_it_is_busy, *boost::unit_test::label("threads")) {
    const NoPatience now;
    const ScratchDirectory dir;
    for (unsigned round = 0; round < 40; ++round) {
        const std::filesystem::path path = dir / ("heap " + std::to_string(round));
        std::array<bool, 4> saved{};
        taiyen::test::at_once(4, [&](unsigned thread) {
            for (int attempt = 0; attempt < 4; ++attempt) {
                try {
                    const HeapKind kind = (thread + round) % 3 == 0 ? HeapKind::archive : HeapKind::snapshot;
                    auto heap = HeapAccess::make<ArchiveHeap>(
                        store::HeapFile::open(io::posix_storage(), path, store::OpenMode::open_or_create, kind, small_heap()));
                    if (saved[thread]) continue;
                    put(heap, std::to_string(thread), "saved");
                    heap.snapshot();
                    saved[thread] = true;
                } catch (const Error& error) {
                    if (error.code() != errc::busy) throw;
                }
            }
        });
        const ArchiveHeap heap(open_or_create, path);
        for (unsigned thread = 0; thread < 4; ++thread) BOOST_TEST((find(heap, std::to_string(thread)) != nullptr) == saved[thread]);
    }
}

BOOST_AUTO_TEST_SUITE_END()
