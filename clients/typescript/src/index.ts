/** Client of Fanfold: opens fan-outs, waits for their ends, and acks the items that workers have done. */

export { AckBuffer, type AckBufferOptions } from "./buffer.js";
export {
  Fanfold,
  type FanfoldOptions,
  type ItemsState,
  type ListOptions,
  type OpenOptions,
  type ReissueOptions,
  type ReportedEnd,
} from "./client.js";
export type { AckMessage, MaskEntry, Outcome } from "./compact.js";
export {
  type BatchResponse,
  type Consumer,
  type ConsumerOptions,
  itemInBody,
  Message,
  type PollOptions,
  type SqsEvent,
  type SqsRecord,
  sqsConsumer,
} from "./consumer.js";
export { AcksNotSent, AcksRefused, ApiError, FanfoldError, NotEnded, type Refused, Unreachable } from "./errors.js";
export { expand, expandRanges, GROUP_ITEMS_MAX, type Item, type ItemGroup, parseItem } from "./ids.js";
export type { AckAnswer, AckedFanout, AddedItems, Count, CountAnswer, CountedFanout, Fanout, TaskResult } from "./models.js";
export { type AckSender, HttpAcks, type Sent, SqsAcks, type SqsAcksOptions } from "./senders.js";
