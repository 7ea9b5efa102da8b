// Kinds: their policies, those that stand still, and those whose batches a dev session handles.
import {Ago, Json, Problem, StandsStill, State, html, useEffect, useTitle} from "../ui.js";
import {get, send, useLive, withQuery} from "../api.js";
import {several} from "../format.js";
import {Action} from "../actions.js";
import {Switch, lanesAt, pausing, readSwitches, scopeOf} from "../switches.js";

/** The leases of dev sessions by kind. A stack that allows none says so for the first. */
async function leases(policies, signal) {
  const all = new Map();
  for (const {kind} of policies) {
    const {allowed, lease} = await get(`/policies/${encodeURIComponent(kind)}/dev`, signal);
    if (!allowed) break;
    if (lease) all.set(kind, lease);
  }
  return all;
}

async function load(signal) {
  const [{policies}, health, switches] = await Promise.all([get("/policies", signal), get("/health", signal), readSwitches(signal)]);
  return {policies, switches, leases: await leases(policies, signal), standing: new Map((health.standing_still ?? []).map((at) => [at.kind, at]))};
}

/** What of a kind is paused. */
function Paused({kind, paused, switches}) {
  const within = switches.filter((at) => at.state === "paused" && at.kind === kind && at.target != null).length;
  return html`${paused.some(({all}) => all) && html`<p>Everything is paused.</p>`}
    ${within > 0 && html`<p><a href=${lanesAt({kind})}>${several(within, "target or lane", "targets or lanes")}</a> of it ${within === 1 ? "is" : "are"} paused.</p>`}`;
}

const EndSession = ({kind, lease, then}) => html`<${Action} label="End the dev session" danger=${true} title=${`End the dev session of kind ${kind}?`} then=${then}
  text="The stack's own batch API is called again." run=${async () => { await send("DELETE", `/policies/${encodeURIComponent(kind)}/dev?session=${lease.session}`); }} />`;

/** Finds the task that has a key: within a scope if the policy has one, else in a fan-out, or on its own. */
const FindByKey = ({policy: {kind, scope}}) => html`<${Action} label="Find by key" title=${`Find a task of kind ${kind}`}
  fields=${[{name: "key", label: "Key", required: true}, scope ? {name: "scope", label: "Scope", hint: `The value of ${scope}`, required: true}
    : {name: "fanout", label: "Fan-out", hint: "Its id, if the task is an item. Empty: a task on its own"}]}
  run=${async (values) => { location.hash = `#/tasks/${(await get(withQuery("/tasks", {kind, ...values}))).id}`; }} />`;

function Kind({policy, data: {standing, switches, leases: held}, then}) {
  const {kind} = policy;
  const [still, lease] = [standing.get(kind), held.get(kind)];
  const paused = pausing(switches, {kind});
  return html`<section class="card" aria-labelledby=${`kind-${kind}`}>
    <h2 id=${`kind-${kind}`}>${kind} ${still && html`<${State} state="standing_still" />`} ${paused.length > 0 && html`<${State} state="paused" />`}</h2>
    ${still && html`<p class="problem">It <${StandsStill} still=${still} /></p>`}
    <${Paused} kind=${kind} paused=${paused} switches=${switches} />
    ${lease && html`<p>Its batches go to the dev session <span class="id">${lease.session}</span>, whose lease ends <${Ago} at=${lease.until} /> unless it is renewed.</p>`}
    <p class="buttons">${lease && html`<${EndSession} kind=${kind} lease=${lease} then=${then} />`}
      ${paused.map((at) => html`<${Switch} key=${at.all ? "everything" : "kind"} what="resume" scopes=${[scopeOf(at)]} then=${then} />`)}
      ${paused.length === 0 && html`<${Switch} what="pause" scopes=${[{kind}]} then=${then} /><${Switch} what="drain" scopes=${[{kind}]} then=${then} />`}
      ${policy.key && html`<${FindByKey} policy=${policy} />`}
      <a class="button" href=${lanesAt({kind})}>Lanes</a></p>
    <details><summary>Policy</summary><${Json} value=${policy} /></details>
  </section>`;
}

/** Shows all kinds, from one on: `#/kinds/<kind>`. */
export function KindsView({start}) {
  const {data, error, reload} = useLive(load, [], 3000);
  useTitle(...[start, "Kinds"].filter(Boolean));
  const read = data !== null;
  useEffect(() => {
    if (read && start) document.getElementById(`kind-${start}`)?.scrollIntoView();
  }, [read, start]);
  return html`<h1>Kinds</h1>
    <${Problem} error=${error} />
    ${!data && !error && html`<p class="quiet">Reading…</p>`}
    ${data && start && !data.policies.some(({kind}) => kind === start) && html`<p class="problem">Kind ${start} has no policy. <code>fanfold policy apply</code> stores one.</p>`}
    ${data?.policies.length === 0 && html`<p class="quiet">There is no policy yet. <code>fanfold policy apply</code> stores one.</p>`}
    ${data?.policies.map((policy) => html`<${Kind} key=${policy.kind} policy=${policy} data=${data} then=${reload} />`)}`;
}
