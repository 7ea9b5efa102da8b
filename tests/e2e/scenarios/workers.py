"""Workers of the clients: they take jobs from a queue of their own, and ack them over the ack queue."""

import json
import logging
import os
import signal
import subprocess
import threading
from pathlib import Path

from fanfold import Fanfold, SqsAcks, sqs_consumer

ROOT = Path(__file__).parents[3]

BAD = 7
"""Every seventh job fails whenever it comes."""

TYPESCRIPT = """
import { Fanfold, SqsAcks, sqsConsumer } from "./dist/index.js";
const [jobs, acks, url, fanout] = process.argv.slice(1);
const { state } = await new Fanfold(url, { sign: true }).get(fanout);
if (state !== "sealed") throw new Error(state);
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const consumer = sqsConsumer({ acks: new SqsAcks(acks), maxReceives: 2, log: () => {} }, (message) => {
  if (message.json().page % 7 === 0) throw new Error("no such page");
});
await consumer.poll(jobs, { signal: stop.signal });
"""


def workers(stack, _, count=200):
    """A fan-out per language: jobs over a queue, a poller that acks what succeeded, and what failed for the second time."""
    logging.getLogger("fanfold").disabled = True  # it logs each job that fails
    fanfold = Fanfold(stack.base, session=stack.session, sign=True)
    for language, started in [("python", python), ("rust", rust), ("typescript", typescript)]:
        jobs = stack.sqs.create_queue(QueueName=f"fanfold-e2e-{language}", Attributes={"VisibilityTimeout": "5"})["QueueUrl"]
        try:
            fanout = fanfold.open(count, seal=True, user_key=language)
            bodies = [json.dumps({"item": item, "page": page}) for page, item in enumerate(fanout.item_ids())]
            for first in range(0, count, 10):
                entries = [{"Id": str(at), "MessageBody": body} for at, body in enumerate(bodies[first : first + 10])]
                assert not stack.sqs.send_message_batch(QueueUrl=jobs, Entries=entries).get("Failed")
            stack.figures.sent += count
            stop = started(stack, jobs, fanout.id)
            try:
                end = fanfold.wait(fanout.id, timeout=120)
            finally:
                stop()
            failed = len(range(0, count, BAD))
            assert (end.state, end.succeeded, end.failed) == ("completed", count - failed, failed), end
            left = stack.sqs.get_queue_attributes(QueueUrl=jobs, AttributeNames=["All"])["Attributes"]
            waiting = sum(int(left[f"ApproximateNumberOfMessages{which}"]) for which in ("", "NotVisible"))
            assert waiting == failed, f"{waiting} jobs are left: those that fail come again, or go to a dead-letter queue"
        finally:
            stack.sqs.delete_queue(QueueUrl=jobs)
    print(f"  {count} jobs per language, each acked over the ack queue")


def python(stack, jobs, _):
    """Starts a worker; answers what ends it."""
    acks = SqsAcks(stack.physical["AckQueue"], client=stack.sqs)

    @sqs_consumer(acks, max_receives=2)
    def handler(message):
        if message.json()["page"] % BAD == 0:
            raise RuntimeError("no such page")

    stop = threading.Event()
    worker = threading.Thread(target=handler.poll, args=(jobs,), kwargs={"client": stack.sqs, "stop": stop})
    worker.start()

    def end():
        stop.set()
        worker.join()

    return end


def rust(stack, jobs, fanout):
    """Starts a worker; answers what ends it."""
    command = [ROOT / "target" / "e2e" / "worker", jobs, stack.physical["AckQueue"], stack.base, fanout]
    return process(stack, command, ROOT)


def typescript(stack, jobs, fanout):
    """Starts a worker; answers what ends it."""
    arguments = [jobs, stack.physical["AckQueue"], stack.base, fanout]
    command = ["node", "--input-type=module", "--eval", TYPESCRIPT, *arguments]
    return process(stack, command, ROOT / "target" / "e2e" / "typescript")


def process(stack, command, folder):
    """Starts a worker that is a program; answers what ends it."""
    environment = {**os.environ, "AWS_REGION": stack.session.region_name}
    worker = subprocess.Popen(command, cwd=folder, env=environment)

    def end():
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0, "the worker failed"

    return end
