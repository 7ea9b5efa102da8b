"""Packs acks into messages, as item ids, ranges or masks, whichever is shortest."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["items", "failed"]
"""An outcome is a field of the message: `items` have succeeded."""

_ID_BYTES = len(json.dumps(f"{'u' * 36}:{'u' * 36}:7167")) + 1
_MASK_BYTES = len(json.dumps({"group": f"{'u' * 36}:{'u' * 36}", "mask": ""}, separators=(",", ":"))) + 1
_FRAME_BYTES = len('{"items":[],"failed":[]}')


@dataclass
class AckMessage:
    """A message with its acks."""

    fields: dict[Outcome, list[Any]] = field(default_factory=dict)
    acks: list[tuple[str, Outcome, list[int]]] = field(default_factory=list)
    """Group, outcome and indexes."""
    bytes: int = _FRAME_BYTES

    def body(self) -> str:
        """The message's text."""
        return json.dumps(self.fields, separators=(",", ":"))


def estimate(items: int) -> int:
    """Returns the most bytes that this many items of one group and outcome take."""
    return min(items * _ID_BYTES, _MASK_BYTES + 1_196)


def messages(acks: Mapping[str, Mapping[int, Outcome]], limit: int) -> list[AckMessage]:
    """Packs all acks into messages of at most `limit` bytes."""
    made = [AckMessage()]
    for group, outcomes in acks.items():
        by_outcome: dict[Outcome, list[int]] = {}
        for index in sorted(outcomes):
            by_outcome.setdefault(outcomes[index], []).append(index)
        for outcome, indexes in by_outcome.items():
            for entry, covered in _entries(group, indexes):
                size = len(json.dumps(entry, separators=(",", ":"))) + 1
                if made[-1].acks and made[-1].bytes + size > limit:
                    made.append(AckMessage())
                made[-1].fields.setdefault(outcome, []).append(entry)
                made[-1].acks.append((group, outcome, covered))
                made[-1].bytes += size
    return made if made[0].acks else []


def _entries(group: str, indexes: list[int]) -> Iterable[tuple[Any, list[int]]]:
    """Returns entries for items of one group and outcome, each with the indexes it names."""
    runs = [(f"{group}:{run[0]}" + (f"-{run[-1]}" if len(run) > 1 else ""), run) for run in _runs(indexes)]
    bitfield = bytearray(indexes[-1] // 8 + 1)
    if sum(len(text) + 3 for text, _ in runs) <= _MASK_BYTES + (len(bitfield) + 2) // 3 * 4:
        return runs
    for index in indexes:
        bitfield[index // 8] |= 1 << index % 8
    return [({"group": group, "mask": base64.b64encode(bitfield).decode()}, indexes)]


def _runs(indexes: list[int]) -> Iterator[list[int]]:
    """Splits sorted numbers into runs without gaps."""
    first = 0
    for at in range(1, len(indexes) + 1):
        if at == len(indexes) or indexes[at] != indexes[at - 1] + 1:
            yield indexes[first:at]
            first = at
