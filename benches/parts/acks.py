"""A fan-out acked by 16 workers over the queue, each item twice, in random order."""


def run(bench):
    usual = [(100_000, 1), (100_000, 10), (100_000, 100), (1_000_000, 100)]
    full = [*usual, (10_000_000, 1), (10_000_000, 100)]
    rows = []
    for items, per_message in bench.of(usual=usual, smallest=[(8_000, 10)], full=full):
        options = ["--tracker", "fanfold", "--items", items, "--per-message", per_message]
        rows.append(bench.engine("acks", *options))
    return {"rows": rows}
