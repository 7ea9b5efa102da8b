// The dashboard: a fan-out, its items, and why they wait.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {after, before, test} from "node:test";
import {confirmed, heading, idOf, pixels, says, standIn, text, until} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(["--fail", "10%"]); });
after(() => stack?.stop());

test("a run fills up without reloading, and a failure is reissued by clicking", async () => {
  await stack.policy("letter");
  await stack.send("POST", "/pause", {kind: "letter"});
  const {id} = await stack.fanout(300, "letter", "letters of today");
  const page = await stack.page();
  await page.getByText("Paused").first().waitFor();
  await page.getByRole("link", {name: "letters of today"}).click();
  await heading(page, "letters of today");
  await says(page, "300 left");
  // A square of 17 pixels and a gap per item.
  const area = 17 * 17;
  await until(() => pixels(page, "pending"), area * 300, "every item is pending");
  await stack.send("POST", "/resume", {kind: "letter"});
  await page.locator("h1 .state.completed").waitFor();
  const {succeeded, failed} = await stack.send("GET", `/fanouts/${id}`);
  assert.equal(succeeded + failed, 300);
  assert.ok(failed > 0, "the sandbox fails some");
  await says(page, `${failed}`);
  await until(() => pixels(page, "failed"), area * failed);
  await until(() => pixels(page, "succeeded"), area * succeeded);
  assert.equal(await page.getByRole("region", {name: "Items that failed"}).locator("tbody tr").count(), Math.min(20, failed));
  await page.getByRole("button", {name: "Reissue what failed"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Reissue what failed"}).click();
  await page.waitForFunction((id) => !location.hash.includes(id), id);
  const again = (await page.evaluate(() => location.hash)).split("/")[2];
  await page.locator("h1 .state.completed").waitFor();
  const reissue = await stack.send("GET", `/fanouts/${again}`);
  assert.deepEqual([reissue.total, reissue.reissue_of], [failed, id]);
  assert.deepEqual(page.complaints, []);
});

test("who is left is named, with why they wait", async () => {
  await stack.policy("slow", {target: "content.to"});
  await stack.send("POST", "/pause", {kind: "slow", target: "t1"});
  await stack.fanout(30, "slow", "three left", (index) => index < 3 ? "t1" : "t2");
  const page = await stack.page("#/fanouts/three left");
  await page.getByRole("link", {name: "three left"}).click();
  await page.getByRole("heading", {name: "Left: 3 items"}).waitFor();
  const left = page.getByRole("region", {name: "Items that are left"});
  assert.equal(await left.locator("tbody tr").count(), 3);
  assert.match(await left.innerText(), /Paused since .*: kind slow, target t1\./);
  assert.equal(await page.title(), "three left · Fan-out · Fanfold");
  await left.getByRole("link").first().click();
  await heading(page, "Task");
  assert.match(await text(page, ".facts"), /slow:0:t1/);
  // It is cancelled after it was asked, and only then.
  await page.getByRole("button", {name: "Cancel"}).click();
  await page.getByRole("button", {name: "Back"}).click();
  assert.equal(await text(page, "h1 .state"), "created");
  await page.getByRole("button", {name: "Cancel"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Cancel"}).click();
  await page.locator("h1 .state.cancelled").waitFor();
  assert.deepEqual(page.complaints, []);
});

test("what holds up the last items is said: the batch API, the lane, the policy", async () => {
  // The first batch of a target lingers for long, and its kind is not paused.
  await stack.policy("lingers", {linger: "15m", max_batch: 100});
  const lingers = await stack.fanout(3, "lingers", "lingering", () => "one");
  const page = await stack.page(`#/fanouts/${lingers.id}`);
  const left = page.getByRole("region", {name: "Items that are left"});
  await left.getByText("It waits in its lane for a batch: 3 tasks wait there").first().waitFor();
  await left.getByRole("link", {name: "lane"}).first().click();
  await page.getByRole("row", {name: /lingers:0:one/}).waitFor();
  // Without a secret, no call can be made.
  await stack.policy("still", {batch_api: {url: stack.batchApi, request: {headers: {"X-Key": "${secret.KEY}"}}}});
  const still = await stack.fanout(1, "still", "standing still");
  await page.goto(`${stack.url}/dashboard/#/fanouts/${still.id}`);
  await left.getByText(/Kind still stands still since .*KEY/).waitFor();
  await standIn(page, {"/policies/lingers": () => ({status: 404, json: {title: "unknown policy"}})});
  await page.goto(`${stack.url}/dashboard/#/fanouts/${lingers.id}`);
  await left.getByText("Kind lingers has no policy.").first().waitFor();
  // A stack that allows dev sessions is stood in for: the local runner does not.
  const task = {id: `${still.id}:${still.id}:0`, kind: "still", target: "t0", lane: "still:0:t0", status: "in_batch", batch: idOf(1), created_at: Date.now()};
  await standIn(page, {"/tasks/": task, "/batches/": {id: idOf(1), status: "in_progress", dev_session: idOf(2), answers_until: Date.now() + 60_000, members: []}});
  await page.goto(`${stack.url}/dashboard/#/fanouts/${still.id}`);
  await left.getByText(`The dev session ${idOf(2)} has its batch`).waitFor();
});

test("a producer whose partition failed is resumed from its fan-out", async () => {
  await stack.policy("mail");
  let row = {nonsense: true};
  const source = createServer((_, response) => response.setHeader("content-type", "application/json").end(JSON.stringify({tasks: [row]})));
  await new Promise((done) => source.listen(0, "127.0.0.1", done));
  const {id} = await stack.send("POST", "/fanouts", {user_key: "produced", producer: {source: {url: `http://localhost:${source.address().port}/`}, partitions: 1}});
  const page = await stack.page(`#/fanouts/${id}`);
  await page.getByText("1 partition failed, so the fan-out stays open.").waitFor();
  const partitions = page.getByRole("region", {name: "Partitions"});
  await partitions.getByRole("row", {name: /0\s+failed/}).waitFor();
  assert.ok((await partitions.locator(".bad").first().innerText()).length > 10, "the error is shown");
  row = {kind: "mail", content: {to: "alice"}};
  await confirmed(page, "Resume producer");
  await page.locator("h1 .state.completed").waitFor();
  await page.getByText("1 partition, 1 row").click();
  await partitions.getByRole("row", {name: /0\s+done\s+1/}).waitFor();
  assert.equal(await page.getByRole("button", {name: "Resume producer"}).count(), 0);
  assert.deepEqual(page.complaints, []);
  source.close();
});

test("an item without a task shows its state, and the times of its fan-out", async () => {
  const {id} = await stack.send("POST", "/fanouts", {items: 3, seal: true, user_key: "no tasks"});
  await stack.send("POST", "/acks", {items: [`${id}:${id}:0`], failed: [`${id}:${id}:1`]});
  const page = await stack.page(`#/tasks/${id}:${id}:1`);
  await page.locator("h1 .state.failed").waitFor();
  assert.match(await text(page, ".history"), /Its fan-out was opened[^]*The item was acked: failed/);
  await page.goto(`${stack.url}/dashboard/#/tasks/${id}:${id}:2`);
  await page.locator("h1 .state.pending").waitFor();
  await page.goto(`${stack.url}/dashboard/#/tasks/${id}:${id}:9`);
  await page.getByText("not known: the fan-out's bitfield does not have it").waitFor();
});
