#!/usr/bin/env python3
"""Branch coverage of recovery, log, saves and formats, held against what is known not to be covered.

    tests/coverage/report.py BUILD_DIRECTORY [--write]

Reads what the tests of a coverage build (preset "coverage") left behind, prints a table by file, and compares each branch that was never taken with uncovered.txt beside this script.

What counts are decisions of the source, by gcov. A call that may throw is a branch for the compiler, not for the reader: neither of its two ways counts, nor does what the compiler makes of lines without a
decision, to clean up behind exceptions. TAIYEN_CHECK doesn't count, since its other way ends the process; nor do lines that ask for a planted bug, for there are none in this build.

uncovered.txt, one line for each source line with such branches:  file | branches | reason | the source line
Of lines that depend on how threads meet, `branches` tells the least and the most of several runs: 0-2, also where all were taken in some run. Anything else must be met exactly, and each line must be there. Where the list and the tests disagree, be it that a branch that
isn't listed was not taken or that a listed one was, the script names the line and ends with 1.
--write brings the list up to date: what is missing comes in with the reason "?", what was taken goes, and the script goes on to end with 1 until no "?" is left.
"""

import collections
import glob
import json
import os
import re
import subprocess
import sys

ROOMS = r"src/(log|store|txn)/|src/change/(change_set|redo|procedure_calls)|src/undo/history"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(ROOT, "tests", "coverage", "uncovered.txt")


def template_of(function):
    """The name of a function without template arguments and parameters: the same for all that are made from one template."""
    name = function["demangled_name"]
    for bracketed in (r"\([^()]*\)", r"<[^<>]*>"):
        while True:
            shorter = re.sub(bracketed, "", name)
            if shorter == name:
                break
            name = shorter
    return name.replace(" const", "")


def innermost(functions, number):
    """The functions with the smallest range of lines around that line."""
    around = [function for function in functions if function["start_line"] < number < function["end_line"]]
    smallest = min((function["end_line"] - function["start_line"] for function in around), default=0)
    return [function for function in around if function["end_line"] - function["start_line"] == smallest]


def parts(entry, functions):
    """Pairs of a template and the branches of one of its instances: gcov puts what lambdas within templates have on a line behind each other."""
    named = [function for function in functions if function["name"] == entry.get("function_name")]
    if named:
        return [(template_of(named[0]), entry["branches"])]
    inside = innermost(functions, entry["line_number"])
    templates = {template_of(function) for function in inside}
    if len(templates) != 1 or len(entry["branches"]) % len(inside) != 0:
        return [("", entry["branches"])]
    size = len(entry["branches"]) // len(inside)
    return [(next(iter(templates)), entry["branches"][i * size : (i + 1) * size]) for i in range(len(inside))]


def measured(build):
    """For each file the lines: whether it was reached, and the counts of its decisions. A branch of a template was taken if an instance took it; instances of another shape count apart."""
    files = {}
    for data in sorted(glob.glob(os.path.join(os.path.abspath(build), "**", "*.gcda"), recursive=True)):
        found = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if found.returncode != 0:
            sys.exit(found.stderr.decode())
        for document in filter(None, found.stdout.decode().split("\n")):
            document = json.loads(document)
            for file in document["files"]:
                name = os.path.relpath(os.path.normpath(os.path.join(document["current_working_directory"], file["file"])), ROOT)
                if not re.match(ROOMS, name):
                    continue
                lines = files.setdefault(name, {})
                for entry in file["lines"]:
                    line = lines.setdefault(entry["line_number"], [False, collections.OrderedDict()])
                    line[0] = line[0] or entry["count"] > 0
                    for template, branches in parts(entry, file["functions"]) if entry["branches"] else []:
                        counts = decisions(branches)
                        sums = line[1].setdefault((template, len(counts)), [0] * len(counts))
                        sums[:] = [a + b for a, b in zip(sums, counts)]
    return files


def decisions(branches):
    """Counts of the branches without the pairs (returns, throws) of calls."""
    kept = []
    for branch in branches:
        if branch["throw"]:
            if kept and kept[-1]["fallthrough"]:
                kept.pop()
        else:
            kept.append(branch)
    return [branch["count"] for branch in kept]


DECIDES = re.compile(r"\b(if|for|while|switch|case|catch)\b|\?|&&|\|\|")
NONE_OF_OURS = re.compile(r"TAIYEN_CHECK\(|^\s*throw\b")


def is_decision(text):
    return DECIDES.search(text) is not None and NONE_OF_OURS.search(text) is None


def conditions_only(text, counts):
    """Of `if (…) throw …` on one line what belongs to the condition: it comes first."""
    return counts[: 2 * (1 + text.count("&&") + text.count("||"))] if re.search(r"\)\s*throw\b", text) else counts


def planted_lines(text):
    """Numbers of the lines that ask for a planted bug, and of the blocks behind them."""
    found = set()
    depth = 0
    for number, line in enumerate(text, 1):
        if depth > 0 or "planted(" in line:
            found.add(number)
            depth = max(0, depth + line.count("{") - line.count("}")) if depth > 0 or line.rstrip().endswith("{") else 0
    return found


def key_of(text):
    return " ".join(text.split())


def known():
    """For each listed line: the least and the most branches that may be missing, and the reason."""
    listed = collections.OrderedDict()
    if os.path.exists(LIST):
        with open(LIST, encoding="utf-8") as lines:
            for line in lines:
                line = line.rstrip("\n")
                if not line or line.startswith("#"):
                    continue
                name, count, reason, text = (part.strip() for part in line.split(" | ", 3))
                least, _, most = count.partition("-")
                listed[(name, text)] = (int(least), int(most or least), reason)
    return listed


def is_in_source(name, text):
    path = os.path.join(ROOT, name)
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as source:
        return any(key_of(line) == text for line in source)


def reason_of_gone(listed, gone, name, text):
    """A line that was laid out anew keeps the reason of the one that it was part of."""
    bare = "".join(text.split())
    for place in gone:
        other = "".join(place[1].split())
        if place[0] == name and (bare in other or other in bare):
            return listed[place][2]
    return "?"


def main():
    build = sys.argv[1]
    table = []
    uncovered = collections.OrderedDict()
    for name, found in sorted(measured(build).items()):
        with open(os.path.join(ROOT, name), encoding="utf-8") as source:
            text = source.read().split("\n")
        planted = planted_lines(text)
        lines = lines_hit = branches = taken = 0
        for number, (hit, instances) in sorted(found.items()):
            lines += 1
            lines_hit += hit
            own = text[number - 1]
            counts = []
            if is_decision(own) and number not in planted:
                counts = [count for instance in instances.values() for count in conditions_only(own, instance)]
            branches += len(counts)
            taken += sum(count > 0 for count in counts)
            missing = sum(count == 0 for count in counts)
            if missing:
                place = (name, key_of(own))
                before = uncovered.get(place, (0, number))
                uncovered[place] = (before[0] + missing, before[1])
        table.append((name, lines, lines_hit, branches, taken))

    def row(name, lines, lines_hit, branches, taken):
        share = 100.0 * taken / branches if branches else 100.0
        print(f"{name:<38}{lines_hit:>7}/{lines:<7}{taken:>7}/{branches:<7}{share:>6.1f} %")

    print(f"{'file':<38}{'lines':>15}{'branches':>15}")
    for entry in table:
        if entry[3] or entry[1]:
            row(*entry)
    row("all", *(sum(entry[i] for entry in table) for i in range(1, 5)))

    listed = known()
    never = sum(found[0] for found in uncovered.values())
    if "--write" in sys.argv[2:]:
        listed = rewritten(listed, uncovered)
    print(f"{never} of {sum(entry[3] for entry in table)} branches were never taken; {os.path.relpath(LIST, ROOT)} lists {len(listed)} lines with the reasons")

    wrong = 0
    for place in list(uncovered) + [place for place in listed if place not in uncovered]:
        count, line = uncovered.get(place, (0, 0))
        least, most, reason = listed.get(place, (0, 0, ""))
        what = f"{place[0]}:{line}" if line else place[0]
        if count > most:
            print(f"not listed: {what}: {count} not taken, {most} listed: {place[1]}")
        elif count < least or not is_in_source(*place):
            print(f"listed, but {'taken now' if is_in_source(*place) else 'no line of the source'}: {what}: {count} not taken, {least} listed: {place[1]}")
        elif reason == "?":
            print(f"without a reason: {what}: {place[1]}")
        else:
            continue
        wrong += 1
    return 1 if wrong else 0


def rewritten(listed, uncovered):
    """The list as it has to be, which is written, too."""
    gone = [place for place in listed if not is_in_source(*place)]
    fresh = {}
    for place in sorted({*uncovered, *listed}):
        count = uncovered.get(place, (0, 0))[0]
        least, most, reason = listed.get(place, (count, count, reason_of_gone(listed, gone, *place)))
        if least != most and place not in gone:
            fresh[place] = (min(count, least), max(count, most), reason)
        elif count:
            fresh[place] = (count, count, reason)
    with open(LIST, "w", encoding="utf-8") as out:
        out.write("# Branches that the tests don't take, and why: file | branches | reason | the source line. Compared by report.py beside this file, which also tells how it is written.\n")
        for (name, text), (least, most, reason) in fresh.items():
            out.write(f"{name} | {least if least == most else f'{least}-{most}'} | {reason} | {text}\n")
    return fresh


if __name__ == "__main__":
    sys.exit(main())
