"""How large the Lambda functions are, how long they take from their start to the first request for work, and their memory then.

Beside them, a function that does nothing. They start here against a Runtime API that has no work for them.
"""

import http.server
import os
import pathlib
import re
import statistics
import subprocess
import threading
import time
import zlib

from parts.common import read, scratch

STEPS = ["ack", "api", "elect", "group", "handle", "notify", "produce", "register", "sweep"]
EMPTY = "empty-function"


class Work(http.server.ThreadingHTTPServer):
    """A Runtime API that notes when it is first asked for work, and does not answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Asked)
        self.asked, self.at, self.over = threading.Event(), None, threading.Event()
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def handle_error(self, *_):
        pass


class Asked(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.at = time.perf_counter()
        self.server.asked.set()
        self.server.over.wait()


def variables():
    """What template.yaml gives functions, with values that lead nowhere."""
    template = (pathlib.Path(__file__).parents[2] / "template.yaml").read_text()
    values = {name: "1" for name in re.findall(r"^ {10}([A-Z_]+_CONCURRENCY): ", template, re.MULTILINE)}
    values |= {name: "none" for name in re.findall(r"^ {10}([A-Z_]+_TABLE): ", template, re.MULTILINE)}
    values |= {name: "http://127.0.0.1:9/0/none" for name in re.findall(r"^ {10}([A-Z_]+_QUEUE_URL): ", template, re.MULTILINE)}
    return values


def environment(port):
    return {
        "PATH": os.environ["PATH"], **variables(),
        "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}", "AWS_LAMBDA_FUNCTION_NAME": "none", "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_LOG_STREAM_NAME": "none", "AWS_LAMBDA_LOG_GROUP_NAME": "none",
    }


def start(program):
    """Milliseconds until a function asks for work, and its MiB then; none where there is no /proc."""
    work = Work()
    began = time.perf_counter()
    process = subprocess.Popen([program], env=environment(work.server_port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not work.asked.wait(120):
            raise SystemExit(f"{program} did not ask for work")
        peak = re.search(r"VmHWM:\s*(\d+)", read(f"/proc/{process.pid}/status"))
    finally:
        process.kill()
        process.wait()
        work.over.set()
        work.shutdown()
        work.server_close()
    return 1_000 * (work.at - began), int(peak.group(1)) / 1_024 if peak else None


def build(bench, names):
    """Builds them with the settings of the folder `functions`, as `sam build` does."""
    command = ["cargo", "build", "--release", "--quiet", *(word for name in names for word in ["-p", name])]
    subprocess.run(command, cwd=bench.root / "functions", check=True)
    host = re.search("^host: (.*)$", subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout, re.MULTILINE)
    return bench.root / "target" / host.group(1) / "release"


def run(bench):
    names = [EMPTY, *(f"fanfold-{step}" for step in bench.of(usual=STEPS, smallest=["elect"]))]
    built = bench.of(usual=None, smallest=bench.binaries) or build(bench, names)
    with scratch() as folder:
        for name in names:
            # As cargo-lambda leaves them.
            subprocess.run(["strip", "-o", folder / name, built / name], check=True)
        return start_in_turns(bench, names, folder)


def start_in_turns(bench, names, folder):
    starts = {name: [] for name in names}
    for _ in range(bench.of(usual=100, short=20, smallest=2)):
        for name in names:
            starts[name].append(start(folder / name))
    return {"functions": {name: measured(folder / name, starts[name]) for name in names}, "starts": len(starts[EMPTY])}


def measured(program, starts):
    milliseconds = sorted(took for took, _ in starts)
    peaks = [peak for _, peak in starts if peak is not None]
    return {"bytes": program.stat().st_size, "zipped_bytes": len(zlib.compress(program.read_bytes(), 6)),
            "start_ms": statistics.median(milliseconds), "start_p90_ms": milliseconds[len(milliseconds) * 9 // 10],
            "peak_mib": statistics.median(peaks) if peaks else None}
