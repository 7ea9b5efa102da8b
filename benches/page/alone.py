"""What Fanfold does alone: the example, lanes, acks, growth, latency, windows, functions."""

from page.chart import bars, lines, number
from page.table import chart, range_of, runs, table

WAYS = {"registered_to_called": "registered to called", "called_to_answered": "called to answered",
        "answered_to_acked": "answered to acked"}
KEPT = {"memory": "in memory", "disk": "on disk (`--data`)"}


def per(measured, what):
    """What each task costs of something."""
    return measured[what] / measured["total"]


def example(result, charts):
    kinds = [kind for kind in KEPT if kind in result]
    pick = lambda function: [function(result[kind]) for kind in kinds]
    rows = [
        ["tasks", *pick(lambda it: it["total"])],
        ["batches", *pick(lambda it: it["batches"])],
        ["calls of the batch API", *pick(lambda it: it["calls"])],
        ["completion notices", *pick(lambda it: it["notices"])],
        ["seconds, median (least to most)", *pick(range_of)],
        ["tasks per second", *pick(lambda it: it["tasks_per_second"])],
        ["processor seconds, batch API included", *pick(lambda it: it["processor_seconds"])],
        ["peak memory, MiB", *pick(lambda it: it["peak_mib"])],
        ["write units per task", *pick(lambda it: per(it, "write_units"))],
        ["read units per task", *pick(lambda it: per(it, "read_units"))],
        ["DynamoDB requests per task", *pick(lambda it: per(it, "dynamodb_requests"))],
        ["SQS requests per task", *pick(lambda it: per(it, "sqs_requests"))],
        ["Lambda invocations per task", *pick(lambda it: per(it, "invocations"))],
        ["dollars per million tasks", *pick(lambda it: it["dollars_per_million_tasks"]["total"])],
    ]
    times = [[words, *(result["memory"]["latency_ms"][way][part] for part in ["p50", "p90", "p99"])]
             for way, words in WAYS.items() if way in result["memory"]["latency_ms"]]
    prices = result["memory"]["prices"]
    return f"""## The example

The [example](../examples/parcels) groups {result["memory"]["total"]:,} orders of many destinations into truck loads of at
most 60. Each order has a key and is an item of one fan-out. Some orders are refused or tried again. {runs(result["memory"])}

{table(["", *(KEPT[kind] for kind in kinds)], rows)}
{wall(result)}
Dollars are list prices ({prices}). The cost of Lambda is computed from the time that invocations took here. The next table
shows how long tasks took in memory, in milliseconds. All tasks are registered at once, so most of this is waiting for
their turn.

{table(["time per task", "median", "90 %", "99 %"], times)}"""


def wall(result):
    """What the seconds of the example in memory are made of."""
    it, cores = result["memory"], result["machine"]["cores"]
    busy = it["processor_seconds"] / cores
    if busy >= it["seconds"]:
        return ""
    return f"""**Where the time goes.** {number(it["processor_seconds"])} processor seconds take {number(busy)} of the
{number(it["seconds"])} seconds in memory if all {cores} cores are busy. Fanfold and the batch API share these
cores. In the other {number(it["seconds"] - busy)} seconds they are not all busy. Most of this is at the end: calls that were
answered with `429` and `Retry-After: 1` are repeated after that second, and orders that must come again wait for a pause and
another batch. [Beside peers](#beside-peers) shows the same orders with a batch API that does nothing.
"""


def lanes(result, charts):
    rows = [[it["lanes"], it["total"], it["batches"], it["seconds"], it["tasks_per_second"], per(it, "write_units"),
             per(it, "sqs_requests"), per(it, "invocations"), it["dollars_per_million_tasks"]["total"], it["peak_mib"]]
            for it in result["rows"]]
    title = "Write units per task, by number of lanes"
    drawing = bars(title, [("the same number of tasks each time", [
        (f"{it['lanes']:,} {'lane' if it['lanes'] == 1 else 'lanes'}", per(it, "write_units"), True) for it in result["rows"]])])
    head = ["lanes", "tasks", "batches", "seconds", "tasks/s", "write units", "SQS requests", "invocations", "$ per million", "peak MiB"]
    return f"""## One lane, and a lane per task

The same {result["rows"][0]["total"]:,} tasks, each with a key, in one fan-out, for a batch API that does nothing: first with
one target for all, then with {result["rows"][1]["lanes"]:,} targets, then with a target per task. Batches have at most 60
tasks, and at most ten are in flight per lane. Units, requests and invocations are per task. Tasks of one lane share bundles,
batches, elections and messages. A task that is alone in its lane shares nothing, and is a batch of its own.

{chart(charts, "lanes", title, drawing)}
{table(head, rows)}"""


def acks(result, charts):
    rows = []
    for it in result["rows"]:
        million = 1_000_000 / it["items"]
        rows.append([it["items"], it["acks"], it["per_message"], it["seconds"], it["acks"] / it["seconds"],
                     (it["opening"]["write_units"] + it["acking"]["write_units"]) * million,
                     it["acking"]["sqs_requests"] * million, it["workers_sqs_requests"] * million, it["all_peak_mib"], it["notices"],
                     "yes" if it["exact"] else "NO"])
    head = ["items", "acks", "acks per message", "seconds", "acks/s", "write units per million items", "SQS requests per million items",
            "sent by the workers", "peak MiB", "notices", "counts exact"]
    return f"""## Acks

{result["rows"][0]["ackers"]} workers ack the items of a fan-out over the `ack` queue. **They ack each item twice**, in random
order over all workers, and one item in a hundred as failed. "Counts exact" means that the notice has the right numbers of
succeeded and failed items. Write units are those of opening and acking together. SQS requests are those of Fanfold's
functions (receiving, deleting, notices); the requests of the workers are in a column of their own. A bitfield of up to
7,168 items is one record of one write unit. An invocation gathers the acks of two seconds and writes each record once, so
the cost of an item depends on how many acks come together.

{table(head, rows)}"""


def growth(result, charts):
    kinds = {kind: result[kind] for kind in KEPT if result[kind]}
    title = "How cost, rate and memory grow"
    series = lambda of: [(KEPT[kind].replace("`", ""), [(it["tasks"], of(it)) for it in rows], style)
                         for (kind, rows), style in zip(kinds.items(), ["ours", "second"])]
    drawing = lines(title, [
        ("write units per task", series(lambda it: per(it, "write_units"))),
        ("tasks per second", series(lambda it: it["tasks_per_second"])),
        ("peak memory, MiB", series(lambda it: it["peak_mib"])),
    ])
    rows = [[KEPT[kind], it["tasks"], it["seconds"], it["tasks_per_second"], it["processor_seconds"], per(it, "write_units"),
             per(it, "sqs_requests"), per(it, "invocations"), it["peak_mib"], it.get("disk_mib")]
            for kind, rows in kinds.items() for it in rows]
    head = ["kept", "tasks", "seconds", "tasks/s", "processor seconds", "write units", "SQS requests", "invocations", "peak MiB", "MiB on disk"]
    return f"""## From ten thousand tasks to millions

Tasks of 227 targets, as in the example, each with a key, in one fan-out, for a batch API that does nothing. Units, requests
and invocations are per task. The charts have a logarithmic horizontal axis. Each size was run once. A million tasks and
more are measured with `--full`, on disk only{"" if max(it["tasks"] for it in result["disk"]) >= 1_000_000 else ": not in this run"}.

{chart(charts, "growth", title, drawing)}
{table(head, rows)}"""


def latency(result, charts):
    words = {"single": "a lane that was never used", "again": "a lane that was used before"}
    rows = [[words[kind], it["tasks"], it["median_ms"], it["p90_ms"], it["most_ms"]] for kind, it in result["singles"].items()]
    lane = result["lane"]
    return f"""## Latency

The time from sending `POST /tasks` with one task to its call, in milliseconds, with `linger: 0s`, one task after the other,
on `fanfold up`:

{table(["a single task in", "tasks", "median", "90 %", "longest"], rows)}
A lane with `max_in_flight: 1`, batches of {lane["per_batch"]} and a batch API that answers at once handled
{number(lane["batches_per_second"])} batches per second ({lane["batches"]} batches).
"""


def windows(result, charts):
    cost = lambda it, per: [it["used" if "used" in it else "acking"][what] / it[per] for what in ["sqs_requests", "invocations"]]
    rows = [[load, name, it["registered_to_called_ms"]["p50"], it["registered_to_called_ms"]["p99"], it["calls"],
             it["used"]["write_units"] / it["tasks"], *cost(it, "tasks"), it["used"]["dollars_per_million"]]
            for load, its in result["batching"].items() for name, it in its.items()]
    acks = [[name, it["acking"]["write_units"] / it["items"], *cost(it, "items"), it["acking"]["dollars_per_million"]]
            for name, it in result["acks"].items()]
    head = ["load", "windows", "median, ms", "99 %, ms", "batches", "write units", "SQS requests", "invocations", "$ per million"]
    first = next(iter(result["acks"].values()))
    load, its = next(iter(result["batching"].items()))
    more = lambda name: its[name]["used"]["dollars_per_million"] / its["as deployed"]["used"]["dollars_per_million"] - 1
    compared = lambda name: f"{abs(more(name)) * 100:.0f} % {'more' if more(name) > 0 else 'less'}"
    electing, both = "`elect` with 100 in 1 s", "`elect` and `group` with 100 in 1 s"
    weighed = "" if both not in its else f"""
At {load}, the window of `register` saves much: without it, a task costs {compared("`register` without")}, since requests
are stored one by one, and batches are smaller. With a window of `elect` it costs {compared(electing)}, and with windows of
`elect` and `group` {compared(both)}, but tasks wait for them. `handle` takes one message per invocation: a batch waits for no
other.
"""
    note = f"\n{result['note']}\n" if "note" in result else ""
    return f"""## Windows

Lambda gives a function more than ten messages at once only if its event source has a window of at least a second, for which
a message may wait for others. On a quiet queue Lambda [may wait for 20 s](SCALING.md#queues-and-functions), which the local
runner does not. Messages with ten tasks each come by the queue `register`; the tasks have 100 targets, and a
linger of 1 s. The times are from sending a task to its call. Figures are per task.

{table(head, rows)}{weighed}{note}
The same for `ack`: {first["items"]:,} items of a fan-out, each acked by a message of its own, ten messages per request, at
most 100 requests per second. Figures are per item.

{table(["window of `ack`", "write units", "SQS requests", "invocations", "$ per million"], acks)}"""


def functions(result, charts):
    mib = 1_048_576
    rows = [[name.removeprefix("fanfold-").replace("empty-function", "one that does nothing"), it["bytes"] / mib, it["zipped_bytes"] / mib,
             it["start_ms"], it["start_p90_ms"], it["peak_mib"]] for name, it in result["functions"].items()]
    head = ["function", "MiB", "MiB zipped", "start, ms, median", "start, ms, 90 %", "peak MiB"]
    return f"""## Functions

The Lambda functions, built as `sam build` does, beside one that does nothing. "Start" is the time on this machine from
starting the program to its first request for work, over {result["starts"]} starts in turns. "Peak" is the most memory until
then. Lambda's own time for a cold start, which is much longer, is not in it.

{table(head, rows)}"""


SECTIONS = [("example", example), ("lanes", lanes), ("acks", acks), ("growth", growth), ("latency", latency), ("windows", windows),
            ("functions", functions)]
