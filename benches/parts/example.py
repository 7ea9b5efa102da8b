"""The example: 42,049 orders, in memory and with everything on disk."""

import contextlib
import json
import shutil

from parts.common import in_turns, scratch


@contextlib.contextmanager
def folder(bench):
    """The example, with its batch API as it was built."""
    with scratch() as place:
        for name in ["policy.yaml", "orders.csv"]:
            shutil.copy(bench.root / "examples" / "parcels" / name, place)
        (place / "run.yaml").write_text(json.dumps({"start": [bench.command("parcels-api")]}))
        yield place


def limit(bench):
    return bench.of(usual=[], smallest=["--limit", "200"])


def in_memory(bench):
    with folder(bench) as place:
        return bench.fanfold(place, *limit(bench))


def on_disk(bench):
    with folder(bench) as place:
        return bench.fanfold(place, "--data", str(place / "data"), *limit(bench))


def run(bench):
    return in_turns(bench, {"memory": lambda: in_memory(bench), "disk": lambda: on_disk(bench)})
