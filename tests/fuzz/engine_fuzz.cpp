// The block engine on bytes that nobody wrote: operations, corruption of the span between them, reopening. Whatever lies in the span, each call ends with a result,
// HeapFull or a typed error, stays inside the extent and takes bounded time; and without corruption nothing is ever found by a check.
//
// An input is a capacity and then operations of a few bytes each. Offsets of corruption count from the span's beginning, so that small numbers hit metadata.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "fuzz/input.hpp"
#include "heap/engine.hpp"

namespace {

using namespace taiyen;
using taiyen::fuzz::Input;
using namespace taiyen::heap;

constexpr ByteCount span_bytes = 4_MiB;

/// One zero span for all inputs, with unreadable pages before and behind it.
std::byte* span_memory() {
    static std::byte* const span = [] {
        constexpr ByteCount guard = 1_MiB;
        void* at = mmap(nullptr, span_bytes + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        TAIYEN_CHECK(at != MAP_FAILED);
        auto* begin = static_cast<std::byte*>(at) + guard;
        TAIYEN_CHECK(mprotect(begin, span_bytes, PROT_READ | PROT_WRITE) == 0);
        return begin;
    }();
    return span;
}

class Host : public SpanHost {
public:
    void extend(ByteCount extent_bytes) override {
        TAIYEN_CHECK(extent_bytes <= capacity && extent_bytes % page_bytes == 0);
        if (extent_bytes > limit) throw HeapFull(extent_bytes, 0, HeapFull::Cause::disk);
        backed = std::max(backed, extent_bytes);
    }
    ByteCount capacity = 0;
    ByteCount limit = ~ByteCount{0};
    ByteCount backed = 0;
};

class Observer : public WriteObserver {
public:
    explicit Observer(const Host& host) : host_(host) {}
    void about_to_write(HeapOffset offset, ByteCount length) override {
        TAIYEN_CHECK(offset.value < host_.backed && length <= host_.backed - offset.value);
    }

private:
    const Host& host_;
};

class Program {
public:
    explicit Program(Input input) : input_(input), span_(span_memory()) {
        host_.capacity = 256_KiB + input_.number(1) * 3 * page_bytes;
        Engine::format(span_, host_.capacity, host_, &observer_);
        open();
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { std::memset(span_, 0, host_.backed); }

    void run() {
        for (unsigned steps = 0; steps < 400 && !input_.empty() && engine_; ++steps) {
            try {
                step();
            } catch (const Error& error) {
                const bool expected = error.code() == errc::name_taken || error.code() == errc::invalid_argument;
                TAIYEN_CHECK(expected || corrupted_);
            } catch (const HeapFull&) {}
        }
        if (engine_) look();
    }

private:
    void open() {
        engine_.reset();
        try {
            engine_.emplace(span_, host_.capacity, host_, &observer_);
        } catch (const Error&) {
            TAIYEN_CHECK(corrupted_);
        }
    }

    /// What a block's user does with it.
    void use(void* block, ByteCount bytes) {
        const auto offset = static_cast<ByteCount>(static_cast<std::byte*>(block) - span_);
        TAIYEN_CHECK(offset < host_.backed && bytes <= host_.backed - offset);
        blocks_.push_back(block);
        if (!corrupted_) std::memset(block, 0xA5, engine_->usable_size(block));
    }

    std::string some_name() { return std::string(1 + input_.number(1) / 8, static_cast<char>('a' + input_.number(1) % 8)); }
    void* some_block() { return blocks_.empty() ? span_ : blocks_[input_.number(1) % blocks_.size()]; }
    ByteCount some_size() {
        const std::uint64_t code = input_.number(1);
        return code < 128 ? code * 4 : code < 192 ? (code - 128) * 64 : (code - 192) * 3001;
    }

    void step() {
        switch (const std::uint64_t code = input_.number(1); code % 16) {
            case 0:
            case 1:
            case 2: {
                const ByteCount bytes = some_size();
                const ByteCount usual = code % 16 == 1 ? 8 : 16;  // 8: packed blocks
                const Content content = code / 16 % 2 == 0 ? Content::any : Content::pointer_free;
                use(engine_->allocate(bytes, code / 16 > 10 ? ByteCount{16} << (code / 16 - 6) : usual, content), bytes);
                break;
            }
            case 3:
            case 4: engine_->deallocate(some_block()); break;
            case 5: engine_->deallocate(span_ + input_.number(3)); break;
            case 6: {
                if (blocks_.empty()) break;
                void* block = some_block();
                const ByteCount bytes = some_size();
                if (engine_->usable_size(block) != 0) use(engine_->resize(block, bytes), bytes);
                break;
            }
            case 7: {
                const ByteCount alignment = code / 16 % 2 == 0 ? 16 : 8;
                std::byte* at = span_ + input_.number(3) % host_.capacity / alignment * alignment;
                const ByteCount bytes = some_size();
                const Content content = code / 32 % 2 == 0 ? Content::any : Content::pointer_free;
                if (engine_->allocate_at(at, bytes, alignment, content)) use(at, bytes);
                break;
            }
            case 8: engine_->add_root({some_name(), std::string(input_.number(1), 'f'), {input_.number(2)}, 0, 1}); break;
            case 9: engine_->remove_root(some_name()); break;
            case 10: engine_->forget({input_.number(3)}, input_.number(3)); break;
            case 11: engine_->release_free_pages(input_.number(2)); break;
            case 12: open(); break;
            case 13: host_.limit = code / 16 == 0 ? ~ByteCount{0} : host_.backed + code / 16 * page_bytes; break;
            case 14: corrupt(); break;
            default: look(); break;
        }
    }

    void corrupt() {
        corrupted_ = true;
        const std::uint64_t offset = input_.number(2) * 4 % host_.backed;
        const unsigned length = 1 + static_cast<unsigned>(input_.number(1)) % 8;
        for (unsigned i = 0; i < length && offset + i < host_.backed; ++i) span_[offset + i] = static_cast<std::byte>(input_.number(1));
    }

    void look() {
        const auto damages = engine_->check(20);
        TAIYEN_CHECK(damages.size() <= 20 && (corrupted_ || damages.empty()));
        ByteCount live = 0;
        engine_->for_each_block([&](const Block& block) {
            TAIYEN_CHECK(block.offset.value < host_.backed && block.usable_bytes <= host_.backed - block.offset.value);
            live += block.usable_bytes;
            return true;
        });
        const EngineStats stats = engine_->stats();
        TAIYEN_CHECK(stats.live_bytes == live);
        for (unsigned i = 0; i < 16; ++i) engine_->find_block(span_ + (input_.number(2) * 16) % host_.capacity);
        try {
            engine_->roots();
            engine_->find_root("a");
        } catch (const Error&) {
            TAIYEN_CHECK(corrupted_);
        }
    }

    Input input_;
    std::byte* span_;
    Host host_;
    Observer observer_{host_};
    std::optional<Engine> engine_;
    std::vector<void*> blocks_;
    bool corrupted_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Program(Input(data, size)).run();
    return 0;
}
