// The switches of scopes: what is paused or drains, and the buttons that change it.
import {html} from "./ui.js";
import {gather, send} from "./api.js";
import {Action} from "./actions.js";

/** All switches but those that were just resumed. */
export async function readSwitches(signal) {
  return (await gather("/switches", "switches", {keep: ({state}) => state !== "resumed"}, signal)).found;
}

/** A scope in words. */
export const scopeName = ({all, kind, target, partition}) => all ? "everything"
  : [`kind ${kind}`, target != null && `target ${target}`, partition != null && `partition ${partition}`].filter(Boolean).join(", ");

/** The scope of a lane or a switch, as requests name it. */
export const scopeOf = ({all, kind, target, partition}) => all ? {all}
  : {kind, ...(target != null && {target}), ...(partition != null && {partition})};

/** The switches that pause all of a scope, the widest first. */
export function pausing(switches, {kind, target, partition}) {
  const covers = (at) => at.all || at.kind === kind && (at.target == null || at.target === target && (at.partition == null || at.partition === partition));
  return switches.filter((at) => at.state === "paused" && covers(at));
}

/** Where the lanes of a scope are shown. */
export const lanesAt = ({all, kind, target, partition}) => all ? "#/lanes"
  : `#/lanes/${[kind, target, partition].filter((part) => part != null).map(encodeURIComponent).join("/")}`;

/** What a switch does to what these names say. */
export const switchText = (what, names) => ({
  pause: `No further call begins for ${names} until it is resumed. Calls that run now end as always.`,
  resume: `Calls begin again for ${names}. A wider or narrower scope that is paused, too, stays paused.`,
  drain: `What waits now in ${names} goes into batches at once, without waiting for more. If it is paused, the pause ends.`,
}[what]);

/** A button that switches scopes: usually one. */
export function Switch({what, scopes, then}) {
  const names = scopes.map(scopeName).join(" and ");
  const name = what[0].toUpperCase() + what.slice(1);
  const label = scopes.some(({all}) => all) ? `${name} everything` : name;
  return html`<${Action} label=${label} title=${`${name} ${names}?`} text=${switchText(what, names)} then=${then}
    run=${async () => { for (const scope of scopes) await send("POST", `/${what}`, scope); }} />`;
}
