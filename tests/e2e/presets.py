#!/usr/bin/env python3
"""Calls the AWS presets' APIs on an emulator from a local stack, and looks at what arrived.

usage: presets.py FANFOLD

FANFOLD is the command. Needs ministack[full] and boto3 in this Python. Starts and ends the emulator and the stack itself.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import boto3

HERE = pathlib.Path(__file__).parent
EMULATOR, STACK = "http://127.0.0.1:4577", "127.0.0.1:8577"
REGION = "eu-west-1"
COUNT = 33


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
            "batch_api": {"url": f"{EMULATOR}/", **batch_api}, **further}


def handled(kind, contents):
    """Registers tasks; returns the state of each when all have their outcomes."""
    answer = request("/tasks", {"tasks": [{"kind": kind, "content": content} for content in contents]})
    ids = [task["id"] for task in answer["tasks"]]

    def outcomes():
        states = [request(f"/tasks/{id}") for id in ids]
        return states if all(state["status"] in ("succeeded", "failed") for state in states) else None

    return wait_for(outcomes)


def check(name, states, arrived, wanted):
    bad = [state for state in states if state["status"] != "succeeded"]
    assert not bad, f"{name}: {len(bad)} of {len(states)} failed: {bad[0]}"
    assert arrived == wanted, f"{name}: {arrived} arrived, {wanted} expected"
    batches = len({state["batch"] for state in states})
    print(f"{name}: {len(states)} tasks in {batches} batches succeeded, and arrived")


def scenarios():
    sqs, kinesis, dynamodb, events, ses = map(client, ("sqs", "kinesis", "dynamodb", "events", "sesv2"))
    orders = sqs.create_queue(QueueName="orders")["QueueUrl"]
    seen = sqs.create_queue(QueueName="seen")["QueueUrl"]
    kinesis.create_stream(StreamName="orders", ShardCount=1)
    dynamodb.create_table(
        TableName="orders", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}])
    events.put_rule(Name="all", EventPattern=json.dumps({"source": ["shop"]}))
    events.put_targets(Rule="all", Targets=[{"Id": "seen", "Arn": f"arn:aws:sqs:{REGION}:000000000000:seen"}])
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
        "lost": (policy("lost", {"use": "sqs", "with": {"queue_url": orders + "-none"}}), lambda n: {"n": n}),
    }


def drained(url):
    sqs, found = client("sqs"), []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages"):
        found += [json.loads(message["Body"]) for message in messages]
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def arrived(name):
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
            all_scenarios, files = scenarios(), []
            for name, (text, _) in all_scenarios.items():
                files += ["--policy", os.path.join(folder, f"{name}.json")]
                pathlib.Path(files[-1]).write_text(json.dumps(text))
            command = [fanfold, "serve", "--listen", STACK, "--data", os.path.join(folder, "data"), *files]
            started.append(subprocess.Popen(command, env=environment))

            def stack_is_up():
                return request("/health")
            wait_for(stack_is_up)
            for name, (_, content) in all_scenarios.items():
                states = handled(name, [content(n) for n in range(COUNT)])
                if name == "lost":
                    assert all(state["status"] == "failed" for state in states), states[0]
                    print(f"a queue that does not exist: {states[0]['error']}")
                else:
                    check(name, states, arrived(name), None if name == "ses" else list(range(COUNT)))
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(timeout=20)


main()
