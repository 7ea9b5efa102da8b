// A batch: its members, their outcomes, its attempts, and what the batch API said last.
import {Ago, Facts, Id, Problem, State, Table, html, useState} from "../ui.js";
import {get, useLive} from "../api.js";
import {count, moment, several} from "../format.js";

async function load(id, signal) {
  const batch = await get(`/batches/${id}`, signal);
  const results = batch.members.some((member) => member.outcome === "succeeded") ? await get(`/batches/${id}/results`, signal) : {results: []};
  return {batch, results: new Map(results.results.map((result) => [result.id, result]))};
}

const OUTCOMES = ["", "pending", "succeeded", "failed", "dropped"];

export function BatchView({id}) {
  const [outcome, choose] = useState("");
  const {data, error} = useLive((signal) => load(id, signal), [id], 1500, ({batch}) => batch.status === "done");
  if (!data) return html`<h1>Batch</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  const {batch, results} = data;
  const members = batch.members.filter((member) => outcome === "" || member.outcome === outcome);
  const number = (of) => batch.members.filter((member) => of === "" || member.outcome === of).length;
  const said = (member) => {
    const {result} = results.get(member.id) ?? {};
    return member.error ?? (result === undefined ? "" : html`<code>${JSON.stringify(result).slice(0, 200)}</code>`);
  };
  return html`<h1>Batch <${State} state=${batch.status} /></h1>
    <${Problem} error=${error} />
    <${Facts} facts=${[
      ["Id", html`<span class="id">${batch.id}</span>`], ["Kind", batch.kind], ["Target", batch.target], ["Lane", html`<span class="id">${batch.lane}</span>`],
      ["Attempts", count(batch.attempts)], ["Parts still to be called", batch.parts && batch.parts.join(", ")],
      ["Formed", html`<${Ago} at=${batch.created_at} />`], ["Last changed", html`<${Ago} at=${batch.updated_at} />`],
      ["Called again", batch.retry_at && html`<${Ago} at=${batch.retry_at} />`],
      ["Answered later, until", batch.answers_until && moment(batch.answers_until)],
      ["Last error", batch.last_error && html`<span class="bad">${batch.last_error}</span>`],
      ["Notice", batch.notice && `${batch.notice.state}${batch.notice.error ? `: ${batch.notice.error}` : ""}`],
    ]} />
    <section aria-labelledby="members"><h2 id="members">${several(batch.members.length, "member")}</h2>
      <p class="buttons" role="group" aria-label="Outcomes">${OUTCOMES.filter((of) => of === "" || number(of) > 0).map((of) => html`<button type="button" key=${of}
        aria-pressed=${outcome === of} onClick=${() => choose(of)}>${of || "all"} ${count(number(of))}</button>`)}</p>
      <${Table} label="Members" head=${["Task", "Outcome", "Code", "Error or result"]}>${members.slice(0, 1000).map((member) => html`<tr key=${member.id}>
        <td><${Id} kind="tasks" id=${member.id} /></td><td><${State} state=${member.outcome} /></td><td>${member.code ?? ""}</td><td>${said(member)}</td>
      </tr>`)}<//>
      ${members.length > 1000 && html`<p class="quiet">The first 1,000 are shown.</p>`}
    </section>`;
}
