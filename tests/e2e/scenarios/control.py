"""Control: what an operator holds, releases and cancels, and tasks that come as a stream."""

import time
from collections import Counter

from stack import until

# Workers know of a switch by then, and of the calls that had begun all are made.
KNOWN = 8


def control(stack, api, tasks=12):
    """Targets are paused, drained, cancelled and resumed; their tasks come as a stream and are called for once, or never."""
    policy = {"target": "content.gate", "linger": "10m", "batch_api": {"url": api.url("gates")}}
    stack.expect(200, "PUT", "/policies/gate", policy)
    north, south, west = ({"kind": "gate", "target": target} for target in ("north", "south", "west"))
    for scope in (north, west):
        switched = stack.expect(200, "POST", "/pause", scope)
        assert switched["switch"]["state"] == "paused" and switched["paused_by"] == [scope], switched
    paused = [(switch["target"], switch["state"]) for switch in stack.listed("/switches", "switches") if "target" in switch]
    assert sorted(paused) == [("north", "paused"), ("west", "paused")], paused
    time.sleep(KNOWN)

    targets = [scope["target"] for scope in (north, south, west)]
    task = lambda number: {"kind": "gate", "content": {"gate": targets[number % 3], "number": number}}
    *answers, refused = stack.stream(*map(task, range(tasks)), {"kind": "none", "content": 1})
    assert Counter(answer["outcome"] for answer in answers) == {"registered": tasks}, answers
    assert (refused["line"], refused["outcome"], refused["field"]) == (tasks + 1, "refused", "kind"), refused
    ids = {target: [answer["id"] for answer in answers[at::3]] for at, target in enumerate(targets)}
    each = tasks // 3

    def lane(scope):
        lanes = stack.listed(f"/lanes?kind=gate&target={scope['target']}", "lanes")
        return lanes[0] if lanes else {"pending": {"tasks": 0}, "paused": None}

    for scope in (north, west):
        what = f"the lane of {scope['target']} is listed with its tasks"
        until(what, 60, lambda: lane(scope)["pending"]["tasks"] == each)
        assert lane(scope)["paused"] and not lane(scope)["in_flight"], lane(scope)

    status = lambda id: stack.expect(200, "GET", f"/tasks/{id}")["status"]
    statuses = lambda target: Counter(map(status, ids[target]))
    stack.expect(200, "POST", "/drain", south)
    until("what was drained is done", 240, lambda: statuses("south") == {"succeeded": each})

    cancelled, path = 0, "/tasks/cancel"
    while path:
        page = stack.expect(200, "POST", path, west)
        cancelled, path = cancelled + page["cancelled"], page.get("next")
    assert (cancelled, statuses("west")) == (each, {"cancelled": each}), (cancelled, statuses("west"))
    one = ids["north"].pop()
    assert stack.expect(200, "DELETE", f"/tasks/{one}")["status"] == "cancelled"

    for scope in (north, west):
        switched = stack.expect(200, "POST", "/resume", scope)
        assert switched["paused_by"] == [], switched
    # It would linger for ten minutes.
    stack.expect(200, "POST", "/drain", north)
    until("what was resumed is done", 240, lambda: statuses("north") == {"succeeded": each - 1})
    called = Counter(id for batch in api.ids("gates").values() for id in batch)
    assert called == Counter(ids["north"] + ids["south"]), "what was cancelled is never called, and no task twice"
    stack.figures.count(tasks=tasks)
