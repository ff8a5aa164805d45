// What a piece of the log makes of pages: with all images at once, and by the batch.

#include "txn/page_patches.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <boost/test/unit_test.hpp>

#include <taiyen/change/procedure.hpp>

#include "seed.hpp"
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
        PagePatches made(log.file(), log.identity(), file.log_start(), file.serial(), log.durable(), file.ranges().durable_bytes, images_max);
        made.read([&](PageNumber page, std::span<std::byte> image) {
            ++bases;
            file.read_base(page, image);
        });
        return made;
    }
    std::vector<std::byte> bytes(const PagePatches& from) {
        const AlignedBuffer images(from.pages().size() * page_bytes);
        if (from.has_images()) {
            from.copy_images(from.pages(), images.span());
        } else {
            for (std::size_t i = 0; i < from.pages().size(); ++i)
                HeapAccess::file(*heap).read_base(from.pages()[i], images.span().subspan(i * page_bytes, page_bytes));
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
    const auto saves = HeapAccess::file(*heap).hold_saves();
    {
        Transaction transaction(*heap);
        transaction.call("page patches set", 'x');
        transaction.commit();
    }
    store::HeapFile& file = HeapAccess::file(*heap);
    const log::GroupLog& log = txn::TransactionService::of(file)->log();
    PagePatches made(log.file(), log.identity(), file.log_start(), file.serial(), log.durable(), file.ranges().durable_bytes, ByteCount{64} << 20U);
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

}  // namespace
