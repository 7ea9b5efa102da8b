#!/usr/bin/env python3
"""The benches: measures Fanfold beside simpler algorithms and peers, and writes docs/BENCHMARKS.md.

    benches/run.py                    every part, some 20 minutes on a quiet machine with two cores
    benches/run.py --short            with fewer lanes and tasks
    benches/run.py --only acks peers  some parts
    benches/run.py --full             the largest sizes, too (hours)
    benches/run.py --render           only the page, from the results that are there

Each part writes benches/results/NAME.json as soon as it is measured. Needs Python 3 and Rust; for the peers also Node with npm,
redis-server (Debian's package) and the registries of npm and PyPI: without them they are skipped.
"""

import argparse
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from page import document
from parts import acks, baselines, common, example, functions, growth, lanes, latency, peers, windows

PARTS = {part.__name__.removeprefix("parts."): part for part in [example, lanes, acks, growth, latency, windows, functions, baselines, peers]}
ROOT = pathlib.Path(__file__).resolve().parent.parent


def build():
    packages = ["fanfold-cli", "parcels-api", "fanfold-benches"]
    command = ["cargo", "build", "--release", "--quiet", *(word for name in packages for word in ["-p", name])]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target" / "release"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", dest="size", action="store_const", const="full", default="usual")
    size.add_argument("--short", dest="size", action="store_const", const="short", help="fewer lanes and tasks")
    size.add_argument("--smallest", dest="size", action="store_const", const="smallest", help="to try the benches themselves")
    parser.add_argument("--rounds", type=int, default=3, help="how often what is compared is measured, in turns (3)")
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.add_argument("--binaries", type=pathlib.Path, help="where the commands are; without it they are built")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "benches" / "results")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs", help="where the page is written")
    asked = parser.parse_args()
    if not asked.render:
        binaries = (asked.binaries or build()).resolve()
        bench = common.Bench(ROOT, binaries, asked.results, asked.size, asked.rounds)
        for name in asked.only or PARTS:
            began = time.monotonic()
            print(f"{name} …", file=sys.stderr, flush=True)
            bench.keep(name, PARTS[name].run(bench))
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    document.write(asked.results, asked.docs)


if __name__ == "__main__":
    main()
