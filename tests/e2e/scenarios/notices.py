"""Notices to where users wait for them: queues, event buses, tasks of Step Functions, durable functions."""

import base64
import hashlib
import io
import json
import time
import zipfile
from contextlib import ExitStack
from pathlib import Path

from roles import granted, with_new_role
from stack import until

SDK = Path(__file__).parents[3] / "target" / "e2e" / "durable"
"""Where `tests/e2e/run` has installed the SDK of durable functions."""

WAITS = """
import json, boto3
from aws_durable_execution_sdk_python import durable_execution

@durable_execution
def handler(event, context):
    def submit(callback_id, _):
        boto3.client("sqs").send_message(QueueUrl=event["queue"], MessageBody=json.dumps({"callback": callback_id}))
    notice = json.loads(context.wait_for_callback(submit, name="send all"))
    return notice["data"]["failed"]
"""
"""The function of docs/api.md, except that the scenario opens the fan-out."""


def notices(stack, api, items=1_000_000):
    """Queues and an event bus get notices, and tasks of Step Functions and a durable function wait for ends."""
    with ExitStack() as made:
        for name in ("ends", "events", "tokens"):
            queue(stack, made, name)
        bus = event_bus(stack, made)
        queues_and_buses(stack, api, bus)
        machine = state_machine(stack, made)
        seconds = million(stack, machine, items)
        otherwise(stack, machine)
        durable = stack.mode == "own"
        if durable:
            durable_function(stack, made)
    print(f"  a task of Step Functions waited for {items} items, acked by masks, each twice: {seconds:.1f} s")
    if not durable:
        print("  without a durable function, which is only made where roles hold at once")


def queues_and_buses(stack, api, bus):
    """Ends, progress and failed tasks, by URL, ARN and name."""
    sqs = {"sqs": stack.arn("ends")}
    id, items = stack.open_fanout(4, user_key="reported", notify=sqs)
    stack.send("AckQueue", {"items": items[:3], "failed": items[3:]})
    data = reported(stack, id, "fanout.completed")["data"]
    assert (data["user_key"], data["total"], data["succeeded"], data["failed"]) == ("reported", 4, 3, 1), data

    id, items = stack.open_fanout(4, notify={"event_bus": bus}, notify_on={"progress": ["50%"]})
    stack.send("AckQueue", {"items": items[:2]})
    event = seen(stack, f"/fanouts/{id}", "fanout.progress")
    assert (event["source"], event["detail"]["percentage"], event["detail"]["done"]) == ("fanfold", "50%", 2), event
    stack.expect(200, "DELETE", f"/fanouts/{id}")
    event = seen(stack, f"/fanouts/{id}", "fanout.cancelled")
    assert (event["detail"]["succeeded"], event["detail"]["missing"]) == (2, 2), event

    policy = {"target": "'all'", "linger": "0s", "batch_api": {"url": api.url("glass")}}
    for kind, notify in [("glass", {"sqs": stack.physical["ends"]}), ("china", {"event_bus": bus})]:
        stack.expect(200, "PUT", f"/policies/{kind}", {**policy, "notify": notify})
        task = {"kind": kind, "content": {"fail": True}}
        (task,) = stack.expect(202, "POST", "/tasks", {"tasks": [task]})["tasks"]
        until("the task has failed", 60, lambda: stack.expect(200, "GET", f"/tasks/{task['id']}")["status"] == "failed")
        batch = stack.expect(200, "GET", f"/tasks/{task['id']}")["batch"]
        if "sqs" in notify:
            data = reported(stack, batch, "tasks.failed", "batches")["data"]
        else:
            data = seen(stack, f"/batches/{batch}", "tasks.failed")["detail"]
        assert data["batch"] == batch and [failed["id"] for failed in data["failures"]] == [task["id"]], data


def million(stack, machine, items):
    """A task that waits for a fan-out of so many items succeeds with the counts."""
    began = time.time()
    execution, token = started(stack, machine)
    key = {"idempotency-key": hashlib.sha256(token.encode()).hexdigest()}
    first = min(items, 709_632)
    body = {"items": first, "user_key": "a million", "notify": {"task_token": token}}
    opened = stack.expect(201, "POST", "/fanouts", body, key)
    assert stack.expect(201, "POST", "/fanouts", body, key)["id"] == opened["id"], "a repeated call opens no other"
    id, groups = opened["id"], opened["groups"]
    if items > first:
        groups += stack.expect(201, "POST", f"/fanouts/{id}/items", {"items": items - first}, {"idempotency-key": "2"})["groups"]
    assert sum(group["upto"] for group in groups) == items
    # Everything of each group is acked, of some groups the first item as failed.
    mask = lambda group, bits: {"group": f"{id}:{group['id']}", "mask": base64.b64encode(bits).decode()}
    full = lambda group: mask(group, ((1 << group["upto"]) - 1).to_bytes((group["upto"] + 7) // 8, "little"))
    half = len(groups) // 2
    failed = groups[:10]
    over_http = {"items": [full(group) for group in groups[:half]], "failed": [mask(group, b"\x01") for group in failed]}
    over_sqs = {"items": [full(group) for group in groups[half:]]}
    for _ in range(2):
        assert not stack.expect(200, "POST", "/acks", over_http)["refused"]
    stack.expect(200, "POST", f"/fanouts/{id}/seal")
    assert execution()["status"] == "RUNNING"
    stack.send("AckQueue", over_sqs, over_sqs)
    until("the task succeeds", 240, lambda: execution()["status"] != "RUNNING")
    ended = execution()
    assert ended["status"] == "SUCCEEDED", ended
    notice = json.loads(ended["output"])["sent"]
    counts = [notice["data"][count] for count in ("user_key", "total", "succeeded", "failed", "missing")]
    assert notice["type"] == "fanout.completed", notice
    assert counts == ["a million", items, items - len(failed), len(failed), 0], notice
    delivered(stack, id)
    return time.time() - began


def otherwise(stack, machine):
    """Tasks fail if their fan-outs do not complete; the machine catches failures, and nothing else."""
    execution, token = started(stack, machine)
    id, items = stack.open_fanout(3, notify={"task_token": token})
    stack.expect(200, "POST", "/acks", {"items": items[:1]})
    stack.expect(200, "DELETE", f"/fanouts/{id}")
    until("the task fails", 60, lambda: execution()["status"] != "RUNNING")
    ended = execution()
    assert (ended["status"], ended["error"]) == ("FAILED", "fanout.cancelled"), ended
    assert ended["cause"].startswith("of 3 items 1 succeeded, 0 failed") and id in ended["cause"], ended
    delivered(stack, id)

    execution, token = started(stack, machine)
    id, items = stack.open_fanout(3, notify={"task_token": token}, tolerated_failures=0)
    stack.send("AckQueue", {"failed": items[:1]})
    until("what failed is caught", 60, lambda: execution()["status"] != "RUNNING")
    ended = execution()
    assert ended["status"] == "SUCCEEDED", ended
    assert json.loads(ended["output"])["error"]["Error"] == "fanout.failed", ended
    delivered(stack, id)


def durable_function(stack, made):
    """A durable function goes on with the notice, or with an error."""
    role = granted(stack, made, "waits", "lambda", {
        "sqs:SendMessage": stack.arn("tokens"),
        "lambda:CheckpointDurableExecution": "*",
        "lambda:GetDurableExecutionState": "*",
    })
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("waits.py", WAITS)
        for file in sorted(SDK.rglob("*.py")):
            archive.write(file, file.relative_to(SDK))
    name = f"{stack.name}-waits"
    stack.lambdas.create_function(
        FunctionName=name, Runtime="python3.13", Handler="waits.handler", Role=role, Timeout=30,
        Code={"ZipFile": code.getvalue()}, DurableConfig={"ExecutionTimeout": 600, "RetentionPeriodInDays": 1},
    )
    made.callback(stack.lambdas.delete_function, FunctionName=name)
    version = stack.lambdas.publish_version(FunctionName=name)["Version"]
    for end, status in [("complete", "SUCCEEDED"), ("cancel", "FAILED")]:
        stack.lambdas.invoke(
            FunctionName=name, Qualifier=version, InvocationType="Event",
            Payload=json.dumps({"queue": stack.physical["tokens"]}),
        )
        callback = token_of(stack)["callback"]
        id, items = stack.open_fanout(3, notify={"durable_callback": callback})
        if end == "complete":
            stack.send("AckQueue", {"items": items[:2], "failed": items[2:]})
        else:
            stack.expect(200, "DELETE", f"/fanouts/{id}")
        delivered(stack, id)
        which = {"FunctionName": name, "Qualifier": version}
        find = lambda: stack.lambdas.list_durable_executions_by_function(**which)["DurableExecutions"]
        until(f"the durable function is {status}", 60, lambda: status in [found["Status"] for found in find()])
        (arn,) = (found["DurableExecutionArn"] for found in find() if found["Status"] == status)
        ended = stack.lambdas.get_durable_execution(DurableExecutionArn=arn)
        if end == "complete":
            assert json.loads(ended["Result"]) == 1, ended
        else:
            assert "of 3 items 0 succeeded" in ended["Error"]["ErrorMessage"], ended


def reported(stack, id, kind, of="fanouts"):
    """The notice of this kind that the queue got."""
    return matching(stack, "ends", lambda notice: (notice["source"], notice["type"]) == (f"/{of}/{id}", kind))


def seen(stack, source, kind):
    """The event of this kind that the bus passed on to a queue."""
    return matching(stack, "events", lambda event: source in event["resources"] and event["detail-type"] == kind)


def token_of(stack):
    return matching(stack, "tokens", lambda _: True)


def matching(stack, queue, is_right):
    """A message of a queue; what came before it is forgotten."""
    got = []
    until(f"the message is in {queue}", 60, lambda: got.extend(filter(is_right, stack.receive(queue))) or got)
    return got[0]


def delivered(stack, id):
    """Waits until the end of a fan-out is delivered."""
    until("the notice is delivered", 300, lambda: stack.fanout(id).get("notice", {}).get("state") == "delivered")
    # A machine that stands still for the time-out of a try makes a second one.
    assert stack.fanout(id)["notice"]["tries"] <= 2, stack.fanout(id)["notice"]


def started(stack, machine):
    """Starts the state machine; answers what describes the execution, and the token of the task that waits."""
    client = stack.session.client("stepfunctions")
    arn = client.start_execution(stateMachineArn=machine, input=json.dumps({"order": "4711"}))["executionArn"]
    message = token_of(stack)
    assert message["order"] == "4711", message
    return lambda: client.describe_execution(executionArn=arn), message["token"]


def queue(stack, made, name):
    """A queue, to which EventBridge may send."""
    url = stack.sqs.create_queue(QueueName=f"{stack.name}-{name}")["QueueUrl"]
    made.callback(stack.sqs.delete_queue, QueueUrl=url)
    stack.physical[name] = url
    statement = {
        "Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage",
        "Resource": stack.arn(name),
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    stack.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})


def event_bus(stack, made):
    """A bus whose events of Fanfold come to a queue."""
    client, bus = stack.session.client("events"), f"{stack.name}-bus"
    client.create_event_bus(Name=bus)
    made.callback(client.delete_event_bus, Name=bus)
    client.put_rule(Name=bus, EventBusName=bus, EventPattern=json.dumps({"source": ["fanfold"]}))
    made.callback(client.delete_rule, Name=bus, EventBusName=bus)
    target = {"Id": "queue", "Arn": stack.arn("events")}
    assert not client.put_targets(Rule=bus, EventBusName=bus, Targets=[target])["FailedEntryCount"]
    made.callback(client.remove_targets, Rule=bus, EventBusName=bus, Ids=["queue"])
    return bus


def state_machine(stack, made):
    """One that sends the token of a task to a queue, waits, and catches only that a fan-out failed."""
    role = granted(stack, made, "machine", "states", {"sqs:SendMessage": stack.arn("tokens")})
    message = {"token.$": "$$.Task.Token", "order.$": "$.order"}
    task = {
        "Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken", "TimeoutSeconds": 600,
        "Parameters": {"QueueUrl": stack.physical["tokens"], "MessageBody": message},
        "Catch": [{"ErrorEquals": ["fanout.failed"], "ResultPath": "$.error", "Next": "Alert"}],
        "ResultPath": "$.sent", "End": True,
    }
    definition = {"StartAt": "Send all", "States": {"Send all": task, "Alert": {"Type": "Pass", "End": True}}}
    client = stack.session.client("stepfunctions")
    arn = with_new_role(stack, "the state machine", lambda: client.create_state_machine(
        name=f"{stack.name}-machine", definition=json.dumps(definition), roleArn=role))["stateMachineArn"]
    made.callback(client.delete_state_machine, stateMachineArn=arn)
    return arn
