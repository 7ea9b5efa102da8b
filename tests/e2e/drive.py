#!/usr/bin/env python3
"""Drives a deployed stack and checks what comes of it.

usage: drive.py STACK own|given|aws
"""

import json
import statistics
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

stack, mode = sys.argv[1], sys.argv[2]
session = boto3.Session()
cloudformation, sqs, lambdas = session.client("cloudformation"), session.client("sqs"), session.client("lambda")
resources = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
physical = {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}
outputs = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
base = {output["OutputKey"]: output["OutputValue"] for output in outputs}["Url"]
if mode != "aws":
    endpoint = session.client("sqs").meta.endpoint_url.replace("127.0.0.1", "localhost")
    base = f"{endpoint}/_aws/execute-api/{physical['HttpApi']}/$default"


def request(method, path, body=None, headers=None):
    """A signed request; answers status and document."""
    data = None if body is None else json.dumps(body).encode()
    signed = AWSRequest(
        method=method, url=base + path, data=data, headers={"content-type": "application/json", **(headers or {})}
    )
    SigV4Auth(session.get_credentials(), "execute-api", session.region_name).add_auth(signed)
    plain = urllib.request.Request(base + path, method=method, data=data, headers=dict(signed.headers))
    try:
        with urllib.request.urlopen(plain, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def expect(status, answer):
    assert answer[0] == status, f"{status} was expected: {answer}"
    return answer[1]


def until(what, seconds, check):
    """Asks until it holds; answers how long that took."""
    began = time.time()
    while not check():
        assert time.time() - began < seconds, f"after {seconds} s still not: {what}"
        time.sleep(0.2)
    return time.time() - began


def send(queue, body):
    sqs.send_message(QueueUrl=physical[queue], MessageBody=body if isinstance(body, str) else json.dumps(body))


def receive(queue, seconds=1):
    got = sqs.receive_message(QueueUrl=physical[queue], MaxNumberOfMessages=10, WaitTimeSeconds=seconds)
    messages = got.get("Messages", [])
    for message in messages:
        sqs.delete_message(QueueUrl=physical[queue], ReceiptHandle=message["ReceiptHandle"])
    return [json.loads(message["Body"]) for message in messages]


def fanout(id):
    return expect(200, request("GET", f"/fanouts/{id}"))


def open_fanout(items, **more):
    opened = expect(201, request("POST", "/fanouts", {"items": items, "seal": True, **more}))
    group = opened["groups"][0]["id"]
    return opened["id"], [f"{opened['id']}:{group}:{index}" for index in range(items)]


class BatchApi(BaseHTTPRequestHandler):
    """Answers 429 to the first attempt of every fifth batch, and refuses one order by name."""

    calls = []
    lock = threading.Lock()

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.lock:
            self.calls.append((self.headers["idempotency-key"], call))
            busy = len(self.calls) % 5 == 0 and call["attempt"] == 1
        failed = [member["id"] for member in call["members"] if member["content"]["order"] == 13]
        outcome = lambda id: {"id": id, "outcome": "failed" if id in failed else "succeeded", "error": "no stock"}
        body = json.dumps({"members": [outcome(member["id"]) for member in call["members"]]}).encode()
        self.send_response(429 if busy else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def batching(tasks=500):
    """A fan-out with batching through a real HTTP batch API, with its completion notice."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BatchApi)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    policy = {
        "target": "content.depot", "key": "content.order", "max_batch": 20, "linger": "1s", "max_in_flight": 2,
        "handler": {"url": f"http://127.0.0.1:{server.server_port}/trucks"},
    }
    expect(200, request("PUT", "/policies/parcel", policy))
    began = time.time()
    id, items = open_fanout(tasks, user_key="batching", notify={"queue": "notices"})
    task = lambda index: {"id": items[index], "kind": "parcel", "content": {"depot": index % 7, "order": index}}
    expect(202, request("POST", "/tasks", {"tasks": [task(index) for index in range(tasks // 2)]}))
    for index in range(tasks // 2, tasks):
        send("RegisterQueue", task(index)) if index % 2 else send("RegisterQueue", {"tasks": [task(index)]})
    until("complete", 240, lambda: fanout(id)["complete"])
    seconds = time.time() - began
    ended = fanout(id)
    assert (ended["total"], ended["failed"]) == (tasks, 1), ended
    members = Counter()
    keys = {}
    for key, call in BatchApi.calls:
        ids = tuple(member["id"] for member in call["members"])
        assert keys.setdefault(key, ids) == ids, f"key {key} came with other members"
        assert len({member["content"]["depot"] for member in call["members"]}) == 1
    for ids in keys.values():
        members.update(ids)
    assert set(members) == set(items) and max(members.values()) == 1, "every task is in one batch"
    notices = []
    until("the notice is told", 30, lambda: notices.extend(receive("NoticesQueue")) or notices)
    notices += receive("NoticesQueue", 3)
    assert [notice["fanout"] for notice in notices] == [id], notices
    batch = expect(200, request("GET", f"/tasks/{items[13]}"))
    assert (batch["status"], batch["error"]) == ("failed", "no stock"), batch
    print(f"  {tasks} tasks in {seconds:.1f} s ({tasks / seconds:.0f}/s), {len(keys)} batches, {len(BatchApi.calls)} calls")


def tracking():
    """Tracking alone: open, add under a key, seal, ack over HTTP and SQS, each more than once."""
    id = expect(201, request("POST", "/fanouts", {}))["id"]
    key = {"idempotency-key": "page-1"}
    added = expect(201, request("POST", f"/fanouts/{id}/items", {"items": 10_000}, key))
    assert added == expect(201, request("POST", f"/fanouts/{id}/items", {"items": 10_000}, key)), "a repeated add"
    items = [f"{id}:{group['id']}:{index}" for group in added["groups"] for index in range(group["upto"])]
    for first in range(0, len(items) - 1, 2_000):
        for _ in range(2):
            send("AckQueue", {"items": items[first : min(first + 2_000, len(items) - 1)]})
    until("all but one acked", 60, lambda: fanout(id)["done"] == len(items) - 1)
    assert not expect(200, request("POST", f"/fanouts/{id}/seal"))["complete"]
    last = expect(200, request("POST", "/acks", {"failed": items[-1:]}))
    assert last["fanouts"][0]["complete"] and fanout(id)["failed"] == 1, last


def poison():
    """A poison message ends in the dead-letter queue, alone; mended, it goes through."""
    id, items = open_fanout(2)
    sqs.set_queue_attributes(QueueUrl=physical["AckQueue"], Attributes={"VisibilityTimeout": "2"})
    send("AckQueue", '{"items": ["rubbish"]}')
    send("AckQueue", {"items": items[:1]})
    until("the good one is acked", 30, lambda: fanout(id)["done"] == 1)
    dead = []
    until("the bad one is dead", 90, lambda: dead.extend(receive("AckDeadLetterQueue")) or dead)
    assert dead == [{"items": ["rubbish"]}], dead
    sqs.set_queue_attributes(QueueUrl=physical["AckQueue"], Attributes={"VisibilityTimeout": "180"})
    send("AckQueue", {"items": items[1:]})
    until("complete", 30, lambda: fanout(id)["complete"])


def sweeping():
    """A message that is lost is made again by the scheduled sweep."""
    mapping = next(
        mapping
        for mapping in lambdas.list_event_source_mappings()["EventSourceMappings"]
        if mapping["EventSourceArn"].endswith(":" + physical["ElectQueue"].rsplit("/", 1)[-1])
    )
    lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    time.sleep(3)
    id, items = open_fanout(3)
    task = lambda index: {"id": items[index], "kind": "parcel", "content": {"depot": "lost", "order": f"lost-{index}"}}
    expect(202, request("POST", "/tasks", {"tasks": [task(index) for index in range(3)]}))
    until("the hint is lost", 20, lambda: receive("ElectQueue"))
    lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)
    seconds = until("complete", 330, lambda: fanout(id)["complete"])
    print(f"  healed after {seconds:.0f} s")


def refusals():
    """Whoever does not sign is refused; what can not be done is told as a problem document."""
    try:
        urllib.request.urlopen(base + "/health", timeout=30)
        assert mode == "given", "an unsigned request was answered"
    except urllib.error.HTTPError as error:
        assert error.code == 403, error.code
    for status, code, answer in [
        (404, "unknown_fanout", request("GET", "/fanouts/01890000-0000-7000-8000-000000000001")),
        (422, "invalid_tasks", request("POST", "/tasks", {"tasks": [{"kind": "none", "content": 1}]})),
        (422, "invalid_body", request("POST", "/fanouts", {"item": 3})),
    ]:
        assert expect(status, answer)["code"] == code, answer


def latency(calls=100):
    """What one call of the API takes."""
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        expect(200, request("GET", "/health"))
        times.append(1_000 * (time.perf_counter() - began))
    times.sort()
    print(f"  GET /health: median {statistics.median(times):.0f} ms, 99th percentile {times[int(0.99 * calls)]:.0f} ms")


passed = 0
for scenario in (refusals, latency, batching, tracking, poison, sweeping):
    print(f"{scenario.__name__}: {scenario.__doc__}")
    scenario()
    passed += 1
print(f"{passed} scenarios passed")
