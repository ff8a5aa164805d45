#pragma once
/// What differs between two stored values, or two heaps, said by paths: fields, elements and keys.
///
///     for_each_difference("yesterday.tyn", "today.tyn", [](const ViewDifference& difference) {
///         std::cout << difference.path << "\n";                       // parts["bolt"].weight
///         return true;
///     });

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/view.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

/// A place where they differ: the smallest value that does.
struct ViewDifference {
    /// As `ViewValue::at` takes it, but for keys that are no texts or numbers, which stand in brackets as JSON; elements of sets, which are named like keys; and texts of more than 200 bytes, which are cut.
    std::string path;
    std::optional<ViewValue> before;  ///< nothing: only the second one has it
    std::optional<ViewValue> after;   ///< nothing: only the first one has it
};

/// Calls `take` with each difference, in the order of the first one, until it returns false. Fields are compared by name, elements of maps and sets by key, those of other containers by number; what an optional or a
/// variant holds as itself; pointers by where they lead to, which is not followed; what is opaque by its bytes. Of maps with equal keys each pair of key and value is one element, there or not.
/// Returns paths to values that were compared by their own bytes only, a hundred at most: where the elements of such a container lie is not known, or nothing is of such a class (TAIYEN_DESCRIBE tells its fields), which may
/// hold pointers. Fields that a description leaves out are not compared. Throws: Error{corrupt}; also of what lies more than 1,000 deep.
/// Complexity: linear in the elements; memory of one path, and of the keys behind the first that only one of two containers has there.
TAIYEN_EXPORT std::vector<std::string> for_each_difference(const ViewValue& before, const ViewValue& after,
                                                           const std::function<bool(const ViewDifference&)>& take);

/// The same of all named objects of two heaps, also of copies of one heap, which are open only while this runs, and so are the values good. Returns also the names of objects whose types' shapes one of the heaps doesn't know.
/// Durability: none, both are only read. Throws: as opening them, and View; Error{mismatch}: the log of one that was not closed holds calls of procedures.
TAIYEN_EXPORT std::vector<std::string> for_each_difference(const std::filesystem::path& before, const std::filesystem::path& after,
                                                           const std::function<bool(const ViewDifference&)>& take,
                                                           const PersistentOptions& options_before = {}, const PersistentOptions& options_after = {});

/// What a transaction changed that stands in the heap's log and that its files don't hold yet, as `taiyen log` lists them. The heap must not be open for writing elsewhere.
/// Returns, throws: as of two heaps; Error{not_found}: the log holds no such transaction. Durability: none. Complexity: opens the heap twice, in memory, and is linear in its elements.
TAIYEN_EXPORT std::vector<std::string> for_each_difference_of_transaction(const std::filesystem::path& path, std::uint64_t serial,
                                                                          const std::function<bool(const ViewDifference&)>& take,
                                                                          const PersistentOptions& options = {});

/// What a step of the undo history changed, whether it is undone now or not, as `taiyen history` lists them; between this step and now no procedure may have been called, which only the program can take back.
/// Returns, throws: as of two heaps; Error{not_found}: there is no such step; Error{mismatch}: a procedure was called; Error{history_conflict}: something was changed that no step knows.
/// Durability: none. Complexity: as for a transaction, and linear in the bytes of the steps between this one and now.
TAIYEN_EXPORT std::vector<std::string> for_each_difference_of_step(const std::filesystem::path& path, std::uint64_t step,
                                                                   const std::function<bool(const ViewDifference&)>& take,
                                                                   const PersistentOptions& options = {});

}  // namespace taiyen
