"""What the API returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .errors import Refused
from .ids import ItemGroup, expand


def _groups(answer: Mapping[str, Any]) -> tuple[ItemGroup, ...]:
    return tuple(ItemGroup(group["id"], group["upto"]) for group in answer.get("groups") or ())


@dataclass(frozen=True)
class AddedItems:
    """Items that were added to a fan-out."""

    fanout: str
    groups: tuple[ItemGroup, ...]

    def item_ids(self) -> Iterator[str]:
        """Returns the ids of these items, in order."""
        return expand(self.fanout, self.groups)


@dataclass(frozen=True)
class Fanout:
    """A fan-out as the API returns it."""

    id: str
    state: str
    """`open`, `sealed`, or its end: `completed`, `failed`, `cancelled`, `expired`."""
    complete: bool
    """Whether it is sealed and every item was acked."""
    ended: bool
    """Whether it has ended and all counts are final."""
    total: int
    done: int
    succeeded: int
    failed: int
    duplicates: int
    missing: int
    """Items that were not done when it failed, expired or was cancelled."""
    progress: str
    """What the counts are: `exact`, `at_least` or `estimated`."""
    user_key: str | None
    groups: tuple[ItemGroup, ...]
    """From `open`: the groups of its items. Otherwise those in the response: a small fan-out's only group."""
    created_at: int
    """When it was opened, in milliseconds since 1970."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    """The whole response."""

    def item_ids(self) -> Iterator[str]:
        """Returns the ids of the items of `groups`, in order."""
        return expand(self.id, self.groups)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Fanout:
        """Reads an answer of the API."""
        complete = bool(answer["complete"])
        return cls(
            id=answer["id"],
            state=answer["state"],
            complete=complete,
            ended=bool(answer.get("ended", complete)),
            total=answer.get("total", 0),
            done=answer.get("done", 0),
            succeeded=answer.get("succeeded", 0),
            failed=answer.get("failed", 0),
            duplicates=answer.get("duplicates", 0),
            missing=answer.get("missing", 0),
            progress=answer.get("progress", "exact"),
            user_key=answer.get("user_key"),
            groups=_groups(answer),
            created_at=answer.get("created_at", 0),
            raw=answer,
        )


class Count(NamedTuple):
    """A count in one estimated fan-out."""

    fanout: str
    add: int = 0
    """How many more are to be done."""
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True)
class CountedFanout:
    """An estimated fan-out after a count."""

    id: str
    state: str
    complete: bool
    ended: bool
    user_key: str | None
    total: int
    """How many were added."""
    done: int
    """How many were counted as done; more than `total` if some were counted twice, or before they were added."""
    failed: int


class RefusedCount(NamedTuple):
    """An estimated fan-out in which nothing was counted. With the code `unavailable` the count may have been applied."""

    fanout: str
    code: str
    problem: str


@dataclass(frozen=True)
class CountAnswer:
    """The result of counts."""

    fanouts: tuple[CountedFanout, ...]
    """The fan-outs with their new counts."""
    refused: tuple[RefusedCount, ...]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> CountAnswer:
        """Reads an answer of the API."""
        fields = ("id", "state", "complete", "ended", "user_key", "total", "done", "failed")
        fanouts = (CountedFanout(**{field: one[field] for field in fields}) for one in answer["fanouts"])
        refused = (RefusedCount(one["fanout"], one["code"], one["problem"]) for one in answer["refused"])
        return cls(tuple(fanouts), tuple(refused))


class AckedFanout(NamedTuple):
    """A fan-out after an ack."""

    id: str
    state: str
    complete: bool
    user_key: str | None


@dataclass(frozen=True)
class AckAnswer:
    """The result of acks."""

    fanouts: tuple[AckedFanout, ...]
    """The fan-outs with their new states."""
    refused: tuple[Refused, ...]
    """Acks of items that do not exist. All others were applied."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> AckAnswer:
        """Reads an answer of the API."""
        fanouts = (AckedFanout(one["id"], one["state"], one["complete"], one["user_key"]) for one in answer["fanouts"])
        refused = (
            Refused(f"{one['fanout']}:{one['group']}", tuple(map(str, one.get("items") or ())), one["problem"])
            for one in answer["refused"]
        )
        return cls(tuple(fanouts), tuple(refused))


@dataclass(frozen=True)
class TaskResult:
    """What became of a task that succeeded or failed."""

    id: str
    """The task: the id of its item."""
    outcome: str
    """`succeeded` or `failed`."""
    result: Any = None
    """What the batch API returned for it, if the policy keeps results."""
    result_left_out: str | None = None
    """Why its result was not kept."""
    error: str | None = None
    """Why it failed."""
    code: str | None = None
    """The same as a short name or number, if the batch API returned one."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> TaskResult:
        """Reads an entry of an answer of the API."""
        optional = {name: answer.get(name) for name in ("result", "result_left_out", "error", "code")}
        return cls(answer["id"], answer["outcome"], **optional)
