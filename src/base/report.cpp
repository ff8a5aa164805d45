#include <taiyen/base/report.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <taiyen/base/check.hpp>

namespace taiyen {
namespace {

void write_line(const Incident& incident) noexcept {
    const int length = static_cast<int>(incident.text.size());
    if (incident.address != nullptr)
        std::fprintf(stderr, "taiyen: %.*s (address %p)\n", length, incident.text.data(), incident.address);
    else
        std::fprintf(stderr, "taiyen: %.*s\n", length, incident.text.data());
}

std::atomic<ReportHandler> installed{&write_line};

}  // namespace

ReportHandler set_report_handler(ReportHandler handler) noexcept { return installed.exchange(handler != nullptr ? handler : &write_line); }

void report(const Incident& incident) noexcept { installed.load()(incident); }

namespace detail {
void check_failed(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr, "taiyen: %s:%d: check failed: %s\n", file, line, condition);
    std::abort();
}
}  // namespace detail

}  // namespace taiyen
