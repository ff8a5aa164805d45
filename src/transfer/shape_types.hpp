#pragma once
/// ShapeTypes: types that nobody declared, as a heap itself tells them: by the shapes that it keeps beside its names, each pointer of an object is found as a declared type finds it.
///
/// A shape is enough if nothing that leads on from it is opaque: no class without fields, no container that isn't known, no pointer to what has a name only. Then exactly its pointers are met, and nothing is guessed.
/// It doesn't say whether a pointer leads to one object or to several: walk_shapes looks at what lies beside the one.
/// Each container proves itself before anything of it is believed, as in taiyen/stl/declared.hpp; it is read as libstdc++ 12 and taiyen lay theirs out, as far as their sizes confirm it.
/// Thread rule: one thread.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <taiyen/shape/shape.hpp>
#include <taiyen/transfer/declared.hpp>

#include "heap/engine.hpp"

namespace taiyen::transfer {

class ShapeTypes {
public:
    /// Adds the types of all named objects that `declared` doesn't know.
    ShapeTypes(const heap::Engine& engine, const DeclaredTypes& declared);
    ShapeTypes(const ShapeTypes&) = delete;
    ShapeTypes& operator=(const ShapeTypes&) = delete;
    ~ShapeTypes();

    /// Adds a type, if its shape is enough. Returns why it isn't; empty: it is.
    std::string add(const std::string& fingerprint, Shape shape);

    /// Those that were declared, and those that shapes tell whole. As long good as this object.
    const DeclaredTypes& types() const { return types_; }
    /// Whether all named objects are of one of them.
    bool are_all() const { return unknown_.empty(); }
    /// Whether one of them is told by a shape.
    bool has_any() const { return !known_.empty(); }
    /// Which name's type is told by nothing, and why; empty: none.
    const std::string& unknown() const { return unknown_; }

private:
    struct Type;
    struct Known;

    DeclaredTypes types_;
    std::string unknown_;
    std::map<std::string, std::unique_ptr<Known>> known_;  ///< by fingerprint
    friend class ShapeWalk;
};

}  // namespace taiyen::transfer
