"""The README's examples, as they stand there: a producer and a worker, each a program of its own, over a queue that is here."""

import json
import queue
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import boto3

README = Path(__file__).parents[1] / "README.md"


class Jobs:
    """A queue of jobs."""

    def __init__(self) -> None:
        self.bodies: queue.Queue[str] = queue.Queue()

    def send_message(self, MessageBody: str) -> None:
        self.bodies.put(MessageBody)


class AckQueue:
    """A client of SQS whose messages the API gets, as `ack` reads them."""

    def __init__(self, fanfold) -> None:
        self.fanfold = fanfold

    def send_message_batch(self, QueueUrl: str, Entries: list[dict]) -> dict:
        assert QueueUrl == "https://sqs.example/acks"
        for entry in Entries:
            acks = json.loads(entry["MessageBody"])
            assert not self.fanfold.ack(acks.get("items", ()), failed=acks.get("failed", ())).refused
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}


def test_the_examples_run_as_they_stand(stack, fanfold, monkeypatch, capsys):
    producer, worker, *others = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(others) == 2, "an example that no test runs"
    jobs = Jobs()
    monkeypatch.setattr(boto3, "resource", lambda _: SimpleNamespace(Queue=lambda url: jobs))
    monkeypatch.setattr(boto3, "client", lambda _: AckQueue(fanfold))
    for name, value in [("FANFOLD", stack), ("JOBS_QUEUE", "https://sqs.example/jobs"), ("ACK_QUEUE", "https://sqs.example/acks")]:
        monkeypatch.setenv(f"{name}_URL", value)

    of_worker: dict = {"__name__": "worker"}
    exec(compile(worker, "worker", "exec"), of_worker)

    def work() -> None:
        for n in range(3):
            record = {"messageId": str(n), "body": jobs.bodies.get(timeout=60)}
            came = {"Records": [{**record, "attributes": {"ApproximateReceiveCount": "1"}}]}
            assert of_worker["handler"](came) == {"batchItemFailures": []}

    works = threading.Thread(target=work)
    works.start()
    of_producer: dict = {"__name__": "producer"}
    exec(compile(producer, "producer", "exec"), of_producer)
    works.join()
    said = capsys.readouterr().out.splitlines()
    assert said == ["rendering a", "rendering b", "rendering c", "completed 3 0"]

    # What follows goes on with the client and the fan-out of the producer.
    for other in others:
        exec(compile(other, "other", "exec"), of_producer)
    assert capsys.readouterr().out.splitlines() == ["['catalog 7']"]
