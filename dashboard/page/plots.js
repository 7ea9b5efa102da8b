// Plots of the last minutes: items done per second, tasks per batch, and how long tasks wait for their call. They show what this page has
// read since it was opened.
import {html, useEffect, useState} from "./ui.js";
import {getText} from "./api.js";
import {duration, rate} from "./format.js";

const EVERY = 2000;
const KEEP = 150;
/** A plot is as wide as so many readings at least, a minute, and grows with what is read. */
const ACROSS = 30;

/** The samples of Prometheus' text format, but for those with labels. */
export function parseMetrics(text) {
  const lines = text.split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(lines.map((line) => line.split(" ")).filter(([name]) => !name.includes("{")).map(([name, value]) => [name, Number(value)]));
}

/** What the counters of a local stack say at a moment. */
export const readingOf = (metrics, at) => ({
  at,
  done: metrics.get("fanfold_items_acked") ?? 0,
  members: metrics.get("fanfold_batch_size_sum") ?? 0,
  batches: metrics.get("fanfold_batch_size_count") ?? 0,
  waited: metrics.get("fanfold_registered_to_called_seconds_sum") ?? 0,
  called: metrics.get("fanfold_registered_to_called_seconds_count") ?? 0,
});

/** What happened between two readings; null where nothing did. */
export function between(before, now) {
  const seconds = (now.at - before.at) / 1000;
  const ratio = (of, per) => now[per] > before[per] ? (now[of] - before[of]) / (now[per] - before[per]) : null;
  return {at: now.at, rate: Math.max(0, now.done - before.done) / seconds, size: ratio("members", "batches"), wait: ratio("waited", "called")};
}

/** So many readings a rate looks back: acks are applied together every two seconds, as often as they are read. */
const SMOOTH = 3;

/** What the last reading adds to the plots: what happened since the one before, and the rate since some before that. */
export function pointOf(readings) {
  const now = readings.at(-1);
  return {...between(readings.at(-2), now), rate: between(readings.at(-SMOOTH - 1) ?? readings[0], now).rate};
}

/** Reads the counters again and again. Null: the stack has none for this page. `refused` says why they may not be read. */
function usePoints() {
  const [points, set] = useState([]);
  const [refused, refuse] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    let readings = [];
    let timer;
    const look = async () => {
      try {
        const text = document.hidden ? undefined : await getText("/metrics", stop.signal);
        if (text === null) {
          set(null);
          return;
        }
        if (text !== undefined) {
          refuse(null);
          const now = readingOf(parseMetrics(text), Date.now());
          const before = readings.at(-1);
          // Not over a gap: the page was hidden, or the stack began anew.
          const follows = before && now.done >= before.done && now.at - before.at < 5 * EVERY;
          readings = [...follows ? readings.slice(-SMOOTH) : [], now];
          if (follows) {
            const point = pointOf(readings);
            set((points) => [...points, point].slice(-KEEP));
          }
        }
      } catch (error) {
        readings = [];
        if (error.status === 403) refuse(error.message);
      }
      if (!stop.signal.aborted) timer = setTimeout(look, EVERY);
    };
    look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
  return {points, refused};
}

const WIDTH = 320;
const HEIGHT = 72;

/** A line through points; where nothing happened it is interrupted. */
export function path(values, most) {
  const across = Math.max(ACROSS, values.length);
  const x = (index) => (WIDTH - 4) * (index + across - values.length) / (across - 1) + 2;
  const y = (value) => HEIGHT - 3 - (HEIGHT - 8) * value / (most || 1);
  let broken = true;
  return values.map((value, index) => {
    if (value === null) {
      broken = true;
      return "";
    }
    // A point alone is a short line.
    const step = `${broken ? "M" : "L"}${x(index).toFixed(1)},${y(value).toFixed(1)}${broken ? "h0.1" : ""}`;
    broken = false;
    return step;
  }).join("");
}

function Plot({title, values, text}) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(0, ...known);
  const now = known.length > 0 ? text(known.at(-1)) : "–";
  const label = known.length > 0 ? `${title}: ${now} at last, ${text(most)} at most in the last minutes` : `${title}: nothing yet`;
  return html`<figure class="plot">
    <figcaption>${title}<strong>${now}</strong></figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label} preserveAspectRatio="none"><path d=${path(values, most)} /></svg>
    <p class="quiet">${known.length > 0 ? `at most ${text(most)}` : "nothing yet"}</p>
  </figure>`;
}

/** The three plots; nothing, if the stack has no counters for them. */
export function Plots() {
  const {points, refused} = usePoints();
  if (points === null) return null;
  if (refused) return html`<section aria-labelledby="plots"><h2 id="plots">Last minutes</h2><p class="quiet">${refused}</p></section>`;
  const of = (name) => points.map((point) => point[name]);
  const tasks = (size) => `${size >= 10 ? Math.round(size) : size.toFixed(1)} tasks`;
  return html`<section aria-labelledby="plots"><h2 id="plots">Last minutes</h2><div class="plots">
    <${Plot} title="Items done" values=${of("rate")} text=${rate} />
    <${Plot} title="Per batch" values=${of("size")} text=${tasks} />
    <${Plot} title="Waiting for the call" values=${of("wait")} text=${(seconds) => duration(seconds * 1000)} />
  </div></section>`;
}
