// What needs a person, on top of the overview: what `GET /health` found, dead letters, fan-outs that ended badly, what is paused.
import {Ago, Prose, Since, StandsStill, State, html} from "../ui.js";
import {count, isId, several} from "../format.js";
import {lanesAt, scopeName} from "../switches.js";

/** So many of a sort are named. */
const NAMED = 5;
/** What the page shows with more than the finding says. */
const ELSEWHERE = new Set(["dead_letters", "kind_stands_still"]);
const LANE = /^([A-Za-z0-9._-]+):(\d+):([^]*)$/;

/** Where what a finding names is shown; null if it is only a name. */
export function pageOf(what, name) {
  if (isId(name)) {
    // A sort that is not known may be about anything that has an id.
    const kind = what.startsWith("batch") ? "batches" : /^(fanout|producer)/.test(what) ? "fanouts" : "find";
    return `#/${kind}/${name}`;
  }
  const [, kind, partition, target] = name.match(LANE) ?? [];
  // A long name has a gap in its middle, so only its kind is sure.
  if (kind) return lanesAt(name.includes(" … ") ? {kind} : {kind, target, partition});
  return /kind|call|policy/.test(what) ? `#/kinds/${encodeURIComponent(name)}` : null;
}

const Named = ({what, about: {name, error}}) => {
  const page = pageOf(what, name);
  return html`${page ? html`<a href=${page} class=${isId(name) ? "id" : ""}>${name}</a>` : name}${error && html` (<${Prose} text=${error} />)`}`;
};

/** What of it lies behind the first few. */
const More = ({number, href}) => number > 0 && html`<li>And ${href ? html`<a href=${href}>${count(number)} more</a>` : `${count(number)} more`}.</li>`;

function Finding({finding: {what, level, says = what, since, about = [], count: number, fix}}) {
  const named = about.slice(0, NAMED);
  return html`<li class=${level}><strong><${Prose} text=${says[0].toUpperCase() + says.slice(1)} /></strong>${since != null && html`, <${Since} at=${since} />`}.
    ${named.length > 0 && html`${" "}${named.map((one, at) => html`${at > 0 && ", "}<${Named} key=${one.name} what=${what} about=${one} />`)}${number > named.length && ` and ${count(number - named.length)} more`}.`}
    ${fix && html`${" "}<${Prose} text=${fix} />`}</li>`;
}

const Wrong = ({fanout}) => html`<li class=${fanout.state === "completed" ? "stale" : "error"}>Fan-out <a href=${`#/fanouts/${fanout.id}`}>${fanout.user_key ?? fanout.id}</a> <${State} state=${fanout.state} />${" "}
  <${Ago} at=${fanout.updated_at} />: ${several(fanout.failed, "item")} failed${fanout.missing > 0 && `, ${count(fanout.missing)} missing`}.</li>`;

const WRONG = "#/fanouts?state=completed,failed,expired&trouble=1";

function notes({health, letters, switches, wrong}) {
  const paused = (switches ?? []).filter(({state}) => state === "paused");
  const dead = (letters?.queues ?? []).filter(({messages}) => messages > 0);
  return [
    ...(health?.standing_still ?? []).map((at) => html`<li class="error" key=${`still ${at.kind}`}><strong>Kind <a href=${`#/kinds/${encodeURIComponent(at.kind)}`}>${at.kind}</a></strong> <${StandsStill} still=${at} /></li>`),
    ...(health?.findings ?? []).filter(({what}) => !ELSEWHERE.has(what)).map((finding) => html`<${Finding} key=${finding.what} finding=${finding} />`),
    ...dead.map((at) => html`<li class="error" key=${`dead ${at.step}`}><strong>${several(at.messages, "dead letter")}</strong> of ${at.step}.${" "}
      <a href="#/letters">Look at them</a></li>`),
    ...(wrong?.wrong ?? []).slice(0, NAMED).map((fanout) => html`<${Wrong} key=${fanout.id} fanout=${fanout} />`),
    wrong && html`<${More} key="more wrong" number=${wrong.wrong.length - NAMED} href=${WRONG} />`,
    ...paused.slice(0, NAMED).map((at) => html`<li key=${`paused ${scopeName(at)}`}><strong>Paused</strong> <${Since} at=${at.since} />: ${scopeName(at)}.${" "}
      <a href=${lanesAt(at)}>Lanes</a></li>`),
    html`<${More} key="more paused" number=${paused.length - NAMED} href="#/lanes" />`,
  ];
}

/** What is well, of exactly what was read. */
function fine({health, letters, switches, wrong}) {
  return [
    health && "nothing stands still, is stale or in error",
    letters && "there are no dead letters",
    switches && "nothing is paused",
    wrong && (wrong.all ? "no fan-out that ended in the last day failed, expired or has failed items"
      : `of the ${count(wrong.looked)} newest fan-outs that ended, none did so badly in the last day`),
  ].filter(Boolean).join("; ");
}

/** Whether there is nothing that needs a person, as far as it is known. */
const isFine = ({health, letters, switches, wrong}) => !health?.standing_still?.length && !(health?.findings ?? []).some(({what}) => !ELSEWHERE.has(what))
  && !(letters?.queues ?? []).some(({messages}) => messages > 0) && !wrong?.wrong.length && !(switches ?? []).some(({state}) => state === "paused");

export function Attention({data}) {
  if (!isFine(data)) return html`<ul class="attention">${notes(data)}</ul>`;
  const all = data.health && data.letters && data.switches && data.wrong;
  const said = fine(data);
  return said && html`<p class="fine">${all ? "Nothing needs you" : "As far as it could be read, nothing needs you"}: ${said}.</p>`;
}
