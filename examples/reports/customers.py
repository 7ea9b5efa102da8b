"""The customers, and what the three services know of each. Everything follows from the customer's number: there is no randomness."""

import csv
import hashlib
import pathlib

ORDERS = pathlib.Path(__file__).parent / "../parcels/orders.csv"
YEAR = 2025
TRADES = ["Bakery", "Bookshop", "Bicycles", "Brewery", "Dairy", "Garage", "Nursery", "Pharmacy", "Print Works", "Sawmill"]
GOODS = ["paper", "ink", "boxes", "labels", "string", "wax", "glue", "foil"]


def number(key, n):
    """A number below n that follows from the key."""
    return int(hashlib.md5(key.encode()).hexdigest()[:15], 16) % n


def read(count):
    """So many customers, each in a town of its own (GeoNames, CC BY 4.0)."""
    towns = {}
    with ORDERS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            towns.setdefault((row["city"], row["state"]), row["zip_code"])
            if len(towns) == count:
                break
    customers = []
    for at, ((city, state), code) in enumerate(towns.items(), 1):
        trade = TRADES[number(f"{city} {state}", len(TRADES))]
        customers.append({"id": f"C{at:04}", "name": f"{city} {trade}", "address": f"{city}, {state} {code}"})
    return customers


def transactions(customer):
    """What a customer paid in the year: (month, amount as it was typed in)."""
    many = 6 + number(f"{customer} many", 40)
    rows = []
    for at in range(many):
        cents = 500 + number(f"{customer} cents {at}", 90_000)
        rows.append((number(f"{customer} month {at}", 12), f"{cents // 100}.{cents % 100:02}"))
    if int(customer[1:]) % 1_000 == 213:
        rows[3] = (rows[3][0], "12,5O")  # a comma, and the letter O
    return rows


def orders(record):
    """What is ordered and not delivered. Some records were never moved from their old number, which began with K."""
    if int(record[1:]) % 1_000 == 407 and record[0] != "K":
        return None
    of = f"C{record[1:]}"
    return [
        {"goods": GOODS[number(f"{of} goods {at}", len(GOODS))], "pieces": 1 + number(f"{of} pieces {at}", 60)}
        for at in range(number(f"{of} orders", 4))
    ]


def invoices(customer):
    """What was invoiced and not paid, in cents. Negative: the customer has paid too much."""
    return {"open": number(f"{customer} open", 5), "balance": number(f"{customer} balance", 120_000) - 20_000}


def locked(customer):
    """Whether the accounts are locked, so that the service of invoices refuses to say anything."""
    return int(customer[1:]) % 1_000 == 101
