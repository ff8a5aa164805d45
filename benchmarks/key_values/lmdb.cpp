#include "key_values.hpp"

#ifdef TAIYEN_BENCH_LMDB
#include <lmdb.h>

#include <algorithm>
#include <stdexcept>

namespace bench {
namespace {

void check(int code, const char* what) {
    if (code != MDB_SUCCESS) throw std::runtime_error(std::string("LMDB: ") + what + ": " + ::mdb_strerror(code));
}

class Lmdb final : public KeyValues {
public:
    explicit Lmdb(const Setup& setup)
        : KeyValues(setup.commit == Commit::sync ? "LMDB" : "LMDB, NOSYNC|WRITEMAP",
                    std::string(TAIYEN_BENCH_LMDB) +
                        (setup.commit == Commit::sync ? ", syncs at each commit (without WRITEMAP, which has to call msync)"
                                                      : ", MDB_NOSYNC|MDB_WRITEMAP: nothing is ever synced, a power cut may destroy the file") +
                        (setup.memory != 0 ? ", MDB_NORDAHEAD" : "") +
                        "; integer keys, loaded in ascending order; a read transaction is renewed for each get") {
        std::filesystem::create_directories(setup.folder);
        check(::mdb_env_create(&environment_), "environment");
        check(::mdb_env_set_mapsize(environment_, std::max(std::size_t{2} << 30U, setup.keys * 400)), "map size");
        const unsigned flags = (setup.commit == Commit::sync ? 0U : MDB_NOSYNC | MDB_WRITEMAP) | (setup.memory != 0 ? MDB_NORDAHEAD : 0U);
        check(::mdb_env_open(environment_, setup.folder.c_str(), flags, 0600), "open");
        MDB_txn* transaction = nullptr;
        check(::mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin");
        check(::mdb_dbi_open(transaction, nullptr, MDB_INTEGERKEY, &table_), "table");
        if (!setup.is_there)
            for (std::uint64_t key : sorted_keys(setup.keys)) put(transaction, key, first_value(key), MDB_APPEND);
        check(::mdb_txn_commit(transaction), "commit");
        check(::mdb_env_sync(environment_, 1), "sync");
    }
    Lmdb(const Lmdb&) = delete;
    Lmdb& operator=(const Lmdb&) = delete;
    ~Lmdb() override { ::mdb_env_close(environment_); }

    void update(Random& random, const Keys& keys, std::size_t transactions) override {
        for (std::size_t i = 0; i < transactions; ++i) {
            const Update next = next_update(random, keys);
            MDB_txn* transaction = nullptr;
            check(::mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin");
            put(transaction, next.key, next.value, 0);
            check(::mdb_txn_commit(transaction), "commit");
        }
    }

    std::uint64_t read(Random& random, const Keys& keys, std::size_t transactions) override {
        MDB_txn* transaction = nullptr;
        check(::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction), "begin");
        ::mdb_txn_reset(transaction);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < transactions; ++i) {
            std::uint64_t number = keys.pick(random);
            MDB_val key{sizeof number, &number};
            MDB_val value{};
            check(::mdb_txn_renew(transaction), "renew");
            check(::mdb_get(transaction, table_, &key, &value), "get");
            sum += static_cast<const std::uint32_t*>(value.mv_data)[7];
            ::mdb_txn_reset(transaction);
        }
        ::mdb_txn_abort(transaction);
        return sum;
    }

private:
    void put(MDB_txn* transaction, std::uint64_t number, const Value& bytes, unsigned flags) const {
        MDB_val key{sizeof number, &number};
        MDB_val value{sizeof bytes, const_cast<Value*>(&bytes)};
        check(::mdb_put(transaction, table_, &key, &value, flags), "put");
    }
    MDB_env* environment_ = nullptr;
    MDB_dbi table_ = 0;
};

}  // namespace

std::unique_ptr<KeyValues> make_lmdb(const Setup& setup) { return std::make_unique<Lmdb>(setup); }
}  // namespace bench
#else
namespace bench {
std::unique_ptr<KeyValues> make_lmdb(const Setup&) { return nullptr; }
}  // namespace bench
#endif
