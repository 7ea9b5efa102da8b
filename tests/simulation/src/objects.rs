//! Objects of S3, as far as a source reads them: rows as NDJSON, which is cut into parts and pages as `produce` does it.

use std::sync::Arc;

use fanfold::producing::Objects;
use fanfold_produce::{Bytes, Head, Names, Pages, SourceAnswer, SourceError, SourceRequest, Store};
use futures::FutureExt;
use serde_json::Value;

use crate::dice::Dice;

/// An object.
struct Object<'a>(&'a str);

impl Store for Object<'_> {
    async fn head(&self, _: &str, _: Option<&str>) -> Result<Arc<Head>, SourceError> {
        let first = self.0.as_bytes().to_vec();
        Ok(Arc::new(Head { version: "1".to_owned(), size: first.len() as u64, compressed: false, first }))
    }

    async fn bytes(&self, _: &str, _: &str, from: u64, len: u64) -> Result<Vec<u8>, SourceError> {
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        Ok(self.0.as_bytes().get(at(from)..at(from + len)).unwrap_or_default().to_vec())
    }

    async fn decompressed(&self, _: &str, _: &str, _: u64, _: usize) -> Result<Bytes, SourceError> {
        Ok(Bytes::default())
    }

    async fn names(&self, _: &str, _: Option<&str>) -> Result<Names, SourceError> {
        Ok(Names::default())
    }
}

/// Rows as lines. Often all lines are equally long, so that parts begin where lines do.
pub(crate) fn text_of(rows: &[Value], dice: &Dice) -> String {
    let even = dice.chance(6_000);
    let line = |row: &Value| match even {
        true => format!("{:<90}\n", row.to_string()),
        false => format!("{row}{}", dice.pick(&["\n", "\n", "\r\n", "\n\n"])),
    };
    rows.iter().map(line).collect()
}

/// A page of an object.
pub(crate) fn page_of(text: &str, ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
    let objects = Objects {
        bucket: "rows".to_owned(),
        key: Some("a.ndjson".to_owned()),
        keys: None,
        prefix: None,
        format: None,
        kind: None,
    };
    let page = Pages { store: &Object(text), objects: &objects, ask }.page().now_or_never();
    page.unwrap_or_else(|| Err(SourceError::again("it is not there at once")))
}
