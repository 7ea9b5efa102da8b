"""A push to everybody on two lists that overlap: one mail each, the better of two contents. See README.md.

python3 examples/mailing/run.py                         builds and starts Fanfold by `cargo run --release`
python3 examples/mailing/run.py --fanfold ./fanfold     uses this one
"""

import argparse
import csv
import os
import pathlib
import sys
import time
from collections import Counter

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))

import lists
from fanfold import Fanfold
from services import PER_CALL, Company

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "Cargo.toml"
LIST = ROOT / "target/mailing/who-got-what.csv"
CARGO = ["cargo", "run", "--quiet", "--release", "--manifest-path", str(MANIFEST), "--"]

POLICY = {
    "target": "[content.push, content.content]",  # what one call is about
    "key": "content.to",
    "scope": "content.push",  # nobody gets two mails of one push, whichever lists name them
    "key_after_failure": "keep",  # what bounced once bounces again
    "max_batch": PER_CALL,
    "max_in_flight": 8,
}


def push(fanfold, company, names, content, partitions):
    """Opens a fan-out per list, all at once, and waits for all. Returns them as they ended."""
    sources = {name: f"{company.url}/lists/{name}/{content}" for name in names}
    opened = {name: fanfold.open(f"spring {name}", source, partitions) for name, source in sources.items()}
    ended = {name: fanfold.wait(fanout) for name, fanout in opened.items()}
    for name, fanout in ended.items():
        print(
            f"  {name:<12} content {content}: {fanout['total']:>6,} rows, {fanout['succeeded']:>6,} mails, "
            f"{fanout['failed']:>3} bounced, {fanout['duplicates']:>6,} had one already",
            flush=True,
        )
    return list(ended.values())


def table(company):
    print(f"\n{'content':<10}{'mails':>8}{'opened':>9}")
    for content, mails in sorted(Counter(content for _, content in company.sent).items()):
        print(f"{content:<10}{mails:>8,}{company.opened(content):>9,}")


def write(path, recipients, company):
    """Who got what: a line per recipient and mail."""
    on = {to: " and ".join(name for name in recipients if to in recipients[name]) for to in set().union(*recipients.values())}
    rows = [(to, on.get(to, ""), content, "sent") for to, content in company.sent]
    rows += [(to, on.get(to, ""), content, "bounced") for to, content in company.bounced]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("recipient", "lists", "content", "outcome"), *sorted(rows)])


def wanted(recipients, best):
    """The content that each recipient is to get: a sample's own, everybody else the better one."""
    sampled = {to: letter for letter, names in lists.samples(recipients).items() for to in names}
    return {to: sampled.get(to, best) for to in set().union(*recipients.values())}


def check(wanted, path, ended, company):
    """Everybody on the lists got the right content, once, and nobody else; calls were full at most, of one content each; and Fanfold
    counted as the mails did."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    got = Counter(row["recipient"] for row in rows)
    outcomes = Counter(row["outcome"] for row in rows)
    wrong = {
        "got two mails": [to for to, mails in got.items() if mails > 1],
        "got none": sorted(set(wanted) - set(got)),
        "are on no list": sorted(set(got) - set(wanted)),
        "got another content": [row["recipient"] for row in rows if row["content"] != wanted.get(row["recipient"])],
        "calls were too large or of two contents": [str(call) for call in company.calls if call[0] > PER_CALL or call[1] > 1],
    }
    counted = sum(fanout["succeeded"] for fanout in ended), sum(fanout["failed"] for fanout in ended)
    if counted != (outcomes["sent"], outcomes["bounced"]):
        wrong["were counted otherwise"] = [str(counted)]
    for what, who in wrong.items():
        if who:
            print(f"{len(who)} {what}: {', '.join(who[:5])}")
    return not any(wrong.values())


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--fanfold", default=os.environ.get("FANFOLD"), help="the command to start instead")
    arguments.add_argument("--every", type=int, default=1, help="take one place in so many")
    arguments.add_argument("--list", type=pathlib.Path, default=LIST, help="where to write who got what")
    arguments = arguments.parse_args()

    recipients = lists.read(arguments.every)
    everybody = set().union(*recipients.values())
    on_both = set.intersection(*map(set, recipients.values()))
    company = Company(recipients | lists.samples(recipients))
    fanfold = Fanfold([arguments.fanfold] if arguments.fanfold else CARGO)
    try:
        fanfold.call("PUT", "/policies/mail", {**POLICY, "batch_api": {"url": f"{company.url}/mails"}})
        print(f"{len(everybody):,} recipients, {len(on_both):,} of them on both lists")
        began = time.monotonic()
        print("samples")
        ended = [fanout for letter in "AB" for fanout in push(fanfold, company, [letter], letter, 2)]
        mails = Counter(content for _, content in company.sent)
        best = max("AB", key=lambda content: company.opened(content) / mails[content])
        print("everybody else")
        ended += push(fanfold, company, ["subscribers", "customers"], best, 4)
        seconds = time.monotonic() - began
    finally:
        fanfold.stop()
    table(company)
    write(arguments.list, {name: set(names) for name, names in recipients.items()}, company)
    right = check(wanted(recipients, best), arguments.list, ended, company)
    print(
        f"\n{len(company.sent):,} mails in {len(company.answers):,} calls, {seconds:.0f} s; {len(company.refused)} calls were refused "
        f"at first; {len(company.bounced)} mailboxes do not exist"
    )
    print(f"who got what: {os.path.relpath(arguments.list)}")
    print("Nobody got two mails, and nobody was left out." if right else "WRONG")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
