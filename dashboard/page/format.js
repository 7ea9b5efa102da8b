// Numbers, times and ids, as people read them. No part of it touches the page.

const numbers = new Intl.NumberFormat("en");

/** A whole number with separators. */
export const count = (number) => number == null ? "–" : numbers.format(number);

/** One of something, or several. */
export const several = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A number of bytes. */
export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  for (; number >= 1024 && at < units.length - 1; at += 1) number /= 1024;
  return `${at === 0 ? number : number.toFixed(1)} ${units[at]}`;
}

/** How long, from milliseconds: two units at most. */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1000);
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const from = units.findIndex(([, size]) => seconds >= size);
  let left = seconds;
  const parts = units.slice(from, from + 2).map(([name, size]) => {
    const of = Math.floor(left / size);
    left -= of * size;
    return [of, name];
  });
  return parts.filter(([of], at) => at === 0 || of > 0).map(([of, name]) => `${of} ${name}`).join(" ");
}

/** How long ago, or until when. */
export function ago(at, now = Date.now()) {
  const ms = now - at;
  if (Math.abs(ms) < 2000) return "now";
  return ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`;
}

/** A moment, in the reader's own time zone. */
export const moment = (at) => new Date(at).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});

/** A moment, as short as possible: without the day, if it is today. */
export function clock(at, now = Date.now()) {
  const [date, today] = [new Date(at), new Date(now)];
  const time = date.toLocaleTimeString(undefined, {timeStyle: "short"});
  return date.toDateString() === today.toDateString() ? time : `${date.toLocaleDateString(undefined, {dateStyle: "medium"})}, ${time}`;
}

/** Tasks per second. */
export const rate = (perSecond) => `${perSecond >= 10 ? count(Math.round(perSecond)) : perSecond.toFixed(1)} per second`;

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a text is the id of a fan-out, a batch or a task on its own. */
export const isId = (text) => ID.test(text);

/** The parts of an item's id; none if it is none. */
export function itemOf(text) {
  const [fanout, group, index, ...rest] = text.split(":");
  return rest.length === 0 && isId(fanout) && isId(group ?? "") && /^\d+$/.test(index ?? "")
    ? {fanout, group, index: Number(index)} : null;
}

/** An id's start and end; of an item, its index. */
export function shortId(id) {
  const item = itemOf(id);
  return item ? `${item.group.slice(0, 8)}…:${item.index}` : `${id.slice(0, 13)}…`;
}

/** The items that ids and ranges name, at most so many. */
export function expand(entries, most) {
  const items = [];
  for (const entry of entries) {
    const [, group, first, last] = entry.match(/^(.*):(\d+)(?:-(\d+))?$/);
    for (let index = Number(first); index <= Number(last ?? first) && items.length < most; index += 1) items.push(`${group}:${index}`);
  }
  return items;
}
