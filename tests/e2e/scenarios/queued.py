"""Batch APIs behind a queue: calls are messages, whose outcomes a worker posts."""

import json

from stack import until


def queued(stack, _, count=60):
    """A fan-out whose batches are messages of a queue that the stack may send to; the worker posts each outcome without a signature."""
    queue = stack.sqs.create_queue(QueueName=f"{stack.name}-labels")["QueueUrl"]
    try:
        policy = {"target": "kind", "max_batch": 20, "linger": 0, "batch_api": {"sqs": queue, "answers_within": "10m"}}
        stack.expect(200, "PUT", "/policies/label", policy)
        id, items = stack.open_fanout(count, user_key="queued")
        tasks = [{"id": item, "kind": "label", "content": {"n": n}} for n, item in enumerate(items)]
        stack.expect(202, "POST", "/tasks", {"tasks": tasks})
        done = []
        until("complete", 240, lambda: work(stack, queue, done) or stack.fanout(id)["complete"])
        # A call may come twice.
        assert set(done) == set(range(count)), f"{len(set(done))} of {count} came"
        stack.figures.count(tasks=count)
        print(f"  {count} tasks over a queue, answered later")
    finally:
        stack.sqs.delete_queue(QueueUrl=queue)


def work(stack, queue, done):
    """Takes up to ten calls out of the queue, and posts their outcomes."""
    taken = stack.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"])
    for message in taken.get("Messages", []):
        said = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
        members = json.loads(message["Body"])["members"]
        outcomes = {"members": [{"id": member["id"], "outcome": "succeeded"} for member in members]}
        headers = {"fanfold-token": said["Fanfold-Token"]}
        stack.expect(200, "POST", f"/batches/{said['Fanfold-Batch']}/outcomes", outcomes, headers)
        done.extend(member["content"]["n"] for member in members)
        stack.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
