// A fan-out: its counts, its items as a picture, who is left and why, and what can be done.
import {Ago, Bar, Facts, Id, Problem, State, Table, html, useTitle} from "../ui.js";
import {get, orNone, send, useLive} from "../api.js";
import {count, duration, expand, several, shortId} from "../format.js";
import {Action} from "../actions.js";
import {Bitfield} from "../bitfield.js";
import {reissuable, reissue} from "../reissue.js";
import {Speed} from "../speed.js";
import {readReasons, why} from "../waiting.js";
import {Producer, ResumeProducer} from "./producer.js";

/** Up to so many items, open groups are counted, too: each look reads them. */
const EXACT_UP_TO = 2_000_000;
/** Items that are named when no more are left, or failed. */
const NAMED = 20;

let exact = new Map();

async function load(id, signal) {
  let fanout = await get(`/fanouts/${id}`, signal);
  const counts = fanout.progress === "at_least" && !fanout.ended && fanout.total <= EXACT_UP_TO;
  if (counts) fanout = await get(`/fanouts/${id}?progress=exact`, signal);
  const left = fanout.total - fanout.done;
  const sure = fanout.progress === "exact";
  const [pending, failed] = await Promise.all([
    sure && !fanout.ended && left > 0 && left <= NAMED ? named(id, "pending", signal) : [],
    fanout.failed > 0 ? named(id, "failed", signal) : [],
  ]);
  // Why something waits is a word more: without it the items are named all the same.
  const reasons = await readReasons(pending, signal).catch(() => null);
  return {fanout, pending, failed, reasons};
}

/** The first items in a state, with their tasks. Tasks do not change once they have failed. */
async function named(id, state, signal) {
  const page = await get(`/fanouts/${id}/items?state=${state}`, signal);
  const items = expand(page.items, NAMED);
  return Promise.all(items.map(async (item) => {
    if (state === "failed" && exact.has(item)) return exact.get(item);
    const task = await orNone(get(`/tasks/${item}`, signal));
    const batch = task?.batch && state === "pending" ? await get(`/batches/${task.batch}`, signal).catch(() => null) : null;
    const found = {item, task, batch};
    if (state === "failed") exact.set(item, found);
    if (exact.size > 1000) exact = new Map();
    return found;
  }));
}

const Items = ({label, items, last}) => html`<${Table} label=${label} head=${["Item", "Target", "Batch", last[0]]}>${items.map((at) => html`<tr key=${at.item}>
  <td><a class="id" href=${`#/tasks/${at.item}`} title=${at.item}>${shortId(at.item)}</a></td>
  <td>${at.task?.target ?? "–"}</td>
  <td>${at.task?.batch ? html`<${Id} kind="batches" id=${at.task.batch} />` : "–"}</td>
  <td class="long">${last[1](at)}</td>
</tr>`)}<//>`;

/** How many items were woken, by what they wait for. */
const wokenText = (sums) => Object.entries(sums).filter(([, number]) => number > 0).map(([name, number]) => `${count(number)} ${name.replaceAll("_", " ")}`).join(", ") || "nothing";

function Actions({fanout, reload}) {
  const path = `/fanouts/${fanout.id}`;
  const what = [fanout.failed > 0 && "failed", fanout.missing > 0 && "is missing"].filter(Boolean).join(" or ");
  const again = {label: `Reissue what ${what}`, title: `Call what ${what} again?`, then: reload,
    text: `The items that ${what.replace("is missing", "are missing")} become a new fan-out, linked to this one. What succeeded is not called again.`,
    fields: [{name: "max_batch", label: "Tasks per batch at most", type: "number", min: 1, hint: "1 finds out which tasks spoil their batches. Empty: as the policy says."}],
    run: async ({max_batch: most}) => {
      const made = await reissue(fanout, most && {max_batch: Number(most)});
      location.hash = `#/fanouts/${made.id}`;
    }};
  const wake = {label: "Wake what waits", title: "Wake what outstanding items wait for?", then: reload,
    text: "The messages of tasks and batches that are not done are sent again. Repeated messages do no harm.",
    run: async (_, progress, signal) => {
      const sums = {};
      for (let next = `${path}/reissue`; next;) {
        const page = await send("POST", next, {items: "outstanding"}, signal);
        for (const [name, number] of Object.entries(page.woken ?? {})) sums[name] = (sums[name] ?? 0) + number;
        progress(wokenText(sums));
        next = page.next;
      }
      return `Everything that waits was woken: ${wokenText(sums)}.`;
    }};
  return html`<p class="buttons">
    ${fanout.state === "open" && !fanout.producer && html`<${Action} label="Seal" title="Seal it?" text="No more items can be added, and it completes when all are done." then=${reload}
      run=${async () => { await send("POST", `${path}/seal`, {}); }} />`}
    ${!fanout.ended && fanout.total > fanout.done && fanout.mode !== "estimated" && html`<${Action} ...${wake} />`}
    ${reissuable(fanout) > 0 && html`<${Action} ...${again} />`}
    <${ResumeProducer} fanout=${fanout} then=${reload} />
    ${!fanout.ended && html`<${Action} label="Cancel" danger=${true} title="Cancel this fan-out?" text="No more calls begin for it. This cannot be undone." then=${reload}
      run=${async () => { await send("DELETE", path); }} />`}
  </p>`;
}

const Link = ({id, text}) => id && html`<a class="id" href=${`#/fanouts/${id}`}>${text ?? id}</a>`;

function facts(fanout) {
  const parent = fanout.parent && html`<a class="id" href=${`#/tasks/${fanout.parent}`}>${fanout.parent}</a>`;
  const {then, notice} = fanout;
  return [
    ["Id", html`<span class="id">${fanout.id}</span>`], ["State", html`<${State} state=${fanout.state} />`],
    ["Opened", html`<${Ago} at=${fanout.created_at} />`],
    [fanout.ended ? "Took" : "Last changed", fanout.ended ? duration(fanout.updated_at - fanout.created_at) : html`<${Ago} at=${fanout.updated_at} />`],
    ["Rate", !fanout.ended && html`<${Speed} fanout=${fanout} />`],
    ["Parent item", parent], ["Reissue of", html`<${Link} id=${fanout.reissue_of} />`], ["Reissued as", html`<${Link} id=${fanout.reissued_as} />`],
    ["Then", then && html`<a class="id" href=${`#/tasks/${then.id}`}>${then.kind}</a> ${then.registered ? "registered" : "not registered yet"}`],
    ["Notice", notice && `${notice.state}${notice.error ? `: ${notice.error}` : ""}`],
  ].filter(([name]) => !(name === "Reissue of" && !fanout.reissue_of) && !(name === "Reissued as" && !fanout.reissued_as));
}

const Numbers = ({fanout}) => html`<ul class="numbers">
  ${[["total", "items"], ["succeeded", "succeeded"], ["failed", "failed"], ["duplicates", "duplicates"], ["missing", "missing"]]
    .filter(([name]) => name === "total" || fanout[name] > 0)
    .map(([name, label]) => html`<li key=${name} class=${name}><strong>${count(fanout[name])}</strong> ${label}</li>`)}
  ${!fanout.ended && html`<li class="pending"><strong>${count(fanout.total - fanout.done)}</strong> ${fanout.progress === "at_least" ? "left at most" : "left"}</li>`}
</ul>`;

export function FanoutView({id}) {
  const {data, error, reload} = useLive((signal) => load(id, signal), [id], 1500, ({fanout}) => fanout.ended);
  useTitle(data?.fanout.user_key ?? shortId(id), "Fan-out");
  if (!data) return html`<h1>Fan-out</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  const {fanout, pending, failed, reasons} = data;
  return html`<h1>${fanout.user_key ?? "Fan-out"} <${State} state=${fanout.state} /></h1>
    <${Problem} error=${error} />
    <${Numbers} fanout=${fanout} /><${Bar} fanout=${fanout} />
    <${Actions} fanout=${fanout} reload=${reload} />
    <${Producer} fanout=${fanout} />
    ${fanout.total > 0 && fanout.mode !== "estimated" && html`<section aria-labelledby="items"><h2 id="items">Items</h2>
      <${Bitfield} fanout=${fanout} live=${!fanout.ended} key=${fanout.id} /></section>`}
    ${pending.length > 0 && html`<section aria-labelledby="left"><h2 id="left">Left: ${several(pending.length, "item")}</h2>
      <${Items} label="Items that are left" items=${pending} last=${["Why it waits", (at) => why(at, reasons)]} /></section>`}
    ${failed.length > 0 && html`<section aria-labelledby="failed"><h2 id="failed">Failed${fanout.failed > failed.length && `: the first ${failed.length} of ${count(fanout.failed)}`}</h2>
      <${Items} label="Items that failed" items=${failed} last=${["Why", ({task}) => task?.error ?? "It was acked as failed."]} /></section>`}
    <section aria-labelledby="facts"><h2 id="facts">Facts</h2><${Facts} facts=${facts(fanout)} /></section>`;
}
