/** Item ids, `<fanout>:<group>:<index>`, which the client computes from the groups that Fanfold returns. */

/** The most items of a group. */
export const GROUP_ITEMS_MAX = 7_168;

/** An item group as Fanfold returns it: `upto` items, numbered from 0. */
export interface ItemGroup {
  readonly id: string;
  readonly upto: number;
}

/** The parts of an item id. */
export interface Item {
  /** `<fanout>:<group>`. */
  readonly group: string;
  readonly index: number;
}

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const NUMBER = "0|[1-9][0-9]{0,3}";
const RANGE = new RegExp(`^(${UUID}:${UUID}):(${NUMBER})(?:-(${NUMBER}))?$`);

/** Returns the ids of all items of these groups, in order. */
export function* expand(fanout: string, groups: Iterable<ItemGroup>): Generator<string, void, undefined> {
  for (const { id, upto } of groups) {
    for (let index = 0; index < upto; index++) yield `${fanout}:${id}:${index}`;
  }
}

/** Returns the ids of all items in these ids and ranges (`<fanout>:<group>:<first>-<last>`), in order. */
export function* expandRanges(texts: Iterable<string>): Generator<string, void, undefined> {
  for (const text of texts) {
    const { group, first, last } = parse(text);
    for (let index = first; index <= (last ?? first); index++) yield `${group}:${index}`;
  }
}

/** Parses an item id. Throws `TypeError` if the text is not one. */
export function parseItem(text: string): Item {
  const { group, first, last } = parse(text);
  if (last !== undefined) throw noItem(text);
  return { group, index: first };
}

function parse(text: string): { group: string; first: number; last: number | undefined } {
  const found = RANGE.exec(text);
  if (found) {
    const [group, first, last] = [found[1]!, Number(found[2]), found[3] === undefined ? undefined : Number(found[3])];
    if (first <= (last ?? first) && (last ?? first) < GROUP_ITEMS_MAX) return { group, first, last };
  }
  throw noItem(text);
}

function noItem(text: string): TypeError {
  const expected = `<fanout>:<group>:<index>, two UUIDs and a number below ${GROUP_ITEMS_MAX}`;
  return new TypeError(`\`${String(text).slice(0, 120)}\` is not an item id (${expected})`);
}
