"""Runs the shell blocks of guides, and compares what they print with the text blocks that follow them."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
BIN = ROOT / "target" / "guides" / "bin"
#: Seconds that the blocks of one guide may take together.
TIME = 900


def blocks(text):
    """The shell blocks, each with the text block that follows it before the next one, or none."""
    found = []
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "sh":
            found.append((body, None))
        elif language == "text" and found:
            found[-1] = (found[-1][0], body)
    return found


def script(shells):
    """All blocks in one shell, each between lines that name it."""
    parts = ["set -euo pipefail"]
    for number, shell in enumerate(shells):
        parts += [f"echo '=== {number}'", shell]
    return "\n".join(parts)


def missing(expected, printed):
    """The first expected line that is not printed, in order; `…` stands for anything, and the width of spaces does not count."""
    words = lambda line: " ".join(line.split())  # noqa: E731
    lines = iter(printed.splitlines())
    for line in expected.splitlines():
        pattern = re.compile(".*".join(re.escape(part) for part in words(line).split("…")))
        if not any(pattern.search(words(other)) for other in lines):
            return line
    return None


def run(guide):
    """Runs a guide; returns what is wrong with it."""
    found = blocks(guide.read_text())
    if not found:
        return ["it has no shell blocks"]
    with tempfile.TemporaryDirectory() as folder:
        # Examples are named from the root of the repository.
        os.symlink(ROOT / "examples", pathlib.Path(folder) / "examples")
        environment = {**os.environ, "NO_COLOR": "1", "FANFOLD": str(BIN / "fanfold")}
        environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
        shell = subprocess.Popen(
            ["bash", "-c", script([shell for shell, _ in found])], cwd=folder, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        try:
            printed, _ = shell.communicate(timeout=TIME)
        except subprocess.TimeoutExpired:
            printed = "it took too long"
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    problems = [] if shell.returncode == 0 else [f"exit status {shell.returncode}"]
    outputs = re.split(r"^=== \d+\n", printed, flags=re.MULTILINE)[1:]
    for (_, expected), output in zip(found, outputs):
        line = expected and missing(expected, output)
        if line:
            problems.append(f"not printed: {line}")
    if problems:
        print(printed)
    return problems


def main():
    guides = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(GUIDES.glob("*.md"))
    failed = 0
    for guide in guides:
        problems = run(guide)
        failed += bool(problems)
        print(f"{guide.name}: {'; '.join(problems) if problems else 'as it is written'}", flush=True)
    print(f"{len(guides)} guides, {failed} failed")
    sys.exit(1 if failed else 0)


main()
