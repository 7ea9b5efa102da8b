/** Packs acks into messages, as item ids, ranges or masks, whichever is shortest. */

/** An outcome is a field of the message: `items` have succeeded. */
export type Outcome = "items" | "failed";

/** Items of a group as a bitfield: item i is bit i % 8 of byte i / 8. */
export interface MaskEntry {
  /** `<fanout>:<group>`. */
  readonly group: string;
  /** Standard base64. */
  readonly mask: string;
}

type Entry = string | MaskEntry;

/** Acks by group and index. */
export type Acks = ReadonlyMap<string, ReadonlyMap<number, Outcome>>;

const GROUP = "u".repeat(73);
const ID_BYTES = JSON.stringify(`${GROUP}:7167`).length + 1;
const MASK_BYTES = JSON.stringify({ group: GROUP, mask: "" }).length + 1;
const FRAME_BYTES = '{"items":[],"failed":[]}'.length;

/** A message with its acks. */
export class AckMessage {
  readonly fields: { [field in Outcome]?: Entry[] } = {};
  readonly acks: { readonly group: string; readonly outcome: Outcome; readonly indexes: readonly number[] }[] = [];
  bytes = FRAME_BYTES;

  /** The message's text. */
  body(): string {
    return JSON.stringify(this.fields);
  }

  push(group: string, outcome: Outcome, entry: Entry, indexes: readonly number[], bytes: number): void {
    (this.fields[outcome] ??= []).push(entry);
    this.acks.push({ group, outcome, indexes });
    this.bytes += bytes;
  }
}

/** Returns the most bytes that this many items of one group and outcome take. */
export function estimate(items: number): number {
  return Math.min(items * ID_BYTES, MASK_BYTES + 1_196);
}

/** Packs all acks into messages of at most `limit` bytes. */
export function messages(acks: Acks, limit: number): AckMessage[] {
  const made: AckMessage[] = [];
  for (const [group, outcomes] of acks) {
    for (const outcome of ["items", "failed"] as const) {
      const indexes = [...outcomes].filter(([, of]) => of === outcome).map(([index]) => index);
      if (!indexes.length) continue;
      for (const [entry, covered] of entries(group, indexes.sort((one, two) => one - two))) {
        const bytes = JSON.stringify(entry).length + 1;
        let message = made.at(-1);
        if (!message || message.bytes + bytes > limit) made.push((message = new AckMessage()));
        message.push(group, outcome, entry, covered, bytes);
      }
    }
  }
  return made;
}

/** Returns entries for items of one group and outcome, each with the indexes it names. */
function entries(group: string, indexes: number[]): [Entry, number[]][] {
  const ranges = runs(indexes).map((run): [string, number[]] => [
    `${group}:${run[0]}${run.length > 1 ? `-${run.at(-1)}` : ""}`,
    run,
  ]);
  const bits = Buffer.alloc(Math.floor(indexes.at(-1)! / 8) + 1);
  const asRanges = ranges.reduce((sum, [text]) => sum + text.length + 3, 0);
  if (asRanges <= MASK_BYTES + Math.ceil(bits.length / 3) * 4) return ranges;
  for (const index of indexes) bits[index >> 3]! |= 1 << (index & 7);
  return [[{ group, mask: bits.toString("base64") }, indexes]];
}

/** Splits sorted numbers into runs without gaps. */
function runs(indexes: number[]): number[][] {
  const made: number[][] = [];
  let first = 0;
  for (let at = 1; at <= indexes.length; at++) {
    if (at === indexes.length || indexes[at] !== indexes[at - 1]! + 1) {
      made.push(indexes.slice(first, at));
      first = at;
    }
  }
  return made;
}
