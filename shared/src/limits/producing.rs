//! Producers: what is read from sources.

use std::time::Duration;

use crate::backoff::Backoff;

/// Partitions of one producer: with the fan-out's header their records fit one transaction (DynamoDB: 100 actions), and one
/// read shows all.
pub const PRODUCER_PARTITIONS_MAX: u32 = 64;

/// Bytes of a page's tasks as they are kept, compressed: with its counts the record stays below DynamoDB's 400 KB. As much JSON
/// fits in any case, most JSON takes a fifth of its size.
pub const PAGE_BYTES_MAX: usize = 350 * 1_024;

/// Bytes of a source's answer. Lambda gives no more than 6 MB.
pub const SOURCE_ANSWER_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// Bytes of a cursor as JSON: it is written with every page.
pub const CURSOR_BYTES_MAX: usize = 2_048;

/// How long a source may take. With the time for further pages, and what registering a page takes, this stays below the time-out
/// of the produce function in template.yaml.
pub const SOURCE_TIMEOUT: Duration = Duration::from_secs(45);

/// How long an invocation begins further pages.
pub const PRODUCE_TIME_MAX: Duration = Duration::from_secs(30);

/// Pauses after a source failed.
pub const SOURCE_PAUSES: Backoff = Backoff { base: Duration::from_secs(2), max: Duration::from_secs(300) };

/// The longest pause a source may ask for (`Retry-After`).
pub const SOURCE_RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// Tries of one page in a row before its partition fails: some 20 minutes.
pub const SOURCE_TRIES_MAX: u32 = 12;

/// Bad rows that a partition shows.
pub const BAD_ROWS_SHOWN_MAX: usize = 10;

/// Bytes shown of what is wrong with a row.
pub const BAD_ROW_BYTES_MAX: usize = 256;

/// Rows from which a share of bad rows is judged; fewer are judged when the partition ends.
pub const BAD_PERCENTAGE_FROM: u64 = 1_000;

/// How long what a producer has read is kept from when it was read, for workers that come late.
pub const PAGE_RETENTION: Duration = super::KEY_RETENTION;

/// How long a partition's record is kept from when it last changed, and the page of one that failed: longer than a fan-out may
/// be idle.
pub const PARTITION_RETENTION: Duration = Duration::from_secs(400 * 24 * 3_600);

/// Bytes of a Lambda function's name or ARN (API reference of `Invoke`).
pub const FUNCTION_BYTES_MAX: usize = 170;

/// Bytes of an object's key (S3).
pub const OBJECT_KEY_BYTES_MAX: usize = 1_024;

/// Objects that a source names one by one.
pub const OBJECT_KEYS_MAX: usize = 100;

/// Bytes of all their keys, which are in the fan-out's header. That is read often.
pub const OBJECT_KEYS_BYTES_MAX: usize = 8 * 1_024;

/// Bytes of an object's key that are shown beside a row of it.
pub const OBJECT_BYTES_SHOWN: usize = 80;

/// Bytes of an object that are read at once, and of a row of one: several times what a task's content may have.
pub const OBJECT_PART_BYTES: usize = 512 * 1_024;

/// Bytes of an object's beginning in which its first line, which names the columns of CSV, must end.
pub const OBJECT_HEAD_BYTES: usize = 64 * 1_024;

/// Bytes of the rows of an object in one page, as JSON: they fit a page even if they cannot be compressed.
pub const OBJECT_PAGE_BYTES: usize = PAGE_BYTES_MAX - 4 * 1_024;

/// Bytes of a compressed object, decompressed. Each page decompresses it from the beginning.
pub const DECOMPRESSED_BYTES_MAX: u64 = 1_024 * 1_024 * 1_024;

/// Items that a request to reissue brings corrected contents for.
pub const CORRECTED_MAX: usize = 100;

/// Tasks of a page of a reissue: as many as are read in ten calls.
pub const REISSUE_PAGE_ITEMS: usize = 1_000;

/// Members of a batch that a request to reissue may name: as many as a policy may.
pub const REISSUE_MAX_BATCH: u16 = 10_000;
