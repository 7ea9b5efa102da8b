"""Lost messages: the scheduled sweep makes them again from the tables."""

import time

from stack import until


class Lost:
    """Messages of three queues, lost at the beginning of a run: what `sweep` takes for lost is minutes old."""

    def losing(self, stack, api):
        """A message to elect, group, handle and notify each are received and deleted before their function sees them."""
        # Without a linger there is no election.
        for step, linger in {"elect": "1s", "group": "0s", "handle": "0s"}.items():
            policy = {"target": "'all'", "linger": linger, "batch_api": {"url": api.url(f"lost-{step}")}}
            stack.expect(200, "PUT", f"/policies/lost-{step}", policy)
        self.fanouts = {}
        for step in ("elect", "group", "handle", "notify"):
            queue = f"{step.capitalize()}Queue"
            stack.deliver(queue, False)
            id, items = stack.open_fanout(3, notify={"queue": "notices"})
            if step == "notify":
                stack.send("AckQueue", {"items": items})
            else:
                tasks = [{"id": item, "kind": f"lost-{step}", "content": {}} for item in items]
                stack.expect(202, "POST", "/tasks", {"tasks": tasks})
            lost = []
            until(f"the message to {step} is there", 60, lambda: lost.extend(stack.receive(queue)) or lost)
            # At once: before all are lost, a sweep may have made the first again.
            assert (stack.depth(queue), stack.fanout(id)["complete"]) == (0, step == "notify"), step
            stack.deliver(queue, True)
            self.fanouts[step] = id
        self.since = time.time()

    def sweeping(self, stack, api):
        """Each is made again by the scheduled sweep, and what hung on it completes."""
        for step, id in self.fanouts.items():
            until(f"the notice after a lost message to {step} is delivered", 330, lambda: stack.notices_of(id))
        healed = time.time() - self.since
        for step, id in self.fanouts.items():
            assert len(stack.notices_of(id)) == 1, stack.notices_of(id)
            ended = stack.fanout(id)
            assert (ended["complete"], ended["total"], ended["failed"]) == (True, 3, 0), (step, ended)
        for kind in ("lost-elect", "lost-group", "lost-handle"):
            assert sorted(map(len, api.ids(kind).values())) == [3], api.ids(kind)
        print(f"  healed within {healed:.0f} s after they were lost")
