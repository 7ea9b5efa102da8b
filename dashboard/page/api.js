// Requests to Fanfold's HTTP API, which is served beside this page.
import {useCallback, useEffect, useRef, useState} from "./vendor/hooks.js";

// Only this page knows it: what another site's page sends is refused.
const token = document.querySelector("meta[name=fanfold-token]").content;

/** Sends a request; throws what the API's problem says. */
export async function send(method, path, body, signal) {
  const headers = {accept: "application/json", "fanfold-dashboard": token};
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal});
  const text = await response.text();
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    answer = null;
  }
  if (response.ok) return answer;
  const fields = (answer?.errors ?? []).map(({field, problem}) => field ? `${field} ${problem}` : problem);
  const said = fields.length > 0 ? fields.join("; ") : answer?.detail ?? answer?.title ?? answer?.message;
  throw Object.assign(new Error(said ?? `${response.status} ${response.statusText}`), {status: response.status, code: answer?.code});
}

/** Reads a text; null if there is none at this path. */
export async function getText(path, signal) {
  const response = await fetch(path, {headers: {"fanfold-dashboard": token}, signal});
  if (response.status === 404) return null;
  const text = await response.text();
  if (response.ok) return text;
  const said = response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text).detail : null;
  throw Object.assign(new Error(said ?? `${response.status} ${response.statusText}`), {status: response.status});
}

/** Reads. */
export const get = (path, signal) => send("GET", path, undefined, signal);

/** A path with a query; what is empty is left out. */
export function withQuery(path, query) {
  const left = Object.entries(query).filter(([, value]) => value !== "" && value != null && value !== false);
  return left.length === 0 ? path : `${path}?${new URLSearchParams(left)}`;
}

/** Follows pages until `stop(page)`, or to the end. */
export async function* pages(method, path, body, signal) {
  for (let next = path; next;) {
    const page = await send(method, next, body, signal);
    yield page;
    next = page.next;
  }
}

/**
 * Reads pages of a list of `name` until `most` entries are found that `keep` takes, or `reads` pages were read. `next`: there may be
 * more. `looked`: how many entries were looked at, on how many pages (`read`).
 */
export async function gather(path, name, {most = Infinity, reads = Infinity, keep = () => true}, signal) {
  const found = [];
  let [next, looked, read] = [path, 0, 0];
  for (; next && found.length < most && read < reads; read += 1) {
    const page = await get(next, signal);
    found.push(...page[name].filter(keep));
    looked += page[name].length;
    next = page.next;
  }
  return {found, next, looked, read};
}

/** What is being read; null if it is not there. */
export const orNone = (loading) => loading.catch((error) => error.status === 404 ? null : Promise.reject(error));

/**
 * What `load` returns, read again every `every` milliseconds (or `every(data)`) while the page is looked at, until `done(data)`.
 * Returns `{data, error, reload}`; `error` is what the last reading met.
 */
export function useLive(load, deps, every = 2000, done = () => false) {
  const [state, set] = useState({data: null, error: null});
  const live = useRef();
  live.current = {load, done, every};
  const wake = useRef(() => {});
  useEffect(() => {
    const stop = new AbortController();
    let timer;
    set({data: null, error: null});
    const turn = async () => {
      clearTimeout(timer);
      let data = null;
      try {
        data = await live.current.load(stop.signal);
        if (!stop.signal.aborted) set({data, error: null});
      } catch (error) {
        if (!stop.signal.aborted) set((before) => ({...before, error}));
      }
      if (!stop.signal.aborted && !(data !== null && live.current.done(data))) timer = setTimeout(look, pause(data));
    };
    const pause = (data) => typeof live.current.every === "function" ? live.current.every(data) : live.current.every;
    // Nothing is read for a page that nobody sees.
    const look = () => document.hidden ? (timer = setTimeout(look, pause(null))) : turn();
    wake.current = turn;
    turn();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, deps);
  return {...state, reload: useCallback(() => wake.current(), [])};
}
