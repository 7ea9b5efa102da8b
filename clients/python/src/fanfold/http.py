"""Requests to the HTTP API: signed for AWS_IAM unless the API is on this machine, and retried."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import URLLib3Session

from .errors import ApiError, FanfoldError, Unreachable

_AGAIN = {429, 500, 502, 503, 504}
_REGION = re.compile(r"\.execute-api\.([a-z0-9-]+)\.")


class Http:
    """The client of one API; it keeps connections open."""

    def __init__(
        self, url: str, *, session: boto3.Session | None, sign: bool | None, attempts: int, timeout: float
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url: `{url}`: the address of the HTTP API is expected, such as http://localhost:8080")
        if attempts < 1:
            raise ValueError(f"attempts: {attempts}: at least 1 is expected")
        self._url = url.rstrip("/")
        self._attempts = attempts
        self._connections = URLLib3Session(timeout=timeout, max_pool_connections=32)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        self._session = (session or boto3.Session()) if (not local if sign is None else sign) else None
        region = _REGION.search(parts.hostname)
        self._region = region[1] if region else self._session.region_name if self._session else None
        if self._session and not self._region:
            raise ValueError("the region to sign for is unknown: set AWS_REGION, or pass a session that has one")

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, *, once: bool = False
    ) -> dict[str, Any]:
        """Returns the response's document. Retries with the same headers after no answer, a success that cannot be read, 429, 500,
        502, 503 and 504; with `once`, only after 429, when nothing was done. Raises `ApiError`, `Unreachable`, and `FanfoldError`
        if it cannot sign."""
        again = {429} if once else _AGAIN
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"content-type": "application/json", **(headers or {})} if data else dict(headers or {})
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                answer = self._connections.send(self._request(method, path, data, headers))
            except BotoCoreError as error:
                # Not `HTTPClientError`: a connection that is refused, or fails over TLS or its proxy, is none.
                if last or once:
                    times = "1 attempt" if attempt == 1 else f"{attempt} attempts"
                    raise Unreachable(f"{method} {path}: no answer after {times}: {error}") from error
            else:
                document = _object(answer.content)
                if answer.status_code < 300:
                    if document is not None:
                        return document
                    # It was cut off, or something in front of Fanfold answered. The request may have been carried out.
                    if last or once:
                        raise Unreachable(f"{method} {path}: the answer cannot be read: {_beginning(answer.content)}")
                elif last or answer.status_code not in again:
                    problem = {"detail": _beginning(answer.content)} if document is None else document
                    raise ApiError(f"{method} {path}", answer.status_code, problem)
            pause(attempt)
        raise AssertionError("the last attempt returns or raises")

    def _request(self, method: str, path: str, data: bytes, headers: dict[str, str]) -> Any:
        request = AWSRequest(method=method, url=self._url + path, data=data, headers=headers)
        if self._session:
            try:
                SigV4Auth(self._session.get_credentials(), "execute-api", self._region).add_auth(request)
            except (BotoCoreError, ClientError) as error:
                raise FanfoldError(f"the request cannot be signed: {error}") from error
        return request.prepare()


def pause(attempt: int) -> None:
    """Pauses before the next attempt: up to 0.2 s, doubling to 5 s."""
    time.sleep(random.uniform(0.5, 1) * min(0.2 * 2 ** (attempt - 1), 5))


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _beginning(content: bytes) -> str:
    return content[:1_000].decode(errors="replace")
