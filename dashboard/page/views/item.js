// An item without a task: its state, and what its fan-out's times say of it.
import {Ago, Facts, Problem, State, html, useRef, useTitle} from "../ui.js";
import {get, useLive} from "../api.js";
import {count, shortId} from "../format.js";
import {Field} from "../field.js";

/** The fan-out of an item, and the item's state; null if it is not known. */
async function load(field, {fanout: id, group, index}, signal) {
  const fanout = await get(`/fanouts/${id}`, signal);
  return {fanout, state: fanout.mode === "estimated" ? null : await field.stateOf(group, index, signal)};
}

/** What is known to have happened, in order. */
const history = (fanout, state) => [
  [fanout.created_at, html`Its fan-out was opened`],
  state && state !== "missing" && state !== "pending" && [null, html`The item was acked: ${state}`],
  state === "pending" && [null, "It waits for its ack: whoever handles it sends one"],
  state === "missing" && [null, "It was not done when its fan-out ended"],
  [fanout.updated_at, fanout.ended ? html`Its fan-out ended: ${fanout.state}` : "Its fan-out last changed"],
].filter(Boolean);

export function ItemView({id, item}) {
  const field = useRef(null);
  if (field.current?.fanout !== item.fanout) field.current = new Field(item.fanout);
  useTitle(shortId(id), "Item");
  const {data, error} = useLive((signal) => load(field.current, item, signal), [id], 1500, ({fanout}) => fanout.ended);
  if (!data) return html`<h1>Item</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  const {fanout, state} = data;
  const link = html`<a href=${`#/fanouts/${fanout.id}`}>${fanout.user_key ?? html`<span class="id">${fanout.id}</span>`}</a> <${State} state=${fanout.state} />`;
  return html`<h1>Item ${state && html`<${State} state=${state} />`}</h1>
    <${Problem} error=${error} />
    <p>This item has no task. Whoever handles it acks it.</p>
    <${Facts} facts=${[["Id", html`<span class="id">${id}</span>`], ["Fan-out", link], ["Number in its group", count(item.index + 1)],
      ["State", !state && "not known: the fan-out's bitfield does not have it"]]} />
    <section aria-labelledby="history"><h2 id="history">History</h2>
      <ol class="history">${history(fanout, state).map(([at, what], index) => html`<li key=${index}>${at && html`<${Ago} at=${at} />`}<span>${what}</span></li>`)}</ol>
    </section>`;
}
