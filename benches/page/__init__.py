"""docs/BENCHMARKS.md and its charts, from the results alone."""
