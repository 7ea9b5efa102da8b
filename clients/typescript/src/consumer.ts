/** A consumer of an SQS queue, as a Lambda handler or by polling, that acks the items of its messages. */

import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";

import { AckBuffer } from "./buffer.js";
import { AcksNotSent, AcksRefused } from "./errors.js";
import { parseItem } from "./ids.js";
import type { AckSender } from "./senders.js";

/** A record of a Lambda SQS event: the fields that the consumer reads. */
export interface SqsRecord {
  readonly messageId: string;
  readonly body: string;
  readonly attributes: { readonly ApproximateReceiveCount: string };
  readonly eventSourceARN?: string;
}

/** A Lambda SQS event. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[];
}

/** The response to an SQS event: the messages that SQS is to deliver again. */
export interface BatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

/** A message of the queue. */
export class Message {
  constructor(
    readonly id: string,
    readonly body: string,
    /** How often SQS has delivered it, this delivery included (approximately). */
    readonly receives: number,
    /** The record from Lambda or SQS. */
    readonly raw: object,
  ) {}

  /** The body as JSON. */
  json<T = unknown>(): T {
    return JSON.parse(this.body) as T;
  }
}

export interface ConsumerOptions {
  /** Where acks go: `new SqsAcks(…)` or `new HttpAcks(…)`. */
  readonly acks: AckSender;
  /** One less than the queue's `maxReceiveCount`, so that a message whose last ack could not be sent is delivered once more. */
  readonly maxReceives: number;
  /** Returns the item id of a message, or nothing if it has none; by default, the field `item` of a JSON body. */
  readonly itemOf?: (message: Message) => string | undefined;
  /** How many messages are handled at once; by default 1. Those of a FIFO queue are handled one after the other. */
  readonly concurrency?: number;
  /** Is called with every error; by default `console.error`. */
  readonly log?: (text: string, error: unknown) => void;
}

export interface PollOptions {
  readonly client?: Pick<SQSClient, "send">;
  /** Ends the polling when the messages in hand are handled. */
  readonly signal?: AbortSignal;
}

/** A Lambda handler for an SQS event source (with `ReportBatchItemFailures`), made by `sqsConsumer`. */
export interface Consumer {
  (event: SqsEvent): Promise<BatchResponse>;
  /** Receives, handles and deletes messages until the signal. SQS delivers failed messages again when their visibility timeout is over. */
  poll(queueUrl: string, options?: PollOptions): Promise<void>;
}

/** Returns the item id in the field `item` of a JSON object. */
export function itemInBody(message: Message): string | undefined {
  const item = message.json<{ item?: unknown } | null>()?.item ?? undefined;
  if (item !== undefined && typeof item !== "string") throw new TypeError(`item: \`${item}\`: an item id is expected`);
  return item;
}

/**
 * Turns a function that handles one message into a consumer of an SQS queue that acks the message's item.
 *
 * If the function returns, the consumer acks the item as succeeded. If it throws, SQS delivers the message again; at delivery
 * `maxReceives` or later, the consumer also acks the item as failed. It sends acks before it returns. If an ack cannot be sent, SQS
 * delivers its message again.
 */
export function sqsConsumer(options: ConsumerOptions, handle: (message: Message) => unknown): Consumer {
  const { concurrency = 1, maxReceives } = options;
  if (!(maxReceives >= 1)) throw new RangeError(`maxReceives: ${maxReceives}: at least 1 is expected`);
  if (!(concurrency >= 1)) throw new RangeError(`concurrency: ${concurrency}: at least 1 is expected`);
  const consumer = async (event: SqsEvent): Promise<BatchResponse> => {
    const received = event.Records.map(
      (one) => new Message(one.messageId, one.body, Number(one.attributes.ApproximateReceiveCount), one),
    );
    const inOrder = event.Records.some((one) => one.eventSourceARN?.endsWith(".fifo"));
    const failed = await run(received, inOrder, options, handle);
    return { batchItemFailures: failed.map((one) => ({ itemIdentifier: one.id })) };
  };
  const poll = (queueUrl: string, more: PollOptions = {}) => pollQueue(queueUrl, more, options, handle);
  return Object.assign(consumer, { poll });
}

/** Handles messages, then sends their acks. Returns those that SQS is to deliver again. */
async function run(
  messages: readonly Message[],
  inOrder: boolean,
  options: ConsumerOptions,
  handle: (message: Message) => unknown,
): Promise<Message[]> {
  const { itemOf = itemInBody, log = console.error } = options;
  const buffer = new AckBuffer(options.acks, { maxAge: null });
  const failed = new Set<Message>();
  const items = new Map<Message, string>();
  const collected = (adding: Promise<void>) =>
    // A full buffer is sent at once. What could not be sent stays in it, and is sent again at the end.
    adding.catch((error) => log("acks could not be sent yet", error));
  const one = async (message: Message) => {
    if (inOrder && failed.size) return failed.add(message);
    let item: string | undefined;
    try {
      item = itemOf(message) ?? undefined;
      if (item !== undefined) {
        parseItem(item);
        items.set(message, item);
      }
      await handle(message);
    } catch (error) {
      log(`message ${message.id} failed (delivery ${message.receives})`, error);
      failed.add(message);
      item = items.get(message);
      if (item !== undefined && message.receives >= options.maxReceives) await collected(buffer.failed(item));
      return;
    }
    if (item !== undefined) await collected(buffer.succeeded(item));
  };
  const waiting = messages.values();
  const worker = async () => {
    for (const message of waiting) await one(message);
  };
  await Promise.all(Array.from({ length: inOrder ? 1 : (options.concurrency ?? 1) }, worker));
  try {
    await buffer.flush();
  } catch (error) {
    if (error instanceof AcksRefused) {
      log("acks of items that do not exist", error);
    } else {
      log("acks could not be sent, SQS will deliver their messages again", error);
      if (error instanceof AcksNotSent && error.refused.length) {
        log("acks of items that do not exist", new AcksRefused(error.refused));
      }
      for (const [message, item] of items) if (buffer.has(item)) failed.add(message);
    }
  }
  return messages.filter((message) => failed.has(message));
}

async function pollQueue(
  queueUrl: string,
  { client = new SQSClient({}), signal }: PollOptions,
  options: ConsumerOptions,
  handle: (message: Message) => unknown,
): Promise<void> {
  const receive = new ReceiveMessageCommand({
    QueueUrl: queueUrl,
    MaxNumberOfMessages: 10,
    WaitTimeSeconds: 20,
    MessageSystemAttributeNames: ["ApproximateReceiveCount"],
  });
  while (!signal?.aborted) {
    const answer = await client.send(receive, signal ? { abortSignal: signal } : {}).catch((error: unknown) => {
      if (signal?.aborted) return undefined;
      throw error;
    });
    const received = (answer?.Messages ?? []).map(
      (one) => new Message(one.MessageId!, one.Body!, Number(one.Attributes?.ApproximateReceiveCount), one),
    );
    const failed = new Set(await run(received, queueUrl.endsWith(".fifo"), options, handle));
    const entries = received
      .map((one, at) => ({ one, Id: String(at), ReceiptHandle: (one.raw as { ReceiptHandle: string }).ReceiptHandle }))
      .filter(({ one }) => !failed.has(one))
      .map(({ Id, ReceiptHandle }) => ({ Id, ReceiptHandle }));
    if (!entries.length) continue;
    const deleted = await client.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }));
    for (const one of deleted.Failed ?? []) {
      (options.log ?? console.error)("a message was handled but not deleted, SQS will deliver it again", one);
    }
  }
}
