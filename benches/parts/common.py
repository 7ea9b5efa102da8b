"""What every part needs: a command measured as a whole, folders of tasks, and where results are kept."""

import contextlib
import datetime
import glob
import json
import os
import pathlib
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading

# Targets of the tasks that are made up: as many as the example's orders have.
TARGETS = 227

POLICY = """
kind: item
target: content.target
key: content.number
max_batch: 60
linger: 2s
max_in_flight: {in_flight}
batch_api: {{url: "http://127.0.0.1:${{PORT}}/"}}
"""


class Bench:
    """How the benches run."""

    def __init__(self, root, binaries, results, size, rounds):
        self.root, self.binaries, self.results, self.size = root, binaries, results, size
        self.rounds = 1 if size == "smallest" else rounds

    def of(self, **sizes):
        """What is meant for the size that was asked for."""
        return sizes.get(self.size, sizes["usual"])

    def command(self, name):
        return str(self.binaries / name)

    def keep(self, name, result):
        """Writes the result of a part."""
        result = {"date": datetime.date.today().isoformat(), "size": self.size, "rounds": self.rounds,
                  "machine": machine(), "version": version(self.root), **result}
        self.results.mkdir(parents=True, exist_ok=True)
        (self.results / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")

    def fanfold(self, folder, *options):
        """Runs the tasks of a folder. Returns what is worth keeping of the summary, and what the processes took."""
        run = measure([self.command("fanfold"), "run", str(folder), "--json", *options], good=[0, 3])
        summary = json.loads(run.pop("output"))
        total, seconds = summary["total"], summary["wall_ms"] / 1_000
        kept = ["total", "succeeded", "failed", "duplicates", "batches", "calls", "notices", "write_units", "read_units",
                "dynamodb_requests", "sqs_requests", "latency_ms", "dollars_per_million_tasks", "prices"]
        return {**{name: summary[name] for name in kept}, "seconds": seconds, "tasks_per_second": total / seconds,
                "invocations": sum(summary["invocations"].values()),
                "peak_mib": summary["peak_rss_kib"] / 1_024 if summary["peak_rss_kib"] else None,
                **run}

    def engine(self, *options):
        """Runs a part of the crate beside this. Returns its result, and what the process took."""
        run = measure([self.command("fanfold-benches"), *map(str, options)])
        return {**json.loads(run.pop("output")), **run}


@contextlib.contextmanager
def tasks_folder(bench, tasks, lanes=TARGETS, in_flight=2):
    """A folder of tasks whose batch API does nothing."""
    with scratch() as folder:
        with open(folder / "tasks.csv", "w") as file:
            file.write("number,target,city,weight_kg\n")
            for number in range(tasks):
                file.write(f"N-{number:07},T-{number % lanes:06},Baile Átha Cliath,{number % 300 / 10}\n")
        (folder / "policy.yaml").write_text(POLICY.format(in_flight=in_flight))
        (folder / "run.yaml").write_text(json.dumps({"start": [bench.command("fanfold-benches"), "api"]}))
        yield folder


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="fanfold-bench-") as folder:
        yield pathlib.Path(folder)


def measure(command, good=(0,), **options):
    """Runs a command. Returns its output, and the processor time and most memory of it and of the processes it starts."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, **options)
        with Watched(process) as watched:
            output = process.stdout.read()
        used = watched.ended()
        if process.returncode not in good:
            errors.seek(0)
            sys.stderr.buffer.write(errors.read()[-4_000:])
            raise SystemExit(f"{pathlib.Path(command[0]).name} ended with status {process.returncode}")
    return {"output": output, **used}


class Watched:
    """What a process and those it starts take. (What `wait` says of memory begins with that of the parent process.)"""

    def __init__(self, process):
        self.process, self.peaks, self.over = process, {}, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.wait(0.1):
            self.look(self.process.pid)

    def look(self, pid):
        peak = re.search(r"VmHWM:\s*(\d+)", read(f"/proc/{pid}/status"))
        if peak:
            self.peaks[pid] = int(peak.group(1))
        for children in glob.glob(f"/proc/{pid}/task/*/children"):
            for child in read(children).split():
                self.look(int(child))

    def ended(self):
        """Waits for the process. Its processor time is with that of the processes it waited for."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        peak = sum(self.peaks.values()) / 1_024 if self.peaks else None
        return {"processor_seconds": used.ru_utime + used.ru_stime, "all_peak_mib": peak}


def in_turns(bench, measured):
    """Measures several things in turns, so that what else goes on meets all of them. `measured`: functions by name.
    Returns for each its measurements, that with the median time first."""
    rounds = {name: [] for name in measured}
    for _ in range(bench.rounds):
        for name, function in measured.items():
            rounds[name].append(function())
    return {name: summed_up(measurements) for name, measurements in rounds.items()}


def summed_up(measurements):
    """The measurement with the median time, and how far the others were from it."""
    ordered = sorted(measurements, key=lambda measured: measured["seconds"])
    seconds = [measured["seconds"] for measured in ordered]
    processor = [measured["processor_seconds"] for measured in ordered if "processor_seconds" in measured]
    middle = dict(ordered[(len(ordered) - 1) // 2])
    if processor:
        middle["processor_seconds"] = statistics.median(processor)
    return {**middle, "rounds": len(ordered), "seconds_least": seconds[0], "seconds_most": seconds[-1]}


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def machine():
    found = re.search(r"model name\s*:\s*(.*)", read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s*(\d+)", read("/proc/meminfo"))
    return {"processor": found.group(1) if found else platform.processor(), "cores": os.cpu_count(),
            "memory_gib": round(int(memory.group(1)) / 1_048_576) if memory else None,
            "system": f"{platform.system()} {platform.release().split('-')[0]}",
            "load_after": round(os.getloadavg()[0], 1)}


def version(root):
    """Which commit was measured."""
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return commit.stdout.strip() or None


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
