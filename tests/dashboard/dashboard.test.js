// The dashboard, as an operator uses it.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createServer} from "node:http";
import {createRequire} from "node:module";
import {after, before, test} from "node:test";
import {Stack} from "./stack.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let stack;

before(async () => { stack = await Stack.start(["--fail", "10%"]); });
after(() => stack?.stop());

const text = (page, selector) => page.locator(selector).innerText();
const heading = (page, name) => page.getByRole("heading", {name}).first().waitFor();

/** Waits until a fan-out's numbers on the page say this. */
const says = (page, words) => page.locator(".numbers").getByText(words).waitFor();

/** A picture for the documentation, if one is wanted. */
const picture = (page, name) => process.env.SCREENSHOTS && page.screenshot({path: `${process.env.SCREENSHOTS}/${name}.png`});

/** Looks again until `look()` is that. */
async function until(look, wanted, message) {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await look() === wanted) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.equal(await look(), wanted, message);
}

/** How many pixels of the picture have the colour of a state. */
const pixels = (page, state) => page.evaluate((state) => {
  const canvas = document.querySelector("canvas");
  if (!canvas?.width) return 0;
  const hex = getComputedStyle(canvas).getPropertyValue(`--item-${state}`).trim();
  const colour = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) found += colour.every((part, index) => data[at + index] === part) ? 1 : 0;
  return found;
}, state);

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
  assert.equal(await pixels(page, "succeeded"), area * succeeded);
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
  assert.match(await left.innerText(), /It waits in its lane for a batch/);
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
  assert.ok(said.includes(`"content":{"to":"t0","n":0}`), said);
  await page.getByText(/For 1 member, \d+ B:/).waitFor();
  assert.deepEqual(page.complaints, []);
});

test("a batch whose call failed says in how many parts it is called again", async () => {
  const page = await stack.page();
  const batch = {id: "019abcde-0000-7000-8000-000000000001", lane: "k:0:t", kind: "k", target: "t", partition: 0, status: "in_progress",
    attempts: 1, parts: 2, members: [], created_at: Date.now(), updated_at: Date.now()};
  await page.route(`**/batches/${batch.id}`, (route) => route.fulfill({json: batch}));
  await page.goto(`${stack.url}/dashboard/#/batches/${batch.id}`);
  await page.getByText("Parts still to be called").waitFor();
  assert.match(await text(page, ".facts"), /Parts still to be called\s+2/);
  assert.deepEqual(page.complaints, []);
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

test("lanes are paused, resumed and searched; an empty filter changes nothing", async () => {
  await stack.policy("parcel");
  await stack.send("POST", "/pause", {kind: "parcel", target: "t0"});
  await stack.fanout(9, "parcel", "parcels");
  const page = await stack.page("#/lanes");
  await page.getByLabel("Kind").fill("parcel");
  const row = page.getByRole("region", {name: "Lanes"}).getByRole("row", {name: /parcel:0:t0/});
  await row.getByText("paused").waitFor();
  await row.getByRole("button", {name: "Resume"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Resume"}).click();
  await page.waitForFunction(() => !document.body.innerText.includes("parcel:0:t0"));
  await page.goto(`${stack.url}/dashboard/#/fanouts`);
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByRole("heading", {name: "Choose a filter first"}).waitFor();
  await page.keyboard.press("Escape");
  // A selection is worked on as one job.
  for (const index of [0, 1, 2]) await stack.send("POST", "/fanouts", {items: 1, user_key: `selected ${index}`});
  await page.getByLabel("User key begins with").fill("selected");
  await page.getByText("3 fan-outs", {exact: true}).waitFor();
  await page.getByRole("button", {name: "Cancel those found"}).click();
  await page.getByRole("dialog").getByRole("button", {name: "Cancel those found"}).click();
  await page.getByText("3 fan-outs done.").waitFor();
  const {fanouts} = await stack.send("GET", "/fanouts?user_key_prefix=selected");
  assert.deepEqual(fanouts.map(({state}) => state), ["cancelled", "cancelled", "cancelled"]);
  assert.deepEqual(page.complaints, []);
});

test("ten million items are looked at without reading all of them", async () => {
  const {id, groups} = await stack.send("POST", "/fanouts", {items: 700_000, user_key: "ten million"});
  for (let left = 9_300_000; left > 0; left -= 700_000) await stack.send("POST", `/fanouts/${id}/items`, {items: Math.min(left, 700_000)});
  await stack.send("POST", `/fanouts/${id}/seal`, {});
  await stack.send("POST", "/acks", {items: [`${id}:${groups[0].id}:0-6999`], failed: [`${id}:${groups[0].id}:7000`]});
  const read = [];
  const page = await stack.page("#/");
  page.on("request", (request) => request.url().includes("/masks") && read.push(request.url()));
  await page.goto(`${stack.url}/dashboard/#/fanouts/${id}`);
  await until(() => pixels(page, "succeeded"), 7_000, "at this size an item is a pixel");
  assert.equal(await pixels(page, "failed"), 1);
  const before = new Set(read).size;
  assert.ok(before <= 2, `the first screen is one page of masks or two, not ${before}`);
  // The last item, far below.
  await page.locator(".frame").focus();
  await page.keyboard.press("End");
  await page.locator(".chosen").getByText("Item 10,000,000: pending").waitFor();
  assert.ok(new Set(read).size <= before + 3, "what lies between was not read");
  assert.deepEqual(page.complaints, []);
});

test("everything can be done with the keyboard alone", async () => {
  const {id} = await stack.send("POST", "/fanouts", {items: 40, seal: true, user_key: "by keys"});
  await stack.send("POST", "/acks", {items: [`${id}:${id}:0-9`], failed: [`${id}:${id}:25`]});
  const page = await stack.page();
  await heading(page, "Overview");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  // To the search, the id, and on to the picture.
  for (let at = 0; at < 20 && await page.evaluate(() => document.activeElement.name) !== "text"; at += 1) await page.keyboard.press("Tab");
  await page.keyboard.type(id);
  await page.keyboard.press("Enter");
  await heading(page, "by keys");
  await page.waitForFunction(() => document.querySelector("canvas")?.width > 0);
  for (let at = 0; at < 20 && !await page.evaluate(() => document.activeElement.classList.contains("frame")); at += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.locator(".chosen").getByText("Item 2: succeeded").waitFor();
  await page.keyboard.press("f");
  await page.locator(".chosen").getByText("Item 26: failed").waitFor();
  await page.keyboard.press("p");
  await page.locator(".chosen").getByText("Item 27: pending").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("This item has no task.").waitFor();
  await page.goBack();
  await heading(page, "by keys");
  for (let at = 0; at < 30 && await page.evaluate(() => document.activeElement.textContent) !== "Cancel"; at += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement.textContent === "Cancel");
  assert.equal((await stack.send("GET", `/fanouts/${id}`)).state, "sealed");
});

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

test("the API is described on a page", async () => {
  const page = await stack.page("#/api");
  const open = page.locator("details.operation", {hasText: "POST /fanouts Opens a fan-out"});
  await open.locator("> summary").click();
  await open.getByText("OpenRequest").click();
  await open.getByText("user_key", {exact: true}).first().waitFor();
  await open.getByText("How many items it has at first.").first().waitFor();
  assert.deepEqual(page.complaints, []);
});

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
