"""Fanfold on this machine, asked over HTTP."""

import json
import subprocess
import urllib.request


class Fanfold:
    """`fanfold serve` on a free port, until it is stopped."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            [*command, "serve", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        for line in self.process.stderr:
            if "http://" in line:
                self.url = "http://" + line.split("http://")[1].split(";")[0].strip()
                break
            print(line, end="", flush=True)
        else:
            raise SystemExit("fanfold did not start")

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def open(self, user_key, source, partitions):
        """A fan-out that reads a source by itself."""
        producer = {"source": {"url": source}, "partitions": partitions}
        return self.call("POST", "/fanouts", {"user_key": user_key, "producer": producer})["id"]

    def wait(self, fanout):
        """The fan-out when it has ended."""
        while True:
            answer = self.call("GET", f"/fanouts/{fanout}?wait=20s")
            partitions = answer["producer"]["partitions"]
            if failed := [partition["error"] for partition in partitions if partition["state"] == "failed"]:
                raise SystemExit(f"{answer['user_key']}: {failed[0]}")
            if answer["ended"]:
                return answer

    def stop(self):
        self.process.terminate()
        self.process.wait()
