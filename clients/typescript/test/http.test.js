/** The client over a server that answers as a test says. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { AckBuffer, Fanfold, HttpAcks, NotEnded } from "fanfold-client";
import { FANOUT, GROUP, scripted } from "./helpers.js";

const OPEN = { id: FANOUT, state: "open", complete: false, total: 3, done: 0, groups: [], user_key: null };
const DONE = { ...OPEN, state: "completed", complete: true, ended: true };

test("a request is repeated under its key", async (t) => {
  const { url, requests } = await scripted(t, null, [503, { detail: "later" }], [500, "no json"], [201, OPEN]);
  assert.equal((await new Fanfold(url).open(3, { userKey: "k" })).id, FANOUT);
  assert.equal(requests.length, 4);
  assert.equal(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
  for (const { body } of requests) assert.deepEqual(body, { items: 3, seal: false, user_key: "k" });
});

test("chosen notices are sent as given", async (t) => {
  const { url, requests } = await scripted(t, [201, OPEN]);
  const [notify, notifyOn] = [{ url: "https://example.com/" }, { ends: ["succeeded"], progress: ["50%"] }];
  await new Fanfold(url).open(3, { notify, notifyOn });
  assert.deepEqual(requests[0].body, { items: 3, seal: false, notify, notify_on: notifyOn });
});

test("each call has a key of its own unless one is given", async (t) => {
  const added = [201, { fanout: FANOUT, groups: [] }];
  const { url, requests } = await scripted(t, added, added, added);
  const fanfold = new Fanfold(url);
  for (const options of [{}, {}, { idempotencyKey: "page-1" }]) await fanfold.add(FANOUT, 1, options);
  const keys = requests.map(({ headers }) => headers["idempotency-key"]);
  assert.ok(new Set(keys).size === 3 && keys[2] === "page-1");
});

test("what is refused is not repeated", async (t) => {
  const problem = { code: "invalid_body", detail: "it is", errors: [{ field: "items", problem: "too many" }] };
  const { url } = await scripted(t, [422, problem]);
  await assert.rejects(new Fanfold(url).open(3), {
    name: "ApiError",
    status: 422,
    code: "invalid_body",
    message: "POST /fanouts: 422 invalid_body: it is; items: too many",
  });
});

test("attempts end", async (t) => {
  const { url, requests } = await scripted(t, null, null, [503, {}], [503, { code: "busy" }]);
  const fanfold = new Fanfold(url, { attempts: 2 });
  await assert.rejects(fanfold.get(FANOUT), { name: "Unreachable", message: /no answer after 2 attempts/ });
  await assert.rejects(fanfold.get(FANOUT), /503 busy/);
  assert.equal(requests[0].headers.authorization, undefined);
});

test("a success that cannot be read is no answer", async (t) => {
  const counts = { id: FANOUT, state: "open", total: 3 };
  const { url, requests } = await scripted(t, [200, '{"id": "0'], [200, counts], [200, []]);
  assert.equal((await new Fanfold(url).get(FANOUT)).total, 3);
  const once = new Fanfold(url, { attempts: 1 }).get(FANOUT);
  await assert.rejects(once, { name: "Unreachable", message: /the answer cannot be read: \[\]/ });
  assert.equal(requests.length, 3);
});

test("counts are not repeated unless nothing was done", async (t) => {
  const counted = { fanouts: [], refused: [{ fanout: FANOUT, code: "wrong_mode", problem: "it is exact" }] };
  const { url, requests } = await scripted(t, [429, { message: "Too Many" }], [200, counted], null, [503, { code: "unavailable" }]);
  const fanfold = new Fanfold(url);
  assert.equal((await fanfold.count([{ fanout: FANOUT, add: 3 }])).refused[0].code, "wrong_mode");
  await assert.rejects(fanfold.count([{ fanout: FANOUT, succeeded: 1 }]), { name: "Unreachable", message: /after 1 attempt:/ });
  await assert.rejects(fanfold.count([{ fanout: FANOUT }]), /503 unavailable/);
  const wanted = [{ add: 3 }, { add: 3 }, { succeeded: 1 }, {}].map((counts) => ({ fanout: FANOUT, ...counts }));
  assert.deepEqual(requests.map(({ body }) => body.counts[0]), wanted);
});

test("more items than a request may add are added by several", async (t) => {
  const added = [201, { fanout: FANOUT, groups: [{ id: "g", upto: 1 }] }];
  const { url, requests } = await scripted(t, added, added, added);
  const { groups } = await new Fanfold(url).add(FANOUT, 2 * 709_632 + 1, { idempotencyKey: "k" });
  assert.deepEqual(requests.map(({ body }) => body.items), [709_632, 709_632, 1]);
  assert.deepEqual(requests.map(({ headers }) => headers["idempotency-key"]), ["k", "k-1", "k-2"]);
  assert.equal(groups.length, 3);
});

test("a key without room for the number of a part is hashed with it", async (t) => {
  // Every client sends the same keys, so any of them can repeat the call.
  const hashed = [
    "part-ea11e85c1397952d6b6b70169e916a3a1b614d00a23fadd387ee705c10b04f42",
    "part-cb7226f1deeaf47e4475bb35509db04ea67b947d1b946f98a2a546c7a284ea0d",
  ];
  const [fits, long] = ["k".repeat(253), "k".repeat(255)];
  for (const expected of [[fits, `${fits}-1`, `${fits}-2`], [long, ...hashed]]) {
    const { url, requests } = await scripted(t, ...Array(3).fill([201, { fanout: FANOUT, groups: [] }]));
    await new Fanfold(url).add(FANOUT, 2 * 709_632 + 1, { idempotencyKey: expected[0] });
    assert.deepEqual(requests.map(({ headers }) => headers["idempotency-key"]), expected);
  }
});

test("a wait asks again until it ended", async (t) => {
  const cancelling = { ...OPEN, state: "cancelled", ended: false };
  const { url, requests } = await scripted(t, [200, OPEN], [200, cancelling], [200, DONE]);
  assert.equal((await new Fanfold(url).wait(FANOUT)).state, "completed");
  assert.deepEqual(requests.map(({ path }) => path), Array(3).fill(`/fanouts/${FANOUT}?wait=20s`));
});

test("a wait ends when the time is up", async (t) => {
  const { url, requests } = await scripted(t, [200, OPEN]);
  await assert.rejects(new Fanfold(url).wait(FANOUT, 0), (error) => error instanceof NotEnded && error.fanout.total === 3);
  assert.equal(requests[0].path, `/fanouts/${FANOUT}`, "it does not wait");
});

test("complete is ended where the answer does not say", async (t) => {
  const { url } = await scripted(t, [200, { ...OPEN, complete: true, state: "completed" }]);
  assert.ok((await new Fanfold(url).wait(FANOUT)).ended);
});

test("items are listed page by page", async (t) => {
  const path = `/fanouts/${FANOUT}/items?state=failed`;
  const pages = [{ items: [`${GROUP}:1-3`], next: `${path}&after=x` }, { items: [`${GROUP}:9`], next: null }];
  const { url, requests } = await scripted(t, ...pages.map((page) => [200, page]));
  const items = [];
  for await (const item of new Fanfold(url).items(FANOUT, "failed")) items.push(item);
  assert.deepEqual(items, [1, 2, 3, 9].map((index) => `${GROUP}:${index}`));
  assert.deepEqual(requests.map((request) => request.path), [path, `${path}&after=x`]);
});

test("results are listed page by page", async (t) => {
  const path = `/fanouts/${FANOUT}/results`;
  const done = { id: `${GROUP}:0`, outcome: "succeeded", result: { label: 7 } };
  const failed = { id: `${GROUP}:1`, outcome: "failed", result_left_out: "too large", error: "no", code: null };
  const pages = [{ results: [done], next: `${path}?after=x` }, { results: [failed], next: null }];
  const { url, requests } = await scripted(t, ...pages.map((page) => [200, page]));
  const results = [];
  for await (const result of new Fanfold(url).results(FANOUT)) results.push(result);
  assert.deepEqual(results, [done, { id: `${GROUP}:1`, outcome: "failed", error: "no", resultLeftOut: "too large" }]);
  assert.deepEqual(requests.map((request) => request.path), [path, `${path}?after=x`]);
});

test("a producer is resumed", async (t) => {
  const partitions = [{ partition: 0, state: "done", rows: 7 }, { partition: 1, state: "running", rows: 3 }];
  const none = [409, { code: "no_producer", detail: "it has none" }];
  const { url, requests } = await scripted(t, [200, { partitions }], none);
  const fanfold = new Fanfold(url);
  assert.deepEqual(await fanfold.resumeProducer(FANOUT), partitions);
  await assert.rejects(fanfold.resumeProducer(FANOUT), { status: 409, code: "no_producer" });
  for (const { path } of requests) assert.equal(path, `/fanouts/${FANOUT}/producer/resume`);
});

test("requests are signed where they are to be", async (t) => {
  const { url, requests } = await scripted(t, [200, OPEN], [201, OPEN]);
  const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret", sessionToken: "token" };
  const fanfold = new Fanfold(url, { credentials, region: "eu-west-1", sign: true });
  await fanfold.get(FANOUT);
  await fanfold.open(1);
  for (const { headers } of requests) {
    assert.match(headers.authorization, /eu-west-1\/execute-api\/aws4_request/);
    assert.equal(headers["x-amz-security-token"], "token");
  }
});

test("bad settings are named", () => {
  assert.throws(() => new Fanfold("localhost:8080"), /url: `localhost:8080`/);
  assert.throws(() => new Fanfold("http://localhost:8080", { attempts: 0 }), /attempts: 0/);
});

test("acks of which none exists are refused and leave the buffer", async (t) => {
  const { url } = await scripted(t, [422, { code: "invalid_acks", detail: "no such item" }]);
  const buffer = new AckBuffer(new HttpAcks(new Fanfold(url)), { maxAge: null });
  await buffer.succeeded(`${GROUP}:1`);
  await assert.rejects(buffer.flush(), ({ refused }) => refused[0].group === GROUP && refused[0].items[0] === "1");
  assert.equal(buffer.size, 0);
});

test("a list is asked for page by page", async (t) => {
  const one = (number) => ({ ...OPEN, id: FANOUT.slice(0, -1) + number });
  const { url, requests } = await scripted(
    t,
    [200, { fanouts: [one(1), one(2)], next: "/fanouts?state=open%2Csealed&after=ab" }],
    [200, { fanouts: [], next: "/fanouts?state=open%2Csealed&after=cd" }],
    [200, { fanouts: [one(3)] }],
  );
  const which = { state: ["open", "sealed"], userKey: "order 4711&/ü", openedAfter: new Date(7), order: "oldest" };
  const listed = [];
  for await (const fanout of new Fanfold(url).fanouts(which)) listed.push(fanout.id.at(-1));
  assert.deepEqual(listed, ["1", "2", "3"]);
  assert.deepEqual(
    requests.map(({ path }) => path),
    [
      "/fanouts?state=open%2Csealed&user_key=order%204711%26%2F%C3%BC&opened_after=7&order=oldest",
      "/fanouts?state=open%2Csealed&after=ab",
      "/fanouts?state=open%2Csealed&after=cd",
    ],
  );
});
