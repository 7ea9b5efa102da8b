"""docs/BENCHMARKS.md and its charts, from the results that are there."""

import json

from page import against, alone
from page.wrap import wrapped

FILE = "BENCHMARKS.md"
CHARTS = "benchmarks"

HEAD = """# Benchmarks

`benches/run.py` (or `just bench`) writes this page from [its results](../benches/results). Every figure comes from a run of
that command; none was put in by hand. The benches measure the local runner: all steps of the stack in one process, over
the embedded DynamoDB and SQS. Write units, read units, requests and invocations per task carry over to AWS: they are
counted as AWS would bill them. Times, memory and processor seconds are those of this machine. On AWS every request takes
some milliseconds, and thousands run side by side.

<!-- not run: takes twenty minutes -->
```sh
benches/run.py                    # every part, some 20 minutes on a quiet machine with two cores
benches/run.py --short            # with fewer lanes and tasks
benches/run.py --only acks peers  # some parts
benches/run.py --full             # the largest sizes, too
benches/run.py --render           # only this page, from the existing results
```
"""


def write(results, docs):
    """Writes the page and its charts."""
    found = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    charts, parts = {}, [HEAD]
    for name, section in [*alone.SECTIONS, *against.SECTIONS]:
        if name in found:
            parts.append(section(found[name], charts) + busy(found[name]["machine"]))
    parts.append(where(found))
    folder = docs / CHARTS
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        (folder / f"{name}.svg").write_text(chart)
    (docs / FILE).write_text(wrapped("\n".join(parts)))


def busy(machine):
    """A warning, if others worked on the machine."""
    if machine["load_after"] <= 3 * machine["cores"]:
        return ""
    return f"""
**This part was measured on a busy machine** (load average {machine["load_after"]} on {machine["cores"]} cores). Seconds and
rates are worse than on a quiet one, most of all where several processes wait for each other. Processor seconds suffer
less; units, requests and counts do not.
"""


def where(found):
    """Which part was measured where and when."""
    from page.table import table
    rows = []
    for name, result in found.items():
        machine = result["machine"]
        what = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}"
        rows.append([name, result["date"], f"`{result['version']}`", what, f"{machine['load_after']}", result["size"]])
    head = ["part", "measured", "commit", "machine", "load after", "sizes"]
    return f"""## Where this was measured

{table(head, rows)}
"Load after" is the machine's load average after the part was measured. It includes the bench's own work. If it is far
above the number of cores, others worked on the machine, too. Units, requests and counts do not depend on it.
"""
