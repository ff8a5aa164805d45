#pragma once
/// make_heap: a heap's file out of the pages of another one: of another kind, capacity, address, or with its blocks laid close together, as ExpandOptions say.
///
/// Where nothing moves, the pages go into the new file as they come. Else they go into a draft, a file that never gets a name; what it holds is checked, its pointers are found, and the new file is written
/// from it. So nothing but a complete heap ever has the name, and what pages come from may be a stream.

#include <taiyen/transfer/expand.hpp>

#include "transfer/heap_move.hpp"
#include "transfer/transfer.hpp"

namespace taiyen::transfer {

/// The heap whose pages come.
struct HeapShape {
    HeapKind kind;
    std::uintptr_t base;
    bool position_independent;
    ByteCount capacity;
    ByteCount extent;
    Serial serial;
    const std::filesystem::path& name;  ///< that errors name
    bool is_volatile = false;           ///< its program may hold blocks that no name leads to, and go on with them where they lie then

    MovedHeap moved() const { return {base, position_independent, capacity, extent, name}; }
};

/// Writes all pages, each seen by `rewrite` (if there is one) before it gets its checksum.
using FillPages = std::function<void(PageTarget& target, const RewritePages& rewrite)>;

/// Durability and errors: as expand(). `fill` is called once, after everything that the options alone can be refused for.
RebaseReport make_heap(io::Storage& storage, const HeapShape& shape, const std::filesystem::path& path, const ExpandOptions& options,
                       const FillPages& fill);
/// The same out of a heap that lies in memory, at its own address.
RebaseReport make_heap(io::Storage& storage, const HeapShape& shape, const std::filesystem::path& path, const ExpandOptions& options,
                       const HeapView& view);

/// Where a heap is looked at whose pointers are to be found: by types where it means itself to lie, as whoever walks by them goes by the pointers as they are. If others are there, and guesses are allowed and
/// nothing is declared, elsewhere, without shapes. Throws: Error{address_in_use | out_of_address_space}.
vm::Reservation reserve_view(const HeapShape& heap, PointerOptions& pointers);

/// For an engine that only reads.
class MadeSpan final : public heap::SpanHost {
public:
    void extend(ByteCount) override {}
};
/// What came as pages is a heap. Throws: Error{corrupt}.
void prove(const heap::Engine& engine, const HeapShape& shape);

}  // namespace taiyen::transfer
