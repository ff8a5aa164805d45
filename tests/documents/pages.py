#!/usr/bin/env python3
"""Programs and outputs of the documents, so that text and code can't drift apart.

A document marks its C++ blocks by a comment in front of the fence, which readers don't see:
    <!-- program: NAME -->      the block belongs to NAME.cpp; several blocks of one name are put together in their order
    <!-- file: NAME -->         the block is that file, whatever its language
    <!-- refused -->            the compiler refuses the block, and says what the ```text block behind it says
    <!-- elsewhere -->          code of somebody else's library: shown, and not compiled
    <!-- hidden: NAME … -->     lines of NAME.cpp that readers needn't see: the comment's own text
A C++ block without one is an error. In the other documents (`snippets`) it is a piece of some function's body:
    <!-- given                  what the block takes for granted, up to the line that ends the comment: declarations in front of it
    <!-- outside -->            the block, and what is given to it, stand outside of functions
    There an … alone within braces or on its line stands for nothing, elsewhere for some value.
```console blocks hold commands ("$ …") and what they print; they run one after the other in one folder.

pages.py write DOCUMENT FOLDER                     writes programs and files; prints the names of the programs, separated by semicolons
pages.py snippets FOLDER SOURCE DOCUMENT...        writes the blocks of the documents into one source file
pages.py run DOCUMENT FOLDER TOOL BINARIES         runs the commands, with the programs from BINARIES; TAIYEN_WRITE_DOCUMENTS=1 puts what they print into the document instead
pages.py refuse DOCUMENT FOLDER COMPILER OPTION... compiles what is to be refused
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


class Block:
    def __init__(self, language, mark, line):
        self.language, self.mark, self.line, self.text = language, mark, line, []
        self.given = None

    def body(self):
        return "".join(line + "\n" for line in self.text)


def blocks_of(document, unmarked_allowed=False):
    """All fenced blocks with their marks, and the hidden ones."""
    blocks, mark, inside, hidden, given = [], None, None, None, None
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if inside is not None:
            if line == "```":
                inside = None
            else:
                inside.text.append(line)
        elif hidden is not None:
            if line == "-->":
                hidden = None
            else:
                hidden.text.append(line)
        elif line.startswith("<!-- hidden: "):
            hidden = Block("cpp", ("program", line.removeprefix("<!-- hidden: ").strip()), number + 1)
            blocks.append(hidden)
        elif line == "<!-- given":
            hidden = given = Block("cpp", None, number + 1)
        elif found := re.fullmatch(r"<!-- (program|file|refused|elsewhere|outside)(?:: ([\w./-]+))? -->", line):
            mark = found.groups()
        elif line.startswith("```"):
            inside = Block(line[3:], mark, number + 1)
            if inside.language == "cpp" and mark is None and not unmarked_allowed:
                sys.exit(f"{document}:{number}: a C++ block that no mark says how to test")
            blocks.append(inside)
            inside.given, mark, given = given, None, None
        elif line and (mark is not None or given is not None):
            sys.exit(f"{document}:{number}: the mark in front of this line belongs to no block")
    return blocks


def write_if_new(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write(document, folder):
    programs, files = {}, {}
    for block in blocks_of(document):
        kind, name = block.mark or (None, None)
        if kind == "program":
            programs.setdefault(name, []).append(f'#line {block.line} "{document}"\n{block.body()}')
        elif kind == "file":
            files[name] = block.body()
    for name, parts in programs.items():
        write_if_new(folder / f"{name}.cpp", "".join(parts))
    for name, text in files.items():
        write_if_new(folder / name, text)
    print(";".join(programs), end="")


def without_gaps(text):
    """What a reader fills in for himself: nothing, or some value."""
    text = re.sub(r"\{\s*…\s*\}", "{}", text)
    text = re.sub(r"^\s*…$", "", text, flags=re.M)
    return re.sub(r"^#include .*$", "", text, flags=re.M).replace("…", "something")


def snippets(folder, source, documents):
    parts = ["""// Made by pages.py of the C++ blocks in the documents.
/// What an … in the middle of an expression stands for.
struct Something {
    template <class Value>
    operator Value() const {
        throw 0;
    }
};
inline constexpr Something something;
"""]
    included = set()  # what the umbrella header hasn't got
    for document in documents:
        for block in blocks_of(document, unmarked_allowed=True):
            if block.language != "cpp":
                continue
            body = ""
            for part in (block.given, block):
                if part is not None:
                    included.update(re.findall(r"^#include <taiyen/[a-z_/]+\.hpp>", part.body(), flags=re.M))
                    body += f'#line {part.line} "{document}"\n{without_gaps(part.body())}'
            outside = block.mark == ("outside", None)
            parts.append(body if outside else f"void snippet_{document.stem}_{block.line}() {{\n{body}}}\n")
    write_if_new(folder / source, "".join(f"{line}\n" for line in sorted(included)) + "".join(parts))


def levelled(text):
    """What differs from heap to heap, from disk to disk and from shell to shell made equal."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"\d{4}(-\d\d){2} [\d:]{8} UTC(, in [\d,]+ ms)?", "TIME", text)
    text = re.sub(r"(address +)0x[0-9a-f_]+", r"\1", text)
    text = re.sub(r"0x[0-9a-f]{12}", "ADDRESS", text)
    # How many bytes of a step differ depends on the heap's address: pointers change by as many bytes as are not zero in it.
    if re.match(r"history |different: |changed |(now|undone)? +\d+  ", text):
        text = re.sub(r" +\d[\d,]*", " NUMBER", text)
    text = re.sub(r"(saved +generation )[0-9,]+", r"\1", text)
    return re.sub(r"on disk [0-9.,]+ [KMGi]*B", "on disk", text)


def run(document, folder, tool, binaries):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "taiyen").symlink_to(tool)
    for program in binaries.iterdir():
        if program.is_file() and os.access(program, os.X_OK):
            (folder / program.name).symlink_to(program)
    environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LC_ALL="C", TZ="UTC")
    now, language = [], None
    written = document.read_text()
    for line in written.splitlines():
        if line.startswith("```"):
            language = line[3:] if language is None else None
            now.append(line)
        elif language != "console":
            now.append(line)
        elif line.startswith("$ "):
            now.append(line)
            done = subprocess.run(["bash", "-c", line[2:]], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=100)
            now += done.stdout.decode(errors="replace").replace(f"{folder}/", "/tutorial/").splitlines()
    if os.environ.get("TAIYEN_WRITE_DOCUMENTS"):
        document.write_text("\n".join(now) + "\n")
        return
    shutil.rmtree(folder)
    command = ""
    for number, (said, printed) in enumerate(zip(written.splitlines() + [""], now + [""]), 1):
        if said.startswith("$ "):
            command = said
        if levelled(said) != levelled(printed):
            sys.exit(f"{document}:{number}: after {command}\n  the document says  {said}\n  printed is         {printed}\n"
                     "TAIYEN_WRITE_DOCUMENTS=1 writes what is printed")
    if len(written.splitlines()) != len(now):
        sys.exit(f"{document}: the commands print {len(now) - len(written.splitlines()):+} lines")


def refuse(document, folder, compiler):
    blocks = blocks_of(document)
    refused = [(block, after) for block, after in zip(blocks, blocks[1:]) if block.mark == ("refused", None)]
    folder.mkdir(parents=True, exist_ok=True)
    for block, after in refused:
        if after.language != "text":
            sys.exit(f"{document}:{block.line}: no text block says how this is refused")
        source = folder / f"refused_{block.line}.cpp"
        source.write_text(f"#include <taiyen/taiyen.hpp>\n{block.body()}")
        done = subprocess.run([*compiler, "-std=c++20", "-fsyntax-only", str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        said = done.stdout.decode(errors="replace")
        if done.returncode == 0:
            sys.exit(f"{document}:{block.line}: the compiler takes it")
        words = " ".join(after.body().split())
        if words not in " ".join(said.split()):
            sys.exit(f"{document}:{block.line}: the compiler doesn't say: {words}\nbut:\n{said}")


def main():
    if sys.argv[1:2] == ["snippets"]:
        folder, source, *documents = sys.argv[2:]
        snippets(Path(folder), source, [Path(document) for document in documents])
        return
    verb, document, folder, *rest = sys.argv[1:]
    document, folder = Path(document), Path(folder)
    if verb == "write":
        write(document, folder)
    elif verb == "run":
        run(document, folder.resolve(), Path(rest[0]), Path(rest[1]))
    elif verb == "refuse":
        refuse(document, folder, rest)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
