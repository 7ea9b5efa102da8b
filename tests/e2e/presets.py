#!/usr/bin/env python3
"""Calls the AWS presets' APIs on an emulator from a local stack, and looks at what arrived. The kind `queued` is sent to a queue,
whose worker posts the outcomes; `secret` has a secret that Secrets Manager keeps.

usage: presets.py FANFOLD

FANFOLD is the command. Needs ministack[full] and boto3 in this Python. Starts and ends the emulator and the stack itself.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3

HERE = pathlib.Path(__file__).parent
EMULATOR, STACK = "http://127.0.0.1:4577", "127.0.0.1:8577"
REGION = "eu-west-1"
COUNT = 33
KEY = "key-of-e2e"


def wait_for(what, within=60):
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            found = what()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"{what.__name__}: not within {within} seconds")


def request(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(f"http://{STACK}{path}", data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(call, timeout=30) as answer:
        return json.load(answer)


def client(service):
    return boto3.client(service, endpoint_url=EMULATOR, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")


def policy(kind, batch_api, **further):
    return {"kind": kind, "target": "kind", "linger": 0, "max_attempts": 3, "backoff": {"base": 0, "max": 0},
            "batch_api": batch_api if "sqs" in batch_api else {"url": f"{EMULATOR}/", **batch_api}, **further}


def handled(kind, contents):
    """Registers tasks; returns the state of each when all have their outcomes."""
    answer = request("/tasks", {"tasks": [{"kind": kind, "content": content} for content in contents]})
    ids = [task["id"] for task in answer["tasks"]]

    def outcomes():
        states = [request(f"/tasks/{id}") for id in ids]
        return states if all(state["status"] in ("succeeded", "failed") for state in states) else None

    return wait_for(outcomes)


def waits(kind, contents):
    """Registers tasks that no call is of use for; returns why they wait."""
    answer = request("/tasks", {"tasks": [{"kind": kind, "content": content} for content in contents]})
    ids = [task["id"] for task in answer["tasks"]]

    def refused():
        batches = {request(f"/tasks/{id}").get("batch") for id in ids} - {None}
        return next((why for batch in batches if (why := request(f"/batches/{batch}").get("last_error"))), None)

    why = wait_for(refused)
    ended = [state for state in (request(f"/tasks/{id}")["status"] for id in ids) if state in ("succeeded", "failed")]
    assert not ended and "QueueDoesNotExist" in why, f"{ended}: {why}"
    return why


def check(name, states, arrived, wanted):
    bad = [state for state in states if state["status"] != "succeeded"]
    assert not bad, f"{name}: {len(bad)} of {len(states)} failed: {bad[0]}"
    assert arrived == wanted, f"{name}: {arrived} arrived, {wanted} expected"
    batches = len({state["batch"] for state in states})
    print(f"{name}: {len(states)} tasks in {batches} batches succeeded, and arrived")


def scenarios(workers):
    sqs, kinesis, dynamodb, events, ses = map(client, ("sqs", "kinesis", "dynamodb", "events", "sesv2"))
    orders = sqs.create_queue(QueueName="orders")["QueueUrl"]
    seen = sqs.create_queue(QueueName="seen")["QueueUrl"]
    kinesis.create_stream(StreamName="orders", ShardCount=1)
    dynamodb.create_table(
        TableName="orders", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}])
    events.put_rule(Name="all", EventPattern=json.dumps({"source": ["shop"]}))
    events.put_targets(Rule="all", Targets=[{"Id": "seen", "Arn": f"arn:aws:sqs:{REGION}:000000000000:seen"}])
    labels = sqs.create_queue(QueueName="labels.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    workers["queued"], workers["secret"] = Worker(labels), Guarded()
    for worker in workers.values():
        worker.start()
    client("secretsmanager").create_secret(Name="shop/e2e", SecretString=json.dumps({"key": KEY}))
    ses.create_email_identity(EmailIdentity="us@example.com")
    ses.create_email_template(TemplateName="hello", TemplateContent={"Subject": "Hi", "Text": "Hello {{name}}"})
    return {
        "sqs": (policy("sqs", {"use": "sqs", "with": {"queue_url": orders}}), lambda n: {"n": n}),
        "kinesis": (policy("kinesis", {"use": "kinesis", "with": {"stream": "orders"}}), lambda n: {"n": n}),
        "dynamodb": (
            policy("dynamodb", {"use": "dynamodb", "with": {"table": "orders"}}, distinct="content.id.S"),
            lambda n: {"id": {"S": str(n)}, "n": {"N": str(n)}}),
        "eventbridge": (
            policy("eventbridge", {"use": "eventbridge", "with": {"source": "shop", "detail_type": "order"}}), lambda n: {"n": n}),
        "ses": (
            policy("ses", {"use": "ses", "url": f"{EMULATOR}/v2/email/outbound-bulk-emails",
                           "with": {"from": "us@example.com", "template": "hello"}}),
            lambda n: {"to": f"user{n}@example.com", "data": {"name": str(n)}}),
        "queued": (policy("queued", {"sqs": labels, "answers_within": "1h"}, max_batch=10), lambda n: {"n": n}),
        "secret": (
            policy("secret", {"url": workers["secret"].url, "request": {"headers": {"Authorization": "Bearer ${secret.E2E}"}}}),
            lambda n: {"n": n}),
        "lost": (policy("lost", {"use": "sqs", "with": {"queue_url": orders + "-none"}}), lambda n: {"n": n}),
    }


class Worker(threading.Thread):
    """Takes calls from a queue, and posts their outcomes."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.done = url, []

    def run(self):
        sqs = client("sqs")
        while True:
            asked = sqs.receive_message(QueueUrl=self.url, WaitTimeSeconds=1, MessageAttributeNames=["All"])
            for message in asked.get("Messages", []):
                said = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
                members = json.loads(message["Body"])["members"]
                outcomes = {"members": [{"id": member["id"], "outcome": "succeeded"} for member in members]}
                headers = {"content-type": "application/json", "fanfold-token": said["Fanfold-Token"]}
                address = f"http://{STACK}/batches/{said['Fanfold-Batch']}/outcomes"
                post = urllib.request.Request(address, data=json.dumps(outcomes).encode(), headers=headers)
                urllib.request.urlopen(post, timeout=30).close()
                self.done += [member["content"]["n"] for member in members]
                sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])


class Guarded(threading.Thread):
    """A batch API that wants a key."""

    def __init__(self):
        super().__init__(daemon=True)
        calls = self.calls = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                calls.append(self.headers["authorization"])
                status = 200 if calls[-1] == f"Bearer {KEY}" else 401
                answer = json.dumps({"members": [{"id": member["id"], "outcome": "succeeded"} for member in body["members"]]}).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def run(self):
        self.server.serve_forever()


def drained(url):
    sqs, found = client("sqs"), []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages"):
        found += [json.loads(message["Body"]) for message in messages]
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def arrived(name, workers):
    if name == "queued":
        return sorted(workers[name].done)
    if name == "secret":
        assert set(workers[name].calls) == {f"Bearer {KEY}"}, workers[name].calls
    if name == "sqs":
        return sorted(body["n"] for body in drained(client("sqs").get_queue_url(QueueName="orders")["QueueUrl"]))
    if name == "eventbridge":
        return sorted(event["detail"]["n"] for event in drained(client("sqs").get_queue_url(QueueName="seen")["QueueUrl"]))
    if name == "dynamodb":
        return sorted(int(item["n"]["N"]) for item in client("dynamodb").scan(TableName="orders")["Items"])
    if name == "kinesis":
        kinesis = client("kinesis")
        shard = kinesis.list_shards(StreamName="orders")["Shards"][0]["ShardId"]
        iterator = kinesis.get_shard_iterator(StreamName="orders", ShardId=shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        return sorted(json.loads(record["Data"])["n"] for record in kinesis.get_records(ShardIterator=iterator)["Records"])
    return None


def main():
    fanfold = os.path.abspath(sys.argv[1])
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": REGION}
    emulator_environment = {**environment, "GATEWAY_PORT": "4577", "BIND_HOST": "127.0.0.1", "MINISTACK_REGION": REGION}
    with tempfile.TemporaryDirectory() as folder:
        log = open(os.path.join(folder, "emulator.log"), "w")
        started = [subprocess.Popen([sys.executable, HERE / "emulator.py", "serve"], env=emulator_environment, stdout=log, stderr=log)]
        try:
            def emulator_is_up():
                return urllib.request.urlopen(f"{EMULATOR}/_ministack/health", timeout=5).status == 200
            wait_for(emulator_is_up)
            workers, files = {}, []
            all_scenarios = scenarios(workers)
            for name, (text, _) in all_scenarios.items():
                files += ["--policy", os.path.join(folder, f"{name}.json")]
                pathlib.Path(files[-1]).write_text(json.dumps(text))
            command = [fanfold, "up", "--listen", STACK, "--data", os.path.join(folder, "data"), *files]
            kept = {"AWS_ENDPOINT_URL_SQS": EMULATOR, "AWS_ENDPOINT_URL_SECRETS_MANAGER": EMULATOR, "FANFOLD_SECRET_E2E": "secretsmanager:shop/e2e#key"}
            started.append(subprocess.Popen(command, env={**environment, **kept}))

            def stack_is_up():
                return request("/health")
            wait_for(stack_is_up)
            for name, (_, content) in all_scenarios.items():
                contents = [content(n) for n in range(COUNT)]
                if name == "lost":
                    print(f"a queue that does not exist: tasks wait, {waits(name, contents)}")
                else:
                    states = handled(name, contents)
                    check(name, states, arrived(name, workers), None if name in ("ses", "secret") else list(range(COUNT)))
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(timeout=20)


main()
