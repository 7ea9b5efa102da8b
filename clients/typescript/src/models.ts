/** What the API returns. */

import type { Refused } from "./errors.js";
import { expand, type ItemGroup } from "./ids.js";

/** Any JSON object. */
export type Json = Record<string, unknown>;

/** Items that were added to a fan-out. */
export interface AddedItems {
  readonly fanout: string;
  readonly groups: readonly ItemGroup[];
  /** Returns the ids of these items, in order. */
  itemIds(): Iterable<string>;
}

/** A fan-out as the API returns it. */
export interface Fanout {
  readonly id: string;
  /** `open`, `sealed`, or its end. */
  readonly state: "open" | "sealed" | "completed" | "failed" | "cancelled" | "expired";
  /** Whether it is sealed and every item was acked. */
  readonly complete: boolean;
  /** Whether it has ended and all counts are final. */
  readonly ended: boolean;
  readonly total: number;
  readonly done: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly duplicates: number;
  /** Items that were not done when it failed, expired or was cancelled. */
  readonly missing: number;
  /** What the counts are: `exact`, `at_least` or `estimated`. */
  readonly progress: string;
  readonly userKey: string | null;
  /** From `open`: the groups of its items. Otherwise those in the response: a small fan-out's only group. */
  readonly groups: readonly ItemGroup[];
  /** When it was opened, in milliseconds since 1970. */
  readonly createdAt: number;
  /** The whole response. */
  readonly raw: Json;
  /** Returns the ids of the items of `groups`, in order. */
  itemIds(): Iterable<string>;
}

/** A fan-out after an ack. */
export interface AckedFanout {
  readonly id: string;
  readonly state: Fanout["state"];
  readonly complete: boolean;
  readonly userKey: string | null;
}

/** The result of acks. */
export interface AckAnswer {
  /** The fan-outs with their new states. */
  readonly fanouts: readonly AckedFanout[];
  /** Acks of items that do not exist. All others were applied. */
  readonly refused: readonly Refused[];
}

/** A count in one estimated fan-out. */
export interface Count {
  readonly fanout: string;
  /** How many more are to be done. */
  readonly add?: number;
  readonly succeeded?: number;
  readonly failed?: number;
}

/** An estimated fan-out after a count. */
export interface CountedFanout extends AckedFanout {
  readonly ended: boolean;
  /** How many were added. */
  readonly total: number;
  /** How many were counted as done; more than `total` if some were counted twice, or before they were added. */
  readonly done: number;
  readonly failed: number;
}

/** The result of counts. */
export interface CountAnswer {
  /** The fan-outs with their new counts. */
  readonly fanouts: readonly CountedFanout[];
  /** Fan-outs in which nothing was counted. With the code `unavailable` the count may have been applied. */
  readonly refused: readonly { readonly fanout: string; readonly code: string; readonly problem: string }[];
}

interface FanoutAnswer {
  id: string;
  state: Fanout["state"];
  complete: boolean;
  ended?: boolean;
  total?: number;
  done?: number;
  succeeded?: number;
  failed?: number;
  duplicates?: number;
  missing?: number;
  progress?: string;
  user_key?: string | null;
  groups?: ItemGroup[];
  created_at?: number;
}

/** Reads an answer of the API. */
export function fanout(answer: Json): Fanout {
  const one = answer as unknown as FanoutAnswer;
  const groups = one.groups ?? [];
  return {
    id: one.id,
    state: one.state,
    complete: one.complete,
    ended: one.ended ?? one.complete,
    total: one.total ?? 0,
    done: one.done ?? 0,
    succeeded: one.succeeded ?? 0,
    failed: one.failed ?? 0,
    duplicates: one.duplicates ?? 0,
    missing: one.missing ?? 0,
    progress: one.progress ?? "exact",
    userKey: one.user_key ?? null,
    groups,
    createdAt: one.created_at ?? 0,
    raw: answer,
    itemIds: () => expand(one.id, groups),
  };
}

/** Reads an answer of the API. */
export function ackAnswer(answer: Json): AckAnswer {
  const { fanouts, refused } = answer as unknown as {
    fanouts: FanoutAnswer[];
    refused: { fanout: string; group: string; items?: string[]; problem: string }[];
  };
  return {
    fanouts: fanouts.map((one) => ({
      id: one.id,
      state: one.state,
      complete: one.complete,
      userKey: one.user_key ?? null,
    })),
    refused: refused.map((one) => ({
      group: `${one.fanout}:${one.group}`,
      items: (one.items ?? []).map(String),
      problem: one.problem,
    })),
  };
}

/** Reads an answer of the API. */
export function countAnswer(answer: Json): CountAnswer {
  const { fanouts, refused } = answer as unknown as {
    fanouts: (Omit<CountedFanout, "userKey"> & { user_key: string | null })[];
    refused: CountAnswer["refused"];
  };
  return { fanouts: fanouts.map(({ user_key: userKey, ...one }) => ({ ...one, userKey })), refused };
}

/** What became of a task that succeeded or failed. */
export interface TaskResult {
  /** The task: the id of its item. */
  readonly id: string;
  readonly outcome: "succeeded" | "failed";
  /** What the batch API returned for it, if the policy keeps results. */
  readonly result?: unknown;
  /** Why its result was not kept. */
  readonly resultLeftOut?: string;
  /** Why it failed. */
  readonly error?: string;
  /** The same as a short name or number, if the batch API returned one. */
  readonly code?: string;
}

/** Reads an entry of an answer of the API. */
export function taskResult(answer: Json): TaskResult {
  const { result_left_out: resultLeftOut, ...rest } = answer;
  const given = Object.entries({ ...rest, resultLeftOut }).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given) as unknown as TaskResult;
}
