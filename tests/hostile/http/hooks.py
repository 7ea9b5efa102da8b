"""What schemathesis cannot know of Fanfold: requests that mean something, and what an answer must be beyond its schema."""

import json
import os
import re
import zlib

import schemathesis

from probes import DEV_QUEUES

UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
ITEM = re.compile(f"({UUID}):({UUID}):([0-9]+)")
RANGE = re.compile(f"({UUID}:{UUID}):([0-9]+)-([0-9]+)")

# What `?wait=` takes.
WAIT = re.compile("(0|[1-9]|1[0-9]|20)s|(0|[1-9][0-9]{0,3}|1[0-9]{4}|20000)ms")

# Codes that say that a request was not even understood.
SHAPES = {"malformed_json", "unreadable_body", "invalid_body", "invalid_id", "invalid_parameter",
          "invalid_idempotency_key",
          "unsupported_media_type", "too_large"}  # fmt: skip

# Kinds with policies from the start: see drive.py.
KINDS = ["any", "parted", "keyed"]

# Expressions of every result that a target may have, and some that fail for most contents.
EXPRESSIONS = ["'all'", "kind", "string(content)", "content.id", "content[0]", "size(content) > 2", "[kind, 'x']",
               "has(content.a) ? content.a : 'none'"]  # fmt: skip

# What was made so far: fan-outs, those of them that are estimated, groups as (fan-out, group, upto), tasks, batches.
known = {"fanouts": [], "estimated": [], "groups": [], "tasks": [], "batches": []}


def pick(choices, text):
    """One of the choices, the same for the same text; now and then none."""
    number = zlib.crc32(text.encode("utf-8", "replace"))
    return None if not choices or number % 5 == 0 else choices[number // 5 % len(choices)]


def item(text):
    """An item that exists, in the place of one that does not; of a range, the smaller number first, which no schema can say."""
    if isinstance(text, str) and (span := RANGE.fullmatch(text)):
        return f"{span[1]}:{'-'.join(sorted(span.group(2, 3), key=int))}"
    found = ITEM.fullmatch(text) if isinstance(text, str) else None
    group = found and pick(known["groups"], text)
    return f"{group[0]}:{group[1]}:{int(found[3]) % group[2]}" if group else text


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    """A stream of tasks is a text. Some lines of it are tasks, the others are whatever was drawn."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "\n".join(
        json.dumps({"kind": kind, "content": line}) if (kind := pick(KINDS, line)) else line for line in text.split("\n")
    ).encode("utf-8", "replace")


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body if isinstance(case.body, dict) else {}
    # Whatever else a request is, no program of its choice is run on this machine.
    batch_api = body.get("batch_api")
    if isinstance(batch_api, dict) and isinstance(batch_api.get("command"), list):
        batch_api["command"] = ["true" if isinstance(part, str) and part else part for part in batch_api["command"]]
    # The policies of the start stay as they are.
    path = case.path_parameters or {}
    if case.method in ("PUT", "DELETE") and path.get("kind") in KINDS:
        path["kind"] += "-too"
    # Thousands of requests wait for nothing.
    if isinstance(case.query, dict) and WAIT.fullmatch(str(case.query.get("wait"))):
        case.query["wait"] = "1ms"
    if not (case.meta and case.meta.generation.mode.is_positive):
        return
    pages = case.path in ("/lanes", "/tasks/cancel", "/tasks/reset") or case.path.endswith(("/results", "/reissue"))
    if pages and isinstance(case.query, dict):
        # Only the answer before knows where a page begins.
        case.query.pop("after", None)
    if case.path == "/fanouts" and case.method == "GET":
        first_page_of_one_list(case.query)
    elif case.path == "/tasks" and case.method == "GET":
        # Fan-outs share the keys of a scope; no description of two parameters says that.
        if "scope" in case.query:
            case.query.pop("fanout", None)
    elif case.path.startswith("/fanouts/{id}"):
        path["id"] = pick(known["fanouts"], path["id"]) or path["id"]
    elif case.path.startswith("/tasks/{id}"):
        path["id"] = pick(known["tasks"], path["id"]) or path["id"]
    elif case.path.startswith("/batches/{id}"):
        path["id"] = pick(known["batches"], path["id"]) or path["id"]
    elif case.path == "/policies/{kind}" and case.method == "PUT":
        if "kind" in body:
            body["kind"] = path["kind"]
        # One way of calling is needed where a preset has no URL of its own, and no more than one; no description of two fields says
        # that.
        if isinstance(batch_api, dict):
            ways = [way for way in ("url", "lambda", "sqs", "command") if batch_api.get(way)]
            for way in ways[1:]:
                del batch_api[way]
            if not ways:
                batch_api["url"] = "https://example.com/"
        if expression := pick(EXPRESSIONS, json.dumps(body)):
            body |= {field: expression for field in ("target", "key") if isinstance(body.get(field), str)}
    elif case.path == "/policies/{kind}/dev" and "queue" in body:
        body["queue"] = f"{DEV_QUEUES}probe"
    elif case.path == "/tasks" and "tasks" in body:
        kind = pick(KINDS, json.dumps(body))
        for task in body["tasks"]:
            task["kind"] = kind or task["kind"]
            if isinstance(task.get("id"), str):
                task["id"] = item(task["id"])
    elif case.path == "/counts":
        for entry in body["counts"]:
            entry["fanout"] = pick(known["estimated"], entry["fanout"]) or entry["fanout"]
    elif case.path == "/acks":
        for field in ("items", "failed", "duplicates"):
            if field in body:
                body[field] = [item(text) for text in body[field]]


def first_page_of_one_list(query):
    """A list is by a user key, by its beginning, which is an order, or by neither, and a later page is of the same one: no description
    of parameters says that."""
    query.pop("after", None)
    if "user_key" in query:
        query.pop("user_key_prefix", None)
    elif "user_key_prefix" in query:
        query.pop("order", None)


@schemathesis.hook
def after_call(context, case, response):
    answer = document(response)
    # The answer to a stream of one line has the code of that line.
    code = answer.get("code") if response.status_code >= 400 else None
    entry = {"route": f"{case.method} {case.path}", "status": response.status_code, "code": code}
    if response.status_code < 300:
        learn(answer)
        entry |= {"path": dict(case.path_parameters or {}), "answer": answer}
        entry["body"] = case.body if isinstance(case.body, dict) else None
    journal.write(json.dumps(entry) + "\n")
    journal.flush()


def learn(answer):
    # A page of groups does not name their fan-out.
    fanout = answer.get("fanout") or answer.get("id")
    if "groups" in answer and fanout:
        known["fanouts"].append(fanout)
        known["groups"] += [(fanout, group["id"], group["upto"]) for group in answer["groups"]]
    if answer.get("mode") == "estimated":
        known["estimated"].append(answer["id"])
    if "tasks" in answer:
        known["tasks"] += [task["id"] for task in answer["tasks"] if task["outcome"] != "duplicate"]
    if "batch" in answer:
        known["batches"].append(answer["batch"])


# What drive.py made before.
with open(os.environ["JOURNAL"], encoding="utf-8") as entries:
    for entry in entries:
        learn(json.loads(entry)["answer"])
journal = open(os.environ["JOURNAL"], "a", encoding="utf-8")


def document(response):
    """The answer's JSON object, if it is one."""
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@schemathesis.check
def positive_is_understood(ctx, response, case):
    """What the description allows may not be possible, but it is never taken for something else."""
    positive = case.meta and case.meta.generation.mode.is_positive
    if positive and response.status_code >= 400:
        code = document(response).get("code")
        assert code not in SHAPES, f"what the description allows is refused as {code}"


@schemathesis.check
def problem_is_clear(ctx, response, case):
    """Every refusal is a problem document that says something, and not too much."""
    if response.status_code < 400:
        return
    kind = (response.headers.get("content-type") or [""])[0]
    assert kind == "application/problem+json", f"the Content-Type is {kind}"
    problem = document(response)
    assert problem.get("status") == response.status_code, "the document has another status"
    assert problem.get("type") == f"urn:fanfold:problem:{problem.get('code')}", "the type is not that of the code"
    assert problem.get("detail") and problem.get("title"), "the document says nothing"
    assert len(response.content) < 100_000, "the document is huge"
