"""Simpler algorithms on the same engine, with the same requests and messages."""

from parts.common import in_turns


def run(bench):
    items = bench.of(usual=100_000, smallest=1_000)
    tasks, targets = bench.of(usual=(10_000, 60), smallest=(300, 3))

    def acks(tracker):
        return lambda: bench.engine("acks", "--tracker", tracker, "--items", items, "--per-message", 10)

    def batching(algorithm):
        return lambda: bench.engine("batching", "--algorithm", algorithm, "--tasks", tasks, "--targets", targets)

    return {
        "tracking": in_turns(bench, {name: acks(name) for name in ["fanfold", "bits64", "counter"]}),
        "batching": in_turns(bench, {name: batching(name) for name in ["fanfold", "plain"]}),
    }
