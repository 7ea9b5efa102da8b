// The dashboard: what is done to many fan-outs at once.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {fanoutLike, idOf} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(); });
after(() => stack?.stop());

test("a selection is counted, and cancelled as one job; an empty filter changes nothing", async () => {
  const page = await stack.page("#/fanouts");
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByRole("heading", {name: "Choose a filter first"}).waitFor();
  await page.keyboard.press("Escape");
  for (const index of [0, 1, 2]) await stack.send("POST", "/fanouts", {items: 1, user_key: `selected ${index}`});
  await page.getByLabel("User key begins with").fill("selected");
  await page.getByText("3 fan-outs", {exact: true}).waitFor();
  assert.equal(await page.getByLabel("Oldest first").count(), 0, "a list by user key has its own order");
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByRole("heading", {name: "Cancel 3 fan-outs?"}).waitFor();
  await page.getByRole("dialog").getByRole("button", {name: "Cancel 3 fan-outs"}).click();
  await page.getByText("3 fan-outs done.").waitFor();
  const {fanouts} = await stack.send("GET", "/fanouts?user_key_prefix=selected");
  assert.deepEqual(fanouts.map(({state}) => state), ["cancelled", "cancelled", "cancelled"]);
  await page.getByRole("button", {name: "Close"}).click();
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByText("The filter finds no fan-out to cancel.").waitFor();
  assert.deepEqual(page.complaints, []);
});

test("a selection is reissued, also where items are only missing", async () => {
  const page = await stack.page("#/api");
  const sent = {};
  const found = [
    fanoutLike(idOf(1), {state: "cancelled", succeeded: 8, done: 8, missing: 2}), fanoutLike(idOf(2), {failed: 1, succeeded: 9}),
    fanoutLike(idOf(3), {failed: 1, succeeded: 9, reissued_as: idOf(9)}), fanoutLike(idOf(4)),
  ];
  await page.route((url) => url.pathname.startsWith("/fanouts"), (route) => {
    const {pathname} = new URL(route.request().url());
    if (route.request().method() === "GET") return route.fulfill({json: {fanouts: found}});
    sent[pathname] = route.request().postDataJSON();
    return pathname.includes(idOf(2)) ? route.fulfill({status: 409, json: {title: "conflict", detail: "it was just reissued"}}) : route.fulfill({json: {id: idOf(8)}});
  });
  await page.goto(`${stack.url}/dashboard/#/fanouts/like`);
  await page.getByText("4 fan-outs: 3 completed, 1 cancelled").waitFor();
  await page.getByRole("button", {name: "Reissue those found"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Reissue 2 fan-outs"}).click();
  await page.getByText("1 fan-out done, 1 refused (it was just reissued).").waitFor();
  assert.deepEqual(sent, {[`/fanouts/${idOf(1)}/reissue`]: {missing: true}, [`/fanouts/${idOf(2)}/reissue`]: {missing: false}});
});

test("a job that is stopped says what was done", async () => {
  for (const index of [0, 1, 2]) await stack.send("POST", "/fanouts", {items: 1, user_key: `stopped ${index}`});
  const page = await stack.page("#/fanouts/stopped");
  await page.getByText("3 fan-outs", {exact: true}).waitFor();
  let sent = 0;
  await page.route("**/fanouts/*", (route) => {
    if (route.request().method() !== "DELETE") return route.continue();
    sent += 1;
    // The second one is never answered.
    return sent === 2 ? undefined : route.continue();
  });
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Cancel 3 fan-outs"}).click();
  const bar = page.getByRole("dialog").locator("progress[value='1'][max='3']");
  await bar.waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("Stopped. Until then: 1 fan-out done.").waitFor();
  await page.getByRole("button", {name: "Close"}).click();
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.equal(sent, 2);
});

test("very many are counted up to a bound, and filters say what was looked at", async () => {
  const page = await stack.page("#/api");
  const of = (from) => Array.from({length: 100}, (_, index) => fanoutLike(idOf(from + index), {state: "open", ended: false}));
  await page.route((url) => url.pathname === "/fanouts", (route) => {
    const query = new URL(route.request().url()).searchParams;
    const after = Number(query.get("after"));
    return route.fulfill({json: {fanouts: query.get("user_key_prefix") === "rare" ? [] : of(after), next: `/fanouts?user_key_prefix=${query.get("user_key_prefix")}&after=${after + 100}`}});
  });
  await page.goto(`${stack.url}/dashboard/#/fanouts/many`);
  await page.getByText("100 fan-outs. There may be more.").waitFor();
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByRole("heading", {name: "Cancel more than 10,000 fan-outs?"}).waitFor();
  await page.getByRole("button", {name: "Back"}).click();
  await page.goto(`${stack.url}/dashboard/#/fanouts/rare`);
  await page.getByText(/^0 fan-outs\. 10 pages of the list were read; there may be more\./).waitFor();
  await page.getByRole("button", {name: "Look further"}).waitFor();
  assert.deepEqual(page.complaints, []);
});
