// A heap made page by page.

#include <algorithm>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/checksum.hpp"
#include "store/heap_builder.hpp"
#include "store/heap_file.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(building)

BOOST_AUTO_TEST_CASE(a_heap_of_another_ones_pages_is_that_heap_and_what_was_not_written_is_zero) {
    using namespace probe;
    const std::string text = std::string(1'200'000, 'x') + std::string(300'000, '\0') + "end";
    ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "text", text);
        heap.snapshot();
    }
    {
        const ArchiveHeap heap(open_read_only, dir / "a.tyn");
        const store::Header& header = HeapAccess::file(heap).files().backing().header;
        store::HeapBuilder builder(io::posix_storage(), dir / "b.tyn",
                                   {random_uuid(), header.base, header.position_independent, header.capacity, header.extent, {}});
        const std::span bytes(reinterpret_cast<const std::byte*>(heap.core()->ranges().durable), header.extent);
        const auto page = [&](std::uint64_t number) { return bytes.subspan(number * page_bytes, page_bytes); };
        for (std::uint64_t first = 0; first < header.extent / page_bytes;) {
            std::vector<std::uint64_t> sums;
            for (std::uint64_t next = first; sums.size() < 3 && next < header.extent / page_bytes && !is_zero(page(next)); ++next)
                sums.push_back(store::page_checksum(page(next), {next}, builder.heap()));
            const std::size_t count = sums.size();
            sums.push_back(99);  // of no page of these
            if (count != 0) builder.write({first}, bytes.subspan(first * page_bytes, count * page_bytes), std::span(sums).first(count));
            first += std::max<std::uint64_t>(count, 1);
        }
        builder.publish();
    }
    ArchiveHeap heap(open_only, dir / "b.tyn");
    BOOST_TEST((std::string(find(heap, "text"), text.size()) == text));
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
