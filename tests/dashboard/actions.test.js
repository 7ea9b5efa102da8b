// The dashboard: what it changes: lanes, kinds, tasks, dead letters.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {confirmed, idOf, standIn, until} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(["--fail", "10%"]); });
after(() => stack?.stop());

test("lanes are paused, resumed and searched", async () => {
  await stack.policy("parcel");
  await stack.send("POST", "/pause", {kind: "parcel", target: "t0"});
  await stack.fanout(9, "parcel", "parcels");
  const page = await stack.page("#/lanes");
  await page.getByLabel("Kind").fill("parcel");
  const row = page.getByRole("region", {name: "Lanes"}).getByRole("row", {name: /parcel:0:t0/});
  await row.getByText("paused").waitFor();
  assert.equal(await row.getByRole("button", {name: "Drain"}).count(), 0, "draining would end the pause");
  await row.getByRole("button", {name: "Resume"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Resume"}).click();
  await page.waitForFunction(() => !document.body.innerText.includes("parcel:0:t0"));
  assert.deepEqual(page.complaints, []);
});

test("a lane is drained, and its leader and batches are shown", async () => {
  await stack.policy("drained", {linger: "15m", max_batch: 100});
  const {id} = await stack.fanout(3, "drained", "to be drained", () => "one");
  const page = await stack.page("#/lanes/drained");
  const row = page.getByRole("region", {name: "Lanes"}).getByRole("row", {name: /drained:0:one/});
  await row.getByText(/ ago|now/).last().waitFor();
  await row.getByRole("button", {name: "Drain"}).click();
  await page.getByRole("dialog").getByText("If it is paused, the pause ends.").waitFor();
  await page.getByRole("dialog").getByRole("button", {name: "Drain"}).click();
  await until(async () => (await stack.send("GET", `/fanouts/${id}`)).state, "completed");
  const lane = {lane: "k:0:t", kind: "k", target: "t", partition: 0, paused: false, draining: false, pending: {tasks: 1, bytes: 1, at_least: false}, in_flight: 0, batches: [],
    closing: 0, leader: idOf(1), leads_since: Date.now() - 600_000};
  await standIn(page, {"/lanes": {lanes: [lane]}});
  await page.goto(`${stack.url}/dashboard/#/lanes/k`);
  assert.match(await page.getByRole("row", {name: /k:0:t/}).innerText(), /10 min/);
  assert.deepEqual(page.complaints, []);
});

test("lanes that are not shown are mentioned", async () => {
  const page = await stack.page("#/api");
  const lane = (number) => ({lane: `k:0:${number}`, kind: "k", target: `${number}`, partition: 0, paused: false, draining: false,
    pending: {tasks: 1, bytes: 1, at_least: false}, in_flight: 0, batches: [], closing: 0});
  await standIn(page, {"/lanes": (request) => {
    const after = Number(new URL(request.url()).searchParams.get("after"));
    return {json: {lanes: Array.from({length: 100}, (_, index) => lane(after + index)), ...(after < 300 && {next: `/lanes?after=${after + 100}`})}};
  }});
  await page.goto(`${stack.url}/dashboard/#/lanes`);
  await page.getByText("The first 200 are shown.").waitFor();
  await page.getByRole("button", {name: "Show more"}).click();
  await page.getByText("k:0:399").waitFor();
  assert.equal(await page.getByRole("button", {name: "Show more"}).count(), 0);
  await page.goto(`${stack.url}/dashboard/#/`);
  await page.getByText("The first 20 are shown.").waitFor();
});

test("a kind shows that everything is paused, and resumes that", async () => {
  await stack.policy("held");
  await stack.send("POST", "/pause", {all: true});
  const page = await stack.page("#/kinds/held");
  const kind = page.getByRole("region", {name: /^held/});
  await kind.locator(".state.paused").waitFor();
  await kind.getByText("Everything is paused.").waitFor();
  assert.equal(await kind.getByRole("button", {name: "Drain"}).count(), 0);
  await confirmed(page, "Resume everything");
  await kind.getByRole("button", {name: "Pause"}).waitFor();
  assert.deepEqual((await stack.send("GET", "/switches")).switches.filter(({state}) => state === "paused"), []);
  assert.deepEqual(page.complaints, []);
});

test("waiting tasks of a scope are cancelled, and failed ones reset", async () => {
  await stack.policy("scoped", {max_attempts: 1});
  await stack.send("POST", "/pause", {kind: "scoped"});
  const tasks = (from, to) => Array.from({length: 5}, (_, index) => ({kind: "scoped", content: {to, n: from + index}}));
  await stack.send("POST", "/tasks", {tasks: tasks(0, "waits")});
  const page = await stack.page("#/lanes");
  const act = async (name, target) => {
    await page.getByRole("button", {name}).click();
    await page.locator("dialog [name=kind]").fill("scoped");
    await page.locator("dialog [name=target]").fill(target);
    await page.getByRole("dialog").getByRole("button", {name}).click();
    const said = await page.getByRole("dialog").getByText(/^Done: /).innerText();
    await page.getByRole("button", {name: "Close"}).click();
    return said;
  };
  assert.equal(await act("Cancel waiting tasks", "waits"), "Done: 5 cancelled.");
  await stack.send("POST", "/resume", {kind: "scoped"});
  // The sandbox decides by their content which fail.
  const {ids = [], tasks: made = []} = await stack.send("POST", "/tasks", {tasks: Array.from({length: 60}, (_, n) => ({kind: "scoped", content: {to: "fails", n}}))});
  const all = ids.length > 0 ? ids : made.map(({id}) => id);
  const states = () => Promise.all(all.map((id) => stack.send("GET", `/tasks/${id}`).then(({status}) => status)));
  await until(async () => (await states()).every((status) => status === "succeeded" || status === "failed"), true);
  const failed = (await states()).filter((status) => status === "failed").length;
  assert.ok(failed > 0, "the sandbox fails some");
  assert.equal(await act("Reset failed tasks", "fails"), `Done: ${failed} reset, 0 known, 0 refused.`);
  assert.deepEqual(page.complaints, []);
});

test("dead letters are redriven page by page", async () => {
  const page = await stack.page("#/api");
  let left = 12;
  await page.route("**/dead-letters", (route) => route.fulfill({json: {queues: [{step: "ack", messages: left}, {step: "register", messages: 0}]}}));
  await page.route("**/dead-letters/ack/redrive", (route) => {
    const moved = Math.min(10, left);
    left -= moved;
    return route.fulfill({json: {moved, kept: 0, refused: left === 0 ? 1 : 0, more: left > 0}});
  });
  await page.goto(`${stack.url}/dashboard/#/letters`);
  await confirmed(page, "Redrive");
  await page.getByText("12 messages moved, 0 kept where they were, 1 refused.").waitFor();
  await page.getByRole("button", {name: "Close"}).click();
  await page.getByRole("button", {name: "Redrive"}).waitFor({state: "detached"});
  assert.deepEqual(page.complaints, []);
});
