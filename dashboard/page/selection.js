// What is done to every fan-out that a filter finds, as one job: they are counted, it is asked, and then it is done one by one.
import {pages, send} from "./api.js";
import {count, several} from "./format.js";
import {reissuable, reissue} from "./reissue.js";

/** Up to so many are counted before it is asked. */
const COUNTED = 10_000;

/** What can be done to a selection: to which states, to which fan-outs in them, and how. */
export const CANCEL = {name: "Cancel", states: ["open", "sealed"], text: "No more calls begin for them. This cannot be undone.",
  takes: ({state}) => state === "open" || state === "sealed", one: ({id}, signal) => send("DELETE", `/fanouts/${id}`, undefined, signal)};
export const REISSUE = {name: "Reissue", states: ["completed", "failed", "cancelled", "expired"],
  text: "What failed or is missing in them is called again, as new fan-outs. What succeeded is not called again.",
  takes: (fanout) => reissuable(fanout) > 0, one: (fanout, signal) => reissue(fanout, {}, signal)};

/** The fan-outs of a selection, page by page. */
async function* found(list, takes, signal) {
  if (list === null) return;
  for await (const page of pages("GET", list, undefined, signal)) yield page.fanouts.filter(takes);
}

/** Counts, then names how many in what it asks. */
async function prepare(sort, list, takes, progress, signal) {
  const {name, text} = sort;
  let number = 0;
  for await (const fanouts of found(list, takes, signal)) {
    number += fanouts.length;
    progress(`${several(number, "fan-out")} found`);
    if (number > COUNTED) break;
  }
  if (number === 0) return {title: `${name} what is found`, over: `The filter finds no fan-out to ${name.toLowerCase()}.`};
  const many = number > COUNTED;
  const says = many ? `more than ${count(COUNTED)} fan-outs` : several(number, "fan-out");
  return {title: `${name} ${says}?`, label: `${name} ${says}`, text, run: (_, tell, stop) => run(sort, list, takes, many ? 0 : number, tell, stop)};
}

/** Does it. What is refused is counted, and does not stop the rest. */
async function run({one}, list, takes, max, progress, signal) {
  let [done, refused, last] = [0, 0, ""];
  const said = () => `${several(done, "fan-out")} done${refused > 0 ? `, ${count(refused)} refused (${last})` : ""}`;
  for await (const fanouts of found(list, takes, signal)) {
    for (const fanout of fanouts) {
      try {
        await one(fanout, signal);
        done += 1;
      } catch (error) {
        if (!error.status || error.status >= 500) throw error;
        [refused, last] = [refused + 1, error.message];
      }
      progress(said(), done + refused, max);
    }
  }
  return `${said()}.`;
}

/**
 * The dialog of a job. `list(states)`: the path of the list of those in these states, null if there can be none. `keep`: what the filter
 * finds among them.
 */
export function job(sort, list, keep, then) {
  const path = list(sort.states);
  const takes = (fanout) => keep(fanout) && sort.takes(fanout);
  return {title: `${sort.name} what is found`, label: sort.name, danger: true, then, text: "They are counted first.",
    prepare: (progress, signal) => prepare(sort, path, takes, progress, signal)};
}
