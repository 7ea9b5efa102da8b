// Lanes, what waits in them, and the switches: pause, resume, drain.
import {Ago, Id, Problem, State, Table, html, useState} from "../ui.js";
import {get, pages, send, useLive, withQuery} from "../api.js";
import {bytes, count} from "../format.js";
import {Action, ask, inPages} from "../actions.js";
import {scopeName} from "./overview.js";

const HEAD = ["Lane", "State", ["Waiting", "number"], ["Size", "number"], "Oldest", ["In flight", "number"], "Batches", "Leader since", "Actions"];

/** Up to `most` lanes that are busy or in which tasks wait. */
export async function lanesBusy(most, signal, query = {}) {
  const busy = [];
  let looked = 0;
  for await (const page of pages("GET", withQuery("/lanes", query), undefined, signal)) {
    busy.push(...page.lanes.filter((lane) => lane.in_flight > 0 || lane.pending.tasks > 0 || lane.leader || lane.paused || lane.draining));
    looked += 1;
    if (busy.length >= most || looked >= 5) break;
  }
  return busy.slice(0, most);
}

/** The scope of a lane or a switch, as requests name it. */
const scopeOf = ({all, kind, target, partition}) => all ? {all}
  : {kind, ...(target != null && {target}), ...(partition != null && {partition})};

/** A button that switches scopes: usually one. */
export function Switch({what, scopes, then}) {
  const names = scopes.map(scopeName).join(" and ");
  const text = {
    pause: `No further call begins for ${names} until it is resumed. Calls that run now end as always.`,
    resume: `Calls begin again for ${names}.`,
    drain: `What waits now in ${names} goes into batches at once, without waiting for more.`,
  }[what];
  const label = what[0].toUpperCase() + what.slice(1);
  return html`<${Action} label=${label} title=${`${label} ${names}?`} text=${text} then=${then}
    run=${async () => { for (const scope of scopes) await send("POST", `/${what}`, scope); }} />`;
}

/** A table of lanes. */
export const Lanes = ({lanes, then}) => html`<${Table} label="Lanes" head=${HEAD}>${lanes.map((lane) => html`<tr key=${lane.lane}>
  <td><span class="id">${lane.lane}</span></td>
  <td>${lane.paused ? html`<${State} state="paused" />` : lane.draining ? html`<${State} state="draining" />`
    : lane.in_flight > 0 || lane.leader ? html`<${State} state="busy" />` : html`<${State} state="waiting" />`}</td>
  <td class="number">${lane.pending.at_least && "≥ "}${count(lane.pending.tasks)}</td>
  <td class="number">${bytes(lane.pending.bytes)}</td>
  <td><${Ago} at=${lane.pending.oldest} /></td>
  <td class="number">${count(lane.in_flight)}</td>
  <td>${lane.batches.slice(0, 3).map((id) => html`<span key=${id}><${Id} kind="batches" id=${id} /> </span>`)}${lane.batches.length > 3 && "…"}</td>
  <td><${Ago} at=${lane.leader?.since} /></td>
  <td class="buttons">${lane.paused ? html`<${Switch} what="resume" scopes=${(lane.paused_by ?? [lane]).map(scopeOf)} then=${then} />`
    : html`<${Switch} what="pause" scopes=${[scopeOf(lane)]} then=${then} /><${Switch} what="drain" scopes=${[scopeOf(lane)]} then=${then} />`}</td>
</tr>`)}<//>`;

/** The scope of a form; throws if it is empty. */
function scopeIn({kind, target, partition}) {
  if (kind === "") throw new Error("name a kind: an empty filter would mean everything");
  return {kind, ...(target !== "" && {target}), ...(partition !== "" && {partition: Number(partition)})};
}

const SCOPE_FIELDS = [
  {name: "kind", label: "Kind", required: true},
  {name: "target", label: "Target", hint: "Leave it empty for all targets of the kind."},
  {name: "partition", label: "Partition", type: "number", min: 0, hint: "Only with a target."},
];

function ScopeActions({then}) {
  const one = (what, path) => ({title: `${what} a kind, a target or a lane`, label: what, fields: SCOPE_FIELDS, then,
    run: async (values) => { await send("POST", path, scopeIn(values)); }});
  const many = (what, path, names, text) => ({title: `${what} of a scope`, label: what, danger: true, fields: SCOPE_FIELDS, text, then,
    run: async (values, progress, signal) => {
      const sums = await inPages(path, scopeIn(values), names, progress, signal);
      return `Done: ${names.map((name) => `${count(sums[name])} ${name}`).join(", ")}.`;
    }});
  const everything = {title: "Pause everything?", label: "Pause everything", danger: true, then,
    text: "No further call of any kind begins until everything is resumed.", run: async () => { await send("POST", "/pause", {all: true}); }};
  const actions = [one("Pause", "/pause"), one("Resume", "/resume"), one("Drain", "/drain"),
    many("Cancel waiting tasks", "/tasks/cancel", ["cancelled"], "Tasks that no batch has claimed are cancelled. They are not called."),
    many("Reset failed tasks", "/tasks/reset", ["reset", "known", "refused"],
      "Failed tasks that are no items of a fan-out wait again. Failed items are called again by a reissue of their fan-out."),
    everything];
  return html`<p class="buttons">${actions.map((action) => html`<button type="button" key=${action.label} class=${action.danger ? "danger" : ""}
    onClick=${() => ask(action)}>${action.label}…</button>`)}</p>`;
}

export function LanesView() {
  const [filter, set] = useState({kind: "", target: "", paused: false});
  const {data, error, reload} = useLive(async (signal) => ({
    lanes: await lanesBusy(200, signal, {...filter, paused: filter.paused && "true"}),
    switches: (await get("/switches", signal)).switches.filter((at) => at.state !== "resumed"),
  }), [JSON.stringify(filter)]);
  const field = (name) => ({value: filter[name], onInput: (event) => set({...filter, [name]: event.target.value})});
  return html`<h1>Lanes</h1>
    <${ScopeActions} then=${reload} />
    <${Problem} error=${error} />
    ${data?.switches.length > 0 && html`<section aria-labelledby="switches"><h2 id="switches">Paused or draining</h2>
      <${Table} label="Scopes that are paused or drain" head=${["Scope", "State", "Since", "Actions"]}>${data.switches.map((at) => html`<tr key=${JSON.stringify(at)}>
        <td>${scopeName(at)}</td><td><${State} state=${at.state} /></td><td><${Ago} at=${at.since} /></td>
        <td class="buttons"><${Switch} what="resume" then=${reload} scopes=${[scopeOf(at)]} /></td>
      </tr>`)}<//></section>`}
    <section aria-labelledby="lanes"><h2 id="lanes">Lanes</h2>
      <form class="filter" onSubmit=${(event) => event.preventDefault()}>
        <label>Kind <input ...${field("kind")} /></label>
        <label>Target <input ...${field("target")} disabled=${filter.kind === ""} /></label>
        <label class="check"><input type="checkbox" checked=${filter.paused} onChange=${(event) => set({...filter, paused: event.target.checked})} /> Paused only</label>
      </form>
      ${data && (data.lanes.length === 0 ? html`<p class="quiet">No lane is busy, and no task waits.</p>` : html`<${Lanes} lanes=${data.lanes} then=${reload} />`)}
    </section>`;
}
