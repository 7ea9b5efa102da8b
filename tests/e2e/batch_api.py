"""A batch API over HTTP, which writes down every call.

The functions must be able to reach it. It listens at a free port of this machine; if they are elsewhere, let `BATCH_API_PORT`
be the port to listen at, on all addresses, and `BATCH_API_URL` what the functions call instead (a tunnel, say).
"""

import json
import os
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def one_row(_):
    """What an endpoint answers to a producer, unless `sources` says otherwise."""
    return {"tasks": [{"kind": "parcel", "content": {"order": "ORD-9", "depot": "005", "state": "NY"}}]}


class BatchApi:
    def __init__(self):
        self.calls, self.headers = defaultdict(list), defaultdict(list)
        self.sources = {}
        # The token of each call, by its idempotency key.
        self.tokens = {}
        self.lock = threading.Lock()
        port = os.environ.get("BATCH_API_PORT")
        self.server = ThreadingHTTPServer(("0.0.0.0", int(port)) if port else ("127.0.0.1", 0), self.handler())
        self.base = os.environ.get("BATCH_API_URL") or f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, name):
        """An endpoint of its own, whose calls are `calls[name]`: when, under which key, and what was called; `headers[name]` are theirs."""
        return f"{self.base.rstrip('/')}/{name}"

    def ids(self, name):
        """The members of each batch that an endpoint was called with, by its idempotency key."""
        batches = {}
        for _, key, call in self.calls[name]:
            ids = tuple(member["id"] for member in call["members"])
            assert batches.setdefault(key, ids) == ids, f"key {key} came with other members"
        return batches

    def answer(self, name, key, attempt, call):
        """Status and document: 429 to the first attempt of every fifth call, and `failed` to what asks for it."""
        with self.lock:
            self.calls[name].append((time.time(), key, call))
            if "partition" in call:  # a producer asks for rows
                return 200, self.sources.get(name, one_row)(call)
            busy = len(self.calls[name]) % 5 == 0 and attempt == "1"
        failed = lambda member: member["content"].get("fail", False)
        outcome = lambda member: {"id": member["id"], "outcome": "failed" if failed(member) else "succeeded", "error": "no stock"}
        return (429 if busy else 200), {"members": [outcome(member) for member in call["members"]]}

    def handler(api):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                call = json.loads(self.rfile.read(int(self.headers["content-length"])))
                name = self.path.rsplit("/", 1)[-1]
                api.headers[name].append(self.headers)
                api.tokens[self.headers["idempotency-key"]] = self.headers["fanfold-token"]
                status, document = api.answer(name, self.headers["idempotency-key"], self.headers["fanfold-attempt"], call)
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
