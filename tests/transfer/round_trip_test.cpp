// Every kind of heap into every kind, with every codec: what comes out holds what the model holds, is sound, and lives on.

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <sstream>

#include "io/posix_storage.hpp"
#include "seed.hpp"
#include "transfer/transfer_fixture.hpp"

namespace taiyen::transfer::test {
namespace {

BOOST_AUTO_TEST_SUITE(round_trips)

BOOST_AUTO_TEST_CASE(of_every_kind_into_every_kind_keep_everything) {
    const auto seed = static_cast<unsigned>(taiyen::test::seed_of_run());
    unsigned turn = 0;
    for (const HeapKind from : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        for (const HeapKind to : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
            BOOST_TEST_CONTEXT(name_of(from) << " into " << name_of(to)) {
                ScratchDirectory directory;
                Document<InMemory> model;
                CompressOptions how;
                how.codec = static_cast<Codec>(turn++ % 3);
                how.threads = 1 + turn % 2;
                const std::filesystem::path path = directory / "from.tyn";
                const std::vector<std::byte> stream = compressed(from, path, model, seed, how);
                ExpandOptions as;
                as.kind = to;
                as.log_capacity = 1U << 20U;
                as.threads = 1 + turn % 2;
                const std::filesystem::path target = directory / "to.tyn";
                const CompressedHeap said = expand(std::span(stream), target, as);
                BOOST_CHECK(said.kind == from);
                BOOST_TEST(said.names == 1U);
                const HeapParameters made = read_parameters(target);
                BOOST_CHECK(made.kind == to);
                BOOST_TEST(made.address == said.address);
                BOOST_TEST(made.serial == said.serial.value);
                BOOST_TEST(said.serial.value == (from == HeapKind::transactional ? 2U : 0U));
                BOOST_TEST(made.uuid != said.uuid);
                expect_whole(to, target, model, seed);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(through_a_file_and_a_stream_give_the_same_bytes) {
    ScratchDirectory directory;
    Document<InMemory> model;
    std::vector<std::byte> stream;
    {
        ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
        edit_and_save(heap, model, 1, 2);
        stream = compress(heap);
        const Compressed done = compress(heap, directory / "a.tyz");
        BOOST_TEST(done.stream_bytes == stream.size());
        std::ostringstream out;
        compress(heap, out);
        const std::string bytes = out.str();
        BOOST_TEST((std::vector<char>(bytes.begin(), bytes.end()) ==
                    std::vector<char>(reinterpret_cast<const char*>(stream.data()), reinterpret_cast<const char*>(stream.data() + stream.size()))));
        heap.close();
    }
    BOOST_TEST(std::filesystem::file_size(directory / "a.tyz") == stream.size());
    BOOST_TEST(read_compressed(directory / "a.tyz").capacity_bytes == std::size_t{64} << 20U);
    std::ifstream in(directory / "a.tyz", std::ios::binary);
    expand(in, directory / "b.tyn");
    expand_file(directory / "a.tyz", directory / "c.tyn");
    for (const char* name : {"b.tyn", "c.tyn"}) {
        ArchiveHeap heap(open_only, directory / name);
        BOOST_TEST(content_of(heap) == describe(model));
        heap.close();
    }
    // Compressing what was expanded gives the same stream, but for the uuid and the checksums that follow from it.
    compress_file(directory / "b.tyn", directory / "b.tyz");
    BOOST_TEST(std::filesystem::file_size(directory / "b.tyz") == stream.size());
    BOOST_TEST(read_compressed(directory / "b.tyz").extent_bytes == read_compressed(directory / "a.tyz").extent_bytes);
}

BOOST_AUTO_TEST_CASE(of_a_heap_full_of_holes_cost_what_is_live) {
    ScratchDirectory directory;
    PersistentOptions options = small_heap();
    ArchiveHeap heap(create_only, directory / "a.tyn", options);
    std::vector<void*> blocks;
    for (int i = 0; i < 300; ++i) {
        blocks.push_back(heap.allocate(50'000));
        std::memset(blocks.back(), i + 1, 50'000);
    }
    auto* const kept = static_cast<char*>(heap.allocate(1000));
    std::memset(kept, 7, 1000);
    heap::add_named(*heap.core(), "kept", {kept, 1000, 1, "text"});
    std::vector<void*> small;
    for (int i = 0; i < 20'000; ++i) {
        small.push_back(heap.allocate(200));
        std::memset(small.back(), i, 200);
    }
    heap.snapshot();
    CompressOptions plain;
    plain.codec = Codec::none;
    const Compressed full = compress(heap, directory / "full.tyz", plain);
    expand_file(directory / "full.tyz", directory / "full.tyn");
    for (const char* const file : {"full.tyz", "full.tyn"}) {
        const auto on_disk = taiyen::io::posix_storage().find(directory / file);
        BOOST_TEST(on_disk->allocated_bytes <= on_disk->size_bytes + 128'000);
    }
    for (void* const block : blocks) heap.deallocate(block);
    for (std::size_t i = 0; i < small.size(); ++i)
        if (i % 20 != 0) heap.deallocate(small[i]);
    heap.snapshot();
    const Compressed holes = compress(heap, [](std::span<const std::byte>) {}, plain);
    BOOST_TEST(full.stream_bytes > 19'000'000U);
    // 1000 blocks of 200 bytes, the metadata of 20 MB, and a run for each block.
    BOOST_TEST(holes.content_bytes < 900'000U);
    BOOST_TEST(holes.stream_bytes < 1'000'000U);
    compress(heap, directory / "a.tyz", plain);
    heap.close();
    expand_file(directory / "a.tyz", directory / "b.tyn");
    const auto closed = taiyen::io::posix_storage().find(directory / "a.tyn");
    if (closed->allocated_bytes < closed->size_bytes / 2) {  // else this file system knows no holes
        ArchiveHeap released(open_read_only, directory / "a.tyn");
        compress(released, directory / "c.tyz", plain);
        expand_file(directory / "c.tyz", directory / "c.tyn");
        const auto made = taiyen::io::posix_storage().find(directory / "c.tyn");
        BOOST_TEST(made->size_bytes > 19'000'000U);
        BOOST_TEST(made->allocated_bytes <= closed->allocated_bytes + 128'000);
        BOOST_TEST(made->allocated_bytes + 128'000 >= closed->allocated_bytes);
    }
    ArchiveHeap again(open_only, directory / "b.tyn");
    const auto found = heap::find_named(*again.core(), "kept");
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(std::string(static_cast<const char*>(found->object), 1000) == std::string(1000, 7));
    for (std::size_t i = 0; i < small.size(); i += 20) {
        BOOST_TEST(again.usable_size(small[i]) >= 200U);
        BOOST_TEST(std::string(static_cast<const char*>(small[i]), 200) == std::string(200, static_cast<char>(i)));
    }
    BOOST_TEST(again.verify().ok());
    again.close();
}

BOOST_AUTO_TEST_CASE(of_what_is_not_saved_give_the_newest_save) {
    ScratchDirectory directory;
    Document<InMemory> model;
    ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
    edit_and_save(heap, model, 1, 2);
    Document<InMemory> unsaved = model;
    edit(heap, unsaved, 9, 2);
    compress(heap, directory / "a.tyz");
    BOOST_TEST(content_of(heap) == describe(unsaved));
    heap.close();
    expand_file(directory / "a.tyz", directory / "b.tyn");
    ArchiveHeap saved(open_only, directory / "b.tyn");
    BOOST_TEST(content_of(saved) == describe(model));
    saved.close();
}

BOOST_AUTO_TEST_CASE(of_a_heap_whose_user_crashed_give_what_recovery_would) {
    for (const bool transactional : {false, true}) {
        ScratchDirectory directory;
        Document<InMemory> model;
        std::filesystem::create_directory(directory / "left");
        const auto copy = [&] {
            for (const auto& file : std::filesystem::directory_iterator(directory.path()))
                if (file.is_regular_file()) std::filesystem::copy_file(file.path(), directory / ("left/" + file.path().filename().string()));
        };
        if (transactional) {
            TransactionalHeap heap(create_only, directory / "a.tyn", small_heap());
            edit_and_save(heap, model, 1, 1);
            edit_and_save(heap, model, 2, 1);
            copy();
        } else {
            SnapshotHeap heap(create_only, directory / "a.tyn", small_heap());
            edit_and_save(heap, model, 1, 1);
            heap.construct<int>("small", 7);
            heap.snapshot();
            copy();
        }
        const auto before = std::filesystem::last_write_time(directory / "left/a.tyn");
        compress_file(directory / "left/a.tyn", directory / "a.tyz");
        BOOST_CHECK(before == std::filesystem::last_write_time(directory / "left/a.tyn"));
        expand_file(directory / "a.tyz", directory / "b.tyn");
        ArchiveHeap heap(open_read_only, directory / "b.tyn");
        BOOST_TEST(content_of(heap) == describe(model));
        BOOST_TEST(heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(with_another_capacity_do_where_no_block_has_to_move) {
    ScratchDirectory directory;
    Document<InMemory> model;
    std::vector<std::byte> stream;
    {
        ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
        heap.construct<taiyen::vector<int>>("large", 600'000U);
        edit_and_save(heap, model, 1, 3);
        stream = compress(heap);
        heap.close();
    }
    unsigned made = 0;
    for (const std::size_t mib : {1U, 8U, 256U, 100U}) {
        const std::filesystem::path path = directory / ("b" + std::to_string(mib) + ".tyn");
        ExpandOptions options;
        options.capacity = mib << 20U;
        if (mib == 1U) {
            BOOST_CHECK_EXCEPTION(expand(std::span(stream), path, options), Error, has_code(errc::invalid_argument));
            BOOST_TEST(!std::filesystem::exists(path));
            continue;
        }
        expand(std::span(stream), path, options);
        BOOST_TEST(read_parameters(path).capacity_bytes == options.capacity);
        ArchiveHeap heap(open_only, path);
        BOOST_TEST(content_of(heap) == describe(model));
        BOOST_TEST(heap.verify().ok());
        BOOST_TEST(heap.stats().capacity_bytes == options.capacity);
        Document<InMemory> copy = model;
        edit_and_save(heap, copy, 50, 2);
        BOOST_TEST(content_of(heap) == describe(copy));
        BOOST_TEST(heap.verify().ok());
        heap.close();
        ++made;
    }
    BOOST_TEST(made == 3U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
