// What changes something: asked before, and shown while it goes on.
import {html, render, useEffect, useRef, useState} from "./ui.js";
import {send} from "./api.js";
import {count} from "./format.js";

/** Follows the pages of a request that works on many; adds up what each page says under these names. */
export async function inPages(path, body, names, progress, signal) {
  const sums = Object.fromEntries(names.map((name) => [name, 0]));
  for (let next = path; next;) {
    const page = await send("POST", next, body, signal);
    names.forEach((name) => { sums[name] += page[name] ?? 0; });
    progress(names.map((name) => `${count(sums[name])} ${name}`).join(", "));
    next = page.next;
  }
  return sums;
}

/** The steps of a dialog: it may prepare, asks, runs, and says what was done. */
function useSteps({prepare, run}, dialog) {
  const stop = useRef(null);
  // `doing`: what goes on, as {text, value, max}. `over`: what was done. `asked`: what was prepared.
  const [state, set] = useState({doing: prepare ? {text: "…"} : null, error: null, over: null, asked: {}});
  const step = async (work, ended) => {
    const mine = new AbortController();
    stop.current = mine;
    let last = null;
    const progress = (text, value, max) => {
      last = text;
      if (!mine.signal.aborted) set((before) => ({...before, doing: {text, value, max}, error: null}));
    };
    set((before) => ({...before, doing: {text: "…"}, error: null}));
    try {
      ended(await work(progress, mine.signal));
    } catch (error) {
      const over = mine.signal.aborted ? `Stopped. ${last ? `Until then: ${last}. ` : ""}What was being sent may have been carried out.` : null;
      set((before) => ({...before, doing: null, over, error: over ? null : error, done: last}));
    }
  };
  useEffect(() => {
    dialog.current.showModal();
    if (prepare) step(prepare, (asked) => set((before) => ({...before, doing: null, asked, over: asked.over ?? null})));
    return () => stop.current?.abort();
  }, []);
  const go = (values) => step((progress, signal) => (state.asked.run ?? run)(values, progress, signal), (said) => {
    if (typeof said === "string") set((before) => ({...before, doing: null, over: said}));
    else dialog.current.close();
  });
  return {...state, go, stop: () => stop.current?.abort()};
}

const Doing = ({title, doing: {text, value, max}}) => html`<p aria-live="polite">
  <progress aria-label=${title} ...${max > 0 && {value, max}}></progress> ${text}</p>`;

function Dialog({close, ...options}) {
  const dialog = useRef();
  const {doing, over, error, done, asked, go, stop} = useSteps(options, dialog);
  const {title, text, label, danger, fields} = {...options, ...asked};
  const submitted = (event) => {
    event.preventDefault();
    go(Object.fromEntries(new FormData(event.target)));
  };
  // Escape stops what goes on: what was done until then is said, and not lost with the dialog.
  const escaped = (event) => {
    if (!doing) return;
    event.preventDefault();
    stop();
  };
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onCancel=${escaped} onClose=${close}>
    <form onSubmit=${submitted}>
      <h2 id="dialog-title">${title}</h2>
      ${text && !over && html`<p>${text}</p>`}
      ${!over && (fields ?? []).map(({name, label: of, hint, ...rest}) => html`<label key=${name}>${of}
        <input name=${name} ...${rest} />${hint && html`<small class="quiet">${hint}</small>`}</label>`)}
      ${doing && html`<${Doing} title=${title} doing=${doing} />`}
      ${over && html`<p aria-live="polite">${over}</p>`}
      ${error && html`<p class="problem" role="alert">${error.message}${done && ` Until then: ${done}.`}</p>`}
      <p class="buttons">
        <button type="button" onClick=${() => doing ? stop() : dialog.current.close()}>${doing ? "Stop" : over ? "Close" : "Back"}</button>
        ${!over && html`<button class=${danger ? "danger" : "primary"} disabled=${doing !== null}>${label}</button>`}
      </p>
    </form>
  </dialog>`;
}

/**
 * Asks, then runs `run(values, progress, signal)`. What it returns as text is shown; otherwise the dialog closes. What goes on is shown by
 * `progress(text, value, max)`. `prepare(progress, signal)` may come first: what it returns replaces these options, and `over` ends it.
 */
export function ask(options) {
  const place = document.createElement("div");
  const before = document.activeElement;
  document.body.append(place);
  const close = () => {
    render(null, place);
    place.remove();
    before?.focus?.();
    options.then?.();
  };
  render(html`<${Dialog} ...${options} close=${close} />`, place);
}

/** A button that asks before it does something. */
export const Action = ({label, danger, ...options}) => html`<button type="button" class=${danger ? "danger" : ""}
  onClick=${() => ask({label, danger, ...options})}>${label}</button>`;
