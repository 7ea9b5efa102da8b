/** The client of the HTTP API. */

import { createHmac, randomUUID } from "node:crypto";
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
  type TaskResult,
  taskResult,
} from "./models.js";

/** Items that one request may add; for more, `add` sends several requests. */
const ITEMS_PER_ADD_MAX = 709_632;

/** The most characters of an idempotency key. */
const KEY_MAX = 255;

/** Seconds that one request waits for an end; API Gateway ends a request after 30. */
const WAIT_MAX = 20;

export interface FanfoldOptions {
  /** Credentials to sign requests with; by default those that the AWS SDK finds. */
  readonly credentials?: SQSClientConfig["credentials"];
  /** The region to sign for, if the URL names none; by default the SDK's. */
  readonly region?: string;
  /** Whether to sign requests for AWS_IAM; by default, unless the API is on this machine. */
  readonly sign?: boolean;
  /** How often a request is sent, retries included, before its error is thrown; by default 5. */
  readonly attempts?: number;
  /** Milliseconds that one attempt may take; by default 30,000. `wait` needs more than 20,000. */
  readonly timeout?: number;
}

export interface OpenOptions {
  /** Whether to seal it at once: no more items can be added. */
  readonly seal?: boolean;
  /** `estimated` has counters instead of items: `total` begins at `items`, and `count` counts. */
  readonly mode?: "exact" | "estimated";
  /** A name of your own, which notices and responses to acks carry. */
  readonly userKey?: string;
  /** Where Fanfold reports its end. */
  readonly notify?: Readonly<Json>;
  /** Which ends, and which percentages of its items (`"50%"`) as progress, Fanfold reports. */
  readonly notifyOn?: { readonly ends?: readonly ReportedEnd[]; readonly progress?: readonly string[] };
  /** It fails when more items fail than this number, or percentage (`"5%"`). */
  readonly toleratedFailures?: number | string;
  /** It expires after this time without activity: `{open: "7d", sealed: "14d"}`. */
  readonly idleLimit?: { readonly open?: string; readonly sealed?: string };
  /** An item of another fan-out. The end of this fan-out acks it. */
  readonly parent?: string;
  /** A task that Fanfold registers when the fan-out has ended. With `results` its content also has what became of each item. */
  readonly then?: {
    readonly id?: string;
    readonly kind: string;
    readonly content: Readonly<Json>;
    readonly results?: boolean;
  };
  /** At most 100 tasks. They are the items, so `items` stays 0, and the fan-out is sealed. */
  readonly tasks?: readonly { readonly kind: string; readonly content: unknown }[];
  /** Pass one to repeat this call after a restart. Without it, each call opens another fan-out. */
  readonly idempotencyKey?: string;
}

/** How the failed items of a fan-out are called again. */
export interface ReissueOptions {
  /** Also items that were missing at its end. */
  readonly missing?: boolean;
  /** The most members of a batch with one of the tasks, if the policy allows more. */
  readonly maxBatch?: number;
  /** Corrected contents by item id. */
  readonly contents?: Readonly<Record<string, unknown>>;
  /** All failed items, although they were reissued before, and even those that succeeded then. */
  readonly again?: boolean;
  /** Pass one to repeat this call after a restart. */
  readonly idempotencyKey?: string;
}

/** An end of a fan-out that can be reported. */
export type ReportedEnd = "succeeded" | "completed" | "failed" | "cancelled" | "expired";

/** Which fan-outs to list; by default all, newest first. */
export interface ListOptions {
  /** One state, or several: `["open", "sealed"]` lists what is not finished. */
  readonly state?: Fanout["state"] | readonly Fanout["state"][];
  /** Exactly this user key. */
  readonly userKey?: string;
  /** User keys that begin with this; sorts by user key. */
  readonly userKeyPrefix?: string;
  /** Opened later than this: a time, or milliseconds since 1970. */
  readonly openedAfter?: Date | number;
  /** Opened earlier than this: a time, or milliseconds since 1970. */
  readonly openedBefore?: Date | number;
  /** Which come first; by default the newest. */
  readonly order?: "newest" | "oldest";
}

/** States by which items can be listed. */
export type ItemsState = "failed" | "pending" | "succeeded" | "duplicate" | "missing";

/** Opens fan-outs, adds items, seals fan-outs, waits for their ends. */
export class Fanfold {
  readonly #http: Http;

  /** `url`: the address of the HTTP API: output `Url` of the stack, or what `fanfold up` prints. */
  constructor(url: string, options: FanfoldOptions = {}) {
    const { credentials, region, sign, attempts = 5, timeout = 30_000 } = options;
    this.#http = new Http(url, { credentials, region, sign, attempts, timeout });
  }

  /** Opens a fan-out with `items` items: at most 709,632, `add` adds more. The result's `itemIds()` are their ids. */
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
      tasks: options.tasks,
    };
    return fanout(await this.#http.call("POST", "/fanouts", body, key(options.idempotencyKey ?? randomUUID())));
  }

  /**
   * Opens up to 1,000 fan-outs in one request, each as the body of `POST /fanouts` has it. All are checked before the first is
   * opened. Repeat a call that failed with the same `idempotencyKey`: it opens the rest.
   */
  async openSeveral(
    fanouts: readonly Readonly<Json>[],
    options: { readonly idempotencyKey?: string } = {},
  ): Promise<Fanout[]> {
    const named = key(options.idempotencyKey ?? randomUUID());
    const answer = await this.#http.call("POST", "/fanouts/open", { fanouts }, named);
    return (answer.fanouts as Json[]).map(fanout);
  }

  /**
   * Adds `items` items to an open fan-out. Sends several requests for more than 709,632. If one of them fails, the items of those
   * before it are added, and the same call with the same `idempotencyKey` adds the rest.
   */
  async add(id: string, items: number, options: { readonly idempotencyKey?: string } = {}): Promise<AddedItems> {
    const named = options.idempotencyKey ?? randomUUID();
    const groups: ItemGroup[] = [];
    for (let first = 0, part = 0; part === 0 || first < items; first += ITEMS_PER_ADD_MAX, part++) {
      const body = { items: Math.min(items - first, ITEMS_PER_ADD_MAX) };
      const answer = await this.#http.call("POST", `${path(id)}/items`, body, key(part ? partKey(named, part) : named));
      for (const group of answer.groups as ItemGroup[]) groups.push(group);
    }
    return { fanout: id, groups, itemIds: () => expand(id, groups) };
  }

  /** Seals a fan-out: no more items can be added. If all items are acked already, this completes it: check `complete`. */
  async seal(id: string): Promise<Fanout> {
    return fanout(await this.#http.call("POST", `${path(id)}/seal`));
  }

  /** Cancels a fan-out. Throws `ApiError` (409) if it has completed, failed or expired. */
  async cancel(id: string): Promise<Fanout> {
    return fanout(await this.#http.call("DELETE", path(id)));
  }

  /**
   * Calls the failed items of a fan-out that has ended again, as the items of a new fan-out, which is returned. Fanfold adds and seals
   * them. Throws `ApiError` (409) if it has not ended, has no failed items, or was reissued before.
   */
  async reissue(id: string, options: ReissueOptions = {}): Promise<Fanout> {
    const body = {
      missing: options.missing ?? false,
      again: options.again ?? false,
      max_batch: options.maxBatch,
      contents: Object.entries(options.contents ?? {}).map(([item, content]) => ({ id: item, content })),
    };
    const named = key(options.idempotencyKey ?? randomUUID());
    return fanout(await this.#http.call("POST", `${path(id)}/reissue`, body, named));
  }

  /**
   * Resumes the failed partitions of a fan-out's producer where they stopped. Returns all of its partitions, as the API shows them.
   * Throws `ApiError` (409) if it has no producer, or is not open.
   */
  async resumeProducer(id: string): Promise<Json[]> {
    return (await this.#http.call("POST", `${path(id)}/producer/resume`)).partitions as Json[];
  }

  /** Returns a fan-out's present state. `exact` also counts in open groups, which costs a read of each. */
  async get(id: string, options: { readonly exact?: boolean } = {}): Promise<Fanout> {
    return fanout(await this.#http.call("GET", path(id) + (options.exact ? "?progress=exact" : "")));
  }

  /** Waits until a fan-out has ended; `state` is its end. Throws `NotEnded` after `timeout` milliseconds. */
  async wait(id: string, timeout = Number.POSITIVE_INFINITY): Promise<Fanout> {
    const deadline = performance.now() + timeout;
    for (let pause = 250; ; ) {
      const began = performance.now();
      const ask = Math.max(0, Math.min(WAIT_MAX, Math.floor((deadline - began) / 1_000)));
      const answer = fanout(await this.#http.call("GET", path(id) + (ask ? `?wait=${ask}s` : "")));
      const now = performance.now();
      if (answer.ended) return answer;
      if (now >= deadline) throw new NotEnded(answer);
      // If the server answers at once, pause before the next request.
      if (now - began < ask * 500 || !ask) {
        await sleep(Math.min(pause, deadline - now));
        pause = Math.min(pause * 2, 5_000);
      }
    }
  }

  /** Lists the fan-outs that match, page by page. A new fan-out appears within seconds. */
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

  /** Lists all groups of a fan-out, page by page. New groups appear within seconds. */
  async *groups(id: string): AsyncGenerator<ItemGroup, void, undefined> {
    for await (const page of this.#pages(`${path(id)}/groups`)) yield* page.groups as ItemGroup[];
  }

  /** Lists the ids of all items in that state, page by page. */
  async *items(id: string, state: ItemsState): AsyncGenerator<string, void, undefined> {
    for await (const page of this.#pages(`${path(id)}/items?state=${encodeURIComponent(state)}`)) {
      yield* expandRanges(page.items as string[]);
    }
  }

  /**
   * Lists what became of the tasks of a fan-out that succeeded or failed, page by page; with what the batch API returned for them, if
   * their policy keeps results.
   */
  async *results(id: string): AsyncGenerator<TaskResult, void, undefined> {
    for await (const page of this.#pages(`${path(id)}/results`)) yield* (page.results as Json[]).map(taskResult);
  }

  /**
   * Acks items by ids, ranges or masks, in one request. `refused` of the result lists items that do not exist; if none exists, this
   * throws `ApiError` (422). For many items use `AckBuffer`.
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
   * Counts in estimated fan-outs, at most 1,000 entries. Not retried, since a retry could count twice: after `Unreachable`, or `ApiError`
   * with status 500 or above, the count may have been applied. `refused` of the result lists fan-outs in which nothing was counted; if
   * that is so for all, this throws `ApiError` (422).
   */
  async count(counts: Iterable<Count>): Promise<CountAnswer> {
    return countAnswer(await this.#http.call("POST", "/counts", { counts: [...counts] }, {}, { once: true }));
  }

  async *#pages(first: string): AsyncGenerator<Json, void, undefined> {
    for (let next: string | undefined = first; next; ) {
      const page: Json = await this.#http.call("GET", next);
      yield page;
      if (page.next === next) throw new FanfoldError(`${next} returned itself as the next page`);
      next = page.next as string | undefined;
    }
  }
}

/** The key of a further request of `add`. A call is repeated under the same keys, by any of the clients. */
function partKey(named: string, number: number): string {
  const part = `${named}-${number}`;
  return part.length <= KEY_MAX ? part : `part-${createHmac("sha256", named).update(String(number)).digest("hex")}`;
}

function key(text: string): Record<string, string> {
  return { "idempotency-key": text };
}

function path(id: string): string {
  return `/fanouts/${encodeURIComponent(id)}`;
}
