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
#include <utility>
#include <vector>

#include "heap/runs.hpp"

namespace taiyen::heap {

class RootDirectory {
public:
    static constexpr ByteCount name_bytes_max = 1024;
    static constexpr ByteCount fingerprint_bytes_max = 4096;
    static constexpr std::uint64_t shape_parts_max = 32;  ///< of fingerprint_bytes_max each

    RootDirectory(const Span& span, PageMap& pages, Runs& runs) : span_(span), pages_(pages), runs_(runs) {}

    std::optional<Root> find(std::string_view name) const;
    /// `shape`: that of its type, which is stored with it as by `set_shape`, or left out if there is room for the name alone.
    void add(const Root& root, std::string_view shape = {});
    /// The same for all names of a heap that has none yet, which differ: no more room than they need is asked for, not that of smaller directories on the way there.
    void add_first(std::span<const Root> roots);
    /// Each of these names, which are there, leads to another object, of a type whose encoded shape is kept in place of any other. Throws: HeapFull, Error{corrupt | invalid_argument}: nothing has changed.
    void replace(std::span<const std::pair<Root, std::string_view>> roots);
    bool remove(std::string_view name);
    /// The object of that name lies there now. In place.
    bool move(std::string_view name, HeapOffset object);
    /// The object of that name has that fingerprint now. The entry is written anew; what was in its place stays unused until the directory is rewritten, as after `remove`.
    bool retype(std::string_view name, std::string_view fingerprint);
    /// Without the shapes of types.
    std::vector<Root> all() const { return those(false); }

    // Shapes of types: entries under names that no program gives, in as many parts as they need.
    /// As it was stored; nothing if there is none, or not all of it.
    std::optional<std::string> shape(std::string_view fingerprint) const;
    /// From now on the shape of the type with that fingerprint. Throws: HeapFull: nothing has changed.
    void set_shape(std::string_view fingerprint, std::string_view encoded);
    /// The entries of those that are whole, as `add_first` takes them.
    std::vector<Root> shapes() const;
    /// Those that are not whole or can't be read, which are no damage: nothing needs them.
    std::vector<Damage> bad_shapes() const;
    static bool is_shape(std::string_view name) noexcept;
    /// Appends what is wrong, but for shapes.
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
    /// With room for that many more entries of that length in all.
    Table rebuild(const std::optional<Table>& old, std::uint64_t extra, std::size_t count = 1);
    /// The table, rebuilt if it has no room for these.
    Table with_room(std::span<const Root> roots);
    /// Requires: there is room for its parts. What is stored in their place goes.
    void put_shape(const Table& table, std::span<const Root> parts);
    /// `stem`: of the names of its parts.
    std::optional<std::string> whole_shape(std::string_view stem) const;
    /// Writes an entry behind all others, without a slot; returns where.
    std::uint32_t write(const Table& table, const layout::DirectoryEntry& entry, std::string_view name, std::string_view fingerprint);
    bool has_room(const Table& table, std::uint64_t length) const { return table.bytes - table.head->arena_end >= length; }
    std::vector<Root> those(bool shapes) const;
    void append(const Table& table, const Root& root, std::uint32_t hash);
    void append(const Table& table, const layout::DirectoryEntry& entry, std::string_view name, std::string_view fingerprint, std::uint32_t hash);

    const Span span_;
    PageMap& pages_;
    Runs& runs_;
};

}  // namespace taiyen::heap
