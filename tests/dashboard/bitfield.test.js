// The dashboard: the picture of a fan-out, by keyboard, mouse and finger.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {heading, pixels, text, until} from "./helpers.js";
import {Stack} from "./stack.js";

let stack;
before(async () => { stack = await Stack.start(); });
after(() => stack?.stop());

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
  await page.keyboard.press("Shift+F");
  await page.locator(".chosen").getByText("Item 7,001: failed").waitFor();
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
  // And confirmed.
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  for (let at = 0; at < 5 && await page.evaluate(() => document.activeElement.className) !== "danger"; at += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator("h1 .state.cancelled").waitFor();
  assert.equal((await stack.send("GET", `/fanouts/${id}`)).state, "cancelled");
});

test("a finger names an item before it opens it", async () => {
  const {id} = await stack.send("POST", "/fanouts", {items: 40, seal: true, user_key: "tapped"});
  const page = await stack.page(`#/fanouts/${id}`, {viewport: {width: 360, height: 800}, hasTouch: true, isMobile: true});
  await until(() => pixels(page, "pending").then((found) => found > 0), true);
  await page.locator("canvas").scrollIntoViewIfNeeded();
  const {x, y} = await page.locator("canvas").boundingBox();
  await page.touchscreen.tap(x + 27, y + 9);
  await page.locator(".chosen").getByText("Item 2: pending").waitFor();
  await page.touchscreen.tap(x + 45, y + 9);
  await page.locator(".chosen").getByText("Item 3: pending").waitFor();
  assert.ok((await page.evaluate(() => location.hash)).startsWith("#/fanouts/"), "nothing was opened yet");
  await page.touchscreen.tap(x + 45, y + 9);
  await heading(page, "Item");
  assert.equal(await page.evaluate(() => location.hash), `#/tasks/${id}:${id}:2`);
});

test("pointing does not draw the whole picture again, and its keys are described", async () => {
  const {id} = await stack.send("POST", "/fanouts", {items: 40, user_key: "pointed at"});
  const page = await stack.page();
  await page.addInitScript(() => {
    globalThis.drawn = 0;
    const create = CanvasRenderingContext2D.prototype.createImageData;
    CanvasRenderingContext2D.prototype.createImageData = function (...size) {
      globalThis.drawn += 1;
      return create.apply(this, size);
    };
  });
  await page.goto(`${stack.url}/dashboard/#/fanouts/${id}`);
  await page.reload();
  // Nothing is read again, so nothing changes but what is pointed at.
  await stack.send("DELETE", `/fanouts/${id}`);
  await page.locator("h1 .state.cancelled").waitFor();
  await until(() => pixels(page, "missing"), 17 * 17 * 40);
  const before = await page.evaluate(() => globalThis.drawn);
  for (let at = 0; at < 40; at += 1) await page.locator("canvas").hover({position: {x: 9 + at * 18, y: 9}});
  await page.locator(".chosen").getByText("Item 40: missing").waitFor();
  // A reading that was on its way draws it, too.
  const often = await page.evaluate(() => globalThis.drawn) - before;
  assert.ok(often < 10, `pointing at 40 items drew the picture ${often} times`);
  await page.mouse.move(0, 0);
  const keys = await page.locator(".frame").getAttribute("aria-describedby");
  assert.match(await text(page, `#${keys}`), /Arrow keys move/);
  await page.locator("canvas").hover({position: {x: 9, y: 9}});
  assert.match(await text(page, `#${keys}`), /Arrow keys move/, "also while an item is named");
  assert.deepEqual(page.complaints, []);
});
