"""The company's own services: three that know something of customers, and one that makes reports."""

import threading
from collections import Counter
from decimal import Decimal, InvalidOperation

import customers
import page
from serving import serve


class Refused(Exception):
    """A member that fails: a code, and what is wrong."""


def transactions(asked):
    """The sum of each month. `amounts` corrects single rows by their numbers."""
    corrected = asked.get("amounts", {})
    months = [Decimal(0)] * 12
    rows = customers.transactions(asked["customer"])
    for at, (month, typed) in enumerate(rows, 1):
        amount = corrected.get(str(at), typed)
        try:
            months[month] += Decimal(amount)
        except InvalidOperation:
            raise Refused("bad_amount", f"transaction {at}: the amount `{amount}` is not a number") from None
    return {"count": len(rows), "months": [str(month) for month in months]}


def orders(asked):
    """Open orders. `record` is the number of the customer's record, if it is another than the customer's."""
    record = asked.get("record", asked["customer"])
    found = customers.orders(record)
    if found is None:
        raise Refused("no_record", f"there is no record {record}")
    return {"orders": found}


def invoices(asked):
    """Open invoices. Those of a locked customer are returned if the request says who asks."""
    if customers.locked(asked["customer"]) and "for" not in asked:
        raise Refused("locked", f"{asked['customer']} is locked, say who it is `for`")
    return customers.invoices(asked["customer"])


class Company:
    """All services on one port, each under its own path. It counts who was asked for, and the calls."""

    def __init__(self, folder):
        self.folder = folder
        self.fetched = Counter()  # by service and customer
        self.calls = Counter()  # by service
        self.lock = threading.Lock()
        self.services = {"transactions": transactions, "orders": orders, "invoices": invoices, "report": self.report}
        self.url = serve(lambda path, _, call: (200, {}, self.answer(path[1:], call)))

    def answer(self, service, call):
        """One outcome per member: a bad one spoils no other."""
        members = []
        for member in call["members"]:
            try:
                outcome = {"outcome": "succeeded", "result": self.services[service](member["content"])}
            except Refused as refused:
                code, error = refused.args
                outcome = {"outcome": "failed", "code": code, "error": error}
            members.append({"id": member["id"], **outcome})
        with self.lock:
            self.calls[service] += 1
            self.fetched.update((service, member["content"]["customer"]) for member in call["members"])
        return {"members": members}

    def report(self, task):
        """Writes a page if every part is there. Otherwise the report fails with what the first part failed with."""
        if "results_left_out" in task:
            raise Refused("too_large", task["results_left_out"])
        for part in task["results"]:
            if part["outcome"] != "succeeded":
                raise Refused(part.get("code", part["outcome"]), f"{part['kind']}: {part.get('error', part['outcome'])}")
        parts = {part["kind"]: part["result"] for part in task["results"]}
        path = self.folder / f"{task['customer']}.html"
        # A call that is repeated writes the same page again.
        written = path.with_suffix(f".{threading.get_ident()}")
        written.write_text(page.render(task, **parts), encoding="utf-8")
        written.replace(path)
        return {"file": path.name}
