"""SQS ingestion: the register queue takes what `POST /tasks` takes."""

import time

from stack import until


def ingestion(stack, api, single=100, envelopes=20, each=20):
    """One task per message, envelopes of many, and a message that fails among nine that do not."""
    stack.expect(200, "PUT", "/policies/letter", {"target": "content.town", "max_batch": 50, "linger": "0s", "batch_api": {"url": api.url("letters")}})
    task = lambda id, index, kind="letter": {"id": id, "kind": kind, "content": {"town": index % 3}}
    total = single + envelopes * each
    began = time.time()
    id, items = stack.open_fanout(total)
    tasks = [task(item, index) for index, item in enumerate(items)]
    packed = [{"tasks": tasks[first : first + each]} for first in range(single, total, each)]
    stack.send("RegisterQueue", *tasks[:single], *packed)
    until("complete", 120, lambda: stack.fanout(id)["complete"])
    seconds = time.time() - began
    ended = stack.fanout(id)
    assert (ended["total"], ended["failed"]) == (total, 0), ended
    batches, calls = api.ids("letters"), len(api.calls["letters"])
    assert sorted(member for ids in batches.values() for member in ids) == sorted(items), "every task is in one batch"
    stack.figures.count(tasks=total, over=seconds, batches=len(batches), calls=calls)
    print(f"  {single} messages of one task and {envelopes} of {each}: {total} tasks in {seconds:.1f} s")
    partial_failure(stack, api, task)


def partial_failure(stack, api, task):
    """The queue's event source is off while they are sent, so that they come together."""
    # One that fails is not dead (after five times) before the others went through.
    stack.visibility("RegisterQueue", 60)
    stack.deliver("RegisterQueue", False)
    id, items = stack.open_fanout(9)
    stray, (item,) = stack.open_fanout(1)
    good = [task(item, index) for index, item in enumerate(items)]
    stack.send("RegisterQueue", *good[:5], task(item, 0, "stray"), *good[5:])
    stack.deliver("RegisterQueue", True)
    until("those that are good went through", 60, lambda: stack.fanout(id)["complete"])
    until("the one that is not is all that is left", 30, lambda: stack.depth("RegisterQueue") == 1)
    assert not stack.fanout(stray)["complete"]
    stack.expect(200, "PUT", "/policies/stray", {"target": "'all'", "linger": "0s", "batch_api": {"url": api.url("strays")}})
    seconds = until("it comes again and goes through", 300, lambda: stack.fanout(stray)["complete"])
    until("the queue is empty", 30, lambda: stack.depth("RegisterQueue") == 0)
    stack.visibility("RegisterQueue", 180)
    assert stack.depth("RegisterDeadLetterQueue") == 0
    print(f"  of ten messages one failed, alone; once it had a policy it came again, after {seconds:.1f} s")
