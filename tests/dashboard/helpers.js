// What tests of the dashboard share: looking at a page, and waiting for what it shows.
import assert from "node:assert/strict";

export const text = (page, selector) => page.locator(selector).innerText();
export const heading = (page, name) => page.getByRole("heading", {name}).first().waitFor();

/** Waits until a fan-out's numbers on the page say this. */
export const says = (page, words) => page.locator(".numbers").getByText(words).waitFor();

/** Looks again until `look()` is that. */
export async function until(look, wanted, message) {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await look() === wanted) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.equal(await look(), wanted, message);
}

/** How many pixels of the picture have the colour of a state. */
export const pixels = (page, state) => page.evaluate((state) => {
  const canvas = document.querySelector("canvas");
  if (!canvas?.width) return 0;
  const hex = getComputedStyle(canvas).getPropertyValue(`--item-${state}`).trim();
  const colour = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) found += colour.every((part, index) => data[at + index] === part) ? 1 : 0;
  return found;
}, state);

/** Presses a button, and confirms what it asks. Returns the dialog. */
export async function confirmed(page, button, name = button) {
  await page.getByRole("button", {name: button, exact: true}).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", {name}).click();
  return dialog;
}

/**
 * Answers requests in place of the stack: `paths` maps the beginnings of paths with their queries to answers, or to functions of a
 * request. Of several that fit, the last one answers.
 */
export async function standIn(page, paths) {
  for (const [start, answer] of Object.entries(paths)) {
    await page.route((url) => (url.pathname + url.search).startsWith(start) && !url.pathname.startsWith("/dashboard"), (route) =>
      route.fulfill(typeof answer === "function" ? answer(route.request()) : {json: answer}));
  }
}

/** A fan-out as a list shows it. */
export const fanoutLike = (id, more) => ({id, state: "completed", complete: true, ended: true, user_key: `like ${id.slice(-2)}`, total: 10, done: 10, succeeded: 10, failed: 0,
  duplicates: 0, missing: 0, progress: "exact", created_at: Date.now() - 9 * 24 * 3600 * 1000, updated_at: Date.now() - 60_000, ...more});

/** An id that ends in this number. */
export const idOf = (number) => `019abcde-0000-7000-8000-${String(number).padStart(12, "0")}`;
