#pragma once
/// Whether instrumented code is part of this program: it registers itself before main. Thread rule: safe.

#include <taiyen/base/detail/export.hpp>

namespace taiyen::change {

TAIYEN_EXPORT void register_instrumented_code() noexcept;
bool instrumented_code_present() noexcept;

}  // namespace taiyen::change
