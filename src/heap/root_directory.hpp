#pragma once
/// Named objects: an open-addressing hash table and its entries in one run of kind `directory`, doubled when full.
///
/// (I1) Offsets and counts read from the run are compared with its size before they are used; a lie is Error{corrupt}.
/// (I2) At least a quarter of the slots is empty, so each probe ends.
/// Complexity: look-up, addition (amortised) and removal constant.

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "heap/runs.hpp"

namespace taiyen::heap {

class RootDirectory {
public:
    static constexpr ByteCount name_bytes_max = 1024;
    static constexpr ByteCount fingerprint_bytes_max = 4096;

    RootDirectory(const Span& span, PageMap& pages, Runs& runs) : span_(span), pages_(pages), runs_(runs) {}

    std::optional<Root> find(std::string_view name) const;
    void add(const Root& root);
    /// The same for all names of a heap that has none yet, which differ: no more room than they need is asked for, not that of smaller directories on the way there.
    void add_first(std::span<const Root> roots);
    bool remove(std::string_view name);
    /// The object of that name lies there now. In place.
    bool move(std::string_view name, HeapOffset object);
    /// The object of that name has that fingerprint now. The entry is written anew; what was in its place stays unused until the directory is rewritten, as after `remove`.
    bool retype(std::string_view name, std::string_view fingerprint);
    std::vector<Root> all() const;
    /// Appends what is wrong.
    void check(std::vector<Damage>& damages, std::size_t limit) const;

private:
    struct Table {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        layout::DirectoryHead* head = nullptr;
        layout::DirectorySlot* slots = nullptr;
    };
    /// One entry, checked.
    struct View {
        const layout::DirectoryEntry* entry;
        std::string_view name;
        std::string_view fingerprint;
        std::uint64_t length;  ///< in the arena
    };

    /// Nothing if no name was ever added. Throws: Error{corrupt}.
    std::optional<Table> table() const;
    View view(const Table& table, std::uint32_t entry) const;
    /// Slot of the name.
    std::optional<std::uint32_t> locate(const Table& table, std::string_view name, std::uint32_t hash) const;
    Table create(std::uint64_t bytes);
    Table rebuild(const std::optional<Table>& old, std::uint64_t extra);
    /// Writes an entry behind all others, without a slot; returns where.
    std::uint32_t write(const Table& table, const layout::DirectoryEntry& entry, std::string_view name, std::string_view fingerprint);
    bool has_room(const Table& table, std::uint64_t length) const { return table.bytes - table.head->arena_end >= length; }
    void append(const Table& table, const Root& root, std::uint32_t hash);
    void append(const Table& table, const layout::DirectoryEntry& entry, std::string_view name, std::string_view fingerprint, std::uint32_t hash);

    const Span span_;
    PageMap& pages_;
    Runs& runs_;
};

}  // namespace taiyen::heap
