/** Senders of acks: over the ack queue, or over HTTP. */

import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";

import type { Fanfold } from "./client.js";
import type { AckMessage } from "./compact.js";
import { ApiError, FanfoldError, type Refused } from "./errors.js";
import { pause } from "./http.js";
import type { AckedFanout } from "./models.js";

/** The most bytes of a message and of a batch call: SQS's older limit (256 KiB), less some for the envelope. */
const MESSAGE_BYTES_MAX = 256 * 1_024 - 4_096;

const MESSAGES_PER_CALL_MAX = 10;

/** The result of sending messages. */
export interface Sent {
  /** Positions of messages that could not be sent, with the errors. */
  readonly unsent: ReadonlyMap<number, unknown>;
  /** Acks that were sent but refused. */
  readonly refused: readonly Refused[];
  /** Over HTTP: the fan-outs with their new states, by id. */
  readonly fanouts: ReadonlyMap<string, AckedFanout>;
}

/** Sends messages of acks. Every message that it does not report as unsent has arrived. */
export interface AckSender {
  /** The most bytes of a message. */
  readonly limit: number;
  /** Sends messages. Reports those that it cannot send, and does not throw. */
  send(messages: readonly AckMessage[]): Promise<Sent>;
}

export interface SqsAcksOptions {
  readonly client?: Pick<SQSClient, "send">;
  /** How often a message that SQS does not accept is sent in all; by default 5. */
  readonly attempts?: number;
}

/** Sends acks to the stack's ack queue (output `AckQueueUrl`). Needs the permission `sqs:SendMessage`. */
export class SqsAcks implements AckSender {
  readonly limit = MESSAGE_BYTES_MAX;
  readonly #client: Pick<SQSClient, "send">;
  readonly #attempts: number;

  constructor(
    readonly queueUrl: string,
    options: SqsAcksOptions = {},
  ) {
    this.#client = options.client ?? new SQSClient({});
    this.#attempts = options.attempts ?? 5;
  }

  async send(messages: readonly AckMessage[]): Promise<Sent> {
    const unsent = new Map<number, unknown>();
    for (const call of calls(messages)) await this.#send(call, messages, unsent);
    return { unsent, refused: [], fanouts: new Map() };
  }

  /** Sends one batch call. SQS may accept some of its messages: the others are sent again, unless SQS reports a sender's fault. */
  async #send(call: number[], messages: readonly AckMessage[], unsent: Map<number, unknown>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const entries = call.map((at) => ({ Id: String(at), MessageBody: messages[at]!.body() }));
      let answer: Awaited<ReturnType<typeof this.batch>>;
      try {
        answer = await this.batch(entries);
      } catch (error) {
        // The SDK has retried what can be retried.
        for (const at of call) unsent.set(at, error);
        return;
      }
      const taken = new Set(answer.Successful?.map((one) => one.Id));
      const failed = new Map(answer.Failed?.map((one) => [one.Id, one]));
      const again: number[] = [];
      for (const at of call.filter((at) => !taken.has(String(at)))) {
        const why = failed.get(String(at));
        if (why?.SenderFault || attempt >= this.#attempts) {
          unsent.set(at, new FanfoldError(`SQS refused a message: ${why?.Code ?? "NoAnswer"}: ${why?.Message ?? ""}`));
        } else {
          again.push(at);
        }
      }
      if (!again.length) return;
      call = again;
      await pause(attempt);
    }
  }

  private async batch(entries: { Id: string; MessageBody: string }[]) {
    return this.#client.send(new SendMessageBatchCommand({ QueueUrl: this.queueUrl, Entries: entries }));
  }
}

/** Sends acks to `POST /acks`. Unlike the queue, it returns which fan-outs are complete, and which items do not exist. */
export class HttpAcks implements AckSender {
  readonly limit = MESSAGE_BYTES_MAX;

  constructor(readonly client: Fanfold) {}

  async send(messages: readonly AckMessage[]): Promise<Sent> {
    const unsent = new Map<number, unknown>();
    const fanouts = new Map<string, AckedFanout>();
    const refused: Refused[] = [];
    for (const [at, message] of messages.entries()) {
      try {
        const answer = await this.client.ack(message.fields);
        refused.push(...answer.refused);
        for (const fanout of answer.fanouts) fanouts.set(fanout.id, fanout);
      } catch (error) {
        if (error instanceof ApiError && error.code === "invalid_acks") {
          // None of them exists.
          for (const { group, indexes } of message.acks) {
            refused.push({ group, items: indexes.map(String), problem: error.message });
          }
        } else {
          unsent.set(at, error);
        }
      }
    }
    return { unsent, refused, fanouts };
  }
}

/** Groups positions of messages into batch calls. */
function calls(messages: readonly AckMessage[]): number[][] {
  const made: number[][] = [];
  let size = 0;
  for (const [at, message] of messages.entries()) {
    const call = made.at(-1);
    if (!call || call.length === MESSAGES_PER_CALL_MAX || size + message.bytes > MESSAGE_BYTES_MAX) {
      made.push([at]);
      size = message.bytes;
    } else {
      call.push(at);
      size += message.bytes;
    }
  }
  return made;
}
