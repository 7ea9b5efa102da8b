import assert from "node:assert/strict";
import { test } from "node:test";

import { AckBuffer, AcksNotSent, AcksRefused } from "fanfold-client";
import { FakeAcks, GROUP, group, OTHER, read } from "./helpers.js";

const bufferOf = (acks, maxAge = null) => new AckBuffer(acks, { maxAge });
const refused = { group: GROUP, items: ["1"], problem: "there is no item 1" };

test("a flush sends everything in one message", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks);
  await buffer.succeeded(`${GROUP}:1`);
  await buffer.succeeded(`${GROUP}:2`);
  await buffer.failed(`${OTHER}:7`);
  assert.deepEqual([buffer.size, buffer.has(`${GROUP}:2`), buffer.has(`${GROUP}:3`)], [3, true, false]);
  assert.deepEqual(acks.bodies, []);
  await buffer.flush();
  assert.deepEqual(acks.bodies, [{ items: [`${GROUP}:1-2`], failed: [`${OTHER}:7`] }]);
  assert.deepEqual([buffer.size, buffer.has(`${GROUP}:2`)], [0, false]);
  await buffer.flush();
  assert.equal(acks.bodies.length, 1, "nothing is no message");
});

test("what is scattered is a mask", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks);
  for (let index = 0; index < 100; index += 2) await buffer.failed(`${GROUP}:${index}`);
  await buffer.close();
  const mask = Buffer.from([...Array(12).fill(0b0101_0101), 0b0000_0101]).toString("base64");
  assert.deepEqual(acks.bodies, [{ failed: [{ group: GROUP, mask }] }]);
});

test("any acks are said once each, in messages below the limit", async () => {
  let seed = 1;
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const choice = (of) => of[Math.floor(random() * of.length)];
  for (let round = 0; round < 20; round++) {
    const acks = new FakeAcks();
    const expected = {};
    const buffer = bufferOf(acks);
    const send = acks.send.bind(acks);
    acks.send = (messages) => {
      for (const message of messages) assert.ok(message.body().length <= message.bytes && message.bytes <= acks.limit);
      return send(messages);
    };
    for (let number = 0; number < 1 + 20 * random(); number++) {
      const [items, share] = [choice([1, 2, 20, 1_000, 7_168]), choice([0.01, 0.5, 0.99, 1])];
      for (let index = 0; index < items; index++) {
        if (random() > share) continue;
        const item = `${group(number)}:${index}`;
        expected[item] = choice(["items", "items", "failed"]);
        await (expected[item] === "items" ? buffer.succeeded(item) : buffer.failed(item));
      }
    }
    await buffer.close();
    assert.deepEqual(acks.said(), expected);
  }
});

test("of several acks of an item the first counts", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks);
  await buffer.succeeded(`${GROUP}:1`);
  await buffer.failed(`${GROUP}:1`);
  await buffer.close();
  assert.deepEqual(acks.bodies, [{ items: [`${GROUP}:1`] }]);
});

test("a full message is sent at once", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks);
  let added = 0;
  for (; !acks.bodies.length; added++) await buffer.succeeded(`${group(added)}:5`);
  assert.ok(buffer.size === 0 && added > 45 && added <= 4_096 / 80 + 1, String(added));
});

test("what cannot be sent throws and stays", async () => {
  const acks = new FakeAcks();
  acks.error = new Error("the queue is down");
  const buffer = bufferOf(acks);
  await buffer.succeeded(`${GROUP}:1`);
  for (let time = 0; time < 2; time++) {
    await assert.rejects(buffer.flush(), { name: "AcksNotSent", message: "1 acks could not be sent: the queue is down" });
    assert.ok(buffer.has(`${GROUP}:1`));
  }
  acks.error = undefined;
  await buffer.close();
  assert.deepEqual(acks.bodies, [{ items: [`${GROUP}:1`] }]);
});

test("an ack that fills the buffer is kept when that cannot be sent", async () => {
  const acks = new FakeAcks();
  acks.error = new Error("the queue is down");
  const buffer = bufferOf(acks);
  const adding = Array.from({ length: 60 }, (_, index) => buffer.succeeded(`${group(index)}:0`));
  const results = await Promise.allSettled(adding);
  assert.ok(results.some(({ reason }) => reason instanceof AcksNotSent));
  assert.equal(buffer.size, 60);
  acks.error = undefined;
  await buffer.flush();
  assert.equal(Object.keys(acks.said()).length, 60);
});

test("only what was sent leaves", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks);
  for (let index = 0; index < 45; index++) await buffer.succeeded(`${group(index)}:0`);
  const send = acks.send.bind(acks);
  acks.limit = 2_048;
  acks.send = async (messages) => ({ ...(await send(messages.slice(0, 1))), unsent: new Map([[1, new Error("too much")]]) });
  await assert.rejects(buffer.flush(), AcksNotSent);
  assert.equal(buffer.size, 45 - Object.keys(acks.said()).length);
});

test("the oldest ack is sent by time", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks, 1);
  await buffer.succeeded(`${GROUP}:1`);
  await acks.came.promise;
  await buffer.close();
  assert.deepEqual(acks.bodies, [{ items: [`${GROUP}:1`] }]);
});

test("what fails in the background is thrown by the next call", async () => {
  const acks = new FakeAcks();
  acks.error = new Error("the queue is down");
  const buffer = bufferOf(acks, 1);
  await buffer.succeeded(`${GROUP}:1`);
  await acks.came.promise;
  await new Promise(setImmediate);
  await assert.rejects(buffer.succeeded(`${GROUP}:2`), /the queue is down/);
  acks.error = undefined;
  await buffer.close();
  assert.deepEqual(acks.said(), { [`${GROUP}:1`]: "items", [`${GROUP}:2`]: "items" });
});

test("after a sender threw in the background, acks are sent again by time", async () => {
  const acks = new FakeAcks();
  const send = acks.send.bind(acks);
  acks.send = async () => {
    acks.send = send;
    throw new Error("the queue is down");
  };
  const buffer = bufferOf(acks, 1);
  await buffer.succeeded(`${GROUP}:1`);
  await acks.came.promise;
  await buffer.close();
  assert.deepEqual(acks.bodies, [{ items: [`${GROUP}:1`] }]);
});

test("a sender that throws leaves the acks in the buffer", async () => {
  const acks = new FakeAcks();
  acks.send = () => {
    throw new Error("the queue is down");
  };
  const buffer = bufferOf(acks);
  await buffer.succeeded(`${GROUP}:1`);
  await assert.rejects(buffer.flush(), { name: "AcksNotSent", message: "1 acks could not be sent: the queue is down" });
  assert.equal(buffer.size, 1);
});

test("what is refused throws once and leaves", async () => {
  for (const maxAge of [null, 1]) {
    const acks = new FakeAcks();
    acks.refused = [refused];
    const buffer = bufferOf(acks, maxAge);
    await buffer.succeeded(`${GROUP}:1`);
    if (maxAge) await acks.came.promise;
    await assert.rejects(buffer.close(), (error) => error instanceof AcksRefused && error.refused[0] === refused);
    assert.equal(buffer.size, 0);
    await buffer.close();
  }
});

test("acks that come while others are sent go with the next message", async () => {
  const acks = new FakeAcks();
  const buffer = bufferOf(acks);
  await buffer.succeeded(`${GROUP}:1`);
  const first = buffer.flush();
  await Promise.resolve();
  await buffer.succeeded(`${GROUP}:2`);
  await Promise.all([first, buffer.flush()]);
  assert.deepEqual(read(acks.bodies), { [`${GROUP}:1`]: "items", [`${GROUP}:2`]: "items" });
  assert.equal(buffer.size, 0);
});

test("what is no item is refused at once", async () => {
  const buffer = bufferOf(new FakeAcks());
  await assert.rejects(buffer.failed("x"), /`x` is not an item id/);
  assert.equal(buffer.size, 0);
});
