#!/usr/bin/env python3
"""Starts the emulator, and completes after a deployment what it leaves out of a SAM template.

usage: emulator.py serve | wait | complete STACK
"""

import json
import os
import re
import sys
import time
import urllib.request


def serve():
    # Its socket servers wait 40 ms for more to send unless they are told not to.
    import socketserver

    socketserver.StreamRequestHandler.disable_nagle_algorithm = True
    from ministack.app import main

    sys.argv = sys.argv[:1]
    main()


def wait():
    url = os.environ["AWS_ENDPOINT_URL"] + "/_ministack/health"
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=1)
            return
        except OSError:
            time.sleep(0.2)
    sys.exit(f"the emulator does not answer at {url}")


def complete(stack):
    import boto3

    cloudformation = boto3.client("cloudformation")
    template = cloudformation.get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
    template = json.loads(template) if isinstance(template, str) else template
    found = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    physical = {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in found}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::ApiGatewayV2::Api":
            routes(physical[name], properties["Body"]["paths"], physical)
        if resource["Type"] == "AWS::DynamoDB::Table" and "TimeToLiveSpecification" in properties:
            boto3.client("dynamodb").update_time_to_live(
                TableName=physical[name], TimeToLiveSpecification=properties["TimeToLiveSpecification"]
            )
    concurrency(boto3.client("lambda"), physical)
    partiql(boto3.client("iam"), physical)


def routes(api, paths, physical):
    """It makes no routes of HttpApi events."""
    import boto3

    gateway, functions = boto3.client("apigatewayv2"), boto3.client("lambda")
    there = {route["RouteKey"] for route in gateway.get_routes(ApiId=api)["Items"]}
    for path, methods in paths.items():
        for method, operation in methods.items():
            key = f"{method.upper()} {path}"
            if key in there:
                continue
            uri = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
            function = physical[re.search(r"\$\{(\w+)\.Arn\}", uri).group(1)]
            arn = functions.get_function(FunctionName=function)["Configuration"]["FunctionArn"]
            integration = gateway.create_integration(
                ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
            )
            gateway.create_route(
                ApiId=api,
                RouteKey=key,
                Target="integrations/" + integration["IntegrationId"],
                AuthorizationType="AWS_IAM",
            )


def concurrency(functions, physical):
    """A number that came by a parameter stays a text, which its pollers can not compare."""
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        most = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
        if mapping["FunctionArn"].rsplit(":", 1)[-1] in physical.values() and most is not None:
            functions.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(most)}
            )


def partiql(iam, physical):
    """It asks for an action of its own where AWS asks for PartiQLInsert and PartiQLUpdate."""
    statement = {"Effect": "Allow", "Action": "dynamodb:BatchExecuteStatement", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    for function in ("RegisterFunctionRole", "GroupFunctionRole"):
        iam.put_role_policy(RoleName=physical[function], PolicyName="partiql-on-the-emulator", PolicyDocument=policy)


if __name__ == "__main__":
    {"serve": serve, "wait": wait, "complete": complete}[sys.argv[1]](*sys.argv[2:])
