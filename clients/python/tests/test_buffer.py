import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import FANOUT, GROUP, OTHER, read

from fanfold import AckBuffer, AcksNotSent, AcksRefused, Refused


def test_a_flush_sends_everything_in_one_message(acks):
    buffer = AckBuffer(acks, max_age=None)
    buffer.succeeded(f"{GROUP}:1")
    buffer.succeeded(f"{GROUP}:2")
    buffer.failed(f"{OTHER}:7")
    assert len(buffer) == 3 and f"{GROUP}:2" in buffer and f"{GROUP}:3" not in buffer
    assert acks.bodies == []
    buffer.flush()
    assert acks.bodies == [{"items": [f"{GROUP}:1-2"], "failed": [f"{OTHER}:7"]}]
    assert len(buffer) == 0 and f"{GROUP}:2" not in buffer
    buffer.flush()
    assert len(acks.bodies) == 1, "nothing is no message"


def test_of_several_acks_of_an_item_the_first_counts(acks):
    with AckBuffer(acks, max_age=None) as buffer:
        buffer.succeeded(f"{GROUP}:1")
        buffer.failed(f"{GROUP}:1")
    assert acks.bodies == [{"items": [f"{GROUP}:1"]}]


def test_a_full_message_is_sent_at_once(acks):
    buffer = AckBuffer(acks, max_age=None)
    added = 0
    while not acks.bodies:
        buffer.succeeded(f"{FANOUT}:01890000-0000-7000-8000-{added:012x}:5")
        added += 1
    assert len(buffer) == 0 and 45 < added <= 4_096 // 80 + 1
    assert sum(len(body["items"]) for body in acks.bodies) == added


def test_dense_groups_are_not_sent_early(acks):
    acks.limit = 256 * 1_024
    buffer = AckBuffer(acks, max_age=None)
    for group in range(100):
        for index in range(0, 7_168, 7):
            buffer.succeeded(f"{FANOUT}:01890000-0000-7000-8000-{group:012x}:{index}")
    assert acks.bodies == []
    buffer.flush()
    assert len(acks.bodies) == 1 and len(json.dumps(acks.bodies[0])) < 140_000


def test_what_cannot_be_sent_raises_and_stays(acks):
    acks.error = OSError("the queue is down")
    buffer = AckBuffer(acks, max_age=None)
    buffer.succeeded(f"{GROUP}:1")
    for _ in range(2):
        with pytest.raises(AcksNotSent, match="1 acks could not be sent: the queue is down"):
            buffer.flush()
        assert f"{GROUP}:1" in buffer
    acks.error = None
    buffer.close()
    assert acks.bodies == [{"items": [f"{GROUP}:1"]}]


def test_what_a_sender_raises_counts_as_not_sent(acks):
    acks.raised = OSError("the queue is down")
    buffer = AckBuffer(acks, max_age=None)
    buffer.succeeded(f"{GROUP}:1")
    with pytest.raises(AcksNotSent, match="1 acks could not be sent: the queue is down"):
        buffer.flush()
    assert f"{GROUP}:1" in buffer
    acks.raised = None
    buffer.close()
    assert acks.bodies == [{"items": [f"{GROUP}:1"]}]


def test_an_ack_that_fills_the_buffer_is_kept_when_that_cannot_be_sent(acks):
    acks.error = OSError("the queue is down")
    buffer = AckBuffer(acks, max_age=None)
    raised = 0
    for index in range(60):
        try:
            buffer.succeeded(f"{FANOUT}:01890000-0000-7000-8000-{index:012x}:0")
        except AcksNotSent:
            raised += 1
    assert raised and len(buffer) == 60
    acks.error = None
    buffer.flush()
    assert sum(len(body["items"]) for body in acks.bodies) == 60


def test_only_what_was_sent_leaves(acks):
    buffer = AckBuffer(acks, max_age=None)
    send = acks.send

    def second_fails(messages):
        sent = send(messages[:1])
        sent.unsent[1] = OSError("too much")
        return sent

    for index in range(45):
        buffer.succeeded(f"{FANOUT}:01890000-0000-7000-8000-{index:012x}:0")
    acks.limit, acks.send = 2_048, second_fails
    with pytest.raises(AcksNotSent) as raised:
        buffer.flush()
    assert len(acks.bodies) == 1 and len(buffer) == raised.value.items == 45 - len(acks.bodies[0]["items"])


def test_the_oldest_ack_is_sent_by_time(acks):
    with AckBuffer(acks, max_age=0.01) as buffer:
        buffer.succeeded(f"{GROUP}:1")
        assert acks.came.wait(30)


def test_what_fails_in_the_background_is_raised_by_the_next_call(acks):
    acks.error = OSError("the queue is down")
    buffer = AckBuffer(acks, max_age=0.01)
    buffer.succeeded(f"{GROUP}:1")
    with pytest.raises(AcksNotSent, match="the queue is down"):
        for index in range(10**9):
            buffer.succeeded(f"{GROUP}:{index % 7_168}")
    acks.error = None
    buffer.close()
    assert len(buffer) == 0 and acks.bodies[0]["items"][0].startswith(GROUP)


def test_after_a_sender_raised_in_the_background_acks_are_sent_again_by_time(acks):
    send, raised = acks.send, threading.Event()

    def raises(messages):
        raised.set()
        raise OSError("the queue is down")

    acks.send = raises
    buffer = AckBuffer(acks, max_age=0.01)
    buffer.succeeded(f"{GROUP}:1")
    assert raised.wait(30)
    acks.send = send
    assert acks.came.wait(30)
    buffer.close()
    assert acks.bodies == [{"items": [f"{GROUP}:1"]}]


def test_what_is_refused_raises_once_and_leaves(acks):
    buffer = AckBuffer(acks, max_age=None)
    buffer.succeeded(f"{GROUP}:1")
    acks.refused = [Refused(GROUP, ("1",), "there is no item 1")]
    with pytest.raises(AcksRefused, match="there is no item 1") as raised:
        buffer.flush()
    assert raised.value.refused[0].items == ("1",) and len(buffer) == 0
    buffer.flush()


def test_what_is_refused_in_the_background_is_raised_by_the_next_call(acks):
    buffer = AckBuffer(acks, max_age=0.01)
    acks.refused = [Refused(GROUP, ("1",), "there is no item 1")]
    buffer.succeeded(f"{GROUP}:1")
    assert acks.came.wait(30)
    with pytest.raises(AcksRefused):
        buffer.close()


def test_what_is_no_item_is_refused_at_once(acks):
    buffer = AckBuffer(acks, max_age=None)
    with pytest.raises(ValueError, match="`x` is not an item id"):
        buffer.failed("x")
    assert len(buffer) == 0


FORGETS = """
import sys; sys.path.insert(0, {tests!r})
from conftest import FakeAcks
from fanfold import AckBuffer
class Prints(FakeAcks):
    def send(self, messages):
        if {down}: self.{how} = OSError("the queue is down")
        else: print([message.body() for message in messages])
        return super().send(messages)
AckBuffer(Prints(), max_age=600).succeeded("{item}")
"""


@pytest.mark.parametrize(("down", "how"), [(False, "error"), (True, "error"), (True, "raised")])
def test_a_process_that_forgets_to_close_sends_or_says_what_it_loses(down, how):
    program = FORGETS.format(tests=str(Path(__file__).parent), down=down, how=how, item=f"{GROUP}:1")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (f"{GROUP}:1" in done.stdout) != down, done
    assert ("these acks are lost" in done.stderr) == down, done


def test_one_buffer_serves_many_threads(acks):
    with AckBuffer(acks, max_age=0.001) as buffer, ThreadPoolExecutor(8) as threads:
        list(threads.map(buffer.succeeded, [f"{GROUP}:{index % 2_000}" for index in range(8_000)]))
    said = set()
    for body in acks.bodies:
        said |= set(read([json.dumps(body)]))
    assert len(said) == 2_000 and len(buffer) == 0
