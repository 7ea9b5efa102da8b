// The states of a fan-out's items: what is looked at is read, and nothing else. No part of it touches the page.
import {get} from "./api.js";

/** What an item may be; a picture has a colour for each. */
export const STATES = ["unread", "succeeded", "pending", "failed", "duplicate", "missing"];
const [UNREAD, SUCCEEDED, PENDING, FAILED, DUPLICATE, MISSING] = STATES.keys();
const MASKS = [["pending", PENDING], ["failed", FAILED], ["duplicates", DUPLICATE], ["missing", MISSING]];

/** Groups that one request reads. */
const PER_PAGE = 100;

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

  /** The next place after `from` with this state among those that were read; none: -1. */
  find(state, from, step) {
    for (let place = from + step; place >= 0 && place < this.known; place += step) {
      if (this.state(place) === state) return place;
    }
    return -1;
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
