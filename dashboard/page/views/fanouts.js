// The list of fan-outs, by filters; and what can be done to many at once.
import {Problem, Table, html, useState, useTitle} from "../ui.js";
import {gather, useLive, withQuery} from "../api.js";
import {count, several} from "../format.js";
import {ask} from "../actions.js";
import {CANCEL, REISSUE, job} from "../selection.js";
import {FANOUT_HEAD, FanoutRows} from "../rows.js";

const STATES = ["open", "sealed", "completed", "failed", "cancelled", "expired"];
const SPANS = [["", "any time"], ["1", "the last hour"], ["24", "the last day"], ["168", "the last week"]];
const EMPTY = {states: [], prefix: "", hours: "", oldest: false, trouble: false};
/** So many are shown at first, and with each "more"; so many pages of the list are read for them. */
const SHOWN = 50;
const READS = 10;

/** The filter that an address has: `#/fanouts/<user key>?state=failed,expired&trouble=1`. */
function filterOf(prefix, query) {
  const states = (query.get("state") ?? "").split(",").filter((state) => STATES.includes(state));
  return {...EMPTY, prefix: prefix ?? "", states, trouble: query.has("trouble")};
}

/** The list that a filter reads. Its beginning in time is fixed, so that its pages belong together. */
function listOf({states, prefix, hours, oldest}, limit) {
  const after = hours === "" ? "" : Date.now() - Number(hours) * 3600 * 1000;
  // A list by user key has its own order.
  return withQuery("/fanouts", {state: states.join(","), user_key_prefix: prefix, opened_after: after, order: oldest && prefix === "" ? "oldest" : "", limit});
}

/** What the API cannot ask for. */
const keeps = ({trouble}) => trouble ? ({failed, missing}) => failed + missing > 0 : () => true;

const isEmpty = ({states, prefix, hours, trouble}) => states.length === 0 && prefix === "" && hours === "" && !trouble;

/** The dialog that does something to all that are found. */
function many(sort, filter, then) {
  if (isEmpty(filter)) {
    return {title: "Choose a filter first", label: "Close", text: "An empty filter would mean every fan-out there is.", run: async () => undefined};
  }
  const wanted = (states) => filter.states.length === 0 ? states : filter.states.filter((state) => states.includes(state));
  const list = (states) => wanted(states).length === 0 ? null : listOf({...filter, states: wanted(states)});
  return job(sort, list, keeps(filter), then);
}

/** How many were found, by state, and whether that is all. */
function Found({data: {found, next, read}, wanted}) {
  const of = STATES.map((state) => [state, found.filter((fanout) => fanout.state === state).length]).filter(([, number]) => number > 0);
  const by = of.length > 1 ? `: ${of.map(([state, number]) => `${count(number)} ${state}`).join(", ")}` : "";
  const rest = !next ? "" : found.length < wanted ? `. ${several(read, "page")} of the list were read; there may be more.` : ". There may be more.";
  return html`<p class="quiet" aria-live="polite">${several(found.length, "fan-out")}${by}${rest}</p>`;
}

function Filter({filter, change, buttons}) {
  const toggle = (state) => change({states: filter.states.includes(state) ? filter.states.filter((other) => other !== state) : [...filter.states, state]});
  return html`<form class="filter" onSubmit=${(event) => event.preventDefault()}>
    <fieldset><legend>State</legend>${STATES.map((state) => html`<label class="check" key=${state}>
      <input type="checkbox" checked=${filter.states.includes(state)} onChange=${() => toggle(state)} /> ${state}</label>`)}</fieldset>
    <label>User key begins with <input value=${filter.prefix} onInput=${(event) => change({prefix: event.target.value})} /></label>
    <label>Opened in <select value=${filter.hours} onChange=${(event) => change({hours: event.target.value})}>
      ${SPANS.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}</select></label>
    <label class="check"><input type="checkbox" checked=${filter.trouble} onChange=${(event) => change({trouble: event.target.checked})} /> With failed or missing items</label>
    ${filter.prefix === ""
      ? html`<label class="check"><input type="checkbox" checked=${filter.oldest} onChange=${(event) => change({oldest: event.target.checked})} /> Oldest first</label>`
      : html`<span class="quiet">Sorted by user key</span>`}
    ${buttons}
  </form>`;
}

export function FanoutsView({start, query}) {
  const [filter, set] = useState(filterOf(start, query));
  const [more, setMore] = useState(1);
  useTitle("Fan-outs");
  const {data, error, reload} = useLive((signal) =>
    gather(listOf(filter, isEmpty(filter) ? SHOWN : ""), "fanouts", {most: SHOWN * more, reads: READS * more, keep: keeps(filter)}, signal),
  [JSON.stringify(filter), more], (last) => last?.read > 3 ? 15000 : 3000);
  const change = (changed) => {
    setMore(1);
    set({...filter, ...changed});
  };
  const buttons = html`<span class="buttons">
    <button type="button" onClick=${() => ask(many(REISSUE, filter, reload))}>Reissue those found…</button>
    <button type="button" class="danger" onClick=${() => ask(many(CANCEL, filter, reload))}>Cancel those found…</button>
  </span>`;
  return html`<h1>Fan-outs</h1>
    <${Filter} filter=${filter} change=${change} buttons=${buttons} />
    <${Problem} error=${error} />
    ${!data && !error && html`<p class="quiet">Reading…</p>`}
    ${data && html`<${Found} data=${data} wanted=${SHOWN * more} />
      ${data.found.length > 0 && html`<${Table} label="Fan-outs" head=${FANOUT_HEAD}><${FanoutRows} fanouts=${data.found} /><//>`}
      ${data.next && html`<p><button type="button" onClick=${() => setMore(more + 1)}>${data.found.length < SHOWN * more ? "Look further" : "Show more"}</button></p>`}`}`;
}
