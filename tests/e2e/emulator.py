#!/usr/bin/env python3
"""Starts the emulator, and completes after a deployment what it leaves out of a SAM template.

usage: emulator.py serve | wait PID | complete STACK
"""

import json
import logging
import os
import re
import sys
import time
import urllib.request

HEALTH = "/_ministack/health"


def serve():
    # Its socket servers wait 40 ms for more to send unless that is turned off.
    import socketserver

    socketserver.StreamRequestHandler.disable_nagle_algorithm = True
    from ministack.app import main

    do_not_wait_for_logs()
    ask_as_aws_does()
    log_denials()
    know_durable_functions()
    sys.argv = sys.argv[:1]
    main()


def do_not_wait_for_logs():
    """After an invocation it waits 50 ms for a first line of log. What comes later it gets with the next invocation."""
    from ministack.core.lambda_runtime import Worker

    drain = Worker._drain_stderr_bounded
    Worker._drain_stderr_bounded = lambda worker, first_line_wait=0, **waits: drain(worker, 0.002, **waits)


STATEMENT = re.compile(r'\s*(?:(INSERT)\s+INTO|(UPDATE)|(DELETE)\s+FROM|(SELECT)\s.*?\sFROM)\s+"([^"]+)"', re.I | re.S)


def ask_as_aws_does():
    """AWS knows no actions for some calls that do many things at once, but asks for those of the things. The emulator asks for
    the name of the call, which no policy for AWS grants."""
    from ministack.core import iam_actions

    name_of_call, of_transaction = iam_actions.extract_iam_action, iam_actions.dynamodb_transaction_checks

    def action(*request):
        """A batch of messages: what one of them takes."""
        name = name_of_call(*request)
        return name.removesuffix("Batch") if name and name.startswith("sqs:") else name

    def checks(action, body, region, account):
        """A batch of PartiQL statements: the verb of each, on its table. Without checks it asks for the name of the call."""
        if action != "dynamodb:BatchExecuteStatement":
            return of_transaction(action, body, region, account)
        found = [STATEMENT.match(statement["Statement"]) for statement in json.loads(body)["Statements"]]
        if not all(found):
            return []
        table = f"arn:aws:dynamodb:{region}:{account}:table/"
        verb = lambda match: next(filter(None, match.groups())).capitalize()
        return sorted({("dynamodb:PartiQL" + verb(match), table + match.group(5)) for match in found})

    iam_actions.extract_iam_action, iam_actions.dynamodb_transaction_checks = action, checks


def log_denials():
    """Says in its log which action it denies to whom; `scenarios/privilege.py` reads that."""
    from ministack.core import iam_evaluator

    enforce = iam_evaluator.enforce

    def logged(access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
        denied = enforce(access_key_id, iam_action, service, region, resource_arn, service_context)
        if denied:
            who = getattr(denied, "principal_arn", None) or f"unknown ({denied})"
            logging.getLogger("iam").warning("denied: %s on %s to %s", iam_action, resource_arn, who)
        return denied

    iam_evaluator.enforce = logged


def know_durable_functions():
    """It takes a function for durable if its configuration says `Enabled`, which AWS's does not have."""
    from ministack.services import lambda_svc

    build = lambda_svc._build_config

    def built(name, data, *code):
        durable = data.get("DurableConfig")
        return build(name, {**data, "DurableConfig": {"Enabled": True, **durable}} if durable else data, *code)

    lambda_svc._build_config = built


def wait(process):
    url = os.environ["AWS_ENDPOINT_URL"] + HEALTH
    for _ in range(300):
        try:
            os.kill(int(process), 0)
            urllib.request.urlopen(url, timeout=1)
            return
        except ProcessLookupError:
            sys.exit("the emulator ended before it answered")
        except OSError:
            time.sleep(0.2)
    sys.exit(f"the emulator does not answer at {url}")


def complete(stack):
    import boto3

    try:
        urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"] + HEALTH, timeout=10)
    except OSError:
        print("this is another emulator, which is taken to leave out nothing")
        return
    cloudformation = boto3.client("cloudformation")
    template = cloudformation.get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
    template = json.loads(template) if isinstance(template, str) else template
    found = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    physical = {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in found}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        # The API for tokens has routes of its own.
        if resource["Type"] == "AWS::ApiGatewayV2::Api" and "Body" in properties:
            routes(physical[name], properties["Body"]["paths"], physical)
        if resource["Type"] == "AWS::DynamoDB::Table" and "TimeToLiveSpecification" in properties:
            boto3.client("dynamodb").update_time_to_live(
                TableName=physical[name], TimeToLiveSpecification=properties["TimeToLiveSpecification"]
            )
    concurrency(boto3.client("lambda"), physical)


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
            # Outcomes are posted by batch APIs, which have no credentials.
            open_to_all = operation.get("security") == [{"NONE": []}]
            gateway.create_route(
                ApiId=api,
                RouteKey=key,
                Target="integrations/" + integration["IntegrationId"],
                AuthorizationType="NONE" if open_to_all else "AWS_IAM",
            )


def concurrency(functions, physical):
    """A number that came by a parameter stays a text, which its pollers cannot compare."""
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        most = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
        if mapping["FunctionArn"].rsplit(":", 1)[-1] in physical.values() and most is not None:
            functions.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(most)}
            )


if __name__ == "__main__":
    {"serve": serve, "wait": wait, "complete": complete}[sys.argv[1]](*sys.argv[2:])
