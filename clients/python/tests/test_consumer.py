import json

import pytest
from conftest import GROUP

from fanfold import Message, sqs_consumer


def record(index, receives=1, **more):
    return {
        "messageId": f"m{index}",
        "body": json.dumps({"item": f"{GROUP}:{index}", "page": index}),
        "attributes": {"ApproximateReceiveCount": str(receives)},
        "eventSourceARN": "arn:aws:sqs:eu-west-1:1:jobs",
        **more,
    }


def failures(answer):
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


def fails_for(*pages):
    def handle(message):
        if message.json()["page"] in pages:
            raise RuntimeError("no such page")

    return handle


def test_success_is_acked_and_failure_comes_again(acks):
    consumer = sqs_consumer(acks, max_receives=3)(fails_for(2))
    assert failures(consumer({"Records": [record(1), record(2, receives=2), record(3)]})) == ["m2"]
    assert acks.said() == {f"{GROUP}:1": "items", f"{GROUP}:3": "items"}


def test_the_last_failure_is_acked_and_still_comes_again(acks):
    consumer = sqs_consumer(acks, max_receives=3)(fails_for(1, 2))
    assert failures(consumer({"Records": [record(1, receives=3), record(2, receives=4)]})) == ["m1", "m2"]
    assert acks.bodies == [{"failed": [f"{GROUP}:1-2"]}]


def test_nothing_is_acked_before_the_handler_is_done(acks):
    acks.limit = 200

    def handle(message):
        said = json.dumps(acks.bodies)
        assert f'{message.json()["item"]}"' not in said

    consumer = sqs_consumer(acks, max_receives=3)(handle)
    events = {"Records": [record(index * 2) for index in range(50)]}
    assert failures(consumer(events)) == []
    assert len(acks.bodies) > 1, "full messages go on the way"


def test_messages_whose_acks_cannot_be_sent_come_again(acks):
    acks.error = OSError("the queue is down")
    consumer = sqs_consumer(acks, max_receives=3)(fails_for(2))
    no_item = {**record(4), "body": json.dumps({"page": 4})}
    assert failures(consumer({"Records": [record(1), record(2), record(3), no_item]})) == ["m1", "m2", "m3"]
    acks.error = None
    assert failures(consumer({"Records": [record(1), record(3)]})) == []
    assert acks.said() == {f"{GROUP}:1": "items", f"{GROUP}:3": "items"}, "nothing is left over from before"


def test_messages_come_again_when_the_sender_raises(acks):
    acks.raised = OSError("the queue is down")
    one = record(1)
    message = Message(one["messageId"], one["body"], 1, one)
    assert sqs_consumer(acks, max_receives=3)(lambda _: None).run([message]) == [message]


def test_a_message_without_an_item_is_handled_and_not_acked(acks):
    handled = []
    consumer = sqs_consumer(acks, max_receives=3)(handled.append)
    assert failures(consumer({"Records": [{**record(1), "body": "[]"}]})) == []
    assert len(handled) == 1 and acks.bodies == []


@pytest.mark.parametrize("body", ["x", '{"item": "x"}', '{"item": 7}'])
def test_a_message_whose_item_cannot_be_read_is_not_handled(acks, body):
    handled = []
    consumer = sqs_consumer(acks, max_receives=3)(handled.append)
    assert failures(consumer({"Records": [{**record(1, receives=9), "body": body}, record(2)]})) == ["m1"]
    assert [message.id for message in handled] == ["m2"] and acks.bodies == [{"items": [f"{GROUP}:2"]}]


def test_the_item_may_be_anywhere(acks):
    consumer = sqs_consumer(acks, max_receives=3, item_of=lambda message: message.raw["messageAttributes"]["item"])
    one = record(1, messageAttributes={"item": f"{GROUP}:9"}, body="plain text")
    assert failures(consumer(lambda _: None)({"Records": [one]})) == []
    assert acks.bodies == [{"items": [f"{GROUP}:9"]}]


def test_a_fifo_queue_keeps_its_order(acks):
    handled = []

    def handle(message):
        handled.append(message.id)
        fails_for(2)(message)

    fifo = "arn:aws:sqs:eu-west-1:1:jobs.fifo"
    events = {"Records": [record(index, eventSourceARN=fifo) for index in (1, 2, 3)]}
    assert failures(sqs_consumer(acks, max_receives=3)(handle)(events)) == ["m2", "m3"]
    assert handled == ["m1", "m2"] and acks.bodies == [{"items": [f"{GROUP}:1"]}]


def test_refused_acks_do_not_make_messages_come_again(acks, caplog):
    from fanfold import Refused

    acks.refused = [Refused(GROUP, ("1",), "there is no item 1")]
    assert failures(sqs_consumer(acks, max_receives=3)(lambda _: None)({"Records": [record(1)]})) == []
    assert "there is no item 1" in caplog.text


def test_a_function_that_returns_before_its_work_is_done_is_refused(acks):
    async def later(message):
        raise AssertionError

    def one_by_one(message):
        yield message

    for handle in (later, one_by_one):
        with pytest.raises(TypeError, match="neither async nor a generator"):
            sqs_consumer(acks, max_receives=3)(handle)
        # Behind another function it is seen when it is called.
        consumer = sqs_consumer(acks, max_receives=3)(lambda message, handle=handle: handle(message))
        assert failures(consumer({"Records": [record(1)]})) == ["m1"]
    assert acks.bodies == []
