// The page: its header, and which view an address shows.
import {html, render, useEffect, useState} from "./ui.js";
import {get} from "./api.js";
import {isId, itemOf} from "./format.js";
import {ApiView} from "./views/api.js";
import {BatchView} from "./views/batch.js";
import {FanoutView} from "./views/fanout.js";
import {FanoutsView} from "./views/fanouts.js";
import {KindsView} from "./views/kinds.js";
import {LanesView} from "./views/lanes.js";
import {LettersView} from "./views/letters.js";
import {Overview} from "./views/overview.js";
import {TaskView} from "./views/task.js";

const TABS = [["", "Overview"], ["fanouts", "Fan-outs"], ["lanes", "Lanes"], ["kinds", "Kinds"], ["letters", "Dead letters"], ["api", "API"]];

/** The view of an address such as `#/fanouts/0197…`. */
function view([name, id]) {
  switch (name) {
    case "fanouts": return id && isId(id) ? html`<${FanoutView} id=${id} />` : html`<${FanoutsView} start=${id} key=${id} />`;
    case "batches": return html`<${BatchView} id=${id} />`;
    case "tasks": return html`<${TaskView} id=${id} />`;
    case "lanes": return html`<${LanesView} />`;
    case "kinds": return html`<${KindsView} />`;
    case "letters": return html`<${LettersView} />`;
    case "api": return html`<${ApiView} />`;
    default: return html`<${Overview} />`;
  }
}

const address = () => location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);

/** Where a text leads: an item's id to its task, another id to what has it, anything else to the fan-outs of that user key. */
async function find(text) {
  if (itemOf(text)) return `#/tasks/${text}`;
  if (!isId(text)) return `#/fanouts/${encodeURIComponent(text)}`;
  for (const kind of ["fanouts", "batches", "tasks"]) {
    const found = await get(`/${kind}/${text}`).then(() => true, (error) => error.status === 404 ? false : Promise.reject(error));
    if (found) return `#/${kind}/${text}`;
  }
  throw new Error("no fan-out, batch or task has this id");
}

function Search() {
  const [error, set] = useState(null);
  const go = async (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("text").trim();
    set(null);
    if (text === "") return;
    try {
      location.hash = await find(text);
    } catch (problem) {
      set(problem);
    }
  };
  return html`<form role="search" onSubmit=${go}>
    <input name="text" type="search" aria-label="Find by id or user key" placeholder="Id or user key" autocomplete="off" spellcheck=${false} />
    <button>Find</button>
    ${error && html`<p class="problem" role="alert">${error.message}</p>`}
  </form>`;
}

function App() {
  const [at, set] = useState(address());
  useEffect(() => {
    const moved = () => {
      set(address());
      scrollTo(0, 0);
      // Who listens to the page hears where it is now.
      document.querySelector("main").focus();
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const tab = {batches: "fanouts", tasks: "fanouts"}[at[0]] ?? at[0];
  const title = TABS.find(([name]) => name === tab)?.[1] ?? "Overview";
  useEffect(() => { document.title = `${title} · Fanfold`; }, [title]);
  return html`<header>
      <a class="brand" href="#/"><img src="icon.svg" alt="" width="28" height="28" /> Fanfold</a>
      <nav aria-label="Views">${TABS.map(([name, label]) => html`<a key=${name} href=${`#/${name}`} aria-current=${name === tab ? "page" : undefined}>${label}</a>`)}</nav>
      <${Search} />
    </header>
    <main id="main" tabindex="-1">${view(at)}</main>`;
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
