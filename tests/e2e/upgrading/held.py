"""A batch API and a source that hold back what is to be unfinished when the stack is upgraded."""

import threading
from collections import Counter

from batch_api import BatchApi


class Held(BatchApi):
    def __init__(self):
        # Set when the upgrade is done.
        self.upgraded = threading.Event()
        # How often each member had a final answer, under keys that differ.
        self.done = Counter()
        self.ended = {}
        super().__init__()

    def answer(self, name, key, attempt, call):
        with self.lock:
            self.calls[name].append((attempt, key, call))
        if "partition" in call:
            return self.page(call)
        if name == "slow":
            self.upgraded.wait(20)
        if name == "busy" and not self.upgraded.is_set():
            return 200, {"members": [{"id": member["id"], "outcome": "retry", "retry_after": 20} for member in call["members"]]}
        if name == "refused" and not self.upgraded.is_set():
            return 503, {}
        if name == "later":
            return 202, {}
        members = [self.outcome(member, name) for member in call["members"]]
        with self.lock:
            if key not in self.ended:
                self.done.update(member["id"] for member in members)
                self.ended[key] = members
            return 200, {"members": self.ended[key]}

    def outcome(self, member, name):
        content = member["content"]
        if content.get("fail") and not self.upgraded.is_set():
            return {"id": member["id"], "outcome": "failed", "error": "no stock", "code": "E1"}
        return {"id": member["id"], "outcome": "succeeded", "result": {"label": f"{name} {content.get('n')}"}}

    def page(self, call):
        """Five pages of ten rows; the source is down after the second, until the upgrade."""
        at = (call["cursor"] or {}).get("at", 0)
        if at >= 20 and not self.upgraded.is_set():
            return 503, {}
        rows = [{"kind": "row", "content": {"n": call["partition"] * 1000 + n}} for n in range(at, at + 10)]
        return 200, {"tasks": rows, "cursor": {"at": at + 10} if at < 40 else None}

    def called(self, name):
        """How many members this endpoint was called with, however often."""
        with self.lock:
            return sum(len(call.get("members", [])) for _, _, call in self.calls[name])
