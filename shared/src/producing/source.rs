//! Where a producer's rows come from.

use std::collections::BTreeSet;

use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::{FUNCTION_BYTES_MAX, OBJECT_KEY_BYTES_MAX, OBJECT_KEYS_BYTES_MAX, OBJECT_KEYS_MAX};
use crate::policy::{Destination, FieldError, KIND_ALLOWED, is_kind};

/// Where a producer's rows come from: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Source {
    /// An HTTP endpoint; `https`, or `http` on the local machine.
    Url(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::url"))] String),
    /// A Lambda function in the stack's region, by its name or ARN, perhaps with a version or an alias.
    Lambda(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::function"))] String),
    /// One or more objects in a bucket of S3 in the stack's region.
    S3(Objects),
    /// A file of this machine, for the local runner only.
    File(LocalFile),
    /// A program and its arguments, for the local runner only: it reads the question from standard input, and writes its answer
    /// to standard output.
    Command(#[cfg_attr(feature = "openapi", schemars(length(min = 1)))] Vec<String>),
    /// The file of `fanfold run`. Only this command opens such a fan-out, and only it reads such a source.
    #[cfg_attr(feature = "openapi", schemars(skip))]
    Rows(RunRows),
}

/// The rows of the file that `fanfold run` runs, dealt out in pages: the partitions take them in turn. Which rows a page has follows
/// from these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRows {
    /// The kind of the tasks.
    pub kind: String,
    /// The same for the same rows in the same order.
    pub fingerprint: Uuid,
    /// Rows of a page at most.
    pub page_rows: u32,
    /// Bytes of its rows as JSON, give or take the last row.
    pub page_bytes: u64,
}

/// A file of this machine. A file whose name ends in `.gz` is decompressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LocalFile {
    /// The file: a path from the folder of the local runner.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    pub path: String,
    /// How rows are written. By default what the path ends in: `.csv`, `.ndjson` or `.jsonl`, perhaps with `.gz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The kind of the tasks, whose contents the rows are. Without it, a row of NDJSON is a task: `{kind, content}`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_kind"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Objects in a bucket of S3: one by its `key`, several by their `keys`, or all that begin with a `prefix`. An object whose name ends in `.gz`, or whose
/// `Content-Encoding` is `gzip`, is decompressed.
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
    /// How rows are written. By default what the key or all keys end in: `.csv`, `.ndjson` or `.jsonl`, perhaps with `.gz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The kind of the tasks, whose contents the rows are. Without it, a row of NDJSON is a task: `{kind, content}`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_kind"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A row per task; the first line names the columns, and a row becomes an object of texts.
    Csv,
    /// A JSON value per line.
    Ndjson,
}

/// The name or ARN of a function, perhaps with a version or an alias (API reference of `Invoke`).
pub(crate) const FUNCTION: &str =
    "^(arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:)?[A-Za-z0-9_-]{1,64}(:([$]LATEST|[A-Za-z0-9_-]{1,128}))?$";

/// The name of a bucket (naming rules of S3).
pub(crate) const BUCKET: &str = "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$";

impl Source {
    /// Whether it gives each partition the rows that are its own. Otherwise the key of a row decides.
    #[must_use]
    pub fn gives_own_rows(&self) -> bool {
        match self {
            Self::S3(_) | Self::File(_) | Self::Rows(_) => true,
            Self::Url(_) | Self::Lambda(_) | Self::Command(_) => false,
        }
    }

    /// Whether a question has one answer, however often it is asked, unless it fails. The cursors of objects and files name their
    /// version, and without a cursor they have no rows yet. The file of a run is named by what is in it.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::S3(_) | Self::File(_) | Self::Rows(_) => true,
            Self::Url(_) | Self::Lambda(_) | Self::Command(_) => false,
        }
    }

    /// The field that a request may not have, and who may. `local`: the request comes to a local runner from its own machine.
    pub(super) fn refused(&self, local: bool) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Rows(_) => Some(("rows", "only `fanfold run` uses it")),
            Self::File(_) if !local => Some(("file", "is allowed only in the local runner")),
            Self::Command(_) if !local => Some(("command", "is allowed only in the local runner")),
            _ => None,
        }
    }

    /// Adds what is wrong with it; `field` is what it is called where it was given.
    pub(super) fn check(&self, field: &str, errors: &mut Vec<FieldError>) {
        match self {
            Self::Url(url) => {
                errors.extend(Destination::Url(url.clone()).check(field).err().into_iter().flat_map(|error| error.0));
            }
            Self::Lambda(function) => {
                if function.len() > FUNCTION_BYTES_MAX || !matches(FUNCTION, function) {
                    let problem = format!(
                        "is `{function}`, the name or ARN of a Lambda function of at most {FUNCTION_BYTES_MAX} bytes is allowed"
                    );
                    errors.push(FieldError { field: format!("{field}.lambda"), problem });
                }
            }
            Self::S3(objects) => objects.check(&format!("{field}.s3"), errors),
            Self::File(file) => file.check(&format!("{field}.file"), errors),
            Self::Rows(_) => {}
            Self::Command(command) => {
                if command.first().is_none_or(String::is_empty) {
                    let problem = "is empty, a program and its arguments are expected".to_owned();
                    errors.push(FieldError { field: format!("{field}.command"), problem });
                }
            }
        }
    }
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

    fn check(&self, field: &str, errors: &mut Vec<FieldError>) {
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

impl LocalFile {
    fn check(&self, field: &str, errors: &mut Vec<FieldError>) {
        let mut add = |name: &str, problem| errors.push(FieldError { field: format!("{field}.{name}"), problem });
        if self.path.is_empty() {
            add("path", "is empty, the path of a file is expected".to_owned());
        }
        check_rows(self.format.or_else(|| Format::of(&self.path)), self.kind.as_deref(), &mut add);
    }
}

/// Names what is wrong with how rows are said to become tasks.
fn check_rows(format: Option<Format>, kind: Option<&str>, add: &mut dyn FnMut(&str, String)) {
    match format {
        None => {
            add("format", "is missing: the name does not end in .csv, .ndjson or .jsonl (perhaps with .gz)".to_owned())
        }
        Some(Format::Csv) if kind.is_none() => {
            add("kind", "is missing: rows of CSV are contents, so the kind of their tasks is needed".to_owned());
        }
        _ => {}
    }
    if let Some(kind) = kind.filter(|kind| !is_kind(kind)) {
        add("kind", format!("is `{kind}`, {KIND_ALLOWED} are allowed"));
    }
}

impl Format {
    /// The format of an object, by what its name ends in.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |end: &str| name.ends_with(end);
        if ends(".csv") {
            return Some(Self::Csv);
        }
        (ends(".ndjson") || ends(".jsonl")).then_some(Self::Ndjson)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::shape;

    fn fields(source: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        shape::<Source>(source.clone()).unwrap().check("source", &mut errors);
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn only_sources_that_can_be_asked_are_accepted() {
        for right in [
            json!({"lambda": "rows"}),
            json!({"lambda": "rows:live"}),
            json!({"lambda": "rows:$LATEST"}),
            json!({"lambda": "arn:aws-cn:lambda:cn-north-1:123456789012:function:ro-ws_2:7"}),
            json!({"s3": {"bucket": "my.rows-1", "key": "a/b c.csv.gz", "kind": "mail"}}),
            json!({"s3": {"bucket": "rows", "key": "a.JSONL"}}),
            json!({"s3": {"bucket": "rows", "prefix": "2026/", "format": "ndjson"}}),
            json!({"s3": {"bucket": "rows", "keys": ["b.jsonl", "a.ndjson.gz"]}}),
            json!({"s3": {"bucket": "rows", "keys": ["b.csv", "a"], "format": "csv", "kind": "mail"}}),
            json!({"s3": {"bucket": "rows", "key": "export", "format": "csv", "kind": "mail"}}),
            json!({"file": {"path": "../rows.csv.gz", "kind": "mail"}}),
            json!({"command": ["./rows", "-v"]}),
        ] {
            assert_eq!(fields(&right), Vec::<String>::new(), "{right}");
        }
        for (wrong, field) in [
            (json!({"lambda": ""}), "source.lambda"),
            (json!({"lambda": "a/b"}), "source.lambda"),
            (json!({"lambda": "arn:aws:sqs:eu-west-1:123456789012:function:rows"}), "source.lambda"),
            (json!({"lambda": format!("rows:{}", "x".repeat(129))}), "source.lambda"),
            (json!({"s3": {"bucket": "Rows", "key": "a.ndjson"}}), "source.s3.bucket"),
            (json!({"s3": {"bucket": "rows", "key": ""}}), "source.s3.key"),
            (json!({"s3": {"bucket": "rows", "key": "a/../b.ndjson"}}), "source.s3.key"),
            (json!({"s3": {"bucket": "rows", "key": "a.txt"}}), "source.s3.format"),
            (json!({"s3": {"bucket": "rows", "prefix": "a/"}}), "source.s3.format"),
            (json!({"s3": {"bucket": "rows", "key": "a.csv"}}), "source.s3.kind"),
            (json!({"s3": {"bucket": "rows", "keys": []}}), "source.s3.keys"),
            (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson", "a.ndjson"]}}), "source.s3.keys"),
            (json!({"s3": {"bucket": "rows", "keys": vec!["a.ndjson"; 101]}}), "source.s3.keys"),
            (json!({"s3": {"bucket": "rows", "keys": vec!["x".repeat(1_000); 9]}}), "source.s3.keys"),
            (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson", ""]}}), "source.s3.keys[1]"),
            (json!({"s3": {"bucket": "rows", "keys": ["../a.ndjson"]}}), "source.s3.keys[0]"),
            (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson", "a.csv"], "kind": "mail"}}), "source.s3.format"),
            (json!({"s3": {"bucket": "rows", "keys": ["a.csv"]}}), "source.s3.kind"),
            (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson"], "prefix": "a"}}), "source.s3"),
            (json!({"s3": {"bucket": "rows", "key": "a.ndjson", "kind": "no/kind"}}), "source.s3.kind"),
            (json!({"file": {"path": ""}}), "source.file.path"),
            (json!({"file": {"path": "rows"}}), "source.file.format"),
            (json!({"file": {"path": "rows.csv"}}), "source.file.kind"),
            (json!({"command": []}), "source.command"),
            (json!({"s3": {"bucket": "rows"}}), "source.s3"),
            (json!({"s3": {"bucket": "rows", "key": "a.ndjson", "prefix": "a"}}), "source.s3"),
        ] {
            let found = fields(&wrong);
            assert!(found.contains(&field.to_owned()), "{wrong}: {found:?}");
        }
    }

    #[test]
    fn keys_without_objects_are_one_fault() {
        assert_eq!(fields(&json!({"s3": {"bucket": "rows", "keys": []}})), ["source.s3.keys"]);
    }

    #[test]
    fn objects_are_the_same_in_whichever_order_their_keys_are_named() {
        let named = |keys: Value| shape::<Source>(json!({"s3": {"bucket": "rows", "keys": keys}})).unwrap();
        assert_eq!(named(json!(["b.ndjson", "a.ndjson"])), named(json!(["a.ndjson", "b.ndjson"])));
        assert_ne!(named(json!(["b.ndjson", "a.ndjson"])), named(json!(["a.ndjson"])));
        let other = shape::<Source>(json!({"s3": {"bucket": "others", "keys": ["a.ndjson"]}})).unwrap();
        assert_ne!(named(json!(["a.ndjson"])), other);
    }

    #[test]
    fn a_source_is_written_as_it_is_read() {
        for source in [
            json!({"url": "https://example.com/"}),
            json!({"lambda": "rows"}),
            json!({"s3": {"bucket": "rows", "key": "a.csv", "kind": "mail"}}),
            json!({"s3": {"bucket": "rows", "keys": ["b.ndjson", "a.ndjson"]}}),
            json!({"file": {"path": "a.csv", "kind": "mail"}}),
            json!({"command": ["./rows"]}),
            json!({"rows": {"kind": "mail", "fingerprint": Uuid::nil(), "page_rows": 2, "page_bytes": 3}}),
        ] {
            assert_eq!(serde_json::to_value(shape::<Source>(source.clone()).unwrap()).unwrap(), source);
        }
        for wrong in [json!({}), json!({"s3": "rows"}), json!({"lambda": "x", "url": "https://example.com/"})] {
            assert!(shape::<Source>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
