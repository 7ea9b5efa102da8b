"""A consumer of an SQS queue, as a Lambda handler or by polling, that acks the items of its messages."""

from __future__ import annotations

import inspect
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3

from .buffer import AckBuffer
from .errors import AcksNotSent, AcksRefused, FanfoldError
from .ids import Item
from .senders import AckSender

log = logging.getLogger("fanfold")


@dataclass(frozen=True)
class Message:
    """A message of the queue."""

    id: str
    body: str
    receives: int
    """How often SQS has delivered it, this delivery included (approximately)."""
    raw: Mapping[str, Any] = field(repr=False)
    """The record from Lambda or SQS."""

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def item_in_body(message: Message) -> str | None:
    """Returns the item id in the field `item` of a JSON object; `None` if there is no such field."""
    body = message.json()
    item = body.get("item") if isinstance(body, dict) else None
    if not isinstance(item, str | None):
        raise ValueError(f"item: `{item}`: an item id is expected")
    return item


@dataclass(frozen=True)
class Consumer:
    """A Lambda handler for an SQS event source (with `ReportBatchItemFailures`), made by `sqs_consumer`."""

    handle: Callable[[Message], object]
    acks: AckSender
    max_receives: int
    item_of: Callable[[Message], str | None]

    def __call__(self, event: Mapping[str, Any], context: object = None) -> dict[str, list[dict[str, str]]]:
        """Handles a Lambda event; returns the messages that SQS is to deliver again."""
        records = event["Records"]
        received = [
            Message(one["messageId"], one["body"], int(one["attributes"]["ApproximateReceiveCount"]), one)
            for one in records
        ]
        in_order = any(one.get("eventSourceARN", "").endswith(".fifo") for one in records)
        return {"batchItemFailures": [{"itemIdentifier": one.id} for one in self.run(received, in_order=in_order)]}

    def poll(self, queue_url: str, *, client: Any = None, stop: threading.Event | None = None) -> None:
        """Receives, handles and deletes messages until `stop` is set. SQS delivers a message that failed again when its visibility timeout
        is over."""
        client = client or boto3.client("sqs")
        stop = stop or threading.Event()
        while not stop.is_set():
            answer = client.receive_message(
                QueueUrl=queue_url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=20,
                AttributeNames=["ApproximateReceiveCount"],
            )
            received = [
                Message(one["MessageId"], one["Body"], int(one["Attributes"]["ApproximateReceiveCount"]), one)
                for one in answer.get("Messages", ())
            ]
            failed = {one.id for one in self.run(received, in_order=queue_url.endswith(".fifo"))}
            entries = [
                {"Id": str(at), "ReceiptHandle": one.raw["ReceiptHandle"]}
                for at, one in enumerate(received)
                if one.id not in failed
            ]
            if entries:
                deleted = client.delete_message_batch(QueueUrl=queue_url, Entries=entries)
                for one in deleted.get("Failed", ()):
                    log.warning("a message was handled but not deleted, SQS will deliver it again: %s", one)

    def run(self, messages: Sequence[Message], *, in_order: bool = False) -> list[Message]:
        """Handles messages one after the other, then sends their acks. Returns those that SQS is to deliver again: their function failed,
        or their ack could not be sent. `in_order`: stops after a failure, as FIFO queues require."""
        buffer = AckBuffer(self.acks, max_age=None)
        failed: dict[int, Message] = {}
        items: dict[int, str] = {}
        for at, message in enumerate(messages):
            if in_order and failed:
                failed[at] = message
                continue
            try:
                item = self.item_of(message)
                if item is not None:
                    Item.parse(item)
                    items[at] = item
                _refuse_pending(self.handle(message))
            except Exception:
                log.exception("message %s failed (delivery %d)", message.id, message.receives)
                failed[at] = message
                if at in items and message.receives >= self.max_receives:
                    self._collect(buffer.failed, items[at])
            else:
                if at in items:
                    self._collect(buffer.succeeded, items[at])
        try:
            buffer.flush()
        except AcksRefused as error:
            log.warning("acks of items that do not exist: %s", error)
        except AcksNotSent as error:
            log.exception("acks could not be sent, SQS will deliver their messages again")
            if error.refused:
                log.warning("acks of items that do not exist: %s", AcksRefused(error.refused))
            failed.update((at, messages[at]) for at, item in items.items() if item in buffer)
        return [failed[at] for at in sorted(failed)]

    def _collect(self, add: Callable[[str], None], item: str) -> None:
        try:
            add(item)
        except FanfoldError as error:
            # A full buffer is sent at once. What could not be sent stays in it, and is sent again at the end.
            log.warning("%s", error)


def _refuse_pending(returned: object) -> None:
    """Raises if a handler returned before its work was done."""
    if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise TypeError("the function returned before its work was done: it must not be async or a generator")


def sqs_consumer(
    acks: AckSender, *, max_receives: int, item_of: Callable[[Message], str | None] = item_in_body
) -> Callable[[Callable[[Message], object]], Consumer]:
    """Turns a function that handles one message into a consumer of an SQS queue that acks the message's item.

    The function is neither async nor a generator: these return before their work is done. If it returns, the consumer acks the item as succeeded. If it raises, SQS delivers the message again; at delivery
    `max_receives` or later, the consumer also acks the item as failed. It sends acks before it returns. If an ack cannot be sent, SQS
    delivers its message again.

    `acks`: where acks go: `SqsAcks(...)` or `HttpAcks(...)`.
    `max_receives`: one less than the queue's `maxReceiveCount`, so that a message whose last ack could not be sent is delivered once more.
    `item_of`: returns the item id of a message, or `None` if it has none; by default, the field `item` of a JSON body.
    """
    if max_receives < 1:
        raise ValueError(f"max_receives: {max_receives}: at least 1 is expected")

    def consumer(handle: Callable[[Message], object]) -> Consumer:
        pending = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_one(handle) for is_one in pending):
            raise TypeError(f"{handle}: a function is expected that is neither async nor a generator, which return before their work is done")
        return Consumer(handle, acks, max_receives, item_of)

    return consumer
