//! A page of a partition: its counts, and where the next one begins; and as it is kept, with its tasks, compressed.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::Value;

use crate::aws::attributes::{Reader, binary, count, expiry, item, json, number, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::limits::{CURSOR_BYTES_MAX, PAGE_BYTES_MAX, SOURCE_ANSWER_BYTES_MAX, TASKS_PER_REQUEST_MAX};
use crate::messages::TaskRequest;
use crate::producing::{BadRow, Sifted};

/// What a partition notes of a page that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Rows of the page as the source answered it.
    pub rows: u64,
    /// Those of other shares.
    pub dropped: u64,
    /// Those that are no tasks.
    pub bad: u64,
    /// What is wrong with the first of these.
    pub bad_rows: Vec<BadRow>,
    /// Where the next page begins, as JSON; none: it is the last.
    pub next: Option<String>,
}

/// A page as it is kept, with the rows of one partition that are to be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptPage {
    /// Its counts.
    pub page: Page,
    /// Its tasks, without ids.
    pub tasks: Vec<TaskRequest>,
    compressed: Vec<u8>,
}

/// The answer of a source is larger than a page may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Too many rows.
    #[error("the page has {0} tasks of this partition, at most {TASKS_PER_REQUEST_MAX} are allowed")]
    TooMany(usize),
    /// Too many bytes.
    #[error(
        "the page's tasks of this partition take {0} bytes compressed, at most {PAGE_BYTES_MAX} are allowed; fewer rows per page fit"
    )]
    TooLarge(usize),
    /// The cursor is too large.
    #[error("`cursor` has {0} bytes as JSON, at most {CURSOR_BYTES_MAX} are allowed")]
    Cursor(usize),
}

/// Compresses tasks: kind and content of each.
pub(crate) fn compress(tasks: &[TaskRequest]) -> Vec<u8> {
    let rows: Vec<(&str, &Value)> = tasks.iter().map(|task| (task.kind.as_str(), &task.content)).collect();
    deflate(&serde_json::to_vec(&rows).unwrap_or_default())
}

/// Compresses bytes.
pub(super) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Decompresses bytes.
pub(super) fn inflate(compressed: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    // The limit is larger than that of an answer, since JSON may be written longer than it was read.
    let most = 8 * SOURCE_ANSWER_BYTES_MAX as u64;
    DeflateDecoder::new(compressed).take(most).read_to_end(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Decompresses the tasks of a stored page.
///
/// # Errors
/// They were compressed otherwise.
pub fn decompress(compressed: &[u8]) -> Result<Vec<TaskRequest>, String> {
    let text = inflate(compressed)?;
    let rows: Vec<(String, Value)> = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    Ok(rows.into_iter().map(|(kind, content)| TaskRequest { id: None, kind, content }).collect())
}

impl Page {
    /// A page of which every row is a task, and where the next one begins.
    ///
    /// # Errors
    /// The cursor is too large.
    pub fn whole(rows: u64, next: Option<&Value>) -> Result<Self, PageError> {
        Ok(Self { rows, next: cursor(next)?, ..Self::default() })
    }
}

/// A cursor as it is stored.
fn cursor(next: Option<&Value>) -> Result<Option<String>, PageError> {
    let next = next.map(Value::to_string);
    match next.as_ref().map(String::len).filter(|bytes| *bytes > CURSOR_BYTES_MAX) {
        Some(bytes) => Err(PageError::Cursor(bytes)),
        None => Ok(next),
    }
}

impl KeptPage {
    /// A page from sifted rows, and where the next one begins.
    ///
    /// # Errors
    /// It is more than a page may be.
    pub fn new(sifted: Sifted, next: Option<&Value>) -> Result<Self, PageError> {
        let Sifted { tasks, rows, dropped, bad, bad_rows } = sifted;
        let next = cursor(next)?;
        if tasks.len() > TASKS_PER_REQUEST_MAX {
            return Err(PageError::TooMany(tasks.len()));
        }
        let compressed = compress(&tasks);
        if compressed.len() > PAGE_BYTES_MAX {
            return Err(PageError::TooLarge(compressed.len()));
        }
        Ok(Self { page: Page { rows, dropped, bad, bad_rows, next }, tasks, compressed })
    }

    pub(super) fn encode(&self, key: &str, expires: Timestamp) -> Item {
        let Page { rows, dropped, bad, bad_rows, next } = &self.page;
        item([
            ("id", Some(text(key))),
            ("tasks", Some(binary(&self.compressed))),
            ("rows", Some(number(*rows))),
            ("dropped", count(*dropped)),
            ("bad", count(*bad)),
            ("bad_rows", (!bad_rows.is_empty()).then(|| json(bad_rows))),
            ("next", next.as_ref().map(text)),
            ("ttl", Some(expiry(expires))),
        ])
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("producers", "id", item);
        let compressed = reader.bytes("tasks")?.to_vec();
        let page = Page {
            rows: reader.number("rows")?,
            dropped: reader.number("dropped")?,
            bad: reader.number("bad")?,
            bad_rows: reader.optional_json("bad_rows")?.unwrap_or_default(),
            next: reader.optional_text("next")?.map(str::to_owned),
        };
        let tasks = decompress(&compressed).map_err(|error| reader.corrupt("tasks", error))?;
        Ok(Self { page, tasks, compressed })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn task(content: Value) -> TaskRequest {
        TaskRequest { id: None, kind: "mail".to_owned(), content }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            contents in prop::collection::vec((".{0,9}", any::<i64>(), any::<f64>()), 0..9),
            [rows, dropped, bad] in prop::array::uniform3(any::<u64>()),
            next in prop::option::of(".{0,9}"),
        ) {
            let tasks = contents.into_iter().map(|(text, number, part)| task(json!([text, number, part]))).collect();
            let bad_rows = vec![BadRow { row: rows, problem: "is wrong".to_owned() }];
            let next = next.map(Value::String);
            let page = KeptPage::new(Sifted { tasks, rows, dropped, bad, bad_rows }, next.as_ref()).unwrap();
            prop_assert_eq!(KeptPage::decode(&page.encode("x/0/0", Timestamp(1))).unwrap(), page);
        }
    }

    #[test]
    fn what_is_too_much_is_refused_and_as_many_bytes_as_allowed_always_fit() {
        let sifted = |tasks| Sifted { tasks, ..Sifted::default() };
        let many = vec![task(json!({"city": "Bonn"})); TASKS_PER_REQUEST_MAX];
        assert!(KeptPage::new(sifted(many.clone()), None).is_ok());
        let more = many.into_iter().chain([task(json!(1))]).collect();
        assert_eq!(KeptPage::new(sifted(more), None), Err(PageError::TooMany(TASKS_PER_REQUEST_MAX + 1)));
        let mut random = fastrand::Rng::with_seed(7);
        let mut noise = |bytes: usize| (0..bytes).map(|_| random.alphanumeric()).collect::<String>();
        assert!(KeptPage::new(sifted(vec![task(json!(noise(PAGE_BYTES_MAX - 100)))]), None).is_ok());
        let large = KeptPage::new(sifted(vec![task(json!(noise(2 * PAGE_BYTES_MAX)))]), None);
        assert!(matches!(large, Err(PageError::TooLarge(_))));
        let cursor = |bytes: usize| KeptPage::new(Sifted::default(), Some(&json!("x".repeat(bytes - 2))));
        assert!(cursor(CURSOR_BYTES_MAX).is_ok());
        assert_eq!(cursor(CURSOR_BYTES_MAX + 1), Err(PageError::Cursor(CURSOR_BYTES_MAX + 1)));
    }
}
