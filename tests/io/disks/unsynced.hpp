#pragma once
/// What a failed sync does to a pretended file: the seam by which a fault injector tells the disk below it.

namespace taiyen::io {

/// A file that can act out a failed sync as Linux does it: the call reports an error once, the page cache goes on showing the new bytes, the
/// disk keeps the old ones, and a later sync covers only what is written again after that.
class LosesUnsynced {
public:
    LosesUnsynced() = default;
    LosesUnsynced(const LosesUnsynced&) = delete;
    LosesUnsynced& operator=(const LosesUnsynced&) = delete;
    virtual ~LosesUnsynced() = default;

    virtual void lose_unsynced() = 0;
};

}  // namespace taiyen::io
