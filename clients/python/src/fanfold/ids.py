"""Item ids, `<fanout>:<group>:<index>`, which the client computes from the groups that Fanfold returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

GROUP_ITEMS_MAX = 7_168
"""The most items of a group."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER = "0|[1-9][0-9]{0,3}"
_RANGE = re.compile(f"({_UUID}:{_UUID}):({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)


class ItemGroup(NamedTuple):
    """An item group as Fanfold returns it: `upto` items, numbered from 0."""

    id: str
    upto: int


@dataclass(frozen=True)
class Item:
    """The parts of an item id."""

    group: str
    """`<fanout>:<group>`."""
    index: int

    @classmethod
    def parse(cls, text: str) -> Item:
        """Parses an item id. Raises `ValueError` if the text is not one."""
        group, first, last = _parse(text)
        if last is not None:
            raise ValueError(f"`{text[:120]}` is a range, a single item id is expected (<fanout>:<group>:<index>)")
        return cls(group, first)

    def __str__(self) -> str:
        return f"{self.group}:{self.index}"


def expand(fanout: str, groups: Iterable[ItemGroup]) -> Iterator[str]:
    """Returns the ids of all items of these groups, in order."""
    for group in groups:
        for index in range(group.upto):
            yield f"{fanout}:{group.id}:{index}"


def expand_ranges(texts: Iterable[str]) -> Iterator[str]:
    """Returns the ids of all items in these ids and ranges (`<fanout>:<group>:<first>-<last>`), in order."""
    for text in texts:
        group, first, last = _parse(text)
        for index in range(first, (first if last is None else last) + 1):
            yield f"{group}:{index}"


def _parse(text: str) -> tuple[str, int, int | None]:
    found = _RANGE.fullmatch(text)
    if found:
        group, first, last = found[1], int(found[2]), None if found[3] is None else int(found[3])
        if first <= (first if last is None else last) < GROUP_ITEMS_MAX:
            return group, first, last
    raise ValueError(
        f"`{text[:120]}` is not an item id (<fanout>:<group>:<index>, two UUIDs and a number below {GROUP_ITEMS_MAX})"
    )
