#!/usr/bin/env python3
"""Drives a deployed stack and checks what comes of it.

usage: drive.py STACK own|given|aws

E2E_SCENARIOS may name some of the scenarios, for those alone.
"""

import os
import re
import sys
from collections import Counter

from botocore.exceptions import ClientError

from batch_api import BatchApi
from report import HEAD, Figures, table
from scenarios.batching import batching
from scenarios.control import control
from scenarios.dev import dev
from scenarios.face import latency, refusals
from scenarios.ingestion import ingestion
from scenarios.notices import notices
from scenarios.operating import operating
from scenarios.poison import poison
from scenarios.policies import policies
from scenarios.privilege import denials, privilege
from scenarios.producing import producing
from scenarios.queued import queued
from scenarios.secrets import secrets
from scenarios.sweeping import Lost
from scenarios.tracking import tracking
from scenarios.workers import workers
from stack import Stack

DELIVERED = re.compile(r"processed (\d+) SQS messages from (\S+)(?: \((\d+) partial failures\))?")


def deliveries(stack):
    """Messages and invocations of each queue, as the emulator logs them."""
    names = {url.rsplit("/", 1)[-1]: name for name, url in stack.physical.items() if name.endswith("Queue")}
    invocations, messages, failures = Counter(), Counter(), Counter()
    with open(os.environ["EMULATOR_LOG"]) as log:
        for found in filter(None, map(DELIVERED.search, log)):
            name = names[found.group(2)]
            invocations[name] += 1
            messages[name] += int(found.group(1))
            failures[name] += int(found.group(3) or 0)
    return [[name, messages[name], failures[name], invocations[name]] for name in sorted(invocations)]


def run(stack, api, scenario):
    """Runs a scenario; answers its figures."""
    print(f"{scenario.__name__}: {scenario.__doc__}", flush=True)
    stack.figures = Figures(scenario.__name__)
    try:
        scenario(stack, api)
    except (AssertionError, ClientError, OSError) as error:
        denied = [f"denied: {action} on {resource} to {who}" for action, resource, who in denials(stack.mode)]
        sys.exit("\n".join([f"{scenario.__name__} failed: {error}", *denied]))
    stack.figures.end()
    return stack.figures


def main(name, mode):
    stack, api, lost = Stack(name, mode), BatchApi(), Lost()
    scenarios = (
        refusals, lost.losing, latency, batching, control, policies, producing, queued, secrets, dev,
        tracking, notices, workers, ingestion, poison, lost.sweeping, operating, privilege,
    )
    only = os.environ.get("E2E_SCENARIOS", "").split()
    done = [run(stack, api, scenario) for scenario in scenarios if scenario.__name__ in only or not only]
    print("\nscenarios")
    table([HEAD, *(figures.line() for figures in done)])
    if mode == "own":
        print("\nqueues")
        table([["queue", "done", "failed", "invocations"], *deliveries(stack)])
        print("The times are those of an emulator on this machine, not of AWS.")
    print(f"{len(done)} scenarios passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
