"""One part of the benches each: `run(bench)` returns its result."""
