#pragma once
/// FileTarget: a file that comes into being complete, or replaces another one in one step.
///
/// (I1) Nothing has the name before its content is durable; what had it before goes on having it until then. Thread rule: one thread.

#include <functional>
#include <optional>

#include "io/background_writer.hpp"

namespace taiyen::transfer {

class FileTarget {
public:
    /// `may_replace(file)`: whether a file that has the name may go. Throws: Error{already_exists | not_a_regular_file | permission | no_space | …}.
    template <class MayReplace>
    FileTarget(io::Storage& storage, std::filesystem::path path, MayReplace&& may_replace) : storage_(storage), path_(std::move(path)) {
        look([&](const io::File& file) { return static_cast<bool>(may_replace(file)); });
    }

    void write(std::span<const std::byte> bytes);
    /// Durability: content and name, on return. Throws: Error{already_exists (somebody made one meanwhile) | no_space | io_error}.
    void publish();

private:
    void look(const std::function<bool(const io::File&)>& may_replace);

    io::Storage& storage_;
    std::filesystem::path path_;
    std::unique_ptr<io::File> file_;
    std::optional<io::BackgroundWriter> writer_;
    bool replaces_ = false;
};

}  // namespace taiyen::transfer
