// Lanes, what waits in them, and the switches: pause, resume, drain.
import {Ago, Id, Problem, State, Table, html, useState, useTitle} from "../ui.js";
import {gather, send, useLive, withQuery} from "../api.js";
import {bytes, count} from "../format.js";
import {ask, inPages} from "../actions.js";
import {Switch, readSwitches, scopeName, scopeOf, switchText} from "../switches.js";

const HEAD = ["Lane", "State", ["Waiting", "number"], ["Size", "number"], "Oldest", ["In flight", "number"], "Batches", "Leader since", "Actions"];
/** So many are shown at first, and with each "more"; so many pages of the list are read for them. */
const SHOWN = 200;
const READS = 5;

const isBusy = (lane) => lane.in_flight > 0 || lane.pending.tasks > 0 || lane.leader || lane.paused || lane.draining;

/** Up to `most` lanes that are busy or in which tasks wait. `more`: whether there may be more. */
export async function lanesBusy(most, signal, query = {}, reads = READS) {
  const {found, next} = await gather(withQuery("/lanes", query), "lanes", {most, reads, keep: isBusy}, signal);
  return {lanes: found.slice(0, most), more: next != null || found.length > most};
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
  <td><${Ago} at=${lane.leads_since} /></td>
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
  const one = (label, what) => ({title: `${label} a kind, a target or a lane`, label, fields: SCOPE_FIELDS, then, text: switchText(what, "this scope"),
    run: async (values) => { await send("POST", `/${what}`, scopeIn(values)); }});
  const many = (what, path, names, text) => ({title: `${what} of a scope`, label: what, danger: true, fields: SCOPE_FIELDS, text, then,
    run: async (values, progress, signal) => {
      const sums = await inPages(path, scopeIn(values), names, progress, signal);
      return `Done: ${names.map((name) => `${count(sums[name])} ${name}`).join(", ")}.`;
    }});
  const everything = {title: "Pause everything?", label: "Pause everything", danger: true, then,
    text: "No further call of any kind begins until everything is resumed.", run: async () => { await send("POST", "/pause", {all: true}); }};
  const actions = [one("Pause", "pause"), one("Resume", "resume"), one("Drain", "drain"),
    many("Cancel waiting tasks", "/tasks/cancel", ["cancelled"], "Tasks that no batch has claimed are cancelled. They are not called."),
    many("Reset failed tasks", "/tasks/reset", ["reset", "known", "refused"],
      "Failed tasks that are no items of a fan-out wait again. Failed items are called again by a reissue of their fan-out."),
    everything];
  return html`<p class="buttons">${actions.map((action) => html`<button type="button" key=${action.label} class=${action.danger ? "danger" : ""}
    onClick=${() => ask(action)}>${action.label}…</button>`)}</p>`;
}

const Switches = ({switches, then}) => html`<section aria-labelledby="switches"><h2 id="switches">Paused or draining</h2>
  <${Table} label="Scopes that are paused or drain" head=${["Scope", "State", "Since", "Actions"]}>${switches.map((at) => html`<tr key=${JSON.stringify(at)}>
    <td>${scopeName(at)}</td><td><${State} state=${at.state} /></td><td><${Ago} at=${at.since} /></td>
    <td class="buttons"><${Switch} what="resume" then=${then} scopes=${[scopeOf(at)]} /></td>
  </tr>`)}<//></section>`;

/** The fields that choose lanes. What is narrower needs what is wider. */
function Filter({filter, change}) {
  const field = (name, wider) => ({value: filter[name], disabled: wider != null && filter[wider] === "", onInput: (event) => change({[name]: event.target.value})});
  return html`<form class="filter" onSubmit=${(event) => event.preventDefault()}>
    <label>Kind <input ...${field("kind")} /></label>
    <label>Target <input ...${field("target", "kind")} /></label>
    <label>Partition <input type="number" min="0" ...${field("partition", "target")} /></label>
    <label class="check"><input type="checkbox" checked=${filter.paused} onChange=${(event) => change({paused: event.target.checked})} /> Paused only</label>
  </form>`;
}

const queryOf = ({kind, target, partition, paused}) => ({kind, target: kind && target, partition: kind && target && partition, paused: paused && "true"});

/** Shows the lanes of a scope: `#/lanes/<kind>/<target>/<partition>`. */
export function LanesView({start: [kind = "", target = "", partition = ""]}) {
  const [filter, set] = useState({kind, target, partition, paused: false});
  const [more, setMore] = useState(1);
  useTitle(...[kind && [kind, target, partition].filter(Boolean).join(" "), "Lanes"].filter(Boolean));
  const {data, error, reload} = useLive(async (signal) => {
    const [busy, switches] = await Promise.all([lanesBusy(SHOWN * more, signal, queryOf(filter), READS * more), readSwitches(signal)]);
    return {...busy, switches};
  }, [JSON.stringify(filter), more]);
  const change = (changed) => {
    setMore(1);
    set({...filter, ...changed});
  };
  return html`<h1>Lanes</h1>
    <${ScopeActions} then=${reload} />
    <${Problem} error=${error} />
    ${data?.switches.length > 0 && html`<${Switches} switches=${data.switches} then=${reload} />`}
    <section aria-labelledby="lanes"><h2 id="lanes">Lanes</h2>
      <${Filter} filter=${filter} change=${change} />
      ${!data && !error && html`<p class="quiet">Reading…</p>`}
      ${data && (data.lanes.length === 0 ? html`<p class="quiet">No lane is busy, and no task waits.</p>` : html`<${Lanes} lanes=${data.lanes} then=${reload} />`)}
      ${data?.more && html`<p>${data.lanes.length < SHOWN * more ? `${count(data.lanes.length)} were found in the part of the list that was read; there may be more.` : `The first ${count(data.lanes.length)} are shown.`}${" "}
        <button type="button" onClick=${() => setMore(more + 1)}>Show more</button></p>`}
    </section>`;
}
