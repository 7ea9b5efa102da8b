"""Dead letters: what fails again and again is put aside, and can be brought back."""

from botocore.exceptions import ClientError

from stack import until


def poison(stack, api):
    """A poison message ends in the dead-letter queue, alone; mended and moved back, it goes through."""
    queues = ("RegisterQueue", "AckQueue")
    for queue in queues:
        # The emulator has no batching window; on AWS a message must stay invisible for longer than that.
        stack.visibility(queue, 30 if stack.mode == "aws" else 10)
    id, items = stack.open_fanout(3)
    rubbish = {"items": ["rubbish"]}
    crate = lambda index: {"id": items[index], "kind": "crate", "content": {}}
    stack.send("AckQueue", rubbish, {"items": items[:1]})
    stack.send("RegisterQueue", crate(1), crate(2), {"kind": 1})
    until("the good one is acked", 60, lambda: stack.fanout(id)["done"] == 1)
    until("rubbish is dead", 400, lambda: stack.depth("AckDeadLetterQueue") == 1)
    until("what has no policy is dead", 400, lambda: stack.depth("RegisterDeadLetterQueue") == 3)
    dead = []
    until("it can be read", 30, lambda: dead.extend(stack.receive("AckDeadLetterQueue")) or dead)
    assert dead == [rubbish], dead

    stack.expect(200, "PUT", "/policies/crate", {"target": "'all'", "linger": "0s", "batch_api": {"url": api.url("crates")}})
    assert stack.fanout(id)["done"] == 1
    how = redrive(stack, "RegisterDeadLetterQueue", "RegisterQueue")
    until("what was mended went through", 120, lambda: stack.fanout(id)["complete"])
    until("what was not is dead again", 400, lambda: stack.depth("RegisterDeadLetterQueue") == 1)
    dead = []
    until("it can be read", 30, lambda: dead.extend(stack.receive("RegisterDeadLetterQueue")) or dead)
    assert dead == [{"kind": 1}] and stack.depth("RegisterQueue") == 0, dead
    for queue in queues:
        stack.visibility(queue, 180)
    print(f"  4 messages dead after 5 receives each; 3 moved back {how}: 2 went through, 1 died again")


def redrive(stack, source, target):
    """Moves all messages of a dead-letter queue back; answers how."""
    try:
        stack.sqs.start_message_move_task(SourceArn=stack.arn(source), DestinationArn=stack.arn(target))
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("InvalidAction", "AWS.SimpleQueueService.UnsupportedOperation"):
            raise
    else:
        until("everything is moved", 120, lambda: stack.depth(source) == 0)
        return "by StartMessageMoveTask"
    while stack.depth(source):
        url = stack.physical[source]
        got = stack.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in got.get("Messages", []):
            stack.sqs.send_message(QueueUrl=stack.physical[target], MessageBody=message["Body"])
            stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return "one by one (StartMessageMoveTask is not known here)"
