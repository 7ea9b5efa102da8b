// The dashboard: its overview, and what it says when something cannot be read.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {fanoutLike, heading, idOf, standIn, text, until} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(); });
after(() => stack?.stop());

test("fan-outs that ended badly are shown, whenever they were opened, and nothing else is claimed", async () => {
  const failed = await stack.send("POST", "/fanouts", {items: 3, seal: true, user_key: "push failed", tolerated_failures: 0});
  await stack.send("POST", "/acks", {failed: [`${failed.id}:${failed.id}:0`]});
  const completed = await stack.send("POST", "/fanouts", {items: 3, seal: true, user_key: "push with a failure"});
  await stack.send("POST", "/acks", {items: [`${completed.id}:${completed.id}:0-1`], failed: [`${completed.id}:${completed.id}:2`]});
  const page = await stack.page();
  const notes = page.locator(".attention");
  await notes.getByText("push failed").waitFor();
  assert.match(await notes.innerText(), /push with a failure\s+completed\s+.*: 1 item failed\./);
  // What was opened a week ago and expired now is behind the first page of the list.
  await standIn(page, {
    "/fanouts?state=failed": (request) => ({json: request.url().includes("after=")
      ? {fanouts: [1, 2, 3, 4, 5, 6, 7].map((number) => fanoutLike(idOf(number), {state: "expired", missing: number, updated_at: Date.now() - number * 1000})).reverse()}
      : {fanouts: [fanoutLike(idOf(8), {state: "expired", missing: 1, updated_at: Date.now() - 25 * 3600 * 1000})], next: "/fanouts?state=failed,cancelled,expired&after=1"}}),
    "/fanouts?state=completed": {fanouts: [fanoutLike(idOf(9), {failed: 2, reissued_as: idOf(1)})]},
  });
  await page.reload();
  await notes.getByText("like 01").waitFor();
  const said = await notes.innerText();
  assert.match(said, /like 05\s+expired\s+.*5 missing/);
  assert.ok(!/like 0[689]/.test(said), `the latest five, and none that is older or was reissued: ${said}`);
  await notes.getByRole("link", {name: "2 more"}).click();
  await heading(page, "Fan-outs");
  assert.equal(await page.getByLabel("expired").isChecked(), true);
  assert.equal(await page.getByLabel("With failed or missing items").isChecked(), true);
  assert.deepEqual(page.complaints, []);
});

test("nothing needs you is said of exactly what was read", async () => {
  const page = await stack.page("#/letters");
  const list = (next) => ({fanouts: [fanoutLike(idOf(1))], ...(next && {next: "/fanouts?state=completed&after=1"})});
  const quiet = {"/health": {status: "ok", version: "0"}, "/switches": {switches: []}, "/dead-letters": {queues: []}, "/fanouts?state=failed": {fanouts: []}};
  await standIn(page, {...quiet, "/fanouts?state=completed": list(false)});
  await page.goto(`${stack.url}/dashboard/#/`);
  const fine = page.locator(".fine");
  await fine.getByText("no fan-out that ended in the last day failed, expired or has failed items").waitFor();
  await standIn(page, {"/fanouts?state=completed": list(true)});
  await page.reload();
  await fine.getByText("of the 5 newest fan-outs that ended, none did so badly in the last day").waitFor();
  assert.equal(await page.title(), "Overview · Fanfold");
  assert.deepEqual(page.complaints, []);
});

test("findings lead to what they are about, also those that the page does not know", async () => {
  const page = await stack.page("#/letters");
  const about = (...names) => ({count: names.length, about: names.map((name) => ({name}))});
  await standIn(page, {"/health": {status: "error", version: "0", findings: [
    {what: "tasks_wait", level: "stale", since: Date.now() - 3600_000, says: "tasks wait in lanes", fix: "See the lane: `GET /lanes`.", ...about("parcel:3:NY/00:5"), count: 12},
    {what: "calls_fail", level: "stale", says: "calls fail", fix: "See the batch API.", count: 1, about: [{name: "parcel", error: "the answer is `503`"}]},
    {what: "fanout_unfinished", level: "stale", says: "a fan-out has not ended", fix: "See the logs.", ...about(idOf(1))},
    {what: "producer_failed", level: "error", says: "a producer has failed", fix: "Fix the source.", ...about(idOf(3))},
    {what: "something_new", level: "error", says: "something is new", fix: "", ...about(idOf(2), "by name")},
  ]}});
  await page.goto(`${stack.url}/dashboard/#/`);
  const notes = page.locator(".attention");
  await notes.getByText("Tasks wait in lanes").waitFor();
  const links = await notes.getByRole("link").evaluateAll((all) => Object.fromEntries(all.map((link) => [link.textContent, link.getAttribute("href")])));
  assert.equal(links["parcel:3:NY/00:5"], "#/lanes/parcel/NY%2F00%3A5/3");
  assert.deepEqual([links.parcel, links[idOf(1)], links[idOf(2)], links[idOf(3)]], ["#/kinds/parcel", `#/fanouts/${idOf(1)}`, `#/find/${idOf(2)}`, `#/fanouts/${idOf(3)}`]);
  assert.equal(await notes.locator("code").first().innerText(), "GET /lanes");
  const said = await notes.innerText();
  assert.match(said, /Tasks wait in lanes, since .* \(1 h ago\)\. parcel:3:NY\/00:5 and 11 more\. See the lane/);
  assert.match(said, /Calls fail\. parcel \(the answer is 503\)\./, "no time is claimed that is not known");
  assert.match(said, /A fan-out has not ended\. \S+\. See the logs/);
  await notes.getByRole("link", {name: "parcel:3:NY/00:5"}).click();
  await heading(page, "Lanes");
  assert.deepEqual([await page.getByLabel("Kind").inputValue(), await page.getByLabel("Target").inputValue(), await page.getByLabel("Partition").inputValue()], ["parcel", "NY/00:5", "3"]);
  assert.deepEqual(page.complaints, []);
});

test("what cannot be read does not empty the overview", async () => {
  await stack.send("POST", "/fanouts", {items: 5, user_key: "still shown"});
  const page = await stack.page("#/letters");
  await standIn(page, {"/dead-letters": () => ({status: 503, json: {title: "unavailable", detail: "the queues cannot be reached"}})});
  await page.goto(`${stack.url}/dashboard/#/`);
  await page.getByText("Cannot be read: dead letters. the queues cannot be reached").waitFor();
  await page.getByRole("region", {name: "Fan-outs in progress"}).getByText("still shown").waitFor();
  assert.ok(!(await text(page, "main")).includes("Nothing needs you"));
});

test("a view that fails says so, and where", async () => {
  const page = await stack.page("#/api");
  await standIn(page, {"/dead-letters": {queues: null}});
  await page.goto(`${stack.url}/dashboard/#/letters`);
  await heading(page, "This view failed");
  assert.match(await text(page, ".problem"), /views\/letters\.js:\d+/);
  await page.unrouteAll();
  await page.getByRole("button", {name: "Try again"}).click();
  await page.getByRole("region", {name: "Dead letters by step"}).waitFor();
});

test("the last minutes are plotted", async () => {
  await stack.policy("plotted");
  const page = await stack.page();
  await page.getByRole("heading", {name: "Last minutes"}).waitFor();
  await page.locator(".plot").nth(2).waitFor();
  await stack.fanout(200, "plotted", "to be plotted");
  await page.getByRole("img", {name: /^Items done: .* at most/}).waitFor();
  await page.getByRole("img", {name: /^Per batch: [\d.]+ tasks/}).waitFor();
  await page.getByRole("img", {name: /^Waiting for the call: [\d.]+/}).waitFor();
  assert.ok(await page.locator(".plot path").first().getAttribute("d"));
  assert.deepEqual(page.complaints, []);
});

test("plots of a deployed stack come from CloudWatch, or the page says why there are none", async () => {
  const page = await stack.page();
  // 600 items, and 60 batches of 7 tasks, a minute.
  await page.goto(`${await stack.deployed([600, 420, 60, 90, 60])}/dashboard/#/`);
  const plots = page.locator(".plot strong");
  await until(async () => (await plots.allInnerTexts()).filter((now) => now !== "–").length, 3, "all three are plotted");
  assert.equal(await plots.nth(1).innerText(), "7.0 tasks");
  await page.goto(`${await stack.deployed(null)}/dashboard/#/`);
  await page.getByText("the permission `cloudwatch:GetMetricData`").waitFor();
});
