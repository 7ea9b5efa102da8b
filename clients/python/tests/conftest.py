"""A stack of this machine, as users start it; a server that answers as a test says; senders that fail as a test says."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fanfold import Fanfold, expand_ranges
from fanfold.senders import Sent

FANOUT = "01890000-0000-7000-8000-00000000000a"
GROUP = f"{FANOUT}:01890000-0000-7000-8000-00000000000b"
OTHER = f"{FANOUT}:01890000-0000-7000-8000-00000000000c"


@pytest.fixture(scope="session")
def stack() -> Iterator[str]:
    """The address of `fanfold up`."""
    process = subprocess.Popen(
        [os.environ["FANFOLD"], "up", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr
        yield process.stderr.readline().split(" at ")[1].split(";")[0]
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def fanfold(stack: str) -> Fanfold:
    return Fanfold(stack)


def read(bodies) -> dict[str, str]:
    """What messages say, as a server reads them: item -> field."""
    said = {}
    for body in bodies:
        for field, entries in json.loads(body).items():
            for entry in entries:
                if isinstance(entry, dict):
                    bits = base64.b64decode(entry["mask"], validate=True)
                    items = [f"{entry['group']}:{at}" for at in range(8 * len(bits)) if bits[at // 8] >> at % 8 & 1]
                else:
                    items = list(expand_ranges([entry]))
                for item in items:
                    assert item not in said, f"{item} is named twice"
                    said[item] = field
    return said


class Scripted:
    """A server that gives these answers one after the other, and remembers what it was asked. `None` answers nothing."""

    def __init__(self, *answers: tuple[int, object] | None) -> None:
        self.requests: list[tuple[str, str, dict[str, str], object]] = []
        waiting = list(answers)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                requests.append((self.command, self.path, headers, json.loads(body) if body else None))
                answer = waiting.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, document = answer
                data = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


class FakeAcks:
    """Takes messages; fails with `error` while there is one, and raises `raised`, as no sender should."""

    limit = 4_096

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.raised: Exception | None = None
        self.refused: list = []
        self.bodies: list[dict] = []
        self.came = threading.Event()

    def send(self, messages) -> Sent:
        if self.raised:
            raise self.raised
        if self.error:
            return Sent(unsent=dict.fromkeys(range(len(messages)), self.error))
        self.bodies += (json.loads(message.body()) for message in messages)
        self.came.set()
        refused, self.refused = self.refused, []
        return Sent(refused=refused)

    def said(self) -> dict[str, str]:
        return read(map(json.dumps, self.bodies))


@pytest.fixture
def acks() -> FakeAcks:
    return FakeAcks()
