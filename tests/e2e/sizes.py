"""Prints how large each built function is as a zip file, and fails if one is larger than it may be: it would start later."""

import pathlib
import sys
import zlib

# Three of them evaluate CEL expressions, and bring its parser; one of these unpacks objects as well. One speaks to every kind of
# destination, acks parents, and reads results; one takes acks and counts, over HTTP and SQS; one calls batch APIs, maps requests
# and answers, keeps rates and results, and takes outcomes over HTTP; one looks after all records.
LIMITS = {
    "ApiFunction": 4_560_000,
    "ProduceFunction": 4_000_000,
    "RegisterFunction": 3_750_000,
    "NotifyFunction": 3_350_000,
    "AckFunction": 3_200_000,
    "HandleFunction": 3_800_000,
    "SweepFunction": 3_100_000,
}
LIMIT = 3_000_000

functions = sorted(pathlib.Path(".aws-sam/build").glob("*/bootstrap"))
sizes = {bootstrap.parent.name: len(zlib.compress(bootstrap.read_bytes(), 6)) for bootstrap in functions}
too_large = [name for name, size in sizes.items() if size > LIMITS.get(name, LIMIT)]
for name, size in sizes.items():
    print(f"{name:20} {size:>10,} bytes{f', at most {LIMITS.get(name, LIMIT):,} are allowed' if name in too_large else ''}")
sys.exit(1 if too_large or not sizes else 0)
