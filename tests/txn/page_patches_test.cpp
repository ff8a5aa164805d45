// What a piece of the log makes of pages: with all images at once, and by the batch.

#include "txn/page_patches.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <boost/test/unit_test.hpp>

#include <taiyen/change/procedure.hpp>

#include "log/memory_file.hpp"
#include "seed.hpp"
#include "txn/log_records.hpp"
#include "txn/transaction_service.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;
using txn::PagePatches;

struct PatchesFixture : TransactionFixture {
    using Bytes = taiyen::vector<char>;

    PagePatches patches(ByteCount images_max) {
        store::HeapFile& file = HeapAccess::file(*heap);
        const log::GroupLog& log = txn::TransactionService::of(file)->log();
        PagePatches made(log.file(), log.identity(), file.files().point().log_start, file.files().durable_serial(), log.durable(),
                         file.ranges().durable_bytes, images_max);
        made.read([&](PageNumber page, std::span<std::byte> image) {
            ++bases;
            file.saves().read_base(page, image);
        });
        return made;
    }
    std::vector<std::byte> bytes(const PagePatches& from) {
        const AlignedBuffer images(from.pages().size() * page_bytes);
        if (from.has_images()) {
            from.copy_images(from.pages(), images.span());
        } else {
            for (std::size_t i = 0; i < from.pages().size(); ++i)
                HeapAccess::file(*heap).saves().read_base(from.pages()[i], images.span().subspan(i * page_bytes, page_bytes));
            from.patch(from.pages(), images.span());
        }
        return {images.span().begin(), images.span().end()};
    }
    /// The pages as the program sees them.
    std::vector<std::byte> live(const PagePatches& from) {
        std::vector<std::byte> all;
        const auto* const span = reinterpret_cast<const std::byte*>(HeapAccess::file(*heap).ranges().durable);
        for (const PageNumber page : from.pages()) all.insert(all.end(), span + offset_of(page).value, span + offset_of(page).value + page_bytes);
        return all;
    }
    void change(std::mt19937_64& random) {
        Transaction transaction(*heap);
        Bytes& bytes = heap->find_or_construct<Bytes>("bytes");
        bytes.resize(random() % 60'000);
        for (int i = 0; i < 20 && !bytes.empty(); ++i) {
            const std::size_t at = random() % bytes.size();
            std::memset(bytes.data() + at, static_cast<int>(random() % 3), std::min<std::size_t>(bytes.size() - at, random() % 9000));
        }
        transaction.commit();
    }
    int bases = 0;
};

BOOST_FIXTURE_TEST_SUITE(page_patches, PatchesFixture)

BOOST_AUTO_TEST_CASE(images_made_as_pages_turn_up_are_those_made_by_the_batch_and_the_live_ones) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    replace(with);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 10; ++i) change(random);
        const PagePatches whole = patches(ByteCount{64} << 20U);
        BOOST_TEST_REQUIRE(whole.has_images());
        BOOST_TEST(!whole.pages().empty());
        const PagePatches piecewise = patches(2 * page_bytes);
        BOOST_TEST(!piecewise.has_images());
        BOOST_TEST((whole.pages() == piecewise.pages()));
        BOOST_TEST((whole.extent() == piecewise.extent()));
        BOOST_TEST((bytes(whole) == live(whole)));
        BOOST_TEST((bytes(piecewise) == live(whole)));
        heap->snapshot();
    }
}

BOOST_AUTO_TEST_CASE(a_piece_without_transactions_changes_nothing) {
    push(1);
    heap->snapshot();
    const PagePatches none = patches(page_bytes);
    BOOST_TEST(none.pages().empty());
    BOOST_TEST(bases == 0);
}

BOOST_AUTO_TEST_CASE(more_pages_than_the_index_began_with_room_for_keep_their_images) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    replace(with);
    constexpr std::size_t pages = 700;
    {
        Transaction transaction(*heap);
        Bytes& bytes = heap->construct<Bytes>("bytes");
        bytes.resize(pages * page_bytes);
        for (std::size_t i = 0; i < pages; ++i) bytes[i * page_bytes + i] = static_cast<char>(1 + i % 100);
        transaction.commit();
    }
    const PagePatches whole = patches(ByteCount{64} << 20U);
    BOOST_TEST_REQUIRE(whole.has_images());
    BOOST_TEST(whole.pages().size() > pages);
    BOOST_TEST((bytes(whole) == live(whole)));
    const PagePatches piecewise = patches(2 * page_bytes);
    BOOST_TEST((whole.pages() == piecewise.pages()));
    piecewise.patch({}, {});
    BOOST_TEST((bytes(piecewise) == live(whole)));
}

BOOST_AUTO_TEST_CASE(a_piece_that_calls_a_procedure_needs_the_heap_and_makes_no_images_from_there_on) {
    const auto set = [](ProcedureHeap& in, char value) { std::ranges::fill(*in.find<Bytes>("bytes"), value); };
    register_procedure("page patches set", set, set);
    {
        Transaction transaction(*heap);
        heap->construct<Bytes>("bytes").resize(100'000);
        transaction.commit();
    }
    heap->snapshot();
    const auto saves = HeapAccess::file(*heap).files().hold_saves();
    {
        Transaction transaction(*heap);
        transaction.call("page patches set", 'x');
        transaction.commit();
    }
    store::HeapFile& file = HeapAccess::file(*heap);
    const log::GroupLog& log = txn::TransactionService::of(file)->log();
    PagePatches made(log.file(), log.identity(), file.files().point().log_start, file.files().durable_serial(), log.durable(),
                     file.ranges().durable_bytes, ByteCount{64} << 20U);
    made.read([&](PageNumber, std::span<std::byte>) { ++bases; });
    BOOST_TEST(made.needs_heap());
    BOOST_TEST(!made.has_images());
    BOOST_TEST(made.pages().empty());
    BOOST_TEST(bases == 0);
}

BOOST_AUTO_TEST_CASE(images_may_take_exactly_as_much_as_they_need) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    replace(with);
    for (int i = 0; i < 5; ++i) change(random);
    const std::size_t pages = patches(ByteCount{64} << 20U).pages().size();
    BOOST_TEST(patches(pages * page_bytes).has_images());
    BOOST_TEST(!patches((pages - 1) * page_bytes).has_images());
}

BOOST_AUTO_TEST_SUITE_END()

/// Transactions of one entry each, on a heap of four pages whose bytes the test knows.
struct OneEntry {
    static constexpr ByteCount extent = 4 * page_bytes;
    using Bytes = std::vector<std::byte>;

    void add(std::uint64_t begin, std::uint64_t end, bool zeroes) {
        change::ChangeSet set;
        const Bytes after(end - begin, zeroes ? std::byte{0} : static_cast<std::byte>(100 + serial));
        set.add_bytes({begin}, Bytes(after.size(), std::byte{'b'}), after);
        ++serial;
        const log::Record group = txn::test::group_of(txn::test::record_of(set, {serial, extent, 0, 0}), serial);
        const std::span<const std::byte> payload(group.payload);
        ring.append(group.kind, group.number, {&payload, 1});
        std::ranges::copy(after, now.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    PagePatches patches(ByteCount images_max) {
        PagePatches made(*file, identity, start, {0}, {serial}, 64 * extent, images_max);
        made.read([&](PageNumber page, std::span<std::byte> image) {
            asked.push_back(page);
            std::ranges::copy(page_in(base, page), image.begin());
        });
        return made;
    }
    static std::span<const std::byte> page_in(const Bytes& bytes, PageNumber page) {
        return std::span(bytes).subspan(offset_of(page).value, page_bytes);
    }
    static bool holds(const AlignedBuffer& images, std::span<const PageNumber> pages, const Bytes& expected) {
        for (std::size_t i = 0; i < pages.size(); ++i)
            if (!std::ranges::equal(images.span().subspan(i * page_bytes, page_bytes), page_in(expected, pages[i]))) return false;
        return true;
    }

    log::RingIdentity identity{random_uuid(), random_uuid(), 256_KiB, false};
    log::RingStart start{{7}, 0, 1, 9};
    std::shared_ptr<log::test::MemoryFile> file = [this] {
        auto made = std::make_shared<log::test::MemoryFile>();
        made->bytes.resize(log::Ring::header_bytes + identity.capacity_bytes);
        return made;
    }();
    log::Ring ring{file, identity, start, 0};
    std::uint64_t serial = 0;
    Bytes base = Bytes(extent, std::byte{'b'});
    Bytes now = base;
    std::vector<PageNumber> asked;
};

BOOST_AUTO_TEST_SUITE(page_patches_of_one_entry)

BOOST_AUTO_TEST_CASE(an_entry_changes_its_bytes_to_the_last_one_and_no_other_wherever_it_begins_and_ends) {
    constexpr std::uint64_t edges[] = {0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 12'287, 12'288, 12'289, 16'383, 16'384};
    for (const std::uint64_t begin : edges) {
        for (const std::uint64_t end : edges) {
            if (begin >= end) continue;
            BOOST_TEST_CONTEXT("bytes " << begin << " to " << end) {
                OneEntry heap;
                heap.add(begin, end, (begin + end) % 3 == 0);
                std::vector<PageNumber> changed;
                std::vector<PageNumber> partly;
                for (std::uint64_t page = begin / page_bytes; page * page_bytes < end; ++page) {
                    changed.push_back({page});
                    if (begin > page * page_bytes || end < (page + 1) * page_bytes) partly.push_back({page});
                }
                const PagePatches patches = heap.patches(OneEntry::extent);
                BOOST_TEST((patches.pages() == changed));
                BOOST_TEST((heap.asked == partly));  // what is overwritten is not read
                const AlignedBuffer images(OneEntry::extent);
                patches.copy_images(changed, images.span().first(changed.size() * page_bytes));
                BOOST_TEST(OneEntry::holds(images, changed, heap.now));
                for (std::uint64_t first = 0; first < 4; ++first) {
                    for (std::uint64_t last = first; last < 4; ++last) {
                        std::vector<PageNumber> batch;
                        for (std::uint64_t page = first; page <= last; ++page) batch.push_back({page});
                        std::ranges::fill(images.span(), std::byte{'b'});
                        patches.patch(batch, images.span().first(batch.size() * page_bytes));
                        BOOST_TEST(OneEntry::holds(images, batch, heap.now), "batch of pages " << first << " to " << last);
                    }
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(of_entries_that_overlap_the_later_one_counts) {
    OneEntry heap;
    heap.add(4096, 8192, false);
    heap.add(4095, 4097, false);
    heap.add(8191, 8193, true);
    heap.add(0, 4096, false);
    heap.add(4095, 4096, false);
    const PagePatches patches = heap.patches(OneEntry::extent);
    const AlignedBuffer images(3 * page_bytes);
    patches.copy_images(patches.pages(), images.span());
    BOOST_TEST(OneEntry::holds(images, patches.pages(), heap.now));
    std::ranges::fill(images.span(), std::byte{'b'});
    patches.patch(patches.pages(), images.span());
    BOOST_TEST(OneEntry::holds(images, patches.pages(), heap.now));
}

BOOST_AUTO_TEST_CASE(the_images_of_a_batch_are_those_of_its_pages_also_when_it_leaves_some_out) {
    OneEntry heap;
    for (const std::uint64_t page : {3U, 0U, 2U}) heap.add(page * page_bytes + 4095, page * page_bytes + 4096, false);
    const PagePatches patches = heap.patches(OneEntry::extent);
    const PageNumber some[] = {{0}, {3}};
    const AlignedBuffer images(std::size(some) * page_bytes);
    patches.copy_images(some, images.span());
    BOOST_TEST(OneEntry::holds(images, some, heap.now));
    std::ranges::fill(images.span(), std::byte{'b'});
    patches.patch(some, images.span());
    BOOST_TEST(OneEntry::holds(images, some, heap.now));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
