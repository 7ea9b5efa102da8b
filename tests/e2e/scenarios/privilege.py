"""Least privilege: with a function's role one can do what the function does, and nothing else."""

import json
import os
import re

from botocore.exceptions import ClientError

SESSION = "e2e-privilege"
DENIED = re.compile(r"denied: (\S+) on (\S+) to (.*)")


def privilege(stack, _):
    """No action was denied until here; with the roles of the functions what they are not granted is denied."""
    if stack.mode != "own":
        print("  left out: it takes the log and the credentials of the emulator that this script starts")
        return
    before = denials(stack.mode)
    # The scenario `secrets` wants to see this one refused.
    unexpected = [one for one in before if f":secret:{stack.name}-hidden-" not in one[1]]
    assert not unexpected, f"denied during the run: {unexpected}"
    refused = 0
    for function in FUNCTIONS:
        with_role = session_of(stack, f"{function}FunctionRole")
        # Each reads policies: the credentials are good, so what is denied below is denied for want of a permission.
        policies = {stack.physical["PoliciesTable"]: {"Keys": [{"kind": {"S": "none"}}]}}
        with_role.client("dynamodb").batch_get_item(RequestItems=policies)
        for what, call in [*ALL.items(), *FUNCTIONS[function].items()]:
            denied(f"{function}: {what}", lambda: call(stack, with_role))
            refused += 1
    ours = [who for _, _, who in denials(stack.mode)[len(before) :]]
    assert len(ours) == refused and all(who.endswith("/" + SESSION) for who in ours), ours
    print(f"  {refused} calls with the roles of {len(FUNCTIONS)} functions denied, none of their own calls")


def denials(mode):
    """What the emulator says it denied."""
    if mode != "own":
        return []
    with open(os.environ["EMULATOR_LOG"]) as log:
        return [found.groups() for found in map(DENIED.search, log) if found]


def denied(what, call):
    try:
        call()
    except ClientError as error:
        assert error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException"), f"{what}: {error}"
    else:
        raise AssertionError(f"{what} was not denied")


def session_of(stack, role):
    """Credentials of a role that only Lambda may assume; for a moment we may, too."""
    import boto3

    iam, name = stack.session.client("iam"), stack.physical[role]
    found = iam.get_role(RoleName=name)["Role"]
    account = stack.session.client("sts").get_caller_identity()["Account"]
    trust = found["AssumeRolePolicyDocument"]
    us = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}}
    opened = json.dumps({**trust, "Statement": [*trust["Statement"], us]})
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=opened)
    try:
        got = stack.session.client("sts").assume_role(RoleArn=found["Arn"], RoleSessionName=SESSION)["Credentials"]
    finally:
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trust))
    return boto3.Session(got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"], stack.session.region_name)


def dynamodb(action, table, **more):
    return lambda stack, role: getattr(role.client("dynamodb"), action)(TableName=stack.physical[table], **more)


def partiql(statement, table):
    def call(stack, role):
        text = statement.format(table=stack.physical[table])
        role.client("dynamodb").batch_execute_statement(Statements=[{"Statement": text}])

    return call


def send(queue):
    return lambda stack, role: role.client("sqs").send_message(QueueUrl=stack.physical[queue], MessageBody="{}")


def send_to_stranger(stack, role):
    url = stack.physical["AckQueue"].rsplit("/", 1)[0] + f"/{stack.name}-develop"
    role.client("sqs").send_message(QueueUrl=url, MessageBody="{}")


NOBODY = {"id": {"S": "nobody"}}
INSERT = "INSERT INTO \"{table}\" VALUE {{'id': 'nobody'}}"
UPDATE = "UPDATE \"{table}\" SET a = 1 WHERE id = 'nobody'"

ALL = {
    "delete a task": dynamodb("delete_item", "TasksTable", Key=NOBODY),
    "delete a table": dynamodb("delete_table", "FanoutsTable"),
    "read notices": lambda stack, role: role.client("sqs").receive_message(QueueUrl=stack.physical["NoticesQueue"]),
    "invoke a function": lambda stack, role: role.client("lambda").invoke(FunctionName=stack.physical["SweepFunction"]),
}

FUNCTIONS = {
    "Api": {"make a batch": dynamodb("put_item", "BatchesTable", Item=NOBODY), "report an end": send("NoticesQueue")},
    "Produce": {
        "delete a page": dynamodb("delete_item", "ProducersTable", Key=NOBODY),
        "open a fan-out": dynamodb("put_item", "FanoutsTable", Item=NOBODY),
        "call a batch": send("HandleQueue"),
    },
    "Register": {
        "delete a group": dynamodb("delete_item", "GroupsTable", Key=NOBODY),
        "open a fan-out": partiql(INSERT, "FanoutsTable"),
        "change a policy": dynamodb("put_item", "PoliciesTable", Item={"kind": {"S": "nobody"}}),
    },
    "Elect": {"claim a task": partiql(UPDATE, "TasksTable"), "form a batch": send("HandleQueue")},
    "Group": {"register a task": partiql(INSERT, "TasksTable"), "ack": send("AckQueue")},
    "Handle": {
        "make a batch": dynamodb("put_item", "BatchesTable", Item=NOBODY),
        "read a fan-out": dynamodb("get_item", "FanoutsTable", Key=NOBODY),
        "send to a queue that is no dev session's": lambda stack, role: send_to_stranger(stack, role),
    },
    "Ack": {"form a batch": send("HandleQueue"), "read a task": dynamodb("get_item", "TasksTable", Key=NOBODY)},
    "Notify": {"ack": send("AckQueue"), "read all policies": dynamodb("scan", "PoliciesTable")},
    "Sweep": {"make a task": dynamodb("put_item", "TasksTable", Item=NOBODY), "send a notice": send("NoticesQueue")},
}
