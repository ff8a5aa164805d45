#pragma once
/// Companions: the files beside a heap's own one, as they come and go: data file, journal, transaction log; and copies of the newest save.
///
/// (N1) Each is made without a name, complete and synced, then published and its directory synced; the header of the heap's own file that names it is the commit point.
/// (N2) What fails before a durable step begins leaves the heap as it was, and at most an orphan, which goes when something is made at its place. What fails within it poisons.
/// Thread rule: attach, detach, replace and copy are safe beside transactions; a heap without them: external lock. The rest belongs to opening.

#include <functional>
#include <memory>
#include <mutex>

#include "store/healing.hpp"

namespace taiyen::store {

class Companions {
public:
    struct Wanted {
        ByteCount journal_bytes;  ///< of a journal
        ByteCount log_bytes;      ///< of a log; 0: the default
        bool data;                ///< a data file, if the heap has none
    };
    /// All must outlive it.
    Companions(Condition& condition, HeapFiles& files, Image& image, Proofs& proofs, Saves& saves, Healing& healing, Visits& visits,
               const std::shared_ptr<SnapshotParticipant>& participant, const Wanted& wanted)
        : condition_(condition), files_(files), image_(image), proofs_(proofs), saves_(saves), healing_(healing), visits_(visits),
          participant_(participant), wanted_(wanted) {}

    /// The heap is opened for writing: it gets the ring of its kind, and the data file that it wants. Durability: on return.
    void begin_writing();
    /// Gives the heap a second copy of everything in that file (empty: beside it); saves wait for a part of it at a time, transactions only for what was saved meanwhile.
    /// `tell` is called while saves are held. Durability: on return; a crash before leaves the heap without. Throws: Error{already_exists | busy | scope_open | no_space | corrupt | mismatch | invalid_argument}:
    /// nothing changed.
    void attach_data_file(const std::filesystem::path& path, const TellBytes& tell);
    /// Proves the heap's own file, then goes on without the other one, which is removed. Durability: on return. Throws: Error{not_found | scope_open | corrupt}: nothing changed.
    void detach_data_file();
    /// The ring of the transaction log, to append to; the heap keeps the file and its identity for headers, stage and recovery. Once.
    std::unique_ptr<log::Ring> take_log();
    /// Puts an empty log of that capacity (0: as it is) in the place of the one in use, there or in another file (empty: there); to be appended to. Durability: on return.
    /// Requires: the files hold everything that was committed, and nobody appends. Throws: Error{no_space | mismatch | invalid_argument}: nothing changed.
    std::unique_ptr<log::Ring> replace_log(ByteCount capacity, const std::filesystem::path& path);
    /// Removes the log that an earlier opening left beside the heap, of which nothing counts any more; without one nothing happens. Durability: on return; a crash before leaves it, or an orphan that the next log
    /// replaces. Requires: the ring in use is a journal.
    void remove_log();
    /// Writes the newest save into a new file: a heap of its own without a second copy, closed. It has the heap's uuid and address. Every page is proven, and comes from the data file if need be.
    /// Durability: on return the copy is durable, with its name; a crash before leaves all of it or nothing. Throws: Error{already_exists | not_found (directory) | no_space | corrupt | …}: there is
    /// no copy, and this heap is as before.
    void write_copy(const std::filesystem::path& to, const TellBytes& tell = {});
    /// Reads the pages within `extents` that one page of the checksum table covers, proven, as the newest save left them; returns how many. 0: since that generation none of them was saved, or, without one, all are zero.
    /// `pages`: room for all of a table page. Requires: saves are held. Throws: Error{corrupt | io_error}.
    std::uint64_t read_saved(std::uint64_t index, std::optional<Generation> since, const Extents& extents, std::span<std::byte> pages) const;
    /// Of a file that holds the newest save, and is a heap of its own. Requires: saves are held.
    Header header_of_copy();
    /// Durability: on return, in every file. Requires: the heap has a log.
    void mark_replica(const ReplicaMark& mark);
    /// Runs the step while nobody changes the heap and the files hold all that was committed. Throws: Error{scope_open}; what `step` throws.
    void stand_still(const std::function<void()>& step);

private:
    /// A data file in the making, without a name: its first headers.
    PageFile make_data(const HeapPaths& to);
    /// One that holds the newest save gets its name, durably: an orphan until it is named.
    void publish_data(PageFile& data, const HeapPaths& to);
    /// From here on it is the heap's.
    void name_data(PageFile& data);
    /// Throws: Error{already_exists}.
    void require_no_data() const;
    void attach_data();
    void attach_journal();
    void attach_log();
    void note_reopened();
    /// Copies the pages of the newest save and the table into `to`, proven; `since`: of table pages that were changed by later saves than that one, over what is there. `saves`: held, and let go for a moment
    /// again and again. Requires: nothing waits for a checkpoint. Throws: Error{corrupt | no_space | io_error}.
    void copy_saved(PageFile& to, std::optional<Generation> since, const TellBytes& tell, std::unique_lock<std::mutex>* saves);

    Condition& condition_;
    HeapFiles& files_;
    Image& image_;
    Proofs& proofs_;
    Saves& saves_;
    Healing& healing_;
    Visits& visits_;
    const std::shared_ptr<SnapshotParticipant>& participant_;
    const Wanted wanted_;
    bool log_taken_ = false;
};

}  // namespace taiyen::store
