"""A Celery chord: a header with a task per item, and an end. Usage: python chord.py FILE, a JSON list of items; REDIS_PORT in the
environment. Prints how long it took from the first request to the end's result."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from celery import chord

from items import app, end, item

rows = json.loads(pathlib.Path(sys.argv[1]).read_text())
worker = subprocess.Popen(
    [sys.executable, "-m", "celery", "-A", "items", "worker", "--concurrency", str(os.cpu_count()),
     "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "error"],
    cwd=pathlib.Path(__file__).parent, stdout=sys.stderr)
while not app.control.ping(timeout=0.5):
    pass
began = time.monotonic()
result = chord(item.s(row) for row in rows)(end.s())
added = time.monotonic()
ended_with = result.get(interval=0.01)
over = time.monotonic()
worker.send_signal(signal.SIGTERM)
worker.wait()
print(json.dumps({
    "items": len(rows),
    "seconds": over - began,
    "adding_seconds": added - began,
    "done": ended_with,
}))
