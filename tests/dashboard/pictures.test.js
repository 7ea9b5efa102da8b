// Pictures for the documentation, if they are wanted: `SCREENSHOTS=folder tests/dashboard/run` writes overview.png, fan-out.png and
// phone.png, which docs/images has with fewer colours (`convert overview.png +dither -colors 200 PNG8:docs/images/overview.png`).
import assert from "node:assert/strict";
import {test} from "node:test";
import {until} from "./helpers.js";
import {Stack} from "./stack.js";

const folder = process.env.SCREENSHOTS;

/** The same numbers each time, from 0 to 1. */
function* draws(seed) {
  for (let state = seed; ;) {
    state = state * 48271 % 2147483647;
    yield state / 2147483647;
  }
}

/** Something of everything that the overview shows. */
async function fill(stack) {
  await stack.policy("label", {max_batch: 50});
  await stack.policy("invoice", {batch_api: {url: stack.batchApi, request: {headers: {"X-Key": "${secret.BILLING_KEY}"}}}});
  await stack.send("POST", "/pause", {kind: "label", target: "NY/005"});
  await stack.fanout(1200, "label", "labels of November 24", (index) => `NY/00${index % 5}`);
  await stack.fanout(40, "invoice", "invoices of November");
  const {id} = await stack.send("POST", "/fanouts", {items: 400, seal: true, user_key: "push 16", tolerated_failures: "5%"});
  await stack.send("POST", "/acks", {items: [`${id}:${id}:0-120`], failed: [`${id}:${id}:121-150`]});
}

test("pictures for the documentation", {skip: !folder && "SCREENSHOTS names no folder"}, async () => {
  const stack = await Stack.start(["--fail", "2%", "--latency", "500ms..1s"]);
  try {
    await fill(stack);
    const page = await stack.page("#/", {viewport: {width: 1280, height: 1040}});
    // Targets of very different sizes, so that some are done long before others.
    const drawn = draws(7);
    const {id} = await stack.fanout(30_000, "label", "labels of November 25", () => `NY/0${String(Math.floor(drawn.next().value ** 1.6 * 24)).padStart(2, "0")}`);
    const done = async (from) => (await stack.send("GET", `/fanouts/${id}?progress=exact`)).done >= from;
    await until(() => done(20_000), true);
    await page.screenshot({path: `${folder}/overview.png`});
    await until(() => done(25_500), true);
    for (const [name, options] of [["fan-out", {viewport: {width: 1280, height: 760}}], ["phone", {viewport: {width: 360, height: 760}, colorScheme: "dark"}]]) {
      const shown = await stack.page(`#/fanouts/${id}`, options);
      await shown.locator("figcaption").waitFor();
      await shown.waitForLoadState("networkidle");
      await shown.screenshot({path: `${folder}/${name}.png`});
      assert.deepEqual(shown.complaints, []);
    }
  } finally {
    await stack.stop();
  }
});
