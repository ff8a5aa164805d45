// What a heap knows of its objects' types, after the program was rebuilt: fingerprints of older heaps, of other layouts, and when they are replaced.
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>
#include <utility>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/stl/shape_of.hpp>
#include <taiyen/store/snapshot_heap.hpp>
#include <taiyen/txn/read_lock.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>
#include <taiyen/undo/history.hpp>
#include <taiyen/undo/scope.hpp>

#include "heap/core.hpp"
#include "scratch_directory.hpp"
#include "shape/encoding.hpp"
#include "throws.hpp"

using namespace taiyen;
using taiyen::test::throws;

BOOST_AUTO_TEST_SUITE(changed_types)

using Numbers = taiyen::map<int, int>;

std::string told_by_older_programs() {
    const std::string now = stl::fingerprint<Numbers>();
    return now.substr(0, now.find(heap::inside_mark));
}
std::string of_another_layout() {
    std::string text = stl::fingerprint<Numbers>();
    text.back() = text.back() == '0' ? '1' : '0';
    return text;
}
std::string stored(const ArchiveHeap& heap) { return heap::find_named(*heap.core(), "numbers")->fingerprint; }

/// A heap of that kind with "numbers" as a program left it whose fingerprints were these.
template <class Heap>
void make(const std::string& path, const std::string& fingerprint) {
    Heap heap(create_only, path);
    const auto fill = [&] {
        heap.template construct<Numbers>("numbers").emplace(1, 2);
        heap.core()->engine().retype_root("numbers", fingerprint);
    };
    if constexpr (std::is_same_v<Heap, TransactionalHeap>) {
        transact(heap, fill);
    } else {
        fill();
        heap.snapshot();
    }
}

BOOST_AUTO_TEST_CASE(an_object_of_an_older_program_is_found_and_gets_its_fingerprint_with_the_next_save) {
    const ScratchDirectory directory;
    const std::string path = directory / "numbers.tyn";
    make<ArchiveHeap>(path, told_by_older_programs());
    {
        const ArchiveHeap heap(open_read_only, path);
        BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);
    }
    {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);
        BOOST_TEST(heap.dirty_bytes() == 0U);  // nothing to save but that
        heap.close();
    }
    {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST(stored(heap) == told_by_older_programs());
        heap.find_or_construct<Numbers>("numbers").at(1) = 2;
        heap.snapshot();
        BOOST_TEST(stored(heap) == told_by_older_programs());  // a save that changes nothing else stores nothing
        heap.find_or_construct<Numbers>("numbers").emplace(3, 4);
        heap.snapshot();
    }
    ArchiveHeap heap(open_only, path);
    BOOST_TEST(stored(heap) == stl::fingerprint<Numbers>());
    BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);
    BOOST_TEST(throws(errc::type_mismatch, [&] { heap.find<taiyen::set<int>>("numbers"); }));
}

BOOST_AUTO_TEST_CASE(another_layout_inside_is_refused_until_the_program_says_that_it_is_right) {
    const ScratchDirectory directory;
    const std::string path = directory / "numbers.tyn";
    make<ArchiveHeap>(path, of_another_layout());
    const auto mismatch = [](const Error& error) {
        const std::string text = error.what();
        return error.code() == errc::type_mismatch && text.find("another size, alignment or version") != std::string::npos &&
               text.find("taiyen::accept_layout") != std::string::npos && text.find("numbers.tyn") != std::string::npos &&
               text.find("std::map<int, int") != std::string::npos;
    };
    {
        ArchiveHeap heap(open_only, path);
        BOOST_CHECK_EXCEPTION(heap.find<Numbers>("numbers"), Error, mismatch);
        BOOST_CHECK_EXCEPTION(std::as_const(heap).find<Numbers>("numbers"), Error, mismatch);
        BOOST_CHECK_EXCEPTION(heap.find_or_construct<Numbers>("numbers"), Error, mismatch);
        BOOST_CHECK_EXCEPTION(heap.destroy<Numbers>("numbers"), Error, mismatch);
        BOOST_TEST(throws(errc::type_mismatch, [&] { heap.find<taiyen::set<int>>("numbers", accept_layout); }));
        BOOST_TEST((heap.find<Numbers>("nothing", accept_layout) == nullptr));
        BOOST_TEST(heap.find<Numbers>("numbers", accept_layout)->at(1) == 2);
        BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);  // from now on
    }
    {
        ArchiveHeap heap(open_read_only, path);
        BOOST_CHECK_EXCEPTION(heap.find<Numbers>("numbers"), Error, mismatch);  // it was not saved
        BOOST_TEST(heap.find<Numbers>("numbers", accept_layout)->at(1) == 2);
    }
    {
        ArchiveHeap heap(open_only, path);
        heap.find<Numbers>("numbers", accept_layout)->emplace(3, 4);
        heap.snapshot();
    }
    ArchiveHeap heap(open_only, path);
    BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);
    BOOST_TEST(heap.destroy<Numbers>("numbers"));
}

BOOST_AUTO_TEST_CASE(a_transactional_heap_gets_it_with_the_next_transaction) {
    const ScratchDirectory directory;
    const std::string path = directory / "numbers.tyn";
    make<TransactionalHeap>(path, told_by_older_programs());
    {
        TransactionalHeap heap(open_only, path);
        BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);  // outside a transaction, which must not change anything
        {
            const ReadLock lock(heap);
            BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);
        }
        BOOST_TEST(stored(heap) == told_by_older_programs());
        transact(heap, [] {});  // which changes nothing, and is none
        BOOST_TEST(stored(heap) == told_by_older_programs());
        heap.find<Numbers>("numbers");
        transact(heap, [&] { ++heap.find<Numbers>("numbers")->at(1); });
        BOOST_TEST(stored(heap) == stl::fingerprint<Numbers>());
    }
    TransactionalHeap heap(open_only, path);
    BOOST_TEST(stored(heap) == stl::fingerprint<Numbers>());
    const ReadLock lock(heap);
    BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 3);
    BOOST_TEST(heap.core()->engine().check(1).empty());
}

BOOST_AUTO_TEST_CASE(with_undo_attached_it_is_part_of_the_next_step_and_forgets_no_redo) {
    const ScratchDirectory directory;
    const std::string path = directory / "numbers.tyn";
    make<SnapshotHeap>(path, told_by_older_programs());
    {
        SnapshotHeap heap(open_only, path);
        heap.attach_undo();
        {
            UndoScope scope(heap, "step");
            ++heap.find<Numbers>("numbers")->at(1);
            scope.commit();
        }
        BOOST_TEST(heap.undo());
        BOOST_TEST(heap.can_redo());
        heap.find<Numbers>("numbers");
        heap.snapshot();
        BOOST_TEST(heap.can_redo());
        BOOST_TEST(stored(heap) == told_by_older_programs());
        UndoScope(heap, "nothing").commit();
        BOOST_TEST(stored(heap) == told_by_older_programs());
        UndoScope scope(heap, "another step");
        heap.find<Numbers>("numbers")->emplace(3, 4);
        scope.commit();
        BOOST_TEST(stored(heap) == stl::fingerprint<Numbers>());
        heap.snapshot();
    }
    SnapshotHeap heap(open_only, path);
    BOOST_TEST(stored(heap) == stl::fingerprint<Numbers>());
    heap.attach_undo();
    BOOST_TEST(heap.undo_name() == "another step");
    BOOST_TEST(heap.undo());
    BOOST_TEST(heap.find<Numbers>("numbers")->at(1) == 2);
}

/// What is announced and stays as it was is no change, either.
BOOST_AUTO_TEST_CASE(of_declared_writes_those_that_change_something_take_it_along) {
    const ScratchDirectory directory;
    const std::string path = directory / "numbers.tyn";
    make<SnapshotHeap>(path, told_by_older_programs());
    PersistentOptions options;
    options.capture = Capture::declared;
    SnapshotHeap heap(open_only, path, options);
    heap.attach_undo();
    const auto announce = [&](int change) {
        UndoScope scope(heap, "step");
        int& number = heap.find<Numbers>("numbers")->at(1);
        scope.touch(&number, sizeof number);
        number += change;
        scope.commit();
    };
    announce(0);
    BOOST_TEST(stored(heap) == told_by_older_programs());
    announce(1);
    BOOST_TEST(stored(heap) == stl::fingerprint<Numbers>());
}

BOOST_AUTO_TEST_CASE(a_name_that_leads_to_another_object_by_then_keeps_its_own_fingerprint) {
    const ScratchDirectory directory;
    const std::string path = directory / "numbers.tyn";
    make<ArchiveHeap>(path, told_by_older_programs());
    ArchiveHeap heap(open_only, path);
    heap.find<Numbers>("numbers");
    heap.destroy<Numbers>("numbers");
    heap.construct<int>("numbers", 7);
    heap.snapshot();
    BOOST_TEST(stored(heap) == stl::fingerprint<int>());
    BOOST_TEST(*heap.find<int>("numbers") == 7);
}

namespace before {
struct Item {
    std::int32_t count;
    std::int32_t weight;
};
}  // namespace before
namespace after {
struct Item {
    std::int32_t count;
    double weight;
    taiyen::string name;
};
}  // namespace after

/// What the action says, which has to fail for its types.
template <class F>
std::string mismatch_of(F&& action) {
    try {
        action();
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::type_mismatch));
        return error.what();
    }
    BOOST_ERROR("nothing was thrown");
    return {};
}

BOOST_AUTO_TEST_CASE(another_type_is_refused_field_by_field) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn");
    heap.construct<taiyen::vector<before::Item>>("items");
    const std::string text = mismatch_of([&] { heap.find<taiyen::vector<after::Item>>("items"); });
    BOOST_TEST(text.find("): changed_types::after::Item.name (string) is new; changed_types::after::Item took 8 bytes, takes 56; "
                         "changed_types::after::Item.weight was int32_t, is double; use the type") != std::string::npos,
               text);
    BOOST_TEST(mismatch_of([&] { std::as_const(heap).find<taiyen::vector<after::Item>>("items"); }) == text);
    BOOST_TEST(mismatch_of([&] { heap.find<int>("items"); }).find("cxx11); use the type") != std::string::npos);
}

/// As another program's: the same type by its name and its size, with two fields that have changed places.
BOOST_AUTO_TEST_CASE(the_same_bytes_that_meant_something_else_are_refused_until_the_program_says_that_they_are_right) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    using before::Item;
    const std::string fingerprint = stl::fingerprint<Item>();
    Shape other = shape_of<Item>();
    std::swap(other.nodes[0].parts[0].name, other.nodes[0].parts[1].name);
    {
        ArchiveHeap heap(create_only, path);
        heap.construct<Item>("item", 1, 2);
        heap.construct<Item>("another", 3, 4);
        heap.core()->engine().set_shape(fingerprint, shape::encode(other));
        heap.snapshot();
    }
    const auto is_told = [](const std::string& text, const std::string& name) {
        return text.find("object '" + name + "' was stored by a program to which the bytes of changed_types::before::Item") != std::string::npos &&
               text.find("Item.weight lay at byte 0, lies at 4; ") != std::string::npos;
    };
    {
        const ArchiveHeap heap(open_read_only, path);
        for (int i = 0; i < 2; ++i) BOOST_TEST(is_told(mismatch_of([&] { heap.find<Item>("item"); }), "item"));
    }
    {
        ArchiveHeap heap(open_only, path);
        for (int i = 0; i < 2; ++i) BOOST_TEST(is_told(mismatch_of([&] { heap.find<Item>("item"); }), "item"));
        BOOST_TEST(is_told(mismatch_of([&] { heap.destroy<Item>("item"); }), "item"));
        BOOST_TEST(is_told(mismatch_of([&] { heap.construct<Item>("third", 5, 6); }), "another"));
        BOOST_TEST(heap.find<Item>("item", accept_layout)->count == 1);
        BOOST_TEST(heap.find<Item>("another")->count == 3);  // it is said of the type
        BOOST_TEST(std::as_const(heap).find<Item>("another")->count == 3);
        heap.construct<Item>("third", 5, 6);
        heap.snapshot();
    }
    {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST(heap.find<Item>("third")->weight == 6);
        for (const char* const name : {"item", "another", "third"}) BOOST_TEST(heap.destroy<Item>(name));
        heap.core()->engine().set_shape(fingerprint, shape::encode(other));
        heap.snapshot();
    }
    ArchiveHeap heap(open_only, path);  // where no object is left, nothing is taken for something else
    heap.construct<Item>("item", 1, 2);
    heap.snapshot();
    BOOST_TEST((*heap.core()->engine().shape_of(fingerprint) == shape::encode(shape_of<Item>())));
}

BOOST_AUTO_TEST_CASE(fingerprints_match_by_what_both_of_them_tell) {
    using heap::match_types;
    using heap::TypeMatch;
    BOOST_TEST((match_types("i 4", "i 4") == TypeMatch::same));
    BOOST_TEST((match_types("P 8", "P 8, inside 1") == TypeMatch::unsaid));
    BOOST_TEST((match_types("P 8, inside 1", "P 8") == TypeMatch::unsaid));
    BOOST_TEST((match_types("P 8, inside 1", "P 8, inside 2") == TypeMatch::inside));
    BOOST_TEST((match_types("P 8, inside 1", "P 16, inside 1") == TypeMatch::other));
    BOOST_TEST((match_types("P 8", "P 16, inside 1") == TypeMatch::other));
    BOOST_TEST((match_types("", "P 16") == TypeMatch::other));
}

BOOST_AUTO_TEST_SUITE_END()
