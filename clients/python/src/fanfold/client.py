"""The client of the HTTP API."""

from __future__ import annotations

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
from .models import AckAnswer, AddedItems, Count, CountAnswer, Fanout

ITEMS_PER_ADD_MAX = 709_632
"""Items that one request may add; `add` makes several requests for more."""

WAIT_MAX = 20
"""Seconds that one request waits for an end; API Gateway answers nothing that takes 30."""


class Fanfold:
    """Opens fan-outs, adds to them, seals them, waits for their ends. May be used by several threads.

    `url`: where the HTTP API is: output `Url` of the stack, or what `fanfold serve` prints.
    `session`: whose credentials sign requests; the default session's, if there is none.
    `sign`: whether requests are signed (AWS_IAM). If not given: unless the API is on this machine.
    `attempts`: how often a request is sent in all before its failure is raised.
    `timeout`: seconds that one attempt may take; more than 20, or `wait` does not work.
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
        idempotency_key: str | None = None,
    ) -> Fanout:
        """Opens a fan-out of `items` items (at most 709,632; `add` brings more), whose ids are `item_ids()` of the answer.

        `mode`: `estimated` has no items; it begins with `items`, and what is done is counted by `count`.
        `notify`: where its end is reported.
        `notify_on`: which ends are, and at which shares of its items its progress is:
        `{"ends": ["succeeded", "failed"], "progress": ["50%"]}`.
        `tolerated_failures`: more failures than this number, or share (`"5%"`), end it as failed.
        `idle_limit`: `{"open": "7d", "sealed": "14d"}`: after so long without activity it expires.
        `parent`: an item of another fan-out, which its end acks.
        `then`: a task, `{"kind": ..., "content": {...}}`, that is registered when it ends.
        `idempotency_key`: give one to repeat this call after a restart; else each call opens a fan-out of its own.
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
        }
        given = {name: value for name, value in optional.items() if value is not None}
        body = {"items": items, "seal": seal, **given}
        return Fanout.of(self._http.call("POST", "/fanouts", body, _key(idempotency_key or _new_key())))

    def add(self, fanout: str, items: int, *, idempotency_key: str | None = None) -> AddedItems:
        """Adds `items` items to an open fan-out. More than 709,632 are added by several requests: if one of them fails,
        those before it have added theirs, and the same call under the same `idempotency_key` adds the rest."""
        key, groups = idempotency_key or _new_key(), list[ItemGroup]()
        for number, first in enumerate(range(0, max(items, 1), ITEMS_PER_ADD_MAX)):
            share = min(items - first, ITEMS_PER_ADD_MAX)
            part = _key(f"{key}-{number}" if number else key)
            answer = self._http.call("POST", f"/fanouts/{_segment(fanout)}/items", {"items": share}, part)
            groups += (ItemGroup(group["id"], group["upto"]) for group in answer["groups"])
        return AddedItems(fanout, tuple(groups))

    def seal(self, fanout: str) -> Fanout:
        """Says that no more items come. If all are acked already, the answer is complete: nobody else will see its last ack."""
        return Fanout.of(self._http.call("POST", f"/fanouts/{_segment(fanout)}/seal"))

    def cancel(self, fanout: str) -> Fanout:
        """Cancels a fan-out. Raises `ApiError` (409) if it ended otherwise."""
        return Fanout.of(self._http.call("DELETE", f"/fanouts/{_segment(fanout)}"))

    def get(self, fanout: str, *, exact: bool = False) -> Fanout:
        """A fan-out as it stands; `exact` asks for exact progress, which costs a read per unfinished group."""
        return Fanout.of(self._http.call("GET", f"/fanouts/{_segment(fanout)}{'?progress=exact' if exact else ''}"))

    def wait(self, fanout: str, timeout: float | None = None) -> Fanout:
        """Waits until a fan-out has ended, however it ended: see `state`. Raises `NotEnded` after `timeout` seconds."""
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
            # A server that cannot wait answers at once: it is not asked without pause.
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
        """All fan-outs, or those that are asked for, newest first, read page by page. One that was just opened shows up within seconds.

        `state`: one state, or several: `["open", "sealed"]` are those that are not finished.
        `user_key`: those with exactly this user key. `user_key_prefix`: those whose user keys begin with this, sorted by user key.
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
        # Spaces as `%20`, which is what a signature is made of.
        query = urlencode(given, quote_via=quote, safe="")
        for page in self._pages("/fanouts" + (f"?{query}" if query else "")):
            yield from map(Fanout.of, page["fanouts"])

    def groups(self, fanout: str) -> Iterator[ItemGroup]:
        """All groups of a fan-out, read page by page. Groups that were just added show up within seconds."""
        for page in self._pages(f"/fanouts/{_segment(fanout)}/groups"):
            yield from (ItemGroup(group["id"], group["upto"]) for group in page["groups"])

    def items(self, fanout: str, state: str) -> Iterator[str]:
        """The ids of all items that are `failed`, `pending`, `succeeded`, `duplicate` or `missing`, read page by page."""
        for page in self._pages(f"/fanouts/{_segment(fanout)}/items?state={_segment(state)}"):
            yield from expand_ranges(page["items"])

    def ack(
        self,
        items: Iterable[str | Mapping[str, str]] = (),
        *,
        failed: Iterable[str | Mapping[str, str]] = (),
        duplicates: Iterable[str | Mapping[str, str]] = (),
    ) -> AckAnswer:
        """Acks items at once: ids, ranges, or masks. Acks of what does not exist are in `refused` of the answer; if nothing
        else is there, `ApiError` (422) is raised. `AckBuffer` does this for many items."""
        acks = {"items": list(items), "failed": list(failed), "duplicates": list(duplicates)}
        return AckAnswer.of(self._http.call("POST", "/acks", {name: some for name, some in acks.items() if some}))

    def count(self, counts: Iterable[Count]) -> CountAnswer:
        """Counts in estimated fan-outs, at most 1,000 entries. What counts again is counted twice, so this is not repeated by
        itself: after `Unreachable`, or `ApiError` with status 500 or above, it may have been counted. Fan-outs of which nothing was
        counted are in `refused` of the answer; if nothing else is there, `ApiError` (422) is raised."""
        entries = [{name: value for name, value in one._asdict().items() if value} for one in counts]
        return CountAnswer.of(self._http.call("POST", "/counts", {"counts": entries}, once=True))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        next_page: str | None = path
        while next_page:
            page = self._http.call("GET", next_page)
            yield page
            if page.get("next") == next_page:
                raise FanfoldError(f"{next_page} names itself as the next page")
            next_page = page.get("next")


def _milliseconds(time: datetime | int | None) -> int | None:
    return round(time.timestamp() * 1_000) if isinstance(time, datetime) else time


def _new_key() -> str:
    return str(uuid.uuid4())


def _key(key: str) -> dict[str, str]:
    return {"idempotency-key": key}


def _segment(text: str) -> str:
    return quote(text, safe="")
