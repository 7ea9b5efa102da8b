//! What DynamoDB, SQS and Lambda allow, and how they are asked.

use std::time::Duration;

use crate::backoff::Backoff;

/// DynamoDB: keys in one BatchGetItem.
pub const KEYS_PER_READ_MAX: usize = 100;

/// DynamoDB: statements in one BatchExecuteStatement.
pub const STATEMENTS_PER_CALL_MAX: usize = 25;

/// Items asked for in one page of an index; DynamoDB ends it at 1 MB in any case.
pub const ITEMS_PER_PAGE_MAX: usize = 1_000;

/// Partition keys over which a sparse index of lanes or fan-outs spreads its entries. DynamoDB takes 1,000 write units per second
/// for one key; 100,000 lanes or fan-outs that begin and end in a second write 200,000, and hashes share them unevenly. The sweep scans
/// the index, and pays for its entries, however many keys they have.
pub const INDEX_SHARDS: u64 = 1_024;

/// DynamoDB: at most 100 actions in a transaction; one is the fan-out's header.
pub const GROUPS_PER_TRANSACTION_MAX: usize = 99;

/// SQS: entries in one batch call.
pub const MESSAGES_PER_CALL_MAX: usize = 10;

/// Bytes of one message and of one batch call. SQS takes 1 MiB since 2025; the embedded engine and many consumers 256 KiB.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1_024 - 4_096;

/// SQS: characters of a queue's name.
pub const QUEUE_NAME_MAX: usize = 80;

/// SQS: the longest DelaySeconds.
pub const DELAY_MAX: Duration = Duration::from_secs(900);

/// SQS: delays are whole seconds. What waits for less waits in its invocation.
pub const DELAY_MIN: Duration = Duration::from_secs(1);

/// Lambda: a synchronous invocation takes and gives at most 6 MB.
pub const BODY_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// Calls of SendMessageBatch that one worker has under way at once, so that none waits for the connections of all.
pub const SENDS_AT_ONCE_MAX: usize = 8;

/// Calls of BatchExecuteStatement that one worker has under way at once.
pub const STATEMENT_CALLS_AT_ONCE_MAX: usize = 4;

/// Tries of a compare-and-set before the message is left to redelivery.
pub const CONTENTION_TRIES_MAX: u32 = 16;

/// Pauses before DynamoDB is asked again for what it throttled, left out of a batch call, or gave up for another transaction,
/// which the SDK does not repeat by itself. DynamoDB recommends exponential pauses. Short at first, for a conflict is over in
/// milliseconds; throttling may last.
pub const STORE_PAUSES: Backoff = Backoff { base: Duration::from_millis(20), max: Duration::from_secs(2) };

/// How long those pauses may be in all. The API's function has 30 s (template.yaml) for its pauses and everything else; what
/// takes longer is better reported to the caller.
pub const STORE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Values of one metric in one line of CloudWatch's embedded metric format.
pub const METRIC_VALUES_MAX: usize = 100;
