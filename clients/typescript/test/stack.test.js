/** The client over `fanfold up`, as a user has it. */

import assert from "node:assert/strict";
import { before, test } from "node:test";

import { AckBuffer, AcksRefused, Fanfold, HttpAcks, NotEnded, sqsConsumer } from "fanfold-client";
import { stack } from "./helpers.js";

let fanfold;
before(async (suite) => {
  fanfold = new Fanfold(await stack(suite));
});

async function all(of) {
  const made = [];
  for await (const one of of) made.push(one);
  return made;
}

test("a fan-out from its opening to its end", async () => {
  const fanout = await fanfold.open(0, { userKey: "order 4711" });
  assert.deepEqual([fanout.state, fanout.total, fanout.ended, fanout.userKey], ["open", 0, false, "order 4711"]);
  const added = await fanfold.add(fanout.id, 7_170, { idempotencyKey: "page-1" });
  assert.deepEqual((await fanfold.add(fanout.id, 7_170, { idempotencyKey: "page-1" })).groups, added.groups);
  const items = [...added.itemIds()];
  assert.equal(new Set(items).size, 7_170);
  const ids = (groups) => groups.map(({ id }) => id).sort();
  assert.deepEqual(ids(await all(fanfold.groups(fanout.id))), ids(added.groups));
  const sealed = await fanfold.seal(fanout.id);
  assert.deepEqual([sealed.state, sealed.complete], ["sealed", false]);
  const answer = await fanfold.ack({ items: items.slice(0, 3), failed: items.slice(3, 4) });
  assert.deepEqual(answer.fanouts, [{ id: fanout.id, state: "sealed", complete: false, userKey: "order 4711" }]);
  await assert.rejects(fanfold.wait(fanout.id, 100), NotEnded);
  const acks = new AckBuffer(new HttpAcks(fanfold));
  for (const item of items.slice(4, -1)) await acks.succeeded(item);
  await acks.failed(items.at(-1));
  await acks.close();
  const end = await fanfold.wait(fanout.id, 60_000);
  assert.deepEqual([end.state, end.ended, end.total, end.succeeded, end.failed], ["completed", true, 7_170, 7_168, 2]);
});

test("an estimate is counted to its end", async () => {
  const one = await fanfold.open(2, { mode: "estimated", seal: true, userKey: "order 4711" });
  const other = await fanfold.open(0, { mode: "estimated" });
  assert.deepEqual([one.total, one.progress, one.groups], [2, "estimated", []]);
  const nobody = "01890000-0000-7000-8000-000000000001";
  const counts = [{ fanout: one.id, add: 1, succeeded: 1 }, { fanout: other.id, add: 7 }, { fanout: nobody, failed: 1 }];
  const { fanouts, refused } = await fanfold.count(counts);
  const counted = Object.fromEntries(fanouts.map(({ id, total, done }) => [id, [total, done]]));
  assert.deepEqual(counted, { [one.id]: [3, 1], [other.id]: [7, 0] });
  assert.deepEqual(refused.map(({ fanout, code }) => [fanout, code]), [[nobody, "unknown_fanout"]]);
  const [last] = (await fanfold.count([{ fanout: one.id, succeeded: 1 }, { fanout: one.id, failed: 1 }])).fanouts;
  assert.deepEqual([last.state, last.complete, last.userKey, last.failed], ["completed", true, "order 4711", 1]);
  await assert.rejects(fanfold.count([{ fanout: one.id, add: 1 }]), { code: "invalid_counts" });
  await assert.rejects(fanfold.add(other.id, 1), { code: "wrong_mode" });
  assert.equal((await fanfold.wait(one.id, 60_000)).succeeded, 2);
});

test("a wait sees the end when it comes", async () => {
  const fanout = await fanfold.open(1, { seal: true });
  const waiting = fanfold.wait(fanout.id, 60_000);
  await fanfold.ack({ items: fanout.itemIds() });
  assert.ok((await waiting).complete);
});

test("scattered acks are all applied", async () => {
  const fanout = await fanfold.open(20_000, { seal: true });
  const items = [...fanout.itemIds()];
  const buffer = new AckBuffer(new HttpAcks(fanfold), { maxAge: null });
  const thirds = items.filter((_, at) => at % 3 === 0);
  for (const item of thirds) await buffer.failed(item);
  assert.equal((await buffer.flush()).get(fanout.id).complete, false);
  for (const item of items) await buffer.succeeded(item);
  assert.equal((await buffer.flush()).get(fanout.id).complete, true);
  const end = await fanfold.get(fanout.id);
  assert.deepEqual([end.failed, end.succeeded], [thirds.length, 20_000 - thirds.length]);
});

test("items that do not exist are named", async () => {
  const fanout = await fanfold.open(10);
  const group = [...fanout.itemIds()][0].replace(/:0$/, "");
  const buffer = new AckBuffer(new HttpAcks(fanfold), { maxAge: null });
  for (const index of [3, 4, 10, 12, 13]) await buffer.succeeded(`${group}:${index}`);
  await assert.rejects(buffer.flush(), ({ refused }) => {
    assert.deepEqual(refused.map(({ group, items }) => [group, items]), [[group, ["10", "12-13"]]]);
    return true;
  });
  assert.equal((await fanfold.get(fanout.id, { exact: true })).done, 2);
  await buffer.succeeded(`${group}:11`);
  await assert.rejects(buffer.flush(), AcksRefused);
  assert.equal(buffer.size, 0);
});

test("problems have codes", async () => {
  const unknown = fanfold.seal("01890000-0000-7000-8000-000000000001");
  await assert.rejects(unknown, { status: 404, code: "unknown_fanout" });
  const fanout = await fanfold.open(1, { seal: true });
  await assert.rejects(fanfold.add(fanout.id, 1), { status: 409, code: "fanout_not_open" });
});

test("a consumer acks over HTTP", async () => {
  const fanout = await fanfold.open(3, { seal: true });
  const handler = sqsConsumer({ acks: new HttpAcks(fanfold), maxReceives: 2, log: () => {} }, (message) => {
    if (message.json().page === 1) throw new Error("no such page");
  });
  const Records = [...fanout.itemIds()].map((item, page) => ({
    messageId: String(page),
    body: JSON.stringify({ item, page }),
    attributes: { ApproximateReceiveCount: "1" },
  }));
  assert.deepEqual(await handler({ Records }), { batchItemFailures: [{ itemIdentifier: "1" }] });
  assert.equal((await fanfold.get(fanout.id, { exact: true })).done, 2);
  await handler({ Records: [{ ...Records[1], attributes: { ApproximateReceiveCount: "2" } }] });
  const end = await fanfold.wait(fanout.id, 60_000);
  assert.deepEqual([end.succeeded, end.failed], [2, 1]);
});

test("failed items are listed", async () => {
  const fanout = await fanfold.open(7_168 + 5, { seal: true });
  const items = [...fanout.itemIds()];
  const failed = [...items.slice(3, 6), items.at(-1)];
  await fanfold.ack({ items: items.slice(10, 20), failed });
  assert.deepEqual((await all(fanfold.items(fanout.id, "failed"))).sort(), failed.sort());
  assert.deepEqual((await all(fanfold.items(fanout.id, "succeeded"))).sort(), items.slice(10, 20).sort());
  assert.equal((await all(fanfold.items(fanout.id, "pending"))).length, 7_173 - 14);
});

test("failed items are reissued", async () => {
  const fanout = await fanfold.open(2, { seal: true });
  await assert.rejects(fanfold.reissue(fanout.id), { status: 409 });
  const [first, second] = fanout.itemIds();
  await fanfold.ack({ items: [first], failed: [second] });
  const again = await fanfold.reissue(fanout.id, { maxBatch: 1, idempotencyKey: "again" });
  assert.equal(again.raw.reissue_of, fanout.id);
  assert.equal((await fanfold.reissue(fanout.id, { maxBatch: 1, idempotencyKey: "again" })).id, again.id);
  await assert.rejects(fanfold.reissue(fanout.id), { status: 409 });
  // Its item has no task: the worker was another one.
  assert.equal((await fanfold.wait(again.id, 60_000)).total, 0);
});

test("a fan-out without a producer has none to resume", async () => {
  const fanout = await fanfold.open(1);
  await assert.rejects(fanfold.resumeProducer(fanout.id), { status: 409, code: "no_producer" });
});

test("a cancelled fan-out ends", async () => {
  const fanout = await fanfold.open(10);
  await fanfold.ack({ items: [...fanout.itemIds()].slice(0, 1) });
  for (let time = 0; time < 2; time++) assert.equal((await fanfold.cancel(fanout.id)).state, "cancelled");
  const end = await fanfold.wait(fanout.id, 60_000);
  const { state, ended, complete, succeeded, missing } = end;
  assert.deepEqual([state, ended, complete, succeeded, missing], ["cancelled", true, false, 1, 9]);
  const completed = await fanfold.open(0, { seal: true });
  await assert.rejects(fanfold.cancel(completed.id), { status: 409 });
});

test("fan-outs are listed", async () => {
  const opened = [];
  for (let n = 0; n < 5; n++) {
    opened.push(await fanfold.open(1, { seal: true, userKey: `list ${n % 2}` }));
    await new Promise((done) => setTimeout(done, 2));
  }
  await fanfold.ack({ items: opened[0].itemIds() });
  const ids = opened.map(({ id }) => id);
  const openedAfter = opened[0].createdAt - 1;
  const listed = async (which) => (await all(fanfold.fanouts(which))).map(({ id }) => id);
  assert.deepEqual(await listed({ openedAfter }), ids.toReversed());
  assert.deepEqual(await listed({ openedAfter, order: "oldest" }), ids);
  assert.deepEqual(await listed({ openedAfter, state: ["open", "sealed"] }), ids.slice(1).reverse());
  assert.deepEqual(await listed({ openedAfter, state: "completed" }), ids.slice(0, 1));
  assert.deepEqual(await listed({ openedAfter: new Date(opened[2].createdAt) }), ids.slice(3).reverse());
  assert.deepEqual(await listed({ userKey: "list 1" }), [ids[3], ids[1]]);
  assert.deepEqual((await listed({ userKeyPrefix: "list " })).sort(), ids.toSorted());
  await assert.rejects(listed({ state: "done" }), /`state`: is `done`/);
});

test("several fan-outs are opened in one request", async () => {
  const wanted = ["a", "b"].map((name) => ({ items: 1, user_key: name }));
  const opened = await fanfold.openSeveral(wanted, { idempotencyKey: "several" });
  assert.deepEqual(opened.map((fanout) => fanout.userKey), ["a", "b"]);
  const again = await fanfold.openSeveral(wanted, { idempotencyKey: "several" });
  assert.deepEqual(again.map((fanout) => fanout.id), opened.map((fanout) => fanout.id));
  const tasks = [{ kind: "nothing", content: 1 }];
  await assert.rejects(fanfold.open(0, { tasks }), /there is no policy of this kind/);
});
