#include "tool/replicated_group.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <taiyen/replicate/replication_group.hpp>

#include "tool/console.hpp"
#include "tool/report_text.hpp"
#include "tool/target.hpp"

namespace taiyen::tool {
namespace {

/// Where the member of that name was replicated to: beside the group's cuts.
std::string beside(std::string target, const std::string& name) {
    while (target.size() > 1 && target.ends_with('/')) target.pop_back();
    const std::size_t slash = target.rfind('/');
    return (slash == std::string::npos ? std::string() : target.substr(0, slash + 1)) + name;
}

void put_cut(JsonWriter& json, const GroupCut& cut) {
    json.begin_object().member("frame", cut.frame).member("made_at", time_text(cut.made_at)).member("mark", cut.mark);
    json.key("heaps").begin_array();
    for (const GroupCut::Member& member : cut.members)
        json.begin_object().member("name", member.name).member("heap", member.heap).member("transaction", member.serial.value).end_object();
    json.end_array().end_object();
}

}  // namespace

Exit restore_group_of(const Given& given) {
    if (given.has("serial")) throw Error(errc::invalid_argument, "--serial is one heap's; a group has --mark and --at");
    const auto target = open_target(given, given.files[0]);
    GroupRestoreOptions options;
    options.mark = given.value("mark").value_or("");
    if (const auto at = given.value("at")) options.at = time_given(*at);
    RestoredGroup group;
    {
        ProgressLine line("restoring");
        options.progress = line.progress();
        const auto target_of = [&](const std::string& name) { return open_target(given, beside(given.files[0], name)); };
        group = restore_group(*target, target_of, given.files[1], options);
    }
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("folder", given.files[1]).member("made_at", time_text(group.cut.made_at)).member("mark", group.cut.mark);
        json.key("heaps").begin_array();
        for (const GroupCut::Member& member : group.cut.members)
            json.begin_object().member("name", member.name).member("heap", member.heap).member("transaction", member.serial.value).end_object();
        json.end_array().end_object();
        print(json);
        return Exit::ok;
    }
    print(styled(Style::good, "restored") + ": " + counted(group.heaps.size(), "heap") + " in " + visible(given.files[1]) + ", as of " +
          time_text(group.cut.made_at) + (group.cut.mark.empty() ? "" : ", '" + visible(group.cut.mark) + "'") + "\n\n");
    print_table(group.cut.members, {{"HEAP", Align::left, [](const GroupCut::Member& member) { return visible(member.name) + ".tyn"; }},
                                    {"TRANSACTION", Align::right, [](const GroupCut::Member& member) { return count_text(member.serial.value); }}});
    return Exit::ok;
}

Exit show_group(const Given& given) {
    const auto target = open_target(given, given.files[0]);
    const GroupCut newest = find_group_cut(*target);
    std::vector<GroupCut> marks = group_marks(*target);
    std::ranges::sort(marks, {}, &GroupCut::frame);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("target", given.files[0]).key("newest");
        put_cut(json, newest);
        json.key("marks").begin_array();
        for (const GroupCut& mark : marks) put_cut(json, mark);
        json.end_array().end_object();
        print(json);
        return Exit::ok;
    }
    print_fields({{"newest", "cut " + count_text(newest.frame) + ", " + time_text(newest.made_at)}});
    print("\n");
    print_table(newest.members, {{"HEAP", Align::left, [](const GroupCut::Member& member) { return visible(member.name); }},
                                 {"TRANSACTION", Align::right, [](const GroupCut::Member& member) { return count_text(member.serial.value); }},
                                 {"UUID", Align::left, [](const GroupCut::Member& member) { return member.heap; }}});
    if (marks.empty()) return Exit::ok;
    print("\n");
    print_table(marks, {{"CUT", Align::right, [](const GroupCut& mark) { return count_text(mark.frame); }},
                        {"MADE", Align::left, [](const GroupCut& mark) { return time_text(mark.made_at); }},
                        {"MARK", Align::left, [](const GroupCut& mark) { return visible(mark.mark); }}});
    return Exit::ok;
}

}  // namespace taiyen::tool
