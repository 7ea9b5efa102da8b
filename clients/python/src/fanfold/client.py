"""The client of the HTTP API."""

from __future__ import annotations

import hmac
import math
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode

import boto3

from .errors import FanfoldError, NotEnded
from .http import Http
from .ids import ItemGroup, expand_ranges
from .models import AckAnswer, AddedItems, Count, CountAnswer, Fanout, TaskResult

ITEMS_PER_ADD_MAX = 709_632
"""Items that one request may add; for more, `add` sends several requests."""

KEY_MAX = 255
"""The most characters of an idempotency key."""

WAIT_MAX = 20
"""Seconds that one request waits for an end; API Gateway ends a request after 30."""


class Fanfold:
    """Opens fan-outs, adds items, seals fan-outs, waits for their ends. Several threads may share one.

    `url`: the address of the HTTP API: output `Url` of the stack, or what `fanfold up` prints.
    `session`: the session whose credentials sign requests; by default boto3's default session.
    `sign`: whether to sign requests for AWS_IAM; by default, unless the API is on this machine.
    `attempts`: how often a request is sent, retries included, before its error is raised.
    `timeout`: seconds that one attempt may take. `wait` needs more than 20.
    """

    def __init__(
        self,
        url: str,
        *,
        session: boto3.Session | None = None,
        sign: bool | None = None,
        attempts: int = 5,
        timeout: float = 30,
    ) -> None:
        self._http = Http(url, session=session, sign=sign, attempts=attempts, timeout=timeout)

    def open(
        self,
        items: int = 0,
        *,
        seal: bool = False,
        mode: Literal["exact", "estimated"] | None = None,
        user_key: str | None = None,
        notify: Mapping[str, Any] | None = None,
        notify_on: Mapping[str, Sequence[str]] | None = None,
        tolerated_failures: int | str | None = None,
        idle_limit: Mapping[str, str] | None = None,
        parent: str | None = None,
        then: Mapping[str, Any] | None = None,
        tasks: Sequence[Mapping[str, Any]] | None = None,
        idempotency_key: str | None = None,
    ) -> Fanout:
        """Opens a fan-out with `items` items: at most 709,632, `add` adds more. The result's `item_ids()` are their ids.

        `mode`: `estimated` has counters instead of items: `total` begins at `items`, and `count` counts.
        `notify`: where Fanfold reports its end.
        `notify_on`: which ends, and which percentages of its items as progress, Fanfold reports:
        `{"ends": ["succeeded", "failed"], "progress": ["50%"]}`.
        `tolerated_failures`: it fails when more items fail than this number, or percentage (`"5%"`).
        `idle_limit`: it expires after this time without activity: `{"open": "7d", "sealed": "14d"}`.
        `parent`: an item of another fan-out. The end of this fan-out acks it.
        `then`: a task, `{"kind": ..., "content": {...}}`, that Fanfold registers when the fan-out has ended. With `"results": True`
        its content also has what became of each item.
        `tasks`: at most 100 tasks, `{"kind": ..., "content": ...}` each. They are the items, so `items` stays 0, and it is sealed.
        `idempotency_key`: pass one to repeat this call after a restart. Without it, each call opens another fan-out.
        """
        optional = {
            "mode": mode,
            "user_key": user_key,
            "notify": notify,
            "notify_on": notify_on,
            "tolerated_failures": tolerated_failures,
            "idle_limit": idle_limit,
            "parent": parent,
            "then": then,
            "tasks": tasks,
        }
        given = {name: value for name, value in optional.items() if value is not None}
        body = {"items": items, "seal": seal, **given}
        return Fanout.of(self._http.call("POST", "/fanouts", body, _key(idempotency_key or _new_key())))

    def open_several(
        self, fanouts: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> tuple[Fanout, ...]:
        """Opens up to 1,000 fan-outs in one request, each as the body of `POST /fanouts` has it. All are checked before the first is
        opened. Repeat a call that failed with the same `idempotency_key`: it opens the rest."""
        body = {"fanouts": [dict(fanout) for fanout in fanouts]}
        answer = self._http.call("POST", "/fanouts/open", body, _key(idempotency_key or _new_key()))
        return tuple(Fanout.of(fanout) for fanout in answer["fanouts"])

    def add(self, fanout: str, items: int, *, idempotency_key: str | None = None) -> AddedItems:
        """Adds `items` items to an open fan-out. Sends several requests for more than 709,632. If one of them fails, the items of
        those before it are added, and the same call with the same `idempotency_key` adds the rest."""
        key, groups = idempotency_key or _new_key(), list[ItemGroup]()
        for number, first in enumerate(range(0, max(items, 1), ITEMS_PER_ADD_MAX)):
            share = min(items - first, ITEMS_PER_ADD_MAX)
            part = _key(_part_key(key, number) if number else key)
            answer = self._http.call("POST", f"/fanouts/{_segment(fanout)}/items", {"items": share}, part)
            groups += (ItemGroup(group["id"], group["upto"]) for group in answer["groups"])
        return AddedItems(fanout, tuple(groups))

    def seal(self, fanout: str) -> Fanout:
        """Seals a fan-out: no more items can be added. If all items are acked already, this completes it: check `complete`."""
        return Fanout.of(self._http.call("POST", f"/fanouts/{_segment(fanout)}/seal"))

    def cancel(self, fanout: str) -> Fanout:
        """Cancels a fan-out. Raises `ApiError` (409) if it has completed, failed or expired."""
        return Fanout.of(self._http.call("DELETE", f"/fanouts/{_segment(fanout)}"))

    def reissue(
        self,
        fanout: str,
        *,
        missing: bool = False,
        max_batch: int | None = None,
        contents: Mapping[str, Any] | None = None,
        again: bool = False,
        idempotency_key: str | None = None,
    ) -> Fanout:
        """Calls the failed items of a fan-out that has ended again, as the items of a new fan-out, which is returned. Fanfold adds
        and seals them. Raises `ApiError` (409) if it has not ended, has no failed items, or was reissued before.

        `missing`: also items that were missing at its end.
        `max_batch`: the most members of a batch with one of the tasks, if the policy allows more.
        `contents`: corrected contents by item id.
        `again`: all failed items, although they were reissued before, and even those that succeeded then.
        `idempotency_key`: pass one to repeat this call after a restart.
        """
        body: dict[str, Any] = {"missing": missing, "again": again}
        if max_batch is not None:
            body["max_batch"] = max_batch
        if contents:
            body["contents"] = [{"id": item, "content": content} for item, content in contents.items()]
        path = f"/fanouts/{_segment(fanout)}/reissue"
        return Fanout.of(self._http.call("POST", path, body, _key(idempotency_key or _new_key())))

    def resume_producer(self, fanout: str) -> list[dict[str, Any]]:
        """Resumes the failed partitions of a fan-out's producer where they stopped. Returns all of its partitions, as the API shows
        them. Raises `ApiError` (409) if it has no producer, or is not open."""
        answer = self._http.call("POST", f"/fanouts/{_segment(fanout)}/producer/resume")
        return list(answer["partitions"])

    def get(self, fanout: str, *, exact: bool = False) -> Fanout:
        """Returns a fan-out's present state. `exact` also counts in open groups, which costs a read of each."""
        return Fanout.of(self._http.call("GET", f"/fanouts/{_segment(fanout)}{'?progress=exact' if exact else ''}"))

    def wait(self, fanout: str, timeout: float | None = None) -> Fanout:
        """Waits until a fan-out has ended; `state` is its end. Raises `NotEnded` after `timeout` seconds."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        pause = 0.25
        while True:
            began = time.monotonic()
            ask = max(0, min(WAIT_MAX, math.floor(deadline - began) if timeout is not None else WAIT_MAX))
            path = f"/fanouts/{_segment(fanout)}" + (f"?wait={ask}s" if ask else "")
            answer = Fanout.of(self._http.call("GET", path))
            now = time.monotonic()
            if answer.ended:
                return answer
            if now >= deadline:
                raise NotEnded(answer)
            # If the server answers at once, pause before the next request.
            if now - began < ask / 2 or not ask:
                time.sleep(min(pause, deadline - now))
                pause = min(pause * 2, 5)

    def fanouts(
        self,
        *,
        state: str | Iterable[str] | None = None,
        user_key: str | None = None,
        user_key_prefix: str | None = None,
        opened_after: datetime | int | None = None,
        opened_before: datetime | int | None = None,
        order: Literal["newest", "oldest"] | None = None,
    ) -> Iterator[Fanout]:
        """Lists the fan-outs that match, by default all, newest first, page by page. A new fan-out appears within seconds.

        `state`: one state, or several: `["open", "sealed"]` lists what is not finished.
        `user_key`: exactly this user key. `user_key_prefix`: user keys that begin with this; sorts by user key.
        `opened_after`, `opened_before`: a time, or milliseconds since 1970.
        """
        asked = {
            "state": state if state is None or isinstance(state, str) else ",".join(state),
            "user_key": user_key,
            "user_key_prefix": user_key_prefix,
            "opened_after": _milliseconds(opened_after),
            "opened_before": _milliseconds(opened_before),
            "order": order,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        # Spaces as `%20`, as in the text that is signed.
        query = urlencode(given, quote_via=quote, safe="")
        for page in self._pages("/fanouts" + (f"?{query}" if query else "")):
            yield from map(Fanout.of, page["fanouts"])

    def groups(self, fanout: str) -> Iterator[ItemGroup]:
        """Lists all groups of a fan-out, page by page. New groups appear within seconds."""
        for page in self._pages(f"/fanouts/{_segment(fanout)}/groups"):
            yield from (ItemGroup(group["id"], group["upto"]) for group in page["groups"])

    def items(self, fanout: str, state: str) -> Iterator[str]:
        """Lists the ids of all items that are `failed`, `pending`, `succeeded`, `duplicate` or `missing`, page by page."""
        for page in self._pages(f"/fanouts/{_segment(fanout)}/items?state={_segment(state)}"):
            yield from expand_ranges(page["items"])

    def results(self, fanout: str) -> Iterator[TaskResult]:
        """Lists what became of the tasks of a fan-out that succeeded or failed, page by page; with what the batch API returned for
        them, if their policy keeps results."""
        for page in self._pages(f"/fanouts/{_segment(fanout)}/results"):
            yield from map(TaskResult.of, page["results"])

    def ack(
        self,
        items: Iterable[str | Mapping[str, str]] = (),
        *,
        failed: Iterable[str | Mapping[str, str]] = (),
        duplicates: Iterable[str | Mapping[str, str]] = (),
    ) -> AckAnswer:
        """Acks items by ids, ranges or masks, in one request. `refused` of the result lists items that do not exist; if none exists, this
        raises `ApiError` (422). For many items use `AckBuffer`."""
        acks = {"items": list(items), "failed": list(failed), "duplicates": list(duplicates)}
        return AckAnswer.of(self._http.call("POST", "/acks", {name: some for name, some in acks.items() if some}))

    def count(self, counts: Iterable[Count]) -> CountAnswer:
        """Counts in estimated fan-outs, at most 1,000 entries. Not retried, since a retry could count twice: after `Unreachable`, or
        `ApiError` with status 500 or above, the count may have been applied. `refused` of the result lists fan-outs in which nothing
        was counted; if that is so for all, this raises `ApiError` (422)."""
        entries = [{name: value for name, value in one._asdict().items() if value} for one in counts]
        return CountAnswer.of(self._http.call("POST", "/counts", {"counts": entries}, once=True))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        next_page: str | None = path
        while next_page:
            page = self._http.call("GET", next_page)
            yield page
            if page.get("next") == next_page:
                raise FanfoldError(f"{next_page} returned itself as the next page")
            next_page = page.get("next")


def _milliseconds(time: datetime | int | None) -> int | None:
    return round(time.timestamp() * 1_000) if isinstance(time, datetime) else time


def _new_key() -> str:
    return str(uuid.uuid4())


def _part_key(key: str, number: int) -> str:
    """The key of a further request of `add`. A call is repeated under the same keys, by any of the clients."""
    part = f"{key}-{number}"
    if len(part) <= KEY_MAX:
        return part
    return "part-" + hmac.new(key.encode(), str(number).encode(), "sha256").hexdigest()


def _key(key: str) -> dict[str, str]:
    return {"idempotency-key": key}


def _segment(text: str) -> str:
    return quote(text, safe="")
