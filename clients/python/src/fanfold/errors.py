"""Errors. All of them are `FanfoldError`s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .models import Fanout


class FanfoldError(Exception):
    """Every error of this client."""


class ApiError(FanfoldError):
    """The API returned a problem (RFC 9457)."""

    def __init__(self, request: str, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        """The problem's name; codes never change. Empty if something in front of Fanfold answered."""
        self.detail = str(problem.get("detail") or problem.get("message") or problem)
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        """The fields that cannot be used."""
        fields = "".join(f"; {error.get('field')}: {error.get('problem')}" for error in self.errors[:10])
        super().__init__(f"{request}: {status} {self.code}: {self.detail}{fields}")


class Unreachable(FanfoldError):
    """The request got no answer that can be read, retries included (counts are not retried). It may have been carried out."""


class NotEnded(FanfoldError, TimeoutError):
    """The fan-out had not ended when the time was up."""

    def __init__(self, fanout: Fanout) -> None:
        self.fanout = fanout
        """The fan-out in its last known state."""
        super().__init__(f"fan-out {fanout.id} has not ended: {fanout.state}, {fanout.done} of {fanout.total} done")


class Refused(NamedTuple):
    """Items of a group whose acks were refused, because they do not exist (any more)."""

    group: str
    """`<fanout>:<group>`."""
    items: tuple[str, ...]
    """Their indexes (`5`) and ranges of them (`7-9`). Empty if the response does not name them."""
    problem: str


class AcksRefused(FanfoldError):
    """Some acks name items that do not exist. All others were applied. Repeating these changes nothing, so the buffer dropped them."""

    def __init__(self, refused: Sequence[Refused]) -> None:
        self.refused = tuple(refused)
        super().__init__("; ".join(one.problem for one in self.refused[:10]))


class AcksNotSent(FanfoldError):
    """Some acks could not be sent. The buffer keeps them: flush it again."""

    def __init__(self, items: int, causes: Sequence[BaseException], refused: Sequence[Refused] = ()) -> None:
        self.items = items
        """How many acks the buffer holds."""
        self.causes = tuple(causes)
        self.refused = tuple(refused)
        """Acks that were sent but refused."""
        super().__init__(f"{items} acks could not be sent: {'; '.join(dict.fromkeys(map(str, self.causes)))}")
