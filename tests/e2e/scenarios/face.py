"""The HTTP API: who is refused, and what a call takes."""

import urllib.error
import urllib.request


def refusals(stack, _):
    """Requests without a signature are refused; errors are problem documents."""
    try:
        urllib.request.urlopen(stack.base + "/health", timeout=30)
        assert stack.mode == "given", "an unsigned request was answered"
    except urllib.error.HTTPError as error:
        assert error.code == 403, error.code
    for status, code, request in [
        (404, "unknown_fanout", ("GET", "/fanouts/01890000-0000-7000-8000-000000000001")),
        (422, "invalid_tasks", ("POST", "/tasks", {"tasks": [{"kind": "none", "content": 1}]})),
        (422, "invalid_body", ("POST", "/fanouts", {"item": 3})),
    ]:
        document = stack.expect(status, *request)
        assert document["code"] == code, document


def latency(stack, _, calls=100):
    """One call after the other: one that reads nothing, one that writes a fan-out, one that reads it."""
    for _ in range(calls):
        stack.expect(200, "GET", "/")
    fanouts = [stack.open_fanout(3)[0] for _ in range(calls)]
    for id in fanouts:
        assert stack.fanout(id)["total"] == 3
