"""BullMQ's flow and Celery's chord on a Redis of their own, with the example's items; beside Fanfold, in turns."""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from parts import example
from parts.common import Watched, free_port, in_turns, measure, scratch

# What does not persist, and what does so as Fanfold's --data does: against a killed process, not against a power cut.
STORAGE = {"memory": ["--save", "", "--appendonly", "no"],
           "disk": ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]}


def run(bench):
    with scratch() as folder:
        items = orders(bench, folder, bench.of(usual=None, smallest=200))
        # A chord makes one request after the other for each item: a part of them shows the rate.
        few = orders(bench, folder, bench.of(usual=2_000, full=None, smallest=50), "few.json")
        measured, skipped = {"fanfold, memory": lambda: example.in_memory(bench, idle=True),
                             "fanfold, disk": lambda: example.on_disk(bench, idle=True),
                             "example, memory": lambda: example.in_memory(bench),
                             "example, disk": lambda: example.on_disk(bench)}, {}
        try:
            redis = redis_version()
            bullmq = Bullmq(bench)
            for storage in STORAGE:
                measured[f"bullmq, {storage}"] = lambda storage=storage: with_redis(storage, bullmq, items)
        except Missing as missing:
            redis, skipped["bullmq"] = None, str(missing)
        try:
            redis = redis_version()
            celery = Celery(bench)
            measured["celery, memory"] = lambda: with_redis("memory", celery, few)
        except Missing as missing:
            skipped["celery"] = str(missing)
        for name, why in skipped.items():
            print(f"{name} is skipped: {why}", file=sys.stderr)
        rows = in_turns(bench, measured)
        pinned = json.loads((bench.root / "benches/peers/bullmq/package.json").read_text())["dependencies"]
        lines = (bench.root / "benches/peers/celery/requirements.txt").read_text().splitlines()
        pinned |= dict(line.split("==") for line in lines if line.startswith(("celery=", "redis=")))
        return {"rows": rows, "skipped": skipped, "versions": {
            "redis-server": redis, "node": output_of(["node", "--version"]), "python": sys.version.split()[0],
            "bullmq": pinned["bullmq"], "celery": pinned["celery"]}}


class Missing(Exception):
    """What a peer needs is not here."""


def orders(bench, folder, most, name="items.json"):
    with open(bench.root / "examples/parcels/orders.csv") as file:
        rows = list(csv.DictReader(file))[:most]
    path = folder / name
    path.write_text(json.dumps(rows))
    return path


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().lstrip("v")
    except (OSError, subprocess.CalledProcessError):
        return None


def redis_version():
    said = output_of(["redis-server", "--version"])
    if not said:
        raise Missing("there is no redis-server")
    return dict(word.split("=", 1) for word in said.split() if "=" in word)["v"]


def install(bench, *command, **options):
    if bench.size == "smallest":
        raise Missing("the smallest size installs nothing")
    if shutil.which(command[0]) is None:
        raise Missing(f"there is no {pathlib.Path(command[0]).name}")
    if subprocess.run(command, stdout=sys.stderr, **options).returncode:
        raise Missing(f"{pathlib.Path(command[0]).name} could not install it")


class Bullmq:
    """A flow in Node."""

    def __init__(self, bench):
        # Outside of what is committed.
        self.folder = bench.root / "target" / "benches" / "bullmq"
        shutil.copytree(bench.root / "benches" / "peers" / "bullmq", self.folder, dirs_exist_ok=True)
        if not (self.folder / "node_modules" / "bullmq").is_dir():
            install(bench, "npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", cwd=self.folder)

    def measure(self, port, items):
        return measure(["node", "flow.js", str(port), str(items)], cwd=self.folder)


class Celery:
    """A chord in Python."""

    def __init__(self, bench):
        self.folder = bench.root / "target" / "benches" / "celery"
        shutil.copytree(bench.root / "benches" / "peers" / "celery", self.folder, dirs_exist_ok=True)
        self.python = self.folder / "venv" / "bin" / "python"
        if not self.python.is_file():
            install(bench, sys.executable, "-m", "venv", str(self.folder / "venv"))
            quiet = ["--quiet", "--disable-pip-version-check"]
            install(bench, str(self.python), "-m", "pip", "install", *quiet, "-r", str(self.folder / "requirements.txt"))

    def measure(self, port, items):
        environment = {**os.environ, "REDIS_PORT": str(port), "PYTHONDONTWRITEBYTECODE": "1"}
        return measure([str(self.python), "chord.py", str(items)], cwd=self.folder, env=environment)


def with_redis(storage, peer, items):
    """Measures a peer with a fresh Redis, whose processor time counts, too."""
    port = free_port()
    with scratch() as folder:
        options = ["--port", str(port), "--dir", str(folder), *STORAGE[storage]]
        redis = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", *options], stdout=subprocess.DEVNULL)
        with Watched(redis) as watched:
            try:
                while output_of(["redis-cli", "-p", str(port), "ping"]) != "PONG":
                    time.sleep(0.05)
                run = peer.measure(port, items)
            finally:
                redis.send_signal(signal.SIGTERM)
        server = watched.ended()
    said = json.loads(run["output"].decode().splitlines()[-1])
    if said["done"] != said["items"]:
        raise SystemExit(f"of {said['items']} items {said['done']} were done")
    return {"total": said["items"], "seconds": said["seconds"], "adding_seconds": said["adding_seconds"],
            "tasks_per_second": said["items"] / said["seconds"],
            "processor_seconds": run["processor_seconds"] + server["processor_seconds"],
            "redis_processor_seconds": server["processor_seconds"],
            "all_peak_mib": run["all_peak_mib"] + server["all_peak_mib"], "redis_peak_mib": server["all_peak_mib"]}
