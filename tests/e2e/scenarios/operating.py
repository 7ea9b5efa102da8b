"""What an operator sees: health, and metrics in the functions' log."""

import json
import time

from stack import until

# What a run of all scenarios counts, at least.
COUNTED = {
    f"fanfold_{name}"
    for name in (
        "tasks_registered", "batches_formed", "batch_size", "calls", "members_succeeded", "items_acked", "fanouts_opened",
        "fanouts_completed", "notices_delivered", "registered_to_called_seconds", "answered_to_acked_seconds",
        "called_to_acked_seconds", "sweeps",
        "oldest_waiting_seconds", "oldest_batch_seconds", "findings", "healed", "conflicts",
    )
}


def operating(stack, _):
    """Health names what is stale or in error; functions write what they counted, as metrics of this stack."""
    healths = []
    ask = lambda: healths.append(stack.expect(200, "GET", "/health")) or "swept_at" in healths[-1]
    until("a sweep is recorded", 150, ask)
    health = healths[-1]
    assert time.time() * 1000 - health["swept_at"] < 300_000, health
    levels = [finding["level"] for finding in health.get("findings", [])]
    assert health["status"] == ("error" if "error" in levels else "stale" if "stale" in levels else "ok"), health
    for finding in health.get("findings", []):
        assert finding["says"] and finding["fix"] and finding["count"] > 0, finding
    counted = {}
    until("all is counted", 120, lambda: counted.update(metrics(stack)) or COUNTED <= counted.keys())
    functions = sorted(set().union(*counted.values()))
    print(f"  {len(counted)} metrics in the logs of {len(functions)} functions; health: {health['status']}")


def metrics(stack):
    """The metrics in the log, each with the functions that wrote it."""
    logs, found = stack.session.client("logs"), {}
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName=stack.physical["Logs"], filterPattern='"CloudWatchMetrics"'
    )
    for event in (event for page in pages for event in page["events"]):
        # The emulator keeps the lines of an invocation together.
        for line in filter(lambda line: "CloudWatchMetrics" in line, event["message"].splitlines()):
            line = json.loads(line)
            (directive,) = line["_aws"]["CloudWatchMetrics"]
            assert (directive["Namespace"], directive["Dimensions"]) == ("Fanfold", [["stack"]]), line
            assert line["stack"] == stack.name and line["level"] and line["timestamp"], line
            for metric in directive["Metrics"]:
                assert metric["Name"] in line and metric["Unit"] in ("Count", "Seconds"), line
                found.setdefault(metric["Name"], set()).add(line["function"])
    return found
