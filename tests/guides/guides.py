"""Runs the shell blocks of guides and other documents, and compares what they print with what the documents show."""

import argparse
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

import blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "target" / "guides" / "bin"
#: The ports that documents use.
PORTS = [8080, 8088, 8090, 9000]
#: Seconds that the blocks of one document may take together.
TIME = 900


def tracked():
    """All documents of the repository."""
    said = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in said.stdout.split()]


def busy():
    """The ports that something else listens on: the blocks would talk to it."""
    taken = []
    for port in PORTS:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                taken.append(port)
    return taken


def steps(document, quick):
    """The steps that are run, of a document."""
    left_out = ["not run", "slow"] if quick else ["not run"]
    return [step for block in document if not any(mark in block.marks for mark in left_out) for step in block.steps]


def script(steps):
    """All steps in one shell, each below a line that names it."""
    parts = ["set -euo pipefail"]
    for number, step in enumerate(steps):
        parts.append(f"printf '\\n=== %s\\n' {number}")
        parts.append(f"set +e\n{step.shell}\n[ $? -eq {step.status} ] || exit 1\nset -e" if step.status else step.shell)
        if step.expected and step.shell.endswith("&"):
            parts.append(waits(number, len(step.expected.splitlines())))
    return "\n".join(parts)


def waits(number, lines):
    """What a program in the background says comes later, but before the next step is named: it is waited for, at most a minute."""
    said = f"sed '1,/^=== {number}$/d' \"$SAID\" | wc -l"
    return f"for _ in {{1..300}}; do [ $({said}) -lt {lines} ] || break; sleep 0.2; done"


def prepare(folder, document):
    """The folder in which a document's blocks run: examples are named from the root of the repository. Blocks that no shell reads are
    files of their own, for hidden steps: `$BLOCKS/yaml-1` is the first one in YAML."""
    os.symlink(ROOT / "examples", folder / "examples")
    names = folder / ".blocks"
    names.mkdir()
    count = {}
    for block in document:
        count[block.language] = count.get(block.language, 0) + 1
        (names / f"{block.language}-{count[block.language]}").write_text(block.body)
    return {
        **os.environ, "NO_COLOR": "1", "FANFOLD": str(BIN / "fanfold"), "BLOCKS": str(names), "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run(document, quick):
    """Runs a document; returns how many steps it has, and what is wrong with it."""
    found = steps(document, quick)
    if not any(block.language != "hidden" and steps([block], quick) for block in document):
        return 0, []
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as said:
        environment = {**prepare(pathlib.Path(folder), document), "SAID": said.name}
        shell = subprocess.Popen(
            ["bash", "-c", script(found)], cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )
        try:
            shell.wait(timeout=TIME)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # What runs in the background ends with the document.
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shell.wait()
        said.seek(0)
        printed = said.read()
    problems = [] if shell.returncode == 0 else [f"exit status {shell.returncode}"]
    outputs = re.split(r"^=== \d+\n", printed, flags=re.MULTILINE)[1:]
    for step, output in zip(found, outputs):
        if line := blocks.missing(step, output):
            problems.append(f"not printed: {line}")
    if problems:
        print(printed)
    return len(found), problems


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="leave out blocks that are marked as slow")
    arguments.add_argument("--check", action="store_true", help="run nothing, only look for blocks that nobody would find")
    arguments.add_argument("documents", nargs="*", type=pathlib.Path, help="default: all documents of the repository")
    arguments = arguments.parse_args()
    if not arguments.check and (taken := busy()):
        sys.exit(f"something listens on port {taken[0]} of 127.0.0.1, which the documents use: end it first")
    failed, ran = 0, 0
    for path in arguments.documents or tracked():
        text = path.read_text()
        problems, number = blocks.mistakes(text), 0
        if not problems and not arguments.check:
            number, problems = run(blocks.document(text), arguments.quick)
        ran += number
        failed += bool(problems)
        if number or problems:
            name = path.resolve().relative_to(ROOT)
            print(f"{name}: {'; '.join(problems) if problems else f'{number} steps as they are written'}", flush=True)
    print(f"{ran} steps, {failed} documents failed")
    sys.exit(1 if failed else 0)


main()
