#!/usr/bin/env python3
"""Fills a deployed stack, runs the command that upgrades it, and checks how everything ends.

usage: upgrade.py STACK own COMMAND...
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from botocore.exceptions import ClientError

from report import Figures
from scenarios.policies import Command
from scenarios.privilege import denials
from stack import Stack, until
from upgrading.cases import CASES
from upgrading.held import Held

FANFOLD = pathlib.Path(__file__).parents[3] / "target" / "e2e" / "fanfold"


def commands(stack, cases):
    """The present command reads what the older version wrote."""
    environment = Command(stack, pathlib.Path()).environment
    ended = next(case.id for case in cases if type(case).__name__ == "Results")
    failed = next(case.id for case in cases if type(case).__name__ == "Failed")
    for arguments in (["list"], ["status", ended], ["results", ended], ["items", failed, "--state", "failed"], ["lanes"], ["policy", "get"]):
        said = subprocess.run([FANFOLD, *arguments], env=environment, capture_output=True, text=True, timeout=60)
        assert said.returncode == 0 and said.stdout, f"fanfold {' '.join(arguments)}: {said.stdout}{said.stderr}"


def drained(stack):
    """No message is left for a step, and none is put aside. Delayed ones, such as that for a deadline, will find that all is done."""
    queues = [name for name, url in stack.physical.items() if name.endswith("Queue") and url.startswith("http")]
    queues.remove("NoticesQueue")
    until("all queues are empty", 330, lambda: not any(stack.depth(queue, delayed=False) for queue in queues))


def main(name, mode, *command):
    stack, api = Stack(name, mode), Held()
    stack.figures = Figures("upgrade")
    # The emulator ends functions that it replaces: their messages come again soon.
    for queue in ("HandleQueue", "ProduceQueue"):
        stack.visibility(queue, 60)
    cases = [case(stack, api) for case in CASES]
    for case in cases:
        print(f"fill: {type(case).__doc__}", flush=True)
        case.fill()
    subprocess.run(command, check=True)
    # What functions and routes there are may have changed.
    after = Stack(name, mode)
    after.figures, after.notices = stack.figures, stack.notices
    api.upgraded.set()
    for case in cases:
        case.stack = after
    commands(after, cases)
    for case in reversed(cases):
        print(f"end: {type(case).__doc__}", flush=True)
        case.end()
    drained(after)
    denied = denials(mode)
    assert not denied, f"denied: {denied}"
    print(f"{len(cases)} cases went through the upgrade: nothing is lost, nothing came twice")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (AssertionError, ClientError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"the upgrade failed: {error}")
