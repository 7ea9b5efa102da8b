// The dashboard: from a failure to what was sent, and dev sessions.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {heading, idOf, standIn, text} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(); });
after(() => stack?.stop());

test("a failure is followed from its item to its batch, and to what was sent", async () => {
  await stack.policy("traced", {max_attempts: 1, batch_api: {url: stack.batchApi, request: {headers: {"X-Key": "${secret.KEY}"}}}});
  const {id} = await stack.fanout(1, "traced", "traced one");
  const page = await stack.page(`#/tasks/${id}:${id}:0`);
  // The secret is missing, so the kind stands still before its first call.
  const history = page.locator(".history");
  await history.getByText("Registered: kind traced, target t0").waitFor();
  await history.getByText("Claimed by batch").waitFor();
  await history.getByRole("link").first().click();
  await heading(page, "Batch");
  await page.getByText("Request", {exact: true}).click();
  const request = page.locator("details .json");
  await request.waitFor();
  const said = await request.innerText();
  assert.match(said, new RegExp(`^POST ${stack.batchApi}\nContent-Type: application/json\nX-Key: \\[secret KEY\\]\nIdempotency-Key: `));
  assert.deepEqual(JSON.parse(said.split("\n\n")[1]).members.map(({content}) => content), [{to: "t0", n: 0}]);
  await page.getByText(/For 1 member, \d+ B:/).waitFor();
  assert.deepEqual(page.complaints, []);
});

test("a batch whose call failed says in how many parts it is called again", async () => {
  const page = await stack.page();
  const batch = {id: idOf(1), lane: "k:0:t", kind: "k", target: "t", partition: 0, status: "in_progress",
    attempts: 1, parts: 2, members: [], created_at: Date.now(), updated_at: Date.now()};
  await page.route(`**/batches/${batch.id}`, (route) => route.fulfill({json: batch}));
  await page.goto(`${stack.url}/dashboard/#/batches/${batch.id}`);
  await page.getByText("Parts still to be called").waitFor();
  assert.match(await text(page, ".facts"), /Parts still to be called\s+2/);
  assert.deepEqual(page.complaints, []);
});

test("results of a large batch are read page by page", async () => {
  const batch = {id: idOf(3), lane: "k:0:t", kind: "k", target: "t", partition: 0, status: "done", attempts: 1, created_at: Date.now(), updated_at: Date.now(),
    members: Array.from({length: 600}, (_, index) => ({id: idOf(1000 + index), outcome: "succeeded"}))};
  const results = (from, to) => batch.members.slice(from, to).map(({id}, index) => ({id, outcome: "succeeded", result: `label ${from + index}`}));
  const page = await stack.page();
  await standIn(page, {
    [`/batches/${batch.id}`]: batch,
    [`/batches/${batch.id}/results`]: (request) => ({json: request.url().includes("after=")
      ? {results: results(500, 600)} : {results: results(0, 500), next: `/batches/${batch.id}/results?after=x`}}),
  });
  await page.goto(`${stack.url}/dashboard/#/batches/${batch.id}`);
  await page.getByText("label 599").waitFor();
  assert.equal(await page.title(), "019abcde-0000… · Batch · Fanfold");
  assert.deepEqual(page.complaints, []);
});

test("a task is found by its key", async () => {
  await stack.policy("keyed", {key: "string(content.n)"});
  const {id} = await stack.fanout(3, "keyed", "keyed ones");
  const page = await stack.page("#/kinds/keyed");
  const find = page.getByRole("region", {name: "keyed"}).getByRole("button", {name: "Find by key"});
  await find.click();
  await page.getByRole("dialog").getByLabel("Key").fill("2");
  await page.getByRole("dialog").getByRole("button", {name: "Find by key"}).click();
  await page.getByRole("dialog").getByText("no task of kind `keyed` has the key `2` there").waitFor();
  await page.getByRole("dialog").getByLabel("Fan-out").fill(id);
  await page.getByRole("dialog").getByRole("button", {name: "Find by key"}).click();
  await page.locator(".history").getByText("Registered: kind keyed, target t2").waitFor();
  assert.equal(page.complaints.filter((said) => !said.includes("404")).length, 0, page.complaints.join("; "));
});

test("a dev session is shown at its kind, and ended there", async () => {
  await stack.policy("lent");
  const session = "019abcde-0000-7000-8000-000000000002";
  const asked = [];
  const page = await stack.page();
  // The local runner allows no dev sessions, so a stack that does is stood in for.
  await page.route("**/policies/*/dev*", (route) => {
    const {pathname, search} = new URL(route.request().url());
    if (route.request().method() === "DELETE") asked.push(pathname + search);
    const holds = pathname.includes("/lent/") && asked.length === 0;
    return route.fulfill({json: {allowed: true, queues: "arn:", ...(holds && {lease: {session, queue: "arn:q", until: Date.now() + 60000, answers_within: "5m"}})}});
  });
  await page.goto(`${stack.url}/dashboard/#/kinds`);
  await page.getByText(`Its batches go to the dev session ${session}`).waitFor();
  await page.getByRole("button", {name: "End the dev session"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "End the dev session"}).click();
  await page.getByText(`Its batches go to the dev session ${session}`).waitFor({state: "detached"});
  assert.deepEqual(asked, [`/policies/lent/dev?session=${session}`]);
  assert.deepEqual(page.complaints, []);
});
