import assert from "node:assert/strict";
import { test } from "node:test";

import { sqsConsumer } from "fanfold-client";
import { FakeAcks, GROUP } from "./helpers.js";

const record = (index, more = {}, receives = 1) => ({
  messageId: `m${index}`,
  body: JSON.stringify({ item: `${GROUP}:${index}`, page: index }),
  attributes: { ApproximateReceiveCount: String(receives) },
  eventSourceARN: "arn:aws:sqs:eu-west-1:1:jobs",
  ...more,
});
const failsFor = (...pages) => (message) => {
  if (pages.includes(message.json().page)) throw new Error("no such page");
};
const log = () => {};
const failures = async (answer) => (await answer).batchItemFailures.map((one) => one.itemIdentifier);
const item = (index) => `${GROUP}:${index}`;

test("success is acked, and failure comes again", async () => {
  const acks = new FakeAcks();
  const consumer = sqsConsumer({ acks, maxReceives: 3, log }, failsFor(2));
  assert.deepEqual(await failures(consumer({ Records: [record(1), record(2, {}, 2), record(3)] })), ["m2"]);
  assert.deepEqual(acks.said(), { [item(1)]: "items", [item(3)]: "items" });
});

test("the last failure is acked, and still comes again", async () => {
  const acks = new FakeAcks();
  const consumer = sqsConsumer({ acks, maxReceives: 3, log }, failsFor(1, 2));
  assert.deepEqual(await failures(consumer({ Records: [record(1, {}, 3), record(2, {}, 4)] })), ["m1", "m2"]);
  assert.deepEqual(acks.said(), { [item(1)]: "failed", [item(2)]: "failed" });
});

test("nothing is acked before the handler is done", async () => {
  for (const concurrency of [1, 7]) {
    const acks = new FakeAcks();
    acks.limit = 200;
    const handle = async (message) => {
      await new Promise(setImmediate);
      assert.ok(!(message.json().item in acks.said()));
    };
    const consumer = sqsConsumer({ acks, maxReceives: 3, concurrency, log }, handle);
    const Records = Array.from({ length: 50 }, (_, index) => record(2 * index));
    assert.deepEqual(await failures(consumer({ Records })), []);
    assert.equal(Object.keys(acks.said()).length, 50);
    assert.ok(acks.bodies.length > 1, "full messages go on the way");
  }
});

test("several are handled at once, as many as allowed", async () => {
  let [now, most] = [0, 0];
  const handle = async () => {
    most = Math.max(most, ++now);
    await new Promise(setImmediate);
    now--;
  };
  const consumer = sqsConsumer({ acks: new FakeAcks(), maxReceives: 3, concurrency: 4 }, handle);
  await consumer({ Records: Array.from({ length: 20 }, (_, index) => record(index)) });
  assert.equal(most, 4);
});

test("messages whose acks cannot be sent come again", async () => {
  const acks = new FakeAcks();
  acks.error = new Error("the queue is down");
  const consumer = sqsConsumer({ acks, maxReceives: 3, log }, failsFor(2));
  const Records = [record(1), record(2), record(3), record(4, { body: '{"page": 4}' })];
  assert.deepEqual(await failures(consumer({ Records })), ["m1", "m2", "m3"]);
  acks.error = undefined;
  assert.deepEqual(await failures(consumer({ Records: [record(1), record(3)] })), []);
  assert.deepEqual(acks.said(), { [item(1)]: "items", [item(3)]: "items" }, "nothing is left over from before");
});

test("a message whose item cannot be read is not handled", async () => {
  for (const body of ["x", '{"item": "x"}', '{"item": 7}']) {
    const [acks, handled] = [new FakeAcks(), []];
    const consumer = sqsConsumer({ acks, maxReceives: 3, log }, (message) => handled.push(message.id));
    assert.deepEqual(await failures(consumer({ Records: [record(1, { body }, 9), record(2)] })), ["m1"]);
    assert.deepEqual([handled, acks.said()], [["m2"], { [item(2)]: "items" }]);
  }
});

test("a message without an item is handled and not acked, wherever the item would be", async () => {
  const [acks, handled] = [new FakeAcks(), []];
  const consumer = sqsConsumer({ acks, maxReceives: 3 }, (message) => handled.push(message.body));
  assert.deepEqual(await failures(consumer({ Records: [record(1, { body: "[]" }), record(2, { body: "null" })] })), []);
  assert.deepEqual([handled, acks.bodies], [["[]", "null"], []]);
  const elsewhere = sqsConsumer({ acks, maxReceives: 3, itemOf: (message) => message.raw.attributes.item }, () => {});
  const attributes = { item: item(9), ApproximateReceiveCount: "1" };
  assert.deepEqual(await failures(elsewhere({ Records: [record(1, { body: "plain text", attributes })] })), []);
  assert.deepEqual(acks.said(), { [item(9)]: "items" });
});

test("a FIFO queue keeps its order", async () => {
  const [acks, handled] = [new FakeAcks(), []];
  const handle = (message) => {
    handled.push(message.id);
    failsFor(2)(message);
  };
  const Records = [1, 2, 3].map((index) => record(index, { eventSourceARN: "arn:aws:sqs:eu-west-1:1:jobs.fifo" }));
  const consumer = sqsConsumer({ acks, maxReceives: 3, concurrency: 3, log }, handle);
  assert.deepEqual(await failures(consumer({ Records })), ["m2", "m3"]);
  assert.deepEqual([handled, acks.said()], [["m1", "m2"], { [item(1)]: "items" }]);
});

test("refused acks do not make messages come again", async () => {
  const [acks, logged] = [new FakeAcks(), []];
  acks.refused = [{ group: GROUP, items: ["1"], problem: "there is no item 1" }];
  const options = { acks, maxReceives: 3, log: (_, error) => logged.push(error.message) };
  assert.deepEqual(await failures(sqsConsumer(options, () => {})({ Records: [record(1)] })), []);
  assert.deepEqual(logged, ["there is no item 1"]);
});

test("bad settings are named", () => {
  assert.throws(() => sqsConsumer({ acks: new FakeAcks(), maxReceives: 0 }, () => {}), /maxReceives: 0/);
  assert.throws(() => sqsConsumer({ acks: new FakeAcks(), maxReceives: 1, concurrency: 0 }, () => {}), /concurrency: 0/);
});

test("a poller acks, then deletes what did not fail", async () => {
  const [acks, deleted, stop] = [new FakeAcks(), [], new AbortController()];
  const Messages = [0, 1, 2].map((index) => ({
    MessageId: `m${index}`,
    ReceiptHandle: `r${index}`,
    Body: JSON.stringify({ item: item(index) }),
    Attributes: { ApproximateReceiveCount: "1" },
  }));
  const client = {
    async send({ constructor, input }) {
      if (constructor.name === "ReceiveMessageCommand") return { Messages };
      assert.deepEqual(acks.said(), { [item(0)]: "items", [item(2)]: "items" }, "acked before they are deleted");
      deleted.push(...input.Entries.map((entry) => entry.ReceiptHandle));
      stop.abort();
      return {};
    },
  };
  const consumer = sqsConsumer({ acks, maxReceives: 2, log }, (message) => {
    if (message.id === "m1") throw new Error("no such page");
  });
  await consumer.poll("jobs", { client, signal: stop.signal });
  assert.deepEqual(deleted, ["r0", "r2"]);
});

test("a poller that waits for messages ends at its signal", async () => {
  const stop = new AbortController();
  const client = {
    send: (_, { abortSignal }) =>
      new Promise((_, reject) => {
        abortSignal.addEventListener("abort", () => reject(new Error("aborted")));
        stop.abort();
      }),
  };
  await sqsConsumer({ acks: new FakeAcks(), maxReceives: 2 }, () => {}).poll("jobs", { client, signal: stop.signal });
});
