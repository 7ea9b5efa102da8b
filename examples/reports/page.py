"""A report as a page of HTML that prints on one sheet of A4."""

from decimal import Decimal
from html import escape

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

STYLE = """
@page { size: A4; margin: 18mm }
body { font: 11pt/1.5 Georgia, serif; color: #222; max-width: 174mm; margin: 2em auto; padding: 0 1em }
header { display: flex; justify-content: space-between; align-items: end; border-bottom: 2px solid #1c4d7a; padding-bottom: .6em }
h1 { font-size: 20pt; margin: 0; color: #1c4d7a } h2 { font-size: 12pt; margin: 1.6em 0 .4em; color: #1c4d7a }
p { margin: 0 } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .25em .4em; border-bottom: 1px solid #ddd; font-weight: normal }
td:last-child, th:last-child { text-align: right; font-variant-numeric: tabular-nums }
tr.sum td { font-weight: bold; border-bottom: 0; border-top: 2px solid #1c4d7a }
svg { width: 100%; height: auto } svg text { font: 8px Georgia, serif; fill: #555; text-anchor: middle } rect { fill: #4b86b8 }
@media print { body { margin: 0; padding: 0 } section { break-inside: avoid } }
"""


def money(amount):
    return f"{Decimal(amount):,.2f}"


def chart(months):
    """A bar per month."""
    most = max(*months, Decimal(1))
    bars = []
    for at, amount in enumerate(months):
        height = round(float(amount / most) * 80, 1)
        bars.append(f'<rect x="{at * 40 + 6}" y="{90 - height}" width="28" height="{height}"/>')
        bars.append(f'<text x="{at * 40 + 20}" y="102">{MONTHS[at]}</text>')
    return f'<svg viewBox="0 0 480 108" role="img" aria-label="Payments by month">{"".join(bars)}</svg>'


def rows(pairs):
    return "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in pairs)


def render(task, transactions, orders, invoices):
    """The page of a customer, from what the three services said."""
    months = [Decimal(month) for month in transactions["months"]]
    quarters = [(f"{MONTHS[at]} to {MONTHS[at + 2]}", money(sum(months[at : at + 3]))) for at in range(0, 12, 3)]
    ordered = [(order["goods"], f"{order['pieces']} pieces") for order in orders["orders"]] or [("none", "")]
    balance = Decimal(invoices["balance"]) / 100
    state = "to be paid" if balance > 0 else "in your favour"
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(task["customer"])}: report of {task["year"]}</title><style>{STYLE}</style></head>
<body>
<header><div><h1>Report of the year {task["year"]}</h1><p>{escape(task["name"])}</p><p>{escape(task["address"])}</p></div>
<p>Customer {escape(task["customer"])}</p></header>
<section><h2>Payments</h2>{chart(months)}
<table>{rows(quarters)}<tr class="sum"><td>{transactions["count"]} payments</td><td>{money(sum(months))}</td></tr></table></section>
<section><h2>Ordered, not yet delivered</h2><table>{rows(ordered)}</table></section>
<section><h2>Invoices</h2><table>{rows([("open invoices", str(invoices["open"]))])}
<tr class="sum"><td>Balance, {state}</td><td>{money(abs(balance))}</td></tr></table></section>
</body>
</html>
"""
