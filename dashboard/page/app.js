// The page: its header, and which view an address shows.
import {Problem, html, render, useEffect, useState, useTitle} from "./ui.js";
import {get, orNone} from "./api.js";
import {Boundary} from "./boundary.js";
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
function view({parts: [name, id, ...rest], query}) {
  switch (name) {
    case "fanouts": return id && isId(id) ? html`<${FanoutView} id=${id} />` : html`<${FanoutsView} start=${id} query=${query} key=${`${id} ${query}`} />`;
    case "batches": return html`<${BatchView} id=${id} />`;
    case "tasks": return html`<${TaskView} id=${id} />`;
    case "lanes": return html`<${LanesView} start=${[id, ...rest]} key=${[id, ...rest].join("/")} />`;
    case "kinds": return html`<${KindsView} start=${id} />`;
    case "letters": return html`<${LettersView} />`;
    case "api": return html`<${ApiView} />`;
    case "find": return html`<${Found} text=${id} />`;
    default: return html`<${Overview} />`;
  }
}

/** A text that may have a percent sign of its own. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What the address shows: its parts, and what follows a question mark. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {parts: path.split("/").map(decoded), query: new URLSearchParams(query ?? "")};
}

/** Where a text leads: an item's id to its task, another id to what has it, anything else to the fan-outs of that user key. */
async function find(text) {
  if (itemOf(text)) return `#/tasks/${text}`;
  if (!isId(text)) return `#/fanouts/${encodeURIComponent(text)}`;
  for (const kind of ["fanouts", "batches", "tasks"]) {
    if (await orNone(get(`/${kind}/${text}`))) return `#/${kind}/${text}`;
  }
  throw new Error("no fan-out, batch or task has this id");
}

/** Goes on to what an id names: `#/find/<id>`. */
function Found({text}) {
  const [error, set] = useState(null);
  useTitle("Find");
  useEffect(() => { find(text).then((to) => location.replace(to), set); }, [text]);
  return html`<h1>Find</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
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
  const [name] = at.parts;
  const tab = {batches: "fanouts", tasks: "fanouts"}[name] ?? name;
  return html`<header>
      <a class="brand" href="#/"><img src="icon.svg" alt="" width="28" height="28" /> Fanfold</a>
      <nav aria-label="Views">${TABS.map(([name, label]) => html`<a key=${name} href=${`#/${name}`} aria-current=${name === tab ? "page" : undefined}>${label}</a>`)}</nav>
      <${Search} />
    </header>
    <main id="main" tabindex="-1"><${Boundary} key=${location.hash}>${view(at)}<//></main>`;
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
