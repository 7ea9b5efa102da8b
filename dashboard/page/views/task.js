// A task: what became of it, step by step, and what can be done.
import {Ago, Facts, Id, Json, Problem, State, html, useTitle} from "../ui.js";
import {get, orNone, send, useLive} from "../api.js";
import {Action} from "../actions.js";
import {count, itemOf, several, shortId} from "../format.js";
import {ItemView} from "./item.js";

const OVER = ["succeeded", "failed", "duplicate", "dropped", "cancelled"];

/** A task, if the item has one, and the batch that has claimed it as long as it is kept. */
async function load(id, signal) {
  const task = await (itemOf(id) ? orNone(get(`/tasks/${id}`, signal)) : get(`/tasks/${id}`, signal));
  if (!task) return {task: null};
  return {task, batch: task.batch ? await orNone(get(`/batches/${task.batch}`, signal)) : null};
}

/** What happened to a task, in order: when, if it is known, and what. */
function history(task, batch, fanout) {
  const link = task.batch && html`<${Id} kind="batches" id=${task.batch} />`;
  const others = batch && batch.members.length - 1;
  const over = OVER.includes(task.status);
  const said = task.error ? html`: <span class="bad">${task.error}</span>` : "";
  return [
    [task.created_at, html`Registered: kind ${task.kind}, target ${task.target}`],
    task.duplicate_of && [null, html`Found to be a duplicate of <${Id} kind="tasks" id=${task.duplicate_of} />`],
    !task.batch && task.status === "created" && [null, "Waits in its lane for a batch"],
    link && [batch?.created_at, html`Claimed by batch ${link}${others > 0 && ` with ${several(others, "other task")}`}`],
    batch && batch.attempts > 0 && [null, `The batch API was called ${batch.attempts === 1 ? "once" : `${count(batch.attempts)} times`} with this batch`],
    !over && batch?.last_error && [null, html`Last error: <span class="bad">${batch.last_error}</span>`],
    !over && batch?.retry_at && [batch.retry_at, "The next call is due"],
    !over && batch?.answers_until && [batch.answers_until, "The deadline for its outcome"],
    over && task.status !== "duplicate" && [batch?.status === "done" ? batch.updated_at : null, html`${task.status[0].toUpperCase()}${task.status.slice(1)}${said}`],
    task.reset_as && [null, html`Reset as <${Id} kind="tasks" id=${task.reset_as} />`],
    task.item && [null, html`Its item in fan-out ${fanout}: ${task.item}`],
  ].filter(Boolean);
}

export function TaskView({id}) {
  const item = itemOf(id);
  const {data, error, reload} = useLive((signal) => load(id, signal), [id], (last) => last?.task === null ? 10_000 : 1500, ({task}) => OVER.includes(task?.status));
  const {task, batch} = data ?? {};
  const of = item && html`<a class="id" href=${`#/fanouts/${item.fanout}`}>${item.fanout}</a>`;
  useTitle(shortId(id), "Task");
  if (data && !task) return html`<${ItemView} id=${id} item=${item} />`;
  if (!task) return html`<h1>Task</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  const reset = {label: "Reset", title: "Have it called again?", text: "Its work waits again, as a new task.",
    run: async () => { location.hash = `#/tasks/${(await send("POST", `/tasks/${id}/reset`)).id}`; }};
  return html`<h1>Task <${State} state=${task.status} /></h1>
    <${Problem} error=${error} />
    <p class="buttons">
      ${task.status === "created" && html`<${Action} label="Cancel" danger=${true} title="Cancel this task?" text="It is not called." then=${reload}
        run=${async () => { await send("DELETE", `/tasks/${id}`); }} />`}
      ${!item && ["failed", "cancelled"].includes(task.status) && !task.reset_as && html`<${Action} ...${reset} />`}
    </p>
    <${Facts} facts=${[
      ["Id", html`<span class="id">${task.id}</span>`], ["Fan-out", of], ["Item", task.item && html`<${State} state=${task.item} />`],
      ["Kind", task.kind], ["Target", task.target], ["Lane", html`<span class="id">${task.lane}</span>`],
      ["Batch", task.batch && html`<${Id} kind="batches" id=${task.batch} whole=${true} />`], ["Registered", html`<${Ago} at=${task.created_at} />`],
      ["Error", task.error && html`<span class="bad">${task.error}</span>`], ["Code", task.code],
      ["Duplicate of", task.duplicate_of && html`<${Id} kind="tasks" id=${task.duplicate_of} whole=${true} />`],
      ["Reset as", task.reset_as && html`<${Id} kind="tasks" id=${task.reset_as} whole=${true} />`],
      ["Result left out", task.result_left_out],
    ]} />
    <section aria-labelledby="history"><h2 id="history">History</h2>
      <ol class="history">${history(task, batch, of).map(([at, what], index) => html`<li key=${index}>${at && html`<${Ago} at=${at} />`}<span>${what}</span></li>`)}</ol>
    </section>
    ${task.result !== undefined && html`<section aria-labelledby="result"><h2 id="result">Result</h2><${Json} value=${task.result} /></section>`}
    <section aria-labelledby="content"><h2 id="content">Content</h2><${Json} value=${task.content} /></section>`;
}
