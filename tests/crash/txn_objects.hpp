#pragma once
/// TxnObjects: the named objects of an open heap, changed there and in the model alike.

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <taiyen/txn/transaction.hpp>

#include "store/heap_file.hpp"

namespace taiyen::crash {

class TxnObjects {
public:
    using Model = std::map<std::string, std::vector<std::byte>>;

    /// `declares`: what changes in a transaction is declared to it.
    TxnObjects(Model& model, bool declares) : model_(model), declares_(declares) {}

    void open(store::HeapFile& file) { file_ = &file; }
    void close() { file_ = nullptr; }
    /// What changes from now on is a part of it.
    void enter(Transaction& transaction) { transaction_ = &transaction; }
    void leave() { transaction_ = nullptr; }
    Transaction* transaction() const { return transaction_; }

    /// Null: there is no such object.
    std::byte* find(const std::string& name) const;
    void touch(void* address, ByteCount bytes) const;
    /// A block of that size under the name, as the heap gives it; the model still has to say what it holds.
    std::byte* own_block(const std::string& name, ByteCount size);
    void set(const std::string& name, ByteCount size, std::uint64_t seed);
    /// Zeros and a byte, of which only the byte is written. Throws std::runtime_error: the block isn't zero.
    void set_sparse(const std::string& name, ByteCount size);
    /// A few bytes of it.
    void change(const std::string& name, std::uint64_t seed);
    void drop(const std::string& name);
    /// One of the above, to one of four objects.
    void change_something(std::mt19937_64& random);
    /// The object "number": which state the heap holds.
    void set_number(std::uint64_t number);
    /// Nothing: 1.
    std::uint64_t number() const;
    /// What the object "owner" has; null: nothing.
    std::byte* owned() const;
    /// The object "owner", as a container has it: its allocator, then its pointer.
    void set_owner(const std::byte* block);

    /// Throws std::runtime_error unless the heap has these objects; `what` names them.
    void compare(const Model& expected, const std::string& what) const;

private:
    Model& model_;
    const bool declares_;
    store::HeapFile* file_ = nullptr;
    Transaction* transaction_ = nullptr;
};

}  // namespace taiyen::crash
