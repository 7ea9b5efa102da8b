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

test("axe finds nothing serious, in light and dark, on a phone and a wide screen", async () => {
  await stack.policy("looked");
  const {id} = await stack.fanout(20, "looked", "looked at");
  const item = `${id}:${id}:0`;
  await until(async () => (await stack.send("GET", `/tasks/${item}`)).batch !== undefined, true);
  const {batch} = await stack.send("GET", `/tasks/${item}`);
  const views = ["#/", "#/fanouts", `#/fanouts/${id}`, `#/batches/${batch}`, `#/tasks/${item}`, "#/lanes", "#/kinds", "#/letters", "#/api"];
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [360, 1600]) {
      const page = await stack.page("#/", {colorScheme, viewport: {width, height: 800}, bypassCSP: true});
      for (const view of views) {
        await page.goto(`${stack.url}/dashboard/${view}`);
        await page.locator("h1").waitFor();
        await page.waitForFunction(() => !document.body.innerText.includes("Reading…"));
        await page.evaluate(axe);
        const {violations} = await page.evaluate(() => globalThis.axe.run({resultTypes: ["violations"]}));
        const serious = violations.filter(({impact}) => ["serious", "critical"].includes(impact));
        assert.deepEqual(serious.map(({id, nodes}) => [id, nodes.map(({html}) => html)]), [], `${view} in ${colorScheme}, ${width} wide`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${view} is ${wide} pixels wider than a screen of ${width}`);
        const name = view.replace("#/", "").split("/")[0] || "overview";
        await picture(page, `${name}-${colorScheme}-${width}`);
      }
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
