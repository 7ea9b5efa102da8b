// A task, or an item without one: what became of it, and what can be done.
import {Ago, Facts, Id, Json, Problem, State, html} from "../ui.js";
import {get, send, useLive} from "../api.js";
import {Action} from "../actions.js";
import {itemOf} from "../format.js";

const OVER = ["succeeded", "failed", "duplicate", "dropped", "cancelled"];

export function TaskView({id}) {
  const item = itemOf(id);
  const {data: task, error, reload} = useLive((signal) => get(`/tasks/${id}`, signal), [id], 1500, (task) => OVER.includes(task.status));
  const of = item && html`<a class="id" href=${`#/fanouts/${item.fanout}`}>${item.fanout}</a>`;
  if (!task) {
    return html`<h1>Task</h1>${error?.status === 404 && item
      ? html`<p>This item has no task. Whoever handles it acks it. Its fan-out: ${of}</p>`
      : html`<${Problem} error=${error} />`}`;
  }
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
    ${task.result !== undefined && html`<section aria-labelledby="result"><h2 id="result">Result</h2><${Json} value=${task.result} /></section>`}
    <section aria-labelledby="content"><h2 id="content">Content</h2><${Json} value=${task.content} /></section>`;
}
