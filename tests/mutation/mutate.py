#!/usr/bin/env python3
"""Breaks the library in small ways, one at a time, and tells which of them no test notices.

    tests/mutation/mutate.py [--rooms log,store] [--files src/log/ring.cpp] [--sample 40] [--seed 7] [--minutes 60] [--scratch FOLDER] [--report FILE]
    tests/mutation/mutate.py --list        every mutant, without running anything
    tests/mutation/mutate.py --check       whether each line of equivalent.txt still names a mutant

A mutant is one change of one line: a comparison or a sum that is off, a condition negated, a call left out, an answer turned round. Each is made in a clone of what was committed; the programs that test its room are
built and run until one fails. It is killed (a test failed), stopped (a test took much longer than it should), did not compile, or survived. What survives needs a test, or a line in equivalent.txt:

    file | function | change | reason | the source line

for what changes nothing that anybody could see. Those are not made again. The script ends with 1 if another one survived. README.md tells more.
"""

import argparse
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(ROOT, "tests", "mutation", "equivalent.txt")

# Which programs test a room, in the order in which they are asked.
PROGRAMS = {
    "io": ["io", "store"],
    "log": ["log", "store", "txn"],
    "store": ["store", "txn", "inspect"],
    "txn": ["txn", "undo"],
    "undo": ["undo", "txn", "inspect"],
    "transfer": ["transfer"],
}

# Operators stand between spaces; brackets of templates don't (.clang-format).
OPERATORS = [
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
    (" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "), (" % ", " / "), (" && ", " || "), (" || ", " && "),
    (" += ", " -= "), (" -= ", " += "),
]  # fmt: skip
ANSWERS = [("return true;", "return false;"), ("return false;", "return true;"), ("break;", "continue;"), ("continue;", "break;")]
# What breaks only what tests plant, what the compiler or a check of ours would notice, and text.
LEFT_ALONE = re.compile(r"planted(?:_step)?\(|TAIYEN_CHECK|static_assert|^\s*#|^\s*template|^\s*using |operator|->\*")
STATEMENT = re.compile(r"^\s+[A-Za-z_][\w:.\[\]*]*(?:(?:->|\.)[\w:]+|\([^;{}=]*?\))*\([^;{}]*\);$")
FUNCTION = re.compile(
    r"^ {0,4}(?!(?:if|for|while|switch|else|do|try|return|catch|throw|case|new|delete)\b)(?:[\w:<>,&*~ \[\]]*[ &*](~?\w[\w:~]*)|(\w[\w<>]*::[\w:~]+))\(.*\{(?:.*\})?$"
)

Mutant = collections.namedtuple("Mutant", "file number function change text mutated")


def without_text(line):
    """The line with the same length, strings, characters and comments blank."""
    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', lambda found: "\0" * len(found.group()), line)
    return re.sub(r"//.*$|/\*.*?\*/", lambda found: "\0" * len(found.group()), line)


def closing(line, opening):
    """Where the bracket at `opening` is closed on the line; -1: it is not."""
    depth = 0
    for at in range(opening, len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            return at
    return -1


def changes_of(line):
    """Pairs of what is changed, in words, and the line that comes of it."""
    code = without_text(line).split("throw ")[0]
    for before, after in OPERATORS:
        for nth, found in enumerate(re.finditer("(?=%s)" % re.escape(before), code), 1):
            at = found.start()
            if "\0" in code[at - 1 : at] + code[at + len(before) : at + len(before) + 1] or "string(" in code:
                continue  # text put together
            yield "%s to %s, %d" % (before.strip(), after.strip(), nth), line[:at] + after + line[at + len(before) :]
    for nth, found in enumerate(re.finditer(r"(?<![\w.'])\d+(?=[UL]*\b)(?![.'xX])", code), 1):
        number = int(found.group())
        yield "%d to %d, %d" % (number, number + 1, nth), line[: found.start()] + str(number + 1) + line[found.end() :]
    for before, after in ANSWERS:
        at = code.find(before)
        if at >= 0:
            yield "%s to %s" % (before[:-1], after[:-1]), line[:at] + after + line[at + len(before) :]
    for found in re.finditer(r"\b(?:if|while) \(", code):
        end = closing(code, found.end() - 1)
        condition = code[found.end() : end]
        if end >= 0 and ";" not in condition and not re.match(r"(const )?auto\b", condition):
            yield found.group()[:-2] + " not", line[: found.end()] + "!(" + line[found.end() : end] + ")" + line[end:]
    body = body_at(code)
    statement = code[body:]
    if STATEMENT.match(statement) and statement.count("(") == statement.count(")") and not re.match(r"\s*(return|throw|delete|new|co_|const |auto |static )", statement):
        yield "left out", line[:body] + re.match(r"\s*", line[body:]).group() + ("{}" if body else ";")


def body_at(code):
    """Where the statement begins that stands in the same line behind an if, a loop or an else; 0: there is none of these."""
    at = 0
    while found := re.match(r"\s*(?:else\b|(?:else )?(?:if|while|for) \()", code[at:]):
        end = at + found.end() if found.group().endswith("else") else closing(code, at + found.end() - 1)
        if end < 0:
            return at
        at = end + (0 if found.group().endswith("else") else 1)
    return at


def mutants_of(file):
    function = ""
    in_comment = False
    with open(os.path.join(ROOT, file), encoding="utf-8") as source:
        for number, line in enumerate(source.read().split("\n"), 1):
            in_comment = (in_comment or "/*" in line) and "*/" not in line
            named = FUNCTION.match(without_text(line))
            if named:
                function = named.group(1) or named.group(2)
            if in_comment or LEFT_ALONE.search(line):
                continue
            for change, mutated in changes_of(line):
                yield Mutant(file, number, function, change, line.strip(), mutated)


def sources(rooms, files):
    if files:
        return files
    found = []
    for room in rooms:
        folder = os.path.join("src", room)
        found += sorted(os.path.join(folder, name) for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith(".cpp"))
    return found


def identity(mutant):
    return mutant.file, mutant.function, mutant.change, mutant.text


def read_equivalents():
    """The lines of equivalent.txt: mutants and reasons."""
    found = {}
    with open(LIST, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                file, function, change, reason, text = (part.strip() for part in line.split(" | ", 4))
                found[file, function, change, text] = reason
    return found


class Clone:
    """What was committed, built once; files of it are broken and mended."""

    def __init__(self, scratch, seconds):
        self.root = os.path.join(scratch, "clone")
        self.build = os.path.join(self.root, "build", "mutation")
        self.seconds = seconds
        self.usual = {}
        if not os.path.isdir(self.root):
            subprocess.run(["git", "clone", "-q", ROOT, self.root], check=True)
        subprocess.run(["git", "fetch", "-q", "origin", "HEAD"], cwd=self.root, check=True)
        subprocess.run(["git", "reset", "-q", "--hard", "FETCH_HEAD"], cwd=self.root, check=True)
        compiler = shutil.which("clang++-19") or "c++"
        options = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_COMPILER=" + compiler, "-DCMAKE_CXX_FLAGS=-O1 -g1", "-DTAIYEN_WARNINGS_AS_ERRORS=OFF"]
        options += ["-DTAIYEN_PLANTED_ONLY=ON", "-DTAIYEN_UNITY=ON", "-DTAIYEN_UNITY_PROGRAMS=ON", "-DTAIYEN_BUILD_TESTS=ON"]
        subprocess.run(["cmake", "-B", self.build, "-G", "Ninja"] + options, cwd=self.root, check=True, stdout=subprocess.DEVNULL)

    def make(self, program):
        made = ["cmake", "--build", self.build, "--target", "taiyen_%s_tests" % program]
        return subprocess.run(made, cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def run(self, program, limit):
        """Which case failed first, `time` or nothing. In a session of its own, which ends with it."""
        tests = os.path.join(self.build, "tests")
        environment = dict(os.environ, TAIYEN_RUN_SEED="mutation")
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            running = subprocess.Popen(
                ["./taiyen_%s_tests" % program, "--color_output=no"],
                cwd=tests, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
            )  # fmt: skip
            try:
                code = running.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.killpg(running.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                running.wait()
            output.seek(0)
            failed = re.search(r'error: in "([^"]+)"', output.read())
        if code == 0:
            return None
        if failed:
            return failed.group(1)
        return "time" if code is None else "%s ended with %d" % (program, code)

    def settle(self, programs):
        """Builds them as they are, and sees how long they take."""
        for program in programs:
            if program in self.usual:
                continue
            begin = time.monotonic()
            if not self.make(program):
                sys.exit("the tests of %s don't compile: nothing can be said of mutants" % program)
            print("building %s: %d s" % (program, time.monotonic() - begin), flush=True)
            begin = time.monotonic()
            failed = self.run(program, None)
            if failed:
                sys.exit("the tests of %s fail as they are (%s): nothing can be said of mutants" % (program, failed))
            self.usual[program] = time.monotonic() - begin
            print("running %s: %d s" % (program, self.usual[program]), flush=True)

    def judge(self, mutant):
        """killed, stopped, not compiled or survived, and by what."""
        programs = PROGRAMS[mutant.file.split("/")[1]]
        self.settle(programs)
        path = os.path.join(self.root, mutant.file)
        with open(path, encoding="utf-8") as source:
            whole = source.read()
        lines = whole.split("\n")
        lines[mutant.number - 1] = mutant.mutated
        try:
            with open(path, "w", encoding="utf-8") as source:
                source.write("\n".join(lines))
            for program in programs:
                if not self.make(program):
                    return "not compiled", ""
                failed = self.run(program, max(self.seconds, 5 * self.usual[program]))
                if failed:
                    return ("stopped", program) if failed == "time" else ("killed", failed)
            return "survived", ", ".join(programs)
        finally:
            with open(path, "w", encoding="utf-8") as source:
                source.write(whole)


def report(results, seed, out):
    count = collections.Counter(verdict for _, verdict, _ in results)
    print("\n| room | killed | stopped | survived | not compiled |\n|---|---:|---:|---:|---:|", file=out)
    rooms = sorted({mutant.file.split("/")[1] for mutant, _, _ in results})
    for room in rooms:
        of_room = collections.Counter(verdict for mutant, verdict, _ in results if mutant.file.split("/")[1] == room)
        print("| %s | %s |" % (room, " | ".join(str(of_room[verdict]) for verdict in ("killed", "stopped", "survived", "not compiled"))), file=out)
    noticed = count["killed"] + count["stopped"]
    print("\n%d of %d mutants were noticed (seed %s)." % (noticed, noticed + count["survived"], seed), file=out)
    for mutant, verdict, _ in results:
        if verdict == "survived":
            print("\n%s:%d | %s | %s\n    %s\n    %s" % (mutant.file, mutant.number, mutant.function, mutant.change, mutant.text, mutant.mutated.strip()), file=out)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--rooms", default=",".join(PROGRAMS))
    options.add_argument("--files", default="")
    options.add_argument("--sample", type=int, default=40, help="how many; 0: all of them")
    options.add_argument("--seed", type=int)
    options.add_argument("--minutes", type=float, default=0, help="begins no mutant behind that; 0: all of the sample")
    options.add_argument("--limit", type=float, default=60, help="seconds that a program may take in any case")
    options.add_argument("--scratch", default=os.path.join(tempfile.gettempdir(), "taiyen-mutation-%d" % os.getuid()))
    options.add_argument("--report", help="a file that gets the table, too")
    options.add_argument("--list", action="store_true")
    options.add_argument("--check", action="store_true")
    given = options.parse_args()

    equivalents = read_equivalents()
    if given.check:
        all_mutants = {identity(mutant) for file in sources(PROGRAMS, []) for mutant in mutants_of(file)}
        stale = [line for line in equivalents if line not in all_mutants]
        for line in stale:
            print("no mutant of this name: " + " | ".join(line))
        print("%d mutants, %d of them equivalent" % (len(all_mutants), len(equivalents)))
        return 1 if stale or not all_mutants else 0
    wanted = [mutant for file in sources(given.rooms.split(","), [f for f in given.files.split(",") if f]) for mutant in mutants_of(file)]
    wanted = [mutant for mutant in wanted if identity(mutant) not in equivalents]
    if given.list:
        for mutant in wanted:
            print("%s:%d | %s | %s | %s" % (mutant.file, mutant.number, mutant.function, mutant.change, mutant.text))
        print("%d mutants" % len(wanted))
        return 0
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 2**31)
    random.Random(seed).shuffle(wanted)
    if given.sample:
        wanted = wanted[: given.sample]
    print("seed %d: %d mutants" % (seed, len(wanted)), flush=True)
    os.makedirs(given.scratch, exist_ok=True)
    clone = Clone(given.scratch, given.limit)
    results = []
    begin = time.monotonic()
    for mutant in wanted:
        if given.minutes and time.monotonic() - begin > 60 * given.minutes:
            break
        verdict, by = clone.judge(mutant)
        results.append((mutant, verdict, by))
        print("%-12s %s:%d | %s | %s%s" % (verdict, mutant.file, mutant.number, mutant.change, mutant.text[:110], " | " + by if by else ""), flush=True)
    report(results, seed, sys.stdout)
    if given.report:
        with open(given.report, "w", encoding="utf-8") as out:
            report(results, seed, out)
    return 1 if any(verdict == "survived" for _, verdict, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
