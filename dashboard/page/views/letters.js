// Dead letters: messages that a step could not process, and moving them back.
import {Problem, Table, html, useTitle} from "../ui.js";
import {get, send, useLive} from "../api.js";
import {count, several} from "../format.js";
import {Action} from "../actions.js";

async function redrive({step, messages}, progress, signal) {
  const sums = {moved: 0, kept: 0, refused: 0};
  for (let more = true; more;) {
    const page = await send("POST", `/dead-letters/${step}/redrive`, undefined, signal);
    Object.keys(sums).forEach((name) => { sums[name] += page[name]; });
    progress(`${several(sums.moved, "message")} moved`, sums.moved, messages);
    more = page.more && page.moved > 0;
  }
  return `${several(sums.moved, "message")} moved, ${count(sums.kept)} kept where they were, ${count(sums.refused)} refused.`;
}

export function LettersView() {
  const {data, error, reload} = useLive((signal) => get("/dead-letters", signal), [], 3000);
  useTitle("Dead letters");
  return html`<h1>Dead letters</h1>
    <p>Messages that a step could not process. Fix the cause first, then move them back.</p>
    <${Problem} error=${error} />
    ${!data && !error && html`<p class="quiet">Reading…</p>`}
    ${data && html`<${Table} label="Dead letters by step" head=${["Step", ["Messages", "number"], "Actions"]}>${data.queues.map(({step, messages}) => html`<tr key=${step}>
      <td>${step}</td><td class="number">${messages > 0 ? html`<span class="bad">${count(messages)}</span>` : "0"}</td>
      <td class="buttons">${messages > 0 && html`<${Action} label="Redrive" title=${`Redrive the dead letters of ${step}?`} text="They are moved back to the queue of their step." then=${reload}
        run=${(_, progress, signal) => redrive({step, messages}, progress, signal)} />`}</td>
    </tr>`)}<//>`}`;
}
