"""A function under the AWS Runtime Interface Emulator, which speaks Lambda's runtime API to it."""

import json
import os
import pathlib
import platform
import subprocess
import time
import urllib.error
import urllib.request

from ports import free_ports


def program():
    """The emulator that comes with SAM's command line, whose Python is the one on the path."""
    where = ["python", "-c", "import samcli; print(samcli.__path__[0])"]
    folder = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
    processor = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    return pathlib.Path(folder) / "local" / "rapid" / f"aws-lambda-rie-{processor}"


class Function:
    """A function that runs until the `with` ends."""

    def __init__(self, bootstrap, variables, log):
        assert bootstrap.exists(), f"{bootstrap} is missing: run `sam build`"
        self.bootstrap = bootstrap
        self.port, runtime = free_ports(2)
        addresses = [
            "--runtime-interface-emulator-address", f"127.0.0.1:{self.port}",
            "--runtime-api-address", f"127.0.0.1:{runtime}",
        ]
        environment = {**os.environ, **variables}
        self.process = subprocess.Popen([program(), *addresses, bootstrap], env=environment, stdout=log, stderr=log)

    def invoke(self, event):
        """Sends an event; answers what the function answered, and how long that took."""
        url = f"http://127.0.0.1:{self.port}/2015-03-31/functions/function/invocations"
        for _ in range(200):
            assert self.process.poll() is None, f"{self.bootstrap} ended at once"
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(url, data=event, timeout=60) as answer:
                    return json.loads(answer.read()), time.perf_counter() - began
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ConnectionRefusedError):
                    raise
                time.sleep(0.05)
        raise AssertionError(f"{self.bootstrap} does not listen at {url}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
