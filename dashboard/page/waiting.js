// Why items are not done: what is read for that once per look, and the reason of each.
import {Ago, Id, Since, StandsStill, html} from "./ui.js";
import {gather, get, orNone, withQuery} from "./api.js";
import {moment, several} from "./format.js";
import {lanesAt, pausing, readSwitches, scopeName} from "./switches.js";

const partitionOf = (lane) => Number(lane.split(":")[1]);
const each = async (keys, read) => new Map(await Promise.all([...new Set(keys)].map(async (key) => [key, await read(key)])));

/** So long a reading counts for the same items. */
const KEPT = 5000;
let kept = {key: null, at: 0, reasons: null};

/** What decides why the items wait, read again when they change, and every few seconds. */
export async function readReasons(items, signal) {
  const tasks = items.map(({task}) => task).filter(Boolean);
  if (tasks.length === 0) return null;
  const key = JSON.stringify(tasks.map(({id, batch, status}) => [id, batch, status]));
  if (kept.key !== key || Date.now() - kept.at >= KEPT) kept = {key, reasons: await read(tasks, signal), at: Date.now()};
  return kept.reasons;
}

/** Reads switches, health, the policies of the tasks, and the lanes of those that no batch has. */
async function read(tasks, signal) {
  const waiting = tasks.filter(({batch, status}) => !batch && status === "created");
  const lane = async (name) => {
    const {kind, target} = waiting.find((task) => task.lane === name);
    const keep = (found) => found.lane === name;
    return (await gather(withQuery("/lanes", {kind, target, partition: partitionOf(name)}), "lanes", {most: 1, reads: 3, keep}, signal)).found[0];
  };
  const [switches, health, policies, lanes] = await Promise.all([
    readSwitches(signal), get("/health", signal),
    each(tasks.map(({kind}) => kind), (kind) => orNone(get(`/policies/${encodeURIComponent(kind)}`, signal))),
    each(waiting.map((task) => task.lane), lane),
  ]);
  return {switches, standing: new Map((health.standing_still ?? []).map((at) => [at.kind, at])), policies, lanes};
}

/** What holds up all work of a task's kind or lane, if something does. */
function heldUp({kind, target, lane}, {switches, standing, policies}) {
  const paused = pausing(switches, {kind, target, partition: partitionOf(lane)});
  if (paused.length > 0) {
    return html`Paused <${Since} at=${paused[0].since} />: ${paused.map((at, index) => html`${index > 0 && " and "}<a href=${lanesAt(at)}>${scopeName(at)}</a>`)}.`;
  }
  const kindLink = html`<a href=${`#/kinds/${encodeURIComponent(kind)}`}>${kind}</a>`;
  if (!policies.get(kind)) return html`Kind ${kindLink} has no policy.`;
  const still = standing.get(kind);
  return still && html`Kind ${kindLink} <${StandsStill} still=${still} />`;
}

/** What a task waits for that no batch has. */
function inLane({kind, target, lane}, {lanes}) {
  const at = lanes.get(lane);
  if (!at) return "It waits in its lane for a batch.";
  const link = html`<a href=${lanesAt({kind, target, partition: at.partition})}>lane</a>`;
  const {pending, in_flight: flying} = at;
  const others = pending.tasks > 1 && `${pending.at_least ? "at least " : ""}${several(pending.tasks, "task")} wait there`;
  const calls = flying > 0 && `${several(flying, "batch", "batches")} of it ${flying === 1 ? "is" : "are"} in flight`;
  const forms = at.leader && html`its batch <${Id} kind="batches" id=${at.leader} /> is being formed`;
  const said = [others, calls, forms].filter(Boolean);
  return html`It waits in its ${link} for a batch${said.length > 0 ? ": " : ""}${said.map((part, index) => html`${index > 0 && ", "}${part}`)}.`;
}

/** Why an item is not done. */
export function why({task, batch}, reasons) {
  if (!task) return "It has no task: whoever handles it acks it.";
  if (!batch && task.status !== "created") return `Its task is ${task.status.replaceAll("_", " ")}.`;
  const session = batch?.dev_session && html` of the dev session <span class="id">${batch.dev_session}</span>`;
  if (batch?.answers_until) {
    return session ? html`The dev session <span class="id">${batch.dev_session}</span> has its batch, and answers until ${moment(batch.answers_until)}.`
      : html`The batch API answers later, until ${moment(batch.answers_until)}.`;
  }
  const held = reasons && heldUp(task, reasons);
  if (held) return held;
  if (!batch) return reasons ? inLane(task, reasons) : "It waits in its lane for a batch.";
  if (batch.retry_at && batch.last_error) return html`It is called again <${Ago} at=${batch.retry_at} />: ${batch.last_error}`;
  return batch.status === "in_progress" ? html`Its batch is being called${session && html`, in the queue${session}`}.` : `Its batch is ${batch.status.replaceAll("_", " ")}.`;
}
