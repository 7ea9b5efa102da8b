"""The batch API: gets each batch as a whole, and returns an outcome per member."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def handle(target, contents):
    """Your work. Returns an outcome per content."""
    print(f"{target}: {len(contents)} orders", flush=True)
    return [
        {"outcome": "failed", "error": "heavier than 30 kg"} if float(content["kg"]) > 30 else {"outcome": "succeeded"}
        for content in contents
    ]


class BatchApi(BaseHTTPRequestHandler):
    def do_POST(self):
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        members = batch["members"]
        # The header Idempotency-Key is the same whenever a call is repeated: with it, work is done once.
        outcomes = handle(batch["target"], [member["content"] for member in members])
        answer = {"members": [{"id": member["id"], **outcome} for member, outcome in zip(members, outcomes)]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), BatchApi).serve_forever()
