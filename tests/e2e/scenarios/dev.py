"""Dev sessions: `fanfold dev` has batches of the deployed stack handled on this machine, and hands them back."""

import json
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from scenarios.policies import FANFOLD, Command
from stack import until


def dev(stack, api):
    """A session handles batches here; handed back, or killed, the stack's own batch API is called. No attempt counts: there is one."""
    policy = {"target": "string(content.n)", "linger": 0, "max_attempts": 1, "batch_api": {"url": api.url("leases")}}
    stack.expect(200, "PUT", "/policies/dev.job", policy)
    # Some calls are refused at first, and come again under their keys.
    here = lambda: len(api.ids("here"))
    there = lambda: len(api.ids("leases"))
    with tempfile.TemporaryDirectory() as folder:
        session = Session(stack, api, Path(folder), "here")
        refused = session.fanfold.run_dev("--call", api.url("here"))
        assert refused.returncode == 3 and "has the calls of the kind" in refused.stderr, refused
        fanout = tasks(stack, 6)
        until(lambda: f"the batches are handled here: {session.said}", 120, lambda: stack.fanout(fanout)["complete"])
        assert (here(), there()) == (6, 0), (here(), there())
        ended = session.end()
        assert ended == {"ended": True, "handled": 6, "handed_back": 0}, ended
        assert queues(stack) == [], queues(stack)
        lease = stack.expect(200, "GET", "/policies/dev.job/dev")
        assert lease["allowed"] and "lease" not in lease, lease
        fanout = tasks(stack, 3, 10)
        until("the batches are handled there", 120, lambda: stack.fanout(fanout)["complete"])
        assert (here(), there()) == (6, 3), (here(), there())
        killed(stack, api, Path(folder))
    print(f"  {here()} calls here, {there()} by the stack itself")


def killed(stack, api, folder):
    """A session is killed with calls that it has not answered. The lease ends by itself, and what it had is called again."""
    hangs = Hangs()
    session = Session(stack, api, folder, None, hangs.url, "--answers-within", "70s")
    time.sleep(6)  # what the functions know of the kind is at most five seconds old
    before = len(api.ids("leases"))
    fanout = tasks(stack, 2, 20)
    until("a call has come", 60, lambda: hangs.calls)
    session.process.send_signal(signal.SIGKILL)
    session.process.wait()
    took = until("the stack calls what the session had", 240, lambda: stack.fanout(fanout)["complete"])
    assert len(api.ids("leases")) == before + 2, api.ids("leases")
    ended = stack.fanout(fanout)
    assert (ended["succeeded"], ended["failed"]) == (2, 0), ended
    assert "lease" not in stack.expect(200, "GET", "/policies/dev.job/dev")
    for queue in queues(stack):
        stack.sqs.delete_queue(QueueUrl=queue)
    hangs.server.shutdown()
    print(f"  {took:.0f} s after a session was killed what it had was done by the stack")


def tasks(stack, count, first=0):
    """A fan-out whose tasks are each of a batch of its own; answers its id."""
    id, items = stack.open_fanout(count, user_key="dev")
    named = [{"id": item, "kind": "dev.job", "content": {"n": first + n}} for n, item in enumerate(items)]
    stack.expect(202, "POST", "/tasks", {"tasks": named})
    stack.figures.count(tasks=count)
    return id


def queues(stack):
    return stack.sqs.list_queues(QueueNamePrefix=f"{stack.name}-dev-").get("QueueUrls", [])


class Dev(Command):
    def command(self, *arguments):
        return [FANFOLD, "dev", "--kind", "dev.job", "--json", *arguments]

    def run_dev(self, *arguments):
        return subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True, timeout=120)


class Session:
    """`fanfold dev`, once it has the calls of the kind."""

    def __init__(self, stack, api, folder, name, url=None, *arguments):
        self.fanfold = Dev(stack, folder)
        command = self.fanfold.command("--call", url or api.url(name), *arguments)
        streams = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.process = subprocess.Popen(command, env=self.fanfold.environment, **streams)
        self.lines, self.said = [], []
        said = self.said
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()
        for line in self.process.stderr:
            said.append(line)
            if "are handled here" in line:
                break
        else:
            raise AssertionError(f"the session did not begin: {said}")
        self.reader = threading.Thread(target=lambda: said.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def end(self):
        """Ends it; answers its last line."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, "the session failed"
        until("its last line has come", 10, lambda: self.lines and "ended" in self.lines[-1])
        return json.loads(self.lines[-1])


class Hangs:
    """A batch API that answers nothing for a long time."""

    def __init__(self):
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        calls = self.calls = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                calls.append(self.rfile.read(int(self.headers["content-length"])))
                time.sleep(600)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
