"""What a run measured: latencies, counts and throughput of each scenario."""

import math
import statistics
import time


def percentile(values, share):
    """The value that this share of all values does not exceed (nearest rank)."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def milliseconds(times):
    """Median and 99th percentile as a text."""
    if not times:
        return "-", "-"
    return f"{1_000 * statistics.median(times):.0f}", f"{1_000 * percentile(times, 0.99):.0f}"


class Figures:
    """The figures of one scenario."""

    def __init__(self, name):
        self.name = name
        self.began = time.perf_counter()
        self.seconds = None
        self.requests = []
        self.sent = 0
        self.counts = {}

    def end(self):
        self.seconds = time.perf_counter() - self.began

    def count(self, **counts):
        """Counts of the columns `tasks`, `batches` and `calls`, and `over`: the seconds that throughput refers to."""
        self.counts.update(counts)

    def line(self):
        median, high = milliseconds(self.requests)
        tasks, over = self.counts.get("tasks"), self.counts.get("over")
        rate = f"{tasks / over:.0f}" if tasks and over else "-"
        counts = [self.counts.get(column, "-") for column in ("tasks", "batches", "calls")]
        return [self.name, f"{self.seconds:.1f}", len(self.requests), median, high, self.sent, counts[0], rate, *counts[1:]]


HEAD = ["scenario", "seconds", "requests", "median ms", "p99 ms", "messages", "tasks", "per s", "batches", "calls"]


def table(lines):
    """Lines under each other, texts to the left and numbers to the right."""
    lines = [[str(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  " + "  ".join(cells))
