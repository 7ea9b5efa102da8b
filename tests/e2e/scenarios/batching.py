"""Grouping: tasks of a fan-out come to a real HTTP batch API in batches."""

import json
import time
from collections import Counter

from report import milliseconds
from stack import until


def batching(stack, api, tasks=2_000):
    """A fan-out with batching through a real HTTP batch API, with its completion notice."""
    policy = {
        "target": "content.depot", "key": "content.order", "max_batch": 20, "linger": "1s", "max_in_flight": 2,
        "batch_api": {"url": api.url("trucks")},
    }
    stack.expect(200, "PUT", "/policies/parcel", policy)
    began = time.time()
    id, items = stack.open_fanout(tasks, user_key="batching", notify={"queue": "notices"})
    content = lambda index: {"depot": index % 7, "order": index, "fail": index == 13}
    task = lambda index: {"id": items[index], "kind": "parcel", "content": content(index)}
    sent = {}
    for first in range(0, tasks // 2, 100):
        page = range(first, min(first + 100, tasks // 2))
        stack.expect(202, "POST", "/tasks", {"tasks": [task(index) for index in page]})
        sent.update((items[index], time.time()) for index in page)
    messages = [task(index) if index % 2 else {"tasks": [task(index)]} for index in range(tasks // 2, tasks)]
    for first in range(0, len(messages), 10):
        stack.send("RegisterQueue", *messages[first : first + 10])
        sent.update((items[tasks // 2 + at], time.time()) for at in range(first, min(first + 10, len(messages))))
    until("complete", 240, lambda: stack.fanout(id)["complete"])
    seconds = time.time() - began

    ended = stack.fanout(id)
    assert (ended["total"], ended["failed"]) == (tasks, 1), ended
    batches = api.ids("trucks")
    members = Counter(member for ids in batches.values() for member in ids)
    assert set(members) == set(items) and max(members.values()) == 1, "every task is in one batch"
    assert max(len(ids) for ids in batches.values()) <= policy["max_batch"]
    for _, _, call in api.calls["trucks"]:
        assert len({member["content"]["depot"] for member in call["members"]}) == 1, "a batch has one target"
    calls = len(api.calls["trucks"])
    assert calls > len(batches), "what was answered 429 is called again"
    until("the notice is delivered", 120, lambda: stack.notices_of(id))
    assert len(stack.notices_of(id, 3)) == 1, stack.notices_of(id)
    failed = stack.expect(200, "GET", f"/tasks/{items[13]}")
    assert (failed["status"], failed["error"]) == ("failed", "no stock"), failed
    # Each of them is found by its key, and its batch shows what was sent.
    assert stack.expect(200, "GET", f"/tasks?kind=parcel&key=13&fanout={id}")["id"] == items[13]
    shown = stack.expect(200, "GET", f"/batches/{failed['batch']}/request")
    sent_body = next(call for _, _, call in api.calls["trucks"] if call["batch_id"] == failed["batch"])
    assert (shown["request"]["to"], json.loads(shown["request"]["body"])) == (api.url("trucks"), sent_body), shown

    stack.figures.count(tasks=tasks, over=seconds, batches=len(batches), calls=calls)
    first = {}
    for at, _, call in api.calls["trucks"]:
        for member in call["members"]:
            first.setdefault(member["id"], at)
    median, high = milliseconds([first[id] - sent[id] for id in items])
    print(f"  {tasks} tasks in {seconds:.1f} s, {tasks / len(batches):.1f} a batch")
    print(f"  from registered to the batch API: median {median} ms, 99th percentile {high} ms")
