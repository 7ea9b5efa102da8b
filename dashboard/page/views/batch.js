// A batch: its members, their outcomes, its attempts, what the batch API said last, and the request it is called with.
import {Ago, Facts, Id, Problem, State, Table, html, useState, useTitle} from "../ui.js";
import {gather, get, useLive} from "../api.js";
import {bytes, count, moment, several, shortId} from "../format.js";

/** So many members are shown, and pages of results read for them. */
const SHOWN = 1000;
const READS = 8;

/** The results that were read last: they are read again only when more members have one. */
let kept = {id: null, number: 0};

async function load(id, signal) {
  const batch = await get(`/batches/${id}`, signal);
  const number = batch.members.filter((member) => member.outcome === "succeeded").length;
  if (kept.id !== id || kept.number !== number) {
    const {found, next} = number === 0 ? {found: []} : await gather(`/batches/${id}/results`, "results", {most: SHOWN, reads: READS}, signal);
    kept = {id, number, results: new Map(found.map((result) => [result.id, result])), next};
  }
  return {batch, results: kept.results, cut: kept.next != null};
}

/** Where a request is sent, its headers and its body, as text. */
function requestText({method, to, idempotency_key, headers, body, body_bytes}) {
  const names = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const left = body_bytes - new TextEncoder().encode(body).length;
  return [[method, to].filter(Boolean).join(" "), ...names, `Idempotency-Key: ${idempotency_key}`, "", left > 0 ? `${body}… ${bytes(left)} more` : body].join("\n");
}

/** The request of the batch's call: it is written again when it is looked at, and once more after a call. */
function RequestOf({batch}) {
  const [open, setOpen] = useState(false);
  return html`<details class="card" onToggle=${(event) => setOpen(event.target.open)}><summary>Request</summary>${open && html`<${Request} batch=${batch} />`}</details>`;
}

function Request({batch}) {
  const {data, error} = useLive((signal) => get(`/batches/${batch.id}/request`, signal), [batch.id, batch.status, batch.attempts], 5000, () => true);
  if (!data) return error ? html`<${Problem} error=${error} />` : html`<p class="quiet">Reading…</p>`;
  const {members, left_out = [], request, problem} = data;
  return html`<p class="quiet">Written again from the contents of the tasks and the policy as it is now: ${batch.status === "done"
      ? "one call for all members that were not dropped." : "the call that runs or comes next."}</p>
    ${problem && html`<p class="problem">There is no request: ${problem}</p>`}
    ${request && html`<p>For ${several(members.length, "member")}, ${bytes(request.body_bytes)}:</p><pre class="json request" tabindex="0">${requestText(request)}</pre>`}
    ${left_out.length > 0 && html`<ul>${left_out.slice(0, 20).map((at) => html`<li key=${at.id}>Without <${Id} kind="tasks" id=${at.id} />: ${at.problem}</li>`)}</ul>`}
    ${left_out.length > 20 && html`<p class="quiet">And ${count(left_out.length - 20)} more.</p>`}`;
}

const OUTCOMES = ["", "pending", "succeeded", "failed", "dropped"];

export function BatchView({id}) {
  const [outcome, choose] = useState("");
  const {data, error} = useLive((signal) => load(id, signal), [id], 1500, ({batch}) => batch.status === "done");
  useTitle(shortId(id), "Batch");
  if (!data) return html`<h1>Batch</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  const {batch, results, cut} = data;
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
      ["Attempts", batch.refused > 0 ? `${count(batch.attempts)} (${count(batch.refused)} refused, which do not count)` : count(batch.attempts)],
      ["Latest attempt began", batch.begun_at && html`<${Ago} at=${batch.begun_at} />`], ["Parts still to be called", batch.parts && count(batch.parts)],
      ["Formed", html`<${Ago} at=${batch.created_at} />`], ["Last changed", html`<${Ago} at=${batch.updated_at} />`],
      ["Called again", batch.retry_at && html`<${Ago} at=${batch.retry_at} />`],
      ["Answered later, until", batch.answers_until && moment(batch.answers_until)],
      ["Sent to the dev session", batch.dev_session && html`<span class="id">${batch.dev_session}</span>`],
      ["Last error", batch.last_error && html`<span class="bad">${batch.last_error}</span>`],
      ["Notice", batch.notice && `${batch.notice.state}${batch.notice.error ? `: ${batch.notice.error}` : ""}`],
    ]} />
    <section aria-labelledby="members"><h2 id="members">${several(batch.members.length, "member")}</h2>
      <p class="buttons" role="group" aria-label="Outcomes">${OUTCOMES.filter((of) => of === "" || number(of) > 0).map((of) => html`<button type="button" key=${of}
        aria-pressed=${outcome === of} onClick=${() => choose(of)}>${of || "all"} ${count(number(of))}</button>`)}</p>
      <${Table} label="Members" head=${["Task", "Outcome", "Code", "Error or result"]}>${members.slice(0, SHOWN).map((member) => html`<tr key=${member.id}>
        <td><${Id} kind="tasks" id=${member.id} /></td><td><${State} state=${member.outcome} /></td><td>${member.code ?? ""}</td><td>${said(member)}</td>
      </tr>`)}<//>
      ${members.length > SHOWN && html`<p class="quiet">The first ${count(SHOWN)} are shown.</p>`}
      ${cut && html`<p class="quiet">${several(results.size, "result")} were read, in the order of the members; there are more.</p>`}
    </section>
    <${RequestOf} batch=${batch} />`;
}
