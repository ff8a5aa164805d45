#pragma once
/// StoreCursor: a copy of a leaf, and a place in it. It goes on in the tree by the leaf's fences, so nodes need no links between them.
/// Thread rule: one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/epochs.hpp"
#include "ordered/store_node.hpp"
#include "ordered/store_tree.hpp"

namespace taiyen::ordered {

class StoreCursor {
public:
    explicit StoreCursor(const StoreTree& tree) noexcept : tree_(tree) { leaf_.set_version(0); }

    bool seek(std::string_view key);
    bool seek_at_most(std::string_view key);
    bool seek_last();
    bool next();
    bool previous();
    bool is_there() const noexcept { return is_there_; }
    std::string_view key() const noexcept { return key_view_; }
    std::string_view value() const noexcept;
    /// Keys from where it stands, before `to`; it moves.
    std::uint64_t count_before(std::optional<std::string_view> to);

private:
    void load(std::string_view key, bool before, bool from_end);
    std::uint32_t count() const noexcept { return leaf_.state().count(); }
    /// Requires: the key shares the leaf's prefix.
    StorePlace place_of(std::string_view key) const noexcept;
    bool settle_forward();
    bool settle_backward();
    bool show();

    const StoreTree& tree_;
    std::optional<EpochGuard> guard_;  ///< keeps what the copy refers to
    std::uint32_t at_ = 0;
    bool is_there_ = false;
    std::string bound_;
    std::string key_;
    std::string_view key_view_;
    StoreNode leaf_;
};

}  // namespace taiyen::ordered
