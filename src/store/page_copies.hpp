#pragma once
/// Pages and checksum tables of a heap's two copies: which of them are sound, and how one copy gets what the other has.
/// Thread rule: external lock.

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "store/page_file.hpp"
#include "store/save_record.hpp"

namespace taiyen::store {

/// The numbers of the pages that these saves bring.
std::set<std::uint64_t> pages_of(const std::vector<SaveRecord>& saves);

/// Gives the sound table page, from the backing file, else from the data file, else rebuilt: entries of pages that `is_covered` are left as found
/// (their saves follow), all others must match their pages. `via`: how the backing file is asked first; recovery asks the device, an open heap knows that what its
/// page cache holds was recovered or is its own. What the device refuses to read is as bad as what is damaged. Throws: Error{corrupt | io_error}. Returns whether it had to be repaired.
bool load_table_page(const PageFile& backing, const PageFile* data, std::uint64_t index, const Extents& extents,
                     const std::function<bool(PageNumber)>& is_covered, Via via, TablePage& page);

/// Brings `to` to what `from` holds: pages of table pages newer than `since` (all, if `everything`), compared by content; then table, sync, and a header
/// with `from`'s generation. Throws: Error{corrupt} if a page of `from` is damaged.
void copy_newer(const PageFile& from, PageFile& to, Generation since, bool everything);

/// Sum over the non-zero table pages of mix(index, checksum). `twin`: a file of the same generation (null: none), asked where the device refuses.
/// Throws: Error{io_error}.
std::uint64_t table_root_of(const PageFile& file, const Extents& extents, Via via, const PageFile* twin = nullptr);

/// Proves the last save before a last resort accepts it: the table is the one that the file's header stands for, and each page that none of the saves brings is in the file, or in `twin` (null: none), a copy of the
/// same generation, as the table says. A staged save may have been on its way into the file. Throws: Error{corrupt | io_error}.
void prove_last_save(const PageFile& file, const PageFile* twin, const std::vector<SaveRecord>& saves);

/// Proves that the backing file and the ring alone hold the newest save: every page that no save of the ring brings is the one that the table stands for. Throws: Error{corrupt | io_error}.
void prove_alone(const PageFile& backing, const std::vector<SaveRecord>& saves);

}  // namespace taiyen::store
