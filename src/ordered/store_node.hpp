#pragma once
/// StoreNode: a node of an ordered store: 4 KiB with slots in front and bodies behind (Graefe, "Modern B-tree techniques", 2011, sections 3.3 to 3.6: slots, prefix truncation, poor man's normalized keys).
///
/// (N1) A node has the keys from its lower fence on up to its upper fence, which is another node's. What the fences share all keys between them share: that prefix is left out, and not compared.
/// (N2) Slots are sorted. A slot is one word: the first four bytes behind the prefix as a big-endian number (the head), where the body lies, and the lengths of what it holds.
/// (N3) A body holds the rest of the key behind the head, and the value; in inner nodes the address of a child, which has the keys from this one on. The first key of an inner node is its lower fence.
/// (N4) What is too long for a node (key_inside, value_inside) lies in a block of its own, which never changes; the body holds its address. A long key's block has all of the key.
/// (N5) The version's lowest bits say `obsolete` and `locked`; the rest counts changes. Only who has the lock changes a node, and only by words: each is stored with release and loaded by readers with acquire.
///      So a reader that has seen anything of a change sees the lock, or the next version, when it looks at the version again, without a fence (Boehm, "Can seqlocks get along with programming language memory models?",
///      2012). What it has read counts only then: before that even an address is just a number.
/// (N6) Who has the lock may read without atomics: nobody else stores. So may everybody what never changes, blocks and private images.
/// Thread rule: as (N5) says.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace taiyen::ordered {

/// Up to eight bytes, the first one lowest.
inline std::uint64_t word_of(const char* bytes, std::size_t count) noexcept {
    if (count >= 4) {  // all, or two halves that overlap
        std::uint64_t word = 0;
        if (count >= 8) {
            std::memcpy(&word, bytes, 8);
            return word;
        }
        std::uint32_t last = 0;
        std::memcpy(&word, bytes, 4);
        std::memcpy(&last, bytes + count - 4, 4);
        return word | std::uint64_t{last} << (count - 4) * 8;
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i != count; ++i) word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << i * 8;
    return word;
}

/// The first four bytes as a number that sorts as they do, missing ones as zeros.
inline std::uint32_t head_of_rest(std::string_view rest) noexcept {
    return __builtin_bswap32(static_cast<std::uint32_t>(word_of(rest.data(), rest.size() < 4 ? rest.size() : 4)));
}

/// A value or a key outside nodes; what was taken out is linked by `next`.
struct StoreBlock {
    StoreBlock* next;
    std::uint64_t bytes;

    std::string_view text() const noexcept { return {reinterpret_cast<const char*>(this + 1), bytes}; }
    char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct StoreSlot {
    static constexpr std::uint32_t outside = 1023;

    std::uint32_t head = 0;
    std::uint32_t offset = 0;
    std::uint32_t key = 0;    ///< bytes behind the prefix, or outside
    std::uint32_t value = 0;  ///< bytes, or outside

    static StoreSlot of(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 32U), static_cast<std::uint32_t>(word >> 20U & 4095U),
                static_cast<std::uint32_t>(word >> 10U & 1023U), static_cast<std::uint32_t>(word & 1023U)};
    }
    std::uint64_t word() const noexcept { return std::uint64_t{head} << 32U | offset << 20U | key << 10U | value; }
    std::uint32_t key_bytes() const noexcept { return key == outside ? sizeof(StoreBlock*) : key > 4 ? key - 4 : 0; }
    std::uint32_t value_bytes() const noexcept { return value == outside ? sizeof(StoreBlock*) : value; }
    std::uint32_t body_bytes() const noexcept { return key_bytes() + value_bytes(); }
    std::uint32_t value_offset() const noexcept { return offset + key_bytes(); }
};

/// What a reader needs to know of a node, in one word.
class StoreState {
public:
    StoreState() = default;
    explicit StoreState(std::uint64_t word) noexcept : word_(word) {}
    /// Without slots. `begin`: of the bodies, and of the fences behind them.
    StoreState(std::uint32_t level, std::uint32_t begin, std::uint32_t used, std::uint32_t prefix) noexcept
        : word_(std::uint64_t{level} << level_at | std::uint64_t{begin} << begin_at | std::uint64_t{used} << used_at |
                std::uint64_t{prefix} << prefix_at) {}

    std::uint32_t count() const noexcept { return word_ & 1023U; }              ///< slots
    std::uint32_t level() const noexcept { return word_ >> level_at & 63U; }    ///< 0: a leaf
    std::uint32_t begin() const noexcept { return word_ >> begin_at & 8191U; }  ///< of the bodies
    std::uint32_t used() const noexcept { return word_ >> used_at & 8191U; }    ///< bytes of bodies and fences that mean something
    std::uint32_t prefix() const noexcept { return static_cast<std::uint32_t>(word_ >> prefix_at); }  ///< bytes
    std::uint64_t word() const noexcept { return word_; }
    /// The fields are summands of the word.
    StoreState plus(std::int64_t count, std::int64_t begin, std::int64_t used) const noexcept {
        return StoreState(word_ + static_cast<std::uint64_t>(count) + (static_cast<std::uint64_t>(begin) << begin_at) +
                          (static_cast<std::uint64_t>(used) << used_at));
    }

private:
    static constexpr unsigned level_at = 10;
    static constexpr unsigned begin_at = 16;
    static constexpr unsigned used_at = 29;
    static constexpr unsigned prefix_at = 42;
    std::uint64_t word_ = 0;
};

/// Where a node's fences lie, in one word. Each is whole, prefix included.
struct StoreFences {
    std::uint32_t lower_offset = 0;
    std::uint32_t lower = 0;  ///< bytes, or StoreSlot::outside
    std::uint32_t upper_offset = 0;
    std::uint32_t upper = 0;
    bool is_last = false;  ///< there is no upper fence

    static StoreFences of(std::uint64_t word) noexcept {
        const StoreSlot lower = StoreSlot::of(word);
        return {lower.offset, lower.key, lower.head >> 10U & 4095U, lower.head & 1023U, (lower.head >> 22U) != 0};
    }
    std::uint64_t word() const noexcept { return StoreSlot{(is_last ? 1U << 22U : 0U) | upper_offset << 10U | upper, lower_offset, lower, 0}.word(); }
};

struct StoreSlab;

class StoreNode {
public:
    static constexpr std::uint32_t bytes = 4096;
    static constexpr std::uint32_t key_inside = 256;
    static constexpr std::uint32_t value_inside = 128;
    static constexpr std::uint64_t obsolete = 1;
    static constexpr std::uint64_t locked = 2;
    static constexpr std::uint64_t change = 4;
    static constexpr std::uint32_t slots_offset = 40;
    static constexpr std::uint32_t slot_bytes = 8;
    static constexpr std::uint32_t count_max = (bytes - slots_offset) / slot_bytes;
    /// The most that an entry of an inner node takes.
    static constexpr std::uint32_t separator_max = slot_bytes + key_inside + sizeof(StoreNode*);

    // Words that may change under a reader.
    std::uint64_t version() const noexcept { return load(0); }
    StoreState state() const noexcept { return StoreState(load(2)); }
    std::uint64_t slot_word(std::uint32_t index) const noexcept { return load(slots_offset / 8 + index); }
    StoreSlot slot(std::uint32_t index) const noexcept { return StoreSlot::of(slot_word(index)); }
    std::uint32_t head(std::uint32_t index) const noexcept { return static_cast<std::uint32_t>(slot_word(index) >> 32U); }
    /// Up to eight bytes, the first one lowest. Requires: they lie within the node.
    std::uint64_t load_bytes(std::uint32_t offset, std::uint32_t count) const noexcept {
        const std::uint32_t shift = offset % 8 * 8;
        std::uint64_t word = load(offset / 8) >> shift;
        if (shift + count * 8 > 64) word |= load(offset / 8 + 1) << (64 - shift);
        return count == 8 ? word : word & ((std::uint64_t{1} << count * 8) - 1);
    }
    /// Requires: there is room for whole words at `to`.
    void copy_out(char* to, std::uint32_t offset, std::uint32_t count) const noexcept {
        for (std::uint32_t at = 0; at < count; at += 8) {
            const std::uint64_t word = load_bytes(offset + at, count - at < 8 ? count - at : 8);
            std::memcpy(to + at, &word, 8);
        }
    }

    // Under the lock, or of what is private.
    void set_state(StoreState state) noexcept { store(2, state.word()); }
    void set_slot_word(std::uint32_t index, std::uint64_t word) noexcept { store(slots_offset / 8 + index, word); }
    void copy_in(std::uint32_t offset, const char* from, std::uint32_t count) noexcept {
        while (count != 0) {
            const std::uint32_t within = offset % 8;
            const std::uint32_t part = count < 8 - within ? count : 8 - within;
            std::uint64_t word = words_[offset / 8];
            std::memcpy(reinterpret_cast<char*>(&word) + within, from, part);
            store(offset / 8, word);
            offset += part;
            from += part;
            count -= part;
        }
    }
    /// Requires: the slot names room for it.
    void write_body(const StoreSlot& slot, std::string_view rest, StoreBlock* long_key, const char* value) noexcept {
        if (long_key != nullptr)
            copy_in(slot.offset, reinterpret_cast<const char*>(&long_key), sizeof long_key);
        else if (rest.size() > 4)
            copy_in(slot.offset, rest.data() + 4, slot.key_bytes());
        copy_in(slot.value_offset(), value, slot.value_bytes());
    }
    /// `rest`: the key behind the prefix. Requires: gap() says that there is room.
    void add(std::uint32_t index, std::string_view rest, StoreBlock* long_key, const char* value, std::uint32_t value_code) noexcept;
    void remove(std::uint32_t index) noexcept;
    /// Takes over all but the version and what belongs to the place.
    void publish(const StoreNode& image) noexcept {
        const StoreState state = image.state();
        for (std::uint32_t i = 2; i != slots_offset / 8 + state.count(); ++i)
            if (i != 4) store(i, image.words_[i]);
        for (std::uint32_t i = state.begin() / 8; i != bytes / 8; ++i) store(i, image.words_[i]);
    }
    bool try_lock(std::uint64_t version) noexcept { return word(0).compare_exchange_strong(version, version | locked, std::memory_order_acquire); }
    void set_version(std::uint64_t version) noexcept { store(0, version); }

    // Plain reads: under the lock, or of what is private.
    const char* at(std::uint32_t offset) const noexcept { return reinterpret_cast<const char*>(words_) + offset; }
    template <class T>
    T* pointer_at(std::uint32_t offset) const noexcept {
        T* pointer = nullptr;
        std::memcpy(&pointer, at(offset), sizeof pointer);
        return pointer;
    }
    StoreBlock* long_key(const StoreSlot& slot) const noexcept {
        return slot.key == StoreSlot::outside ? pointer_at<StoreBlock>(slot.offset) : nullptr;
    }
    StoreBlock* long_value(const StoreSlot& slot) const noexcept {
        return slot.value == StoreSlot::outside ? pointer_at<StoreBlock>(slot.value_offset()) : nullptr;
    }
    StoreNode* child(std::uint32_t index) const noexcept { return pointer_at<StoreNode>(slot(index).value_offset()); }
    StoreFences fences() const noexcept { return StoreFences::of(words_[3]); }
    StoreBlock* long_lower() const noexcept { return fences().lower == StoreSlot::outside ? pointer_at<StoreBlock>(fences().lower_offset) : nullptr; }
    StoreBlock* long_upper() const noexcept { return fences().upper == StoreSlot::outside ? pointer_at<StoreBlock>(fences().upper_offset) : nullptr; }
    std::string_view lower() const noexcept {
        return long_lower() != nullptr ? long_lower()->text() : std::string_view(at(fences().lower_offset), fences().lower);
    }
    /// Null: there is none.
    std::optional<std::string_view> upper() const noexcept {
        if (fences().is_last) return std::nullopt;
        return long_upper() != nullptr ? long_upper()->text() : std::string_view(at(fences().upper_offset), fences().upper);
    }
    /// What slots and bodies take, and the most that more of them can.
    static std::uint32_t filled(StoreState state) noexcept { return state.count() * slot_bytes + state.used(); }
    static std::uint32_t room(StoreState state) noexcept { return bytes - slots_offset - filled(state); }
    static std::uint32_t gap(StoreState state) noexcept { return state.begin() - state.count() * slot_bytes - slots_offset; }

    // Of its pool.
    StoreNode* next() const noexcept { return reinterpret_cast<StoreNode*>(words_[1]); }
    void set_next(StoreNode* node) noexcept { words_[1] = reinterpret_cast<std::uintptr_t>(node); }
    StoreSlab* slab() const noexcept { return reinterpret_cast<StoreSlab*>(words_[4]); }
    void set_slab(StoreSlab* slab) noexcept { words_[4] = reinterpret_cast<std::uintptr_t>(slab); }

    // Private images.
    /// What another node holds; counts if that has the same version before and afterwards, and had that state.
    void copy(const StoreNode& from, StoreState state) noexcept {
        words_[2] = state.word();
        words_[3] = from.load(3);
        for (std::uint32_t i = slots_offset / 8; i != slots_offset / 8 + state.count(); ++i) words_[i] = from.load(i);
        for (std::uint32_t i = state.begin() / 8; i != bytes / 8; ++i) words_[i] = from.load(i);
    }
    struct Fence {
        std::string_view text;
        StoreBlock* block;  ///< null: the text goes into the node
    };
    /// Empty. `upper`: null if there is none.
    void begin_image(std::uint32_t level, const Fence& lower, const Fence* upper) noexcept;
    /// The same entry as in another node, which may have another prefix. False: it doesn't fit.
    bool append_from(const StoreNode& from, std::uint32_t index) noexcept;

private:
    std::atomic_ref<std::uint64_t> word(std::uint32_t index) const noexcept { return std::atomic_ref(const_cast<std::uint64_t&>(words_[index])); }
    std::uint64_t load(std::uint32_t index) const noexcept { return word(index).load(std::memory_order_acquire); }
    void store(std::uint32_t index, std::uint64_t value) noexcept { word(index).store(value, std::memory_order_release); }

    std::uint64_t words_[bytes / 8];  // version, next, state, fences, slab; slots; bodies
};
static_assert(sizeof(StoreNode) == StoreNode::bytes);

/// A node as somebody read it: what follows from it counts if the version is the same afterwards.
struct StoreReading {
    StoreNode* node = nullptr;
    std::uint64_t version = 0;
    StoreState state;

    bool is_valid() const noexcept { return node->version() == version; }
};

/// The first slot whose key is not less; whether it is the same.
struct StorePlace {
    std::uint32_t index;
    bool is_same;
};
/// `rest`: the key behind the node's prefix. Empty: somebody changes the node.
std::optional<StorePlace> search(const StoreReading& reading, std::string_view rest) noexcept;

/// How many bytes two texts share in front.
std::size_t shared_bytes(std::string_view one, std::string_view other) noexcept;

}  // namespace taiyen::ordered
