#pragma once
/// What `verify()` found.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/export.hpp>

namespace taiyen {

enum class Severity { note, healable, damage };

struct Finding {
    Severity severity = Severity::damage;
    std::filesystem::path path;
    std::uint64_t offset = 0;  ///< byte offset in that file
    std::string what;
};

/// Findings, each with what, where, how bad. A healable finding (a second copy has the bytes) is damage too; notes are not.
struct Report {
    std::vector<Finding> findings;
    std::uint64_t pages_checked = 0;
    std::uint64_t blocks_checked = 0;
    bool ok() const {
        for (const Finding& finding : findings) {
            if (finding.severity != Severity::note) {
                return false;
            }
        }
        return true;
    }
};

}  // namespace taiyen
