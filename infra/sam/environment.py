#!/usr/bin/env python3
"""Prints the environment file for `sam local` with the tables and queues of a deployed stack.

usage: aws cloudformation describe-stack-resources --stack-name fanfold | infra/sam/environment.py > env.json
"""

import json
import re
import sys

SUFFIX = {"AWS::DynamoDB::Table": ("Table", "_TABLE"), "AWS::SQS::Queue": ("Queue", "_QUEUE_URL")}

variables = {}
for resource in json.load(sys.stdin)["StackResources"]:
    logical, kind = resource["LogicalResourceId"], resource["ResourceType"]
    if kind in SUFFIX and not logical.endswith("DeadLetterQueue"):
        ending, suffix = SUFFIX[kind]
        variables[re.sub(f"{ending}$", "", logical).upper() + suffix] = resource["PhysicalResourceId"]
json.dump({"Parameters": dict(sorted(variables.items()))}, sys.stdout, indent=2)
print()
