#include "key_values.hpp"

#ifdef TAIYEN_BENCH_ROCKSDB
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <stdexcept>

namespace bench {
namespace {

void check(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

class RocksDb final : public KeyValues {
public:
    explicit RocksDb(const Setup& setup)
        : KeyValues(
              std::string("RocksDB, WAL ") + (setup.commit == Commit::sync ? "sync" : "not synced") +
                  (setup.settings == Settings::fastest ? "" : ", defaults"),
              std::string(TAIYEN_BENCH_ROCKSDB) + (setup.commit == Commit::sync ? ", WriteOptions::sync" : ", WAL written, not synced") +
                  (setup.settings == Settings::fastest ? ", recycle_log_file_num=2 and the first laps are over, no compression, block cache of " +
                                                             std::to_string(cache_of(setup) >> 20U) + " MiB, Bloom filters" +
                                                             (setup.memory != 0 ? ", direct reads, memtables of 8 MiB" : "")
                                                       : "; a new WAL")) {
        std::filesystem::create_directories(setup.folder);
        rocksdb::Options options;
        options.create_if_missing = true;
        const bool fastest = setup.settings == Settings::fastest;
        if (fastest) {
            options.compression = rocksdb::kNoCompression;
            options.recycle_log_file_num = 2;
            options.stats_dump_period_sec = 0;
            options.stats_persist_period_sec = 0;
            rocksdb::BlockBasedTableOptions table;
            table.block_cache = rocksdb::NewLRUCache(cache_of(setup));
            if (setup.memory != 0) {
                options.use_direct_reads = true;
                options.write_buffer_size = std::size_t{8} << 20U;
                options.max_open_files = -1;
            }
            table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
            options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
        }
        rocksdb::DB* made = nullptr;
        check(rocksdb::DB::Open(options, setup.folder.string(), &made));
        database_.reset(made);
        write_.sync = setup.commit == Commit::sync;
        if (setup.is_there) return;
        write_.sync = false;
        for (const std::uint64_t key : sorted_keys(setup.keys)) put(key, first_value(key));
        // New WAL files grow with each commit; from now on they are old ones, written over.
        Random random(1);
        for (int lap = 0; fastest && lap < 4; ++lap) {
            update(random, Keys(setup.keys), 40'000);
            check(database_->Flush({}));
        }
        if (setup.memory != 0) check(database_->CompactRange({}, nullptr, nullptr));
        write_.sync = setup.commit == Commit::sync;
    }

    void update(Random& random, const Keys& keys, std::size_t transactions) override {
        for (std::size_t i = 0; i < transactions; ++i) {
            const Update next = next_update(random, keys);
            put(next.key, next.value);
        }
    }

    std::uint64_t read(Random& random, const Keys& keys, std::size_t transactions) override {
        std::uint64_t sum = 0;
        rocksdb::PinnableSlice value;
        for (std::size_t i = 0; i < transactions; ++i) {
            const std::uint64_t key = ordered(keys.pick(random));
            value.Reset();
            check(database_->Get({}, database_->DefaultColumnFamily(), slice(key), &value));
            sum += reinterpret_cast<const std::uint32_t*>(value.data())[7];
        }
        return sum;
    }

private:
    static std::size_t cache_of(const Setup& setup) { return setup.memory != 0 ? setup.memory / 2 : std::size_t{256} << 20U; }
    /// Big-endian, so that bytes compare as numbers do.
    static std::uint64_t ordered(std::uint64_t key) { return __builtin_bswap64(key); }
    static rocksdb::Slice slice(const std::uint64_t& key) { return {reinterpret_cast<const char*>(&key), sizeof key}; }
    void put(std::uint64_t number, const Value& value) {
        const std::uint64_t key = ordered(number);
        check(database_->Put(write_, slice(key), {reinterpret_cast<const char*>(value.data()), sizeof value}));
    }
    std::unique_ptr<rocksdb::DB> database_;
    rocksdb::WriteOptions write_;
};

}  // namespace

std::unique_ptr<KeyValues> make_rocksdb(const Setup& setup) { return std::make_unique<RocksDb>(setup); }
}  // namespace bench
#else
namespace bench {
std::unique_ptr<KeyValues> make_rocksdb(const Setup&) { return nullptr; }
}  // namespace bench
#endif
