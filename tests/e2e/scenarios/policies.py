"""Policies by command: `fanfold policy` against the deployed API, with signed requests."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from stack import until

FANFOLD = Path(__file__).parents[3] / "target" / "e2e" / "fanfold"
"""Where `tests/e2e/run` has put the command."""


def policies(stack, api):
    """Policies are validated, compared, stored, shown, tried and deleted by the command."""
    with tempfile.TemporaryDirectory() as folder:
        fanfold = Command(stack, Path(folder))
        policy = {"kind": "deed", "target": "content.town", "batch_api": {"url": api.url("deeds")}}
        file = fanfold.file("deed.yaml", policy)
        checked_and_compared(fanfold, file)
        stored(stack, fanfold, policy, file)
        tried(fanfold)
        refused(stack, fanfold, policy, file)
        deleted(stack, api, fanfold)


class Command:
    """The command, and files for it."""

    def __init__(self, stack, folder):
        self.folder = folder
        # It signs requests only if the address is not one of this machine, as far as it can tell.
        self.endpoint = stack.base if stack.mode == "aws" else stack.base.replace("//localhost", "//0.0.0.0")
        keys = stack.session.get_credentials().get_frozen_credentials()
        self.environment = {
            **os.environ, "FANFOLD_ENDPOINT": self.endpoint, "AWS_REGION": stack.session.region_name,
            "AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key, "AWS_SESSION_TOKEN": keys.token or "",
        }

    def run(self, *arguments, given=None):
        """Runs `fanfold policy` with these arguments; answers its status, and its errors behind its results."""
        command = [FANFOLD, "policy", *arguments]
        done = subprocess.run(command, env=self.environment, input=given, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def __call__(self, status, *arguments, given=None):
        """The same, which is to end with this status; answers what it prints."""
        got, said = self.run(*arguments, given=given)
        assert got == status, f"{arguments}: {status} was expected, not {got}: {said}"
        return said

    def file(self, name, *documents):
        """A file with policies. JSON is YAML, too."""
        path = self.folder / name
        path.write_text("---\n".join(json.dumps(document) + "\n" for document in documents))
        return str(path)


def checked_and_compared(fanfold, file):
    assert "the policy of kind `deed` can be used" in fanfold(0, "validate", "--deployed", "-f", file)
    wrong = fanfold.file("wrong.yaml", {"kind": "deed", "target": "content.town", "max_batch": 0, "batch_api": {"url": "https://a.example/"}})
    for command in ("validate", "diff", "apply"):
        said = fanfold(2, command, "-f", wrong)
        assert "max_batch" in said and "wrong.yaml" in said, said
    assert "deed: new" in fanfold(3, "diff", "-f", file)
    assert "deed" in fanfold(2, "get", "deed")


def stored(stack, fanfold, policy, file):
    assert "deed: stored" in fanfold(0, "apply", "-f", file)
    assert "deed: the same" in fanfold(0, "diff", "-f", file)
    # What is shown can be stored.
    shown = fanfold.folder / "shown.yaml"
    shown.write_text(fanfold(0, "get", "deed"))
    assert "deed: the same" in fanfold(0, "apply", "-f", str(shown))
    other = fanfold.file("other.yaml", {**policy, "max_batch": 7}, {**policy, "kind": "lease"})
    said = fanfold(3, "diff", "-f", other)
    assert "max_batch: 100 -> 7" in said and "lease: new" in said, said
    fanfold(0, "apply", "-f", other)
    assert stack.expect(200, "GET", "/policies/deed")["max_batch"] == 7
    listed = {policy["kind"] for policy in json.loads(fanfold(0, "list", "--json"))["policies"]}
    assert {"deed", "lease"} <= listed, listed


def tried(fanfold):
    said = fanfold(0, "try", "deed", given=json.dumps({"town": "Delft"}) + "\n")
    assert "deed:0:Delft" in said, said
    assert "content.town" in fanfold(3, "try", "deed", given="{}\n")


def refused(stack, fanfold, policy, file):
    """What a deployed stack does not take, and whom it does not answer."""
    command = fanfold.file("command.yaml", {**policy, "kind": "program", "batch_api": {"command": ["./program"]}})
    fanfold(0, "validate", "-f", command)
    fanfold(2, "validate", "--deployed", "-f", command)
    said = fanfold(2, "apply", "-f", command)
    assert "batch_api" in said, said
    if stack.mode != "given":
        assert "403" in fanfold(1, "diff", "--no-sign", "-f", file)


def deleted(stack, api, fanfold):
    """While a task waits only by force, without which nothing is lost."""
    stack.expect(200, "POST", "/pause", {"kind": "deed"})
    task = {"kind": "deed", "content": {"town": "Delft"}}
    (task,) = stack.expect(202, "POST", "/tasks", {"tasks": [task]})["tasks"]
    said = fanfold(3, "delete", "deed")
    assert "policy_in_use" in said and "deed:0:Delft" in said, said
    kept = fanfold.folder / "kept.yaml"
    kept.write_text(fanfold(0, "get", "deed"))
    assert "deed: deleted" in fanfold(0, "delete", "deed", "--force")
    fanfold(2, "delete", "deed")
    fanfold(0, "apply", "-f", str(kept))
    stack.expect(200, "POST", "/resume", {"kind": "deed"})
    status = lambda: stack.expect(200, "GET", f"/tasks/{task['id']}")["status"]
    until("the task is done under the policy that was stored again", 300, lambda: status() == "succeeded")
    assert [id for batch in api.ids("deeds").values() for id in batch] == [task["id"]]
    for kind in ("deed", "lease"):
        until(f"the policy of {kind} can be deleted", 60, lambda: fanfold.run("delete", kind)[0] == 0)
