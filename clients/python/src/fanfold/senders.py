"""Senders of acks: over the ack queue, or over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from .client import Fanfold
from .compact import AckMessage
from .errors import ApiError, FanfoldError, Refused
from .http import pause
from .models import AckedFanout

MESSAGE_BYTES_MAX = 256 * 1_024 - 4_096
"""The most bytes of a message and of a batch call: SQS's older limit (256 KiB), less some for the envelope."""

_PER_CALL = 10


@dataclass
class Sent:
    """The result of sending messages."""

    unsent: dict[int, BaseException] = field(default_factory=dict)
    """Positions of messages that could not be sent, with the errors."""
    refused: list[Refused] = field(default_factory=list)
    """Acks that were sent but refused."""
    fanouts: dict[str, AckedFanout] = field(default_factory=dict)
    """Over HTTP: the fan-outs with their new states, by id."""


class AckSender(Protocol):
    """Sends messages of acks. Every message that it does not report as unsent has arrived."""

    @property
    def limit(self) -> int:
        """The most bytes of a message."""

    def send(self, messages: Sequence[AckMessage]) -> Sent:
        """Sends messages. Reports those that it cannot send, and does not raise."""


class SqsAcks:
    """Sends acks to the stack's ack queue (output `AckQueueUrl`). Needs the permission `sqs:SendMessage`."""

    limit = MESSAGE_BYTES_MAX

    def __init__(self, queue_url: str, *, client: Any = None, attempts: int = 5) -> None:
        self._queue_url = queue_url
        self._client = client or boto3.client("sqs")
        self._attempts = attempts

    def send(self, messages: Sequence[AckMessage]) -> Sent:
        sent = Sent()
        for call in _calls(messages):
            self._send(call, messages, sent)
        return sent

    def _send(self, call: list[int], messages: Sequence[AckMessage], sent: Sent) -> None:
        """Sends one batch call. SQS may accept some of its messages: the others are sent again, unless SQS reports a sender's fault."""
        for attempt in range(1, self._attempts + 1):
            entries = [{"Id": str(at), "MessageBody": messages[at].body()} for at in call]
            try:
                answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
            except (BotoCoreError, ClientError) as error:
                # The SDK has retried what can be retried.
                sent.unsent.update(dict.fromkeys(call, error))
                return
            taken = {int(one["Id"]) for one in answer.get("Successful", ())}
            failed = {int(one["Id"]): one for one in answer.get("Failed", ())}
            again = []
            for at in call:
                if at in taken:
                    continue
                why = failed.get(at, {"Code": "NoAnswer"})
                if why.get("SenderFault") or attempt == self._attempts:
                    sent.unsent[at] = FanfoldError(
                        f"SQS refused a message: {why.get('Code')}: {why.get('Message', '')}"
                    )
                else:
                    again.append(at)
            if not again:
                return
            call = again
            pause(attempt)


class HttpAcks:
    """Sends acks to `POST /acks`. Unlike the queue, it returns which fan-outs are complete, and which items do not exist."""

    limit = MESSAGE_BYTES_MAX

    def __init__(self, client: Fanfold) -> None:
        self._client = client

    def send(self, messages: Sequence[AckMessage]) -> Sent:
        sent = Sent()
        for at, message in enumerate(messages):
            try:
                answer = self._client.ack(message.fields.get("items", ()), failed=message.fields.get("failed", ()))
            except ApiError as error:
                if error.code == "invalid_acks":
                    # None of them exists.
                    sent.refused += (Refused(group, _indexes(of), str(error)) for group, _, of in message.acks)
                else:
                    sent.unsent[at] = error
            except FanfoldError as error:
                sent.unsent[at] = error
            else:
                sent.refused += answer.refused
                sent.fanouts.update((fanout.id, fanout) for fanout in answer.fanouts)
        return sent


def _indexes(of: list[int]) -> tuple[str, ...]:
    return tuple(map(str, of))


def _calls(messages: Sequence[AckMessage]) -> Iterator[list[int]]:
    """Groups positions of messages into batch calls."""
    call, size = list[int](), 0
    for at, message in enumerate(messages):
        if call and (len(call) == _PER_CALL or size + message.bytes > MESSAGE_BYTES_MAX):
            yield call
            call, size = [], 0
        call.append(at)
        size += message.bytes
    if call:
        yield call
