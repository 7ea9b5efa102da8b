// The dashboard: how its pages look, and the page of the API.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {after, before, test} from "node:test";
import {until} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(); });
after(() => stack?.stop());

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A picture for the documentation, if one is wanted. */
const picture = (page, name) => process.env.SCREENSHOTS && page.screenshot({path: `${process.env.SCREENSHOTS}/${name}.png`});

/** Nothing serious is wrong with what is shown, and it is not wider than the screen. */
async function looksWell(page, what) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => globalThis.axe.run({resultTypes: ["violations"]}));
  const serious = violations.filter(({impact}) => ["serious", "critical"].includes(impact));
  assert.deepEqual(serious.map(({id, nodes}) => [id, nodes.map(({html}) => html)]), [], what);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${what} is ${wide} pixels wider than its screen`);
}

test("axe finds nothing serious, in light and dark, on a phone and a wide screen", async () => {
  await stack.policy("looked");
  const {id} = await stack.fanout(20, "looked", "looked at");
  const item = `${id}:${id}:0`;
  await until(async () => (await stack.send("GET", `/tasks/${item}`)).batch !== undefined, true);
  const {batch} = await stack.send("GET", `/tasks/${item}`);
  const noTask = await stack.send("POST", "/fanouts", {items: 2, seal: true, user_key: "without tasks"});
  const views = ["#/", "#/fanouts", `#/fanouts/${id}`, `#/batches/${batch}`, `#/tasks/${item}`, `#/tasks/${noTask.id}:${noTask.id}:0`, "#/lanes", "#/kinds", "#/letters", "#/api"];
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [360, 1600]) {
      const page = await stack.page("#/", {colorScheme, viewport: {width, height: 800}, bypassCSP: true});
      for (const view of views) {
        await page.goto(`${stack.url}/dashboard/${view}`);
        await page.locator("h1").waitFor();
        await page.waitForFunction(() => !document.body.innerText.includes("Reading…"));
        await looksWell(page, `${view} in ${colorScheme}, ${width} wide`);
        const name = view.replace("#/", "").split("/")[0] || "overview";
        await picture(page, `${name}-${colorScheme}-${width}`);
      }
      await page.goto(`${stack.url}/dashboard/#/lanes`);
      await page.getByRole("button", {name: "Drain…"}).click();
      await looksWell(page, `a dialog in ${colorScheme}, ${width} wide`);
      await page.context().close();
    }
  }
});

test("the API is described on a page", async () => {
  const page = await stack.page("#/api");
  const open = page.locator("details.operation", {hasText: "POST /fanouts Opens a fan-out"});
  await open.locator("> summary").click();
  await open.getByText("OpenRequest").click();
  await open.getByText("user_key", {exact: true}).first().waitFor();
  await open.getByText("How many items it has at first.").first().waitFor();
  assert.deepEqual(page.complaints, []);
});
