"""Tracking alone: users' own workers ack items."""

import time

from stack import until


def tracking(stack, _, count=10_000, share=2_000):
    """Open, add under a key, seal, ack over HTTP and SQS, each more than once."""
    began = time.time()
    id = stack.expect(201, "POST", "/fanouts", {})["id"]
    key = {"idempotency-key": "page-1"}
    added = stack.expect(201, "POST", f"/fanouts/{id}/items", {"items": count}, key)
    assert added == stack.expect(201, "POST", f"/fanouts/{id}/items", {"items": count}, key), "a repeated add"
    items = [f"{id}:{group['id']}:{index}" for group in added["groups"] for index in range(group["upto"])]
    assert len(items) == count, added
    shares = [items[first : min(first + share, count - 1)] for first in range(0, count - 1, share)]
    for ids in shares + shares:
        stack.send("AckQueue", {"items": ids})
    until("all but one acked", 60, lambda: stack.progress(id) == ("exact", count - 1))
    assert not stack.expect(200, "POST", f"/fanouts/{id}/seal")["complete"]
    last = stack.expect(200, "POST", "/acks", {"failed": items[-1:]})
    assert last["fanouts"][0]["complete"], last
    seconds = time.time() - began
    estimate(stack)
    ended = stack.fanout(id)
    assert (ended["complete"], ended["total"], ended["failed"]) == (True, count, 1), ended
    print(f"  {count} items in {len(added['groups'])} groups, each acked twice over {2 * len(shares)} messages: {seconds:.1f} s")


def estimate(stack):
    """An estimated fan-out, counted by a message and over HTTP."""
    id = stack.expect(201, "POST", "/fanouts", {"mode": "estimated", "items": 3, "seal": True})["id"]
    stack.send("AckQueue", {"counts": [{"fanout": id, "succeeded": 1}]})
    until("a message is counted", 60, lambda: stack.fanout(id)["done"] >= 1)
    last = stack.expect(200, "POST", "/counts", {"counts": [{"fanout": id, "add": 1, "succeeded": 2, "failed": 1}]})
    assert last["fanouts"][0]["complete"] and not last["refused"], last
