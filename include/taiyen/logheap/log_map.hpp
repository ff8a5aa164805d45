#pragma once
/// LogMap: keys of any type to values of any type, in a LogHeap.
///
///   taiyen::LogHeap heap(taiyen::open_or_create, "values.tyl");
///   taiyen::LogMap<std::string, Price> prices(heap, "prices");
///   prices.insert_or_assign("copper", {9'120, 30});
///   if (const auto price = prices.find("copper")) use(price->amount);
///
/// A heap holds any number of maps, each by its name, beside values by handle. A key's id is its hash; keys with one hash share a record, and stay two keys.
/// Types become bytes by `log_codec`: trivially copyable ones as they are, text, vectors of trivially copyable elements; others by a specialization of yours.
/// Thread rule: safe, as LogHeap; an operation on one key happens wholly before or after another one on it. The heap outlives the map.

#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/logheap/log_heap.hpp>

namespace taiyen {

/// How a T becomes bytes and comes back. Specialize it for your own types:
///
///   template <> struct taiyen::log_codec<Order> {
///       using view = Order;                                                  // what `read` gives: a copy, or something that looks at the bytes
///       static std::size_t size(const Order& order);                         // of its bytes
///       static void write(const Order& order, std::span<std::byte> bytes);   // so many
///       static view read(std::span<const std::byte> bytes);                  // throws Error{corrupt} if they are none
///       static constexpr bool is_key = true;                                 // equal ones have equal bytes, others other ones; may be left out: true
///   };
///
/// A T is made of a view by conversion, or of its range.
template <class T>
struct log_codec;

namespace logheap {

[[noreturn]] TAIYEN_EXPORT void throw_size_of_stored(std::size_t found, std::size_t wanted);

}  // namespace logheap

/// What is copied as it is. A key has no padding and no two images of one value: doubles are none.
template <LogValue T>
struct log_codec<T> {
    using view = const T&;
    static constexpr bool is_key = std::has_unique_object_representations_v<T>;
    static std::size_t size(const T&) { return sizeof(T); }
    static void write(const T& value, std::span<std::byte> bytes) { std::memcpy(bytes.data(), &value, sizeof(T)); }
    static const T& read(std::span<const std::byte> bytes) {
        if (bytes.size() != sizeof(T)) logheap::throw_size_of_stored(bytes.size(), sizeof(T));
        return *reinterpret_cast<const T*>(bytes.data());
    }
};

template <class Allocator>
struct log_codec<std::basic_string<char, std::char_traits<char>, Allocator>> {
    using view = std::string_view;
    static std::size_t size(std::string_view text) { return text.size(); }
    static void write(std::string_view text, std::span<std::byte> bytes) {
        if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    }
    static std::string_view read(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

template <LogValue T, class Allocator>
    requires(!std::same_as<T, bool>)
struct log_codec<std::vector<T, Allocator>> {
    using view = std::span<const T>;
    static constexpr bool is_key = std::has_unique_object_representations_v<T>;
    static std::size_t size(std::span<const T> values) { return values.size_bytes(); }
    static void write(std::span<const T> values, std::span<std::byte> bytes) {
        if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
    }
    static std::span<const T> read(std::span<const std::byte> bytes) {
        if (bytes.size() % sizeof(T) != 0) logheap::throw_size_of_stored(bytes.size(), sizeof(T));
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
};

/// What can be stored in a LogMap.
template <class T>
concept LogStored = requires(const T& value, std::span<std::byte> bytes, std::span<const std::byte> stored) {
    typename log_codec<T>::view;
    { log_codec<T>::size(value) } -> std::convertible_to<std::size_t>;
    log_codec<T>::write(value, bytes);
    { log_codec<T>::read(stored) } -> std::convertible_to<typename log_codec<T>::view>;
} && (std::convertible_to<typename log_codec<T>::view, T> || requires(typename log_codec<T>::view view) { T(view.begin(), view.end()); });

namespace logheap {

template <class T>
constexpr bool is_log_key() {
    if constexpr (requires { log_codec<T>::is_key; })
        return log_codec<T>::is_key;
    else
        return true;
}

}  // namespace logheap

/// What can be a key: its bytes are equal where keys are.
template <class T>
concept LogKey = LogStored<T> && logheap::is_log_key<T>();

namespace logheap {

/// A map of byte strings; LogMap's compiled part.
class TAIYEN_EXPORT ByteMap {
public:
    using Bytes = std::span<const std::byte>;
    enum class When { absent, present, always };
    struct Found {
        LogView record;
        Bytes value;
    };

    /// `hash_bits`: of each key's hash so many count; tests make keys share records.
    ByteMap(LogHeap& heap, std::string_view name, unsigned hash_bits = 63);
    /// Nothing: an empty record. Throws: Error{corrupt | type_mismatch | closed}.
    Found find(Bytes key) const;
    struct Done {
        bool is_done;
        bool was_there;
    };
    Done put(Bytes key, Bytes value, When when) const;
    /// Puts if the record still is of that version.
    bool replace(LogHandle record, Serial version, Bytes key, Bytes value) const;
    bool erase(Bytes key) const;
    void for_each(const std::function<void(Bytes key, Bytes value)>& f) const;
    const std::filesystem::path& path() const { return heap_->path(); }

private:
    LogId id_of(Bytes key) const;

    LogHeap* heap_;
    std::uint64_t map_;
    std::uint64_t mask_;
};

}  // namespace logheap

template <LogKey Key, LogStored T>
class LogMap {
    using KeyCodec = log_codec<Key>;
    using Codec = log_codec<T>;

public:
    using key_type = Key;
    using mapped_type = T;

    /// A value in place; its bytes neither move nor change while this lives. Thread rule: as a pointer.
    class View {
    public:
        explicit operator bool() const noexcept { return static_cast<bool>(found_.record); }
        /// As its codec shows it, as long as this view lives. Requires: there is one. Throws: Error{type_mismatch | corrupt}: it was stored as another type.
        typename Codec::view operator*() const& { return Codec::read(found_.value); }
        typename Codec::view operator*() const&& = delete;
        /// Serial of the operation that wrote the record it lies in, for `LogHeap::wait_durable`.
        Serial version() const noexcept { return found_.record.version(); }

    private:
        friend LogMap;
        explicit View(logheap::ByteMap::Found found) : found_(std::move(found)) {}
        logheap::ByteMap::Found found_;
    };

    /// The map of that name. Nothing is written: a map is there when it has an element. Keys and values must be of the types that they were stored as: what is stored says its size alone.
    explicit LogMap(LogHeap& heap, std::string_view name = {}) : map_(heap, name) {}

    // Durability: as the heap's. They throw what LogHeap's operations throw, and Error{type_mismatch}: a value that is no map's has the key's id.

    /// False: the key is there; nothing changed.
    bool insert(const Key& key, const T& value) { return put(key, value, logheap::ByteMap::When::absent).is_done; }
    /// True: it was inserted.
    bool insert_or_assign(const Key& key, const T& value) { return !put(key, value, logheap::ByteMap::When::always).was_there; }
    /// False: the key isn't there; nothing changed.
    bool assign(const Key& key, const T& value) { return put(key, value, logheap::ByteMap::When::present).is_done; }
    /// False: the key isn't there.
    bool erase(const Key& key) { return map_.erase(bytes_of<KeyCodec>(key)); }
    /// Calls `change(T&)`, which returns nothing, with a copy, and stores what it made; again, if somebody else changed it meanwhile. False: the key isn't there.
    template <std::invocable<T&> F>
        requires std::is_void_v<std::invoke_result_t<F, T&>>
    bool update(const Key& key, F&& change) {
        const std::vector<std::byte> bytes = bytes_of<KeyCodec>(key);
        for (;;) {
            logheap::ByteMap::Found found = map_.find(bytes);
            if (!found.record) return false;
            T value = copy_of(found.value);
            const LogHandle record = found.record.handle();
            const Serial version = found.record.version();
            found.record = LogView();
            std::invoke(change, value);
            if (map_.replace(record, version, bytes, bytes_of<Codec>(value))) return true;
        }
    }

    /// A copy. Complexity: a look-up in the heap, and the copy.
    std::optional<T> find(const Key& key) const {
        const logheap::ByteMap::Found found = map_.find(bytes_of<KeyCodec>(key));
        if (!found.record) return std::nullopt;
        return copy_of(found.value);
    }
    /// The value in place; empty: it isn't there. Complexity: a look-up in the heap.
    View view(const Key& key) const { return View(map_.find(bytes_of<KeyCodec>(key))); }
    bool contains(const Key& key) const { return static_cast<bool>(view(key)); }
    /// Calls `f(key, value)`, both as their codecs' views, in no order: once for each element that lives throughout. Complexity: linear in the elements of all maps of the heap.
    template <class F>
        requires std::invocable<F&, typename KeyCodec::view, typename Codec::view>
    void for_each(F&& f) const {
        map_.for_each([&](auto key, auto value) { std::invoke(f, KeyCodec::read(key), Codec::read(value)); });
    }
    /// How many elements there are. Complexity: as for_each.
    std::uint64_t count() const {
        std::uint64_t count = 0;
        map_.for_each([&](auto, auto) { ++count; });
        return count;
    }

private:
    template <class C>
    static std::vector<std::byte> bytes_of(const auto& value) {
        std::vector<std::byte> bytes(C::size(value));
        C::write(value, bytes);
        return bytes;
    }
    static T copy_of(std::span<const std::byte> bytes) {
        if constexpr (std::convertible_to<typename Codec::view, T>) {
            return Codec::read(bytes);
        } else {
            const auto view = Codec::read(bytes);
            return T(view.begin(), view.end());
        }
    }
    auto put(const Key& key, const T& value, logheap::ByteMap::When when) const {
        return map_.put(bytes_of<KeyCodec>(key), bytes_of<Codec>(value), when);
    }

    logheap::ByteMap map_;
};

}  // namespace taiyen
