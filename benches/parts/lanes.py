"""The same number of tasks in one lane, in a thousand, and in a lane each."""

from parts.common import tasks_folder


def run(bench):
    tasks = bench.of(usual=100_000, short=10_000, smallest=400)
    rows = []
    for lanes in [1, bench.of(usual=1_000, smallest=20), tasks]:
        with tasks_folder(bench, tasks, lanes, in_flight=10) as folder:
            rows.append({"lanes": lanes, **bench.fanfold(folder)})
    return {"rows": rows}
