// The states of a fan-out's items: what is looked at is read, and nothing else. No part of it touches the page.
import {get} from "./api.js";

/** What an item may be; a picture has a colour for each. */
export const STATES = ["unread", "succeeded", "pending", "failed", "duplicate", "missing"];
const [UNREAD, SUCCEEDED, PENDING, FAILED, DUPLICATE, MISSING] = STATES.keys();
const MASKS = [["pending", PENDING], ["failed", FAILED], ["duplicates", DUPLICATE], ["missing", MISSING]];

/** Groups that one request reads. */
const PER_PAGE = 100;
/** Pages of groups that are read to find one. */
const LISTED = 20;

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** Items of a fan-out by their place: groups in the order of the API, items of a group by index. */
export class Field {
  constructor(fanout) {
    this.fanout = fanout;
    this.groups = [];
    this.known = 0;
    this.next = `/fanouts/${fanout}/groups`;
    this.listing = null;
  }

  /** Lists groups until that place, or to the end of the list. */
  async list(place, signal) {
    while (this.next && this.known <= place) {
      this.listing ??= get(this.next, signal).finally(() => { this.listing = null; });
      const page = await this.listing;
      if (page.read) continue;
      page.read = true;
      for (const {id, upto} of page.groups) {
        this.groups.push({id, upto, from: this.known, states: null});
        this.known += upto;
      }
      this.next = page.next;
    }
  }

  /** The number of the group that has a place; behind the last one if none has. */
  at(place) {
    let [low, high] = [0, this.groups.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.groups[middle].from + this.groups[middle].upto <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Reads the states of the items between two places. */
  async read(from, to, signal) {
    await this.list(to, signal);
    const last = Math.min(this.at(to), this.groups.length - 1);
    for (let first = this.at(from); first <= last; first += PER_PAGE) {
      const after = first > 0 ? `?after=${this.groups[first - 1].id}` : "";
      const page = await get(`/fanouts/${this.fanout}/masks${after}`, signal);
      const read = new Map(page.groups.map((group) => [group.id, group]));
      for (const group of this.groups.slice(first, first + PER_PAGE)) {
        const masks = read.get(group.id);
        group.states = masks ? statesOf(masks) : new Uint8Array(group.upto);
      }
    }
  }

  /** The state of the item at a place, as its number in `STATES`. */
  state(place) {
    const group = this.groups[this.at(place)];
    return group?.states?.[place - group.from] ?? UNREAD;
  }

  /** The id of the item at a place. */
  item(place) {
    const group = this.groups[this.at(place)];
    return group && place >= 0 ? `${this.fanout}:${group.id}:${place - group.from}` : null;
  }

  /** The next place after `from` with this state among those that were read; none: -1. Groups that were not read are skipped. */
  find(state, from, step) {
    for (let at = from < 0 ? (step > 0 ? 0 : -1) : this.at(from); at >= 0 && at < this.groups.length; at += step) {
      const {states, from: first} = this.groups[at];
      if (!states) continue;
      const start = from - first + step;
      // Negative numbers count from the end in `indexOf`, and are behind the beginning here.
      const index = step > 0 ? states.indexOf(state, Math.max(0, start)) : start < 0 ? -1 : states.lastIndexOf(state, Math.min(start, states.length - 1));
      if (index >= 0) return first + index;
    }
    return -1;
  }

  /** The name of the state of an item in a group; null if the group is not there, or too far down a very long list. */
  async stateOf(group, index, signal) {
    const found = () => this.groups.findIndex(({id}) => id === group);
    for (let reads = 0; found() < 0 && this.next && reads < LISTED; reads += 1) await this.list(this.known, signal);
    const at = found();
    if (at < 0) return null;
    const {from, upto} = this.groups[at];
    await this.read(from, from, signal);
    const state = index < upto ? this.state(from + index) : UNREAD;
    return state === UNREAD ? null : STATES[state];
  }
}

function statesOf(group) {
  const states = new Uint8Array(group.upto).fill(SUCCEEDED);
  for (const [name, state] of MASKS) {
    const mask = group[name] ? bytesOf(group[name]) : [];
    for (let byte = 0; byte < mask.length; byte += 1) {
      for (let bit = 0; mask[byte] >> bit; bit += 1) {
        const index = byte * 8 + bit;
        if (mask[byte] >> bit & 1 && index < states.length) states[index] = state;
      }
    }
  }
  return states;
}

/** How large a square is with which so many fit into a picture; and how many columns that makes. */
export function layout(total, width, height) {
  for (let size = 18; size > 1; size -= 1) {
    const columns = Math.max(1, Math.floor(width / size));
    if (Math.ceil(total / columns) * size <= height) return {size, columns};
  }
  return {size: 1, columns: Math.max(1, Math.floor(width))};
}
