// What every view draws with: Preact and its templates, and small parts that look the same everywhere.
import {Component, createElement, render} from "./vendor/preact.js";
import {useCallback, useEffect, useMemo, useRef, useState} from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import {ago, clock, count, moment, shortId} from "./format.js";

export const html = htm.bind(createElement);
export {Component, render, useCallback, useEffect, useMemo, useRef, useState};

/** Names what a view shows in the title of the page. */
export function useTitle(...names) {
  const title = [...names, "Fanfold"].join(" · ");
  useEffect(() => { document.title = title; }, [title]);
}

/** The word for a state, with its colour. */
export const State = ({state}) => html`<span class=${`state ${state}`}>${state.replaceAll("_", " ")}</span>`;

/** A moment, as how long ago it was; its exact time is the title. */
export const Ago = ({at}) => at == null ? html`<span class="quiet">–</span>` : html`<time title=${moment(at)}>${ago(at)}</time>`;

/** Since when something is so, as a clock shows it, and how long ago that was. */
export const Since = ({at}) => html`since <time title=${moment(at)}>${clock(at)}</time> (${ago(at)})`;

/** An id, shortened, as a link to its page. */
export const Id = ({kind, id, whole}) => html`<a class="id" href=${`#/${kind}/${id}`} title=${id}>${whole ? id : shortId(id)}</a>`;

/** What is said of a kind that stands still, after its name. */
export const StandsStill = ({still: {since, answer, next_probe: next}}) => html`stands still <${Since} at=${since} />: <${Prose} text=${answer} />. The next probe is due <${Ago} at=${next} />.`;

/** A bar of a fan-out's counts. */
export function Bar({fanout}) {
  const {total, succeeded, failed, duplicates, missing} = fanout;
  const part = (name, of) => of > 0 && html`<span class=${name} style=${{width: `${100 * of / total}%`}}></span>`;
  const label = `${count(fanout.done)} of ${count(total)} items are done, ${count(failed)} failed`;
  return html`<div class="bar" role="img" aria-label=${label} title=${label}>
    ${part("succeeded", succeeded)}${part("duplicate", duplicates)}${part("failed", failed)}${part("missing", missing)}
  </div>`;
}

/** A list of names and values. */
export const Facts = ({facts}) => html`<dl class="facts">
  ${facts.filter(([, value]) => value != null && value !== "" && value !== false).map(([name, value]) =>
    html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

/** A table that scrolls by itself where the screen is narrow. */
export const Table = ({label, head, children}) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
  <thead><tr>${head.map((name, at) => {
    const [text, kind] = Array.isArray(name) ? name : [name, ""];
    return html`<th key=${at} scope="col" class=${kind}>${text}</th>`;
  })}</tr></thead>
  <tbody>${children}</tbody>
</table></div>`;

/** What a request that failed said. */
export const Problem = ({error}) => error && html`<p class="problem" role="alert">${error.message}</p>`;

/** JSON, as it is. */
export const Json = ({value}) => html`<pre class="json" tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;

/** A text in which backticks enclose code. */
export const Prose = ({text}) => (text ?? "").split("`").map((part, at) => at % 2 === 1 ? html`<code key=${at}>${part}</code>` : part);
