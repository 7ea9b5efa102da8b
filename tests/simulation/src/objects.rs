//! Objects of S3, as far as a source reads them: rows as NDJSON, which is cut into parts and pages as `produce` does it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfold::producing::Objects;
use fanfold_produce::{Bytes, Head, Names, Pages, SourceAnswer, SourceError, SourceRequest, Store};
use futures::FutureExt;
use serde_json::Value;

use crate::dice::Dice;

/// The objects of a source: the text of each, by its name.
pub(crate) type Texts = BTreeMap<String, String>;

/// What has them.
struct Bucket<'a>(&'a Texts);

impl Bucket<'_> {
    fn text(&self, name: &str) -> Result<&[u8], SourceError> {
        self.0.get(name).map(String::as_bytes).ok_or_else(|| SourceError::for_good("there is no such object"))
    }
}

impl Store for Bucket<'_> {
    async fn head(&self, name: &str, _: Option<&str>) -> Result<Arc<Head>, SourceError> {
        let first = self.text(name)?.to_vec();
        Ok(Arc::new(Head { version: "1".to_owned(), size: first.len() as u64, compressed: false, first }))
    }

    async fn bytes(&self, name: &str, _: &str, from: u64, len: u64) -> Result<Vec<u8>, SourceError> {
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        Ok(self.text(name)?.get(at(from)..at(from + len)).unwrap_or_default().to_vec())
    }

    async fn decompressed(&self, _: &str, _: &str, _: u64, _: usize) -> Result<Bytes, SourceError> {
        Ok(Bytes::default())
    }

    async fn names(&self, _: &str, _: Option<&str>) -> Result<Names, SourceError> {
        Ok(Names::default())
    }
}

/// Rows as lines of one object. Often all lines are equally long, so that parts begin where lines do.
pub(crate) fn one_text(rows: &[Value], dice: &Dice) -> Texts {
    let even = dice.chance(6_000);
    let line = |row: &Value| match even {
        true => format!("{:<90}\n", row.to_string()),
        false => format!("{row}{}", dice.pick(&["\n", "\n", "\r\n", "\n\n"])),
    };
    Texts::from([("a.ndjson".to_owned(), rows.iter().map(line).collect())])
}

/// Rows as lines of several objects. Some objects are empty, and others are behind them.
pub(crate) fn several_texts(rows: &[Value], dice: &Dice) -> Texts {
    let name = |n: usize| format!("{n}.ndjson");
    let count = 3 + dice.below(6);
    let mut texts: Texts = (0..count).map(|n| (name(n), String::new())).collect();
    // One that has no lines by chance is empty, too.
    let full: Vec<usize> = (0..count).filter(|n| *n == count - 1 || dice.chance(5_000)).collect();
    for row in rows {
        texts.entry(name(dice.pick(&full))).or_default().push_str(&format!("{row}\n"));
    }
    texts
}

/// The objects as a source names them.
pub(crate) fn named(texts: &Texts) -> Objects {
    let single = texts.len() == 1;
    Objects {
        bucket: "rows".to_owned(),
        key: texts.keys().next().filter(|_| single).cloned(),
        keys: (!single).then(|| texts.keys().cloned().collect()),
        prefix: None,
        format: None,
        kind: None,
    }
}

/// A page of the objects.
pub(crate) fn page_of(texts: &Texts, ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
    let page = Pages { store: &Bucket(texts), objects: &named(texts), ask }.page().now_or_never();
    page.unwrap_or_else(|| Err(SourceError::again("it is not there at once")))
}
