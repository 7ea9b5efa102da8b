"""How long a single task waits for its call, and how many batches per second one lane does that may have one in flight.

Both on `fanfold up`, with a batch API that answers at once.
"""

import http.client
import http.server
import json
import pathlib
import re
import signal
import statistics
import subprocess
import threading
import time

from parts.common import scratch

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


def start(command, api, folder):
    policies = []
    for kind, policy in POLICIES.items():
        path = pathlib.Path(folder, f"{kind}.yaml")
        # JSON is YAML.
        path.write_text(json.dumps({"kind": kind, "batch_api": {"url": f"http://127.0.0.1:{api}/"}, **policy}))
        policies += ["--policy", str(path)]
    return subprocess.Popen([command, "up", "--listen", "127.0.0.1:0", *policies], stderr=subprocess.PIPE, text=True)


def address(server):
    """Where it listens, once it says so."""
    said = []
    for line in server.stderr:
        if found := re.search(r"http://([\d.]+:\d+)", line):
            return found.group(1)
        said.append(line)
    raise SystemExit("`fanfold up` does not start: " + "".join(said))


def register(connection, kind, numbers):
    tasks = [{"kind": kind, "content": {"n": str(n)}} for n in numbers]
    connection.request("POST", "/tasks", json.dumps({"tasks": tasks}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status // 100 != 2:
        raise SystemExit(f"{answer.status}: {body.decode()}")


def singles(connection, calls, kind, tasks):
    took = []
    for n in range(tasks):
        began = time.monotonic()
        register(connection, kind, [n])
        calls.wait(lambda: (kind, str(n)) in calls.at, 120)
        took.append(1_000 * (calls.at[kind, str(n)] - began))
        # Whatever follows from the call is over before the next one.
        time.sleep(0.05)
    took.sort()
    return {"tasks": tasks, "median_ms": statistics.median(took), "p90_ms": took[tasks * 9 // 10], "most_ms": took[-1]}


def lane(connection, calls, tasks):
    register(connection, "lane", range(tasks))
    calls.wait(lambda: len(calls.batches) >= tasks // LANE_BATCH, 600)
    took = calls.batches[-1] - calls.batches[0]
    return {"batches": len(calls.batches), "per_batch": LANE_BATCH, "batches_per_second": (len(calls.batches) - 1) / took}


def run(bench):
    calls = Calls()
    alone, together = bench.of(usual=60, smallest=3), bench.of(usual=3_000, smallest=50)
    with scratch() as folder:
        server = start(bench.command("fanfold"), serve(calls), folder)
        try:
            connection = http.client.HTTPConnection(address(server))
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return {
                "singles": {kind: singles(connection, calls, kind, alone) for kind in ["single", "again"]},
                "lane": lane(connection, calls, together),
            }
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
