"""What the cases of an upgrade share."""

from stack import until


class Case:
    def __init__(self, stack, api):
        self.stack, self.api = stack, api
        self.kept = {}

    def policy(self, kind, endpoint, batch_api=None, **fields):
        body = {"target": "kind", "batch_api": {"url": self.api.url(endpoint), **(batch_api or {})}, **fields}
        self.stack.expect(200, "PUT", f"/policies/{kind}", body)

    def open(self, items, **more):
        return self.stack.open_fanout(items, notify={"queue": "notices"}, **more)

    def tasks(self, kind, items, fail=lambda n: False):
        return [{"id": item, "kind": kind, "content": {"n": n, "fail": fail(n)}} for n, item in enumerate(items)]

    def register(self, kind, items, **more):
        self.stack.expect(202, "POST", "/tasks", {"tasks": self.tasks(kind, items, **more)})

    def completed(self, id, total, failed=0):
        """The fan-out completes, with these counts, and its end is reported under one id."""
        until(f"{type(self).__name__}: {id} is complete", 400, lambda: self.stack.fanout(id)["complete"])
        ended = self.stack.fanout(id)
        assert (ended["total"], ended["done"], ended["failed"]) == (total, total, failed), ended
        if ended.get("reissue_of") is None:
            until(f"the notice of {id} comes", 330, lambda: self.stack.notices_of(id))
        assert len(self.stack.notices_of(id, 0)) <= 1, self.stack.notices_of(id)

    def once(self, tasks):
        """Each of these tasks had one final answer."""
        answers = {task: self.api.done[task] for task in tasks}
        assert set(answers.values()) == {1}, f"{type(self).__name__}: {answers}"

    def keep(self, *paths):
        """Notes what these paths answer before the upgrade, once the notice of the case's fan-out is delivered."""
        notice = lambda: self.stack.fanout(self.id)["notice"]["state"]
        until("its notice is delivered", 330, lambda: notice() == "delivered")
        self.note(*paths)

    def note(self, *paths):
        """The same at once."""
        for path in paths:
            self.kept[path] = self.stack.expect(200, "GET", path)

    def same(self):
        """They answer the same after it; fields may have been added."""
        for path, before in self.kept.items():
            after = self.stack.expect(200, "GET", path)
            lost = missing(before, after)
            assert not lost, f"{path} had {lost} before the upgrade: {before}; now: {after}"


def missing(before, after, at=""):
    """The first field of `before` that is not the same in `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        parts = ((name, value, after.get(name)) for name, value in before.items())
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        parts = ((index, *both) for index, both in enumerate(zip(before, after)))
    else:
        return None if before == after else at or "another value"
    return next((lost for name, old, new in parts if (lost := missing(old, new, f"{at}/{name}"))), None)
