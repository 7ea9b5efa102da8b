"""Packs acks into full messages."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Mapping
from types import TracebackType

from .compact import Outcome, estimate, messages
from .errors import AcksNotSent, AcksRefused, FanfoldError, Refused
from .ids import Item
from .models import AckedFanout
from .senders import AckSender, Sent

log = logging.getLogger("fanfold")


class AckBuffer:
    """Collects acks, and sends them when a message is full, when the oldest ack is `max_age` seconds old (from a thread; `None`: never),
    and on `flush` and `close`. Call `close` at the end, or use the buffer as a context manager. Several threads may share a buffer.

    No ack is dropped: if acks cannot be sent, the buffer keeps them and raises `AcksNotSent`. After a failure in the background, the
    next call raises it. If the process ends without `close`, the buffer sends its acks, and logs an error if it cannot.
    """

    def __init__(self, sender: AckSender, *, max_age: float | None = 5.0) -> None:
        self._sender = sender
        self._max_age = max_age
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._acks: dict[str, dict[int, Outcome]] = {}
        self._counts: dict[tuple[str, Outcome], int] = {}
        self._bytes = 0
        self._timer: threading.Timer | None = None
        self._causes: list[BaseException] = []
        self._refused: list[Refused] = []

    def succeeded(self, item: str) -> None:
        """Acks an item as succeeded. If an item is acked more than once, the first ack counts. The ack is kept even if this raises."""
        self._add(item, "items")

    def failed(self, item: str) -> None:
        """Acks an item as failed."""
        self._add(item, "failed")

    def __contains__(self, item: str) -> bool:
        """Whether the buffer holds an ack of this item."""
        parsed = Item.parse(item)
        group, index = parsed.group, parsed.index
        with self._lock:
            return index in self._acks.get(group, ())

    def __len__(self) -> int:
        """How many acks the buffer holds."""
        with self._lock:
            return sum(map(len, self._acks.values()))

    def flush(self) -> Mapping[str, AckedFanout]:
        """Sends all acks. Over HTTP, returns the fan-outs with their new states, by id. Raises `AcksNotSent`, `AcksRefused`."""
        fanouts = self._send()
        self._raise()
        return fanouts

    def close(self) -> None:
        """Sends all acks, and ends the thread. If acks cannot be sent, keeps them and raises `AcksNotSent`."""
        atexit.unregister(self._at_exit)
        try:
            self.flush()
        finally:
            with self._lock:
                self._cancel_timer()

    def __enter__(self) -> AckBuffer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _add(self, item: str, outcome: Outcome) -> None:
        parsed = Item.parse(item)
        group, index = parsed.group, parsed.index
        with self._lock:
            acks = self._acks.setdefault(group, {})
            if index not in acks:
                acks[index] = outcome
                self._count(group, outcome, 1)
            self._start_timer()
            full = self._bytes >= self._sender.limit
        self._raise()
        if full:
            self.flush()

    def _send(self) -> Mapping[str, AckedFanout]:
        """Sends all acks, and keeps the errors for `_raise`."""
        with self._sending:
            with self._lock:
                self._cancel_timer()
                made = messages(self._acks, self._sender.limit)
            try:
                sent = self._sender.send(made)
            except Exception as error:
                # A sender should not raise, but may. Any of the messages may not have arrived.
                sent = Sent(unsent=dict.fromkeys(range(len(made)), error))
            with self._lock:
                for at, message in enumerate(made):
                    if at not in sent.unsent:
                        for group, outcome, indexes in message.acks:
                            self._remove(group, outcome, indexes)
                self._causes = list(sent.unsent.values())
                self._refused += sent.refused
                if self._acks:
                    self._start_timer()
        return sent.fanouts

    def _raise(self) -> None:
        """Raises the errors that were kept, once."""
        with self._lock:
            causes, self._causes = self._causes, []
            refused, self._refused = self._refused, []
        if causes:
            raise AcksNotSent(len(self), causes, refused) from causes[0]
        if refused:
            raise AcksRefused(refused)

    def _remove(self, group: str, outcome: Outcome, indexes: list[int]) -> None:
        acks = self._acks[group]
        for index in indexes:
            del acks[index]
        if not acks:
            del self._acks[group]
        self._count(group, outcome, -len(indexes))

    def _count(self, group: str, outcome: Outcome, change: int) -> None:
        before = self._counts.pop((group, outcome), 0)
        if before + change:
            self._counts[group, outcome] = before + change
        self._bytes += estimate(before + change) - estimate(before)

    def _start_timer(self) -> None:
        if self._timer is None and self._max_age is not None:
            atexit.unregister(self._at_exit)
            atexit.register(self._at_exit)
            self._timer = threading.Timer(self._max_age, self._send)
            self._timer.daemon = True
            self._timer.start()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _at_exit(self) -> None:
        try:
            if len(self):
                self.close()
        except FanfoldError:
            log.exception("the process ends, and these acks are lost")
