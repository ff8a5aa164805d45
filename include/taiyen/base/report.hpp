#pragma once
/// The report handler: what can't be thrown (a bad free, a stray store, a refused swap) is told here.
///
/// Thread rule: safe. The default handler writes one line to standard error.

#include <string_view>

#include <taiyen/base/error.hpp>

namespace taiyen {

/// What a report is about: `code` says what happened, `address` where (may be null), `text` is one line without a newline.
struct Incident {
    errc code;
    const void* address;
    std::string_view text;
};

/// Called with each incident, possibly inside a `noexcept` function or a signal handler: it must not throw.
using ReportHandler = void (*)(const Incident&) noexcept;

/// Installs `handler` (null: the default one) and returns the one that was installed before.
TAIYEN_EXPORT ReportHandler set_report_handler(ReportHandler handler) noexcept;

/// Passes `incident` to the installed handler; returns afterwards: the caller decides whether to go on.
TAIYEN_EXPORT void report(const Incident& incident) noexcept;

}  // namespace taiyen
