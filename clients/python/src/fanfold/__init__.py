"""Client of Fanfold: opens fan-outs, waits for their ends, and acks the items that workers have done."""

from .buffer import AckBuffer
from .client import Fanfold
from .consumer import Consumer, Message, sqs_consumer
from .errors import AcksNotSent, AcksRefused, ApiError, FanfoldError, NotEnded, Refused, Unreachable
from .ids import GROUP_ITEMS_MAX, Item, ItemGroup, expand, expand_ranges
from .models import (
    AckAnswer,
    AckedFanout,
    AddedItems,
    Count,
    CountAnswer,
    CountedFanout,
    Fanout,
    RefusedCount,
    TaskResult,
)
from .senders import AckSender, HttpAcks, SqsAcks

__all__ = [
    "GROUP_ITEMS_MAX",
    "AckAnswer",
    "AckBuffer",
    "AckSender",
    "AckedFanout",
    "AcksNotSent",
    "AcksRefused",
    "AddedItems",
    "ApiError",
    "Consumer",
    "Count",
    "CountAnswer",
    "CountedFanout",
    "Fanfold",
    "FanfoldError",
    "Fanout",
    "HttpAcks",
    "Item",
    "ItemGroup",
    "Message",
    "NotEnded",
    "Refused",
    "RefusedCount",
    "SqsAcks",
    "TaskResult",
    "Unreachable",
    "expand",
    "expand_ranges",
    "sqs_consumer",
]
