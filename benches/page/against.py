"""Fanfold beside simpler algorithms and beside peers."""

from page.chart import bars, number
from page.table import chart, range_of, runs, table

TRACKERS = {"fanfold": "Fanfold, groups of 7,168", "bits64": "groups of 64 items", "counter": "a record per item"}
ALGORITHMS = {"fanfold": "Fanfold", "plain": "the plain algorithm"}
PEERS = {"fanfold": "Fanfold", "example": "Fanfold, whole example", "bullmq": "BullMQ flow", "celery": "Celery chord"}


def baselines(result, charts):
    batching, tracking = result["batching"], result["tracking"]
    writes = lambda it: (it["opening"]["write_units"] + it["acking"]["write_units"]) / it["items"]
    title = "Write units beside simpler algorithms"
    drawing = bars(title, [
        ("per task that is grouped into batches", [
            (words, batching[name]["used"]["write_units"] / batching[name]["tasks"], name == "fanfold") for name, words in ALGORITHMS.items()]),
        ("per item that is tracked", [(words, writes(tracking[name]), name == "fanfold") for name, words in TRACKERS.items()]),
    ])
    of = batching["fanfold"]
    grouped = [[words, range_of(it), it["used"]["write_units"] / it["tasks"], it["used"]["read_units"] / it["tasks"],
                it["used"]["dynamodb_requests"] / it["tasks"], it["used"]["sqs_requests"] / it["tasks"],
                it["used"]["invocations"] / it["tasks"], it["used"]["dollars_per_million"], it["calls"], it["processor_seconds"]]
               for name, words in ALGORITHMS.items() for it in [batching[name]]]
    tracked = [[words, range_of(it), writes(it), it["acking"]["read_units"] / it["items"],
                (it["opening"]["dynamodb_requests"] + it["acking"]["dynamodb_requests"]) / it["items"],
                it["acking"]["sqs_requests"] / it["items"],
                it["opening"]["dollars_per_million"] + it["acking"]["dollars_per_million"], it["processor_seconds"],
                "yes" if it["exact"] else "NO"]
               for name, words in TRACKERS.items() for it in [tracking[name]]]
    grouped_head = ["grouping", "seconds", "write units", "read units", "DynamoDB requests", "SQS requests", "invocations", "$ per million",
                    "calls", "processor seconds"]
    tracked_head = ["tracking", "seconds", "write units", "read units", "DynamoDB requests", "SQS requests", "$ per million", "processor seconds",
                    "counts exact"]
    first = tracking["fanfold"]
    return f"""## Beside simpler algorithms

The simpler algorithms were written for this bench ([sources](../benches/src)). They run on the same embedded engine, behind
the same queues and event sources, with the same requests and messages.
{runs(of)}

{chart(charts, "baselines", title, drawing)}
**Grouping.** {of["tasks"]:,} tasks of {of["targets"]} targets, {of["per_request"]:,} per request, without keys and in no
fan-out; batches of at most {of["max_batch"]}, a linger of {of["linger_seconds"]} s. Figures are per task. The plain algorithm is the
published one (Sun and Shan, "Group-batching Algorithm for High-throughput Network Requests"). Each task is a workflow that
stands for election until some leader has taken it. Its status is written four times (created, batched, in progress,
succeeded) under an index by target and status. Where the paper leaves something open, the bench takes the cheapest way. The
plain algorithm does less: it does not fence a leader that wakes up late, it loses tasks in a crash between marking and
listing them, and it does not limit calls in flight.

{table(grouped_head, grouped)}
**Tracking.** A fan-out of {first["items"]:,} items, each acked twice by {first["ackers"]} workers, {first["per_message"]} items per
message. Figures are per item. The other two are as exact (a transaction changes the counts with the records that they
count) and keep no index, but do less: they do not send lost messages again, and their fan-outs cannot be listed. A record
per item needs a transaction per 99 items, which costs double, and a record that every worker writes.

{table(tracked_head, tracked)}"""


def peers(result, charts):
    rows = result["rows"]
    name = lambda key: "{}, {}".format(PEERS[key.split(", ")[0]], {"memory": "in memory", "disk": "on disk"}[key.split(", ")[1]])
    ours = lambda key: key.startswith(("fanfold", "example"))
    title = "The same items by other means"
    drawing = bars(title, [
        ("items per second", [(name(key), it["tasks_per_second"], ours(key)) for key, it in rows.items()]),
        ("processor seconds per 1,000 items: client, workers and server", [
            (name(key), it["processor_seconds"] * 1_000 / it["total"], ours(key)) for key, it in rows.items()]),
    ])
    body = [[name(key), it["total"], range_of(it), it["tasks_per_second"], it["processor_seconds"],
             it["processor_seconds"] * 1_000 / it["total"], it["all_peak_mib"]] for key, it in rows.items()]
    head = ["", "items", "seconds", "items/s", "processor seconds", "the same per 1,000 items", "peak MiB, all processes"]
    versions = result["versions"]
    skipped = "".join(f"\n{PEERS[peer]} was skipped: {why}.\n" for peer, why in result["skipped"].items())
    return f"""## Beside peers

BullMQ's flow (one parent with a child per item) and Celery's chord (a header with a task per item, and a callback) run with
the example's orders, each on a Redis of its own on the same machine. In the same run, Fanfold groups these orders by
destination for a batch API that does nothing, as the peers' workers do nothing. It also runs the whole
[example](#the-example), whose batch API refuses some orders and is busy at times. {runs(next(iter(rows.values())))} BullMQ {versions["bullmq"]} on Node {versions["node"]}, Celery {versions["celery"]} on Python
{versions["python"]}, Redis {versions["redis-server"]}. Time is from the first request to the end of the whole.
{skipped}
{chart(charts, "peers", title, drawing)}
{table(head, body)}
These differences matter:

- **What is done per item.** Fanfold groups the orders by destination into batches, calls a batch API over HTTP for each
  batch, keeps the outcome of each order, and does not call duplicates. The peers' workers do nothing with an item
  and group nothing. To call a batch API once per truck, an application would have to build that on top.
- **What is waited for.** In the whole example one call in 25 is answered with `429` and `Retry-After: 1`, and some orders
  must come again with another batch. So one or two seconds at its end are spent waiting, with idle processors. The peers
  have nothing to try again.
{tail(rows["fanfold, memory"], rows["example, memory"], result["machine"]["cores"])}- **Where the state is.** "In memory" keeps nothing on any side. "On disk" is Fanfold's `--data` (SQLite's log, each commit
  written) and Redis' append-only file, flushed each second (`everysec`). Killed processes lose nothing on either side; a
  power cut may cost the last moments. Redis' own default, snapshots every few minutes, is neither. Fanfold's time includes a
  DynamoDB and an SQS in one process, with their checks, metering and JSON; Redis is a small fast server.
- **What is promised.** Fanfold reports the end once, with exact counts, whatever is repeated or killed, and calls a batch
  again only under the same key. BullMQ and Celery deliver jobs at least once. A BullMQ job whose worker stalls runs again,
  and by default a parent waits for a failed child. Celery acks tasks before they run by default, so a killed worker loses
  the tasks that it had, and then the chord's callback does not run.
- **How it was set up.** Workers are warm before the time starts. BullMQ: one process that adds the flow in one call, one
  worker process with a concurrency of 100. Celery: one prefork worker with a process per core, generous prefetching, results
  in no order. One client publishes the chord, task by task. This is most of its time, so it got fewer items unless `--full`
  was given. None of them was tuned further.
"""


def tail(idle, whole, cores):
    """What the whole example takes beside the same orders with an idle batch API."""
    more, work = whole["seconds"] - idle["seconds"], (whole["processor_seconds"] - idle["processor_seconds"]) / cores
    if not 0 < work < more:
        return ""
    return f"""- **What the example takes longer for.** With the batch API that does nothing, the processor time is that of {cores} busy
  cores for {number(idle["processor_seconds"] / cores)} of {number(idle["seconds"])} seconds in memory. So the processors set the
  rate of {number(idle["tasks_per_second"])} orders per second. The whole example takes {number(more)} seconds more.
  {number(work)} of these are processor time on {cores} cores: its batch API reads and judges orders and writes files, and there
  are {whole["calls"] - idle["calls"]} more calls. The other {number(more - work)} seconds are mostly the waiting at its end.
- **Why the example has other seconds [above](#the-example).** Those were other runs of the same command. Nothing ran beside
  it there or here, as everything is taken in turns. Compare the processor seconds: what differs most is the waiting at the
  end. Its length is chance: the id of a batch, which is new in each run, decides whether its call is turned away, and pauses
  before orders come again are random.
"""


SECTIONS = [("baselines", baselines), ("peers", peers)]
