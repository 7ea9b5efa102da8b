"""The client over a server that answers as a test says."""

from datetime import datetime, timezone

import boto3
import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError
from conftest import FANOUT, GROUP, Scripted

from fanfold import (
    AckBuffer,
    AcksNotSent,
    AcksRefused,
    ApiError,
    Count,
    Fanfold,
    FanfoldError,
    HttpAcks,
    NotEnded,
    TaskResult,
    Unreachable,
)

NOBODY = "http://127.0.0.1:1"

OPEN = {"id": FANOUT, "state": "open", "complete": False, "total": 3, "done": 0, "groups": [], "user_key": None}
DONE = {**OPEN, "state": "completed", "complete": True, "ended": True}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)


def test_a_request_is_repeated_under_its_key():
    server = Scripted(None, (503, {"detail": "later"}), (500, b"no json"), (429, {"message": "Too Many"}), (201, OPEN))
    assert Fanfold(server.url).open(3, user_key="k").id == FANOUT
    keys = {headers["idempotency-key"] for _, _, headers, _ in server.requests}
    assert len(server.requests) == 5 and len(keys) == 1
    assert all(body == {"items": 3, "seal": False, "user_key": "k"} for *_, body in server.requests)


def test_chosen_notices_are_sent_as_given():
    server = Scripted((201, OPEN))
    chosen = {"notify": {"url": "https://example.com/"}, "notify_on": {"ends": ["succeeded"], "progress": ["50%"]}}
    Fanfold(server.url).open(3, **chosen)
    assert [body for *_, body in server.requests] == [{"items": 3, "seal": False, **chosen}]


def test_each_call_has_a_key_of_its_own_unless_one_is_given():
    added = (201, {"fanout": FANOUT, "groups": []})
    server = Scripted(added, added, added)
    fanfold = Fanfold(server.url)
    for key in (None, None, "page-1"):
        fanfold.add(FANOUT, 1, idempotency_key=key)
    keys = [headers["idempotency-key"] for _, _, headers, _ in server.requests]
    assert len(set(keys)) == 3 and keys[2] == "page-1"


def test_what_is_refused_is_not_repeated():
    problem = {"code": "invalid_body", "detail": "it is", "errors": [{"field": "items", "problem": "too many"}]}
    server = Scripted((422, problem))
    with pytest.raises(ApiError, match="422 invalid_body: it is; items: too many") as raised:
        Fanfold(server.url).open(3)
    assert (raised.value.status, raised.value.code) == (422, "invalid_body")


def test_attempts_end():
    server = Scripted(None, None, (503, {}), (503, {"code": "busy"}))
    with pytest.raises(Unreachable, match="no answer after 2 attempts"):
        Fanfold(server.url, attempts=2).get(FANOUT)
    with pytest.raises(ApiError, match="503 busy"):
        Fanfold(server.url, attempts=2).get(FANOUT)
    assert not server.requests[0][2].get("authorization")


def test_a_success_that_cannot_be_read_is_no_answer():
    server = Scripted((200, b'{"id": "0'), (200, OPEN), (200, b"[]"), (200, b"{"))
    assert Fanfold(server.url).get(FANOUT).total == 3
    with pytest.raises(Unreachable, match=r"the answer cannot be read: \[\]"):
        Fanfold(server.url, attempts=1).get(FANOUT)
    with pytest.raises(Unreachable, match="the answer cannot be read: {"):
        Fanfold(server.url).count([Count(FANOUT, add=1)])
    assert len(server.requests) == 4


def test_a_connection_that_is_refused_or_fails_is_tried_again():
    no_tls = Scripted().url.replace("http:", "https:")
    for url in (NOBODY, no_tls):
        with pytest.raises(Unreachable, match="no answer after 2 attempts"):
            Fanfold(url, attempts=2).get(FANOUT)
    with pytest.raises(Unreachable, match="no answer after 1 attempt:"):
        Fanfold(NOBODY).count([Count(FANOUT, add=1)])


def test_counts_are_not_repeated_unless_nothing_was_done():
    counted = {"fanouts": [], "refused": [{"fanout": FANOUT, "code": "wrong_mode", "problem": "it is exact"}]}
    server = Scripted((429, {"message": "Too Many"}), (200, counted), None, (503, {"code": "unavailable"}))
    fanfold = Fanfold(server.url)
    assert fanfold.count([Count(FANOUT, add=3)]).refused[0].code == "wrong_mode"
    with pytest.raises(Unreachable, match="no answer after 1 attempt:"):
        fanfold.count([Count(FANOUT, succeeded=1, failed=2)])
    with pytest.raises(ApiError, match="503 unavailable"):
        fanfold.count([Count(FANOUT)])
    assert [body["counts"][0] for *_, body in server.requests] == [
        {"fanout": FANOUT, "add": 3},
        {"fanout": FANOUT, "add": 3},
        {"fanout": FANOUT, "succeeded": 1, "failed": 2},
        {"fanout": FANOUT},
    ]


def test_more_items_than_a_request_may_add_are_added_by_several():
    groups = [{"id": "g", "upto": 1}]
    server = Scripted(*[(201, {"fanout": FANOUT, "groups": groups})] * 3)
    added = Fanfold(server.url).add(FANOUT, 2 * 709_632 + 1, idempotency_key="k")
    assert [body["items"] for *_, body in server.requests] == [709_632, 709_632, 1]
    assert [headers["idempotency-key"] for _, _, headers, _ in server.requests] == ["k", "k-1", "k-2"]
    assert len(added.groups) == 3


@pytest.mark.parametrize("length", [253, 255])
def test_a_key_without_room_for_the_number_of_a_part_is_hashed_with_it(length):
    server = Scripted(*[(201, {"fanout": FANOUT, "groups": []})] * 3)
    key = "k" * length
    Fanfold(server.url).add(FANOUT, 2 * 709_632 + 1, idempotency_key=key)
    # Every client sends the same keys, so any of them can repeat the call.
    hashed = [
        "part-ea11e85c1397952d6b6b70169e916a3a1b614d00a23fadd387ee705c10b04f42",
        "part-cb7226f1deeaf47e4475bb35509db04ea67b947d1b946f98a2a546c7a284ea0d",
    ]
    expected = [key, f"{key}-1", f"{key}-2"] if length == 253 else [key, *hashed]
    assert [headers["idempotency-key"] for _, _, headers, _ in server.requests] == expected


def test_a_wait_asks_again_until_it_ended():
    server = Scripted((200, OPEN), (200, OPEN), (200, {**OPEN, "state": "cancelled", "ended": False}), (200, DONE))
    assert Fanfold(server.url).wait(FANOUT).state == "completed"
    assert [path for _, path, _, _ in server.requests] == [f"/fanouts/{FANOUT}?wait=20s"] * 4


def test_a_wait_ends_when_the_time_is_up():
    server = Scripted((200, OPEN), (200, OPEN))
    with pytest.raises(NotEnded) as raised:
        Fanfold(server.url).wait(FANOUT, timeout=0)
    assert raised.value.fanout.total == 3 and isinstance(raised.value, TimeoutError)
    assert server.requests[0][1] == f"/fanouts/{FANOUT}", "it does not wait"


def test_complete_is_ended_where_the_answer_does_not_say():
    server = Scripted((200, {**OPEN, "complete": True, "state": "completed"}))
    assert Fanfold(server.url).wait(FANOUT).ended


def test_items_are_listed_page_by_page():
    path = f"/fanouts/{FANOUT}/items?state=failed"
    server = Scripted(
        (200, {"items": [f"{GROUP}:1-3"], "next": path + "&after=x"}), (200, {"items": [f"{GROUP}:9"], "next": None})
    )
    items = list(Fanfold(server.url).items(FANOUT, "failed"))
    assert items == [f"{GROUP}:{index}" for index in (1, 2, 3, 9)]
    assert [asked for _, asked, _, _ in server.requests] == [path, path + "&after=x"]


def test_results_are_listed_page_by_page():
    path = f"/fanouts/{FANOUT}/results"
    done = {"id": f"{GROUP}:0", "outcome": "succeeded", "result": {"label": 7}}
    failed = {"id": f"{GROUP}:1", "outcome": "failed", "error": "no", "code": "E1"}
    server = Scripted(
        (200, {"results": [done], "next": path + "?after=x"}), (200, {"results": [failed], "next": None})
    )
    results = list(Fanfold(server.url).results(FANOUT))
    assert results == [
        TaskResult(f"{GROUP}:0", "succeeded", {"label": 7}),
        TaskResult(f"{GROUP}:1", "failed", error="no", code="E1"),
    ]
    assert [asked for _, asked, _, _ in server.requests] == [path, path + "?after=x"]


def test_a_producer_is_resumed():
    partitions = [{"partition": 0, "state": "done", "rows": 7}, {"partition": 1, "state": "running", "rows": 3}]
    server = Scripted((200, {"partitions": partitions}), (409, {"code": "no_producer", "detail": "it has none"}))
    fanfold = Fanfold(server.url)
    assert fanfold.resume_producer(FANOUT) == partitions
    with pytest.raises(ApiError, match="409 no_producer"):
        fanfold.resume_producer(FANOUT)
    assert [asked[:2] for asked in server.requests] == [("POST", f"/fanouts/{FANOUT}/producer/resume")] * 2


def test_requests_are_signed_where_they_are_to_be():
    session = boto3.Session("AKIDEXAMPLE", "secret", "token", region_name="eu-west-1")
    server = Scripted((200, OPEN))
    Fanfold(server.url, session=session, sign=True).get(FANOUT)
    headers = server.requests[0][2]
    assert "/eu-west-1/execute-api/aws4_request" in headers["authorization"]
    assert headers["x-amz-security-token"] == "token"


@pytest.mark.parametrize(
    "error",
    [
        CredentialRetrievalError(provider="process", error_msg="it is gone"),
        ClientError({"Error": {"Code": "AccessDenied", "Message": "it is gone"}}, "AssumeRole"),
    ],
)
def test_a_request_that_cannot_be_signed_is_not_sent(error):
    class Unavailable:
        region_name = "eu-west-1"

        def get_credentials(self):
            raise error

    server = Scripted()
    with pytest.raises(FanfoldError, match="the request cannot be signed: .*it is gone"):
        Fanfold(server.url, session=Unavailable(), sign=True).get(FANOUT)
    assert server.requests == []


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="url: `localhost:8080`"):
        Fanfold("localhost:8080")
    with pytest.raises(ValueError, match="attempts: 0"):
        Fanfold("http://localhost:8080", attempts=0)


def test_acks_of_which_none_exists_are_refused_and_leave_the_buffer():
    server = Scripted((422, {"code": "invalid_acks", "detail": "no such item"}))
    buffer = AckBuffer(HttpAcks(Fanfold(server.url)), max_age=None)
    buffer.succeeded(f"{GROUP}:1")
    with pytest.raises(AcksRefused, match="no such item") as raised:
        buffer.flush()
    assert raised.value.refused[0][:2] == (GROUP, ("1",)) and len(buffer) == 0


def test_acks_that_nobody_takes_stay_in_the_buffer():
    buffer = AckBuffer(HttpAcks(Fanfold(NOBODY, attempts=1)), max_age=None)
    buffer.succeeded(f"{GROUP}:1")
    with pytest.raises(AcksNotSent, match="no answer after 1 attempt:"):
        buffer.flush()
    assert len(buffer) == 1


def test_a_list_is_asked_for_page_by_page():
    def one(number):
        return {**OPEN, "id": FANOUT[:-1] + str(number)}

    server = Scripted(
        (200, {"fanouts": [one(1), one(2)], "next": "/fanouts?state=open%2Csealed&after=ab"}),
        (200, {"fanouts": [], "next": "/fanouts?state=open%2Csealed&after=cd"}),
        (200, {"fanouts": [one(3)]}),
    )
    since = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)
    listed = Fanfold(server.url).fanouts(
        state=["open", "sealed"], user_key="order 4711&/ü", opened_after=since, opened_before=1_795_500_000_000, order="oldest"
    )
    assert [fanout.id[-1] for fanout in listed] == ["1", "2", "3"]
    assert [path for _, path, _, _ in server.requests] == [
        "/fanouts?state=open%2Csealed&user_key=order%204711%26%2F%C3%BC"
        "&opened_after=1795435200000&opened_before=1795500000000&order=oldest",
        "/fanouts?state=open%2Csealed&after=ab",
        "/fanouts?state=open%2Csealed&after=cd",
    ]
