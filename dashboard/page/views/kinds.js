// Kinds: their policies, those that stand still, and those whose batches a dev session handles.
import {Ago, Json, Problem, State, html} from "../ui.js";
import {get, send, useLive} from "../api.js";
import {Action} from "../actions.js";
import {Switch} from "./lanes.js";

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
  const [{policies}, health, {switches}] = await Promise.all([get("/policies", signal), get("/health", signal), get("/switches", signal)]);
  return {policies, leases: await leases(policies, signal), standing: new Map((health.standing_still ?? []).map((at) => [at.kind, at])),
    paused: new Set(switches.filter((at) => at.state === "paused" && at.kind != null && at.target == null).map((at) => at.kind))};
}

export function KindsView() {
  const {data, error, reload} = useLive(load, [], 3000);
  return html`<h1>Kinds</h1>
    <${Problem} error=${error} />
    ${data?.policies.length === 0 && html`<p class="quiet">There is no policy yet. <code>fanfold policy put</code> stores one.</p>`}
    ${data?.policies.map((policy) => {
      const still = data.standing.get(policy.kind);
      const paused = data.paused.has(policy.kind);
      const lease = data.leases.get(policy.kind);
      return html`<section class="card" key=${policy.kind} aria-labelledby=${`kind-${policy.kind}`}>
        <h2 id=${`kind-${policy.kind}`}>${policy.kind} ${still ? html`<${State} state="standing_still" />` : paused && html`<${State} state="paused" />`}</h2>
        ${still && html`<p class="problem">It stands still since <${Ago} at=${still.since} />: ${still.answer}. The next probe is due <${Ago} at=${still.next_probe} />.</p>`}
        ${lease && html`<p>Its batches go to the dev session <span class="id">${lease.session}</span>, whose lease ends <${Ago} at=${lease.until} /> unless it is renewed.</p>`}
        <p class="buttons">${lease && html`<${Action} label="End the dev session" danger=${true} title=${`End the dev session of kind ${policy.kind}?`} then=${reload}
          text="The stack's own batch API is called again." run=${async () => { await send("DELETE", `/policies/${encodeURIComponent(policy.kind)}/dev?session=${lease.session}`); }} />`}<${Switch} what=${paused ? "resume" : "pause"} scopes=${[{kind: policy.kind}]} then=${reload} /><${Switch} what="drain" scopes=${[{kind: policy.kind}]} then=${reload} /></p>
        <details><summary>Policy</summary><${Json} value=${policy} /></details>
      </section>`;
    })}`;
}
