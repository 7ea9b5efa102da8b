"""Secrets that AWS keeps: a batch API is called with them, and nobody else gets to see them."""

import json

from stack import until

KEY, TOKEN = "a-key-that-nobody-sees", "a-token-that-nobody-sees"


def secrets(stack, api):
    """Headers have secrets of Secrets Manager and SSM. While one may not be fetched, the kind stands still and no task fails."""
    manager, ssm = stack.session.client("secretsmanager"), stack.session.client("ssm")
    names = f"{stack.name}/shop", f"/{stack.name}/mail", f"{stack.name}-hidden"
    manager.create_secret(Name=names[0], SecretString=json.dumps({"key": KEY}))
    manager.create_secret(Name=names[2], SecretString="hidden")
    ssm.put_parameter(Name=names[1], Value=TOKEN, Type="SecureString")
    try:
        # The stack knows a reference to it, but may not read it.
        store(stack, api, {"Authorization": "Bearer ${secret.HIDDEN}"})
        id = task(stack)
        until("the kind stands still", 240, lambda: stands_still(stack))
        assert not api.headers["guarded"], "a call was made without its secret"
        why = stands_still(stack)["answer"]
        assert "HIDDEN" in why, why
        store(stack, api, {"Authorization": "Bearer ${secret.SHOP}", "X-Token": "${secret.MAIL}"})
        until("complete", 240, lambda: stack.fanout(id)["complete"])
        assert stack.fanout(id).get("failed", 0) == 0, stack.fanout(id)
        headers = api.headers["guarded"][-1]
        assert (headers["authorization"], headers["x-token"]) == (f"Bearer {KEY}", TOKEN), dict(headers)
        policy = json.dumps(stack.expect(200, "GET", "/policies/guarded"))
        assert KEY not in policy and TOKEN not in policy, policy
        assert not logged(stack, KEY) and not logged(stack, TOKEN), "a secret is in the log"
        stack.figures.count(tasks=1)
        print(f"  two secrets in headers, in no log; without permission: {why}")
    finally:
        for name in (names[0], names[2]):
            manager.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
        ssm.delete_parameter(Name=names[1])


def store(stack, api, headers):
    batch_api = {"url": api.url("guarded"), "request": {"headers": headers}}
    policy = {"target": "kind", "linger": 0, "max_attempts": 3, "refusals": "wait", "backoff": {"base": "1s", "max": "5s"}, "batch_api": batch_api}
    stack.expect(200, "PUT", "/policies/guarded", policy)


def task(stack):
    """A fan-out of one task, which the stack may only complete by a call."""
    id, (item,) = stack.open_fanout(1, user_key="secrets")
    stack.expect(202, "POST", "/tasks", {"tasks": [{"id": item, "kind": "guarded", "content": {}}]})
    return id


def stands_still(stack):
    """The kind as `GET /health` lists it, if it stands still."""
    kinds = stack.expect(200, "GET", "/health").get("standing_still", [])
    return next((kind for kind in kinds if kind["kind"] == "guarded"), None)


def logged(stack, text):
    """Whether the functions' log has this text."""
    logs = stack.session.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=stack.physical["Logs"])
    return any(text in event["message"] for page in pages for event in page["events"])
