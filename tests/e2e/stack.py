"""The deployed stack as the scenarios see it: signed requests, queues, event sources."""

import json
import time
import urllib.error
import urllib.request

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest


class Stack:
    def __init__(self, name, mode):
        self.name, self.mode = name, mode
        self.session = boto3.Session()
        cloudformation = self.session.client("cloudformation")
        self.sqs, self.lambdas = self.session.client("sqs"), self.session.client("lambda")
        resources = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
        self.physical = {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}
        outputs = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
        self.base = {output["OutputKey"]: output["OutputValue"] for output in outputs}["Url"]
        if mode != "aws":
            endpoint = self.sqs.meta.endpoint_url.replace("127.0.0.1", "localhost")
            self.base = f"{endpoint}/_aws/execute-api/{self.physical['HttpApi']}/$default"
        self.figures = None
        self.notices = []

    def request(self, method, path, body=None, headers=None, read=json.loads):
        """A signed request; answers status and document. A body of bytes is sent as it is."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **(headers or {})}
        signed = AWSRequest(method=method, url=self.base + path, data=data, headers=headers)
        SigV4Auth(self.session.get_credentials(), "execute-api", self.session.region_name).add_auth(signed)
        plain = urllib.request.Request(self.base + path, method=method, data=data, headers=dict(signed.headers))
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(plain, timeout=60) as answer:
                return answer.status, read(answer.read())
        except urllib.error.HTTPError as error:
            body = error.read()
            try:
                return error.code, json.loads(body or b"{}")
            except ValueError:
                return error.code, {"body": body.decode(errors="replace")}
        finally:
            self.figures.requests.append(time.perf_counter() - began)

    def expect(self, status, *request):
        """A request that is answered with this status; answers the document."""
        got, document = self.request(*request)
        assert got == status, f"{request[0]} {request[1]}: {status} was expected, not {got}: {document}"
        return document

    def stream(self, *tasks):
        """Registers a task per line; answers what became of each."""
        lines = "".join(json.dumps(task) + "\n" for task in tasks).encode()
        read = lambda text: [json.loads(line) for line in text.splitlines()]
        status, answers = self.request("POST", "/tasks", lines, {"content-type": "application/x-ndjson"}, read)
        assert status == 202, f"the stream was answered {status}: {answers}"
        return answers

    def listed(self, path, field):
        """All entries of a list, page by page."""
        entries = []
        while path:
            page = self.expect(200, "GET", path)
            entries += page[field]
            path = page.get("next")
        return entries

    def fanout(self, id):
        return self.expect(200, "GET", f"/fanouts/{id}")

    def progress(self, id):
        """How many items of a fan-out are done, and whether that is exact."""
        fanout = self.expect(200, "GET", f"/fanouts/{id}?progress=exact")
        return fanout["progress"], fanout["done"]

    def open_fanout(self, items, **more):
        """A sealed fan-out of one group: its id, and those of its items."""
        opened = self.expect(201, "POST", "/fanouts", {"items": items, "seal": True, **more})
        group = opened["groups"][0]["id"]
        return opened["id"], [f"{opened['id']}:{group}:{index}" for index in range(items)]

    def send(self, queue, *bodies):
        """Messages, ten a call."""
        for first in range(0, len(bodies), 10):
            texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies[first : first + 10]]
            entries = [{"Id": str(at), "MessageBody": text} for at, text in enumerate(texts)]
            answer = self.sqs.send_message_batch(QueueUrl=self.physical[queue], Entries=entries)
            assert not answer.get("Failed"), answer["Failed"]
        self.figures.sent += len(bodies)

    def receive(self, queue, seconds=1):
        """Takes up to ten messages out of a queue; answers their bodies."""
        url = self.physical[queue]
        messages = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=seconds)
        messages = messages.get("Messages", [])
        for message in messages:
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in messages]

    def notices_of(self, id, seconds=1):
        """The ids of the notices of a fan-out that came until now: one notice may come again, but under its id."""
        self.notices += self.receive("NoticesQueue", seconds)
        return {notice["id"] for notice in self.notices if notice["source"] == f"/fanouts/{id}"}

    def depth(self, queue, delayed=True):
        """Messages that are in a queue, whether visible, being worked on or (unless they are not to be counted) delayed."""
        names = DEPTH if delayed else DEPTH[1:]
        found = self.sqs.get_queue_attributes(QueueUrl=self.physical[queue], AttributeNames=names)
        return sum(map(int, found["Attributes"].values()))

    def arn(self, queue):
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.physical[queue], AttributeNames=["QueueArn"])
        return attributes["Attributes"]["QueueArn"]

    def visibility(self, queue, seconds):
        """How long a message that failed waits until it comes again."""
        attributes = {"VisibilityTimeout": str(seconds)}
        self.sqs.set_queue_attributes(QueueUrl=self.physical[queue], Attributes=attributes)

    def deliver(self, queue, enabled):
        """Switches a queue's event source on or off, and waits until it is."""
        mappings = self.lambdas.list_event_source_mappings(EventSourceArn=self.arn(queue))["EventSourceMappings"]
        (uuid,) = (mapping["UUID"] for mapping in mappings)
        self.lambdas.update_event_source_mapping(UUID=uuid, Enabled=enabled)
        state = "Enabled" if enabled else "Disabled"
        get = self.lambdas.get_event_source_mapping
        until(f"the event source of {queue} is {state}", 120, lambda: get(UUID=uuid)["State"] == state)


DEPTH = [
    "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
]


def until(what, seconds, check):
    """Asks until it holds; answers how long that took. `what` may be a function that says it."""
    began = time.time()
    while not check():
        assert time.time() - began < seconds, f"after {seconds} s still not: {what() if callable(what) else what}"
        time.sleep(0.2)
    return time.time() - began
