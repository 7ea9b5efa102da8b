/** What is sent to SQS, seen by a client that answers as SQS may. The emulator has its own test, tests/e2e. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { AckBuffer, SqsAcks } from "fanfold-client";
import { group } from "./helpers.js";

class Sqs {
  calls = [];
  script = [];

  async send({ input: { Entries } }) {
    const bytes = Entries.reduce((sum, { MessageBody }) => sum + MessageBody.length, 0);
    assert.ok(Entries.length <= 10 && bytes <= 256 * 1_024);
    this.calls.push(Entries.map(({ MessageBody }) => MessageBody));
    const fail = this.script.shift() ?? {};
    if (fail instanceof Error) throw fail;
    const [Successful, Failed] = [[], []];
    for (const [at, { Id }] of Entries.entries()) fail[at] ? Failed.push({ Id, ...fail[at] }) : Successful.push({ Id });
    return { Successful, Failed };
  }
}

/** Twelve acks in four messages. */
async function filled(sqs) {
  const acks = new SqsAcks("queue", { client: sqs });
  const buffer = new AckBuffer(acks, { maxAge: null });
  for (let index = 0; index < 12; index++) await buffer.succeeded(`${group(index)}:0`);
  acks.limit = 300;
  return buffer;
}

test("messages share a call", async () => {
  const sqs = new Sqs();
  await (await filled(sqs)).flush();
  assert.deepEqual(sqs.calls.map((call) => call.length), [4]);
});

test("large messages share a call only if they fit", async () => {
  const sqs = new Sqs();
  const buffer = new AckBuffer(new SqsAcks("queue", { client: sqs }), { maxAge: null });
  for (let number = 0; number < 500; number++) {
    for (let index = 0; index < 7_168; index += 64) await buffer.succeeded(`${group(number)}:${index}`);
  }
  await buffer.close();
  assert.ok(sqs.calls.length >= 3 && sqs.calls.every((call) => call.length === 1), String(sqs.calls.length));
});

test("what SQS did not take is sent again", async () => {
  const sqs = new Sqs();
  sqs.script = [{ 0: { Code: "InternalError", SenderFault: false }, 2: { Code: "Throttled", SenderFault: false } }];
  const buffer = await filled(sqs);
  await buffer.flush();
  assert.deepEqual(sqs.calls.slice(1), [[sqs.calls[0][0], sqs.calls[0][2]]]);
  assert.equal(buffer.size, 0);
});

test("what is at fault is not sent again, and stays", async () => {
  const sqs = new Sqs();
  sqs.script = [{ 1: { Code: "InvalidMessageContents", SenderFault: true, Message: "no" } }];
  const buffer = await filled(sqs);
  await assert.rejects(buffer.flush(), /InvalidMessageContents: no/);
  assert.equal(sqs.calls.length, 1);
  assert.equal(buffer.size, JSON.parse(sqs.calls[0][1]).items.length);
});

test("a call that fails keeps all its acks", async () => {
  const sqs = new Sqs();
  sqs.script = [new Error("the network is down")];
  const buffer = await filled(sqs);
  await assert.rejects(buffer.flush(), /the network is down/);
  assert.equal(buffer.size, 12);
  await buffer.flush();
  assert.equal(buffer.size, 0);
});
