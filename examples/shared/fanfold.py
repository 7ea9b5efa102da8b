"""Fanfold on this machine, asked over HTTP."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request


class Fanfold:
    """`fanfold up` on a free port, until it is stopped. With `data` it keeps its state in that folder."""

    def __init__(self, command, data=None):
        arguments = ["up", "--listen", "127.0.0.1:0", *(["--data", str(data)] if data else [])]
        self.process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            if "http://" in line:
                self.url = "http://" + line.split("http://")[1].split(";")[0].strip()
                break
            print(line, end="", flush=True)
        else:
            raise SystemExit("fanfold did not start")

    def call(self, method, path, body=None, key=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def open(self, user_key, source, partitions):
        """A fan-out that reads a source by itself."""
        producer = {"source": {"url": source}, "partitions": partitions}
        return self.call("POST", "/fanouts", {"user_key": user_key, "producer": producer})["id"]

    def wait(self, fanout):
        """The fan-out when it has ended. If its source fails, that is an error."""
        while True:
            answer = self.call("GET", f"/fanouts/{fanout}?wait=20s")
            partitions = answer.get("producer", {}).get("partitions", [])
            if failed := [partition["error"] for partition in partitions if partition["state"] == "failed"]:
                raise SystemExit(f"{answer['user_key']}: {failed[0]}")
            if answer["ended"]:
                return answer

    def outcome(self, task):
        """A task when it has its outcome. It may still be on its way to be registered."""
        while True:
            try:
                answer = self.call("GET", f"/tasks/{task}")
                if answer["status"] in ("succeeded", "failed"):
                    return answer
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise
            time.sleep(0.2)

    def results(self, fanout):
        """What became of the tasks of a fan-out, of all pages."""
        path = f"/fanouts/{fanout}/results"
        while path:
            page = self.call("GET", path)
            yield from page["results"]
            path = page.get("next")

    def named(self, user_key):
        """The newest fan-out with a user key."""
        return self.call("GET", f"/fanouts?user_key={urllib.parse.quote(user_key)}&limit=1")["fanouts"][0]

    def stop(self):
        self.process.terminate()
        self.process.wait()
