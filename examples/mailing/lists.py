"""The two lists, and who of them gets which sample."""

import csv
import hashlib
import pathlib
import re

ORDERS = pathlib.Path(__file__).parent / "../parcels/orders.csv"


def share(key, n):
    """The share of a key, as docs/partitioning.md says."""
    return int(hashlib.md5(key.encode()).hexdigest()[:15], 16) % n


def address(place):
    """One mailbox per town. The domain `example` belongs to nobody."""
    town = re.sub(r"[^a-z0-9]+", "-", place["city"].lower()).strip("-")
    return f"{town}@{place['state'].lower()}.example"


def read(every):
    """Recipients by list, in the order of the file, as often as the file has them. Of the places, one in `every`."""
    with ORDERS.open(newline="") as file:
        places = [place for n, place in enumerate(csv.DictReader(file)) if n % every == 0]
    return {
        "subscribers": [address(place) for place in places if place["zip_code"][-1] in "0123456"],
        "customers": [address(place) for place in places if float(place["weight_kg"]) > 3],
    }


def samples(lists):
    """A twentieth of all recipients for each of two contents."""
    everybody = sorted(set().union(*lists.values()))
    return {letter: [to for to in everybody if share(to, 20) == n] for n, letter in enumerate("AB")}
