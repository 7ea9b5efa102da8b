// Rows of fan-outs, the same in every list.
import {Ago, Bar, State, html} from "./ui.js";
import {count} from "./format.js";
import {Speed} from "./speed.js";

/** The columns of fan-outs. */
export const FANOUT_HEAD = ["Fan-out", "State", "Progress", ["Done", "number"], ["Failed", "number"], "Rate, time left", "Opened"];

/** Rows of fan-outs. */
export const FanoutRows = ({fanouts}) => fanouts.map((fanout) => html`<tr key=${fanout.id}>
  <td class="name"><a href=${`#/fanouts/${fanout.id}`}>${fanout.user_key ?? html`<span class="id">${fanout.id}</span>`}</a></td>
  <td><${State} state=${fanout.state} /></td>
  <td class="wide"><${Bar} fanout=${fanout} /></td>
  <td class="number">${fanout.progress === "at_least" && "≥ "}${count(fanout.done)} / ${count(fanout.total)}</td>
  <td class="number">${fanout.failed > 0 ? html`<span class="bad">${count(fanout.failed)}</span>` : "0"}${fanout.missing > 0
    && html`<br /><span class="bad">${count(fanout.missing)} missing</span>`}</td>
  <td><${Speed} fanout=${fanout} /></td>
  <td><${Ago} at=${fanout.created_at} /></td>
</tr>`);
