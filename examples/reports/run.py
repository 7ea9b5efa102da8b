"""Reports of the year for every customer, each gathered from three services. See README.md.

python3 examples/reports/run.py                       makes all reports that can be made, and says why others cannot
python3 examples/reports/run.py --correct             then makes those, with the corrections in corrections.json
python3 examples/reports/run.py --print-again C0001   makes a report again from what was gathered for it
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))

import customers
import page
from fanfold import Fanfold
from services import Company, invoices, orders, transactions

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
CARGO = ["cargo", "run", "--quiet", "--release", "--manifest-path", str(ROOT / "Cargo.toml"), "--"]
PARTS = {"transactions": transactions, "orders": orders, "invoices": invoices}
PER_CALL = {"transactions": 200, "orders": 100, "invoices": 50, "report": 25}
PER_REQUEST = 500
ALL = f"reports-{customers.YEAR}"


def start(arguments):
    """Fanfold, with a policy per kind, and the company's services."""
    company = Company(arguments.folder / "html")
    fanfold = Fanfold([arguments.fanfold] if arguments.fanfold else CARGO, arguments.folder / "data")
    for kind, per_call in PER_CALL.items():
        policy = {
            "target": "content.year",  # all customers of a year share calls
            "max_batch": per_call,
            "max_in_flight": 4,
            "keep_results": True,
            "batch_api": {"url": f"{company.url}/{kind}"},
        }
        fanfold.call("PUT", f"/policies/{kind}", policy)
    return fanfold, company


def gathering(customer, item):
    """A customer's fan-out: a task per service, and then the report, which is an item of the fan-out of all reports."""
    asked = {"customer": customer["id"], "year": str(customers.YEAR)}
    report = {**asked, "name": customer["name"], "address": customer["address"]}
    return {
        "user_key": f"report of {customer['id']}",
        "tasks": [{"kind": kind, "content": asked} for kind in PARTS],
        "then": {"id": item, "kind": "report", "content": report, "results": True},
    }


def make_all(fanfold, everybody):
    """Opens a fan-out with an item per report, then one per customer, and waits for all reports."""
    opened = fanfold.call("POST", "/fanouts", {"items": len(everybody), "seal": True, "user_key": ALL}, ALL)
    items = [f"{opened['id']}:{group['id']}:{at}" for group in opened["groups"] for at in range(group["upto"])]
    requests = [gathering(customer, item) for customer, item in zip(everybody, items)]
    for first in range(0, len(requests), PER_REQUEST):
        body = {"fanouts": requests[first : first + PER_REQUEST]}
        fanfold.call("POST", "/fanouts/open", body, f"{ALL}-from-{first}")
    ended = fanfold.wait(opened["id"])
    names = {item: customer["id"] for customer, item in zip(everybody, items)}
    results = fanfold.results(opened["id"])
    return ended, {names[of["id"]]: f"{of['error']} ({of['code']})" for of in results if of["outcome"] == "failed"}


def correct(fanfold, everybody):
    """Calls failed parts again with corrected contents. The report follows as the first one did, with the results of all parts."""
    known = {customer["id"] for customer in everybody}
    corrections = json.loads((HERE / "corrections.json").read_text(encoding="utf-8"))
    tasks = {}
    for customer, parts in corrections.items():
        if customer not in known:
            continue
        fanout = fanfold.named(f"report of {customer}")["id"]
        asked = {"customer": customer, "year": str(customers.YEAR)}
        kinds = dict(zip((f"{fanout}:{fanout}:{at}" for at in range(len(PARTS))), PARTS))
        failed = [of["id"] for of in fanfold.results(fanout) if of["outcome"] == "failed"]
        contents = [{"id": item, "content": {**asked, **parts[kinds[item]]}} for item in failed]
        again = fanfold.call("POST", f"/fanouts/{fanout}/reissue", {"contents": contents}, f"{ALL}-corrected-{customer}")
        tasks[customer] = again["then"]["id"]
    outcomes = {customer: fanfold.outcome(task) for customer, task in tasks.items()}
    return tasks, {customer: of["error"] for customer, of in outcomes.items() if of["status"] == "failed"}


def print_again(fanfold, customer):
    """Registers the task of a report again: its content has all that was gathered, so no service is asked."""
    task = fanfold.call("GET", f"/tasks/{fanfold.named(f'report of {customer}')['then']['id']}")
    again = fanfold.call("POST", "/tasks", {"tasks": [{"kind": "report", "content": task["content"]}]})
    return fanfold.outcome(again["tasks"][0]["id"])["status"]


def expected(customer, corrections):
    """A report as it should be, made without Fanfold."""
    asked = {"customer": customer["id"], "year": str(customers.YEAR)}
    parts = {kind: service({**asked, **corrections.get(kind, {})}) for kind, service in PARTS.items()}
    return page.render({**asked, **customer, "customer": customer["id"]}, **parts)


def check(folder, everybody, errors):
    """Everybody has the right report, or an error, and not both."""
    corrections = json.loads((HERE / "corrections.json").read_text(encoding="utf-8"))
    wrong = []
    for customer in everybody:
        path = folder / f"{customer['id']}.html"
        made = path.read_text(encoding="utf-8") if path.exists() else None
        if customer["id"] in errors:
            wrong += [customer["id"]] if made else []
        elif made != expected(customer, corrections.get(customer["id"], {})):
            wrong.append(customer["id"])
    return wrong


def summary(company, seconds, folder, everybody, errors):
    for kind in PER_CALL:
        members = sum(times for (service, _), times in company.fetched.items() if service == kind)
        calls = company.calls[kind]
        print(f"  {kind:<13}{members:>6,} in {calls:>4,} call{'' if calls == 1 else 's'}")
    made = len(list(folder.glob("*.html")))
    print(f"{made:,} of {len(everybody):,} reports are in {os.path.relpath(folder)}; this took {seconds:.0f} s")
    for customer, error in sorted(errors.items()):
        print(f"  {customer} has none: {error}")
    wrong = check(folder, everybody, errors)
    twice = [of for of, times in company.fetched.items() if times > 1]
    print(f"WRONG: {wrong[:5]} {twice[:5]}" if wrong or twice else "Every customer has a report that is right, or an error.")
    return not wrong and not twice


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--correct", action="store_true", help="call what failed again, with corrected contents")
    arguments.add_argument("--print-again", metavar="CUSTOMER", help="make a report again, without asking the services")
    arguments.add_argument("--fanfold", default=os.environ.get("FANFOLD"), help="the command to start instead of `cargo run`")
    arguments.add_argument("--customers", type=int, default=3_000, help="how many customers there are")
    arguments.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/reports", help="where everything is kept")
    arguments = arguments.parse_args()

    everybody = customers.read(arguments.customers)
    begins = not arguments.correct and not arguments.print_again
    if begins:
        shutil.rmtree(arguments.folder, ignore_errors=True)
    (arguments.folder / "html").mkdir(parents=True, exist_ok=True)
    fanfold, company = start(arguments)
    began = time.monotonic()
    try:
        if arguments.print_again:
            print(f"{arguments.print_again}: {print_again(fanfold, arguments.print_again)}")
            print(f"{sum(company.calls[kind] for kind in PARTS)} calls of the three services")
            return 0
        if arguments.correct:
            tasks, errors = correct(fanfold, everybody)
            print(f"{len(tasks)} reports are made again, {len(errors)} of them failed")
        else:
            ended, errors = make_all(fanfold, everybody)
            print(f"{ended['total']:,} reports: {ended['succeeded']:,} succeeded, {ended['failed']:,} failed")
    finally:
        fanfold.stop()
    return 0 if summary(company, time.monotonic() - began, arguments.folder / "html", everybody, errors) else 1


if __name__ == "__main__":
    sys.exit(main())
