"""Prints how large each built function is as a zip file, and fails if one is larger than it may be: it would start later."""

import pathlib
import sys
import zlib

LIMIT = 3_000_000

functions = sorted(pathlib.Path(".aws-sam/build").glob("*/bootstrap"))
sizes = {bootstrap.parent.name: len(zlib.compress(bootstrap.read_bytes(), 6)) for bootstrap in functions}
too_large = [name for name, size in sizes.items() if size > LIMIT]
for name, size in sizes.items():
    print(f"{name:20} {size:>10,} bytes{f', at most {LIMIT:,} are allowed' if name in too_large else ''}")
sys.exit(1 if too_large or not sizes else 0)
