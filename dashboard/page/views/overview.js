// The overview: what needs a person on top, then what goes on.
import {Problem, Table, html, useRef, useTitle} from "../ui.js";
import {gather, get, useLive, withQuery} from "../api.js";
import {Plots} from "../plots.js";
import {FANOUT_HEAD, FanoutRows} from "../rows.js";
import {readSwitches} from "../switches.js";
import {wrongReader} from "../wrong.js";
import {Attention} from "./attention.js";
import {Lanes, lanesBusy} from "./lanes.js";

/** Up to so many items, a look at a fan-out counts in its open groups, too: that is one more read. */
const EXACT_UP_TO = 500_000;
const SHOWN = 20;

/** Fan-outs in progress, with what is done in groups that are still open. */
async function readGoing(signal) {
  const {found, next} = await gather(withQuery("/fanouts", {state: "open,sealed", limit: SHOWN}), "fanouts", {most: 1, reads: 3}, signal);
  const fanouts = await Promise.all(found.map((fanout) => fanout.progress === "at_least" && fanout.total <= EXACT_UP_TO
    ? get(`/fanouts/${fanout.id}?progress=exact`, signal) : fanout));
  return {fanouts, next};
}

/** What is read, and how a problem names it. */
const PARTS = {health: "health", letters: "dead letters", switches: "what is paused", going: "fan-outs in progress", wrong: "fan-outs that ended", lanes: "lanes"};

/** Reads all parts. One that cannot be read leaves the others as they are, and is named under its problem. */
async function load(readEnded, signal) {
  const data = {problems: new Map()};
  const part = async (name, read) => {
    try {
      data[name] = await read;
    } catch (error) {
      data.problems.set(error.message, [...data.problems.get(error.message) ?? [], PARTS[name]]);
    }
  };
  const going = readGoing(signal);
  await Promise.all([
    part("health", get("/health", signal)), part("letters", get("/dead-letters", signal)), part("switches", readSwitches(signal)),
    part("going", going), part("wrong", going.catch(() => ({fanouts: []})).then(({fanouts}) => readEnded(fanouts, signal))),
    part("lanes", lanesBusy(SHOWN, signal)),
  ]);
  return data;
}

const Problems = ({problems}) => [...problems].map(([message, parts]) =>
  html`<${Problem} key=${message} error=${{message: `Cannot be read: ${parts.join(", ")}. ${message}`}} />`);

const Going = ({going: {fanouts, next}}) => html`<section aria-labelledby="going"><h2 id="going">Fan-outs in progress</h2>
  ${fanouts.length === 0 ? html`<p class="quiet">None. <code>fanfold open</code> or <code>POST /fanouts</code> opens one.</p>`
    : html`<${Table} label="Fan-outs in progress" head=${FANOUT_HEAD}><${FanoutRows} fanouts=${fanouts} /><//>`}
  <p>${next && "The newest are shown. "}<a href=${next ? "#/fanouts?state=open,sealed" : "#/fanouts"}>${next ? "All in progress" : "All fan-outs"}</a></p>
</section>`;

export function Overview() {
  const readEnded = useRef(null);
  readEnded.current ??= wrongReader();
  const kept = useRef({});
  useTitle("Overview");
  const {data, error} = useLive((signal) => load(readEnded.current, signal), []);
  if (!data) return html`<h1>Overview</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  // What goes on stays in sight when it cannot be read for a moment. What needs a person does not: it would claim too much.
  const {going, lanes, wrong, problems} = kept.current = {...kept.current, ...data};
  return html`<h1>Overview</h1>
    <${Problem} error=${error} /><${Problems} problems=${problems} />
    <section aria-labelledby="attention"><h2 id="attention">Needs a person</h2><${Attention} data=${data} /></section>
    ${going && html`<${Going} going=${going} />`}
    <${Plots} />
    ${lanes && html`<section aria-labelledby="busy"><h2 id="busy">Busy lanes</h2>
      ${lanes.lanes.length === 0 ? html`<p class="quiet">No lane is busy, and no task waits.</p>` : html`<${Lanes} lanes=${lanes.lanes} />`}
      ${lanes.more && html`<p>The first ${lanes.lanes.length} are shown. <a href="#/lanes">More lanes</a></p>`}
    </section>`}
    ${wrong?.ended.length > 0 && html`<section aria-labelledby="ended"><h2 id="ended">Ended</h2>
      <${Table} label="Fan-outs that ended" head=${FANOUT_HEAD}><${FanoutRows} fanouts=${wrong.ended} /><//></section>`}`;
}
