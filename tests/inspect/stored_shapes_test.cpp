// A heap keeps the shape of each type that has a name in it: from when to when, and wherever the heap goes.

#include <boost/test/unit_test.hpp>

#include <taiyen/shape/detail/builder.hpp>
#include <taiyen/taiyen.hpp>

#include "heap/core.hpp"
#include "scratch_directory.hpp"
#include "shape/encoding.hpp"
#include "threads.hpp"
#include "throws.hpp"

namespace stored_shapes_test {
struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double weight = 0;
};
}  // namespace stored_shapes_test

template <>
struct taiyen::pointers_of<stored_shapes_test::Part> {
    template <class Visit>
    static void describe(stored_shapes_test::Part& part, Visit visit) {
        visit(part.name, part.tags);
    }
};

namespace stored_shapes_test {
using namespace taiyen;

using Parts = taiyen::map<taiyen::string, Part>;
/// Of one test: nobody has asked for its shape before.
struct Fresh {
    int number = 0;
    double weight = 0;
};

/// What the heap says of the name's type.
template <class Heap>
std::shared_ptr<const Shape> shape_in(const Heap& heap, const std::string& name) {
    for (StoredObject& object : stored_objects(heap))
        if (object.name == name) return std::move(object.shape);
    BOOST_FAIL("no " << name);
    return nullptr;
}
template <class Heap>
bool is_known(const Heap& heap) {
    const auto shape = shape_in(heap, "parts");
    return shape != nullptr && *shape == shape_of<Parts>();
}

std::size_t shapes_in(const ArchiveHeap& heap) { return heap.core()->engine().shapes().size(); }

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 8_MiB;
    return options;
}

/// As a program left it that knew nothing of shapes.
template <class Heap>
void make_shapeless(const std::string& path) {
    Heap heap(create_only, path, small());
    const auto fill = [&] {
        Parts& parts = *heap.template make<Parts>();
        parts["bolt"].weight = 1;
        heap::add_named(*heap.core(), "parts", {&parts, sizeof parts, 1, stl::fingerprint<Parts>()});
    };
    if constexpr (std::is_same_v<Heap, TransactionalHeap>) {
        transact(heap, fill);
    } else {
        fill();
        heap.snapshot();
    }
}

BOOST_AUTO_TEST_SUITE(stored_shapes)

BOOST_AUTO_TEST_CASE(a_name_brings_the_shape_of_its_type) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    {
        ArchiveHeap heap(create_only, path, small());
        heap.construct<Parts>("parts")["bolt"].weight = 1;
        heap.construct<int>("number");
        BOOST_TEST(is_known(heap));
        heap.snapshot();
    }
    const ArchiveHeap heap(open_read_only, path);
    BOOST_TEST(is_known(heap));
    BOOST_TEST(shape_in(heap, "number")->type() == "int32_t");
    BOOST_TEST(shape_in(heap, "parts")->text() ==
               "map<string, stored_shapes_test::Part>, 56 bytes\n"
               "stored_shapes_test::Part, 80 bytes\n"
               "  0 name: string\n"
               "  40 tags: vector<string>\n"
               "  72 weight: double\n");
    BOOST_TEST(stored_objects(heap).size() == 2U);
    BOOST_TEST(heap.verify().ok());
    BOOST_TEST(find_leaks(heap).leaks.empty());
}

BOOST_AUTO_TEST_CASE(a_type_has_one_shape_however_many_names_and_objects_it_has) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    for (int i = 0; i < 50; ++i) heap.construct<Parts>("parts " + std::to_string(i));
    for (int i = 0; i < 50; ++i) heap.make<Part>();
    BOOST_TEST(shapes_in(heap) == 1U);
    for (int i = 0; i < 50; ++i) heap.destroy<Parts>("parts " + std::to_string(i));
    BOOST_TEST(stored_objects(heap).empty());
    heap.construct<Parts>("parts");
    BOOST_TEST(shapes_in(heap) == 1U);
    BOOST_TEST(is_known(heap));
}

BOOST_AUTO_TEST_CASE(a_heap_of_before_gets_the_shape_with_the_next_save_of_a_program_that_has_the_type) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    make_shapeless<ArchiveHeap>(path);
    {
        const ArchiveHeap heap(open_read_only, path);
        BOOST_TEST(heap.find<Parts>("parts")->at("bolt").weight == 1);
        BOOST_TEST(!shape_in(heap, "parts"));
    }
    {
        ArchiveHeap heap(open_only, path, small());
        heap.find<Parts>("parts");
        BOOST_TEST(!shape_in(heap, "parts"));  // finding changes nothing
    }
    {
        ArchiveHeap heap(open_only, path, small());
        Parts& parts = *heap.find<Parts>("parts");
        heap.snapshot();
        BOOST_TEST(!shape_in(heap, "parts"));  // nothing was changed
        parts["bolt"].weight = 2;
        heap.snapshot();
    }
    const ArchiveHeap heap(open_read_only, path);
    BOOST_TEST(is_known(heap));
    BOOST_TEST(heap.find<Parts>("parts")->at("bolt").weight == 2);
}

BOOST_AUTO_TEST_CASE(a_save_that_changes_nothing_ends_no_history) {
    const ScratchDirectory directory;
    const std::string path = directory / "s.tyn";
    {
        SnapshotHeap heap(create_only, path, small());
        heap.attach_undo();
        UndoScope scope(heap, "made");
        Parts& parts = *heap.make<Parts>();
        heap::add_named(*heap.core(), "parts", {&parts, sizeof parts, 1, stl::fingerprint<Parts>()});
        scope.commit();
        heap.snapshot();
    }
    {
        SnapshotHeap heap(open_only, path, small());
        heap.find<Parts>("parts");
        heap.snapshot();
    }
    SnapshotHeap heap(open_only, path, small());
    heap.attach_undo();
    BOOST_TEST(heap.undo_steps().size() == 1U);
    // Neither does a scope in which nothing happens.
    heap.find<Parts>("parts");
    {
        UndoScope scope(heap, "nothing");
        scope.commit();
    }
    BOOST_TEST(!shape_in(heap, "parts"));
    {
        UndoScope scope(heap, "something");
        heap.find<Parts>("parts")->operator[]("bolt").weight = 2;
        scope.commit();
    }
    BOOST_TEST(is_known(heap));
    heap.undo();
    BOOST_TEST(heap.find<Parts>("parts")->empty());
    BOOST_TEST(!shape_in(heap, "parts"));
    heap.redo();
    BOOST_TEST(is_known(heap));
}

/// Of a heap with undo, outside of scopes; with steps and without.
BOOST_AUTO_TEST_CASE(what_is_changed_outside_of_scopes_brings_the_shape_too) {
    for (const bool has_history : {false, true}) {
        BOOST_TEST_CONTEXT("history " << has_history) {
            const ScratchDirectory directory;
            const std::string path = directory / "s.tyn";
            make_shapeless<SnapshotHeap>(path);
            {
                SnapshotHeap heap(open_only, path, small());
                if (has_history) heap.attach_undo();
                UndoScope(heap, "nothing").commit();
                heap.find<Parts>("parts");
                heap.snapshot();
                BOOST_TEST(!shape_in(heap, "parts"));
                UndoScope(heap, "nothing").commit();
                BOOST_TEST(!shape_in(heap, "parts"));
                heap.find<Parts>("parts")->at("bolt").weight = 5;
                heap.snapshot();
                BOOST_TEST(is_known(heap));
                if (has_history) {
                    heap.undo();
                    BOOST_TEST(!shape_in(heap, "parts"));
                    heap.redo();
                }
                heap.snapshot();
            }
            BOOST_TEST(is_known(SnapshotHeap(open_read_only, path)));
        }
    }
}

/// What the report handler was told.
std::vector<std::string> told;

BOOST_AUTO_TEST_CASE(a_save_that_brings_shapes_tells_of_a_foreign_pointer_once) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    make_shapeless<ArchiveHeap>(path);
    PersistentOptions options = small();
    options.foreign_pointers = ForeignPointers::report;
    ArchiveHeap other(create_only, directory / "b.tyn", small());
    ArchiveHeap heap(open_only, path, options);
    heap.find<Parts>("parts");
    heap.construct<int*>("foreign") = &other.construct<int>("number");
    told.clear();
    const ReportHandler before = set_report_handler(+[](const Incident& incident) noexcept { told.emplace_back(incident.text); });
    heap.snapshot();
    set_report_handler(before);
    BOOST_TEST(is_known(heap));
    BOOST_TEST(told.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_commit_that_is_refused_brings_the_shape_the_next_time) {
    const ScratchDirectory directory;
    const std::string path = directory / "t.tyn";
    make_shapeless<TransactionalHeap>(path);
    ArchiveHeap other(create_only, directory / "b.tyn", small());
    TransactionalHeap heap(open_only, path, small());
    heap.find<Parts>("parts");
    BOOST_TEST(test::throws(errc::foreign_pointer, [&] { transact(heap, [&] { heap.construct<int*>("foreign") = &other.construct<int>("n"); }); }));
    BOOST_TEST(!shape_in(heap, "parts"));
    transact(heap, [&] { heap.find<Parts>("parts")->at("bolt").weight = 5; });
    BOOST_TEST(is_known(heap));
}

BOOST_AUTO_TEST_CASE(a_transaction_that_changes_nothing_is_no_step) {
    const ScratchDirectory directory;
    const std::string path = directory / "t.tyn";
    make_shapeless<TransactionalHeap>(path);
    {
        TransactionalHeap heap(open_only, path, small());
        heap.attach_undo();
        transact(heap, [&] { heap.construct<int>("number") = 1; });
        heap.undo();
    }
    TransactionalHeap heap(open_only, path, small());
    heap.attach_undo();
    heap.find<Parts>("parts");
    const Serial before = ReadLock(heap).serial();
    transact(heap, [] {});
    BOOST_TEST((ReadLock(heap).serial() == before));
    BOOST_TEST(heap.can_redo());
    BOOST_TEST(!shape_in(heap, "parts"));
    heap.redo();
    transact(heap, [&] { *heap.find<int>("number") = 2; });
    BOOST_TEST(is_known(heap));
}

BOOST_AUTO_TEST_CASE(a_heap_of_before_gets_the_shape_with_the_next_transaction) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    make_shapeless<TransactionalHeap>(path);
    {
        TransactionalHeap heap(open_only, path, small());
        heap.find<Parts>("parts");
        BOOST_TEST(!shape_in(heap, "parts"));
        transact(heap, [&] { heap.find<Parts>("parts")->at("bolt").weight = 2; });
        BOOST_TEST(is_known(heap));
    }
    const TransactionalHeap heap(open_read_only, path);
    BOOST_TEST(is_known(heap));
}

BOOST_AUTO_TEST_CASE(a_shape_of_something_else_is_replaced_once) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    {
        ArchiveHeap heap(create_only, path, small());
        heap.construct<Parts>("parts");
        heap.core()->engine().set_shape(stl::fingerprint<Parts>(), stl::encoded_shape<Part>());
        heap.snapshot();
    }
    {
        ArchiveHeap heap(open_only, path, small());
        BOOST_TEST(!shape_in(heap, "parts"));  // another size than the object's
        heap.find<Parts>("parts")->operator[]("bolt").weight = 1;
        heap.snapshot();
        BOOST_TEST(is_known(heap));
        BOOST_TEST(shapes_in(heap) == 1U);
    }
    const ArchiveHeap heap(open_read_only, path);
    BOOST_TEST(is_known(heap));
}

BOOST_AUTO_TEST_CASE(what_is_taken_back_takes_its_shape_along) {
    const ScratchDirectory directory;
    {
        TransactionalHeap heap(create_only, directory / "t.tyn", small());
        {
            Transaction transaction(heap);
            heap.construct<Parts>("parts");
            transaction.rollback();
        }
        BOOST_TEST(shapes_in(heap) == 0U);
        transact(heap, [&] { heap.construct<Parts>("parts"); });
        BOOST_TEST(is_known(heap));
    }
    SnapshotHeap heap(create_only, directory / "s.tyn", small());
    heap.attach_undo();
    {
        UndoScope scope(heap, "part");
        heap.construct<Parts>("parts");
        scope.commit();
    }
    BOOST_REQUIRE(heap.undo());
    BOOST_TEST(shapes_in(heap) == 0U);
    BOOST_REQUIRE(heap.redo());
    BOOST_TEST(is_known(heap));
}

BOOST_AUTO_TEST_CASE(it_goes_wherever_the_heap_goes) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    for (int i = 0; i < 100; ++i) heap.make<Part>();
    heap.construct<Parts>("parts")["bolt"].tags.emplace_back("steel");
    heap.snapshot();
    const std::vector<std::byte> stream = compress(heap);
    CompactOptions compaction;
    compaction.types.add<Parts>();
    compact(heap, compaction);
    BOOST_TEST(is_known(heap));
    heap.snapshot();
    heap.close();
    {
        const ArchiveHeap compacted(open_read_only, directory / "a.tyn");
        BOOST_TEST(is_known(compacted));
    }
    for (const bool elsewhere : {false, true})
        for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
            const std::string path = directory / ("b" + std::to_string(static_cast<int>(kind)) + (elsewhere ? "e" : "") + ".tyn");
            ExpandOptions options;
            options.kind = kind;
            if (elsewhere) {
                options.address = 0x3a80'0000'0000;
                options.defragment = Defragment::by_reachability;
                options.pointers.types.add<Parts>();
            }
            expand(std::span(stream), path, options);
            const ArchiveHeap expanded(open_read_only, path);
            BOOST_TEST(is_known(expanded));
            BOOST_TEST(expanded.find<Parts>("parts")->at("bolt").tags.size() == 1U);
            BOOST_TEST(expanded.verify().ok());
        }
}

BOOST_AUTO_TEST_CASE(volatile_heaps_have_them_too_and_take_them_into_files) {
    const ScratchDirectory directory;
    std::vector<std::byte> stream;
    {
        VolatileOptions unguarded;
        unguarded.tell_memory_tools = false;  // under a sanitizer it would be guarded, and stay where it is
        VolatileHeap heap(unguarded);
        heap.construct<Parts>("parts")["bolt"].weight = 3;
        BOOST_TEST(is_known(heap));
        ExpandOptions elsewhere;
        elsewhere.address = 0x3c80'0000'0000;
        elsewhere.pointers.types.add<Parts>();
        convert(heap, directory / "a.tyn", elsewhere);
        const ArchiveHeap converted(open_read_only, directory / "a.tyn");
        BOOST_TEST(is_known(converted));
        BOOST_TEST(stored_objects(converted).size() == 1U);
        stream = compress(heap);
    }
    VolatileExpandOptions options;
    options.address = 0x3b80'0000'0000;
    options.pointers.types.add<Parts>();
    const ExpandedVolatile again = expand_volatile(std::span(stream), options);
    BOOST_TEST(is_known(again.heap));
}

/// Two programs that open the heap one after the other: one knows a class that the other only names.
BOOST_AUTO_TEST_CASE(a_shape_is_replaced_by_one_that_says_as_much_and_by_no_other) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    const auto with = [](auto tell) {
        shape::Builder builder;
        const std::uint32_t root = builder.enter(typeid(Parts*).name(), ShapeKind::structure, sizeof(Parts), 8).node;
        const std::uint32_t pointer = builder.enter("PP4Told", ShapeKind::pointer, 8, 8).node;
        builder.part(root, "told", 0, pointer);
        builder.part(pointer, {}, 0, builder.mention("P4Told"));
        tell(builder);
        return builder.encoded();
    };
    const std::string less = with([](shape::Builder&) {});
    const std::string more = with([](shape::Builder& builder) {
        const std::uint32_t told = builder.enter("P4Told", ShapeKind::structure, 4, 4).node;
        builder.part(told, "other", 0, builder.enter("Pi", ShapeKind::signed_integer, 4, 4).node);
    });
    const std::string renamed = with([](shape::Builder& builder) {
        const std::uint32_t told = builder.enter("P4Told", ShapeKind::structure, 4, 4).node;
        builder.part(told, "new_name", 0, builder.enter("Pi", ShapeKind::signed_integer, 4, 4).node);
    });
    const std::string fingerprint = stl::fingerprint<Parts>();
    ArchiveHeap(create_only, path, small()).snapshot();
    const auto open_with = [&](const std::string& shape, bool accept = false) {
        ArchiveHeap heap(open_only, path, small());
        shape::TypeShape type{nullptr, &shape};
        heap::settle_shape(*heap.core(), "parts", type, fingerprint, accept);
        heap.make<int>();
        heap.snapshot();
        return *heap.core()->engine().shape_of(fingerprint);
    };
    BOOST_TEST((open_with(less) == less));
    BOOST_TEST((open_with(more) == more));
    BOOST_TEST((open_with(less) == more));
    BOOST_TEST((open_with(renamed) == renamed));
    BOOST_TEST((open_with(more) == more));

    // By which a float lies where an integer did.
    const std::string other = with([](shape::Builder& builder) {
        const std::uint32_t told = builder.enter("P4Told", ShapeKind::structure, 4, 4).node;
        builder.part(told, "other", 0, builder.enter("Pf", ShapeKind::floating_point, 4, 4).node);
    });
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { open_with(other); }));
    BOOST_TEST((open_with(less) == more));
    BOOST_TEST((open_with(other, true) == other));
    BOOST_TEST((open_with(less) == other));

    // What a newer library wrote stays.
    std::string newer = less;
    shape::EncodedHead head{};
    std::memcpy(&head, newer.data(), sizeof head);
    head.version = shape::version + 1;
    std::memcpy(newer.data(), &head, sizeof head);
    shape::seal(std::as_writable_bytes(std::span(newer)));
    {
        ArchiveHeap heap(open_only, path, small());
        heap.core()->engine().set_shape(fingerprint, newer);
        heap.snapshot();
        BOOST_TEST(heap.verify().findings.empty());
    }
    BOOST_TEST((open_with(more) == newer));
}

BOOST_AUTO_TEST_CASE(a_type_is_asked_for_by_many_threads_at_first, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    const std::string path = directory / "t.tyn";
    {
        TransactionalHeap heap(create_only, path, small());
        transact(heap, [&] {
            Fresh& object = *heap.make<Fresh>();
            heap::add_named(*heap.core(), "fresh", {&object, sizeof object, 1, stl::fingerprint<Fresh>()});
        });
    }
    TransactionalHeap heap(open_only, path, small());
    test::at_once(4, [&](unsigned) {
        for (int i = 0; i < 100; ++i) {
            const ReadLock lock(heap);
            test::require(heap.find<Fresh>("fresh") != nullptr, "it is found");
        }
    });
    transact(heap, [&] { heap.find<Fresh>("fresh")->number = 1; });
    const auto shape = shape_in(heap, "fresh");
    BOOST_REQUIRE(shape != nullptr);
    BOOST_TEST((*shape == shape_of<Fresh>()));
}

/// What restores, converts, compresses and rebases refuses a heap that is damaged.
BOOST_AUTO_TEST_CASE(a_shape_that_cannot_be_read_keeps_no_heap_from_travelling) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    heap.construct<Parts>("parts")["bolt"].weight = 1;
    heap.core()->engine().set_shape(stl::fingerprint<Parts>(), "no shape");
    heap.core()->engine().add_root({std::string("\0shape 0123456789abcdef 3", 25), "a part of what is not there", {}, 0, 5});
    heap.snapshot();
    BOOST_TEST(heap.core()->engine().check().empty());
    const Report report = heap.verify();
    BOOST_TEST(report.ok());
    BOOST_TEST(report.findings.size() == 2U);
    for (const Finding& finding : report.findings) BOOST_TEST((finding.severity == Severity::note));
    const std::vector<std::byte> stream = compress(heap);
    heap.close();
    ExpandOptions options;
    options.address = 0x3a80'0000'0000;
    options.defragment = Defragment::by_reachability;
    options.pointers.types.add<Parts>();
    expand(std::span(stream), directory / "b.tyn", options);
    const ArchiveHeap expanded(open_read_only, directory / "b.tyn");
    BOOST_TEST(expanded.find<Parts>("parts")->at("bolt").weight == 1);
}

struct Page {
    double numbers[512];
};

/// The names of a full heap and their shapes find the room that they had.
BOOST_AUTO_TEST_CASE(a_full_heap_travels_with_the_shapes_of_its_types) {
    const ScratchDirectory directory;
    PersistentOptions options;
    options.capacity = 1_MiB;
    ArchiveHeap heap(create_only, directory / "a.tyn", options);
    heap.construct<Parts>("parts");
    const std::string large(60'000, 'x');
    heap.core()->engine().set_shape(stl::fingerprint<Page>(), large);
    try {
        while (true) heap.make<Page>();
    } catch (const HeapFull&) {}
    try {
        while (true) heap.make<double>();
    } catch (const HeapFull&) {}
    heap.snapshot();
    const std::vector<std::byte> stream = compress(heap);
    heap.close();
    ExpandOptions elsewhere;
    elsewhere.address = 0x3a80'0000'0000;
    elsewhere.defragment = Defragment::by_reachability;
    elsewhere.pointers.types.add<Parts>();
    expand(std::span(stream), directory / "b.tyn", elsewhere);
    const ArchiveHeap expanded(open_read_only, directory / "b.tyn");
    BOOST_TEST(expanded.find<Parts>("parts") != nullptr);
    BOOST_TEST(is_known(expanded));
    BOOST_TEST((expanded.core()->engine().shape_of(stl::fingerprint<Page>()) == large));
    BOOST_TEST(expanded.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_damaged_shape_is_noted_and_hides_nothing_else) {
    const ScratchDirectory directory;
    const std::string path = directory / "a.tyn";
    {
        ArchiveHeap heap(create_only, path, small());
        heap.construct<Parts>("parts")["bolt"].weight = 1;
        std::string damaged = stl::encoded_shape<Parts>();
        damaged[damaged.size() / 2] ^= 1;
        heap.core()->engine().set_shape(stl::fingerprint<Parts>(), damaged);
        heap.snapshot();
        BOOST_TEST(!shape_in(heap, "parts"));
        const Report report = heap.verify();
        BOOST_TEST(report.ok());
        BOOST_REQUIRE(!report.findings.empty());
        BOOST_TEST((report.findings.front().severity == Severity::note));
        BOOST_TEST(report.findings.front().what.find("the shape of a stored type is damaged") != std::string::npos);
    }
    ArchiveHeap heap(open_only, path, small());
    heap.find<Parts>("parts")->at("bolt").weight = 2;
    heap.snapshot();
    BOOST_TEST(is_known(heap));
    BOOST_TEST(heap.verify().findings.empty());
}

/// As a library that knew nothing of shapes may have written it.
BOOST_AUTO_TEST_CASE(a_name_that_looks_like_a_shapes_keeps_its_object) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    heap.construct<Fresh>("known");
    const std::string part = heap.core()->engine().shapes().at(0).name;
    BOOST_TEST(!heap::find_named(*heap.core(), part).has_value());
    heap.destroy<Fresh>("known");
    {
        const auto lock = heap.core()->lock_engine();
        heap.core()->engine().remove_root(part);
    }
    int& old = *heap.make<int>(7);
    {
        const auto lock = heap.core()->lock_engine();
        const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(&old) - heap.core()->ranges().durable;
        heap.core()->engine().add_root({part, stl::fingerprint<int>(), HeapOffset{offset}, sizeof old, 1});
    }
    heap.snapshot();
    heap.close();
    ArchiveHeap again(open_only, directory / "a.tyn", small());
    again.construct<Fresh>("known");
    BOOST_TEST(!shape_in(again, "known"));
    BOOST_TEST(again.core()->engine().find_root(part).has_value());
}

BOOST_AUTO_TEST_CASE(names_of_shapes_are_no_programs) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { heap.construct<int>(std::string_view("\0shape 1", 8)); }));
    heap.construct<int>(std::string_view("\0shaped", 7));
    BOOST_TEST(stored_objects(heap).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace stored_shapes_test
