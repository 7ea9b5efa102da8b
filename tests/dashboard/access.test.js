// The dashboard: who may use it: its own page, over a stack here and elsewhere.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {after, before, test} from "node:test";
import {heading, says, text} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(); });
after(() => stack?.stop());

test("the dashboard of a stack elsewhere reads and changes it; nobody but its page does", async () => {
  const url = await stack.dashboard();
  const {id} = await stack.send("POST", "/fanouts", {items: 5, user_key: "elsewhere"});
  const page = await stack.page("#/", {baseURL: url});
  await page.goto(`${url}/dashboard/#/fanouts/${id}`);
  await heading(page, "elsewhere");
  await says(page, "5 left");
  await page.getByRole("button", {name: "Cancel"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Cancel"}).click();
  await page.locator("h1 .state.cancelled").waitFor();
  assert.equal((await stack.send("GET", `/fanouts/${id}`)).state, "cancelled");
  await page.goto(`${url}/dashboard/#/tasks/${id}`);
  await page.locator(".problem").waitFor();
  assert.match(await text(page, ".problem"), /no task/, "what the API says is shown");
  for (const [method, path] of [["GET", "/fanouts"], ["POST", "/fanouts"], ["DELETE", `/fanouts/${id}`]]) {
    assert.equal((await fetch(url + path, {method})).status, 403);
  }
});

test("a page of another site can neither read nor change anything", async () => {
  const other = createServer((_, response) => response.setHeader("content-type", "text/html").end("<h1>Another site</h1>"));
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  const {id} = await stack.send("POST", "/fanouts", {items: 1});
  const context = await stack.browser.newContext();
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${other.address().port}/`);
  const tried = await page.evaluate(async ([url, id]) => {
    const attempt = (path, options) => fetch(url + path, options).then((response) => response.status, () => "refused by the browser");
    return [
      await attempt("/dashboard/", {}), await attempt(`/fanouts/${id}`, {}), await attempt(`/fanouts/${id}`, {method: "DELETE"}),
      await attempt("/pause", {method: "POST", mode: "no-cors", body: '{"all": true}'}),
      await attempt("/pause", {method: "POST", headers: {"fanfold-dashboard": "x"}, body: '{"all": true}'}),
    ];
  }, [stack.url, id]);
  assert.deepEqual(tried, ["refused by the browser", "refused by the browser", "refused by the browser", 0, "refused by the browser"]);
  assert.equal((await stack.send("GET", `/fanouts/${id}`)).state, "open");
  assert.deepEqual((await stack.send("GET", "/switches")).switches.filter(({all}) => all), []);
  // Nor may one be put into a frame.
  const {headers} = await fetch(`${stack.url}/dashboard/`);
  assert.match(headers.get("content-security-policy"), /frame-ancestors 'none'/);
  other.close();
  await context.close();
});
