// The overview: what needs a person on top, then what goes on.
import {Ago, Bar, Problem, State, Table, html} from "../ui.js";
import {get, useLive, withQuery} from "../api.js";
import {count, several} from "../format.js";
import {Lanes, lanesBusy} from "./lanes.js";
import {Plots} from "../plots.js";
import {Speed} from "../speed.js";

const DAY = 24 * 3600 * 1000;
/** Up to so many items, a look at a fan-out counts in its open groups, too: that is one more read. */
const EXACT_UP_TO = 500_000;

async function load(signal) {
  const since = Date.now() - DAY;
  const [health, letters, switches, wrong, going, ended, lanes] = await Promise.all([
    get("/health", signal), get("/dead-letters", signal), get("/switches", signal),
    get(withQuery("/fanouts", {state: "failed,expired", opened_after: since, limit: 5}), signal),
    get(withQuery("/fanouts", {state: "open,sealed", limit: 20}), signal),
    get(withQuery("/fanouts", {state: "completed,cancelled", limit: 5}), signal),
    lanesBusy(20, signal),
  ]);
  const paused = switches.switches.filter((at) => at.state === "paused");
  const counted = await Promise.all(going.fanouts.map((fanout) => fanout.progress === "at_least" && fanout.total <= EXACT_UP_TO
    ? get(`/fanouts/${fanout.id}?progress=exact`, signal) : fanout));
  const dead = letters.queues.filter((queue) => queue.messages > 0);
  // Dead letters and kinds that stand still are shown with more than the finding says.
  const found = (health.findings ?? []).filter(({what}) => what !== "dead_letters" && what !== "kind_stands_still");
  return {found, standing: health.standing_still ?? [], dead, paused, wrong: wrong.fanouts, going: counted, ended: ended.fanouts, lanes};
}

/** A scope in words. */
export const scopeName = ({all, kind, target, partition}) => all ? "everything"
  : [`kind ${kind}`, target != null && `target ${target}`, partition != null && `partition ${partition}`].filter(Boolean).join(", ");

function Attention({data}) {
  const notes = [
    ...data.standing.map((at) => html`<li key=${at.kind}><strong>Kind ${at.kind} stands still</strong> since <${Ago} at=${at.since} />:
      ${at.answer}. The next probe is due <${Ago} at=${at.next_probe} />.${" "}<a href="#/kinds">Kinds</a></li>`),
    ...data.found.map((at) => html`<li key=${at.what}><strong>${at.says[0].toUpperCase()}${at.says.slice(1)}</strong>,
      since <${Ago} at=${at.since} />: ${at.about?.length > 0 && `${at.about[0].name}${at.count > 1 ? ` and ${count(at.count - 1)} more` : ""}. `}${at.mend}</li>`),
    ...data.dead.map((at) => html`<li key=${at.step}><strong>${several(at.messages, "dead letter")}</strong> of ${at.step}.${" "}
      <a href="#/letters">Look at them</a></li>`),
    ...data.wrong.map((at) => html`<li key=${at.id}>Fan-out <a href=${`#/fanouts/${at.id}`}>${at.user_key ?? at.id}</a> <${State} state=${at.state} />${" "}
      <${Ago} at=${at.updated_at} />: ${several(at.failed, "item")} failed${at.missing > 0 && `, ${count(at.missing)} missing`}.</li>`),
    ...data.paused.map((at) => html`<li key=${JSON.stringify(at)}><strong>Paused</strong> since <${Ago} at=${at.since} />: ${scopeName(at)}.${" "}
      <a href="#/lanes">Lanes</a></li>`),
  ];
  return notes.length === 0
    ? html`<p class="fine">Nothing needs you: no dead letters, nothing stands still or is paused, no fan-out failed today.</p>`
    : html`<ul class="attention">${notes}</ul>`;
}

/** Rows of fan-outs. */
export const FanoutRows = ({fanouts}) => fanouts.map((fanout) => html`<tr key=${fanout.id}>
  <td><a href=${`#/fanouts/${fanout.id}`}>${fanout.user_key ?? html`<span class="id">${fanout.id}</span>`}</a></td>
  <td><${State} state=${fanout.state} /></td>
  <td class="wide"><${Bar} fanout=${fanout} /></td>
  <td class="number">${fanout.progress === "at_least" && "≥ "}${count(fanout.done)} / ${count(fanout.total)}</td>
  <td class="number">${fanout.failed > 0 ? html`<span class="bad">${count(fanout.failed)}</span>` : "0"}</td>
  <td><${Speed} fanout=${fanout} /></td>
  <td><${Ago} at=${fanout.created_at} /></td>
</tr>`);

/** The columns of fan-outs. */
export const FANOUT_HEAD = ["Fan-out", "State", "Progress", ["Done", "number"], ["Failed", "number"], "Rate, time left", "Opened"];

export function Overview() {
  const {data, error} = useLive(load, []);
  if (!data) return html`<h1>Overview</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  return html`<h1>Overview</h1>
    <${Problem} error=${error} />
    <section aria-labelledby="attention"><h2 id="attention">Needs a person</h2><${Attention} data=${data} /></section>
    <section aria-labelledby="going"><h2 id="going">Fan-outs in progress</h2>
      ${data.going.length === 0 ? html`<p class="quiet">None. <code>fanfold open</code> or <code>POST /fanouts</code> opens one.</p>`
        : html`<${Table} label="Fan-outs in progress" head=${FANOUT_HEAD}><${FanoutRows} fanouts=${data.going} /><//>`}
      <p><a href="#/fanouts">All fan-outs</a></p>
    </section>
    <${Plots} />
    <section aria-labelledby="busy"><h2 id="busy">Busy lanes</h2>
      ${data.lanes.length === 0 ? html`<p class="quiet">No lane is busy, and no task waits.</p>` : html`<${Lanes} lanes=${data.lanes} />`}
    </section>
    ${data.ended.length > 0 && html`<section aria-labelledby="ended"><h2 id="ended">Ended</h2>
      <${Table} label="Fan-outs that ended" head=${FANOUT_HEAD}><${FanoutRows} fanouts=${data.ended} /><//></section>`}`;
}
