"""The example: 42,049 orders, in memory and with everything on disk."""

import contextlib
import json
import shutil

from parts.common import in_turns, scratch


@contextlib.contextmanager
def folder(bench, idle=False):
    """The example, with its batch API as it was built, or with an idle one, which does nothing."""
    batch_api = [bench.command("fanfold-benches"), "api"] if idle else [bench.command("parcels-api")]
    with scratch() as place:
        for name in ["policy.yaml", "orders.csv"]:
            shutil.copy(bench.root / "examples" / "parcels" / name, place)
        (place / "run.yaml").write_text(json.dumps({"start": batch_api}))
        yield place


def limit(bench):
    return bench.of(usual=[], smallest=["--limit", "200"])


def in_memory(bench, idle=False):
    with folder(bench, idle) as place:
        return bench.fanfold(place, *limit(bench))


def on_disk(bench, idle=False):
    with folder(bench, idle) as place:
        return bench.fanfold(place, "--data", str(place / "data"), *limit(bench))


def run(bench):
    return in_turns(bench, {"memory": lambda: in_memory(bench), "disk": lambda: on_disk(bench)})
