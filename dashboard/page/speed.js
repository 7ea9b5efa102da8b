// How fast a fan-out's items are done, from what this page has read of it.
import {html} from "./ui.js";
import {duration, rate} from "./format.js";

/** How far back a rate looks, in milliseconds. */
const WINDOW = 30000;
const seen = new Map();

/** Notes where a fan-out is. Returns items per second, or null while that is not known. */
export function note(fanout, now = Date.now()) {
  const points = (seen.get(fanout.id) ?? []).filter(([at]) => now - at < WINDOW);
  const last = points.at(-1);
  if (!last || fanout.done !== last[1] || now - last[0] > 1000) points.push([now, fanout.done]);
  seen.set(fanout.id, points);
  const [from, done] = points[0];
  return now - from < 1500 ? null : (fanout.done - done) * 1000 / (now - from);
}

/** Rate and time left, in words. */
export function Speed({fanout}) {
  if (fanout.ended) return html`<span class="quiet">–</span>`;
  const perSecond = note(fanout);
  if (perSecond == null || perSecond <= 0) return html`<span class="quiet">${perSecond == null ? "…" : "nothing now"}</span>`;
  const left = fanout.state === "sealed" ? `, ${duration((fanout.total - fanout.done) / perSecond * 1000)} left` : "";
  return html`<span>${rate(perSecond)}${left}</span>`;
}
