#include "change/procedures.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "change/change_set_layout.hpp"
#include "change/procedure_layout.hpp"
#include "heap/core.hpp"

namespace taiyen::change {
namespace {

/// Never destroyed: heaps in static storage may outlive this file's statics.
struct Registry {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<const Procedure>, std::less<>> procedures;
};
Registry& registry() {
    static Registry& all = *new Registry;
    return all;
}

[[noreturn]] void throw_arguments() {
    throw Error(errc::invalid_argument, "the stored arguments of a procedure end too early; the history was made by another program");
}

}  // namespace

std::uint64_t signature_checksum(std::string_view signature) noexcept { return checksum(std::as_bytes(std::span(signature)), layout::call_seed); }

void register_erased(std::string_view name, std::string signature, ErasedProcedure forward, ErasedProcedure inverse) {
    if (name.empty() || name.size() > layout::name_length_max) throw Error(errc::invalid_argument, "a procedure's name has 1 to 1,024 bytes");
    auto made = std::make_unique<Procedure>();
    made->signature_checksum = signature_checksum(signature);
    made->signature = std::move(signature);
    made->forward = std::move(forward);
    made->inverse = std::move(inverse);
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (!all.procedures.try_emplace(std::string(name), std::move(made)).second)
        throw Error(errc::name_taken, "there is a procedure named '" + std::string(name) + "' already; register each name once");
}

const Procedure* find_procedure(std::string_view name) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.procedures.find(name);
    return found == all.procedures.end() ? nullptr : found->second.get();
}

void ArgumentWriter::put(const void* value, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(value);
    bytes.insert(bytes.end(), first, first + size);
}

void ArgumentWriter::put_text(std::string_view text) {
    const std::uint64_t size = text.size();
    put(&size, sizeof size);
    put(text.data(), text.size());
}

void ArgumentWriter::put_pointer(const void* object) {
    std::uint64_t offset = ~std::uint64_t{0};
    if (object != nullptr) {
        if (!heap::in_durable(core_, object)) {
            throw Error(errc::invalid_argument, core_.path(),
                        "a pointer passed to a procedure leads out of the heap; pass a value, or a pointer to an object in the heap");
        }
        offset = reinterpret_cast<std::uintptr_t>(object) - core_.ranges().durable;
    }
    put(&offset, sizeof offset);
}

void ArgumentReader::get(void* value, std::size_t size) {
    if (size > rest_.size()) throw_arguments();
    if (size != 0) std::memcpy(value, rest_.data(), size);
    rest_ = rest_.subspan(size);
}

std::string ArgumentReader::get_text() {
    std::uint64_t size = 0;
    get(&size, sizeof size);
    if (size > rest_.size()) throw_arguments();
    std::string text(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return text;
}

void* ArgumentReader::get_pointer() {
    std::uint64_t offset = 0;
    get(&offset, sizeof offset);
    if (offset == ~std::uint64_t{0}) return nullptr;
    if (offset >= core_.ranges().durable_bytes) throw_arguments();
    return reinterpret_cast<void*>(core_.ranges().durable + offset);
}

}  // namespace taiyen::change
