"""Requests that lead to each problem that is described, and whether all of them came."""

import http.server
import json
import socket
import sys
import threading
import time

NOBODY = "01890000-0000-7000-8000-000000000001"

# Problems that nothing sent from outside should lead to.
INSIDE = {"internal", "unavailable"}

# A fan-out expires after a minute in which nothing happens to it, at the least.
SLOW = {"fanout_expired"}

# What the ARNs of queues of dev sessions begin with.
DEV_QUEUES = "arn:aws:sqs:local:000000000000:hostile-dev-"

DEV = "/policies/{kind}/dev"

# Routes that take a scope.
SCOPED = ("/pause", "/resume", "/drain", "/tasks/cancel", "/tasks/reset")


def bodies():
    """Every route that takes a body: method, path as described, path as sent, and a body of the right shape."""
    task = {"kind": "any", "content": 1}
    policy = {"target": "kind", "batch_api": {"url": "https://example.com/"}}
    return [
        ("POST", "/fanouts", "/fanouts", {}),
        ("POST", "/fanouts/open", "/fanouts/open", {"fanouts": [{}]}),
        ("POST", "/fanouts/{id}/items", f"/fanouts/{NOBODY}/items", {"items": 1}),
        ("POST", "/fanouts/{id}/seal", f"/fanouts/{NOBODY}/seal", {}),
        ("POST", "/batches/{id}/outcomes", f"/batches/{NOBODY}/outcomes", {"members": []}),
        ("POST", "/fanouts/{id}/reissue", f"/fanouts/{NOBODY}/reissue", {}),
        ("POST", "/tasks", "/tasks", {"tasks": [task]}),
        ("POST", "/acks", "/acks", {"items": []}),
        ("POST", "/counts", "/counts", {"counts": [{"fanout": NOBODY}]}),
        ("PUT", "/policies/{kind}", "/policies/probe", policy),
        ("PUT", DEV, "/policies/any/dev", {"session": NOBODY, "queue": f"{DEV_QUEUES}probe"}),
        *[("POST", path, path, {"kind": "nothing.here"}) for path in SCOPED],
    ]


def until(what, look, is_right=bool):
    """Looks again until it is right, for two minutes; answers what it saw."""
    end = time.monotonic() + 120
    while not is_right(seen := look()):
        if time.monotonic() > end:
            sys.exit(f"after two minutes still not: {what}: {seen}")
        time.sleep(0.05)
    return seen


def has_batch(task):
    return "batch" in task


class LateApi(http.server.BaseHTTPRequestHandler):
    """A batch API that accepts every call, and answers later."""

    calls = []

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        LateApi.calls.append((call["batch_id"], self.headers["fanfold-token"], call["members"][0]["id"]))
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def post_outcomes(server, send):
    """Posts outcomes of a call that is answered later, and some that cannot be used."""
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), LateApi)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    batch_api = {"url": f"http://127.0.0.1:{api.server_port}/", "answers_within": "10m"}
    policy = {"target": "kind", "linger": 0, "batch_api": batch_api}
    send("PUT", "/policies/{kind}", "/policies/probe-later", policy)
    send("POST", "/tasks", "/tasks", {"tasks": [{"kind": "probe-later", "content": 1}]})
    batch, token, task = until("a call comes", lambda: LateApi.calls)[0]
    route = "/batches/{id}/outcomes"
    for named, token, member in [
        ("x:y", token, task), (NOBODY, token, task), (batch, "1.x", task), (batch, token, NOBODY), (batch, token, task),
    ]:  # fmt: skip
        body = {"members": [{"id": member, "outcome": "succeeded"}]}
        send("POST", route, f"/batches/{named}/outcomes", body, {"fanfold-token": token})
    api.shutdown()


def keyed(send):
    """Finds a task by its key, and shows the request of its batch, by a policy that is deleted then."""
    policy = {"target": "kind", "key": "string(content)", "linger": 0, "batch_api": {"command": ["true"]}}
    send("PUT", "/policies/{kind}", "/policies/probe-keyed", policy)
    send("POST", "/tasks", "/tasks", {"tasks": [{"kind": "probe-keyed", "content": 1}]})
    found = "/tasks?kind=probe-keyed&key="
    task = until("the task with a key has a batch", lambda: send("GET", "/tasks", f"{found}1"), has_batch)
    for query in (f"{found}2", f"{found}1&scope=x&fanout={NOBODY}", "/tasks?kind=probe-keyed", "/tasks?key=1"):
        send("GET", "/tasks", query)
    request = "/batches/{id}/request"
    send("GET", request, f"/batches/{task['batch']}/request")
    send("DELETE", "/policies/{kind}", "/policies/probe-keyed?force=true")
    send("GET", request, f"/batches/{task['batch']}/request")


def dev_sessions(send):
    """One session has the calls of a kind, another one asks for them."""
    policy = {"target": "kind", "batch_api": {"url": "https://example.com/"}}
    send("PUT", "/policies/{kind}", "/policies/probe-dev", policy)
    body = {"session": NOBODY, "queue": f"{DEV_QUEUES}probe"}
    other = {**body, "session": "01890000-0000-7000-8000-000000000002"}
    for wanted in (body | {"renew": True}, body, body | {"renew": True}, other, body | {"queue": "x"}, body | {"answers_within": "2h"}):
        send("PUT", DEV, "/policies/probe-dev/dev", wanted)
    for headers in ({}, {"origin": "https://example.com"}):
        send("GET", DEV, "/policies/probe-dev/dev", None, headers)
    for query in ("?session=x", f"?session={other['session']}", f"?session={NOBODY}", ""):
        send("DELETE", DEV, f"/policies/probe-dev/dev{query}")
    send("DELETE", DEV, "/policies/probe-dev/dev", None, {"origin": "https://example.com"})
    for method in ("GET", "PUT", "DELETE"):
        for named in ("nothing.here", "x:y"):
            send(method, DEV, f"/policies/{named}/dev", body if method == "PUT" else None)


def without_dev_sessions(server):
    """What a stack answers that allows none."""
    server.call("PUT", "/policies/probe", {"target": "kind", "batch_api": {"url": "https://example.com/"}})
    body = {"session": NOBODY, "queue": f"{DEV_QUEUES}probe"}
    status, answer = server.call("PUT", "/policies/probe/dev", body)
    return {(f"PUT {DEV}", status, answer.get("code"))}


def send(server):
    """Sends them; the answers as (route, status, code)."""
    answered = set()

    def send(method, route, path, body=None, headers=None):
        status, answer = server.call(method, path, body, headers)
        answered.add((f"{method} {route}", status, answer.get("code") if status >= 400 else None))
        return answer

    post_outcomes(server, send)
    dev_sessions(send)
    for method, route, path, body in bodies():
        send(method, route, path, b'{"x": "' + b"x" * 7_000_000 + b'"}')
        send(method, route, path, body, {"content-type": "text/plain"})
        send(method, route, path, b"{")
        send(method, route, path, {"surprise": 1})
        answered.add((f"{method} {route}", *broken_off(server, method, path)))
    sealed = send("POST", "/fanouts", "/fanouts", {"items": 1, "seal": True})["id"]
    opened = send("POST", "/fanouts", "/fanouts", {})["id"]
    send("POST", "/fanouts/{id}/items", f"/fanouts/{sealed}/items", {"items": 1})
    send("POST", "/fanouts/{id}/items", f"/fanouts/{opened}/items", {"items": 0})
    estimated = send("POST", "/fanouts", "/fanouts", {"mode": "estimated"})["id"]
    send("POST", "/fanouts/{id}/items", f"/fanouts/{estimated}/items", {"items": 1})
    send("POST", "/counts", "/counts", {"counts": [{"fanout": estimated, "add": 1}, {"fanout": opened}]})
    send("POST", "/counts", "/counts", {"counts": [{"fanout": opened, "add": 1}]})
    produced = send("POST", "/fanouts", "/fanouts", {"producer": {"source": {"url": "http://localhost:9/"}}})["id"]
    resume = "/fanouts/{id}/producer/resume"
    send("POST", resume, f"/fanouts/{produced}/producer/resume")
    send("POST", "/fanouts/{id}/seal", f"/fanouts/{produced}/seal", {})
    send("DELETE", "/fanouts/{id}", f"/fanouts/{produced}", None)
    for named in (produced, sealed, NOBODY, "x:y"):
        send("POST", resume, f"/fanouts/{named}/producer/resume")
    send("POST", resume, f"/fanouts/{produced}/producer/resume", None, {"origin": "https://example.com"})
    send("POST", "/fanouts", "/fanouts", {"items": 2**31})
    send("POST", "/fanouts", "/fanouts", {"notify": {"url": "ftp://example.com/"}})
    for bad in (
        {"tasks": [{"kind": "nothing", "content": 1}]}, {"items": 2**31}, {"notify": {"url": "ftp://example.com/"}},
        {"producer": {"source": {"url": "ftp://example.com/"}}}, {"then": {"kind": "nothing", "content": {}}},
    ):  # fmt: skip
        send("POST", "/fanouts", "/fanouts", bad)
        send("POST", "/fanouts/open", "/fanouts/open", {"fanouts": [{"items": 1}, bad]})
    gathered = {"tasks": [{"kind": "any", "content": 1}], "then": {"kind": "any", "content": {}, "results": True}}
    send("POST", "/fanouts/open", "/fanouts/open", {"fanouts": [gathered, gathered]})
    for kind in ("any", "nothing here"):
        send("POST", "/fanouts", "/fanouts", {"seal": True, "then": {"kind": kind, "content": {"x": 1}}})
    parent = send("POST", "/fanouts", "/fanouts", {"items": 1, "seal": True})
    for index in (0, 1):
        item = f"{parent['id']}:{parent['groups'][0]['id']}:{index}"
        send("POST", "/fanouts", "/fanouts", {"items": 1, "seal": True, "parent": item})
    again = {
        ("/fanouts", "/fanouts"): [{"items": 1}, {"items": 2}],
        ("/fanouts/open", "/fanouts/open"): [{"fanouts": [{"items": 1}]}, {"fanouts": [{"items": 2}]}],
        ("/fanouts/{id}/items", f"/fanouts/{opened}/items"): [{"items": 1}, {"items": 2}],
        ("/tasks", "/tasks"): [{"tasks": [{"kind": "any", "content": content}]} for content in (1, 2)],
    }
    for (route, path), changed in again.items():
        send("POST", route, path, changed[0], {"idempotency-key": "a b"})
        for body in changed:
            send("POST", route, path, body, {"idempotency-key": "probe"})
    nothing = f"{NOBODY}:{NOBODY}:0"
    send("POST", "/acks", "/acks", {"items": [nothing]})
    send("POST", "/tasks", "/tasks", {"tasks": []})
    send("PUT", "/policies/{kind}", "/policies/probe", {"target": "(", "batch_api": {"url": "https://example.com/"}})
    slow = {"target": "kind", "linger": "15m", "batch_api": {"command": ["true"]}}
    send("PUT", "/policies/{kind}", "/policies/probe-slow", slow)
    send("POST", "/tasks", "/tasks", {"tasks": [{"kind": "probe-slow", "content": 1}]})
    waiting = send("POST", "/tasks", "/tasks", {"tasks": [{"kind": "probe-slow", "content": 2}]})["tasks"][0]["id"]
    for headers in ({"origin": "https://example.com"}, {}):
        send("DELETE", "/tasks/{id}", f"/tasks/{waiting}", None, headers)
    reset = "/tasks/{id}/reset"
    send("PUT", "/policies/{kind}", "/policies/probe-slow", slow | {"target": "content.x"})
    # Policies are cached for some seconds.
    time.sleep(6)
    send("POST", reset, f"/tasks/{waiting}/reset")
    send("PUT", "/policies/{kind}", "/policies/probe-slow", slow)
    time.sleep(6)
    send("POST", reset, f"/tasks/{waiting}/reset")
    send("POST", reset, f"/tasks/{waiting}/reset", None, {"origin": "https://example.com"})
    taken = send("POST", "/tasks", "/tasks", {"tasks": [{"kind": "any", "content": 3}]})["tasks"][0]["id"]
    until("the task has a batch", lambda: send("GET", "/tasks/{id}", f"/tasks/{taken}"), has_batch)
    send("DELETE", "/tasks/{id}", f"/tasks/{taken}", None)
    send("POST", reset, f"/tasks/{taken}/reset")
    item = f"{parent['id']}:{parent['groups'][0]['id']}:0"
    send("POST", "/tasks", "/tasks", {"tasks": [{"id": item, "kind": "any", "content": 4}]})
    send("POST", reset, f"/tasks/{item}/reset")
    keyed(send)
    for query, scope in (("?after=x", {"kind": "any"}), ("", {"all": True}), ("", {"kind": "any"})):
        send("POST", "/tasks/reset", f"/tasks/reset{query}", scope)
    for number in range(300):
        server.call("POST", "/pause", {"kind": "probe-slow", "target": str(number)})
    for switch in ("/pause", "/drain"):
        send("POST", switch, switch, {"kind": "probe-slow", "target": "one more"})
    for query in ("?force=perhaps", "", "?force=true"):
        send("DELETE", "/policies/{kind}", f"/policies/probe-slow{query}", None)
    send("PUT", "/policies/{kind}", "/policies/probe-slow", slow)
    send("DELETE", "/policies/{kind}", "/policies/any", None, {"origin": "https://example.com"})
    for method, route in [
        ("GET", "/fanouts/{id}"), ("GET", "/fanouts/{id}/groups"), ("GET", "/fanouts/{id}/masks"),
        ("POST", "/fanouts/{id}/items"),
        ("POST", "/fanouts/{id}/seal"), ("DELETE", "/fanouts/{id}"), ("GET", "/tasks/{id}"), ("GET", "/batches/{id}"),
        ("GET", "/fanouts/{id}/items"), ("GET", "/fanouts/{id}/results"), ("GET", "/batches/{id}/results"),
        ("GET", "/batches/{id}/request"),
        ("GET", "/policies/{kind}"), ("PUT", "/policies/{kind}"), ("DELETE", "/policies/{kind}"),
        ("POST", "/fanouts/{id}/reissue"), ("POST", "/tasks/{id}/reset"),
    ]:  # fmt: skip
        for named in (NOBODY, "x:y"):
            path = route.replace("{id}", named).replace("{kind}", named)
            body = {"items": 1} if "items" in route else {}
            send(method, route, path, body if method in ("POST", "PUT") else None)
    send("GET", "/fanouts/{id}", f"/fanouts/{opened}?progress=none", None)
    for query in (
        "", "?user_key=%ff", "?user_key=a&user_key_prefix=a", "?user_key_prefix=", "?user_key=a&after=00", "?after=00",
        "?user_key_prefix=a&order=oldest", "?state=open,done", "?state=,", f"?after={'ff' * 24}",
        "?state=open,sealed&order=oldest&limit=1", "?opened_after=9999999999999&opened_before=0",
    ):  # fmt: skip
        send("GET", "/fanouts", f"/fanouts{query}", None)
    send("GET", "/fanouts", "/fanouts?user_key=a%00b&state=open&limit=1", None)
    done = send("POST", "/fanouts", "/fanouts", {"items": 1, "seal": True})
    send("POST", "/acks", "/acks", {"items": [f"{done['id']}:{done['groups'][0]['id']}:0"]})
    send("DELETE", "/fanouts/{id}", f"/fanouts/{done['id']}", None)
    reissues(send, {"open": opened, "estimated": estimated, "succeeded": done["id"]})
    for step in ("elect", "api"):
        send("POST", "/dead-letters/{step}/redrive", f"/dead-letters/{step}/redrive")
    send("POST", "/dead-letters/{step}/redrive", "/dead-letters/ack/redrive", None, {"origin": "https://example.com"})
    send("GET", "/dead-letters", "/dead-letters")
    strict = send("POST", "/fanouts", "/fanouts", {"items": 1, "tolerated_failures": 0})
    send("POST", "/acks", "/acks", {"failed": [f"{strict['id']}:{strict['groups'][0]['id']}:0"]})
    send("DELETE", "/fanouts/{id}", f"/fanouts/{strict['id']}", None)
    for method, route, path, _ in bodies():
        send(method, route, path, {}, {"origin": "https://example.com"})
    for route in (
        "/", "/openapi.json", "/health", "/policies", "/policies/{kind}", "/fanouts", "/fanouts/{id}",
        "/fanouts/{id}/groups", "/fanouts/{id}/masks", "/fanouts/{id}/items", "/fanouts/{id}/results",
        "/tasks", "/tasks/{id}", "/batches/{id}",
        "/batches/{id}/results", "/batches/{id}/request", "/lanes", "/switches", "/dead-letters",
    ):  # fmt: skip
        path = route.replace("{id}", NOBODY).replace("{kind}", "any")
        send("GET", route, path, None, {"origin": "https://example.com"})
    send("DELETE", "/fanouts/{id}", f"/fanouts/{NOBODY}", None, {"origin": "https://example.com"})
    return answered


def reissues(send, fanouts):
    """What a reissue is answered with."""

    def reissue(fanout, body, query="", headers=None):
        return send("POST", "/fanouts/{id}/reissue", f"/fanouts/{fanout}/reissue{query}", body, headers)

    for standing in ("open", "estimated", "succeeded"):
        reissue(fanouts[standing], {})
    reissue(fanouts["open"], {"items": "outstanding"})
    failed = send("POST", "/fanouts", "/fanouts", {"items": 1, "seal": True})
    send("POST", "/acks", "/acks", {"failed": [f"{failed['id']}:{failed['groups'][0]['id']}:0"]})
    reissue(failed["id"], {}, "?after=x")
    reissue(failed["id"], {"max_batch": 0})
    reissue(failed["id"], {}, headers={"idempotency-key": "a b"})
    for body in ({}, {"missing": True}):
        reissue(failed["id"], body, headers={"idempotency-key": "probe-again"})
    reissue(failed["id"], {})


def broken_off(server, method, path):
    """A body in chunks of which the second is none."""
    host, port = server.url.removeprefix("http://").split(":")
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode() + b"1\r\n{\r\nnonsense\r\n")
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    code = "unreadable_body" if b'"code":"unreadable_body"' in answer else None
    return int(answer.split(b" ")[1]), code


def never_answered(description, answered):
    """Problems that are described and were never answered, and problems answered and not described."""
    described = set()
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                for code in codes(description, response):
                    described.add((f"{method.upper()} {path}", int(status), code))
    missing = {problem for problem in described if problem[2] not in INSIDE | SLOW} - answered
    routes = {route for route, _, _ in described}
    surplus = {problem for problem in answered if problem[0] in routes and problem[2]} - described
    failures = [f"described, but never answered: {problem}" for problem in sorted(missing, key=str)]
    return failures + [f"answered, but not described: {problem}" for problem in sorted(surplus, key=str)]


def codes(description, response):
    if "$ref" in response:
        response = description["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    schema = response["content"].get("application/problem+json", {}).get("schema")
    return schema["allOf"][1]["properties"]["code"]["enum"] if schema else [None]
