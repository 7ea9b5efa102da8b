"""What is unfinished when the stack is upgraded, and how it must end. `fill` is called before the upgrade, `end` after it."""

from upgrading.case import Case
from stack import until


class Waiting(Case):
    """Tasks of a fan-out that wait in a paused lane, in bundles and alone."""

    def fill(self):
        self.policy("waits", "plain", linger="1s", max_batch=7, key="content.n")
        self.stack.expect(200, "POST", "/pause", {"kind": "waits"})
        self.id, self.items = self.open(40)
        tasks = self.tasks("waits", self.items)
        self.stack.expect(202, "POST", "/tasks", {"tasks": tasks[:39]})
        self.stack.expect(202, "POST", "/tasks", {"tasks": tasks[39:]})

    def end(self):
        assert [switch["kind"] for switch in self.stack.listed("/switches", "switches")] == ["waits"]
        self.stack.expect(200, "POST", "/resume", {"kind": "waits"})
        self.completed(self.id, 40)
        self.once(self.items)


class Tracked(Case):
    """Items of users' own workers, half of them acked, in an open fan-out."""

    def fill(self):
        self.id = self.stack.expect(201, "POST", "/fanouts", {"notify": {"queue": "notices"}})["id"]
        self.added = self.add()
        group = self.added["groups"][0]["id"]
        self.items = [f"{self.id}:{group}:{index}" for index in range(100)]
        self.stack.expect(200, "POST", "/acks", {"items": self.items[:50], "failed": self.items[50:53]})

    def add(self):
        return self.stack.expect(201, "POST", f"/fanouts/{self.id}/items", {"items": 100}, {"idempotency-key": "a-page"})

    def end(self):
        assert self.add() == self.added, "an add that is repeated after the upgrade adds nothing"
        assert self.stack.progress(self.id) == ("exact", 53)
        self.stack.expect(200, "POST", "/acks", {"items": self.items})
        self.stack.expect(200, "POST", f"/fanouts/{self.id}/seal")
        self.completed(self.id, 100, 3)


class InFlight(Case):
    """Calls that are under way while functions are replaced."""

    def fill(self):
        self.policy("slow", "slow", linger="0s", max_batch=4, max_in_flight=3, batch_api={"timeout": "30s"})
        self.id, self.items = self.open(12)
        self.register("slow", self.items)
        until("the calls have begun", 60, lambda: self.api.called("slow") >= 4)

    def end(self):
        self.completed(self.id, 12)
        self.once(self.items)


class Retried(Case):
    """Batches that wait for another attempt: because of members, and because of the whole call."""

    def fill(self):
        self.fanouts = []
        for kind in ("busy", "refused"):
            self.policy(kind, kind, linger="0s", max_batch=5)
            id, items = self.open(10)
            self.register(kind, items)
            self.fanouts.append((id, items))
            until(f"kind {kind} was called", 60, lambda: self.api.called(kind) >= 5)

    def end(self):
        for id, items in self.fanouts:
            self.completed(id, 10)
            self.once(items)


class Later(Case):
    """A batch that was accepted, and whose outcomes are posted with the token of a call before the upgrade."""

    def fill(self):
        self.policy("later", "later", linger="0s", max_batch=20, batch_api={"answers_within": "2h"})
        self.id, self.items = self.open(10)
        self.register("later", self.items)
        until("it is called", 60, lambda: self.api.called("later") == 10)
        self.post(self.items[:4])

    def post(self, items):
        key = self.api.calls["later"][-1][1]
        batch = self.api.calls["later"][-1][2]["batch_id"]
        outcomes = {"members": [{"id": item, "outcome": "succeeded"} for item in items]}
        self.stack.expect(200, "POST", f"/batches/{batch}/outcomes", outcomes, {"fanfold-token": self.api.tokens[key]})

    def end(self):
        self.post(self.items[2:])
        self.completed(self.id, 10)


class Failed(Case):
    """A fan-out that failed early, and is reissued after the upgrade."""

    def fill(self):
        self.policy("brittle", "plain", linger="0s", max_batch=10)
        self.id, self.items = self.open(10, tolerated_failures=0)
        self.register("brittle", self.items, fail=lambda n: n == 3)
        until("it has failed", 60, lambda: self.stack.fanout(self.id)["state"] == "failed")
        until("its counts are there", 60, lambda: self.stack.fanout(self.id)["done"] == 10)
        self.keep(f"/fanouts/{self.id}", f"/fanouts/{self.id}/items?state=failed", f"/tasks/{self.items[3]}")

    def end(self):
        self.same()
        again = self.stack.expect(201, "POST", f"/fanouts/{self.id}/reissue", {})
        self.completed(again["id"], 1)


class Results(Case):
    """What is remembered of tasks that ended: results, batches, keys."""

    def fill(self):
        self.policy("kept", "plain", linger="0s", max_batch=10, keep_results=True, key="content.n", scope="kind")
        self.id, self.items = self.open(10)
        self.register("kept", self.items)
        self.completed(self.id, 10)
        batch = self.stack.expect(200, "GET", f"/tasks/{self.items[0]}")["batch"]
        paths = (f"/fanouts/{self.id}", f"/fanouts/{self.id}/results", f"/tasks/{self.items[0]}", f"/batches/{batch}")
        self.keep(*paths, f"/batches/{batch}/results", "/policies/kept")
        self.request = {"tasks": [{"kind": "kept", "content": {"n": 77}}]}
        self.answer = self.alone()

    def alone(self):
        return self.stack.expect(202, "POST", "/tasks", self.request, {"idempotency-key": "alone"})["tasks"][0]["id"]

    def end(self):
        self.same()
        assert self.alone() == self.answer, "a request that is repeated after the upgrade registers nothing"
        task = {"tasks": [{"kind": "kept", "content": {"n": 5}}]}
        outcome = self.stack.expect(202, "POST", "/tasks", task)["tasks"][0]["outcome"]
        assert outcome == "duplicate", outcome
        self.once([*self.items, self.answer])


class Produced(Case):
    """A producer whose source is down in the middle."""

    def fill(self):
        self.policy("row", "plain", linger="1s", max_batch=20, key="content.n")
        source = {"source": {"url": self.api.url("rows")}, "partitions": 2}
        self.id = self.stack.expect(201, "POST", "/fanouts", {"producer": source, "notify": {"queue": "notices"}})["id"]
        read = lambda: min(part["rows"] for part in self.stack.fanout(self.id)["producer"]["partitions"])
        until("two pages of each partition are read", 60, lambda: read() == 20)

    def end(self):
        until("it has ended", 400, lambda: self.stack.fanout(self.id)["ended"])
        parts = self.stack.fanout(self.id)["producer"]["partitions"]
        assert [part["rows"] for part in parts] == [50, 50], parts
        self.completed(self.id, sum(part["rows"] - part["dropped"] for part in parts))


class Follows(Case):
    """A child, its parent, and the task that follows the parent's end."""

    def fill(self):
        self.policy("after", "plain", linger="0s")
        then = {"kind": "after", "content": {"n": 1}}
        self.parent, items = self.open(1, then=then)
        self.child, self.items = self.open(3, parent=items[0])
        self.stack.expect(200, "POST", "/acks", {"items": self.items[:2]})

    def end(self):
        self.stack.expect(200, "POST", "/acks", {"items": self.items})
        self.completed(self.child, 3)
        self.completed(self.parent, 1)
        then = self.stack.fanout(self.parent)["then"]["id"]
        until("the task that follows is done", 330, lambda: self.api.done[then])
        self.once([then])


class Estimated(Case):
    """An estimated fan-out, half counted."""

    def fill(self):
        body = {"mode": "estimated", "items": 10, "seal": True, "notify": {"queue": "notices"}}
        self.id = self.stack.expect(201, "POST", "/fanouts", body)["id"]
        self.stack.expect(200, "POST", "/counts", {"counts": [{"fanout": self.id, "succeeded": 4}]})

    def end(self):
        self.stack.expect(200, "POST", "/counts", {"counts": [{"fanout": self.id, "succeeded": 5, "failed": 1}]})
        self.completed(self.id, 10, 1)


class Dead(Case):
    """Messages that no function could process, and that are moved back."""

    def fill(self):
        self.stack.visibility("RegisterQueue", 3)
        self.id, self.items = self.open(2)
        self.stack.send("RegisterQueue", *self.tasks("unknown", self.items))
        until("they are dead letters", 400, lambda: self.stack.depth("RegisterDeadLetterQueue") == 2)
        self.note("/dead-letters")

    def end(self):
        self.same()
        self.policy("unknown", "plain", linger="0s")
        until("workers know the policy", 60, lambda: self.stack.expect(200, "POST", "/dead-letters/register/redrive", {})["moved"] == 2)
        self.completed(self.id, 2)
        self.once(self.items)


class Queued(Case):
    """A message of the older version in the queue of each step, which the present version reads."""

    def fill(self):
        self.fanouts = []
        self.steps = ("notify", "ack", "handle", "group", "elect", "register")
        for step in self.steps:
            self.policy(f"to-{step}", "plain", linger="1s")
        for step in self.steps:
            self.held(step)

    def held(self, step):
        queue = f"{step.capitalize()}Queue"
        id, items = self.open(3)
        self.stack.deliver(queue, False)
        before = self.stack.depth(queue)
        if step == "notify":
            self.stack.send("AckQueue", {"items": items})
        elif step == "ack":
            self.stack.send(queue, {"items": items})
        elif step == "register":
            self.stack.send(queue, {"tasks": self.tasks("to-register", items)})
        else:
            self.register(f"to-{step}", items)
        until(f"a message to {step} is there", 60, lambda: self.stack.depth(queue) > before)
        self.fanouts.append((step, id, items))

    def end(self):
        for step in self.steps:
            self.stack.deliver(f"{step.capitalize()}Queue", True)
        for step, id, items in self.fanouts:
            self.completed(id, 3)
            if step not in ("notify", "ack"):
                self.once(items)


# What holds queues is filled last, and ends first.
CASES = [Waiting, Tracked, Later, Failed, Results, Produced, Follows, Estimated, Dead, Retried, InFlight, Queued]
