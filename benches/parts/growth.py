"""How cost, time and memory grow with the number of tasks, in memory and with everything on disk."""

from parts.common import tasks_folder

# From here on only with everything on disk: that is what such runs are for.
LARGE = 1_000_000


def run(bench):
    usual = [10_000, 30_000, 100_000, 300_000]
    sizes = bench.of(usual=usual, short=usual[:3], full=[*usual, 1_000_000, 3_000_000, 10_000_000], smallest=[300])
    memory, disk = [], []
    for tasks in sizes:
        with tasks_folder(bench, tasks) as folder:
            if tasks < LARGE:
                memory.append({"tasks": tasks, **bench.fanfold(folder)})
            data = folder / "data"
            measured = bench.fanfold(folder, "--data", str(data))
            on_disk = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
            disk.append({"tasks": tasks, **measured, "disk_mib": on_disk / 1_048_576})
    return {"memory": memory, "disk": disk}
