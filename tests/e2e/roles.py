"""Roles that scenarios make for services, and what is made with them."""

import json

from botocore.exceptions import ClientError

from stack import until


def granted(stack, made, name, service, actions):
    """A role that a service may assume, for these actions on these resources; answers its ARN."""
    iam, name = stack.session.client("iam"), f"{stack.name}-{name}"
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": f"{service}.amazonaws.com"}}
    document = lambda *statements: json.dumps({"Version": "2012-10-17", "Statement": statements})
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document(trust))["Role"]["Arn"]
    made.callback(iam.delete_role, RoleName=name)
    allowed = [{"Effect": "Allow", "Action": action, "Resource": resource} for action, resource in actions.items()]
    iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=document(*allowed))
    made.callback(iam.delete_role_policy, RoleName=name, PolicyName=name)
    return arn


def with_new_role(stack, what, create):
    """Answers what `create` answers. On AWS a new role can be used some seconds later."""
    made = []

    def attempt():
        try:
            made.append(create())
        except ClientError as error:
            if stack.mode != "aws":
                raise
            print(f"  not yet: {error}")
        return made

    until(f"{what} is made", 60, attempt)
    return made[0]
