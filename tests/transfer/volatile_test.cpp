// Volatile heaps among the others: every kind into every kind, where it lay, elsewhere, and laid anew; what comes out holds what the model holds, is sound, and lives on.

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "containers/declared_document.hpp"
#include "containers/offset_family.hpp"
#include "seed.hpp"
#include "transfer/transfer_fixture.hpp"
#include "vm/address_space.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::transfer::test {
namespace {

using Stored = Document<InHeap>;

VolatileOptions plain_heap() {
    VolatileOptions options;
    options.capacity = small_heap().capacity;
    options.tell_memory_tools = false;
    return options;
}

VolatileExpandOptions into_plain_heap() {
    VolatileExpandOptions options;
    options.heap.tell_memory_tools = false;
    return options;
}

std::string volatile_content(const VolatileHeap& heap) {
    const auto* const document = heap.find<Stored>("document");
    return document == nullptr ? "(none)" : taiyen::test::describe(*document);
}

void expect_sound(const VolatileHeap& heap) {
    for (const heap::Damage& damage : heap::VolatileCore::core_of(heap)->check()) BOOST_ERROR(damage.what << " at " << damage.where.value);
}

/// How the heap that is made lies.
enum class Lie { where_it_lay, elsewhere, laid_by_address, laid_by_reachability };

struct VolatileFixture {
    ScratchDirectory directory;
    Document<InMemory> model;
    unsigned seed = static_cast<unsigned>(taiyen::test::seed_of_run());
    const std::filesystem::path from_path = directory / "from.tyn";
    const std::filesystem::path to_path = directory / "to.tyn";

    void begin() {
        std::filesystem::remove_all(directory.path());
        std::filesystem::create_directories(directory.path());
        model = {};
    }
    VolatileHeap make_volatile() {
        VolatileHeap heap(plain_heap());
        edit(heap, model, seed, 5);
        return heap;
    }
    template <class Heap>
    void make_file() {
        Heap heap(create_only, from_path, small_heap());
        edit_and_save(heap, model, seed, 5);
        heap.close();
    }
    template <class Heap>
    void check_file(bool resized) {
        BOOST_TEST(read_parameters(to_path).capacity_bytes == small_heap().capacity * (resized ? 2 : 1));
        {
            Heap heap(open_only, to_path, small_heap());
            BOOST_TEST(content_of(heap) == describe(model));
            for (const Finding& finding : heap.verify().findings) BOOST_ERROR(finding.path << " at " << finding.offset << ": " << finding.what);
            edit_and_save(heap, model, seed + 9, 1);
            heap.close();
        }
        Heap heap(open_only, to_path, small_heap());
        BOOST_TEST(content_of(heap) == describe(model));
        heap.close();
    }
    void check_volatile(VolatileHeap& heap, bool resized) {
        BOOST_TEST(heap.stats().capacity_bytes == small_heap().capacity * (resized ? 2 : 1));
        BOOST_TEST(volatile_content(heap) == describe(model));
        expect_sound(heap);
        edit(heap, model, seed + 9, 2);
        BOOST_TEST(volatile_content(heap) == describe(model));
        expect_sound(heap);
        // Whatever came along can be freed, and nothing else is there.
        BOOST_TEST(heap.destroy<Stored>("document"));
        BOOST_TEST(heap.live_blocks().count == 0U);
        expect_sound(heap);
    }
};

/// What both kinds of options have.
template <class Options>
Options options_for(Lie lie) {
    Options options;
    if (lie != Lie::where_it_lay) {
        options.address = anywhere;
        options.pointers.types.template add<Stored>();
    }
    options.defragment = lie == Lie::laid_by_address        ? Defragment::by_address
                         : lie == Lie::laid_by_reachability ? Defragment::by_reachability
                                                            : Defragment::no;
    return options;
}

void expect_moved(const RebaseReport& move, Lie lie, std::uintptr_t from) {
    BOOST_TEST(move.old_address == from);
    BOOST_TEST((move.new_address == from) == (lie == Lie::where_it_lay));
    BOOST_TEST(move.by_declared_types == (lie != Lie::where_it_lay));
    BOOST_TEST(move.unreached_blocks == 0U);
    BOOST_TEST(move.blocks.ranges().empty() == (lie == Lie::where_it_lay || lie == Lie::elsewhere));
}

BOOST_FIXTURE_TEST_SUITE(volatile_heaps, VolatileFixture)

BOOST_AUTO_TEST_CASE(and_all_others_become_every_kind_by_a_stream_wherever_they_lie) {
    unsigned turn = 0;
    unsigned made = 0;
    for (const HeapKind from : {HeapKind::volatile_heap, HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        for (const HeapKind to : {HeapKind::volatile_heap, HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
            for (const Lie lie : {Lie::where_it_lay, Lie::elsewhere, Lie::laid_by_address, Lie::laid_by_reachability}) {
                BOOST_TEST_CONTEXT(name_of(from) << " into " << name_of(to) << ", " << static_cast<int>(lie)) {
                    begin();
                    CompressOptions how;
                    how.codec = static_cast<Codec>(turn % 3);
                    how.threads = 1 + turn % 2;
                    const bool resized = turn++ % 5 < 2;
                    std::vector<std::byte> stream;
                    if (from == HeapKind::volatile_heap) {
                        const VolatileHeap heap = make_volatile();
                        stream = compress(heap, how);
                    } else {
                        if (from == HeapKind::archive) make_file<ArchiveHeap>();
                        if (from == HeapKind::snapshot) make_file<SnapshotHeap>();
                        if (from == HeapKind::transactional) make_file<TransactionalHeap>();
                        compress_file(from_path, directory / "from.tyz", how);
                        std::ifstream in(directory / "from.tyz", std::ios::binary);
                        std::stringstream bytes;
                        bytes << in.rdbuf();
                        const std::string text = bytes.str();
                        stream.assign(reinterpret_cast<const std::byte*>(text.data()), reinterpret_cast<const std::byte*>(text.data() + text.size()));
                    }
                    if (to == HeapKind::volatile_heap) {
                        auto options = options_for<VolatileExpandOptions>(lie);
                        options.heap.tell_memory_tools = false;
                        options.heap.capacity = resized ? 2 * small_heap().capacity : 0;
                        ExpandedVolatile said = expand_volatile(std::span(stream), options);
                        BOOST_CHECK(said.kind == from);
                        expect_moved(said.move, lie, said.address);
                        BOOST_TEST((reinterpret_cast<std::uintptr_t>(said.heap.find<Stored>("document")) - said.move.new_address <
                                    said.heap.stats().extent_bytes));
                        check_volatile(said.heap, resized);
                    } else {
                        auto options = options_for<ExpandOptions>(lie);
                        options.kind = to;
                        options.capacity = resized ? 2 * small_heap().capacity : 0;
                        options.log_capacity = 1U << 20U;
                        const Expanded said = expand(std::span(stream), to_path, options);
                        BOOST_CHECK(said.kind == from);
                        expect_moved(said.move, lie, said.address);
                        BOOST_CHECK(read_parameters(to_path).kind == to);
                        BOOST_TEST(read_parameters(to_path).address == said.move.new_address);
                        if (to == HeapKind::archive) check_file<ArchiveHeap>(resized);
                        if (to == HeapKind::snapshot) check_file<SnapshotHeap>(resized);
                        if (to == HeapKind::transactional) check_file<TransactionalHeap>(resized);
                    }
                    ++made;
                }
            }
        }
    }
    BOOST_TEST(made == 64U);
}

BOOST_AUTO_TEST_CASE(are_converted_without_a_stream_and_go_on) {
    for (const Lie lie : {Lie::where_it_lay, Lie::elsewhere, Lie::laid_by_address, Lie::laid_by_reachability}) {
        for (const HeapKind to : {HeapKind::volatile_heap, HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
            BOOST_TEST_CONTEXT("into " << name_of(to) << ", " << static_cast<int>(lie)) {
                begin();
                std::optional<VolatileHeap> heap(make_volatile());
                const std::uintptr_t base = heap::VolatileCore::core_of(*heap)->ranges().durable;
                const std::string before = volatile_content(*heap);
                if (to == HeapKind::volatile_heap) {
                    if (lie == Lie::where_it_lay) continue;  // it lies there
                    auto options = options_for<VolatileExpandOptions>(lie);
                    options.heap.tell_memory_tools = false;
                    ExpandedVolatile made = convert_to_volatile(*heap, options);
                    expect_moved(made.move, lie, base);
                    BOOST_TEST(volatile_content(*heap) == before);
                    expect_sound(*heap);
                    heap.reset();
                    check_volatile(made.heap, false);
                    continue;
                }
                auto options = options_for<ExpandOptions>(lie);
                options.kind = to;
                options.log_capacity = 1U << 20U;
                if (lie == Lie::where_it_lay && to != HeapKind::archive) {
                    BOOST_CHECK_EXCEPTION(convert(*heap, to_path, options), Error, has_code(errc::address_in_use));
                    BOOST_TEST(!std::filesystem::exists(to_path));
                    continue;
                }
                const Expanded said = convert(*heap, to_path, options);
                BOOST_CHECK(said.kind == HeapKind::volatile_heap);
                expect_moved(said.move, lie, base);
                BOOST_CHECK(read_parameters(to_path).kind == to);
                BOOST_TEST(volatile_content(*heap) == before);
                expect_sound(*heap);
                heap.reset();
                if (to == HeapKind::archive) check_file<ArchiveHeap>(false);
                if (to == HeapKind::snapshot) check_file<SnapshotHeap>(false);
                if (to == HeapKind::transactional) check_file<TransactionalHeap>(false);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(are_made_of_files_without_a_stream) {
    for (const Lie lie : {Lie::where_it_lay, Lie::elsewhere, Lie::laid_by_address, Lie::laid_by_reachability}) {
        begin();
        make_file<TransactionalHeap>();
        VolatileConvertOptions options;
        static_cast<VolatileExpandOptions&>(options) = options_for<VolatileExpandOptions>(lie);
        options.heap.tell_memory_tools = false;
        ExpandedVolatile made = convert_to_volatile(from_path, options);
        expect_moved(made.move, lie, read_parameters(from_path).address);
        check_volatile(made.heap, false);
    }
    // By shapes, and without any of these by their values.
    begin();
    make_file<SnapshotHeap>();
    VolatileConvertOptions options;
    options.address = anywhere;
    options.heap.tell_memory_tools = false;
    {
        ExpandedVolatile made = convert_to_volatile(from_path, options);
        BOOST_TEST(made.move.by_declared_types);
        check_volatile(made.heap, false);
    }
    begin();
    make_file<SnapshotHeap>();
    options.pointers.by_shapes = false;
    BOOST_CHECK_EXCEPTION(convert_to_volatile(from_path, options), Error, has_code(errc::type_mismatch));
    options.pointers.conservative = true;
    ExpandedVolatile made = convert_to_volatile(from_path, options);
    BOOST_TEST(!made.move.by_declared_types);
    BOOST_TEST(made.move.pointers > 100U);
    check_volatile(made.heap, false);
}

BOOST_AUTO_TEST_CASE(with_a_history_are_made_only_if_it_may_end) {
    {
        SnapshotHeap heap(create_only, from_path, small_heap());
        heap.attach_undo();
        {
            UndoScope scope(heap);
            edit(heap, model, seed, 2);
        }
        heap.snapshot();
        heap.close();
    }
    VolatileConvertOptions options;
    options.heap.tell_memory_tools = false;
    BOOST_CHECK_EXCEPTION(convert_to_volatile(from_path, options), Error, has_code(errc::history_conflict));
    options.drop_history = true;
    ExpandedVolatile made = convert_to_volatile(from_path, options);
    check_volatile(made.heap, false);
}

BOOST_AUTO_TEST_CASE(keep_each_block_where_it_is_whoever_allocated_and_freed_it) {
    struct Filled {
        unsigned char* at;
        std::size_t bytes;
        unsigned char value;
    };
    std::vector<Filled> live;
    std::vector<std::byte> stream;
    std::uint64_t count = 0;
    std::size_t bytes = 0;
    {
        VolatileHeap heap(plain_heap());
        std::vector<std::vector<Filled>> of_threads(3);
        const auto allocate = [&](unsigned thread) {
            std::mt19937 random(seed + thread);
            for (unsigned i = 0; i < 3000; ++i) {
                const auto kind = random() % 100;
                const std::size_t size = kind < 70 ? 1 + random() % 300 : kind < 95 ? 1 + random() % 9000 : 1 + random() % 60'000;
                auto* const at = static_cast<unsigned char*>(heap.allocate(size, random() % 8 == 0 ? 64 : 16));
                const auto value = static_cast<unsigned char>(random() | 1U);
                std::memset(at, value, size);
                of_threads[thread].push_back({at, size, value});
                if (random() % 50 == 0) {  // dynamic
                    Filled& grown = of_threads[thread][random() % of_threads[thread].size()];
                    const std::size_t now = 1 + random() % 20'000;
                    grown.at = static_cast<unsigned char*>(heap.resize(grown.at, now));
                    grown.bytes = now;
                    std::memset(grown.at, grown.value, now);
                }
            }
        };
        std::thread first(allocate, 0U);
        std::thread second(allocate, 1U);
        allocate(2);
        first.join();
        second.join();
        for (const auto& blocks : of_threads) {
            for (std::size_t i = 0; i < blocks.size(); ++i)
                if (i % 3 == 0)
                    heap.deallocate(blocks[i].at);  // two of three of them another thread's
                else
                    live.push_back(blocks[i]);
        }
        const LiveBlocks before = heap.live_blocks(0);
        count = before.count;
        bytes = before.bytes;
        BOOST_TEST(count == live.size());
        stream = compress(heap);
    }
    const auto expect_all = [&](const auto& heap) {
        for (const Filled& block : live) {
            BOOST_TEST_REQUIRE(heap.usable_size(block.at) >= block.bytes);
            BOOST_TEST_REQUIRE((std::count(block.at, block.at + block.bytes, block.value) == static_cast<std::ptrdiff_t>(block.bytes)));
        }
    };
    {
        ExpandedVolatile made = expand_volatile(std::span(stream), into_plain_heap());
        expect_all(made.heap);
        BOOST_TEST(made.heap.live_blocks(0).count == count);
        BOOST_TEST(made.heap.live_blocks(0).bytes == bytes);
        // They are as good as any: freed, resized, and their places used again.
        std::vector<Filled> resized;
        for (std::size_t i = 0; i < live.size(); ++i) {
            if (i % 2 == 0) {
                made.heap.deallocate(live[i].at);
            } else {
                auto* const at = static_cast<unsigned char*>(made.heap.resize(live[i].at, live[i].bytes + 40));
                resized.push_back({at, live[i].bytes, live[i].value});
            }
        }
        std::vector<void*> fresh;
        for (unsigned i = 0; i < 2000; ++i) fresh.push_back(std::memset(made.heap.allocate(200), 0, 200));
        std::swap(live, resized);
        expect_all(made.heap);
        std::swap(live, resized);
        for (const Filled& block : resized) made.heap.deallocate(block.at);
        for (void* const block : fresh) made.heap.deallocate(block);
        BOOST_TEST(made.heap.live_blocks(0).count == 0U);
        expect_sound(made.heap);
    }
    expand(std::span(stream), to_path);
    ArchiveHeap heap(open_only, to_path);
    expect_all(heap);
    BOOST_TEST(heap.stats().live_blocks == count);
    BOOST_TEST(heap.stats().live_bytes == bytes);
    BOOST_TEST(heap.verify().ok());
    heap.close();
}

BOOST_AUTO_TEST_CASE(take_along_what_only_the_program_refers_to) {
    VolatileHeap heap(plain_heap());
    edit(heap, model, seed, 2);
    int* number = heap.make<int>(17);
    auto* first = heap.make<taiyen::string>("a text that is too long to lie within its object, by far");
    const int* const before = number;
    VolatileExpandOptions options = into_plain_heap();
    // Elsewhere, and nothing tells where the pointers of blocks are that no name leads to.
    BOOST_CHECK_EXCEPTION(convert_to_volatile(heap, options), Error, has_code(errc::type_mismatch));
    ExpandOptions to_file;
    to_file.address = anywhere;
    BOOST_CHECK_EXCEPTION(convert(heap, to_path, to_file), Error, has_code(errc::type_mismatch));
    BOOST_TEST(!std::filesystem::exists(to_path));
    options.address = anywhere;
    options.pointers.conservative = true;
    ExpandedVolatile made = convert_to_volatile(heap, options);
    made.move.relocation().visit(number, first);
    BOOST_TEST(number != before);
    BOOST_TEST(made.heap.owns(number));
    BOOST_TEST(*number == 17);
    BOOST_TEST(*first == "a text that is too long to lie within its object, by far");
    BOOST_TEST(made.heap.owns(first->data()));
    made.heap.destroy_object(number);
    made.heap.destroy_object(first);
    heap.close();
    check_volatile(made.heap, false);
}

BOOST_AUTO_TEST_CASE(keep_all_their_names) {
    constexpr int count = 3000;  // the directory takes many pages
    const auto name = [](int i) { return "object number " + std::to_string(i); };
    std::vector<std::byte> stream;
    {
        VolatileHeap heap(plain_heap());
        for (int i = 0; i < count; ++i) heap.construct<int>(name(i), i);
        for (int i = 0; i < count; i += 3) heap.destroy<int>(name(i));
        stream = compress(heap);
    }
    const auto expect_names = [&](auto& heap) {
        int wrong = 0;
        for (int i = 0; i < count; ++i) {
            const int* const found = heap.template find<int>(name(i));
            wrong += i % 3 == 0 ? found != nullptr : found == nullptr || *found != i;
        }
        BOOST_TEST(wrong == 0);
    };
    BOOST_TEST(expand(std::span(stream), to_path).names == count - count / 3U);
    {
        ArchiveHeap heap(open_only, to_path);
        expect_names(heap);
        heap.close();
    }
    VolatileConvertOptions options;
    options.address = anywhere;
    options.heap.tell_memory_tools = false;
    options.pointers.types.add<int>();
    options.defragment = Defragment::by_reachability;
    ExpandedVolatile made = convert_to_volatile(to_path, options);
    expect_names(made.heap);
    expect_sound(made.heap);
}

BOOST_AUTO_TEST_CASE(that_may_be_mapped_anywhere_go_wherever_there_is_room) {
    std::vector<std::byte> stream;
    {
        PersistentOptions options = small_heap();
        options.position_independent = true;
        ArchiveHeap heap(create_only, from_path, options);
        auto& texts = heap.construct<offset::map<int, offset::string>>("texts");
        for (int i = 0; i < 500; ++i) texts.emplace(i, std::string(static_cast<std::size_t>(i % 90), 'x').c_str());
        heap.snapshot();
        stream = compress(heap);
        heap.close();
    }
    VolatileExpandOptions options = into_plain_heap();
    options.address = anywhere;
    ExpandedVolatile made = expand_volatile(std::span(stream), options);
    BOOST_TEST(made.move.position_independent);
    auto* const texts = made.heap.find<offset::map<int, offset::string>>("texts");
    BOOST_TEST_REQUIRE(texts != nullptr);
    BOOST_TEST(texts->size() == 500U);
    for (const auto& [number, text] : *texts) BOOST_TEST(text.size() == static_cast<std::size_t>(number % 90));
    for (int i = 0; i < 500; i += 2) texts->erase(i);
    texts->emplace(1000, "another one");
    const std::vector<std::byte> again = compress(made.heap);
    made.heap.close();
    const Expanded said = expand(std::span(again), to_path);
    BOOST_TEST(said.position_independent);
    ArchiveHeap heap(open_only, to_path);
    BOOST_TEST((heap.find<offset::map<int, offset::string>>("texts")->size() == 251U));
    heap.close();
}

BOOST_AUTO_TEST_CASE(through_a_file_and_a_stream_give_the_same_heap) {
    VolatileHeap heap = make_volatile();
    const Compressed done = compress(heap, directory / "a.tyz");
    BOOST_TEST(done.stream_bytes == std::filesystem::file_size(directory / "a.tyz"));
    BOOST_TEST(done.serial.value == 0U);
    const CompressedHeap said = read_compressed(directory / "a.tyz");
    BOOST_CHECK(said.kind == HeapKind::volatile_heap);
    BOOST_TEST(said.names == 1U);
    std::stringstream bytes;
    compress(heap, bytes);
    heap.close();
    expand_file(directory / "a.tyz", to_path);  // an archive, as nobody says otherwise
    BOOST_CHECK(read_parameters(to_path).kind == HeapKind::archive);
    {
        const ExpandedVolatile made = expand_volatile_file(directory / "a.tyz", into_plain_heap());
        BOOST_TEST(volatile_content(made.heap) == describe(model));
    }
    const ExpandedVolatile made = expand_volatile(bytes, into_plain_heap());
    BOOST_TEST(volatile_content(made.heap) == describe(model));
}

BOOST_AUTO_TEST_CASE(are_refused_with_nothing_left_where_they_can_not_be_had) {
    VolatileHeap closed(plain_heap());
    closed.close();
    BOOST_CHECK_EXCEPTION(compress(closed), Error, has_code(errc::closed));
    VolatileOptions guarded = plain_heap();
    guarded.guarded = true;
    BOOST_CHECK_EXCEPTION(compress(VolatileHeap(guarded)), Error, has_code(errc::invalid_argument));
    BOOST_CHECK_EXCEPTION(convert(VolatileHeap(guarded), to_path), Error, has_code(errc::invalid_argument));

    std::vector<std::byte> stream;
    std::uintptr_t base = 0;
    {
        const VolatileHeap heap = make_volatile();
        base = heap::VolatileCore::core_of(heap)->ranges().durable;
        stream = compress(heap);
        // It lies there.
        BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), into_plain_heap()), Error, has_code(errc::address_in_use));
        VolatileExpandOptions laid = into_plain_heap();
        laid.address = anywhere;
        laid.defragment = Defragment::by_address;
        BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), laid), Error, has_code(errc::address_in_use));  // where shapes tell its pointers
        laid.pointers.by_shapes = false;
        BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), laid), Error, has_code(errc::type_mismatch));
        laid.pointers.types.add<int>();
        BOOST_CHECK_EXCEPTION(convert_to_volatile(heap, laid), Error, has_code(errc::type_mismatch));
        VolatileExpandOptions small = into_plain_heap();
        small.heap.capacity = page_bytes;  // less than any heap has
        BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), small), Error, has_code(errc::invalid_argument));
        VolatileExpandOptions odd = into_plain_heap();
        odd.address = base + page_bytes;
        odd.pointers.conservative = true;
        BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), odd), Error, has_code(errc::invalid_argument));
    }
    VolatileExpandOptions limited = into_plain_heap();
    limited.expanded_bytes_max = page_bytes;
    BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), limited), Error, has_code(errc::invalid_argument));
    VolatileExpandOptions cancelled = into_plain_heap();
    std::stop_source stop;
    cancelled.cancel = stop.get_token();
    stop.request_stop();
    BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream), cancelled), Error, has_code(errc::cancelled));
    for (std::size_t length = 0; length < stream.size(); length += 1 + stream.size() / 40)
        BOOST_CHECK_EXCEPTION(expand_volatile(std::span(stream).first(length), into_plain_heap()), Error, has_code(errc::truncated));
    for (std::size_t at = 3; at < stream.size(); at += 1 + stream.size() / 40) {
        std::vector<std::byte> damaged = stream;
        damaged[at] ^= std::byte{16};
        BOOST_CHECK_THROW(expand_volatile(std::span(damaged), into_plain_heap()), Error);
    }
    std::vector<std::byte> longer = stream;
    longer.push_back(std::byte{0});
    BOOST_CHECK_EXCEPTION(expand_volatile(std::span(longer), into_plain_heap()), Error, has_code(errc::corrupt));
    BOOST_TEST(!vm::mapping_in(base, small_heap().capacity).has_value());
    ExpandedVolatile made = expand_volatile(std::span(stream), into_plain_heap());
    check_volatile(made.heap, false);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
