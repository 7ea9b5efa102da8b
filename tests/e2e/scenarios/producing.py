"""Producers: fan-outs that read their rows from objects in S3, ask a function for them, and an HTTP endpoint."""

import gzip
import hashlib
import io
import json
import zipfile
from contextlib import ExitStack

from botocore.config import Config

from roles import granted, with_new_role
from stack import until

FUNCTION = """
def handler(event, context):
    at = (event["cursor"] or {}).get("at", 0)
    rows = [{"kind": "row", "content": {"source": "lambda", "number": number}} for number in range(at, min(at + 150, 600))]
    return {"tasks": rows, "cursor": {"at": at + 150} if at + 150 < 600 else None}
"""
"""It gives all 600 rows to each partition, which drops those of the others."""


def producing(stack, api):
    """Rows of objects, of a function and of an HTTP endpoint are tasks, each once; a partition that failed is resumed."""
    policy = {
        "target": "content.source", "key": "content.number", "max_batch": 200, "linger": "1s", "max_in_flight": 4,
        "batch_api": {"url": api.url("rows")},
    }
    stack.expect(200, "PUT", "/policies/row", policy)
    with ExitStack() as made:
        put, bucket = objects(stack, made)
        tasks = cut(stack, put, bucket) + compressed(stack, put, bucket) + under_a_prefix(stack, put, bucket)
        tasks += that_is_late(stack, put, bucket)
        tasks += asked(stack, function(stack, made))
    tasks += shared_out(stack, api)
    called = [member["content"] for batch in latest(api).values() for member in batch]
    numbers = sorted((content["source"], int(content["number"])) for content in called)
    assert len(numbers) == len(set(numbers)) == tasks, f"{len(set(numbers))} of {tasks} rows are called, some more than once"
    stack.figures.count(tasks=tasks, batches=len(latest(api)), calls=len(api.calls["rows"]))


def latest(api):
    """The members of each batch, by its idempotency key."""
    return {key: call["members"] for _, key, call in api.calls["rows"]}


def csv(source, numbers):
    return "\n".join(["number,source", *(f"{number},{source}" for number in numbers)]) + "\n"


def ndjson(source, numbers):
    return "".join(json.dumps({"number": number, "source": source}) + "\n" for number in numbers)


def cut(stack, put, bucket, rows=4_000):
    """An object that is cut into as many ranges as there are partitions, in the middle of lines."""
    put("orders.csv", csv("cut", range(rows)))
    source = {"s3": {"bucket": bucket, "key": "orders.csv", "kind": "row"}}
    partitions = completed(stack, opened(stack, source, 4), rows)
    read = [partition["rows"] for partition in partitions]
    assert sum(read) == rows and min(read) > rows // 5, f"the object was not cut evenly: {read}"
    return rows


def compressed(stack, put, bucket, rows=300):
    """An object that one partition reads as a whole."""
    put("orders.ndjson.gz", gzip.compress(ndjson("compressed", range(rows)).encode()))
    source = {"s3": {"bucket": bucket, "key": "orders.ndjson.gz", "kind": "row"}}
    partitions = completed(stack, opened(stack, source, 2), rows)
    assert sorted(partition["rows"] for partition in partitions) == [0, rows], partitions
    return rows


def under_a_prefix(stack, put, bucket, each=50):
    """Objects that the bucket lists, some of them compressed."""
    names = [f"parts/{part}.csv" + (".gz" if part % 2 else "") for part in range(6)]
    for part, name in enumerate(names):
        text = csv("prefix", range(part * each, (part + 1) * each)).encode()
        put(name, gzip.compress(text) if name.endswith(".gz") else text)
    source = {"s3": {"bucket": bucket, "prefix": "parts/", "format": "csv", "kind": "row"}}
    completed(stack, opened(stack, source, 3), len(names) * each)
    return len(names) * each


def that_is_late(stack, put, bucket, rows=20):
    """An object that does not exist fails its partitions, which are resumed once it does."""
    id = opened(stack, {"s3": {"bucket": bucket, "key": "late.csv", "kind": "row"}}, 1)
    (partition,) = failed(stack, id, [0])
    assert "s3 answered 404" in partition["error"], partition
    put("late.csv", csv("late", range(rows)))
    stack.expect(200, "POST", f"/fanouts/{id}/producer/resume")
    completed(stack, id, rows)
    return rows


def asked(stack, function, rows=600, partitions=3):
    """A function that gives every row to every partition."""
    id = opened(stack, {"lambda": function}, partitions)
    shown = completed(stack, id, rows)
    assert all(partition["rows"] == rows for partition in shown), shown
    assert sum(partition["dropped"] for partition in shown) == rows * (partitions - 1), shown
    return rows


def shared_out(stack, api, rows=500, partitions=3):
    """An endpoint that knows the share of each row, and has a bad one in one partition, until that is mended."""
    bad = [True]

    def page(question):
        number, at = question["partition"], (question["cursor"] or {}).get("at", 0)
        own = [row for row in range(rows) if share(row, partitions) == number]
        tasks = [{"kind": "row", "content": {"source": "http", "number": row}} for row in own[at : at + 50]]
        if number == 1 and at == 100 and bad[0]:
            tasks[7] = {"kind": "nobody", "content": {}}
        return {"tasks": tasks, "cursor": {"at": at + 50} if at + 50 < len(own) else None}

    api.sources["recipients"] = page
    id = opened(stack, {"url": api.url("recipients")}, partitions)
    broken = failed(stack, id, [1])[1]
    assert broken["cursor"] == {"at": 100} and broken["rows"] == 100 and "`kind`" in broken["error"], broken
    fanout = stack.fanout(id)
    assert (fanout["state"], fanout["complete"]) == ("open", False), fanout
    bad.clear()
    bad.append(False)
    stack.expect(200, "POST", f"/fanouts/{id}/producer/resume")
    shown = completed(stack, id, rows)
    assert sum(partition["dropped"] for partition in shown) == 0, f"shares are others than those of the documents: {shown}"
    return rows


def share(key, of):
    """As docs/partitioning.md has it."""
    return int(hashlib.md5(str(key).encode()).hexdigest()[:15], 16) % of


def opened(stack, source, partitions):
    """A fan-out with this source, whose partitions are the shares of the rows' numbers, unless it is read by bytes."""
    key = {} if "s3" in source else {"key": "content.number"}
    body = {"producer": {"source": source, "partitions": partitions, **key}}
    return stack.expect(201, "POST", "/fanouts", body)["id"]


def completed(stack, id, rows):
    """Waits for the end of a fan-out of so many rows; answers its partitions."""
    until("the rows are handled", 240, lambda: stack.fanout(id)["complete"])
    ended = stack.fanout(id)
    assert (ended["total"], ended["failed"], ended["duplicates"]) == (rows, 0, 0), ended
    partitions = ended["producer"]["partitions"]
    assert {(partition["state"], partition["bad"]) for partition in partitions} == {("done", 0)}, partitions
    return partitions


def failed(stack, id, numbers):
    """Waits until these partitions have failed, and all others are done; answers them all."""
    shown = lambda: stack.fanout(id)["producer"]["partitions"]
    wanted = lambda: ["failed" if partition["partition"] in numbers else "done" for partition in shown()]
    until("a partition has failed", 120, lambda: [partition["state"] for partition in shown()] == wanted())
    return shown()


def objects(stack, made):
    """A bucket; answers what puts objects into it, and its name."""
    account = stack.session.client("sts").get_caller_identity()["Account"]
    # Emulators have one host for all buckets.
    style = Config(s3={"addressing_style": "auto" if stack.mode == "aws" else "path"})
    client, name, region = stack.session.client("s3", config=style), f"{stack.name}-rows-{account}", stack.session.region_name
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client.create_bucket(Bucket=name, **place)
    made.callback(client.delete_bucket, Bucket=name)

    def put(key, content):
        client.put_object(Bucket=name, Key=key, Body=content)
        made.callback(client.delete_object, Bucket=name, Key=key)

    return put, name


def function(stack, made):
    """A function that answers with rows; answers its name."""
    name, role = f"{stack.name}-rows", granted(stack, made, "rows", "lambda", {"logs:CreateLogStream": "*"})
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("rows.py", FUNCTION)
    with_new_role(stack, "the function", lambda: stack.lambdas.create_function(
        FunctionName=name, Runtime="python3.13", Handler="rows.handler", Role=role, Timeout=30,
        Code={"ZipFile": code.getvalue()}))
    made.callback(stack.lambdas.delete_function, FunctionName=name)
    return name
