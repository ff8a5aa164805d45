#include "key_values.hpp"

#ifdef TAIYEN_BENCH_SQLITE
#include <sqlite3.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace bench {
namespace {

/// One connection behind a mutex: SQLite has one writer at a time whatever one does, and connections that wait for one another sleep.
class Sqlite final : public KeyValues {
public:
    explicit Sqlite(const Setup& setup)
        : KeyValues(std::string("SQLite, WAL ") + level(setup.commit) + (setup.settings == Settings::fastest ? "" : ", defaults"),
                    std::string(TAIYEN_BENCH_SQLITE) + ", journal_mode=WAL, synchronous=" + level(setup.commit) +
                        (setup.settings == Settings::fastest ? ", locking_mode=EXCLUSIVE, cache of 256 MiB; the WAL has its full size already"
                                                             : "; a new WAL") +
                        "; prepared statements, one connection that threads share") {
        std::filesystem::create_directories(setup.folder);
        const auto path = setup.folder / "bench.sqlite";
        check(::sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr));
        const bool fastest = setup.settings == Settings::fastest;
        if (fastest) run("PRAGMA locking_mode=EXCLUSIVE");
        run("PRAGMA journal_mode=WAL");
        run("PRAGMA synchronous=OFF");
        if (fastest) run("PRAGMA cache_size=-262144");
        run("CREATE TABLE pairs(key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
        check(::sqlite3_prepare_v2(database_, "INSERT INTO pairs VALUES(?1, ?2)", -1, &insert_, nullptr));
        check(::sqlite3_prepare_v2(database_, "UPDATE pairs SET value=?2 WHERE key=?1", -1, &update_, nullptr));
        check(::sqlite3_prepare_v2(database_, "SELECT value FROM pairs WHERE key=?1", -1, &select_, nullptr));
        run("BEGIN");
        std::vector<std::uint64_t> keys = sorted_keys(setup.keys);
        std::sort(keys.begin(), keys.end(),
                  [](std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b); });
        for (const std::uint64_t key : keys) write(insert_, key, first_value(key));
        run("COMMIT");
        run("PRAGMA wal_checkpoint(TRUNCATE)");
        if (fastest) {
            // Until the WAL starts over at its beginning, commits grow the file: not what they cost later.
            Random random(1);
            update(random, Keys(setup.keys), 1200);
            run("PRAGMA wal_checkpoint(RESTART)");
        }
        run((std::string("PRAGMA synchronous=") + level(setup.commit)).c_str());
    }
    Sqlite(const Sqlite&) = delete;
    Sqlite& operator=(const Sqlite&) = delete;
    ~Sqlite() override {
        for (sqlite3_stmt* statement : {insert_, update_, select_}) ::sqlite3_finalize(statement);
        ::sqlite3_close(database_);
    }

    void update(Random& random, const Keys& keys, std::size_t transactions) override {
        for (std::size_t i = 0; i < transactions; ++i) {
            const Update next = next_update(random, keys);
            const std::lock_guard lock(mutex_);
            write(update_, next.key, next.value);
        }
    }

    std::uint64_t read(Random& random, const Keys& keys, std::size_t transactions) override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < transactions; ++i) {
            const std::lock_guard lock(mutex_);
            check(::sqlite3_bind_int64(select_, 1, static_cast<sqlite3_int64>(keys.pick(random))));
            if (::sqlite3_step(select_) != SQLITE_ROW) throw std::runtime_error("SQLite: a key is missing");
            sum += static_cast<const std::uint32_t*>(::sqlite3_column_blob(select_, 0))[7];
            check(::sqlite3_reset(select_));
        }
        return sum;
    }

private:
    static const char* level(Commit commit) { return commit == Commit::sync ? "FULL" : "NORMAL"; }
    void check(int code) const {
        if (code != SQLITE_OK) throw std::runtime_error(std::string("SQLite: ") + ::sqlite3_errmsg(database_));
    }
    void run(const char* statement) { check(::sqlite3_exec(database_, statement, nullptr, nullptr, nullptr)); }
    void write(sqlite3_stmt* statement, std::uint64_t key, const Value& value) {
        check(::sqlite3_bind_int64(statement, 1, static_cast<sqlite3_int64>(key)));
        check(::sqlite3_bind_blob(statement, 2, value.data(), sizeof value, SQLITE_STATIC));
        if (::sqlite3_step(statement) != SQLITE_DONE) throw std::runtime_error(std::string("SQLite: ") + ::sqlite3_errmsg(database_));
        check(::sqlite3_reset(statement));
    }
    std::mutex mutex_;
    sqlite3* database_ = nullptr;
    sqlite3_stmt* insert_ = nullptr;
    sqlite3_stmt* update_ = nullptr;
    sqlite3_stmt* select_ = nullptr;
};

}  // namespace

std::unique_ptr<KeyValues> make_sqlite(const Setup& setup) { return std::make_unique<Sqlite>(setup); }
}  // namespace bench
#else
namespace bench {
std::unique_ptr<KeyValues> make_sqlite(const Setup&) { return nullptr; }
}  // namespace bench
#endif
