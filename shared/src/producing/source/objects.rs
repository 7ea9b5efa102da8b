//! Objects of S3 as a source.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::format::{Format, check_rows};
use super::matches;
use crate::limits::{OBJECT_KEY_BYTES_MAX, OBJECT_KEYS_BYTES_MAX, OBJECT_KEYS_MAX};
use crate::policy::FieldError;

/// The name of a bucket (naming rules of S3).
pub(crate) const BUCKET: &str = "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$";

/// Objects in a bucket of S3: one by its `key`, several by their `keys`, or all that begin with a `prefix`. An object whose
/// name ends in `.gz`, or whose `Content-Encoding` is `gzip`, is decompressed.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// The bucket.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::bucket"))]
    pub bucket: String,
    /// The key of the object. Either this, `keys` or `prefix` is needed.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = OBJECT_KEY_BYTES_MAX), extend("x-max-bytes" = OBJECT_KEY_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The keys of the objects, in any order: at most 8,192 bytes in all.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::object_keys"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// What the keys of the objects begin with.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = OBJECT_KEY_BYTES_MAX), extend("x-max-bytes" = OBJECT_KEY_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// How rows are written. By default by the ending of the key, or of all keys: `.csv`, `.ndjson` or `.jsonl`, perhaps with `.gz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The kind of the tasks, whose contents the rows are. Without it, a row of NDJSON is a task: `{kind, content}`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_kind"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// In whichever order their keys are named.
impl PartialEq for Objects {
    fn eq(&self, other: &Self) -> bool {
        let Self { bucket, key, keys: _, prefix, format, kind } = self;
        (bucket, key, prefix, format, kind) == (&other.bucket, &other.key, &other.prefix, &other.format, &other.kind)
            && self.keys_in_order() == other.keys_in_order()
    }
}

impl Objects {
    /// How the rows of the objects are written; none: it is not known.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        let mut formats = self.key.iter().chain(self.keys.iter().flatten()).map(|key| Format::of(key));
        let first = || formats.next().flatten().filter(|first| formats.all(|format| format == Some(*first)));
        self.format.or_else(first)
    }

    /// The keys that are named one by one, in the order in which they are read.
    #[must_use]
    pub fn keys_in_order(&self) -> Option<Vec<&str>> {
        let mut keys: Vec<&str> = self.keys.as_ref()?.iter().map(String::as_str).collect();
        keys.sort_unstable();
        Some(keys)
    }

    /// The key of the object, if there is only one.
    #[must_use]
    pub fn single(&self) -> Option<&str> {
        match (&self.key, self.keys.as_deref()) {
            (Some(key), _) | (None, Some([key])) => Some(key),
            _ => None,
        }
    }

    pub(super) fn check(&self, field: &str, errors: &mut Vec<FieldError>) {
        let mut add = |name: &str, problem: String| {
            let field = if name.is_empty() { field.to_owned() } else { format!("{field}.{name}") };
            errors.push(FieldError { field, problem });
        };
        if !matches(BUCKET, &self.bucket) {
            let allowed = "3 to 63 lower-case letters, digits, dots and hyphens are allowed";
            add("bucket", format!("is `{}`, {allowed}", self.bucket));
        }
        match [self.key.is_some(), self.keys.is_some(), self.prefix.is_some()].iter().filter(|given| **given).count() {
            0 => add("", "has none of `key`, `keys` and `prefix`, exactly one of them is needed".to_owned()),
            1 => {}
            _ => add("", "has more than one of `key`, `keys` and `prefix`, exactly one of them is allowed".to_owned()),
        }
        let named = [("key", &self.key), ("prefix", &self.prefix)].into_iter();
        let named = named.filter_map(|(name, text)| Some((name.to_owned(), text.as_ref()?)));
        let keys = self.keys.iter().flatten().enumerate().map(|(at, key)| (format!("keys[{at}]"), key));
        for (name, text) in named.chain(keys) {
            if let Some(problem) = problem_of_key(text) {
                add(&name, problem);
            }
        }
        if let Some(problem) = self.keys.as_deref().and_then(problem_of_keys) {
            add("keys", problem);
        }
        check_rows(self.format(), self.kind.as_deref(), &mut |name, problem| match (name, &self.key) {
            ("format", None) if self.prefix.is_some() => {
                add(name, "is missing: with `prefix`, `csv` or `ndjson` is needed".to_owned());
            }
            ("format", None) if self.keys.as_ref().is_some_and(|keys| !keys.is_empty()) => {
                let problem = "is missing: not all of `keys` end in .csv, or in .ndjson or .jsonl (perhaps with .gz)";
                add(name, problem.to_owned());
            }
            ("format", None) => {}
            _ => add(name, problem),
        });
    }
}

/// What is wrong with the key of an object, or the beginning of one.
fn problem_of_key(key: &str) -> Option<String> {
    if !(1..=OBJECT_KEY_BYTES_MAX).contains(&key.len()) {
        return Some(format!("has {} bytes, 1 to {OBJECT_KEY_BYTES_MAX} are allowed", key.len()));
    }
    // Clients of HTTP take such parts of a path for folders, and leave them out.
    let folder = key.split('/').any(|part| matches!(part, "." | ".."));
    folder.then(|| format!("is `{key}`, parts that are only `.` or `..` are not allowed"))
}

/// What is wrong with keys together.
fn problem_of_keys(keys: &[String]) -> Option<String> {
    let bytes: usize = keys.iter().map(String::len).sum();
    let mut seen = BTreeSet::new();
    if !(1..=OBJECT_KEYS_MAX).contains(&keys.len()) {
        return Some(format!("has {} keys, 1 to {OBJECT_KEYS_MAX} are allowed; `prefix` names more", keys.len()));
    }
    if bytes > OBJECT_KEYS_BYTES_MAX {
        return Some(format!(
            "has {bytes} bytes in all, {OBJECT_KEYS_BYTES_MAX} are allowed; `prefix` names more objects"
        ));
    }
    let twice = keys.iter().find(|key| !seen.insert(*key))?;
    Some(format!("has `{twice}` twice, each object is allowed once"))
}
