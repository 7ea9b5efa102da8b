/** Packs acks into full messages. */

import { estimate, messages, type Outcome } from "./compact.js";
import { AcksNotSent, AcksRefused, type Refused } from "./errors.js";
import { parseItem } from "./ids.js";
import type { AckedFanout } from "./models.js";
import type { AckSender, Sent } from "./senders.js";

export interface AckBufferOptions {
  /** The age of the oldest ack, in milliseconds, at which the buffer sends; by default 5,000. `null`: never by age. */
  readonly maxAge?: number | null;
}

/**
 * Collects acks, and sends them when a message is full, when the oldest ack is `maxAge` old, and on `flush` and `close`. Call `close` at
 * the end, or declare the buffer with `await using`. The process does not end by itself while the buffer holds acks.
 *
 * No ack is dropped: if acks cannot be sent, the buffer keeps them and throws `AcksNotSent`. After a failure in the background, the next
 * call throws it.
 */
export class AckBuffer implements AsyncDisposable {
  readonly #sender: AckSender;
  readonly #maxAge: number | null;
  readonly #acks = new Map<string, Map<number, Outcome>>();
  readonly #counts = new Map<string, number>();
  #size = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<unknown> = Promise.resolve();
  #causes: unknown[] = [];
  #refused: Refused[] = [];

  constructor(sender: AckSender, options: AckBufferOptions = {}) {
    this.#sender = sender;
    this.#maxAge = options.maxAge === undefined ? 5_000 : options.maxAge;
  }

  /** Acks an item as succeeded. If an item is acked more than once, the first ack counts. The ack is kept even if this throws. */
  async succeeded(item: string): Promise<void> {
    await this.#add(item, "items");
  }

  /** Acks an item as failed. */
  async failed(item: string): Promise<void> {
    await this.#add(item, "failed");
  }

  /** Whether the buffer holds an ack of this item. */
  has(item: string): boolean {
    const { group, index } = parseItem(item);
    return this.#acks.get(group)?.has(index) ?? false;
  }

  /** How many acks the buffer holds. */
  get size(): number {
    return this.#size;
  }

  /** Sends all acks. Over HTTP, returns the fan-outs with their new states, by id. Throws `AcksNotSent`, `AcksRefused`. */
  async flush(): Promise<ReadonlyMap<string, AckedFanout>> {
    const sent = await this.#send();
    this.#throw();
    return sent.fanouts;
  }

  /** Sends all acks, and ends the timer. If acks cannot be sent, keeps them and throws `AcksNotSent`. */
  async close(): Promise<void> {
    try {
      await this.flush();
    } finally {
      this.#stopTimer();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #add(item: string, outcome: Outcome): Promise<void> {
    const { group, index } = parseItem(item);
    let acks = this.#acks.get(group);
    if (!acks) this.#acks.set(group, (acks = new Map()));
    if (!acks.has(index)) {
      acks.set(index, outcome);
      this.#count(group, outcome, 1);
    }
    this.#startTimer();
    this.#throw();
    if (this.#bytes >= this.#sender.limit) await this.flush();
  }

  /** Sends all acks, after any send that is in progress, and keeps the errors for `#throw`. */
  #send(): Promise<Sent> {
    const send = async () => {
      this.#stopTimer();
      const made = messages(this.#acks, this.#sender.limit);
      let sent: Sent;
      try {
        sent = await this.#sender.send(made);
      } catch (error) {
        // A sender should not throw, but may. Any of the messages may not have arrived.
        sent = { unsent: new Map(made.map((_, at) => [at, error])), refused: [], fanouts: new Map() };
      }
      for (const [at, message] of made.entries()) {
        if (sent.unsent.has(at)) continue;
        for (const { group, outcome, indexes } of message.acks) this.#remove(group, outcome, indexes);
      }
      this.#causes = [...sent.unsent.values()];
      this.#refused.push(...sent.refused);
      if (this.#size) this.#startTimer();
      return sent;
    };
    const sending = this.#sending.then(send);
    this.#sending = sending.catch(() => {});
    return sending;
  }

  /** Throws the errors that were kept, once. */
  #throw(): void {
    const [causes, refused] = [this.#causes, this.#refused];
    [this.#causes, this.#refused] = [[], []];
    if (causes.length) throw new AcksNotSent(this.#size, causes, refused);
    if (refused.length) throw new AcksRefused(refused);
  }

  #remove(group: string, outcome: Outcome, indexes: readonly number[]): void {
    const acks = this.#acks.get(group)!;
    for (const index of indexes) acks.delete(index);
    if (!acks.size) this.#acks.delete(group);
    this.#count(group, outcome, -indexes.length);
  }

  #count(group: string, outcome: Outcome, change: number): void {
    const key = `${outcome} ${group}`;
    const before = this.#counts.get(key) ?? 0;
    if (before + change) this.#counts.set(key, before + change);
    else this.#counts.delete(key);
    this.#size += change;
    this.#bytes += estimate(before + change) - estimate(before);
  }

  #startTimer(): void {
    if (this.#timer === undefined && this.#maxAge !== null) {
      // `#send` keeps errors.
      this.#timer = setTimeout(() => void this.#send(), this.#maxAge);
    }
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
