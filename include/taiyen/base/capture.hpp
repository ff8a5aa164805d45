#pragma once
/// How a heap learns what a program writes, how often that is proven, and when a commit returns.

namespace taiyen {

/// How writes of the program become known (rooms change, undo, txn). Archive and snapshot heaps without a history or an open scope need none of it.
enum class Capture {
    pages,    ///< pages are write-protected; the first store keeps a twin that is compared later. Works for any code
    stores,   ///< code compiled with taiyen_instrument_stores() announces each store
    declared  ///< the program names each range (`touch`) before it writes there
};
/// When a commit returns.
enum class Durability { sync, async };
/// How often the audit proves that no write escaped capture.
enum class Audit {
    off,
    snapshot,  ///< at each save
    scope      ///< at the end of each scope, too
};

}  // namespace taiyen
