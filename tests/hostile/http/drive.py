"""Starts `fanfold up`, has schemathesis send its requests, sends some that it cannot, and looks what is left."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import probes
import truth

HERE = pathlib.Path(__file__).parent
DESCRIPTION = HERE / "../../../docs/openapi.json"

POLICIES = {
    "any": {"target": "'all'", "linger": 0, "batch_api": {"command": ["true"]}},
    "parted": {"target": "kind", "partitions": 3, "linger": 0, "batch_api": {"command": ["true"]}},
    # Fails for a content that is not a simple value, and drops those that were there before.
    "keyed": {"target": "'all'", "key": "string(content)", "linger": 0, "batch_api": {"command": ["true"]}},
}


class Server:
    """`fanfold up` on a free port, over a folder."""

    def __init__(self, binary, folder, dev_queues=probes.DEV_QUEUES):
        self.binary = binary
        self.log = pathlib.Path(folder, "serve.log")
        # Whatever a fuzzed policy or notice names, nothing leaves this process: its proxy is a port that is not listened on.
        self.nobody = socket.socket()
        self.nobody.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{self.nobody.getsockname()[1]}"
        environment = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            environment |= {name: proxy, name.lower(): proxy}
        environment["DEV_QUEUES"] = dev_queues
        command = [binary, "up", "--listen", "127.0.0.1:0", "--data", f"{folder}/data"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stderr=log, env=environment)
        self.url = self.wait()
        self.connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)

    def wait(self):
        for _ in range(1_200):
            if said := re.search(r"(http://[\d.]+:\d+);", self.log.read_text()):
                return said[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"the server does not start:\n{self.log.read_text()}")

    def call(self, method, path, body=None, headers=None):
        """Status and JSON of an answer."""
        headers = {"content-type": "application/json"} | (headers or {})
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def get(self, path):
        """The same of a plain GET, over a connection that is kept: there are thousands of them."""
        for _ in range(2):
            try:
                self.connection.request("GET", path)
                with self.connection.getresponse() as response:
                    return response.status, json.load(response)
            except (http.client.HTTPException, OSError):
                # Closed in the meantime; the next request opens it again.
                self.connection.close()
        return self.call("GET", path)

    def stop(self):
        """Ends it as Ctrl-C does, after which a call may take its time; answers its status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=180)


def prepare(server, journal):
    """Makes what requests can be about, and writes it down as hooks.py does."""

    def done(method, route, body):
        status, answer = server.call(method, route, body)
        assert status < 300, answer
        entry = {"route": f"{method} {route}", "status": status, "code": None, "path": {}, "answer": answer, "body": body}
        journal.write(json.dumps(entry) + "\n")
        return answer

    for kind, policy in POLICIES.items():
        status, answer = server.call("PUT", f"/policies/{kind}", policy)
        assert status == 200, answer
    for number in range(24):
        items = [1, 9, 700, 9_000][number % 4]
        done("POST", "/fanouts", {"items": items, "seal": number % 3 == 0, "user_key": f"order {number}"})
    for number in range(6):
        opened = done("POST", "/fanouts", {"mode": "estimated", "items": number, "seal": number % 3 == 1})
        done("POST", "/counts", {"counts": [{"fanout": opened["id"], "failed": number // 3}]})
    for number in range(12):
        kind = list(POLICIES)[number % 3]
        registered = done("POST", "/tasks", {"tasks": [{"kind": kind, "content": number}]})
        task = f"/tasks/{registered['tasks'][0]['id']}"
        shown = probes.until("a task has a batch", lambda: server.call("GET", task)[1], probes.has_batch)
        done("GET", task, None)
        assert shown["kind"] == kind, shown


def main():
    work, schemathesis = pathlib.Path(sys.argv[1]), sys.argv[2]
    journal = work / "journal.jsonl"
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(str(work / "fanfold"), folder)
        try:
            with journal.open("w", encoding="utf-8") as entries:
                prepare(server, entries)
            started = time.monotonic()
            status = attack(schemathesis, server.url, work, journal)
            print(f"== schemathesis: status {status}, {time.monotonic() - started:.0f} s", flush=True)
            if status != 0:
                failures.append(f"schemathesis ended with status {status}")
            failures += look(server, journal)
        finally:
            alive = server.process.poll() is None
            ended = server.stop() if alive else server.process.returncode
            (work / "serve.log").write_bytes(server.log.read_bytes())
        if not alive:
            failures.append(f"the server died with status {ended}")
        elif ended != 0:
            failures.append(f"the server ended with status {ended}")
        if "panicked" in server.log.read_text():
            failures.append(f"the server panicked: see {work / 'serve.log'}")
    for failure in failures[:20]:
        print(f"FAILED: {failure}")
    print(f"hostile input over HTTP: {len(failures)} failed")
    sys.exit(1 if failures else 0)


def attack(schemathesis, url, work, journal):
    environment = os.environ | {
        "JOURNAL": str(journal), "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE), "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    command = [
        schemathesis, "--no-color", "--config-file", str(HERE / "schemathesis.toml"), "run", str(DESCRIPTION.resolve()),
        "--url", url, "--checks", "all",
        # A fan-out that was deleted is cancelled: how it ended is shown for weeks.
        "--exclude-checks", "use_after_free", "--seed", os.environ.get("SEED", "20260101"),
        "--max-examples", os.environ.get("EXAMPLES", "150"),
    ]  # fmt: skip
    return subprocess.run(command, cwd=work, env=environment, check=False).returncode


def look(server, journal):
    """What is wrong after the attack."""
    status, health = server.call("GET", "/health")
    if status != 200:
        return [f"/health answers {status}: {health}"]
    # Whatever was paused goes on.
    for switch in server.call("GET", "/switches")[1]["switches"]:
        scope = {field: switch[field] for field in ("all", "kind", "target", "partition") if field in switch}
        server.call("POST", "/resume", scope)
    entries = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    answered = {(entry["route"], entry["status"], entry["code"]) for entry in entries}
    answered |= probes.send(server)
    with tempfile.TemporaryDirectory() as folder:
        other = Server(server.binary, folder, "")
        answered |= probes.without_dev_sessions(other)
        other.stop()
    failures = probes.never_answered(json.loads(DESCRIPTION.read_text()), answered)
    started = time.monotonic()
    failures += truth.lost(server, entries) + truth.ordinary(server)
    print(f"== what was accepted: {time.monotonic() - started:.0f} s", flush=True)
    return failures


if __name__ == "__main__":
    main()
