// What came out, as a document.

#include <algorithm>
#include <iomanip>
#include <map>
#include <ostream>
#include <sstream>

#include "crash/runner.hpp"

namespace taiyen::crash {
namespace {

/// 1234567 → "1,234,567".
std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(text.begin() + static_cast<std::ptrdiff_t>(at) - 3, ',');
    return text;
}

std::string fixed(double number, int digits) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(digits) << number;
    return out.str();
}

/// In a table's cell.
std::string cell(std::string text) {
    std::ranges::replace(text, '|', '/');
    std::ranges::replace(text, '\n', ' ');
    return text;
}

const char* kind_name(io::Operation::Kind kind) {
    using Kind = io::Operation::Kind;
    switch (kind) {
        case Kind::created: return "file created";
        case Kind::created_unnamed: return "unnamed file created";
        case Kind::published: return "file named";
        case Kind::renamed: return "file renamed";
        case Kind::removed: return "file removed";
        case Kind::directory_synced: return "directory synced";
        case Kind::written: return "write";
        case Kind::durably_written: return "durable write";
        case Kind::synced: return "sync";
        case Kind::allocated: return "allocation";
        case Kind::punched: return "hole punched";
        case Kind::resized: return "resize";
        default: return "?";
    }
}

void write_coverage(std::ostream& out, const StatesReport& report) {
    struct Sum {
        std::uint64_t count = 0, before = 0, tearable = 0, inside = 0, behind = 0;
    };
    std::map<io::Operation::Kind, Sum> by_kind;
    for (const ScenarioResult& scenario : report.scenarios) {
        for (const Coverage& one : scenario.coverage) {
            if (!one.changes) continue;
            Sum& sum = by_kind[one.kind];
            ++sum.count;
            sum.before += one.before ? 1 : 0;
            sum.tearable += one.units > 1 ? 1 : 0;
            sum.inside += one.inside && one.units > 1 ? 1 : 0;
            sum.behind += one.behind ? 1 : 0;
        }
    }
    out << "\n## Cut points\n\nOf each recorded operation: crashes while nothing of it was on the disk, a part of it (where it has more than one "
           "unit), and right behind it.\n\n"
        << "| operation | recorded | crash before | has parts | crash inside | crash behind |\n|---|---:|---:|---:|---:|---:|\n";
    for (const auto& [kind, sum] : by_kind) {
        out << "| " << kind_name(kind) << " | " << grouped(sum.count) << " | " << grouped(sum.before) << " | " << grouped(sum.tearable) << " | "
            << grouped(sum.inside) << " | " << grouped(sum.behind) << " |\n";
    }
    out << "\nOperations without a crash right before and right behind: " << report.uncovered() << " of " << grouped(report.operations()) << "\n";
}

}  // namespace

void write(std::ostream& out, const StatesReport& report) {
    const Tally total = report.total();
    const double seconds = report.seconds();
    out << "# Crash states\n\n"
        << grouped(total.states + total.nested_states) << " crash states, of them " << grouped(total.nested_states) << " of recoveries; "
        << grouped(total.distinct + total.nested_distinct) << " different disks were recovered and checked, of them "
        << grouped(total.nested_distinct) << " of recoveries; " << report.failures() << " failures.\n\n"
        << report.scenarios.size() << " scenarios, " << report.rounds << (report.rounds == 1 ? " round" : " rounds") << " from seed "
        << report.first_seed << ", " << report.workers << (report.workers == 1 ? " worker" : " workers") << ": " << fixed(report.wall_seconds, 0)
        << " s, " << fixed(seconds, 0) << " s of processor time; "
        << grouped(static_cast<std::uint64_t>(static_cast<double>(total.distinct + total.nested_distinct) / std::max(seconds, 0.001)))
        << " states recovered and "
        << grouped(static_cast<std::uint64_t>(static_cast<double>(total.states + total.nested_states) / std::max(seconds, 0.001)))
        << " built per second and processor.\n";
    std::string about;
    for (const ScenarioResult& scenario : report.scenarios) {
        if (about != scenario.about) {
            about = scenario.about;
            out << "\n## " << static_cast<char>(std::toupper(about[0])) << about.substr(1)
                << "\n\n| scenario | operations | cuts | states | distinct | nested | nested distinct | s "
                   "|\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
        }
        out << "| " << scenario.name << " | " << std::ranges::count_if(scenario.coverage, [](const Coverage& one) { return one.changes; }) << " | "
            << grouped(scenario.tally.cuts) << " | " << grouped(scenario.tally.states) << " | " << grouped(scenario.tally.distinct) << " | "
            << grouped(scenario.tally.nested_states) << " | " << grouped(scenario.tally.nested_distinct) << " | " << fixed(scenario.seconds, 1)
            << " |\n";
    }
    out << "\n## Failures\n\n";
    for (const ScenarioResult& scenario : report.scenarios) {
        if (!scenario.failure) continue;
        out << "- `" << scenario.failure->id << "`: " << scenario.failure->what << "\n";
        if (scenario.shrunk)
            out << "  shrunken: `" << scenario.shrunk->id << "`: " << scenario.shrunk->what << "; " << scenario.shrunk->words << "\n";
    }
    if (report.failures() == 0) out << "None.\n";
    write_coverage(out, report);
    out << "\n## How states were chosen\n\n| choice of pending units | states |\n|---|---:|\n";
    for (const auto& [select, count] : total.by_selection) out << "| " << name_of(select) << " | " << grouped(count) << " |\n";
    out << "\n## Rows of the recovery table that states reached\n\n| row | times |\n|---|---:|\n";
    const Rows rows = report.rows();
    for (std::size_t row = 0; row < rows.size(); ++row) out << "| " << name_of(static_cast<store::Row>(row)) << " | " << grouped(rows[row]) << " |\n";
}

void write(std::ostream& out, const BugsReport& report) {
    out << "# Planted bugs\n\n"
        << report.caught() << " of " << report.bugs.size() << " plantings caught, of " << report.distinct_bugs() << " different bugs.\n\n"
        << "| bug | breaks | states until caught | caught by | what was wrong | smallest state |\n|---|---|---:|---|---|---|\n";
    for (const BugResult& one : report.bugs) {
        out << "| " << one.bug->name << " | " << one.bug->rule << " | ";
        one.bug->fault != nullptr ? out << "by a fault" : out << grouped(one.states);
        out << " | ";
        one.failure ? out << '`' << cell(one.failure->id) << "` | " << cell(one.failure->what) : out << "**not caught** | ";
        out << " | ";
        if (one.shrunk) out << '`' << cell(one.shrunk->id) << "`: " << cell(one.shrunk->words);
        out << " |\n";
    }
}

void write(std::ostream& out, const FaultsReport& report) {
    struct Sum {
        std::uint64_t faults = 0, wrong = 0;
    };
    std::map<std::string, Sum> by_kind;
    std::map<std::string, Sum> by_scenario;
    for (const FaultResult& one : report.results) {
        for (Sum* const sum : {&by_kind[one.kind], &by_scenario[one.scenario]}) {
            sum->faults += one.faults;
            sum->wrong += one.wrong;
        }
    }
    out << "# Injected faults\n\n"
        << grouped(report.faults()) << " faults struck, " << report.wrong() << " times something was wrong; " << fixed(report.wall_seconds, 0)
        << " s.\n\n"
        << "| fault | struck | wrong |\n|---|---:|---:|\n";
    for (const auto& [kind, sum] : by_kind) out << "| " << kind << " | " << grouped(sum.faults) << " | " << sum.wrong << " |\n";
    out << "\n| scenario | struck | wrong |\n|---|---:|---:|\n";
    for (const auto& [scenario, sum] : by_scenario) out << "| " << scenario << " | " << grouped(sum.faults) << " | " << sum.wrong << " |\n";
    for (const FaultResult& one : report.results)
        for (const std::string& what : one.what) out << "\n- " << what;
    out << "\n";
}

}  // namespace taiyen::crash
