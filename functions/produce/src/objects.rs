//! Pages of objects: rows of CSV or NDJSON, from where the cursor says. One plain object is read by all partitions, each in its own
//! part of it; compressed objects, and several objects, are read as a whole by one partition each: those that are named one by one
//! are dealt out in turn, others by their names' shares.
//!
//! Pages are not kept, so the same question must have the same rows. A page that begins with an object has none: its cursor
//! names the version that it found, in which the next page begins. How a version is cut into pages must not change, either,
//! while one may be under way: by the limits, which are the constants used here.

mod cursor;
mod store;

use fanfold::limits::{
    DECOMPRESSED_BYTES_MAX, OBJECT_HEAD_BYTES, OBJECT_PAGE_BYTES, OBJECT_PART_BYTES, TASKS_PER_REQUEST_MAX,
};
use fanfold::producing::{Format, Given, Objects, Position};
use fanfold::share::share;
use fanfold_rows::csv::{Columns, EMPTY};
use fanfold_rows::{Form, Limits, Part, Taken, split};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::io::Read;
use std::sync::Arc;

use self::cursor::{Cursor, Within};
pub use self::store::{Bytes, Head, Names, Store};
use crate::{SourceAnswer, SourceError, SourceRequest};

/// Answers one question.
#[derive(Debug)]
pub struct Pages<'a, S> {
    /// What has the objects.
    pub store: &'a S,
    /// Which of them are read, and how.
    pub objects: &'a Objects,
    /// The question.
    pub ask: &'a SourceRequest,
}

impl<S: Store> Pages<'_, S> {
    /// The page that was asked for.
    ///
    /// # Errors
    /// An object cannot be read, was changed meanwhile, or cannot be split into rows.
    pub async fn page(&self) -> Result<SourceAnswer, SourceError> {
        let cursor: Option<Cursor> = serde_json::from_value(self.ask.cursor.clone()).map_err(SourceError::for_good)?;
        let (after, within) = match cursor {
            None => (None, None),
            Some(Cursor::Behind { after }) => (Some(after), None),
            Some(Cursor::Within(within)) => (None, Some(within)),
        };
        if let Some(key) = self.objects.single() {
            return self.of_object(key, within.as_ref()).await;
        }
        if let Some(key) = within.as_ref().and_then(|within| within.key.as_ref()) {
            return self.of_object(key, within.as_ref()).await;
        }
        if let Some(keys) = self.objects.keys_in_order() {
            return match self.next_of(&keys, after.as_deref()) {
                Some(name) => self.of_object(name, None).await,
                None => Ok(SourceAnswer::default()),
            };
        }
        let prefix = self.objects.prefix.as_deref().unwrap_or_default();
        let Names { names, more } = self.store.names(prefix, after.as_deref()).await?;
        match names.iter().find(|name| self.is_mine(name)) {
            Some(name) => self.of_object(name, None).await,
            None => Ok(SourceAnswer {
                cursor: names.last().filter(|_| more).map(|last| Cursor::behind(last)),
                ..SourceAnswer::default()
            }),
        }
    }

    /// The next of the names that are this partition's: they are dealt out in turn.
    fn next_of<'b>(&self, names: &[&'b str], after: Option<&str>) -> Option<&'b str> {
        let (partition, of) = (self.ask.partition as usize, self.ask.of.max(1) as usize);
        let mut mine = names.iter().copied().skip(partition).step_by(of);
        mine.find(|name| after.is_none_or(|after| *name > after))
    }

    /// Whether an object that one partition reads is this one's.
    fn is_mine(&self, name: &str) -> bool {
        share(name, self.ask.of) == self.ask.partition
    }

    /// Whether the object is the only one.
    fn is_single(&self) -> bool {
        self.objects.single().is_some()
    }

    async fn of_object(&self, name: &str, within: Option<&Within>) -> Result<SourceAnswer, SourceError> {
        let named = is_compressed(name);
        if self.is_single() && named && !self.is_mine(name) {
            return Ok(SourceAnswer::default());
        }
        let head = self.store.head(name, within.map(|within| within.etag.as_str())).await;
        let head = head.map_err(|error| self.naming(name, error))?;
        if within.is_some_and(|within| within.etag != head.version) {
            return Err(SourceError::for_good(format!("{}: was changed while it was read", self.shown(name))));
        }
        let compressed = named || head.compressed;
        if self.is_single() && compressed && !self.is_mine(name) {
            return Ok(SourceAnswer::default());
        }
        let wrong = |problem: String| SourceError::for_good(format!("{}: {problem}", self.shown(name)));
        let (form, begin) = self.form(&head, compressed).map_err(wrong)?;
        let taken = match (form, within) {
            (None, _) => Taken::default(),
            (Some(_), None) => Taken { next: self.first(&head, compressed, begin), ..Taken::default() },
            (Some(form), Some(within)) => self.rows(Object { name, head: &head, compressed }, &form, within).await?,
        };
        Ok(self.answer(name, &head, taken))
    }

    /// Which bytes of an object are this partition's: rows that begin there. The last are behind those, and whether others read other
    /// parts.
    fn part_of(&self, head: &Head, compressed: bool) -> (u64, u64, bool) {
        let divided = self.is_single() && !compressed && self.ask.of > 1;
        match (divided, compressed) {
            (true, _) => {
                let (start, end) = split(head.size, self.ask.partition, self.ask.of);
                (start, end, true)
            }
            (false, true) => (0, u64::MAX, false),
            (false, false) => (0, head.size, false),
        }
    }

    /// Where this partition begins to read an object, and the number of the line, if it is known. None: nothing there is its own.
    fn first(&self, head: &Head, compressed: bool, begin: Begin) -> Option<(u64, Option<u64>)> {
        let (start, end, _) = self.part_of(head, compressed);
        let (at, line) = match start <= begin.at {
            true => (begin.at, Some(begin.lines + 1)),
            // The byte before shows whether a row begins there.
            false => (start - 1, None),
        };
        (start < end && at < end).then_some((at, line))
    }

    /// How the rows are written, and where the first one begins, behind so many lines. None: there is none.
    fn form(&self, head: &Head, compressed: bool) -> Result<(Option<Form>, Begin), String> {
        let csv = self.objects.format() == Some(Format::Csv);
        match (head.size, csv) {
            (0, true) if self.is_single() => Err(EMPTY.to_owned()),
            (0, _) => Ok((None, Begin::default())),
            (_, false) => Ok((Some(Form::Ndjson), Begin::default())),
            (_, true) => {
                let (text, whole) =
                    if compressed { decompressed(head)? } else { (head.first.clone(), head.is_whole()) };
                let (columns, bytes) = Columns::read(&text, whole)?;
                let lines = text[..bytes].iter().filter(|byte| **byte == b'\n').count() as u64;
                Ok((Some(Form::Csv(columns)), Begin { at: bytes as u64, lines }))
            }
        }
    }

    async fn rows(&self, object: Object<'_>, form: &Form, within: &Within) -> Result<Taken, SourceError> {
        let Object { name, head, compressed } = object;
        let (start, end, divided) = self.part_of(head, compressed);
        let (at, line) = (within.at, within.line);
        let Bytes { bytes, last } = self.part(object, at).await?;
        let part = Part { bytes: &bytes, at, line, within: at < start, last, end, divided };
        let beside = self.objects.kind.as_ref().map_or(0, String::len) + 8;
        let limits = Limits { rows: TASKS_PER_REQUEST_MAX, bytes: OBJECT_PAGE_BYTES, beside };
        part.take(form, limits).map_err(|error| SourceError::for_good(format!("{}: {error}", self.shown(name))))
    }

    /// Bytes of an object, from byte `at` on.
    async fn part(&self, Object { name, head, compressed }: Object<'_>, at: u64) -> Result<Bytes, SourceError> {
        if compressed {
            if at > DECOMPRESSED_BYTES_MAX {
                let name = self.shown(name);
                let problem = "compressed objects of at most 1 GiB are read; split it, or store it uncompressed";
                return Err(SourceError::for_good(format!(
                    "{name}: has more than {DECOMPRESSED_BYTES_MAX} bytes: {problem}"
                )));
            }
            let bytes = self.store.decompressed(name, &head.version, at, OBJECT_PART_BYTES).await;
            return bytes.map_err(|error| self.naming(name, error));
        }
        let len = (OBJECT_PART_BYTES as u64).min(head.size.saturating_sub(at));
        let (from, to) = (usize::try_from(at).unwrap_or(usize::MAX), usize::try_from(at + len).unwrap_or(usize::MAX));
        let bytes = match head.first.get(from..to) {
            Some(bytes) => bytes.to_vec(),
            None => {
                let bytes = self.store.bytes(name, &head.version, at, len).await;
                bytes.map_err(|error| self.naming(name, error))?
            }
        };
        Ok(Bytes { bytes, last: at + len >= head.size })
    }

    /// What was taken, as the answer of a source.
    fn answer(&self, name: &str, head: &Head, taken: Taken) -> SourceAnswer {
        let object: Option<Arc<str>> = (!self.is_single()).then(|| name.into());
        let kind: Option<Arc<str>> = self.objects.kind.as_deref().map(Arc::from);
        let given = |(position, row): (Position, Result<Value, String>)| Given {
            kind: kind.clone(),
            row,
            at: Some(Position { object: object.clone(), ..position }),
        };
        let cursor = match taken.next {
            Some((at, line)) => {
                let key = (!self.is_single()).then(|| name.to_owned());
                Some(Cursor::Within(Within { key, etag: head.version.clone(), at, line }).value())
            }
            None if self.is_single() => None,
            None => Some(Cursor::behind(name)),
        };
        SourceAnswer { rows: taken.rows.into_iter().map(given).collect(), cursor }
    }

    /// An error of the store, with the object's name where there are several.
    fn naming(&self, name: &str, error: SourceError) -> SourceError {
        if self.is_single() {
            return error;
        }
        SourceError { message: format!("{}: {}", self.shown(name), error.message), ..error }
    }

    /// The name of an object in errors.
    fn shown(&self, name: &str) -> String {
        fanfold::text::shorten(name, fanfold::limits::OBJECT_BYTES_SHOWN).into_owned()
    }
}

/// An object that is read.
#[derive(Clone, Copy, Debug)]
struct Object<'a> {
    name: &'a str,
    head: &'a Head,
    compressed: bool,
}

/// Where the first row begins.
#[derive(Clone, Copy, Debug, Default)]
struct Begin {
    at: u64,
    /// Lines before it.
    lines: u64,
}

/// Whether an object is compressed by its name.
fn is_compressed(name: &str) -> bool {
    name.len() > 3 && name.as_bytes()[name.len() - 3..].eq_ignore_ascii_case(b".gz")
}

/// The beginning of a compressed object, decompressed, and whether it is all of it.
fn decompressed(head: &Head) -> Result<(Vec<u8>, bool), String> {
    let mut text = Vec::new();
    let most = OBJECT_HEAD_BYTES as u64;
    match MultiGzDecoder::new(head.first.as_slice()).take(most).read_to_end(&mut text) {
        Ok(bytes) => Ok((text, head.is_whole() && (bytes as u64) < most)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && !head.is_whole() => Ok((text, false)),
        Err(error) => Err(format!("is not gzip: {error}")),
    }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
