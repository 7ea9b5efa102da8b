"""Whether what was accepted is still there and comes to its end."""

import time

# Fan-outs of more items than this are looked at, but not brought to their end.
ITEMS = 800

# Of a request with more tasks than this, some are looked at: the first, the last, and others evenly.
TASKS = 500

# Tasks of these kinds are handled at once by a program that always succeeds.
PROMPT = ("any", "parted", "keyed")

PATIENCE = 600


def lost(server, entries):
    """Names what is lost of what was answered with success."""
    fanouts, tasks = {}, {}
    for entry in entries:
        if entry["status"] >= 300:
            continue
        remember(entry, fanouts, tasks)
    print(f"== looking for {len(fanouts)} fan-outs and {len(tasks)} tasks that were accepted", flush=True)
    failures = [failure for id, fanout in fanouts.items() for failure in fanout_lost(server, id, fanout)]
    cut_short = {id for id, fanout in fanouts.items() if fanout["ends"]}
    failures += tasks_lost(server, tasks, cut_short)
    if not fanouts or not tasks:
        failures.append("no fan-out or no task was accepted: the requests mean nothing")
    return failures


def remember(entry, fanouts, tasks):
    route, answer, body = entry["route"], entry["answer"], entry["body"] or {}
    if route == "POST /fanouts/open":
        for one, opened in zip(body["fanouts"], answer["fanouts"], strict=True):
            remember({"route": "POST /fanouts", "answer": opened, "body": one}, fanouts, tasks)
    if route in ("POST /fanouts", "POST /fanouts/{id}/items"):
        fanout = fanouts.setdefault(answer.get("fanout") or answer["id"], {"groups": {}, "sealed": False, "ends": set()})
        fanout["groups"] |= {group["id"]: group["upto"] for group in answer["groups"]}
        if route == "POST /fanouts":
            fanout["sealed"] |= bool(body.get("seal") or body.get("tasks"))
            fanout["user_key"] = body.get("user_key")
            fanout["parent"], fanout["then"] = body.get("parent"), (body.get("then") or {}).get("kind")
            if body.get("mode") == "estimated":
                fanout.setdefault("counted", [body.get("items") or 0, 0, 0])
            ends = {"expired": "idle_limit", "failed": "tolerated_failures"}
            fanout["ends"] |= {end for end, field in ends.items() if body.get(field) is not None}
    elif route == "POST /fanouts/{id}/seal" and answer["id"] in fanouts:
        fanouts[answer["id"]]["sealed"] = True
    elif route == "POST /counts":
        refused = {one["fanout"] for one in answer["refused"]}
        for entry in body["counts"]:
            if entry["fanout"] not in refused and entry["fanout"] in fanouts:
                add, succeeded, failed = (int(entry.get(field) or 0) for field in ("add", "succeeded", "failed"))
                counted = fanouts[entry["fanout"]]["counted"]
                counted[:] = counted[0] + add, counted[1] + succeeded + failed, counted[2] + failed
    elif route == "DELETE /fanouts/{id}" and answer["id"] in fanouts:
        fanouts[answer["id"]]["ends"].add("cancelled")
    elif route == "POST /tasks" and "tasks" in answer:
        step, last = 1 + len(body["tasks"]) // TASKS, len(body["tasks"]) - 1
        for at, (task, shown) in enumerate(zip(body["tasks"], answer["tasks"], strict=True)):
            if shown["outcome"] == "registered" and (at % step == 0 or at == last):
                tasks[shown["id"]] = task


def fanout_lost(server, id, fanout):
    """A fan-out has all its items; sealed and acked, it completes with exact counts, unless it may end otherwise."""
    status, shown = server.get(f"/fanouts/{id}")
    total = sum(fanout["groups"].values())
    if status != 200:
        return [f"fan-out {id}: {status} {shown}"]
    if "counted" in fanout:
        return estimate_lost(id, fanout, shown)
    if (shown["total"], shown["user_key"]) != (total, fanout["user_key"]):
        return [f"fan-out {id}: {total} items of {fanout['user_key']!r} were accepted, it is {shown}"]
    if (shown.get("parent"), shown.get("then", {}).get("kind")) != (fanout["parent"], fanout["then"]):
        return [f"fan-out {id}: its end was to lead to {fanout['parent']!r} and {fanout['then']!r}, it is {shown}"]
    if shown["state"] in ("cancelled", "expired", "failed"):
        return [] if shown["state"] in fanout["ends"] else [f"fan-out {id} ended so for no reason: {shown}"]
    if "cancelled" in fanout["ends"]:
        return [f"fan-out {id} was cancelled, it is {shown}"]
    if (shown["state"] != "open") != fanout["sealed"]:
        return [f"fan-out {id}: sealed is {fanout['sealed']}, it is {shown}"]
    # Its producer seals it, if its source can be reached.
    if total > ITEMS or "producer" in shown:
        return []
    server.call("POST", f"/fanouts/{id}/seal")
    items = [f"{id}:{group}:{index}" for group, upto in fanout["groups"].items() for index in range(upto)]
    server.call("POST", "/acks", {"items": items})
    status, shown = server.get(f"/fanouts/{id}")
    ended = [shown.get(count) for count in ("succeeded", "failed", "duplicates")]
    if status != 200 or not shown["complete"] or shown["done"] != total or sum(ended) != total:
        return [f"fan-out {id} does not complete: {shown}"]
    return []


def estimate_lost(id, fanout, shown):
    """An estimated fan-out has what was counted, until it has ended: from then on its counters stand still."""
    counts = [shown["total"], shown["done"], shown["failed"]]
    ends = fanout["ends"] | ({"completed"} if fanout["sealed"] and counts[1] >= counts[0] else set())
    right = counts == fanout["counted"] if not shown["ended"] else shown["state"] in ends
    return [] if right else [f"fan-out {id}: {fanout} was counted, it is {shown}"]


def tasks_lost(server, tasks, cut_short):
    """Every task has its content; those whose batch API is known end, or are dropped with their fan-out."""
    failures, waiting, until = [], dict(tasks), time.monotonic() + PATIENCE
    while waiting and time.monotonic() < until:
        for id, task in list(waiting.items()):
            status, shown = server.get(f"/tasks/{id}")
            if status != 200 or not alike(shown["content"], task["content"]):
                failures.append(f"task {id} was accepted as {task}, it is {shown}")
            # What waited may have been cancelled with its kind, or with everything.
            elif task["kind"] in PROMPT and shown["status"] not in ("succeeded", "cancelled"):
                if shown["status"] != "dropped" or id.split(":")[0] not in cut_short:
                    continue
            del waiting[id]
        time.sleep(0.2)
    return failures + [f"task {id} does not end" for id in waiting]


def alike(one, other):
    """Equal as JSON; whole numbers beyond 64 bits are kept as doubles."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other or (abs(other) >= 2**63 and float(one) == float(other))
    return one == other


def ordinary(server):
    """A fan-out as anybody would use it, after all that."""
    status, fanout = server.call("POST", "/fanouts", {"items": 25, "seal": True, "user_key": "ordinary"})
    if status != 201:
        return [f"an ordinary fan-out is not opened: {status} {fanout}"]
    path = f"/fanouts/{fanout['id']}"
    [group] = fanout["groups"]
    ids = [f"{fanout['id']}:{group['id']}:{index}" for index in range(group["upto"])]
    tasks = [{"id": id, "kind": "any", "content": {"number": number}} for number, id in enumerate(ids)]
    status, registered = server.call("POST", "/tasks", {"tasks": tasks})
    if status != 202:
        return [f"ordinary tasks are not registered: {status} {registered}"]
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status, shown = server.get(path)
        if status == 200 and shown["complete"]:
            counts = (shown["total"], shown["succeeded"], shown["failed"], shown["user_key"])
            return [] if counts == (25, 25, 0, "ordinary") else [f"an ordinary fan-out ended as {shown}"]
        time.sleep(0.1)
    return [f"an ordinary fan-out does not complete: {shown}"]
