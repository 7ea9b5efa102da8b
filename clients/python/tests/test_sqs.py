"""What is sent to SQS, seen by a client that answers as SQS may. The emulator has its own test, tests/e2e."""

import json
import threading

import pytest
from botocore.exceptions import EndpointConnectionError
from conftest import FANOUT, GROUP

from fanfold import AckBuffer, AcksNotSent, SqsAcks, sqs_consumer


class Sqs:
    def __init__(self):
        self.calls = []
        self.script = []
        self.deleted = []

    def send_message_batch(self, QueueUrl, Entries):
        assert len(Entries) <= 10 and sum(len(one["MessageBody"]) for one in Entries) <= 256 * 1_024
        self.calls.append([one["MessageBody"] for one in Entries])
        fail = self.script.pop(0) if self.script else {}
        if isinstance(fail, Exception):
            raise fail
        failed = [{"Id": one["Id"], **fail[at]} for at, one in enumerate(Entries) if at in fail]
        taken = [{"Id": one["Id"]} for at, one in enumerate(Entries) if at not in fail]
        return {"Successful": taken, "Failed": failed} if failed else {"Successful": taken}


def filled(buffer, items):
    for index in range(items):
        buffer.succeeded(f"{FANOUT}:01890000-0000-7000-8000-{index:012x}:0")
    return buffer


class Small(SqsAcks):
    limit = 300


def buffer_over(sqs, items=12):
    buffer = AckBuffer(Small("queue", client=sqs), max_age=None)
    buffer._sender.limit = 10**6
    filled(buffer, items)
    buffer._sender.limit = 300
    return buffer


def test_messages_go_ten_a_call():
    sqs = Sqs()
    buffer_over(sqs, 36).flush()
    assert [len(call) for call in sqs.calls] == [10, 2]


def test_large_messages_share_a_call_only_if_they_fit():
    sqs = Sqs()
    buffer = AckBuffer(SqsAcks("queue", client=sqs), max_age=None)
    for group in range(1_000):
        for index in range(0, 7_168, 64):
            buffer._acks.setdefault(f"{FANOUT}:01890000-0000-7000-8000-{group:012x}", {})[index] = "items"
    buffer._send()
    assert len(sqs.calls) == 5 and all(len(call) == 1 for call in sqs.calls)


def test_what_sqs_did_not_take_is_sent_again():
    sqs = Sqs()
    sqs.script = [{0: {"Code": "InternalError", "SenderFault": False}, 2: {"Code": "Throttled", "SenderFault": False}}]
    buffer = buffer_over(sqs)
    buffer.flush()
    assert sqs.calls[1] == [sqs.calls[0][0], sqs.calls[0][2]] and len(sqs.calls) == 2
    assert len(buffer) == 0


def test_what_is_at_fault_is_not_sent_again_and_stays():
    sqs = Sqs()
    sqs.script = [{1: {"Code": "InvalidMessageContents", "SenderFault": True, "Message": "no"}}]
    buffer = buffer_over(sqs)
    with pytest.raises(AcksNotSent, match="InvalidMessageContents: no"):
        buffer.flush()
    assert len(sqs.calls) == 1
    assert len(buffer) == len(json.loads(sqs.calls[0][1])["items"])


def test_a_call_that_fails_keeps_all_its_acks():
    sqs = Sqs()
    sqs.script = [EndpointConnectionError(endpoint_url="https://sqs")]
    buffer = buffer_over(sqs)
    with pytest.raises(AcksNotSent, match="https://sqs"):
        buffer.flush()
    assert len(buffer) == 12
    buffer.flush()
    assert len(buffer) == 0


def test_a_poller_acks_then_deletes_what_did_not_fail(acks):
    stop, deleted = threading.Event(), []

    class Jobs:
        def receive_message(self, **asked):
            assert asked["AttributeNames"] == ["ApproximateReceiveCount"]
            return {
                "Messages": [
                    {
                        "MessageId": f"m{index}",
                        "ReceiptHandle": f"r{index}",
                        "Body": json.dumps({"item": f"{GROUP}:{index}"}),
                        "Attributes": {"ApproximateReceiveCount": "1"},
                    }
                    for index in range(3)
                ]
            }

        def delete_message_batch(self, QueueUrl, Entries):
            assert acks.said() == {f"{GROUP}:0": "items", f"{GROUP}:2": "items"}, "acked before they are deleted"
            deleted.extend(one["ReceiptHandle"] for one in Entries)
            stop.set()
            return {}

    def handle(message):
        if message.id == "m1":
            raise RuntimeError

    sqs_consumer(acks, max_receives=2)(handle).poll("jobs", client=Jobs(), stop=stop)
    assert deleted == ["r0", "r2"]
