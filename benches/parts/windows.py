"""What the windows of event sources save, and how long they let tasks wait: the template's beside others."""

# A function, the messages of an invocation, and the seconds of its window.
REGISTER, ELECT, GROUP = ("RegisterFunction", "ElectFunction", "GroupFunction")
SOURCES = {
    "as deployed": [],
    "`register` without": [f"{REGISTER}=10,0"],
    "`elect` with 100 in 1 s": [f"{ELECT}=100,1"],
    "`elect` and `group` with 100 in 1 s": [f"{ELECT}=100,1", f"{GROUP}=100,1"],
}
ACKS = {"as deployed": [], "100 in 1 s": ["AckFunction=100,1"], "10, without": ["AckFunction=10,0"]}


def run(bench):
    # Requests of ten tasks: a hundred in a second, or one.
    loads = {"1,000 tasks per second": (bench.of(usual=20_000, smallest=200), 10), "10 tasks per second": (bench.of(usual=200, smallest=20), 1_000)}
    items = bench.of(usual=20_000, smallest=200)
    sources = bench.of(usual=SOURCES, smallest={name: SOURCES[name] for name in ["as deployed", "`register` without"]})

    def batching(load, tuning):
        tasks, every = loads[load]
        options = ["--algorithm", "fanfold", "--tasks", tasks, "--targets", 100, "--linger", 1, "--per-request", 10, "--queue"]
        return bench.engine("batching", *options, "--every-ms", every, *tuned(tuning))

    def acks(tuning):
        options = ["--tracker", "fanfold", "--items", items, "--per-message", 1, "--ackers", 1, "--every-ms", 10, "--times", 1]
        return bench.engine("acks", *options, *tuned(tuning))

    return {
        "batching": {load: {name: batching(load, tuning) for name, tuning in sources.items()} for load in loads},
        "acks": {name: acks(tuning) for name, tuning in ACKS.items()},
    }


def tuned(sources):
    return [word for source in sources for word in ["--source", source]]
