/** The client of the HTTP API. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import type { SQSClientConfig } from "@aws-sdk/client-sqs";

import type { MaskEntry } from "./compact.js";
import { FanfoldError, NotEnded } from "./errors.js";
import { Http } from "./http.js";
import { expand, expandRanges, type ItemGroup } from "./ids.js";
import {
  type AckAnswer,
  type AddedItems,
  ackAnswer,
  type Count,
  type CountAnswer,
  countAnswer,
  type Fanout,
  fanout,
  type Json,
} from "./models.js";

/** Items that one request may add; `add` makes several requests for more. */
const ITEMS_PER_ADD_MAX = 709_632;

/** Seconds that one request waits for an end; API Gateway answers nothing that takes 30. */
const WAIT_MAX = 20;

export interface FanfoldOptions {
  /** Who signs requests; if not given, whom the AWS SDK finds. */
  readonly credentials?: SQSClientConfig["credentials"];
  /** The region to sign for; if not given, the one in the URL, or the SDK's. */
  readonly region?: string;
  /** Whether requests are signed (AWS_IAM). If not given: unless the API is on this machine. */
  readonly sign?: boolean;
  /** How often a request is sent in all before its failure is thrown; 5, if not given. */
  readonly attempts?: number;
  /** Milliseconds that one attempt may take; 30,000, if not given. More than 20,000, or `wait` does not work. */
  readonly timeout?: number;
}

export interface OpenOptions {
  /** Whether no more items come. */
  readonly seal?: boolean;
  /** `estimated` has no items: it begins with `items`, and what is done is counted by `count`. */
  readonly mode?: "exact" | "estimated";
  /** A name of your own, which notices and answers of acks carry. */
  readonly userKey?: string;
  /** Where its end is reported. */
  readonly notify?: Readonly<Json>;
  /** Which ends are reported, and at which shares of its items (`"50%"`) its progress is. */
  readonly notifyOn?: { readonly ends?: readonly ToldEnd[]; readonly progress?: readonly string[] };
  /** More failures than this number, or share (`"5%"`), end it as failed. */
  readonly toleratedFailures?: number | string;
  /** After so long without activity it expires: `{open: "7d", sealed: "14d"}`. */
  readonly idleLimit?: { readonly open?: string; readonly sealed?: string };
  /** An item of another fan-out, which its end acks. */
  readonly parent?: string;
  /** A task that is registered when it ends. */
  readonly then?: { readonly id?: string; readonly kind: string; readonly content: Readonly<Json> };
  /** Give one to repeat this call after a restart; else each call opens a fan-out of its own. */
  readonly idempotencyKey?: string;
}

/** An end of a fan-out, as it may be reported. */
export type ToldEnd = "succeeded" | "completed" | "failed" | "cancelled" | "expired";

/** Which fan-outs are listed; by default all, newest first. */
export interface ListOptions {
  /** One state, or several: `["open", "sealed"]` are those that are not finished. */
  readonly state?: Fanout["state"] | readonly Fanout["state"][];
  /** Those with exactly this user key. */
  readonly userKey?: string;
  /** Those whose user keys begin with this, sorted by user key. */
  readonly userKeyPrefix?: string;
  /** Those that were opened later: a time, or milliseconds since 1970. */
  readonly openedAfter?: Date | number;
  /** Those that were opened earlier: a time, or milliseconds since 1970. */
  readonly openedBefore?: Date | number;
  /** Which come first; the newest, if not given. */
  readonly order?: "newest" | "oldest";
}

/** What may be asked for of a fan-out's items. */
export type ItemsState = "failed" | "pending" | "succeeded" | "duplicate" | "missing";

/** Opens fan-outs, adds to them, seals them, waits for their ends. */
export class Fanfold {
  readonly #http: Http;

  /** `url`: where the HTTP API is: output `Url` of the stack, or what `fanfold serve` prints. */
  constructor(url: string, options: FanfoldOptions = {}) {
    const { credentials, region, sign, attempts = 5, timeout = 30_000 } = options;
    this.#http = new Http(url, { credentials, region, sign, attempts, timeout });
  }

  /** Opens a fan-out of `items` items (at most 709,632; `add` brings more), whose ids are `itemIds()` of the answer. */
  async open(items = 0, options: OpenOptions = {}): Promise<Fanout> {
    const body = {
      items,
      seal: options.seal ?? false,
      mode: options.mode,
      user_key: options.userKey,
      notify: options.notify,
      notify_on: options.notifyOn,
      tolerated_failures: options.toleratedFailures,
      idle_limit: options.idleLimit,
      parent: options.parent,
      then: options.then,
    };
    return fanout(await this.#http.call("POST", "/fanouts", body, key(options.idempotencyKey ?? randomUUID())));
  }

  /**
   * Adds `items` items to an open fan-out. More than 709,632 are added by several requests: if one of them fails, those before
   * it have added theirs, and the same call under the same `idempotencyKey` adds the rest.
   */
  async add(id: string, items: number, options: { readonly idempotencyKey?: string } = {}): Promise<AddedItems> {
    const named = options.idempotencyKey ?? randomUUID();
    const groups: ItemGroup[] = [];
    for (let first = 0, part = 0; part === 0 || first < items; first += ITEMS_PER_ADD_MAX, part++) {
      const body = { items: Math.min(items - first, ITEMS_PER_ADD_MAX) };
      const answer = await this.#http.call("POST", `${path(id)}/items`, body, key(part ? `${named}-${part}` : named));
      for (const group of answer.groups as ItemGroup[]) groups.push(group);
    }
    return { fanout: id, groups, itemIds: () => expand(id, groups) };
  }

  /** Says that no more items come. If all are acked already, the answer is complete: nobody else will see its last ack. */
  async seal(id: string): Promise<Fanout> {
    return fanout(await this.#http.call("POST", `${path(id)}/seal`));
  }

  /** Cancels a fan-out. Throws `ApiError` (409) if it ended otherwise. */
  async cancel(id: string): Promise<Fanout> {
    return fanout(await this.#http.call("DELETE", path(id)));
  }

  /** A fan-out as it stands; `exact` asks for exact progress, which costs a read per unfinished group. */
  async get(id: string, options: { readonly exact?: boolean } = {}): Promise<Fanout> {
    return fanout(await this.#http.call("GET", path(id) + (options.exact ? "?progress=exact" : "")));
  }

  /** Waits until a fan-out has ended, however it ended: see `state`. Throws `NotEnded` after `timeout` milliseconds. */
  async wait(id: string, timeout = Number.POSITIVE_INFINITY): Promise<Fanout> {
    const deadline = performance.now() + timeout;
    for (let pause = 250; ; ) {
      const began = performance.now();
      const ask = Math.max(0, Math.min(WAIT_MAX, Math.floor((deadline - began) / 1_000)));
      const answer = fanout(await this.#http.call("GET", path(id) + (ask ? `?wait=${ask}s` : "")));
      const now = performance.now();
      if (answer.ended) return answer;
      if (now >= deadline) throw new NotEnded(answer);
      // A server that cannot wait answers at once: it is not asked without pause.
      if (now - began < ask * 500 || !ask) {
        await sleep(Math.min(pause, deadline - now));
        pause = Math.min(pause * 2, 5_000);
      }
    }
  }

  /** All fan-outs, or those that are asked for, read page by page. One that was just opened shows up within seconds. */
  async *fanouts(list: ListOptions = {}): AsyncGenerator<Fanout, void, undefined> {
    const asked = {
      state: list.state === undefined ? undefined : [list.state].flat().join(","),
      user_key: list.userKey,
      user_key_prefix: list.userKeyPrefix,
      opened_after: list.openedAfter === undefined ? undefined : Number(list.openedAfter),
      opened_before: list.openedBefore === undefined ? undefined : Number(list.openedBefore),
      order: list.order,
    };
    const given = Object.entries(asked).filter(([, value]) => value !== undefined);
    const query = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
    for await (const page of this.#pages(query ? `/fanouts?${query}` : "/fanouts")) {
      yield* (page.fanouts as Json[]).map(fanout);
    }
  }

  /** All groups of a fan-out, read page by page. Groups that were just added show up within seconds. */
  async *groups(id: string): AsyncGenerator<ItemGroup, void, undefined> {
    for await (const page of this.#pages(`${path(id)}/groups`)) yield* page.groups as ItemGroup[];
  }

  /** The ids of all items in that state, read page by page. */
  async *items(id: string, state: ItemsState): AsyncGenerator<string, void, undefined> {
    for await (const page of this.#pages(`${path(id)}/items?state=${encodeURIComponent(state)}`)) {
      yield* expandRanges(page.items as string[]);
    }
  }

  /**
   * Acks items at once: ids, ranges, or masks. Acks of what does not exist are in `refused` of the answer; if nothing else is
   * there, `ApiError` (422) is thrown. `AckBuffer` does this for many items.
   */
  async ack(acks: {
    readonly items?: Iterable<string | MaskEntry>;
    readonly failed?: Iterable<string | MaskEntry>;
    readonly duplicates?: Iterable<string | MaskEntry>;
  }): Promise<AckAnswer> {
    const some = (of: Iterable<string | MaskEntry> | undefined) => (of ? [...of] : undefined);
    const body = { items: some(acks.items), failed: some(acks.failed), duplicates: some(acks.duplicates) };
    return ackAnswer(await this.#http.call("POST", "/acks", body));
  }

  /**
   * Counts in estimated fan-outs, at most 1,000 entries. What counts again is counted twice, so this is not repeated by itself: after
   * `Unreachable`, or `ApiError` with status 500 or above, it may have been counted. Fan-outs of which nothing was counted are in
   * `refused` of the answer; if nothing else is there, `ApiError` (422) is thrown.
   */
  async count(counts: Iterable<Count>): Promise<CountAnswer> {
    return countAnswer(await this.#http.call("POST", "/counts", { counts: [...counts] }, {}, { once: true }));
  }

  async *#pages(first: string): AsyncGenerator<Json, void, undefined> {
    for (let next: string | undefined = first; next; ) {
      const page: Json = await this.#http.call("GET", next);
      yield page;
      if (page.next === next) throw new FanfoldError(`${next} names itself as the next page`);
      next = page.next as string | undefined;
    }
  }
}

function key(text: string): Record<string, string> {
  return { "idempotency-key": text };
}

function path(id: string): string {
  return `/fanouts/${encodeURIComponent(id)}`;
}
