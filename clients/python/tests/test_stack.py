"""The client over `fanfold up`, as a user has it."""

import json
import threading
import time
from datetime import datetime, timezone

import pytest

from fanfold import AckBuffer, AcksRefused, ApiError, Count, HttpAcks, NotEnded, sqs_consumer


def test_a_fanout_from_its_opening_to_its_end(fanfold):
    fanout = fanfold.open(user_key="order 4711")
    assert (fanout.state, fanout.total, fanout.ended, fanout.user_key) == ("open", 0, False, "order 4711")
    added = fanfold.add(fanout.id, 7_170, idempotency_key="page-1")
    assert added == fanfold.add(fanout.id, 7_170, idempotency_key="page-1")
    items = list(added.item_ids())
    assert len(set(items)) == 7_170
    assert sorted(fanfold.groups(fanout.id)) == sorted(added.groups)
    sealed = fanfold.seal(fanout.id)
    assert (sealed.state, sealed.complete) == ("sealed", False)
    answer = fanfold.ack(items[:3], failed=items[3:4])
    assert [(one.id, one.complete, one.user_key) for one in answer.fanouts] == [(fanout.id, False, "order 4711")]
    with pytest.raises(NotEnded):
        fanfold.wait(fanout.id, timeout=0.1)
    with AckBuffer(HttpAcks(fanfold)) as acks:
        for item in items[4:-1]:
            acks.succeeded(item)
        acks.failed(items[-1])
    end = fanfold.wait(fanout.id, timeout=60)
    assert (end.state, end.ended, end.total, end.succeeded, end.failed) == ("completed", True, 7_170, 7_168, 2)


def test_a_wait_sees_the_end_when_it_comes(fanfold):
    fanout = fanfold.open(1, seal=True)
    timer = threading.Timer(0.3, lambda: fanfold.ack(fanout.item_ids()))
    timer.start()
    assert fanfold.wait(fanout.id, timeout=60).complete


def test_scattered_acks_are_all_applied(fanfold):
    fanout = fanfold.open(20_000, seal=True)
    items = list(fanout.item_ids())
    buffer = AckBuffer(HttpAcks(fanfold), max_age=None)
    for item in items[::3]:
        buffer.failed(item)
    assert buffer.flush()[fanout.id].complete is False
    for item in items:
        buffer.succeeded(item)
    assert buffer.flush()[fanout.id].complete is True
    end = fanfold.get(fanout.id)
    assert (end.failed, end.succeeded) == (len(items[::3]), 20_000 - len(items[::3]))


def test_items_that_do_not_exist_are_named(fanfold):
    fanout = fanfold.open(10)
    group = next(fanout.item_ids()).rsplit(":", 1)[0]
    buffer = AckBuffer(HttpAcks(fanfold), max_age=None)
    for index in (3, 4, 10, 12, 13):
        buffer.succeeded(f"{group}:{index}")
    with pytest.raises(AcksRefused) as raised:
        buffer.flush()
    (refused,) = raised.value.refused
    assert (refused.group, refused.items) == (group, ("10", "12-13"))
    assert fanfold.get(fanout.id, exact=True).done == 2
    with pytest.raises(AcksRefused):
        buffer.succeeded(f"{group}:11")
        buffer.flush()
    assert len(buffer) == 0


def test_an_estimate_is_counted_to_its_end(fanfold):
    one = fanfold.open(2, mode="estimated", seal=True, user_key="order 4711")
    other = fanfold.open(mode="estimated")
    assert (one.total, one.progress, one.groups) == (2, "estimated", ())
    nobody = "01890000-0000-7000-8000-000000000001"
    answer = fanfold.count([Count(one.id, add=1, succeeded=1), Count(other.id, add=7), Count(nobody, failed=1)])
    assert {fanout.id: (fanout.total, fanout.done) for fanout in answer.fanouts} == {one.id: (3, 1), other.id: (7, 0)}
    assert [(refused.fanout, refused.code) for refused in answer.refused] == [(nobody, "unknown_fanout")]
    (last,) = fanfold.count([Count(one.id, succeeded=1), Count(one.id, failed=1)]).fanouts
    assert (last.state, last.complete, last.user_key, last.failed) == ("completed", True, "order 4711", 1)
    with pytest.raises(ApiError, match="invalid_counts"):
        fanfold.count([Count(one.id, add=1)])
    with pytest.raises(ApiError, match="wrong_mode"):
        fanfold.add(other.id, 1)
    assert fanfold.wait(one.id, timeout=60).succeeded == 2


def test_problems_have_codes(fanfold):
    with pytest.raises(ApiError, match="unknown_fanout") as raised:
        fanfold.seal("01890000-0000-7000-8000-000000000001")
    assert raised.value.status == 404
    fanout = fanfold.open(1, seal=True)
    with pytest.raises(ApiError) as raised:
        fanfold.add(fanout.id, 1)
    assert (raised.value.status, raised.value.code) == (409, "fanout_not_open")


def test_a_consumer_acks_over_http(fanfold):
    fanout = fanfold.open(3, seal=True)

    @sqs_consumer(HttpAcks(fanfold), max_receives=2)
    def handler(message):
        if message.json()["page"] == 1:
            raise RuntimeError("no such page")

    records = [
        {
            "messageId": str(page),
            "body": json.dumps({"item": item, "page": page}),
            "attributes": {"ApproximateReceiveCount": "1"},
        }
        for page, item in enumerate(fanout.item_ids())
    ]
    assert handler({"Records": records}) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert fanfold.get(fanout.id, exact=True).done == 2
    records[1]["attributes"]["ApproximateReceiveCount"] = "2"
    handler({"Records": records[1:2]})
    end = fanfold.wait(fanout.id, timeout=60)
    assert (end.succeeded, end.failed) == (2, 1)


def test_failed_items_are_listed(fanfold):
    fanout = fanfold.open(7_168 + 5, seal=True)
    items = list(fanout.item_ids())
    fanfold.ack(items[10:20], failed=[*items[3:6], items[-1]])
    assert sorted(fanfold.items(fanout.id, "failed")) == sorted([*items[3:6], items[-1]])
    assert sorted(fanfold.items(fanout.id, "succeeded")) == sorted(items[10:20])
    assert len(list(fanfold.items(fanout.id, "pending"))) == 7_173 - 14


def test_failed_items_are_reissued(fanfold):
    fanout = fanfold.open(2, seal=True)
    with pytest.raises(ApiError) as raised:
        fanfold.reissue(fanout.id)
    assert raised.value.status == 409
    first, second = fanout.item_ids()
    fanfold.ack([first], failed=[second])
    again = fanfold.reissue(fanout.id, max_batch=1, idempotency_key="again")
    assert again.raw["reissue_of"] == fanout.id
    assert fanfold.reissue(fanout.id, max_batch=1, idempotency_key="again").id == again.id
    with pytest.raises(ApiError) as raised:
        fanfold.reissue(fanout.id)
    assert raised.value.status == 409
    # Its item has no task: the worker was another one.
    assert fanfold.wait(again.id, timeout=60).total == 0


def test_a_fanout_without_a_producer_has_none_to_resume(fanfold):
    fanout = fanfold.open(1)
    with pytest.raises(ApiError) as raised:
        fanfold.resume_producer(fanout.id)
    assert (raised.value.status, raised.value.code) == (409, "no_producer")


def test_a_cancelled_fanout_ends(fanfold):
    fanout = fanfold.open(10)
    item = next(fanout.item_ids())
    fanfold.ack([item])
    assert fanfold.cancel(fanout.id).state == fanfold.cancel(fanout.id).state == "cancelled"
    end = fanfold.wait(fanout.id, timeout=60)
    assert (end.state, end.ended, end.complete, end.succeeded, end.missing) == ("cancelled", True, False, 1, 9)
    completed = fanfold.open(0, seal=True)
    with pytest.raises(ApiError) as raised:
        fanfold.cancel(completed.id)
    assert raised.value.status == 409


def test_fanouts_are_listed(fanfold):
    keys = [f"list {n % 2}" for n in range(5)]
    opened = []
    for key in keys:
        opened.append(fanfold.open(1, seal=True, user_key=key))
        time.sleep(0.002)
    fanfold.ack(opened[0].item_ids())
    ids = [fanout.id for fanout in opened]
    since = opened[0].created_at - 1

    def listed(**which):
        return [fanout.id for fanout in fanfold.fanouts(**which)]

    assert listed(opened_after=since) == ids[::-1]
    assert listed(opened_after=since, order="oldest") == ids
    assert listed(opened_after=since, state=["open", "sealed"]) == ids[:0:-1]
    assert listed(opened_after=since, state="completed") == ids[:1]
    assert listed(opened_after=datetime.fromtimestamp(opened[2].created_at / 1_000, timezone.utc)) == ids[:2:-1]
    assert listed(user_key="list 1") == [ids[3], ids[1]]
    assert sorted(listed(user_key_prefix="list ")) == sorted(ids)
    with pytest.raises(ApiError, match="`state`: is `done`"):
        listed(state="done")


def test_several_fanouts_are_opened_in_one_request(fanfold):
    wanted = [{"items": 1, "user_key": name} for name in ("a", "b")]
    opened = fanfold.open_several(wanted, idempotency_key="several")
    assert [fanout.user_key for fanout in opened] == ["a", "b"]
    again = fanfold.open_several(wanted, idempotency_key="several")
    assert [fanout.id for fanout in again] == [fanout.id for fanout in opened]
    with pytest.raises(ApiError, match="there is no policy of this kind"):
        fanfold.open(tasks=[{"kind": "nothing", "content": 1}])
