#include "key_values.hpp"

#ifdef TAIYEN_BENCH_PMEMOBJ
#include <libpmemobj.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>

namespace bench {
namespace {

/// A balanced binary tree in one block of the pool, laid out once; an update is a transaction that adds the value's range and overwrites it.
class Pmemobj final : public KeyValues {
public:
    explicit Pmemobj(const Setup& setup)
        : KeyValues("libpmemobj", std::string(TAIYEN_BENCH_PMEMOBJ) +
                                      ", transactional API (pmemobj_tx_add_range_direct) on a balanced binary tree in the pool; on a disk it makes "
                                      "bytes durable by msync") {
        std::filesystem::create_directories(setup.folder);
        ::unsetenv("PMEM_IS_PMEM_FORCE");
        const std::size_t bytes = setup.keys * sizeof(Node);
        pool_ = ::pmemobj_create((setup.folder / "bench.pool").c_str(), "bench", (std::size_t{32} << 20U) + bytes * 2, 0600);
        if (pool_ == nullptr) throw std::runtime_error(std::string("libpmemobj: ") + ::pmemobj_errormsg());
        PMEMoid block{};
        if (::pmemobj_alloc(pool_, &block, bytes, 0, nullptr, nullptr) != 0) throw std::bad_alloc();
        nodes_ = static_cast<Node*>(::pmemobj_direct(block));
        const std::vector<std::uint64_t> keys = sorted_keys(setup.keys);
        std::size_t used = 0;
        root_ = build(keys.data(), keys.data() + keys.size(), used);
        ::pmemobj_persist(pool_, nodes_, bytes);
    }
    Pmemobj(const Pmemobj&) = delete;
    Pmemobj& operator=(const Pmemobj&) = delete;
    ~Pmemobj() override { ::pmemobj_close(pool_); }

    void update(Random& random, const Keys& keys, std::size_t transactions) override {
        for (std::size_t i = 0; i < transactions; ++i) {
            const Update next = next_update(random, keys);
            Node& node = find(next.key);
            const std::lock_guard lock(stripes_[next.key % stripes_.size()]);
            if (::pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0 || ::pmemobj_tx_add_range_direct(&node.value, sizeof node.value) != 0)
                throw std::runtime_error(std::string("libpmemobj: ") + ::pmemobj_errormsg());
            node.value = next.value;
            ::pmemobj_tx_commit();
            if (::pmemobj_tx_end() != 0) throw std::runtime_error(std::string("libpmemobj: ") + ::pmemobj_errormsg());
        }
    }

    std::uint64_t read(Random& random, const Keys& keys, std::size_t transactions) override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < transactions; ++i) {
            const std::uint64_t key = keys.pick(random);
            Node& node = find(key);
            const std::lock_guard lock(stripes_[key % stripes_.size()]);
            sum += node.value[7];
        }
        return sum;
    }

private:
    struct Node {
        std::uint64_t key;
        Node* left;  ///< the pool stays where it is for the length of a run
        Node* right;
        Value value;
    };
    Node* build(const std::uint64_t* first, const std::uint64_t* last, std::size_t& used) {
        if (first == last) return nullptr;
        const std::uint64_t* const middle = first + (last - first) / 2;
        Node* const node = nodes_ + used++;
        node->key = *middle;
        node->value = first_value(*middle);
        node->left = build(first, middle, used);
        node->right = build(middle + 1, last, used);
        return node;
    }
    Node& find(std::uint64_t key) const {
        Node* node = root_;
        while (node != nullptr && node->key != key) node = key < node->key ? node->left : node->right;
        if (node == nullptr) throw std::runtime_error("libpmemobj: a key is missing");
        return *node;
    }
    PMEMobjpool* pool_ = nullptr;
    Node* nodes_ = nullptr;
    Node* root_ = nullptr;
    std::array<std::mutex, 64> stripes_;
};

}  // namespace

std::unique_ptr<KeyValues> make_pmemobj(const Setup& setup) { return std::make_unique<Pmemobj>(setup); }
}  // namespace bench
#else
namespace bench {
std::unique_ptr<KeyValues> make_pmemobj(const Setup&) { return nullptr; }
}  // namespace bench
#endif
