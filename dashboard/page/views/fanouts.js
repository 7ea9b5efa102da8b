// The list of fan-outs, by filters; and what can be done to many at once.
import {Problem, Table, html, useState} from "../ui.js";
import {get, pages, send, useLive, withQuery} from "../api.js";
import {several} from "../format.js";
import {ask} from "../actions.js";
import {FANOUT_HEAD, FanoutRows} from "./overview.js";

const STATES = ["open", "sealed", "completed", "failed", "cancelled", "expired"];
const SPANS = [["", "any time"], ["1", "the last hour"], ["24", "the last day"], ["168", "the last week"]];

/** The query of a filter. */
function query({states, prefix, hours, oldest}) {
  const after = hours === "" ? "" : Date.now() - Number(hours) * 3600 * 1000;
  return {state: states.join(","), user_key_prefix: prefix, opened_after: after, order: oldest ? "oldest" : ""};
}

/** Does something to every fan-out that a filter finds. What is refused is counted, and does not stop the rest. */
function many(filter, {label, text, states, one}, then) {
  if (filter.states.length === 0 && filter.prefix === "" && filter.hours === "") {
    return {title: "Choose a filter first", label: "Close", text: "An empty filter would mean every fan-out there is.", run: async () => undefined};
  }
  const wanted = filter.states.length === 0 ? states : filter.states.filter((state) => states.includes(state));
  return {title: `${label}?`, label, danger: true, text, then, run: async (_, progress, signal) => {
    let [done, refused, last] = [0, 0, ""];
    if (wanted.length > 0) {
      for await (const page of pages("GET", withQuery("/fanouts", query({...filter, states: wanted})), undefined, signal)) {
        for (const fanout of page.fanouts) {
          try {
            await one(fanout, signal);
            done += 1;
          } catch (error) {
            if (!error.status || error.status >= 500) throw error;
            [refused, last] = [refused + 1, error.message];
          }
          progress(`${several(done, "fan-out")} done${refused > 0 ? `, ${refused} refused` : ""}`);
        }
      }
    }
    return `${several(done, "fan-out")} done${refused > 0 ? `, ${refused} refused (${last})` : ""}.`;
  }};
}

const CANCEL = {label: "Cancel those found", states: ["open", "sealed"], text: "Every open or sealed fan-out that the filter finds is cancelled: no more calls begin for it.",
  one: (fanout, signal) => send("DELETE", `/fanouts/${fanout.id}`, undefined, signal)};
const REISSUE = {label: "Reissue those found", states: ["completed", "failed", "cancelled", "expired"],
  text: "The failed items of every ended fan-out that the filter finds are called again, as new fan-outs. What succeeded is not called again.",
  one: (fanout, signal) => send("POST", `/fanouts/${fanout.id}/reissue`, {}, signal)};

export function FanoutsView({start}) {
  const [filter, set] = useState({states: [], prefix: start ?? "", hours: "", oldest: false});
  const [more, setMore] = useState(1);
  const {data, error, reload} = useLive(async (signal) => {
    const found = [];
    let [next, read] = [withQuery("/fanouts", {...query(filter), limit: 50}), 0];
    for (; next && read < more; read += 1) {
      const page = await get(next, signal);
      found.push(...page.fanouts);
      next = page.next;
    }
    return {found, next};
  }, [JSON.stringify(filter), more], 3000);
  const change = (changed) => {
    setMore(1);
    set({...filter, ...changed});
  };
  const toggle = (state) => change({states: filter.states.includes(state) ? filter.states.filter((other) => other !== state) : [...filter.states, state]});
  return html`<h1>Fan-outs</h1>
    <form class="filter" onSubmit=${(event) => event.preventDefault()}>
      <fieldset><legend>State</legend>${STATES.map((state) => html`<label class="check" key=${state}>
        <input type="checkbox" checked=${filter.states.includes(state)} onChange=${() => toggle(state)} /> ${state}</label>`)}</fieldset>
      <label>User key begins with <input value=${filter.prefix} onInput=${(event) => change({prefix: event.target.value})} /></label>
      <label>Opened in <select value=${filter.hours} onChange=${(event) => change({hours: event.target.value})}>
        ${SPANS.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}</select></label>
      <label class="check"><input type="checkbox" checked=${filter.oldest} onChange=${(event) => change({oldest: event.target.checked})} /> Oldest first</label>
      <span class="buttons">
        <button type="button" onClick=${() => ask(many(filter, REISSUE, reload))}>Reissue those found…</button>
        <button type="button" class="danger" onClick=${() => ask(many(filter, CANCEL, reload))}>Cancel those found…</button>
      </span>
    </form>
    <${Problem} error=${error} />
    ${data && html`<p class="quiet" aria-live="polite">${several(data.found.length, "fan-out")}${data.next && ", and more"}</p>
      ${data.found.length > 0 && html`<${Table} label="Fan-outs" head=${FANOUT_HEAD}><${FanoutRows} fanouts=${data.found} /><//>`}
      ${data.next && html`<p><button type="button" onClick=${() => setMore(more + 1)}>Show more</button></p>`}`}`;
}
