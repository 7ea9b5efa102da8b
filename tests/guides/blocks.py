"""The shell blocks of a document: what each runs, what it shows, and whether it is run here.

A block in `sh` is one step; the first block in `text` below it, in the same section, is what it prints. In a block in `console` each
line that begins with `$ ` is a step, and the lines below it are what it prints. HTML comments, which readers do not see, say more:

    <!-- sh ... -->          a step of its own: what the blocks below it need
    <!-- slow: WHY -->       the next block is left out by --quick
    <!-- not run: WHY -->    the next block is not run here at all
    <!-- status: N -->       the last step of the next block ends with this exit status
    <!-- numbers differ -->  the next block shows numbers that differ from run to run
"""

import dataclasses
import re
import subprocess

#: Languages of shells that a step would not be found under.
MISNAMED = {"bash", "shell", "zsh", "shell-session", "sh-session"}
MARK = re.compile(r"<!-- (slow|not run|status|numbers differ)(?:: (.*?))? -->$")


@dataclasses.dataclass
class Step:
    """A command, or several of one block. `expected` are the lines that it prints, or none to compare."""

    shell: str
    expected: str | None = None
    loose: bool = False
    status: int = 0


@dataclasses.dataclass
class Block:
    """A fenced block; `line` is that of its fence. Comments with steps are blocks of the language `hidden`."""

    language: str
    line: int
    body: str
    marks: dict
    section: int
    steps: list = dataclasses.field(default_factory=list)


def fenced(text):
    """All fenced blocks and comments with steps, in order, with the marks above each."""
    found, marks, section, at = [], {}, 0, 0
    lines = text.splitlines()
    while at < len(lines):
        line, began = lines[at], at + 1
        at += 1
        if fence := re.match(r"```(\S*)", line):
            end = lines.index("```", at)
            language = fence[1]
        elif line == "<!-- sh":
            end = lines.index("-->", at)
            language = "hidden"
        else:
            section += line.startswith("#")
            if mark := MARK.match(line):
                marks[mark[1]] = mark[2] or ""
            elif line.strip():
                marks = {}
            continue
        found.append(Block(language, began, "\n".join(lines[at:end]) + "\n", marks, section))
        marks, at = {}, end + 1
    return found


def session(body):
    """The steps of a `console` block: a command goes on over lines until the shell takes it as whole."""
    steps = []
    lines = iter(body.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            if steps:
                steps[-1].expected += line + "\n"
            continue
        command = line[2:]
        while not whole(command):
            command += "\n" + next(lines)
        steps.append(Step(command, ""))
    return steps


def whole(command):
    if command.rstrip().endswith("\\"):
        return False
    said = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, env={"LC_ALL": "C"})
    return said.returncode == 0 or "unexpected end of file" not in said.stderr and "looking for matching" not in said.stderr


def document(text):
    """The blocks of a document, each with its steps."""
    blocks = fenced(text)
    last = None
    for block in blocks:
        loose = "numbers differ" in block.marks
        if block.language == "console":
            block.steps = session(block.body)
        elif block.language in ("sh", "hidden"):
            block.steps = [Step(block.body)]
        elif block.language == "text" and last and last.section == block.section and last.language == "sh":
            last.steps[-1].expected, last.steps[-1].loose = block.body, loose
            last = None
            continue
        else:
            continue
        for step in block.steps:
            step.loose = loose
        if block.steps:
            block.steps[-1].status = int(block.marks.get("status", 0))
        last = last if block.language == "hidden" else block
    return blocks


def mistakes(text):
    """What keeps a shell block of a document from being found, or a mark from being one."""
    lines = enumerate(text.splitlines(), 1)
    found = [f"line {number}: a block is not indented" for number, line in lines if re.match(r"[ \t>]+```", line)]
    for block in fenced(text):
        if not block.language:
            found.append(f"line {block.line}: a block names its language: `sh` or `console` for a shell, else `text` or another")
        elif block.language in MISNAMED:
            found.append(f"line {block.line}: `{block.language}` is written `sh`, or `console` with prompts")
        elif block.language == "console" and not session(block.body):
            found.append(f"line {block.line}: a `console` block has no line that begins with `$ `")
        for mark in ("slow", "not run"):
            if block.marks.get(mark) == "":
                found.append(f"line {block.line}: `{mark}` has no reason")
    return found


def pattern(line, loose):
    """What a printed line is compared with: ids that are cut short (`0197…`), whole ids and times stand for any, `…` for anything, and
    the width of spaces does not count."""
    parts = [
        (r"[0-9a-f]{4}[0-9a-f-]*…|…", ".*"),
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[0-9a-f-]{36}"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ"),
        (r"\b1[67]\d{11}\b", r"\\d{13}"),
    ]
    if loose:
        parts += [(r"\d[\d.,]*(?: (?:ms|s)\b)?", r"\\d[\\d.,]*(?: (?:µs|ms|s)\\b)?")]
    known = re.compile("|".join(f"({found})" for found, _ in parts))
    out, at = "", 0
    line = " ".join(line.split())
    for hit in known.finditer(line):
        out += re.escape(line[at : hit.start()]) + parts[hit.lastindex - 1][1].replace("\\\\", "\\")
        at = hit.end()
    return re.compile(out + re.escape(line[at:]))


def missing(step, printed):
    """The first expected line that is not printed, in order."""
    lines = iter(printed.splitlines())
    for line in (step.expected or "").splitlines():
        wanted = pattern(line, step.loose)
        if not any(wanted.search(" ".join(other.split())) for other in lines):
            return line
    return None
