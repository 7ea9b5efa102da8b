// The producer of a fan-out: how far its partitions are, and what stops them.
import {Ago, Prose, State, Table, html} from "../ui.js";
import {send} from "../api.js";
import {count, several} from "../format.js";
import {Action} from "../actions.js";

const ORDER = ["failed", "running", "done"];

const failedOf = (producer) => producer.partitions.filter(({state}) => state === "failed").length;

/** Resumes what failed; nothing, if nothing did or the fan-out takes no more items. */
export const ResumeProducer = ({fanout, then}) => fanout.state === "open" && fanout.producer && failedOf(fanout.producer) > 0 && html`<${Action}
  label="Resume producer" title="Resume the producer?" then=${then}
  text=${`${several(failedOf(fanout.producer), "partition")} that failed continue where they stopped. Fix the source first.`}
  run=${async () => { await send("POST", `/fanouts/${fanout.id}/producer/resume`); }} />`;

/** Rows of a partition that became no task. */
function leftOut({dropped, bad, duplicates}) {
  return [[dropped, "of other partitions"], [bad, "bad"], [duplicates, "duplicates"]]
    .filter(([number]) => number > 0).map(([number, of]) => `${count(number)} ${of}`).join(", ");
}

const Why = ({partition: {error, tries, next_at: next, bad_rows: rows = []}}) => html`${error && html`<span class="bad"><${Prose} text=${error} /></span>`}
  ${tries > 1 && ` ${count(tries)} tries in a row failed.`}${next != null && html` It is asked again <${Ago} at=${next} />.`}
  ${rows.length > 0 && html`<details><summary>Bad rows</summary><ul>${rows.map((at) => html`<li key=${at.row}>Row ${count(at.row)}: <${Prose} text=${at.problem} /></li>`)}</ul></details>`}`;

const Partitions = ({producer: {partitions}}) => html`<${Table} label="Partitions" head=${[["Partition", "number"], "State", ["Rows", "number"], "Without a task", "Last changed", "Error"]}>
  ${[...partitions].sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state) || one.partition - other.partition).map((at) => html`<tr key=${at.partition}>
    <td class="number">${at.partition}</td><td><${State} state=${at.state} /></td><td class="number">${count(at.rows)}</td>
    <td>${leftOut(at)}</td><td><${Ago} at=${at.updated_at} /></td><td class="long"><${Why} partition=${at} /></td>
  </tr>`)}<//>`;

/** The partitions: in sight as long as one is not done, otherwise to be opened. */
export function Producer({fanout: {producer, state}}) {
  if (!producer || producer.partitions.length === 0) return null;
  const failed = failedOf(producer);
  const rows = producer.partitions.reduce((sum, at) => sum + at.rows, 0);
  const said = `${several(producer.partitions.length, "partition")}, ${several(rows, "row")}${failed > 0 ? `, ${count(failed)} failed` : ""}`;
  const table = html`<${Partitions} producer=${producer} />`;
  return html`<section aria-labelledby="producer"><h2 id="producer">Producer</h2>
    ${failed > 0 && state === "open" && html`<p class="problem">${several(failed, "partition")} failed, so the fan-out stays open. Fix the source, then resume the producer.</p>`}
    ${producer.partitions.every((at) => at.state === "done") ? html`<details><summary>${said}</summary>${table}</details>` : html`<p>${said}</p>${table}`}
  </section>`;
}
