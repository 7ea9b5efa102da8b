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

function Dialog({title, text, label, danger, fields, run, close}) {
  const dialog = useRef();
  const stop = useRef(new AbortController());
  const [state, set] = useState({doing: null, error: null, over: null});
  useEffect(() => {
    dialog.current.showModal();
    return () => stop.current.abort();
  }, []);
  const go = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    set({doing: "…", error: null, over: null});
    try {
      const said = await run(values, (doing) => set({doing, error: null, over: null}), stop.current.signal);
      if (typeof said === "string") set({doing: null, error: null, over: said});
      else dialog.current.close();
    } catch (error) {
      set({doing: null, error, over: null});
    }
  };
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onClose=${close}>
    <form onSubmit=${go}>
      <h2 id="dialog-title">${title}</h2>
      ${text && html`<p>${text}</p>`}
      ${!state.over && (fields ?? []).map(({name, label: of, hint, ...rest}) => html`<label key=${name}>${of}
        <input name=${name} ...${rest} />${hint && html`<small class="quiet">${hint}</small>`}</label>`)}
      ${state.doing && html`<p aria-live="polite"><progress aria-label=${title}></progress> ${state.doing}</p>`}
      ${state.over && html`<p aria-live="polite">${state.over}</p>`}
      ${state.error && html`<p class="problem" role="alert">${state.error.message}</p>`}
      <p class="buttons">
        <button type="button" onClick=${() => dialog.current.close()}>${state.doing ? "Stop" : state.over ? "Close" : "Back"}</button>
        ${!state.over && html`<button class=${danger ? "danger" : "primary"} disabled=${state.doing !== null}>${label}</button>`}
      </p>
    </form>
  </dialog>`;
}

/** Asks, then runs `run(values, progress, signal)`. What it returns as text is shown; otherwise the dialog closes. */
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
