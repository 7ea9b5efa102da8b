#!/usr/bin/env python3
"""Makes orders.csv from a table of postal destinations, one order a destination.

    python3 make-orders.py zipcodes.csv > orders.csv

The input has the columns zip_code, latitude, longitude, city, state, county. Order names and weights
are invented, and so is the order of the rows. All of it follows from the ZIP codes alone, so that the
file comes out the same on every machine.
"""

import csv
import hashlib
import sys

COLUMNS = "order,depot,state,zip_code,city,county,latitude,longitude,weight_kg".split(",")


def draw(purpose, zip_code):
    """A number from 0 up to 1 that looks random and is always the same for the same ZIP code."""
    digest = hashlib.sha256(f"{purpose}:{zip_code}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def weight(zip_code):
    """0.1 to 30.0 kg; most parcels are light, a few are heavy."""
    u = draw("weight", zip_code)
    return f"{0.1 + 29.9 * u * u * u * u * u:.1f}"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make-orders.py zipcodes.csv > orders.csv")
    with open(sys.argv[1], newline="", encoding="utf-8") as source:
        places = list(csv.DictReader(source))

    # Orders arrive in no order of place.
    places.sort(key=lambda place: (draw("arrival", place["zip_code"]), place["zip_code"]))

    sys.stdout.reconfigure(encoding="utf-8", newline="")
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    out.writeheader()
    for number, place in enumerate(places, start=1):
        out.writerow(
            {
                **place,
                "order": f"ORD-{number:06}",
                # The first three digits of a ZIP code name the sectional centre that serves it.
                "depot": place["zip_code"][:3],
                "weight_kg": weight(place["zip_code"]),
            }
        )


if __name__ == "__main__":
    main()
