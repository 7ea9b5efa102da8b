// Kinds: their policies, and those that stand still.
import {Ago, Json, Problem, State, html} from "../ui.js";
import {get, useLive} from "../api.js";
import {Switch} from "./lanes.js";

async function load(signal) {
  const [{policies}, health, {switches}] = await Promise.all([get("/policies", signal), get("/health", signal), get("/switches", signal)]);
  return {policies, standing: new Map((health.standing_still ?? []).map((at) => [at.kind, at])),
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
      return html`<section class="card" key=${policy.kind} aria-labelledby=${`kind-${policy.kind}`}>
        <h2 id=${`kind-${policy.kind}`}>${policy.kind} ${still ? html`<${State} state="standing_still" />` : paused && html`<${State} state="paused" />`}</h2>
        ${still && html`<p class="problem">It stands still since <${Ago} at=${still.since} />: ${still.answer}. The next probe is due <${Ago} at=${still.next_probe} />.</p>`}
        <p class="buttons"><${Switch} what=${paused ? "resume" : "pause"} scopes=${[{kind: policy.kind}]} then=${reload} /><${Switch} what="drain" scopes=${[{kind: policy.kind}]} then=${reload} /></p>
        <details><summary>Policy</summary><${Json} value=${policy} /></details>
      </section>`;
    })}`;
}
