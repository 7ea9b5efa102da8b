#!/usr/bin/env python3
"""How long a single task waits for its call, and how many batches a second one lane does that may have one in flight.

    cargo build --release -p fanfold-cli && benches/latency.py [path of the command]

Starts `fanfold serve` and a batch API that answers at once, on free ports of this machine.
"""

import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SINGLES = 60
LANE_TASKS = 3_000
LANE_BATCH = 10

POLICIES = {
    # Every task is to be called at once.
    "single": {"target": "content.n", "linger": "0s", "max_batch": 1},
    # The same, in a lane that has been used before.
    "again": {"target": '"one"', "linger": "0s", "max_batch": 1},
    "lane": {"target": '"one"', "linger": "1s", "max_batch": LANE_BATCH, "max_in_flight": 1},
}


class Calls:
    """When the batch API was called for what."""

    def __init__(self):
        self.changed = threading.Condition()
        self.at = {}
        self.batches = []

    def add(self, call):
        now = time.monotonic()
        with self.changed:
            for member in call["members"]:
                self.at[call["kind"], str(member["content"]["n"])] = now
            if call["kind"] == "lane":
                self.batches.append(now)
            self.changed.notify_all()

    def wait(self, done, seconds):
        with self.changed:
            if not self.changed.wait_for(done, seconds):
                raise SystemExit(f"not called within {seconds} s")


def serve(calls):
    class Api(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            calls.add(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def start(command, port, api, folder):
    policies = []
    for kind, policy in POLICIES.items():
        path = pathlib.Path(folder, f"{kind}.yaml")
        # JSON is YAML.
        path.write_text(json.dumps({"kind": kind, "batch_api": {"url": f"http://127.0.0.1:{api}/"}, **policy}))
        policies += ["--policy", str(path)]
    listen = ["--listen", f"127.0.0.1:{port}"]
    return subprocess.Popen([command, "serve", *listen, *policies], stderr=subprocess.PIPE, text=True)


def register(connection, kind, numbers):
    tasks = [{"kind": kind, "content": {"n": str(n)}} for n in numbers]
    connection.request("POST", "/tasks", json.dumps({"tasks": tasks}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status // 100 != 2:
        raise SystemExit(f"{answer.status}: {body.decode()}")


def singles(connection, calls, kind):
    took = []
    for n in range(SINGLES):
        began = time.monotonic()
        register(connection, kind, [n])
        calls.wait(lambda: (kind, str(n)) in calls.at, 30)
        took.append(1_000 * (calls.at[kind, str(n)] - began))
        # Whatever follows from the call is over before the next one.
        time.sleep(0.05)
    took.sort()
    print(f"{kind}: {len(took)} tasks, one after the other: median {statistics.median(took):.1f} ms, "
          f"p90 {took[len(took) * 9 // 10]:.1f} ms, longest {took[-1]:.1f} ms")


def lane(connection, calls):
    register(connection, "lane", range(LANE_TASKS))
    calls.wait(lambda: len(calls.batches) >= LANE_TASKS // LANE_BATCH, 600)
    took = calls.batches[-1] - calls.batches[0]
    print(f"lane: {len(calls.batches)} batches of {LANE_BATCH}, one in flight: "
          f"{(len(calls.batches) - 1) / took:.1f} batches a second")


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else "target/release/fanfold"
    calls, port = Calls(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = start(os.path.abspath(command), port, serve(calls), folder)
        try:
            # Its first line says that it listens.
            print(server.stderr.readline().strip())
            threading.Thread(target=server.stderr.read, daemon=True).start()
            connection = http.client.HTTPConnection("127.0.0.1", port)
            for kind in ["single", "again"]:
                singles(connection, calls, kind)
            lane(connection, calls)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


if __name__ == "__main__":
    main()
