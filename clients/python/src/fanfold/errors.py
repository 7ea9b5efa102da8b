"""What can go wrong. All errors are `FanfoldError`s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .models import Fanout


class FanfoldError(Exception):
    """Anything that this client raises."""


class ApiError(FanfoldError):
    """The API answered with a problem (RFC 9457)."""

    def __init__(self, request: str, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        """Names the kind of problem; it never changes. Empty if something before Fanfold answered."""
        self.detail = str(problem.get("detail") or problem.get("message") or problem)
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        """The fields that are wrong."""
        fields = "".join(f"; {error.get('field')}: {error.get('problem')}" for error in self.errors[:10])
        super().__init__(f"{request}: {status} {self.code}: {self.detail}{fields}")


class Unreachable(FanfoldError):
    """No answer came, however often the request was repeated (counts are not). It may have been carried out."""


class NotEnded(FanfoldError, TimeoutError):
    """The time is up, and the fan-out has not ended."""

    def __init__(self, fanout: Fanout) -> None:
        self.fanout = fanout
        """The fan-out as it was last seen."""
        super().__init__(f"fan-out {fanout.id} has not ended: {fanout.state}, {fanout.done} of {fanout.total} done")


class Refused(NamedTuple):
    """Items of a group whose acks were refused: they do not exist (any more)."""

    group: str
    """`<fanout>:<group>`."""
    items: tuple[str, ...]
    """Their indexes, alone (`5`) or as ranges (`7-9`). Empty if the answer does not name them."""
    problem: str


class AcksRefused(FanfoldError):
    """Some acks name items that do not exist. All others were sent. Repeating them changes nothing, so that they are no longer in the buffer."""

    def __init__(self, refused: Sequence[Refused]) -> None:
        self.refused = tuple(refused)
        super().__init__("; ".join(one.problem for one in self.refused[:10]))


class AcksNotSent(FanfoldError):
    """Some acks could not be sent. They are still in the buffer: flush it again."""

    def __init__(self, items: int, causes: Sequence[BaseException], refused: Sequence[Refused] = ()) -> None:
        self.items = items
        """How many acks wait in the buffer."""
        self.causes = tuple(causes)
        self.refused = tuple(refused)
        """Acks that were sent, but refused."""
        super().__init__(f"{items} acks could not be sent: {'; '.join(dict.fromkeys(map(str, self.causes)))}")
